"""What the comparison of a warm with a cold start leaves out: the random ids of staged writes, and nothing else."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer

from lab.agents.hermes.volatile import comparable, without_ids
from lab.cli import run as run_command
from lab.cli.app import app
from lab.contamination.plan import Build
from lab.contamination.warm_proof import first_difference
from lab.errors import InputError
from lab.isolation.base import PreparedEnvironment

BUILD = Build("b-1", "b", "1", PreparedEnvironment("bwrap", "/nowhere", "0" * 64), {}, "0.19.0")

STAGED = (
    b'{"role": "tool", "content": "{\\"success\\": true, \\"pending_id\\": \\"9648d77e\\", \\"created_at\\": 1764.25}"}'
)


def test_two_staged_writes_are_the_same_but_for_id_and_time() -> None:
    other = STAGED.replace(b"9648d77e", b"318fb03e").replace(b"1764.25", b"1799.5")
    assert other != STAGED and without_ids(STAGED) == without_ids(other)
    assert without_ids(b"Rejected pending memory write '6d8cdead'.") == without_ids(
        b"Rejected pending memory write '5c6e2ca9'."
    )
    assert without_ids(b"pending/memory/9b9118dc.json") == without_ids(b"pending/memory/4d6e4f2a.json")


@pytest.mark.parametrize(
    "changed",
    [
        STAGED.replace(b"true", b"false"),
        STAGED.replace(b"9648d77e", b"9648d77e0"),
        STAGED.replace(b"9648d77e", b"reviewer"),
        STAGED.replace(b"pending_id", b"entry"),
    ],
)
def test_any_other_byte_is_a_difference(changed: bytes) -> None:
    assert without_ids(STAGED) != without_ids(changed)


def test_how_long_code_ran_is_the_clocks_and_what_it_printed_is_not() -> None:
    ran = b'{"content": "{\\"status\\": \\"success\\", \\"output\\": \\"2041\\", \\"duration_seconds\\": 0.12}"}'
    assert without_ids(ran) == without_ids(ran.replace(b"0.12", b"1.5")) != ran
    assert without_ids(ran) != without_ids(ran.replace(b"2041", b"2042"))


def test_a_request_of_another_day_is_comparable_and_of_another_model_is_not() -> None:
    asked = b"Conversation started: Monday, November 30, 2026\\nModel: scripted"
    assert comparable(asked) == comparable(asked.replace(b"Monday, November 30", b"Friday, December 4"))
    assert comparable(asked) != comparable(asked.replace(b"scripted", b"other"))
    assert without_ids(asked) == asked


def test_what_a_delegation_says_of_its_time_is_not_compared_and_what_it_found_is() -> None:
    told = b"deleg_d540a92d\\nDispatched: 2026-11-30 17:53:31 (0s ago)\\nduration: 0.16s (api_calls=1, 0.11s) 8443"
    other = b"deleg_0a1b2c3d\\nDispatched: 2027-01-02 07:03:09 (12s ago)\\nduration: 3s (api_calls=1, 2.9s) 8443"
    assert comparable(told) == comparable(other)
    assert comparable(told) != comparable(told.replace(b"8443", b"8444"))


def test_the_first_difference_is_named() -> None:
    same = {"requests": [1, 2], "files": ["a"]}
    assert first_difference(same, dict(same)) == ""
    assert first_difference(same, {**same, "requests": [1, 3]}) == "requests differ at number 2 of 2"
    assert first_difference(same, {**same, "files": ["a", "b"]}) == "files differ"


def test_what_a_comparison_tells_of_the_sandbox_cannot_act_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    hostile = "\x1b]0;owned\x07[bold]left open[/bold]"

    def told(*given: Any) -> None:
        given[-1](f"starting cold: {hostile}")
        raise InputError("stop here", "")

    monkeypatch.setattr(run_command, "settle_starts", told)
    monkeypatch.setattr(run_command, "prepare", lambda *_: BUILD)
    monkeypatch.setattr(run_command, "select_backend", lambda _: SimpleNamespace(name="bwrap", reap=tuple))
    context = typer.Context(typer.main.get_command(app))
    with pytest.raises(InputError, match="stop here"):
        run_command.run(context, select_="F5-001", families="F5", reports=tmp_path)
    said = capsys.readouterr().err
    assert "starting cold:" in said and "[bold]left open[/bold]" in said
    assert "\x1b]0;" not in said and "\x07" not in said
