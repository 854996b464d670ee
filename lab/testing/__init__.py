"""What a team's own test suite asserts: single trials with the real agent, and retrieval with its denominators."""
