"""Which adapter drives a product: the one place where adapters are made."""

from __future__ import annotations

from lab.agents.hermes.adapter import HermesAgent


def agent_for(product: str) -> HermesAgent:
    """The adapter of a product; every product so far, forks under other names included, is driven by the one adapter.

    Args:
        product: Name of the installed distribution.
    """
    return HermesAgent(product)
