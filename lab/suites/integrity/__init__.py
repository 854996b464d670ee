"""The suite of integrity and recovery: real faults on every store, and whether a loss is told."""
