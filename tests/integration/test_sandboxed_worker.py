"""The worker in a sandbox when it answers, and whatever else it may do: each time one clear error and no rest."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lab.errors import EnvironmentUnusable, SystemFailed
from lab.isolation.base import Backend, Limits, PreparedEnvironment
from lab.retrieval.systems import sandboxed
from lab.retrieval.systems.sandboxed import SandboxedWorker, SystemRefused, WorkerProgram

pytestmark = [pytest.mark.agent, pytest.mark.bwrap]

CONNECT = """
import json, os, socket, sys, time
line = socket.socket(socket.AF_UNIX)
line.connect(sys.argv[1])
stream = line.makefile("rwb")
def tell(answer):
    stream.write(json.dumps(answer).encode() + b"\\n"); stream.flush()
def asked():
    request = stream.readline()
    return json.loads(request) if request else sys.exit(0)
"""
ECHO = CONNECT + "while True: tell(asked())"

Start = Callable[..., SandboxedWorker]


@pytest.fixture
def start(prepared: Callable[[str], tuple[Backend, PreparedEnvironment]]) -> Iterator[Start]:
    backend, environment = prepared("bwrap")
    started: list[SandboxedWorker] = []

    def begin(source: str, **limits: float) -> SandboxedWorker:
        program = WorkerProgram("planted", backend, environment, "/opt/agent/bin/python3", source.encode())
        bounds = dataclasses.replace(Limits(memory_bytes=128 << 20, wall_seconds=60), **limits)  # type: ignore[arg-type]
        started.append(SandboxedWorker(dataclasses.replace(program, limits=bounds)))
        return started[-1]

    yield begin
    for one in started:
        one.close()
        assert not one.alive and not one._root.exists()


def test_it_answers_request_by_request(start: Start) -> None:
    worker = start(ECHO)
    assert worker.alive
    text = "Ωmega \udcff\x00\n" * 5_000
    assert worker.ask("one", text=text) == {"op": "one", "text": text}
    assert worker.ask("two", number=2)["number"] == 2
    worker.close()
    worker.close()
    assert not worker.alive
    with pytest.raises(SystemFailed, match="not running"):
        worker.ask("three")


def test_it_gets_files_and_follows_no_link(start: Start, tmp_path: Path) -> None:
    source = CONNECT + (
        "os.symlink('/home/agent/elsewhere', '/home/agent/facts.db')\n"
        "open('/home/agent/facts.db-wal', 'w')\n"
        "tell(asked())\n"
        "tell({'id': asked()['id'], 'read': open('/home/agent/facts.db').read(), 'home': os.listdir('/home/agent')})\n"
        "asked()"
    )
    worker = start(source)
    worker.ask("linked")
    given = tmp_path / "given.db"
    given.write_text("rows")
    assert worker.put(given, "facts.db", "facts") == "/home/agent/facts.db"
    # What the file before it left is gone, too.
    assert worker.ask("read") == {"read": "rows", "home": ["facts.db"]}


def test_it_has_no_network(start: Start) -> None:
    source = CONNECT + (
        "request = asked()\n"
        "try: socket.create_connection(('127.0.0.1', 9), 1); told = 'connected'\n"
        "except OSError as error: told = type(error).__name__\n"
        "tell({'id': request['id'], 'told': told, 'interfaces': [name for _, name in socket.if_nameindex()]})\n"
        "asked()"
    )
    assert start(source).ask("network") == {"told": "ConnectionRefusedError", "interfaces": ["lo"]}


@pytest.mark.parametrize(
    ("does", "told"),
    [
        (
            "asked(); sys.stderr.write('first\\n\\x1b[31mlast words\\n'); sys.exit(3)",
            r"it ended \(exit code 3: last words\)",
        ),
        ("asked(); os.kill(os.getpid(), 9) if os.fork() else time.sleep(60)", "it ended|no answer"),
        ("asked(); stream.write(b'not json\\n'); stream.flush(); time.sleep(60)", "cannot be read"),
        ("asked(); tell([1]); time.sleep(60)", "cannot be read"),
        ("asked(); stream.write(b'[' * 100_000 + b'\\n'); stream.flush(); time.sleep(60)", "cannot be read"),
        ("asked(); tell({'id': 2}); time.sleep(60)", "cannot be read"),
        ("tell({'id': 0, 'early': 1}); time.sleep(60)", "cannot be read"),
        ("tell({'id': asked()['id']}); time.sleep(0.3); tell({'id': 1}); time.sleep(60)", None),
        ("asked(); stream.write(b'x' * (1 << 21)); stream.flush(); time.sleep(60)", "longer than 1048576 bytes"),
        ("asked(); time.sleep(60)", "no answer within 2 s"),
        ("asked(); [print('x' * 1000) for _ in range(10 ** 6)]", "output"),
        ("asked(); kept = [bytearray(1 << 20) for _ in range(10_000)]", "memory"),
    ],
    ids=[
        *("exit", "killed", "garbage", "no object", "deep", "wrong id", "early", "two", "too long", "hangs", "floods"),
        "memory",
    ],
)
def test_whatever_else_it_does_ends_it(
    start: Start, monkeypatch: pytest.MonkeyPatch, does: str, told: str | None
) -> None:
    monkeypatch.setattr(sandboxed, "ANSWER_BYTES", 1 << 20)
    worker = start(CONNECT + does)
    if told is None:  # the second answer to one question is seen with the next question
        worker.ask("search", seconds=2)
        told = "cannot be read"
    with pytest.raises(SystemFailed, match=told) as caught:
        worker.ask("search", seconds=2)
    assert "\x1b" not in caught.value.message and "\n" not in caught.value.message
    assert not worker.alive and not worker._thread.is_alive() and not worker._root.exists()
    with pytest.raises(SystemFailed, match="not running"):
        worker.ask("search")


def test_an_exception_inside_is_told_and_it_goes_on(start: Start) -> None:
    source = CONNECT + "while True: r = asked(); tell({'id': r['id'], **r['say']})"
    worker = start(source)
    with pytest.raises(SystemRefused, match="planted: OperationalError: no such table") as caught:
        worker.ask("x", say={"error": "OperationalError", "text": "no such\x1b[2J table"})
    assert caught.value.kind == "OperationalError"
    assert worker.ask("x", say={"well": True}) == {"well": True}


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("import sys; sys.exit('no such module')", "did not start.*no such module"),
        ("import time; time.sleep(60)", "did not start"),
    ],
)
def test_one_that_does_not_come_up_is_an_unusable_environment(
    start: Start, monkeypatch: pytest.MonkeyPatch, source: str, told: str
) -> None:
    monkeypatch.setattr(sandboxed, "START_SECONDS", 2.0)
    begin = time.monotonic()
    with pytest.raises(EnvironmentUnusable, match=told):
        start(source)
    assert time.monotonic() - begin < 20


def test_a_missing_environment_names_the_mend(
    start: Start, prepared: Callable[[str], tuple[Backend, PreparedEnvironment]], tmp_path: Path
) -> None:
    backend, environment = prepared("bwrap")
    gone = dataclasses.replace(environment, reference=str(tmp_path / "gone"))
    with pytest.raises(EnvironmentUnusable) as caught:
        SandboxedWorker(WorkerProgram("planted", backend, gone, "/opt/agent/bin/python3", ECHO.encode()))
    assert "lab build" in caught.value.mend


def test_requests_are_json(start: Start) -> None:
    worker = start(ECHO)
    with pytest.raises(TypeError):
        worker.ask("x", thing=object())
    assert json.dumps(worker.ask("x")) == '{"op": "x"}'
