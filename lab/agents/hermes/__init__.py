"""Hermes Agent (``hermes-agent``): everything that is specific to this product."""
