"""The gateway's HTTP server: one thread and event loop for a run, one unix socket for a trial.

It lives outside the sandbox, so what it records does not depend on the agent's own logs. Every exchange is on disk
before the end of its answer is sent.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import threading
from collections.abc import Collection, Coroutine
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from aiohttp import web

from lab.errors import EnvironmentUnusable
from lab.gateway.ahead import JSON, SentAhead
from lab.gateway.answers import Answer, Answers, Asked, Failure, FailureCause
from lab.gateway.classify import classify
from lab.gateway.exchange import Body, Exchange, Redact, RequestClass, redacted_answer
from lab.gateway.replies import error_body, models_body
from lab.gateway.request import UnparsableRequest, parse_request

MAX_REQUEST_BYTES = 64 << 20
MAX_RECORDED_BYTES = 512 << 20
"""Requests of one trial together: what a trial may make the lab write."""

CONTEXT_LENGTH = 131_072
CHAT_PATH = "/v1/chat/completions"
MODELS_PATH = "/v1/models"

_HEARD_OUT_SECONDS = 2.0
"""How long an answer that is under way may still take when its endpoint is closed."""

T = TypeVar("T")


class RecordingLimit(Exception):
    """A trial sent more than may be recorded."""


class _Complaints(logging.Handler):
    """Takes what the HTTP library logs: a request so broken that no handler saw it must still be recorded.

    All levels, because bytes that are no HTTP at all are logged as mere debugging.
    """

    def __init__(self, gateway: TrialGateway) -> None:
        super().__init__(logging.DEBUG)
        self._gateway = gateway

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        problem = f"{record.getMessage()}: {type(error).__name__ if error else 'no cause given'}"
        self._gateway.record_broken(problem)


@dataclass
class TrialGateway:
    """The endpoint of one phase of one trial. Made by ``GatewayHost.open``.

    Attributes:
        socket: Path of the unix socket.
        answers: Who answers the agent.
        delivered: Texts of the user turns that the lab delivers; by them requests are classified.
        record: File to which exchanges are appended.
        phase: Phase written into each exchange.
        model: Model name offered by ``GET /v1/models``.
        context_length: Context offered there, in tokens.
        seq: Number of the last exchange.
        recorded: Bytes of the requests so far.
        died: Set when the endpoint ended although nobody closed it.
        failure: Why recording failed (a full disk, too much); the trial cannot be a result then.
        unanswered: Why no live model answered; the trial cannot be a result then.
        redact: Takes secrets out of what is recorded; the agent gets every byte.
    """

    socket: Path
    answers: Answers
    delivered: Collection[str]
    record: Path
    phase: str
    model: str
    context_length: int = CONTEXT_LENGTH
    seq: int = 0
    recorded: int = 0
    died: threading.Event = field(default_factory=threading.Event)
    failure: Exception | None = None
    unanswered: Failure | None = None
    redact: Redact = bytes
    _runner: web.AppRunner | None = None

    async def start(self) -> None:
        """Binds the socket."""
        app = web.Application(client_max_size=MAX_REQUEST_BYTES)
        app.router.add_route("*", "/{path:.*}", self._handle)
        logger = logging.Logger("gateway", logging.DEBUG)
        logger.addHandler(_Complaints(self))
        # Bodies are recorded as they were on the wire, so nothing may be decompressed on the way.
        self._runner = web.AppRunner(
            app, access_log=None, logger=logger, auto_decompress=False, shutdown_timeout=_HEARD_OUT_SECONDS
        )
        await self._runner.setup()
        await web.SockSite(self._runner, _listen(self.socket)).start()

    async def stop(self) -> None:
        """Closes the socket and every open connection."""
        if self._runner:
            runner, self._runner = self._runner, None
            await runner.cleanup()

    async def _handle(self, http: web.Request) -> web.StreamResponse:
        body = b""
        kind, problem = RequestClass.UNPARSABLE, ""
        stream = SentAhead(http)
        try:
            body = await http.read()
            if http.path == CHAT_PATH and http.method == "POST":
                request = parse_request(body)
                kind = classify(request, self.delivered)
                answer = await self.answers.answer(Asked(kind, request, body, self.phase), stream.send)
                problem = "the agent did not wait for the end of the answer" if stream.left else ""
            else:
                kind, answer = RequestClass.PROBE, self._probed(http)
        except UnparsableRequest as error:
            problem = str(error)
            answer = Answer(error_body(problem), JSON, 400)
        except web.HTTPRequestEntityTooLarge:
            problem = f"the body is larger than {MAX_REQUEST_BYTES} bytes"
            answer = Answer(error_body(problem), JSON, 413)
        except (ConnectionError, asyncio.CancelledError):
            if kind is RequestClass.UNPARSABLE:
                self.record_broken("the connection was cut in the middle of a request")
            else:
                failure = Failure(FailureCause.UNHEARD, "the session ended before the model had answered")
                self._record(http.method, http.path_qs, kind, body, Answer(b"", JSON, 499, failure), "")
                self.unanswered = self.unanswered or failure
            raise
        except Exception as error:
            kind = RequestClass.UNPARSABLE
            problem = f"the gateway cannot answer this request: {type(error).__name__}: {error}"
            answer = Answer(error_body(problem), JSON, 500)
        if not self._record(http.method, http.path_qs, kind, body, answer, problem):
            answer = Answer(error_body("the exchange could not be recorded"), JSON, 500)
        if answer.failure and not self.unanswered:
            self.unanswered = answer.failure
            self.died.set()
        return await stream.end(answer)

    def _probed(self, http: web.Request) -> Answer:
        if http.method == "GET" and http.path == MODELS_PATH:
            return Answer(models_body(self.model, self.context_length), JSON)
        return Answer(error_body("this endpoint offers chat completions and the list of models"), JSON, 404)

    def record_broken(self, problem: str) -> None:
        """Records that something came in which was no whole HTTP request."""
        self._record("", "", RequestClass.UNPARSABLE, b"", Answer(b"", "", 400), problem)

    def _record(self, method: str, path: str, kind: RequestClass, body: bytes, answer: Answer, problem: str) -> bool:
        """Appends an exchange; False where that fails, for an answer without a record would be a step unseen."""
        self.recorded += len(body)
        exchange = Exchange(
            seq=self.seq + 1,
            phase=self.phase,
            method=method,
            path=self.redact(path.encode("utf-8", "replace")).decode(),
            kind=kind,
            request=Body.of(body, self.redact),
            status=answer.status,
            response=Body.of(answer.body, partial(redacted_answer, redact=self.redact)),
            problem=self.redact(problem.encode("utf-8", "replace")).decode(),
            failure=answer.failure.cause.value if answer.failure else "",
            usage=answer.usage,
        )
        try:
            if self.recorded > MAX_RECORDED_BYTES:
                raise RecordingLimit(f"the trial sent more than {MAX_RECORDED_BYTES >> 20} MiB of requests")
            with self.record.open("ab") as stream:
                stream.write(exchange.model_dump_json().encode() + b"\n")
        except (OSError, RecordingLimit) as error:
            self.failure = self.failure or error
            self.died.set()
            return False
        self.seq += 1
        return True


def _listen(path: Path) -> socket.socket:
    """Binds a unix socket; by way of its directory, because the kernel takes no more than 107 bytes of path."""
    directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(f"/proc/self/fd/{directory}/{path.name}")
        path.chmod(0o666)  # the sandbox user is another one; the directory is private to the trial
    except OSError:
        listener.close()
        raise
    finally:
        os.close(directory)
    return listener


class GatewayHost:
    """Runs the event loop of all gateways of a run in one thread. Use as a context manager."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="gateway", daemon=True)
        self._gateways: dict[int, TrialGateway] = {}

    def __enter__(self) -> GatewayHost:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for gateway in list(self._gateways.values()):
            self.close(gateway)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(timeout=5)
        if not self._thread.is_alive():  # a loop that still runs cannot be closed
            self._loop.close()

    def open(
        self,
        *,
        socket: Path,
        answers: Answers,
        delivered: Collection[str],
        record: Path,
        phase: str,
        model: str,
        context_length: int = CONTEXT_LENGTH,
        after: int = 0,
        redact: Redact = bytes,
    ) -> TrialGateway:
        """Opens the endpoint of one phase of a trial.

        Args:
            socket: Where to bind.
            answers: Who answers the agent.
            delivered: Texts of the user turns that the lab delivers.
            record: File to append exchanges to.
            phase: ``session`` or ``load``.
            model: Model name to offer.
            context_length: Context to offer, in tokens.
            after: Number of the last exchange already in ``record``.
            redact: Takes secrets out of what is recorded.

        Raises:
            EnvironmentUnusable: The socket cannot be bound.
        """
        gateway = TrialGateway(
            socket, answers, delivered, record, phase, model, context_length, seq=after, redact=redact
        )
        try:
            self._call(gateway.start())
        except OSError as error:
            raise EnvironmentUnusable(
                f"cannot bind the gateway's socket {socket}: {error}", "see lab doctor"
            ) from error
        self._gateways[id(gateway)] = gateway
        return gateway

    def close(self, gateway: TrialGateway) -> None:
        """Closes one endpoint; safe to call twice."""
        if self._gateways.pop(id(gateway), None):
            self._call(gateway.stop())

    def kill(self, gateway: TrialGateway) -> None:
        """Ends an endpoint as a crash would: connections are cut and its owner is told by ``died``."""
        gateway.died.set()
        self.close(gateway)

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        future: Future[T] = asyncio.run_coroutine_threadsafe(work, self._loop)
        return future.result(timeout=30)
