"""What an embedding channel is to the retrieval: it names the nearest facts to a query, or says why it cannot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol


class ChannelFailed(Exception):
    """The channel gave no answer to this query, which then goes by words alone.

    Attributes:
        cause: ``timeout``, ``server_gone``, ``model_missing`` or ``bad_answer``.
    """

    def __init__(self, cause: str, detail: str = "") -> None:
        super().__init__(f"{cause}: {detail}" if detail else cause)
        self.cause = cause


class Neighbours(Protocol):
    """An answer of the channel."""

    @property
    def pairs(self) -> Sequence[tuple[int, float]]:
        """Fact ids with their raw cosine, best first."""
        ...

    @property
    def seconds(self) -> Mapping[str, float]:
        """Wall time by stage."""
        ...


class Channel(Protocol):
    """Finds facts by the meaning of a query."""

    def nearest(self, query: str, limit: int) -> Neighbours:
        """The nearest facts.

        Raises:
            ChannelFailed: It cannot say.
        """
        ...
