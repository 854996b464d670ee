"""One recorded request and response, byte for byte, and the JSON-lines file that holds them."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from lab.errors import InputError
from lab.gateway.answer_message import message_of
from lab.records import Record, digest

Redact = Callable[[bytes], bytes]
"""Takes secrets out of what is recorded; gives the same bytes where there are none."""


class RequestClass(StrEnum):
    """What a request is for."""

    FOREGROUND = "foreground"
    REVIEW = "review"
    COMPRESSION = "compression"
    TITLE = "title"
    DELEGATE = "delegate"
    AUXILIARY = "auxiliary"
    PROBE = "probe"
    UNPARSABLE = "unparsable"


class Body(Record):
    """Bytes kept so that they come back unchanged: as text where they are UTF-8, as base64 otherwise.

    Attributes:
        text: The bytes decoded as UTF-8; None where they are not UTF-8.
        base64: The bytes in base64; None where ``text`` is given.
        sha256: Digest of the bytes as they were on the wire.
        kept_sha256: Digest of what is kept, where secrets were taken out of it; empty otherwise.
    """

    text: str | None = None
    base64: str | None = None
    sha256: str
    kept_sha256: str = ""

    @classmethod
    def of(cls, data: bytes, redact: Redact = bytes) -> Body:
        """Wraps bytes.

        Args:
            data: What was on the wire.
            redact: Takes secrets out.
        """
        kept = redact(data)
        told = {"sha256": digest(data), "kept_sha256": digest(kept) if kept != data else ""}
        try:
            return cls(text=kept.decode("utf-8"), **told)
        except UnicodeDecodeError:
            return cls(base64=base64.b64encode(kept).decode("ascii"), **told)

    @property
    def is_intact(self) -> bool:
        """Whether what is kept is what was recorded."""
        return digest(self.data) == (self.kept_sha256 or self.sha256)

    @property
    def data(self) -> bytes:
        """The bytes as they were on the wire, but for secrets."""
        if self.text is not None:
            return self.text.encode("utf-8")
        return base64.b64decode(self.base64 or "")


class Usage(Record):
    """What the server of a live model told of one answer.

    Attributes:
        prompt_tokens: Tokens of the request as the server counted them; None where it did not tell.
        completion_tokens: Tokens of the answer; None where it did not tell.
        seconds: Wall seconds from the first byte of the request to the last of the answer, waiting in line left out.
        asked: How often the server was asked, more than once after a 429 or 503.
        told: What the server read back of the options that were sent, as it wrote them; hostile.
    """

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    seconds: float
    asked: int = 1
    told: dict[str, str] = Field(default_factory=dict)


class Exchange(Record):
    """One request and the gateway's answer.

    Attributes:
        seq: Running number within the trial, from 1.
        phase: ``session`` or ``load``.
        method: HTTP method.
        path: Request path with its query.
        kind: What the request was classified as.
        request: Request body.
        status: HTTP status of the answer.
        response: Response body; of a stream, the whole event stream.
        problem: Why the request could not be parsed or the answer could not be sent; empty otherwise.
        failure: Code of why no live model answered, or not to the end; empty where one did or none was asked.
        usage: What a live model's server counted; None where a scripted one answered.
    """

    seq: int
    phase: str
    method: str
    path: str
    kind: RequestClass
    request: Body
    status: int
    response: Body
    problem: str = ""
    failure: str = ""
    usage: Usage | None = None

    @property
    def pointer(self) -> str:
        """How evidence names this exchange within its file."""
        return f"line {self.seq}"


def read_exchanges(path: Path) -> list[Exchange]:
    """Reads ``requests.jsonl``; checks every digest and that no exchange is missing or out of order.

    Raises:
        InputError: A line is damaged or a body does not match its digest; the line is named.
    """
    return list(_iterate(path)) if path.exists() else []


def _iterate(path: Path) -> Iterator[Exchange]:
    with path.open("rb") as stream:
        for number, line in enumerate(stream, 1):
            try:
                exchange = Exchange.model_validate_json(line)
            except ValidationError as error:
                raise InputError(f"{path} line {number} is not a recorded exchange", "run the trial again") from error
            for body in (exchange.request, exchange.response):
                if not body.is_intact:
                    raise InputError(f"{path} line {number} was changed: digest mismatch", "run the trial again")
            if exchange.seq != number:
                raise InputError(f"{path} line {number} is exchange {exchange.seq}", "run the trial again")
            yield exchange


def response_message(exchange: Exchange) -> dict[str, Any]:
    """Returns the assistant message of a recorded answer, streamed or not; ``{}`` where there is none."""
    return message_of(exchange.response.text or "")


def redacted_answer(data: bytes, redact: Redact) -> bytes:
    """An answer without secrets, also such as a stream has spread over several events.

    Where there is one of these, the answer is kept as one message that says the same.
    """
    kept = redact(data)
    whole = json.dumps(message_of(kept.decode("utf-8", "replace")), ensure_ascii=False).encode("utf-8", "replace")
    clean = redact(whole)
    return kept if clean == whole else b'{"choices": [{"message": %b}]}' % clean
