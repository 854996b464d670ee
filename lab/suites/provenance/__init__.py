"""Suite of provenance: who said it, who is named in it, whose words and whose preference it holds."""
