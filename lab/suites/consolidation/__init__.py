"""Suite *consolidation*: what is merged that should not be, what is forgotten, and which contradictions are seen."""
