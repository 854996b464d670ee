"""An Ollama server: what it has, what it tells of a model, pulls, short answers."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from lab.models.failures import Cause, ServerFailed, one_line
from lab.models.identity import Sampling
from lab.models.ollama_client import (
    client_url,
    full_name,
    listed_digest,
    named_failure,
    ollama_client,
    product,
    server_version,
)
from lab.models.server import TELL_SECONDS, Call, Listed, Question, Short, Told, tokens
from lab.records import digest

STALLED_SECONDS = 600.0
"""Time without a word after which a pull has stalled; while Ollama checks the digest of a large layer it says none."""

Answer = TypeVar("Answer")
Progress = Callable[[str, int, int], None]
"""Status of a pull, bytes of its layer that are there, bytes that it has (0: not told)."""


def sampling_options(sampling: Sampling, most: int | None = None) -> dict[str, float | int]:
    """Ollama's words for the options of sampling; what is not set is left out.

    Args:
        sampling: Options.
        most: Most tokens of the answer, in place of the sampling's.
    """
    told = {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "num_predict": most if most is not None else sampling.max_tokens,
        "num_ctx": sampling.num_ctx,
    }
    return {name: value for name, value in told.items() if value is not None}


class OllamaServer:
    """A server that speaks Ollama's own protocol; see ``ModelServer``.

    Args:
        host: Address; by default that of ``OLLAMA_HOST``, and without it the local one.
        seconds: Time limit for what it tells without a model's answer.

    Raises:
        EnvironmentUnusable: The client is not installed, or the address is none.
    """

    can_force = False

    def __init__(self, host: str | None = None, seconds: float = TELL_SECONDS) -> None:
        self._host = host
        self._seconds = seconds
        self.url = client_url(ollama_client(host))

    def version(self) -> str:
        """Product and version that the server states.

        Raises:
            ServerFailed: It states none.
        """
        return product(self._conversation(self._seconds, server_version))

    def listed(self) -> tuple[Listed, ...]:
        """The models that it has; see ``ModelServer``."""

        async def ask(client: Any) -> tuple[Listed, ...]:
            return tuple(_listed(model) for model in (await client.list()).models)

        return self._conversation(self._seconds, ask)

    def tell(self, model: str) -> Told:
        """What the server tells of a model; ``context`` is what the model's own settings ask for, if anything.

        Raises:
            ServerFailed: There is no such model, or no usable answer.
        """

        async def ask(client: Any) -> Told:
            shown = await client.show(model)
            found = await listed_digest(client, model)
            return _told(shown, found, product(await server_version(client)))

        return self._conversation(self._seconds, ask, model)

    def loaded_context(self, model: str) -> int | None:
        """Context with which the model is loaded now; None where it is not loaded, or the server does not tell.

        Raises:
            ServerFailed: No usable answer.
        """

        async def ask(client: Any) -> int | None:
            name = full_name(model).casefold()
            loaded = (await client.ps()).models
            return next((m.context_length for m in loaded if (m.model or "").casefold() == name), None)

        return tokens(self._conversation(self._seconds, ask))

    def pull(self, model: str, progress: Progress) -> None:
        """Has the server fetch a model. What it had already fetched of it is not fetched again.

        Args:
            model: Name in Ollama's library, or on the server that the name begins with.
            progress: Called with what the server reports; its text is one bounded line.

        Raises:
            ServerFailed: There is no such model, or the pull broke off.
        """
        name = one_line(model)
        again = f"lab models pull {name} goes on where it stopped"
        seen: deque[str] = deque(maxlen=1)

        async def ask(client: Any) -> None:
            events = aiter(await client.pull(model, stream=True))
            while True:
                async with asyncio.timeout(STALLED_SECONDS):
                    event = await anext(events, None)
                if event is None:
                    break
                seen.append(one_line(event.status or "", 80))
                progress(seen[-1], event.completed or 0, event.total or 0)

        try:
            self._conversation(None, ask, model)
        except ServerFailed as error:
            if "file does not exist" in error.said:  # Ollama's word for a name that its library has not
                message, mend = f"there is no model {name} to pull", "look the name up in Ollama's library"
                raise ServerFailed(message, mend, cause=Cause.MISSING) from error
            if not seen:  # it never began
                raise
            message = f"the pull of {name} broke off at {seen[-1]!r}: {error.message}"
            raise ServerFailed(message, again, cause=error.cause, said=error.said) from error
        if "success" not in seen:
            message = f"the pull of {name} ended at {''.join(seen)!r}, before it was done"
            raise ServerFailed(message, again, cause=Cause.UNREACHABLE)

    def ask(self, question: Question) -> Short:
        """Asks a model for one short answer; see ``ModelServer``."""

        async def ask(client: Any) -> Short:
            answer = await client.chat(
                model=question.model,
                messages=[{"role": "user", "content": question.prompt}],
                tools=[question.tool.definition] if question.tool else None,
                options=sampling_options(question.sampling, question.most),
                stream=False,
            )
            return _short(answer)

        return self._conversation(question.seconds, ask, question.model)

    def _conversation(self, seconds: float | None, ask: Callable[[Any], Awaitable[Answer]], model: str = "") -> Answer:
        """Talks to the server; the limit holds for the whole talk, so that a byte now and then does not hold it up."""

        async def limited() -> Answer:
            client = ollama_client(self._host)
            try:
                async with asyncio.timeout(seconds):
                    return await ask(client)
            finally:
                await client.close()

        try:
            return asyncio.run(limited())
        except Exception as error:
            failed = named_failure(error, self.url, model, seconds)
            if failed is None:
                raise
            raise failed from error


def _listed(model: Any) -> Listed:
    details = model.details
    return Listed(
        name=one_line(model.model or ""),
        digest=one_line(model.digest or "", 80),
        parameters=one_line((details and details.parameter_size) or "", 20),
        quantisation=one_line((details and details.quantization_level) or "", 20),
        size=None if model.size is None else int(model.size),
    )


def _told(shown: Any, found: str, server: str) -> Told:
    info = shown.modelinfo or {}
    maximum = info.get(f"{info.get('general.architecture')}.context_length")
    asked = _own_context(shown.parameters or "")
    details = shown.details
    return Told(
        server=server,
        digest=one_line(found, 80),
        quantisation=one_line((details and details.quantization_level) or "", 20),
        parameters=one_line((details and details.parameter_size) or "", 20),
        template_sha256=digest(shown.template.encode("utf-8", "surrogatepass")) if shown.template else "",
        context=asked,
        context_source="num_ctx of the model" if asked else "",
        maximum=tokens(maximum),
        capabilities=tuple(one_line(word, 40) for word in (shown.capabilities or [])[:20]),
        notes=() if found else ("the server lists no digest under this name",),
    )


def _own_context(parameters: str) -> int | None:
    """``num_ctx`` among the settings that a model brings, one a line."""
    for line in parameters.splitlines():
        name, _, value = line.strip().partition(" ")
        if name == "num_ctx" and value.strip().isdecimal() and len(value.strip()) < 12:
            return tokens(int(value))
    return None


def _short(answer: Any) -> Short:
    message = answer.message
    nanoseconds = answer.eval_duration
    return Short(
        text=message.content or "",
        calls=tuple(Call(c.function.name, dict(c.function.arguments)) for c in message.tool_calls or ()),
        ended=one_line(answer.done_reason or "", 40),
        tokens=answer.eval_count,
        seconds=nanoseconds / 1e9 if nanoseconds else None,
        clock="the server's own clock",
    )
