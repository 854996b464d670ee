"""Rules by which a run finds its mechanisms: guards passed by, guards that were none, losses, misreports."""
