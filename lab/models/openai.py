"""Any server with OpenAI's chat completions: what it lists, what it tells of a model, short answers."""

from __future__ import annotations

import asyncio
import json
import os
import time
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from pydantic import BaseModel, Field, ValidationError

from lab.errors import InputError
from lab.models.failures import Cause, ServerFailed, mask_key, one_line, said_by
from lab.models.server import TELL_SECONDS, Call, Listed, Question, Short, tokens

KEY_VARIABLE = "OPENAI_API_KEY"
LONGEST_BODY = 16 << 20
"""Bytes of an answer that are read; a longer one is refused."""
HOSTED_WORD, LOCAL_WORD = "max_completion_tokens", "max_tokens"
"""OpenAI's newer models refuse the word that all other servers know."""


def read_key(variable: str = KEY_VARIABLE) -> str:
    """The key that a variable of the environment holds; it is never printed and never kept.

    Args:
        variable: Name of the variable.

    Raises:
        InputError: Another variable than the usual one was named, and it is not set.
    """
    key = os.environ.get(variable, "").strip()
    if not key and variable != KEY_VARIABLE:
        raise InputError(f"the variable {one_line(variable)} holds no key", f"export {one_line(variable)}=…")
    return key


class Meta(BaseModel):
    """What llama.cpp tells of a model in its list."""

    n_ctx: int | None = None
    n_ctx_train: int | None = None
    n_params: int | None = None
    size: int | None = None
    ftype: str = ""


class Entry(BaseModel):
    """A model in ``/v1/models``; the fields beyond ``id`` are those of single products."""

    id: str
    owned_by: str | None = ""
    aliases: list[str] = Field(default_factory=list)
    meta: Meta | None = None
    max_model_len: int | None = None
    context_length: int | None = None
    context_window: int | None = None
    max_context_length: int | None = None

    @property
    def context(self) -> tuple[int | None, str]:
        """The context that the list tells, and the name of its field."""
        told = {
            "meta.n_ctx": self.meta.n_ctx if self.meta else None,
            **{name: getattr(self, name) for name in ("max_model_len", "context_length", "context_window")},
            "max_context_length": self.max_context_length,
        }
        return next(((value, f"/v1/models {name}") for name, value in told.items() if tokens(value)), (None, ""))


class ModelList(BaseModel):
    """The answer of ``/v1/models``."""

    data: list[Entry]


