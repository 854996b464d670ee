"""Isolation: one protocol, two backends (Docker and bubblewrap), one conformance suite."""
