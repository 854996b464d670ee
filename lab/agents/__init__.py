"""Agents under test: how a build is installed, initialised, driven and read."""
