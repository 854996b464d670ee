"""The universal layer: episodic and semantic records, found by vectors, words and stated relations at once."""
