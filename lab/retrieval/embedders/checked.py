"""What every backend's answer must be before it counts as vectors, and texts made fit for any backend."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import ArrayLike

from lab.errors import EmbeddingFailed
from lab.retrieval.embedders.base import Embedder, Kind, Vectors

BATCH_CHARACTERS = 8_000
"""Most characters of one batch: the cost of a batch follows its volume of text, not the number of its texts."""

BATCH_SECONDS = 300.0
"""Time limit of a batch: far beyond what one takes on a slow machine, so only a server that hangs meets it."""

_UNENCODABLE = re.compile("[\x00\ud800-\udfff]")


def embeddable(text: str) -> str:
    """A text as a model can take it: U+FFFD for NUL and for lone surrogates.

    A C library ends a text at a NUL, silently; a lone surrogate has no UTF-8.
    """
    return _UNENCODABLE.sub("\ufffd", text)


def batches(texts: Sequence[str], characters: int = BATCH_CHARACTERS) -> Iterator[list[int]]:
    """Positions of texts in batches of at most that many characters; a longer text is a batch of its own."""
    batch: list[int] = []
    volume = 0
    for position, text in enumerate(texts):
        if batch and volume + len(text) > characters:
            yield batch
            batch, volume = [], 0
        batch.append(position)
        volume += len(text)
    if batch:
        yield batch


def in_batches(embedder: Embedder, texts: Sequence[str], kind: Kind) -> Iterator[tuple[list[int], Vectors]]:
    """Embeds texts batch by batch.

    Yields:
        Positions of a batch's texts and their vectors.

    Raises:
        EmbeddingFailed: The model gave no vectors for a batch.
    """
    for batch in batches(texts):
        yield batch, embedder.embed([texts[position] for position in batch], kind, BATCH_SECONDS)


def unit_vectors(answer: ArrayLike, texts: int, dimensions: int | None, model: str) -> Vectors:
    """Checks an answer and gives it as unit vectors.

    Args:
        answer: What the model answered: ``texts`` rows of numbers.
        texts: Number of texts that it was asked for; 0 is answered without looking.
        dimensions: Length that a vector must have; None where the model has not been asked before.
        model: Its name, for messages.

    Returns:
        Shape (texts, dimensions), rows of unit length.

    Raises:
        EmbeddingFailed: The answer is no such set of vectors (``bad_answer``).
    """
    if texts == 0:
        return np.empty((0, dimensions or 0), dtype=np.float32)

    def bad(what: str) -> EmbeddingFailed:
        return EmbeddingFailed(f"{model} answered with {what}", "check the model and its server", cause="bad_answer")

    try:
        found = np.asarray(answer, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise bad("rows that are no vectors of one length") from error
    if found.shape[:1] != (texts,):
        raise bad(f"{len(found) if found.ndim else 0} vectors for {texts} texts")
    if found.ndim != 2 or found.shape[1] == 0:
        raise bad("rows that are no vectors of one length")
    if dimensions is not None and found.shape[1] != dimensions:
        raise bad(f"vectors of {found.shape[1]} dimensions instead of {dimensions}")
    if not np.isfinite(found).all():
        raise bad("numbers that are not finite")
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    if not lengths.all():
        raise bad("a vector of length zero")
    # A vector that is of unit length as far as float32 can tell stays bit for bit what the model gave.
    off = np.abs(lengths - 1) > 1e-6
    return np.where(off, found / lengths, found).astype(np.float32)
