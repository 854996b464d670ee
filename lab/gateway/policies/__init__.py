"""Scripted policies: what the model answers, as pure functions of the request and the scenario."""
