"""Memory architectures beside the agent's own: built whole, each behind the protocol of a system under test."""
