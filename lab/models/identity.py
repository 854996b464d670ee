"""What a live model is and how it is asked: as its server tells it, before the run, for the lock."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import Field

from lab.models.spec import Provider
from lab.records import Record


class Ability(StrEnum):
    """Whether a model can do something, by a probe and not by its description."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


class LiveModel(Record):
    """A model on a server.

    Attributes:
        spec: As the user named it.
        provider: Who answers for it.
        name: Its name on the server.
        url: Address of the server, without credentials.
        server: Product and version of the server, as far as it tells: ``ollama 0.6.5``, ``llama.cpp b9999``.
        digest: Digest of the model, of Ollama that of its manifest; empty where the server tells none.
        quantisation: ``Q4_K_M``, …; empty where it is not told.
        parameters: ``8.2B``, …; empty where it is not told.
        template_sha256: Digest of the chat template; empty where it is not told.
        context: Tokens that a request and its answer may have together here; None where it is not told.
        context_source: Where that number comes from: ``num_ctx sent``, ``/props n_ctx``, ``--context``, …
        tools: Whether it calls an offered tool when it is told to.
        tools_detail: What the probe saw, one line.
        tokens_per_second: Tokens of the probe's answer by second; None where it could not be measured.
        notes: What a reader of its numbers must know, one line each.
    """

    spec: str
    provider: Provider
    name: str
    url: str
    server: str = ""
    digest: str = ""
    quantisation: str = ""
    parameters: str = ""
    template_sha256: str = ""
    context: int | None = None
    context_source: str = ""
    tools: Ability = Ability.UNKNOWN
    tools_detail: str = ""
    tokens_per_second: float | None = None
    notes: tuple[str, ...] = ()

    @property
    def decisive(self) -> dict[str, Any]:
        """What decides an answer: addresses and speeds stay out of it."""
        return self.model_dump(
            mode="json",
            include={
                *("provider", "name", "server", "digest", "quantisation"),
                *("parameters", "template_sha256", "context"),
            },
        )


class Sampling(Record):
    """Options of a live model that the lab sends in place of the agent's own; what is None is left as the agent has it.

    The seed is not among them: each trial has its own.

    Attributes:
        temperature: 0 for the likeliest token.
        top_p: Nucleus.
        top_k: Number of candidates; Ollama and llama.cpp know it, OpenAI does not.
        max_tokens: Most tokens of an answer.
        num_ctx: Context that Ollama loads the model with; it would otherwise cut the request silently.
    """

    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, gt=0, le=1)
    top_k: int | None = Field(default=None, ge=1)
    max_tokens: int | None = Field(default=None, ge=1)
    num_ctx: int | None = Field(default=None, ge=256)
