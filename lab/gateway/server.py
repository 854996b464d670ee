"""The gateway's HTTP server: one thread and event loop for a run, one unix socket for a trial.

It lives outside the sandbox, so what it records does not depend on the agent's own logs. Every exchange is on disk
before its answer is sent.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from aiohttp import web

from lab.errors import EnvironmentUnusable
from lab.gateway.classify import classify, review_prompt_index
from lab.gateway.exchange import Body, Exchange, RequestClass
from lab.gateway.policies.base import Policy, Script
from lab.gateway.replies import Reply, encode, error_body, models_body
from lab.gateway.request import ChatRequest, UnparsableRequest, parse_request

MAX_REQUEST_BYTES = 64 << 20
CONTEXT_LENGTH = 131_072
CHAT_PATH = "/v1/chat/completions"
MODELS_PATH = "/v1/models"
AUXILIARY_REPLY = Reply(text="OK")
OUT_OF_SCRIPT_REPLY = Reply(text="Is there anything else?")

T = TypeVar("T")


@dataclass
class TrialGateway:
    """The endpoint of one phase of one trial. Made by ``GatewayHost.open``.

    Attributes:
        socket: Path of the unix socket.
        script: The scenario as the policy sees it.
        policy: Who answers review requests.
        record: File to which exchanges are appended.
        phase: Phase written into each exchange.
        model: Model name offered by ``GET /v1/models``.
        seq: Number of the last exchange.
        died: Set when the endpoint ended although nobody closed it.
        failure: Why recording failed (a full disk); the trial is an error then.
    """

    socket: Path
    script: Script
    policy: Policy
    record: Path
    phase: str
    model: str
    seq: int = 0
    died: threading.Event = field(default_factory=threading.Event)
    failure: BaseException | None = None
    _runner: web.AppRunner | None = None

    async def start(self) -> None:
        """Binds the socket."""
        app = web.Application(client_max_size=MAX_REQUEST_BYTES)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.UnixSite(self._runner, str(self.socket)).start()
        self.socket.chmod(0o666)  # the sandbox user is another one; the directory is private to the trial

    async def stop(self) -> None:
        """Closes the socket and every open connection."""
        if self._runner:
            runner, self._runner = self._runner, None
            await runner.cleanup()

    async def _handle(self, http: web.Request) -> web.StreamResponse:
        try:
            body = await http.read()
        except web.HTTPRequestEntityTooLarge:
            body = b""
            kind, problem = RequestClass.UNPARSABLE, f"the body is larger than {MAX_REQUEST_BYTES} bytes"
            return self._answer(http, body, kind, 413, "application/json", error_body(problem), problem)
        if http.method == "GET" and http.path == MODELS_PATH:
            answer = models_body(self.model, CONTEXT_LENGTH)
            return self._answer(http, body, RequestClass.PROBE, 200, "application/json", answer)
        if http.path != CHAT_PATH or http.method != "POST":
            answer = error_body("this endpoint offers chat completions and the list of models")
            return self._answer(http, body, RequestClass.PROBE, 404, "application/json", answer)
        try:
            request = parse_request(body)
        except UnparsableRequest as error:
            answer = error_body(str(error))
            return self._answer(http, body, RequestClass.UNPARSABLE, 400, "application/json", answer, str(error))
        kind = classify(request, self.script.delivered)
        content_type, answer = encode(self._reply(kind, request), request)
        return self._answer(http, body, kind, 200, content_type, answer)

    def _reply(self, kind: RequestClass, request: ChatRequest) -> Reply:
        if kind is RequestClass.REVIEW:
            prompt = review_prompt_index(request, self.script.delivered)
            return self.policy(request, prompt if prompt is not None else len(request.messages), self.script)
        if kind is RequestClass.FOREGROUND:
            replies = dict(self.script.turns)
            asked = [m.text for m in request.messages if m.role == "user" and m.text in replies]
            return Reply(text=replies[asked[-1]]) if asked else OUT_OF_SCRIPT_REPLY
        return AUXILIARY_REPLY

    def _answer(
        self,
        http: web.Request,
        body: bytes,
        kind: RequestClass,
        status: int,
        content_type: str,
        answer: bytes,
        problem: str = "",
    ) -> web.Response:
        self.seq += 1
        exchange = Exchange(
            seq=self.seq,
            phase=self.phase,
            method=http.method,
            path=http.path_qs,
            kind=kind,
            request=Body.of(body),
            status=status,
            response=Body.of(answer),
            problem=problem,
        )
        try:
            with self.record.open("ab") as stream:
                stream.write(exchange.model_dump_json().encode() + b"\n")
        except OSError as error:
            # An answer without a record would be a step of the trial that nobody can re-check.
            self.failure = error
            self.died.set()
            return web.Response(status=500, body=error_body("the exchange could not be recorded"))
        return web.Response(status=status, body=answer, headers={"content-type": content_type})


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

    def open(
        self, *, socket: Path, script: Script, policy: Policy, record: Path, phase: str, model: str, after: int = 0
    ) -> TrialGateway:
        """Opens the endpoint of one phase of a trial.

        Args:
            socket: Where to bind; the path must be short (a unix socket's limit is 107 bytes).
            script: The scenario.
            policy: Who answers reviews.
            record: File to append exchanges to.
            phase: ``session`` or ``load``.
            model: Model name to offer.
            after: Number of the last exchange already in ``record``.

        Raises:
            EnvironmentUnusable: The socket cannot be bound.
        """
        gateway = TrialGateway(socket, script, policy, record, phase, model, seq=after)
        try:
            self._call(gateway.start())
        except OSError as error:
            raise EnvironmentUnusable(f"cannot bind the gateway's socket {socket}: {error}", "set TMPDIR") from error
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
