"""The gateway over a real unix socket: what it records is what was on the wire."""

from __future__ import annotations

import http.client
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.errors import EnvironmentUnusable
from lab.gateway.answers import FailureCause, ScriptedAnswers
from lab.gateway.classify import REVIEW_CLOSING, REVIEW_OPENINGS
from lab.gateway.exchange import RequestClass, read_exchanges
from lab.gateway.policies.base import Script, ScriptTurn
from lab.gateway.policies.scripted import policy_named
from lab.gateway.replies import ToolCall
from lab.gateway.server import MAX_REQUEST_BYTES, GatewayHost, TrialGateway
from lab.gateway.upstream.lane import Lane
from lab.gateway.upstream.limits import Endpoint, Limits
from lab.gateway.upstream.live import LiveAnswers, Scope
from lab.gateway.upstream.openai import OpenAIUpstream
from tests.doubles.hostile_model import GOOD, STREAM_HEAD, Behaviour, Wire, hostile_model, streams

TURN = "Read: do X with otter40"
SCRIPT = Script(
    turns=(ScriptTurn(TURN, "A summary."),),
    pieces=("do X with otter40",),
    stored="X with otter40.",
    compose=lambda wording, _: [ToolCall("memory", {"action": "add", "content": wording})],
)
REVIEW = f"{REVIEW_OPENINGS[0]}\n\n{REVIEW_CLOSING}."


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=20)
        self._path = str(path)

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(20)
        self.sock.connect(self._path)


@pytest.fixture
def host() -> Iterator[GatewayHost]:
    with GatewayHost() as running:
        yield running


def open_gateway(host: GatewayHost, folder: Path, name: str = "gw") -> TrialGateway:
    return host.open(
        socket=folder / f"{name}.sock",
        answers=ScriptedAnswers(policy_named("always-write"), SCRIPT),
        delivered=SCRIPT.delivered,
        record=folder / f"{name}.jsonl",
        phase="session",
        model="scripted",
    )


def ask(gateway: TrialGateway, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
    connection = UnixConnection(gateway.socket)
    connection.request(method, path, body)
    response = connection.getresponse()
    return response.status, response.read()


def chat(*messages: tuple[str, str], stream: bool = True) -> bytes:
    tools = [{"type": "function", "function": {"name": "memory"}}]
    listed = [{"role": role, "content": text} for role, text in messages]
    return json.dumps({"model": "scripted", "stream": stream, "messages": listed, "tools": tools}).encode()


@pytest.mark.parametrize("stream", [True, False])
def test_foreground_and_review_are_answered_and_recorded(host: GatewayHost, tmp_path: Path, stream: bool) -> None:
    gateway = open_gateway(host, tmp_path)
    foreground = chat(("user", TURN), stream=stream)
    review = chat(("user", TURN), ("assistant", "A summary."), ("user", REVIEW), stream=stream)
    answers = [ask(gateway, "POST", "/v1/chat/completions", body) for body in (foreground, review)]
    assert [status for status, _ in answers] == [200, 200]
    assert b"A summary." in answers[0][1]
    assert b"X with otter40." in answers[1][1]
    assert answers[1][1].startswith(b"data: ") is stream
    first, second = read_exchanges(gateway.record)
    assert (first.kind, second.kind) == (RequestClass.FOREGROUND, RequestClass.REVIEW)
    assert (first.request.data, second.request.data) == (foreground, review)
    assert (first.response.data, second.response.data) == tuple(body for _, body in answers)


def test_models_are_listed_and_anything_else_is_not_found(host: GatewayHost, tmp_path: Path) -> None:
    gateway = open_gateway(host, tmp_path)
    status, body = ask(gateway, "GET", "/v1/models")
    assert status == 200 and json.loads(body)["data"][0]["id"] == "scripted"
    assert ask(gateway, "POST", "/api/show", b"{}")[0] == 404
    assert {e.kind for e in read_exchanges(gateway.record)} == {RequestClass.PROBE}


@pytest.mark.parametrize("body", [b"{", b"\xff\xfe\x00", b'{"messages": [{}]}'])
def test_what_cannot_be_parsed_is_recorded_and_refused(host: GatewayHost, tmp_path: Path, body: bytes) -> None:
    gateway = open_gateway(host, tmp_path)
    status, answer = ask(gateway, "POST", "/v1/chat/completions", body)
    assert status == 400 and "error" in json.loads(answer)
    (exchange,) = read_exchanges(gateway.record)
    assert exchange.kind is RequestClass.UNPARSABLE and exchange.problem
    assert exchange.request.data == body


def test_a_request_of_megabytes_is_taken_and_a_larger_one_refused(host: GatewayHost, tmp_path: Path) -> None:
    gateway = open_gateway(host, tmp_path)
    assert ask(gateway, "POST", "/v1/chat/completions", chat(("user", "x" * (6 << 20))))[0] == 200
    assert ask(gateway, "POST", "/v1/chat/completions", b" " * (MAX_REQUEST_BYTES + 1))[0] == 413
    assert [e.kind for e in read_exchanges(gateway.record)] == [RequestClass.FOREGROUND, RequestClass.UNPARSABLE]


def test_trials_do_not_mix(host: GatewayHost, tmp_path: Path) -> None:
    one, two = open_gateway(host, tmp_path, "one"), open_gateway(host, tmp_path, "two")
    for _ in range(3):
        ask(one, "GET", "/v1/models")
    ask(two, "GET", "/v1/models")
    assert [e.seq for e in read_exchanges(one.record)] == [1, 2, 3]
    assert [e.seq for e in read_exchanges(two.record)] == [1]


def test_a_killed_gateway_tells_its_owner(host: GatewayHost, tmp_path: Path) -> None:
    gateway, other = open_gateway(host, tmp_path), open_gateway(host, tmp_path, "other")
    host.kill(gateway)
    assert gateway.died.is_set() and not other.died.is_set()
    with pytest.raises(OSError):
        ask(gateway, "GET", "/v1/models")
    assert ask(other, "GET", "/v1/models")[0] == 200


def test_an_answer_without_a_record_is_not_given(host: GatewayHost, tmp_path: Path) -> None:
    gateway = open_gateway(host, tmp_path)
    gateway.record.mkdir()
    assert ask(gateway, "GET", "/v1/models")[0] == 500
    assert isinstance(gateway.failure, IsADirectoryError) and gateway.died.is_set()


def test_a_socket_that_cannot_be_bound_is_named(host: GatewayHost, tmp_path: Path) -> None:
    with pytest.raises(EnvironmentUnusable, match="cannot bind the gateway's socket"):
        open_gateway(host, tmp_path / ("x" * 120))


@pytest.mark.parametrize(
    "raw",
    [
        b"NOT HTTP AT ALL\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"x" * 100_000 + b"\r\n\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nonly this",
    ],
    ids=["no-http", "bad-chunk", "giant-header", "cut-body"],
)
def test_what_is_no_whole_request_is_recorded_too(host: GatewayHost, tmp_path: Path, raw: bytes) -> None:
    gateway = open_gateway(host, tmp_path)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(gateway.socket))
        connection.sendall(raw)
        connection.shutdown(socket.SHUT_WR)
        connection.settimeout(10)
        while connection.recv(65536):
            pass
    host.close(gateway)
    assert {e.kind for e in read_exchanges(gateway.record)} == {RequestClass.UNPARSABLE}


