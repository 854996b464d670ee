"""One request to a live model over HTTP and the hearing of its answer; whatever goes wrong has a name."""

from __future__ import annotations

import asyncio
import email.utils
import math
import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Protocol

import aiohttp

from lab.gateway.answers import Failure, FailureCause
from lab.gateway.upstream.limits import Endpoint, Limits
from lab.gateway.upstream.refusals import refusal
from lab.text import printable

_ERROR_BYTES = 64 << 10
"""What is read of the body of an error."""

_FOR_NOW = frozenset({429, 502, 503, 504})
"""Statuses by which a server, or what stands before it, says that it cannot answer now."""


class Unanswered(Exception):
    """A model has not answered, or not to the end.

    Attributes:
        failure: Why.
        status: HTTP status that the server gave; 0 where it gave none that tells an error.
        body: Body of that error.
        again: Whether the same request may be made again.
        wait: Seconds that the server asks to wait before; None where it does not say.
        heard: Whether the model may have read the request, so that it may have to be paid for.
    """

    def __init__(
        self,
        cause: FailureCause,
        detail: str,
        *,
        status: int = 0,
        body: bytes = b"",
        again: bool = False,
        wait: float | None = None,
        heard: bool = True,
    ) -> None:
        super().__init__(detail)
        self.failure = Failure(cause, detail)
        self.status = status
        self.body = body
        self.again = again
        self.wait = wait
        self.heard = heard


@dataclass(frozen=True)
class Call:
    """A request to a live model.

    Attributes:
        endpoint: Whom to ask.
        route: Path behind its address.
        body: Body of the request.
    """

    endpoint: Endpoint
    route: str
    body: bytes


@dataclass
class Told:
    """What a server tells of its answer.

    Attributes:
        prompt_tokens: Tokens of the request; None where it does not tell.
        completion_tokens: Tokens of the answer; None where it does not tell.
        uncounted: Tokens of the request that came from a cache and that its count may leave out.
        values: What it reads back of the options and of itself; hostile.
    """

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    uncounted: int = 0
    values: dict[str, str] = field(default_factory=dict)


class Hearer(Protocol):
    """Hears one answer of a server and makes of it what the agent gets.

    Attributes:
        body: What the agent gets, as far as it is there.
        content_type: Its type.
        told: What the server has told so far.
    """

    body: bytearray
    content_type: str
    told: Told

    async def feed(self, piece: bytes) -> bool:
        """Takes the next bytes of the server's answer; True where the answer is whole, whatever may still come.

        Raises:
            Unanswered: It is no answer.
        """
        ...

    async def end(self) -> None:
        """The server has ended its answer.

        Raises:
            Unanswered: It is not whole.
        """
        ...


async def hear(call: Call, hearer: Hearer, limits: Limits) -> None:
    """Makes a request and hears its answer.

    Every request has a connection of its own: one that stood idle may be dead without either side knowing.

    Raises:
        Unanswered: Whatever went wrong.
    """
    begun = False
    try:
        async with asyncio.timeout(limits.total), _session(call, limits) as session:
            first_byte = asyncio.get_running_loop().time() + limits.first_byte
            response = await _begin(session, call, limits, first_byte)
            begun = True
            async with response:
                if response.status != 200:
                    await _refuse(response, call, limits)
                await _hear(response, hearer, limits, first_byte)
    except Unanswered:
        raise
    except aiohttp.ClientPayloadError as error:
        raise _cut(error) from error
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
        detail = f"{call.endpoint.url} cannot be reached: {_why(error)}"
        raise Unanswered(FailureCause.UNREACHABLE, detail, again=True, heard=False) from error
    except TimeoutError as error:
        detail = f"the answer was not whole after {limits.total:g} s"
        raise Unanswered(FailureCause.TIMEOUT, detail) from error
    except (aiohttp.ClientConnectionError, OSError) as error:
        if begun:
            raise _cut(error) from error
        detail = f"the server closed the connection without an answer: {_why(error)}"
        raise Unanswered(FailureCause.UNREACHABLE, detail, again=True) from error
    except aiohttp.ClientError as error:
        raise Unanswered(FailureCause.GARBAGE, f"the answer is no HTTP: {_why(error)}") from error
    except Exception as error:  # what a hostile server brings about may neither end the gateway nor hang a trial
        raise Unanswered(FailureCause.GARBAGE, f"the answer cannot be read: {_why(error)}") from error


