"""Suites beyond top-k: what a memory invents, confuses, loses or wrongly believes, each on labelled data."""
