"""Writes a folder by which a finding is reproduced without the lab."""
