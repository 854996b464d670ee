"""Builds beside the default one, with the real agent: a fork under another name, an older release, an unknown one."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.agents.hermes.capabilities import missing
from lab.agents.hermes.install import describe, ensure
from lab.agents.hermes.local_wheel import ensure_wheel
from lab.agents.hermes.locks import committed_locks
from lab.agents.hermes.patches import find_patches, load_patches
from lab.agents.hermes.recipe import containers_directory, find_recipe
from lab.agents.hermes.sources import SourceKind, parse_source
from lab.agents.hermes.store import Store
from lab.agents.hermes.wheelhouse import ensure_wheelhouse
from lab.cli.build import prepare
from lab.contamination.plan import load_setup
from lab.contamination.preflight import preflight
from lab.isolation.base import Backend, PreparedEnvironment

pytestmark = [pytest.mark.agent, pytest.mark.bwrap]

DEFAULT = load_setup(containers_directory() / "hermes" / "setups" / "default.yaml")
NAMES = tuple(committed_locks(containers_directory() / "hermes"))
Prepared = Callable[[str], tuple[Backend, PreparedEnvironment]]

PATCHED = "# local patch: the reviewer is watched\n"
TEMPLATE = "agent/template_of_no_python.py"
PATCHES = f"""
[[patch]]
name = "watched reviewer"
file = "agent/background_review.py"
contains = '''{PATCHED.strip()}'''
"""
PROJECT = """
[project]
name = "My_Fork"
version = "0.19.1+local.1"
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""
# Without requirements, so that nothing is fetched: it packs all but itself, with the fork's own name.
BACKEND = """
import os, pathlib, zipfile
INFO = "my_fork-0.19.1+local.1.dist-info/"
def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    name = "my_fork-0.19.1+local.1-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w", zipfile.ZIP_DEFLATED) as archive:
        def put(path, data):
            archive.writestr(zipfile.ZipInfo(path), data, zipfile.ZIP_DEFLATED, 1)
        for path in sorted(pathlib.Path(".").rglob("*")):
            if path.is_file() and path.name not in ("backend.py", "pyproject.toml"):
                put(str(path), path.read_bytes())
        put(INFO + "METADATA", pathlib.Path("METADATA").read_bytes())
        put(INFO + "WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        put(INFO + "RECORD", "")
    return name
"""


@pytest.fixture
def wheels(prepared: Prepared, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The wheels of the default build, which pip is left with in place of an index."""
    prepared("bwrap")
    store = Store()
    directory = ensure_wheelhouse(store, find_recipe(parse_source("0.19.0"), store, print).lock, print)
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(directory))
    return directory


@pytest.fixture
def fork(wheels: Path, tmp_path: Path) -> Path:
    """A source folder: the agent under another name, with a local patch and a file that is no Python."""
    folder = tmp_path / "fork"
    (original,) = wheels.glob("hermes_agent-0.19.0-*.whl")
    with zipfile.ZipFile(original) as archive:
        names = [n for n in archive.namelist() if ".dist-info/" not in n and ".data/" not in n]
        archive.extractall(folder, names)
        metadata = archive.read("hermes_agent-0.19.0.dist-info/METADATA").decode()
    metadata = re.sub(r"(?m)^Name: .*$", "Name: my-fork", metadata)
    (folder / "METADATA").write_text(re.sub(r"(?m)^Version: .*$", "Version: 0.19.1+local.1", metadata))
    (folder / "pyproject.toml").write_text(PROJECT)
    (folder / "backend.py").write_text(BACKEND)
    (folder / TEMPLATE).write_text("{{ a template }} of no language\n")
    review = folder / "agent" / "background_review.py"
    review.write_text(review.read_text() + PATCHED)
    return folder


def problems(backend: Backend, environment: PreparedEnvironment) -> list[str]:
    """What the preflight finds wrong with a build."""
    made = describe(environment)
    checks = preflight(backend, environment, DEFAULT, made["version"], product=made["product"])
    assert len(checks) >= 7
    return [f"{c.name}: {c.detail}" for c in checks if not c.ok]


def test_a_local_folder_of_another_name_is_built_and_keeps_its_patch(
    prepared: Prepared, fork: Path, tmp_path: Path
) -> None:
    backend, released = prepared("bwrap")
    before = {p: p.read_bytes() for p in fork.rglob("*") if p.is_file()}
    build = prepare(backend, str(fork), "auto")
    assert {p: p.read_bytes() for p in fork.rglob("*") if p.is_file()} == before
    assert re.fullmatch(r"my-fork-0\.19\.1-local\.1-local-[0-9a-f]{8}", build.name)
    assert (build.product, build.version, build.source) == ("my-fork", "0.19.1+local.1", str(fork))
    assert build.environment.digest != released.digest
    assert build.description["lock_is_committed"] is False
    assert build.description["packages"]["my-fork"] == build.version
    assert "hermes-agent" not in build.description["packages"]
    assert problems(backend, build.environment) == []

    declared = tmp_path / "patches.toml"
    declared.write_text(PATCHES)
    assert [f.ok for f in find_patches(build.environment, load_patches(declared))] == [True]
    assert [f.problem for f in find_patches(released, load_patches(declared))] == ["the text is not in the file"]
    uncompiled = Path(build.environment.reference) / "opt" / "agent" / "uncompiled.txt"
    assert TEMPLATE in uncompiled.read_text()

    # Its wheel is the same contents, and so the same environment; an older name of it stays another build.
    wheel = ensure_wheel(Store(), parse_source(str(fork)), print)
    source = parse_source(str(wheel))
    assert source.kind is SourceKind.WHEEL and source.name != build.name
    assert ensure("bwrap", source).digest == build.environment.digest

    (fork / "agent" / "background_review.py").write_bytes(b"# lost on an update\n")
    assert parse_source(str(fork)).name != build.name


def test_an_older_release_passes_the_preflight(prepared: Prepared) -> None:
    backend, _ = prepared("bwrap")
    environment = ensure("bwrap", parse_source("0.15.2"))
    capabilities = describe(environment)["capabilities"]
    assert not missing(describe(environment))
    assert capabilities["approval_gate"] is False and capabilities["memory_batch"] is False
    assert capabilities["memory_actions"] == ["add", "remove", "replace"]
    assert problems(backend, environment) == []


@pytest.mark.builds
@pytest.mark.parametrize("name", NAMES)
def test_every_build_with_a_committed_lock_passes_the_preflight(prepared: Prepared, name: str) -> None:
    backend, _ = prepared("bwrap")
    product, _, version = name.rpartition("-")
    environment = ensure("bwrap", parse_source(f"{product}=={version}"))
    assert describe(environment)["lock_is_committed"] is True
    assert not missing(describe(environment))
    assert problems(backend, environment) == []


@pytest.mark.builds
def test_a_release_without_a_committed_lock_is_resolved_and_kept(prepared: Prepared) -> None:
    backend, _ = prepared("bwrap")
    source = parse_source("0.14.0")
    environment = ensure("bwrap", source)
    assert describe(environment)["lock_is_committed"] is False
    assert ensure("bwrap", source) == environment
    assert problems(backend, environment) == []
