"""Embeddings of a model that an Ollama server holds, through Ollama's official client."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from lab.errors import EmbeddingFailed
from lab.models.failures import Cause
from lab.models.ollama_client import client_url, listed_digest, named_failure, ollama_client, server_version
from lab.retrieval.embedders.base import Kind, ModelIdentity, Vectors
from lab.retrieval.embedders.checked import embeddable, unit_vectors
from lab.retrieval.embedders.prefixes import prefixes_of
from lab.text import printable

NAME = "ollama"
DEFAULT_MODEL = "bge-m3"
IDENTITY_SECONDS = 120.0
"""Time limit for asking who the model is: the server may have to load it first."""

CAUSES = {Cause.TIMEOUT: "timeout", Cause.UNREACHABLE: "server_gone", Cause.MISSING: "model_missing"}
"""The embedder's word for what went wrong with the server; anything else is a bad answer."""

Answer = TypeVar("Answer")


class OllamaEmbedder:
    """A model behind an Ollama server.

    The time limit holds for the whole call, not for each read, so a server that sends a byte now and then does not
    hold a query up. After each answer the digest that the server has for the model is compared with the one that the
    identity began with: the answer then came from the pinned model.

    Args:
        model: Name as Ollama knows it.
        host: Address of the server; by default that of ``OLLAMA_HOST``, and without it the local one.

    Raises:
        EnvironmentUnusable: The client is not installed, or the address is none.
    """

    def __init__(self, model: str = DEFAULT_MODEL, host: str | None = None) -> None:
        self._model = model
        # Any: the client is imported late, so its types are not known here.
        self._client: Any = ollama_client(host)
        self._runner: asyncio.Runner | None = asyncio.Runner()
        self._lock = threading.Lock()
        self._identity: ModelIdentity | None = None

    @property
    def identity(self) -> ModelIdentity:
        """The model as the server had it when it was asked first; see ``Embedder``."""
        with self._lock:
            if self._identity is None:
                self._identity = self._within(IDENTITY_SECONDS, self._ask_identity)
            return self._identity

    def embed(self, texts: Sequence[str], kind: Kind, timeout: float | None = None) -> Vectors:
        """Embeds texts; see ``Embedder``. A text beyond the model's context is an error, never cut."""
        identity = self.identity
        inputs = [identity.prefix(kind) + embeddable(text) for text in texts]

        async def ask() -> Vectors:
            found = await self._vectors(inputs, identity.dimensions)
            now = await self._digest()
            if now != identity.digest:
                raise EmbeddingFailed(
                    f"{self._model} is another model now: digest {now[:12]} instead of {identity.digest[:12]}",
                    "start again with the model as it is now",
                    cause="model_missing",
                )
            return found

        with self._lock:
            return self._within(timeout, ask)

    def close(self) -> None:
        """Closes the connections; may be called twice."""
        with self._lock:
            if self._runner is not None:
                self._runner.run(self._client.close())
                self._runner.close()
                self._runner = None

    async def _ask_identity(self) -> ModelIdentity:
        digest = await self._digest()
        known = prefixes_of(self._model)
        prefixes = known or ((Kind.QUERY, ""), (Kind.DOCUMENT, ""))
        found = await self._vectors([dict(prefixes)[Kind.DOCUMENT] + "dimensions"], None)
        note = () if known else (f"no prefix is known for {self._model}: queries and documents go in as they are",)
        return ModelIdentity(
            backend=NAME,
            model=self._model,
            digest=digest,
            dimensions=found.shape[1],
            prefixes=prefixes,
            licence=await self._licence(),
            version=await server_version(self._client),
            notes=note,
        )

    async def _vectors(self, inputs: Sequence[str], dimensions: int | None) -> Vectors:
        if not inputs:
            return unit_vectors((), 0, dimensions, self._model)
        answer = await self._client.embed(model=self._model, input=list(inputs), truncate=False)
        return unit_vectors(answer.embeddings, len(inputs), dimensions, self._model)

    async def _digest(self) -> str:
        """Digest that the server has for the model now."""
        found = await listed_digest(self._client, self._model)
        if not found:
            raise EmbeddingFailed(
                f"the Ollama server has no model {self._model}", f"ollama pull {self._model}", cause="model_missing"
            )
        return found

    async def _licence(self) -> str:
        """First line of the licence that the model's files state."""
        stated = (await self._client.show(self._model)).license or ""
        line = next((line.strip() for line in stated.splitlines() if line.strip()), "not stated")
        return printable(line, limit=80)

    def _within(self, timeout: float | None, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        """Runs a conversation with the server and names what went wrong with it."""

        async def limited() -> Answer:
            async with asyncio.timeout(timeout):
                return await ask()

        if self._runner is None:
            raise EmbeddingFailed(f"{self._model} was closed", "make a new embedder", cause="server_gone")
        try:
            return self._runner.run(limited())
        except EmbeddingFailed:
            raise
        except Exception as error:
            failed = named_failure(error, client_url(self._client), self._model, timeout)
            if failed is None:
                raise
            mend = "shorten the text or take another model" if "context length" in failed.said else failed.mend
            raise EmbeddingFailed(failed.message, mend, cause=CAUSES.get(failed.cause, "bad_answer")) from error
