"""Tells whether a server read the whole of a request: where one does not fit, Ollama and others cut it without a word.

What the versions of Ollama do, by its source and its reports (ollama issues 3839, 4967, 16800, 17427; pull requests
5371, 12061, 16428, 17943):

- ``truncate: false`` in a chat makes it an error of what does not fit; known from late in 0.12, unknown fields are
  ignored before. By default whole messages are left out, the oldest first, and then the front of the prompt.
- The count of a prompt that was cut to fit is the context, or, with the engine of 0.30 and later, half of it plus half
  of the tokens that are kept in front (``num_ctx / 2 + 2``).
- ``prompt_eval_count`` counts the whole prompt, cached or not, from July 2024 on; only the first releases of 0.30
  counted without what was cached.

A count below the least that a request can have is therefore a cut, or comes of such a release: in either case nobody
can tell what the model read, so that it is an error and no result. llama.cpp and vLLM refuse what does not fit; of any
other server behind OpenAI's protocol the count is checked where it tells one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lab.gateway.request import ChatRequest
from lab.gateway.upstream.refusals import BYTES_PER_TOKEN

REFUSES_SINCE = (0, 13, 0)
"""From here on ``truncate: false`` is certainly known."""

_REFUSING = ("llama.cpp", "vllm")
_KEPT, _NEAR = 2, 4
_PLAUSIBLE = 0.7
"""Of the context: how long a request must be at least, by estimate, for half a context to look like a cut."""
_MARKS = 16
"""Tokens that a chat template puts around a message, at most."""


@dataclass(frozen=True)
class Size:
    """How long a request is.

    Attributes:
        least: Tokens that it has at least: one for each word of its messages, for the tokenizers in use join no words.
            Calls, and what is said beside them, are not counted, because chat templates may leave them out.
        estimate: Tokens by its size: a rule of thumb.
        droppable: Tokens of its longest message that may be left out, at most.
    """

    least: int
    estimate: int
    droppable: int

    @classmethod
    def of(cls, request: ChatRequest, body: bytes) -> Size:
        """Measures a request.

        Args:
            request: The agent's.
            body: What the server gets.
        """
        least = sum(len(m.text.split()) for m in request.messages if not m.tool_calls)
        oldest = [m.text for m in request.messages[:-1] if m.role not in ("system", "developer")]
        droppable = max(len(text.encode("utf-8", "replace")) for text in oldest) // 2 + _MARKS if oldest else 0
        return cls(least, max(least, len(body) // BYTES_PER_TOKEN), droppable)


def refuses_what_does_not_fit(server: str) -> bool:
    """Whether a server behind OpenAI's protocol certainly makes an error of a request that does not fit.

    Args:
        server: Its product, as ``LiveModel`` has it.
    """
    return server.lower().startswith(_REFUSING)


def refuses_to_cut(server: str) -> bool:
    """Whether a server certainly knows ``truncate: false``.

    Args:
        server: Product and version: ``ollama 0.13.1``.
    """
    found = re.search(r"(\d+)\.(\d+)\.(\d+)", server)
    return bool(found) and tuple(map(int, found.groups())) >= REFUSES_SINCE if found else False


def cut(size: Size, read: int | None, context: int | None, certain: bool) -> str:
    """Why a request counts as cut, in words that hold the number needed; empty where it was read whole.

    Args:
        size: Of the request.
        read: Tokens that the server counted of it.
        context: Its context; None where it is not known.
        certain: Whether the server certainly makes an error of what it would have to cut.
    """
    reason = _reason(size, read, context, certain)
    if not reason:
        return ""
    has = f"the context is {context} tokens" if context else "the context is not known"
    return f"{has}, the request needs about {size.estimate} (an estimate from its size) and the answer more: {reason}"


def _reason(size: Size, read: int | None, context: int | None, certain: bool) -> str:
    if not read:
        return "the server does not tell how much of it the model has read"
    if read < size.least:
        return (
            f"the model read {read} tokens, fewer than its {size.least} words; either it was cut, or this server does"
            " not count what it has cached, as the first releases of Ollama 0.30 (then a newer one mends it)"
        )
    if context is None:
        return "" if certain else "this server may cut a request without a word; num_ctx would exclude that"
    whole = read >= context - 1
    if whole or (abs(read - context // 2 - _KEPT) <= _NEAR and size.estimate > _PLAUSIBLE * context):
        how = "the whole context" if whole else "half of the context, as where the front of a request is cut away"
        return f"the model read {read} tokens, {how}"
    if certain or read + size.droppable <= context:
        return ""
    return f"the model read {read} tokens, and a message of up to {size.droppable} may have been left out before it"
