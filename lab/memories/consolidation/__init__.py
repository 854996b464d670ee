"""Consolidation of memories without a model: duplicate clusters, decay by type, a scan for contradictions."""
