"""Who stood in which relation to what, when it was true and when it was known: a bitemporal graph in SQLite."""