@pytest.mark.parametrize(
    "body",
    [
        b'{"messages": [], "n": ' + b"9" * 5000 + b"}",
        b'{"messages": [], "tools": 5}',
        b"\x1f\x8b\x08\x00rubbish",
    ],
    ids=["giant-integer", "tools-no-list", "gzip"],
)
def test_odd_bodies_are_recorded_as_they_came(host: GatewayHost, tmp_path: Path, body: bytes) -> None:
    gateway = open_gateway(host, tmp_path)
    assert ask(gateway, "POST", "/v1/chat/completions", body)[0] == 400
    (exchange,) = read_exchanges(gateway.record)
    assert (exchange.kind, exchange.request.data) == (RequestClass.UNPARSABLE, body)


def test_lone_surrogates_are_answered(host: GatewayHost, tmp_path: Path) -> None:
    gateway = open_gateway(host, tmp_path)
    body = chat(("user", TURN)).replace(b'"scripted"', b'"\\ud800"')
    assert ask(gateway, "POST", "/v1/chat/completions", body)[0] == 200
    assert read_exchanges(gateway.record)[0].kind is RequestClass.FOREGROUND


def test_a_trial_cannot_make_the_lab_write_without_end(
    host: GatewayHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lab.gateway.server.MAX_RECORDED_BYTES", 3000)
    gateway = open_gateway(host, tmp_path)
    answers = [ask(gateway, "POST", "/v1/chat/completions", chat(("user", "x" * 1000)))[0] for _ in range(3)]
    assert answers == [200, 200, 500]
    assert gateway.died.is_set() and len(read_exchanges(gateway.record)) == 2


def open_live(host: GatewayHost, folder: Path, url: str, limits: Limits | None = None) -> TrialGateway:
    model = OpenAIUpstream(Endpoint(url, "small"), Lane(limits))
    scripted = ScriptedAnswers(policy_named("never-write"), SCRIPT)
    return host.open(
        socket=folder / "live.sock",
        answers=LiveAnswers(model, scripted, Scope.REVIEW),
        delivered=SCRIPT.delivered,
        record=folder / "live.jsonl",
        phase="session",
        model="lab",
    )


ASKED_REVIEW = chat(("user", TURN), ("assistant", "A summary."), ("user", REVIEW))


def begin(gateway: TrialGateway, body: bytes = ASKED_REVIEW) -> http.client.HTTPResponse:
    connection = UnixConnection(gateway.socket)
    connection.request("POST", "/v1/chat/completions", body)
    return connection.getresponse()


def test_a_live_model_answers_reviews_and_a_script_the_rest(host: GatewayHost, tmp_path: Path) -> None:
    with hostile_model(streams(*GOOD)) as model:
        gateway = open_live(host, tmp_path, model.url)
        assert b"A summary." in ask(gateway, "POST", "/v1/chat/completions", chat(("user", TURN)))[1]
        assert begin(gateway).read() == b"".join(GOOD)
    foreground, review = read_exchanges(gateway.record)
    assert foreground.usage is None and len(model.requests) == 1
    assert review.usage and review.usage.prompt_tokens == 120
    assert (review.response.data, review.failure, gateway.unanswered) == (b"".join(GOOD), "", None)


def test_a_stream_reaches_the_agent_before_it_ends_and_its_end_only_after_it_is_recorded(
    host: GatewayHost, tmp_path: Path
) -> None:
    go_on = threading.Event()

    def slow(wire: Wire) -> None:
        wire.send(STREAM_HEAD)
        for piece in GOOD[:2]:
            wire.chunk(piece)
        assert go_on.wait(10)
        for piece in GOOD[2:]:
            wire.chunk(piece)

    with hostile_model(slow) as model:
        gateway = open_live(host, tmp_path, model.url)
        response = begin(gateway)
        assert response.read(len(GOOD[0])) == GOOD[0]
        assert not gateway.record.exists()
        go_on.set()
        assert response.read() == b"".join(GOOD[1:])
    assert read_exchanges(gateway.record)[0].response.data == b"".join(GOOD)


@pytest.mark.parametrize(
    ("behaviour", "cause"),
    [
        (streams(*GOOD[:2], ended=False), FailureCause.STREAM_CUT),
        (lambda wire: wire.hang(), FailureCause.TIMEOUT),
        (lambda wire: wire.send(b"SSH-2.0\r\n"), FailureCause.GARBAGE),
    ],
    ids=["cut", "silent", "garbage"],
)
def test_a_model_that_does_not_answer_makes_the_trial_an_error(
    host: GatewayHost, tmp_path: Path, behaviour: Behaviour, cause: FailureCause
) -> None:
    with hostile_model(behaviour) as model:
        gateway = open_live(host, tmp_path, model.url, Limits(first_byte=0.3, asks=1))
        try:
            response = begin(gateway)
            assert response.status == 502 or response.read() == b""
        except (http.client.HTTPException, ConnectionError):
            pass  # an answer that broke off breaks off for the agent, too
    assert gateway.died.is_set() and gateway.unanswered and gateway.unanswered.cause is cause
    (exchange,) = read_exchanges(gateway.record)
    assert exchange.failure == cause and exchange.usage and exchange.usage.prompt_tokens is None


def test_an_agent_that_leaves_does_not_stop_the_record_of_what_it_asked(host: GatewayHost, tmp_path: Path) -> None:
    left = threading.Event()

    def slow(wire: Wire) -> None:
        wire.send(STREAM_HEAD)
        wire.chunk(GOOD[0] + GOOD[1])
        assert left.wait(10)
        time.sleep(0.2)
        for piece in GOOD[2:]:
            wire.chunk(piece)

    with hostile_model(slow) as model:
        gateway = open_live(host, tmp_path, model.url)
        connection = UnixConnection(gateway.socket)
        connection.request("POST", "/v1/chat/completions", ASKED_REVIEW)
        connection.getresponse().read(5)
        connection.sock.shutdown(socket.SHUT_RDWR)
        connection.close()
        left.set()
        until = time.monotonic() + 5
        while not gateway.record.exists() and time.monotonic() < until:
            time.sleep(0.05)
    (exchange,) = read_exchanges(gateway.record)
    assert exchange.response.data == b"".join(GOOD) and exchange.usage


def test_a_gateway_is_closed_soon_while_a_model_still_answers(host: GatewayHost, tmp_path: Path) -> None:
    with hostile_model(lambda wire: wire.hang()) as model:
        gateway = open_live(host, tmp_path, model.url)
        connection = UnixConnection(gateway.socket)
        connection.request("POST", "/v1/chat/completions", ASKED_REVIEW)
        until = time.monotonic() + 5
        while not model.requests and time.monotonic() < until:
            time.sleep(0.02)
        since = time.monotonic()
        host.close(gateway)
        assert time.monotonic() - since < 10
    (exchange,) = read_exchanges(gateway.record)
    assert exchange.failure == FailureCause.UNHEARD
    assert gateway.unanswered and gateway.unanswered.cause is FailureCause.UNHEARD
