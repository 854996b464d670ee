"""Audits: what a ranking rests on, term by term, vector by vector, and whether fusing rankings changes anything."""
