"""Observation: what happened in a trial, judged from the gateway's recordings and the files of the home."""
