"""Text embeddings behind one protocol, and the sidecar in which vectors are kept."""