def _session(call: Call, limits: Limits) -> aiohttp.ClientSession:
    headers = {"content-type": "application/json", "accept": "*/*", "user-agent": "agent-memory-lab"}
    if call.endpoint.key:
        headers["authorization"] = f"Bearer {call.endpoint.key}"
    return aiohttp.ClientSession(
        headers=headers,
        timeout=aiohttp.ClientTimeout(total=None, connect=limits.connect),
        connector=aiohttp.TCPConnector(force_close=True),
        cookie_jar=aiohttp.DummyCookieJar(),
    )


async def _begin(
    session: aiohttp.ClientSession, call: Call, limits: Limits, first_byte: float
) -> aiohttp.ClientResponse:
    """Sends a request and waits for the head of its answer. A redirect is not followed: it would take the key along."""
    try:
        async with asyncio.timeout_at(first_byte):
            return await session.post(call.endpoint.url + call.route, data=call.body, allow_redirects=False)
    except aiohttp.ConnectionTimeoutError:
        raise
    except TimeoutError as error:
        raise _silent(limits) from error


async def _hear(response: aiohttp.ClientResponse, hearer: Hearer, limits: Limits, first_byte: float) -> None:
    async with aclosing(_pieces(response, limits, first_byte)) as pieces:
        async for piece in pieces:
            if await hearer.feed(piece):
                return
    await hearer.end()


async def _pieces(response: aiohttp.ClientResponse, limits: Limits, first_byte: float) -> AsyncGenerator[bytes, None]:
    """The bytes of an answer, decompressed, as they come."""
    try:
        async with asyncio.timeout_at(first_byte):
            piece = await response.content.readany()
    except TimeoutError as error:
        raise _silent(limits) from error
    size = 0
    while piece:
        size += len(piece)
        if size > limits.answer_bytes:
            raise Unanswered(FailureCause.TOO_LARGE, f"the answer is larger than {limits.answer_bytes} bytes")
        yield piece
        try:
            async with asyncio.timeout(limits.idle):
                piece = await response.content.readany()
        except TimeoutError as error:
            detail = f"nothing more of the answer within {limits.idle:g} s"
            raise Unanswered(FailureCause.TIMEOUT, detail) from error


def _silent(limits: Limits) -> Unanswered:
    return Unanswered(FailureCause.TIMEOUT, f"no byte of an answer within {limits.first_byte:g} s")


async def _refuse(response: aiohttp.ClientResponse, call: Call, limits: Limits) -> None:
    """Makes an error of an answer that is none."""
    status, body = response.status, b""
    try:
        async with asyncio.timeout(limits.idle):
            while len(body) < _ERROR_BYTES and (piece := await response.content.read(_ERROR_BYTES)):
                body += piece
    except (aiohttp.ClientError, OSError, TimeoutError):
        pass  # the status and what there is tell enough
    if 300 <= status < 400:
        where = printable(response.headers.get("location", "nowhere"))
        detail = f"HTTP {status}: a redirect to {where}; redirects are not followed, give the address itself"
        raise Unanswered(FailureCause.HTTP_ERROR, detail, status=502, heard=False)
    failure, final = refusal(status, body, call.endpoint.model, len(call.body))
    raise Unanswered(
        failure.cause,
        failure.detail,
        status=status if status >= 400 else 502,
        body=body,
        again=status in _FOR_NOW and not final,
        wait=_retry_after(response.headers.get("retry-after", "")),
        heard=False,
    )


def _retry_after(header: str) -> float | None:
    """Seconds of a ``Retry-After`` header, a number or a date (RFC 9110, 10.2.3); None where it is neither."""
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(header).timestamp() - time.time()
        except (ValueError, TypeError, OverflowError):
            return None
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def _cut(error: Exception) -> Unanswered:
    """An answer that broke off; compressed bytes that are none are told apart."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, aiohttp.http_exceptions.ContentEncodingError):
            return Unanswered(FailureCause.GARBAGE, "the answer is not compressed as it says")
        cause = cause.__cause__
    return Unanswered(FailureCause.STREAM_CUT, f"the answer broke off: {_why(error)}")


def _why(error: BaseException) -> str:
    return printable(f"{type(error).__name__}: {error}".rstrip(": "))
