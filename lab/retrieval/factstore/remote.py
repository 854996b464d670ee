"""The embedding channel inside an agent: a server with Ollama's or OpenAI's interface, asked over HTTP."""

from __future__ import annotations

import hashlib
import http.client
import json
import math
import sqlite3
import time
import urllib.error
import urllib.request
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .channel import ChannelFailed

BATCH_CHARACTERS = 8000
"""Texts of one request have this many characters together, or are one text: rows say nothing of what a batch costs."""
_ANSWER_BYTES = 64 << 20
_VECTORS = """
CREATE TABLE IF NOT EXISTS vectors (text_digest TEXT, model TEXT, vector BLOB, PRIMARY KEY (text_digest, model))
"""


@dataclass(frozen=True)
class RemoteSettings:
    """Where vectors come from.

    Attributes:
        url: The whole address: ``…/api/embed`` (Ollama) or ``…/v1/embeddings`` (OpenAI).
        model: Name of the model.
        seconds: Limit for all that one query asks of the server.
        query_prefix: What the model wants before a question (``query: `` for the e5 family).
        document_prefix: … before a fact (``passage: ``).
    """

    url: str
    model: str
    seconds: float = 2.0
    query_prefix: str = ""
    document_prefix: str = ""

    def __post_init__(self) -> None:
        """An address of another scheme would let urllib read files."""
        if not self.url.startswith(("http://", "https://")):
            raise ValueError("the address of the embedding server starts with http:// or https://")


@dataclass(frozen=True)
class RemoteNeighbours:
    """See ``channel.Neighbours``."""

    pairs: tuple[tuple[int, float], ...]
    seconds: Mapping[str, float]


class RemoteChannel:
    """Compares a query with all facts by the vectors of a server.

    Vectors of facts are kept by digest of the text and model in a database of their own. Those that are missing are
    asked for when a query comes, within its time limit; what came in time is kept, so the next query gets further.

    Args:
        settings: Where vectors come from.
        facts: The store.
        vectors: The database of vectors, in autocommit mode.
    """

    def __init__(self, settings: RemoteSettings, facts: sqlite3.Connection, vectors: sqlite3.Connection) -> None:
        self._settings = settings
        self._facts = facts
        self._vectors = vectors
        vectors.execute(_VECTORS)

    def nearest(self, query: str, limit: int) -> RemoteNeighbours:
        """See ``channel.Channel``."""
        start = time.monotonic()
        deadline = start + self._settings.seconds
        wanted = self._embed([self._settings.query_prefix + query], deadline)[0]
        texts = dict(self._facts.execute("SELECT fact_id, content FROM facts ORDER BY fact_id").fetchall())
        known = self._document_vectors(texts.values(), deadline)
        embedded = time.monotonic()
        found = [(fact_id, _dot(wanted, known[text])) for fact_id, text in texts.items()]
        found.sort(key=lambda pair: (-round(pair[1], 6), pair[0]))
        seconds = {"embed": embedded - start, "dense": time.monotonic() - embedded}
        return RemoteNeighbours(tuple(found[:limit]), seconds)

    def _document_vectors(self, texts: Any, deadline: float) -> dict[str, array[float]]:
        prefix, model = self._settings.document_prefix, self._settings.model
        digests = {text: hashlib.sha256(f"{prefix}\0{text}".encode()).hexdigest() for text in texts}
        stored = dict(
            self._vectors.execute("SELECT text_digest, vector FROM vectors WHERE model = ?", (model,)).fetchall()
        )
        known = {text: array("f", stored[digest]) for text, digest in digests.items() if digest in stored}
        for batch in _batches([text for text in digests if text not in known]):
            fresh = self._embed([prefix + text for text in batch], deadline)
            rows = [(digests[text], model, vector.tobytes()) for text, vector in zip(batch, fresh, strict=True)]
            self._vectors.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)
            known |= dict(zip(batch, fresh, strict=True))
        if len({len(vector) for vector in known.values()}) > 1:
            raise ChannelFailed("bad_answer", "the stored vectors have different lengths")
        return known

    def _embed(self, texts: Sequence[str], deadline: float) -> list[array[float]]:
        body = json.dumps({"model": self._settings.model, "input": list(texts)}).encode()
        request = urllib.request.Request(  # noqa: S310 - the scheme is checked in RemoteSettings
            self._settings.url, body, {"Content-Type": "application/json"}
        )
        left = deadline - time.monotonic()
        if left <= 0:
            raise ChannelFailed("timeout")
        try:
            with urllib.request.urlopen(request, timeout=left) as response:  # noqa: S310
                answer = json.loads(_read(response, deadline))
        except urllib.error.HTTPError as error:
            raise ChannelFailed("model_missing" if error.code == 404 else "bad_answer", str(error.code)) from error
        except (OSError, http.client.HTTPException) as error:
            late = isinstance(error, TimeoutError) or isinstance(getattr(error, "reason", None), TimeoutError)
            raise ChannelFailed("timeout" if late else "server_gone") from error
        except (ValueError, RecursionError) as error:
            raise ChannelFailed("bad_answer", "no JSON") from error
        return _vectors_of(answer, len(texts))


def _read(response: http.client.HTTPResponse, deadline: float) -> bytes:
    """The whole body. A socket's own time limit starts again with each byte, so it is looked at here too."""
    body = bytearray()
    while piece := response.read1(1 << 16):
        body += piece
        if time.monotonic() > deadline:
            raise ChannelFailed("timeout")
        if len(body) > _ANSWER_BYTES:
            raise ChannelFailed("bad_answer", "too long")
    return bytes(body)


def _vectors_of(answer: Any, wanted: int) -> list[array[float]]:
    """Unit vectors of an answer in either form, checked: what comes from a server may be anything."""
    try:
        rows = answer["embeddings"] if "embeddings" in answer else _in_order(answer["data"])
        vectors = [array("f", map(float, row)) for row in rows]
    except (TypeError, KeyError, ValueError, OverflowError) as error:
        raise ChannelFailed("bad_answer", "no vectors") from error
    lengths = [math.sqrt(_dot(vector, vector)) for vector in vectors]
    if len(vectors) != wanted or len({len(v) for v in vectors}) != 1 or not all(0 < n < math.inf for n in lengths):
        raise ChannelFailed("bad_answer", "not one vector for each text")
    return [array("f", (x / n for x in vector)) for vector, n in zip(vectors, lengths, strict=True)]


def _in_order(data: Sequence[Mapping[str, Any]]) -> list[Any]:
    return [row["embedding"] for row in sorted(data, key=lambda row: int(row["index"]))]


def _dot(one: array[float], other: array[float]) -> float:
    if len(one) != len(other):
        raise ChannelFailed("bad_answer", "vectors of the query and of the facts have different lengths")
    return math.fsum(map(float.__mul__, one, other))


def _batches(texts: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    room = BATCH_CHARACTERS
    for text in texts:
        if batch and len(text) > room:
            yield batch
            batch, room = [], BATCH_CHARACTERS
        batch.append(text)
        room -= len(text)
    if batch:
        yield batch
