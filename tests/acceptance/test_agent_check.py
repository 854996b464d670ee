"""``lab agent check --patches``: a declared patch that is not in the built agent fails the gate and is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.conftest import LabCommand

pytestmark = [pytest.mark.agent, pytest.mark.bwrap]

THERE = """
[[patch]]
name = "review module"
file = "agent/background_review.py"
regex = '^def \\w+'
"""
LOST = """
[[patch]]
name = "our [bold]guard[/]"
file = "agent/background_review.py"
contains = "refuse_unasked_writes"
why = "the reviewer would write unasked"

[[patch]]
name = "our module"
file = "agent/our_module.py"
contains = "x"
"""


def test_patches_gate(lab: LabCommand, installed: LabCommand, bwrap: str, tmp_path: Path) -> None:
    declared = tmp_path / "patches.toml"
    check = ("agent", "check", "--backend", bwrap, "--patches", declared)
    declared.write_text(THERE)
    done = installed(*check)
    assert done.code == 0, done.err
    assert "ok patch review module" in done.out and "no " not in {line[:3] for line in done.out.splitlines()}

    declared.write_text(THERE + LOST)
    done = lab(*check)
    assert done.code == 1
    lost = [line for line in done.out.splitlines() if line.startswith("no ")]
    assert len(lost) == 2
    assert "our [bold]guard[/]" in lost[0] and "would write unasked" in lost[0]
    assert "agent/our_module.py: the file is gone" in lost[1]
    rows = lab(*check, "--json").json
    assert [row["ok"] for row in rows if row["name"].startswith("patch ")] == [True, False, False]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (THERE.replace("agent/background_review.py", "../../etc/passwd"), "patch.1.file"),
        ("[[patch]\n", "no TOML file"),
    ],
)
def test_a_broken_patch_file_stops_before_the_build(lab: LabCommand, tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "patches.toml").write_text(text)
    done = lab("agent", "check", "--backend", "bwrap", "--patches", tmp_path / "patches.toml")
    assert done.code == 2 and done.is_one_clear_line()
    assert "patches.toml" in done.err and words in done.err
