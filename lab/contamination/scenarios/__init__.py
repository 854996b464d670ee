"""Scenarios as data: model, reading, checks, library, JSON Schema."""
