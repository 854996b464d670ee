"""Memory systems of other people as arms: each unmodified, in an environment of its own, without network."""
