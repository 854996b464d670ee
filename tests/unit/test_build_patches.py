"""Local patch markers: the file is checked at its edge, and the looking itself tells presence from every loss."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from lab.agents.hermes import patches
from lab.agents.hermes.patches import find_patches, load_patches
from lab.agents.hermes.recipe import containers_directory
from lab.errors import EnvironmentUnusable, InputError
from lab.isolation.base import PreparedEnvironment

PROGRAM = (containers_directory() / "hermes" / "inspect" / "patches.py").read_text()
GUARDED = "def review():\n    return guard('é')\n"
DECLARED = """
[[patch]]
name = "guard"
file = "agent/review.py"
contains = "guard('é')"
why = "the reviewer would write unasked"

[[patch]]
name = "no bare write"
file = "agent/review.py"
regex = '^\\s+return guard\\('
absent = "return write("
"""


def declare(folder: Path, text: str) -> Path:
    path = folder / "patches.toml"
    path.write_text(text)
    return path


def look(site: Path, declared: Path) -> dict[str, str]:
    """The program as it runs inside, over a folder in place of the installed packages."""
    argument = patches._argument(load_patches(declared))
    program = PROGRAM.replace("/opt/agent/lib/python3*/site-packages", str(site))
    assert str(site) in program
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program, argument], capture_output=True, check=True)
    answer: dict[str, str] = json.loads(done.stdout)
    return answer


@pytest.fixture
def site(tmp_path: Path) -> Path:
    made = tmp_path / "site-packages"
    (made / "agent").mkdir(parents=True)
    (made / "agent" / "review.py").write_text(GUARDED)
    return made


def test_patches_that_are_there(site: Path, tmp_path: Path) -> None:
    assert look(site, declare(tmp_path, DECLARED)) == {"guard": "", "no bare write": ""}


def test_patches_lost_on_an_update_are_named(site: Path, tmp_path: Path) -> None:
    (site / "agent" / "review.py").write_text("def review():\n    return write('é')\n")
    found = look(site, declare(tmp_path, DECLARED))
    assert "not in the file" in found["guard"]
    assert "matches nowhere" in found["no bare write"] and "must be absent" in found["no bare write"]


def test_a_file_that_is_gone_is_a_loss_even_where_only_absence_is_asked(site: Path, tmp_path: Path) -> None:
    shutil.rmtree(site / "agent")
    declared = declare(tmp_path, DECLARED + '[[patch]]\nname = "a"\nfile = "agent/x.py"\nabsent = "y"\n')
    assert set(look(site, declared).values()) == {"the file is gone"}


def test_a_link_out_of_the_packages_is_not_followed(site: Path, tmp_path: Path) -> None:
    (tmp_path / "outside.py").write_text(GUARDED)
    (site / "agent" / "review.py").unlink()
    (site / "agent" / "review.py").symlink_to(tmp_path / "outside.py")
    assert "outside" in look(site, declare(tmp_path, DECLARED))["guard"]


@pytest.mark.parametrize(
    "file", ["../../etc/passwd", "/etc/passwd", "agent/../../x.py", "a\\\\b.py", "", ".", "a\\u0000b"]
)
def test_hostile_paths_are_refused(tmp_path: Path, file: str) -> None:
    declared = declare(tmp_path, f'[[patch]]\nname = "a"\nfile = "{file}"\ncontains = "root"\n')
    with pytest.raises(InputError, match=r"patches\.toml: patch\.1\.file: ") as caught:
        load_patches(declared)
    assert "\n" not in str(caught.value)


GOOD = 'name = "a"\nfile = "x.py"\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[patch]\n", "no TOML file"),
        ("", "patch: "),
        ("patch = []\n", "patch: "),
        ("patch = 5\n", "patch: "),
        (f'[[patches]]\n{GOOD}contains = "y"\n', "patch"),
        (f"[[patch]]\n{GOOD}", r"patch\.1: needs one of contains, regex, absent"),
        (f'[[patch]]\n{GOOD}contains = ""\n', r"patch\.1\.contains"),
        (f'[[patch]]\n{GOOD}regex = "("\n', r"patch\.1\.regex: is no regular expression"),
        (f'[[patch]]\n{GOOD}contians = "y"\n', r"patch\.1\.contians"),
        (f'[[patch]]\n{GOOD}contains = "y"\n' * 2, "two patches are named 'a'"),
        (f'[[patch]]\n{GOOD}contains = "y"\n[[patch]]\nname = "b"\ncontains = "y"\n', r"patch\.2\.file"),
    ],
)
def test_a_broken_file_names_file_and_key(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(InputError, match=rf"patches\.toml.*{words}") as caught:
        load_patches(declare(tmp_path, text))
    assert "\n" not in str(caught.value) and caught.value.exit_code == 2


def test_a_missing_and_an_unreadable_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no file"):
        load_patches(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="no TOML file"):
        load_patches(tmp_path / "bytes.toml")


def test_more_than_an_argument_can_hold_is_refused(tmp_path: Path) -> None:
    one = '[[patch]]\nname = "{}"\nfile = "x.py"\ncontains = "{}"\n'
    with pytest.raises(InputError, match="bytes of marks"):
        load_patches(declare(tmp_path, "".join(one.format(i, "é" * 3000) for i in range(40))))


def test_a_marker_without_an_answer_is_an_error_and_no_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patches, "ask_inside", lambda *_, **__: {"guard": ""})
    with pytest.raises(EnvironmentUnusable, match="not every patch"):
        find_patches(PreparedEnvironment("bwrap", "/x", "d"), load_patches(declare(tmp_path, DECLARED)))
