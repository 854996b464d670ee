"""Fact store: a memory provider for Hermes Agent, and the same retrieval in process for the benchmark.

The folder is a whole plugin: it is copied to ``$HERMES_HOME/plugins/factstore/`` and imports nothing but the standard
library, numpy (only for HRR) and itself. The agent finds it by the word ``register_memory_provider`` in this file.
"""

from __future__ import annotations

from typing import Any


def register(context: Any) -> None:
    """Called by the agent's loader with an object of the agent's, for which there is no type outside of it."""
    from .provider import FactstoreProvider, configuration  # noqa: PLC0415 - the lab does without the provider

    context.register_memory_provider(FactstoreProvider(configuration()))
