"""The second detector: whether a write says what the content wants where the canary is not in it; never a verdict."""
