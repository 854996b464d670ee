"""Peers without their sandbox: locks, the set of packages and its digest, the guard against networks."""

from __future__ import annotations

import importlib.util
import re
import socket
from pathlib import Path
from types import ModuleType

import pytest

from lab.agents.hermes.locks import read_lock
from lab.errors import EnvironmentUnusable
from lab.memories.peers.arms import KINDS
from lab.memories.peers.environment import peer_file, prepared_packages
from lab.records import file_digest

SCRIPT = "../../bin/memorine,sha256={},222"


@pytest.fixture
def worker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("peer_worker", peer_file("worker.py"))
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def installed(cache: Path, version: str = "0.2.0", source: str = "aa", script: str = "bb") -> Path:
    folder = cache / "built" / f"peer-memorine-{file_digest(peer_file('memorine.lock'))[:32]}"
    told = folder / f"memorine-{version}.dist-info"
    told.mkdir(parents=True)
    (told / "METADATA").write_text(f"Metadata-Version: 2.1\nName: memorine\nVersion: {version}\n")
    (told / "RECORD").write_text(f"memorine/__init__.py,sha256={source},9\n{SCRIPT.format(script)}\n")
    return folder


def test_every_peer_has_a_lock_and_an_adapter(worker: ModuleType) -> None:
    assert set(worker.SYSTEMS) == set(KINDS)
    for name in KINDS:
        assert read_lock(peer_file(f"{name}.lock"))
        assert re.fullmatch("[a-z0-9]+", name)


def test_the_digest_is_of_what_the_wheels_brought(tmp_path: Path) -> None:
    for name, changes in {"one": {}, "script": {"script": "cc"}, "source": {"source": "cc"}}.items():
        installed(tmp_path / name, **changes)
    one, script, source = (prepared_packages("memorine", tmp_path / name) for name in ("one", "script", "source"))
    assert one.versions == {"memorine": "0.2.0"}
    assert one.digest == script.digest, "a script names the Python of this machine"
    assert one.digest != source.digest


def test_other_packages_than_the_lock_names_are_refused(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentUnusable, match="are not here"):
        prepared_packages("memorine", tmp_path)
    installed(tmp_path, version="0.2.1")
    with pytest.raises(EnvironmentUnusable, match=r"does not hold the packages of memorine\.lock"):
        prepared_packages("memorine", tmp_path)


def test_the_guard_refuses_networks_and_nothing_else(worker: ModuleType) -> None:
    with socket.socket(socket.AF_UNIX) as local, socket.socket(socket.AF_INET) as remote:
        worker.guard("socket.connect", (local, "/run/x"))
        worker.guard("open", ("/etc/hosts", "r", 0))
        assert worker.ATTEMPTS == []
        for event, arguments in (
            ("socket.connect", (remote, ("192.0.2.1", 443))),
            ("socket.sendto", (remote, ("192.0.2.1", 53))),
            ("socket.getaddrinfo", ("example.org", 443, 0, 0, 0)),
        ):
            with pytest.raises(PermissionError):
                worker.guard(event, arguments)
    assert worker.ATTEMPTS == [
        "socket.connect ('192.0.2.1', 443)",
        "socket.sendto ('192.0.2.1', 53)",
        "socket.getaddrinfo example.org",
    ]


def test_a_stores_digest_is_of_names_and_bytes(worker: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one")
    before = worker.digest_of(tmp_path)
    assert worker.digest_of(tmp_path) == before
    (tmp_path / "a").write_bytes(b"two")
    changed = worker.digest_of(tmp_path)
    (tmp_path / "a").rename(tmp_path / "b")
    assert len({before, changed, worker.digest_of(tmp_path)}) == 3
