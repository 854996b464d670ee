"""What happens when the machine beneath a sandbox fails: the engine goes away, or there is none."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.errors import EnvironmentUnusable, InputError, SandboxKilled, SandboxStartFailed
from lab.isolation.base import Backend, Limits, PreparedEnvironment, SandboxSpec
from lab.isolation.docker import ENGINE_MEND, DockerBackend
from lab.isolation.select import select_backend

pytestmark = pytest.mark.docker
Sandbox = tuple[Backend, PreparedEnvironment]
NOWHERE = PreparedEnvironment("docker", "agent-memory-lab/none:none", "digest")


class Cable:
    """A unix socket that leads to the real engine until it is cut."""

    def __init__(self, path: Path, engine: str) -> None:
        self._engine = engine
        self._ends: list[socket.socket] = []
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        self._listener.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                far.connect(self._engine)
                self._ends += [near, far]
                for source, target in ((near, far), (far, near)):
                    threading.Thread(target=self._copy, args=(source, target), daemon=True).start()

    @staticmethod
    def _copy(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)

    def cut(self) -> None:
        """Ends every connection and takes no more."""
        for end in (self._listener, *self._ends):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


@pytest.fixture
def engine_socket() -> str:
    host = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    if not host.startswith("unix://"):
        pytest.skip("the engine is not on a unix socket")
    return host.removeprefix("unix://")


@pytest.fixture
def no_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")


def test_engine_goes_away_in_the_middle(
    prepared: Callable[[str], Sandbox], engine_socket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend, environment = prepared("docker")
    cable = Cable(tmp_path / "cable.sock", engine_socket)
    trial = uuid.uuid4().hex
    spec = SandboxSpec(
        environment,
        ("/bin/sh", "-c", "echo running; exec sleep 300"),
        limits=Limits(wall_seconds=120),
        labels={"trial": trial},
        workdir="/",
    )
    with monkeypatch.context() as patch:
        patch.setenv("DOCKER_HOST", f"unix://{tmp_path}/cable.sock")
        cutter = threading.Timer(2.0, cable.cut)
        cutter.start()
        with pytest.raises(SandboxKilled, match="Engine went away") as caught:
            backend.run(spec)
    assert caught.value.stdout == b"running\n"
    assert caught.value.mend == ENGINE_MEND
    # The container lives on in the engine, labelled, and is cleaned up once the engine can be asked again.
    assert isinstance(backend, DockerBackend)
    stray = [item.name for item in backend.list_objects() if trial in item.labels.values()]
    assert len(stray) == 1
    report = backend.reap()
    assert stray[0] in report.removed
    assert stray[0] not in report.remaining


@pytest.mark.usefixtures("no_engine")
def test_no_engine_is_told_in_one_line_with_the_mend() -> None:
    backend = DockerBackend()
    status = backend.status()
    assert not status.usable
    assert "no Docker Engine answers at" in status.problem
    assert status.mend == ENGINE_MEND == "apt-get install -y docker.io && (dockerd >/var/log/dockerd.log 2>&1 &)"
    with pytest.raises(SandboxStartFailed) as caught:
        backend.run(SandboxSpec(NOWHERE, ("/bin/true",)))
    assert caught.value.mend == ENGINE_MEND
    for call in (backend.reap, backend.list_objects):
        with pytest.raises(EnvironmentUnusable):
            call()


@pytest.mark.usefixtures("no_engine")
def test_selection_without_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EnvironmentUnusable) as caught:
        select_backend("docker")
    assert caught.value.mend == ENGINE_MEND
    monkeypatch.setattr("lab.isolation.bwrap._SEARCH_PATH", "/nonexistent")
    with pytest.raises(EnvironmentUnusable) as caught:
        select_backend("auto")
    assert ENGINE_MEND in caught.value.mend
    assert "apt-get install -y bubblewrap" in caught.value.mend
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError):
        select_backend("none")


@pytest.mark.bwrap
@pytest.mark.usefixtures("no_engine")
def test_selection_falls_back_to_bubblewrap(prepared: Callable[[str], Sandbox]) -> None:
    prepared("bwrap")
    assert select_backend("auto").name == "bwrap"
