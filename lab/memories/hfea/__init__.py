"""HFEA, a last-resort episodic archive: dated chronicles, asked only where the normal memory has no evidence."""
