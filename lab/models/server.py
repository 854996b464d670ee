"""What the lab asks of any model server before a run: what it has, what it tells of a model, one small answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from lab.models.identity import Sampling

TELL_SECONDS = 60.0
"""Time limit for what a server tells without a model's answer."""
_LONGEST_CONTEXT = 1 << 31


def tokens(value: object) -> int | None:
    """A number of tokens that a server tells; None for what is none."""
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 < value < _LONGEST_CONTEXT else None


@dataclass(frozen=True)
class Listed:
    """A model in a server's list.

    Attributes:
        name: As the server writes it; hostile.
        digest: Where it tells one.
        parameters: ``8.2B``, …
        quantisation: ``Q4_K_M``, …
        size: Bytes; None where it is not told.
        context: Tokens, where the list tells them.
    """

    name: str
    digest: str = ""
    parameters: str = ""
    quantisation: str = ""
    size: int | None = None
    context: int | None = None


@dataclass(frozen=True)
class Told:
    """What a server tells of one of its models; all text is one bounded line.

    Attributes:
        server: Product and version.
        digest: See ``LiveModel``, as are the next three.
        quantisation: As it is told.
        parameters: As they are told.
        template_sha256: Of the chat template.
        context: Tokens that a request and its answer may have together; None where it is not told.
        context_source: Where that number comes from.
        maximum: Longest context that the model was made for; None where it is not told.
        capabilities: What the server says that the model can do; empty where it does not say.
        notes: What a reader must know.
    """

    server: str = ""
    digest: str = ""
    quantisation: str = ""
    parameters: str = ""
    template_sha256: str = ""
    context: int | None = None
    context_source: str = ""
    maximum: int | None = None
    capabilities: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tool:
    """A tool that is offered.

    Attributes:
        name: Its name.
        description: What it is for.
        parameters: JSON Schema of its arguments.
    """

    name: str
    description: str
    parameters: dict[str, Any]  # any JSON

    @property
    def definition(self) -> dict[str, Any]:
        """The form in which OpenAI and Ollama take it."""
        function = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": function}


@dataclass(frozen=True)
class Call:
    """A tool call of a model.

    Attributes:
        name: Of the tool that it called; hostile.
        arguments: None where they are no JSON object.
    """

    name: str
    arguments: dict[str, Any] | None  # any JSON


@dataclass(frozen=True)
class Short:
    """One short answer of a model.

    Attributes:
        text: What it said beside its calls; hostile.
        calls: What it called.
        ended: Why it ended, in the server's word: ``stop``, ``length``, ``tool_calls``.
        tokens: Tokens of the answer as the server counted them; None where it did not tell.
        seconds: Seconds that those tokens took.
        clock: Whose seconds they are: ``the server's own clock``, or ``wall time``, which holds the prompt, too.
    """

    text: str
    calls: tuple[Call, ...] = ()
    ended: str = ""
    tokens: int | None = None
    seconds: float | None = None
    clock: str = ""


@dataclass(frozen=True)
class Question:
    """What is asked in one short exchange.

    Attributes:
        model: Name on the server.
        prompt: What the user says.
        tool: Offered, if any.
        forced: Whether the server is told to force a call (``tool_choice: required``); Ollama has no such word.
        most: Most tokens of the answer.
        seconds: Time limit of the whole exchange.
        sampling: What the run will be asked with; the context that it names decides how a model is loaded.
    """

    model: str
    prompt: str
    tool: Tool | None = None
    forced: bool = False
    most: int = 256
    seconds: float = 300.0
    sampling: Sampling = field(default_factory=Sampling)


class ModelServer(Protocol):
    """A server of models. Every method raises ``ServerFailed`` where no usable answer comes."""

    @property
    def url(self) -> str:
        """Address without credentials."""
        ...

    @property
    def can_force(self) -> bool:
        """Whether the protocol has a word to force a tool call."""
        ...

    def listed(self) -> tuple[Listed, ...]:
        """The models that it has."""
        ...

    def ask(self, question: Question) -> Short:
        """Asks a model for one short answer."""
        ...
