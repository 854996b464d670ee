"""Runs held against each other on the same scenarios or snapshots: paired, with a verdict that may be "cannot tell"."""