class OpenAIServer:
    """A server with OpenAI's chat completions; see ``ModelServer``.

    Args:
        url: Base address, up to and with its ``/v1``.
        key: Sent as bearer token; empty for none.
        seconds: Time limit for what it tells without a model's answer.
    """

    can_force = True

    def __init__(self, url: str, key: str = "", seconds: float = TELL_SECONDS) -> None:
        self.url = url.rstrip("/")
        self._seconds = seconds
        self._key = key
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}

    @property
    def root(self) -> str:
        """Address of the product's own routes, beside those of OpenAI."""
        return self.url.removesuffix("/v1")

    def entries(self) -> list[Entry]:
        """The models as ``/v1/models`` lists them.

        Raises:
            ServerFailed: No usable answer.
        """
        try:
            return ModelList.model_validate(self._json("GET", f"{self.url}/models", self._seconds)).data
        except ValidationError as error:
            raise self._garbage(f"{self.url}/models lists no models") from error

    def listed(self) -> tuple[Listed, ...]:
        """The models that it has; see ``ModelServer``."""
        return tuple(
            Listed(
                name=one_line(entry.id),
                parameters=short_number(entry.meta.n_params if entry.meta else None),
                quantisation=one_line(entry.meta.ftype, 20) if entry.meta else "",
                size=entry.meta.size if entry.meta else None,
                context=entry.context[0],
            )
            for entry in self.entries()
        )

    def document(self, path: str) -> dict[str, Any] | None:
        """A JSON object at one of the product's own routes; None where there is none."""
        try:
            found = self._json("GET", self.root + path, self._seconds)
        except ServerFailed:
            return None
        return found if isinstance(found, dict) else None

    def ask(self, question: Question) -> Short:
        """Asks a model for one short answer; see ``ModelServer``."""
        sampling = question.sampling
        body = {
            "model": question.model,
            "messages": [{"role": "user", "content": question.prompt}],
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "tools": [question.tool.definition] if question.tool else None,
            "tool_choice": ("required" if question.forced else "auto") if question.tool else None,
            LOCAL_WORD: question.most,
        }
        body = {name: value for name, value in body.items() if value is not None}
        began = time.monotonic()
        try:
            found = self._json("POST", f"{self.url}/chat/completions", question.seconds, body)
        except ServerFailed as error:
            if HOSTED_WORD not in error.said:
                raise
            body[HOSTED_WORD] = body.pop(LOCAL_WORD)
            began = time.monotonic()
            found = self._json("POST", f"{self.url}/chat/completions", question.seconds, body)
        wall = time.monotonic() - began
        try:
            return _short(_Completion.model_validate(found), wall)
        except (ValidationError, IndexError) as error:
            raise self._garbage("its answer is no chat completion") from error

    def _json(self, method: str, url: str, seconds: float, body: dict[str, Any] | None = None) -> Any:
        """Sends a request and reads JSON; the limit holds for the whole exchange. No key comes back with it."""

        async def exchange() -> tuple[int, bytes]:
            limit = aiohttp.ClientTimeout(total=seconds)
            async with (
                aiohttp.ClientSession(timeout=limit) as session,
                # A redirect would carry the key to where the user did not send it.
                session.request(method, url, json=body, headers=self._headers, allow_redirects=False) as response,
            ):
                data = bytearray()
                async for piece in response.content.iter_any():
                    data += piece
                    if len(data) > LONGEST_BODY:
                        raise self._garbage(f"its answer is longer than {LONGEST_BODY >> 20} MiB")
                return response.status, bytes(data)

        try:
            status, data = asyncio.run(exchange())
        except TimeoutError as error:
            raise ServerFailed(
                f"{self._host} did not answer within {seconds:g} s", "look at its log", cause=Cause.TIMEOUT
            ) from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            number = getattr(error, "errno", None) or 0
            reason = os.strerror(number) if number > 0 else mask_key(str(error), self._key)
            raise ServerFailed(
                f"no server answers at {self._host}: {one_line(reason, 120)}",
                "start it, or mend the address after @",
                cause=Cause.UNREACHABLE,
            ) from error
        data = mask_key(data.decode("utf-8", "surrogateescape"), self._key).encode("utf-8", "surrogateescape")
        if status != 200:
            raise self._refused(status, data)
        try:
            return json.loads(data)
        except (ValueError, RecursionError) as error:
            raise self._garbage("its answer is no JSON") from error

    @property
    def _host(self) -> str:
        return one_line(urlsplit(self.url).netloc)

    def _garbage(self, what: str) -> ServerFailed:
        return ServerFailed(
            f"{self._host} is no server of OpenAI's kind: {what}",
            "check that the address ends in /v1 and that a model server answers there",
            cause=Cause.GARBAGE,
        )

    def _refused(self, status: int, data: bytes) -> ServerFailed:
        said = said_by(data)
        if status in (401, 403):
            mend = f"give its key in {KEY_VARIABLE}, or name the variable that holds it with --key-env"
            return ServerFailed(
                f"{self._host} refuses the key: HTTP {status}", mend, cause=Cause.KEY_REFUSED, status=status, said=said
            )
        mend = "check that the address ends in /v1" if status in (301, 302, 307, 308, 404, 405) else "look at its log"
        return ServerFailed(
            f"{self._host} answers HTTP {status}: {said or 'nothing'}",
            mend,
            cause=Cause.REFUSED,
            status=status,
            said=said,
        )


def short_number(count: int | None) -> str:
    """A number of parameters as model cards write it: ``134.5M``."""
    if not count or count < 0:
        return ""
    return f"{count / 1e9:.1f}B" if count >= 1e9 else f"{count / 1e6:.1f}M"


class _Function(BaseModel):
    name: str = ""
    arguments: Any = ""  # a string of JSON by OpenAI, an object of some servers


class _Call(BaseModel):
    function: _Function


class _Message(BaseModel):
    content: str | None = None
    tool_calls: list[_Call] | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None


class _Usage(BaseModel):
    completion_tokens: int | None = None


class _Timings(BaseModel):
    predicted_n: int
    predicted_ms: float


class _Completion(BaseModel):
    choices: list[_Choice]
    usage: _Usage | None = None
    timings: _Timings | None = None


def _short(answer: _Completion, wall: float) -> Short:
    choice = answer.choices[0]
    timed = answer.timings  # llama.cpp's
    counted = answer.usage.completion_tokens if answer.usage else None
    return Short(
        text=choice.message.content or "",
        calls=tuple(Call(c.function.name, _arguments(c.function.arguments)) for c in choice.message.tool_calls or ()),
        ended=one_line(choice.finish_reason or "", 40),
        tokens=timed.predicted_n if timed else counted,
        seconds=timed.predicted_ms / 1000 if timed else wall,
        clock="the server's own clock" if timed else "wall time, reading the prompt included",
    )


def _arguments(given: Any) -> dict[str, Any] | None:
    try:
        found = json.loads(given) if isinstance(given, str) else given
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
