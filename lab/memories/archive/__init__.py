"""The five-layer archive's lower layers: session logs, an episodic index over them, point ids, a vector store."""
