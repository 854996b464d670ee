"""Frozen, identified copies of memory databases: how they are made, opened, verified and compared.

A snapshot is a folder with ``memory.db`` and ``manifest.json``. The database is a copy made by SQLite's own backup, the
manifest says what it holds. Nothing else may be benchmarked.
"""
