"""Models that answer an agent: how they are named, what a server tells of them, how they are asked."""
