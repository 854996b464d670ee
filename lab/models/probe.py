"""Whether a model calls an offered tool when it is told to, and how fast it answers: asked, not read off a card."""

from __future__ import annotations

from dataclasses import dataclass

from lab.models.failures import Cause, ServerFailed, one_line
from lab.models.identity import Ability, Sampling
from lab.models.server import Call, ModelServer, Question, Short, Tool

WORD = "otter40"
TOOL = Tool(
    "note",
    "Writes a note down.",
    {"type": "object", "properties": {"text": {"type": "string", "description": "The note."}}, "required": ["text"]},
)
PROMPT = f"Call the tool {TOOL.name} with the text {WORD}. Do not answer in words."
MOST_TOKENS = 512
"""Of the answer: a model that thinks first needs some hundred."""
PROBE_SECONDS = 300.0
"""For one answer; the server may have to load the model first."""
_QUOTED = 60


@dataclass(frozen=True)
class Probed:
    """What a probe found.

    Attributes:
        tools: Whether the model called the tool.
        detail: What it did, in one bounded line.
        tokens_per_second: Tokens of its answers by second; None where they could not be measured.
        clock: Whose seconds those are, as ``Short.clock``.
    """

    tools: Ability
    detail: str
    tokens_per_second: float | None = None
    clock: str = ""


def probe_tools(server: ModelServer, model: str, sampling: Sampling, seconds: float = PROBE_SECONDS) -> Probed:
    """Offers a model one tool and tells it to call it.

    It is asked the way an agent asks, where the model decides itself. One that answers in words is asked once more
    where the protocol can force a call. That a model calls only then is said, but does not make it able: no agent that
    the lab measures forces calls.

    Args:
        server: Who answers for the model.
        model: Its name there.
        sampling: What the run will be asked with.
        seconds: Time limit of one answer.

    Returns:
        What it did. A server that could not be asked is ``unknown``, with the cause.
    """
    try:
        free = _asked(server, model, sampling, seconds, forced=False)
    except ServerFailed as error:
        return _not_asked(error)
    tools, detail = _judged(free)
    if tools is Ability.NO and server.can_force:
        try:
            forced, _ = _judged(_asked(server, model, sampling, seconds, forced=True))
        except ServerFailed as error:
            detail += f"; forced (tool_choice required): {one_line(error.said or error.message, 100)}"
        else:
            detail += f"; forced (tool_choice required): {'it calls' if forced is Ability.YES else 'no better'}"
    return Probed(tools, detail, _speed(free), free.clock)


def _asked(server: ModelServer, model: str, sampling: Sampling, seconds: float, *, forced: bool) -> Short:
    return server.ask(Question(model, PROMPT, TOOL, forced, MOST_TOKENS, seconds, sampling))


def _judged(answer: Short) -> tuple[Ability, str]:
    if answer.calls:
        return _judged_call(answer.calls[0])
    if answer.text.strip():
        return Ability.NO, f"answered in words: {one_line(answer.text, _QUOTED)!r}"
    if answer.ended == "length":
        return Ability.UNKNOWN, f"used up {MOST_TOKENS} tokens without a call or a word"
    return Ability.NO, "answered nothing"


def _judged_call(call: Call) -> tuple[Ability, str]:
    if call.name != TOOL.name:
        return Ability.NO, f"called {one_line(call.name, _QUOTED)!r}, which was not offered"
    if call.arguments is None:
        return Ability.NO, f"called {TOOL.name} with arguments that are no JSON object"
    if not isinstance(call.arguments.get("text"), str):
        return Ability.NO, f"called {TOOL.name} without its argument"
    told = "the text" if WORD in call.arguments["text"] else "another text than it was told"
    return Ability.YES, f"called {TOOL.name} with {told}"


def _not_asked(error: ServerFailed) -> Probed:
    # Ollama's "does not support tools", vLLM's "requires --enable-auto-tool-choice", llama.cpp's "requires --jinja".
    refuses_tools = error.cause is Cause.REFUSED and error.status in (400, 422, 500, 501) and "tool" in error.said
    if refuses_tools:
        return Probed(Ability.NO, f"the server refuses tools: {error.said}")
    return Probed(Ability.UNKNOWN, f"{error.cause}: {error.message}")


def _speed(answer: Short) -> float | None:
    if not answer.tokens or answer.tokens < 2 or not answer.seconds or answer.seconds <= 0:
        return None
    return round(answer.tokens / answer.seconds, 2)
