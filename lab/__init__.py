"""Agent Memory Lab: measure what an agent's own review writes into its permanent memory."""

__version__ = "0.2.0"
