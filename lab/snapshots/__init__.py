"""Frozen, identified copies of memory databases: how they are made, opened, verified and compared."""
