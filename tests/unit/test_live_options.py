"""Options about live models that would have no effect are refused, and a run's budget is the default of its resume."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from lab.cli.app import app
from lab.cli.live import budget_of
from lab.contamination.live import Live, comparable
from lab.errors import InputError
from lab.gateway.upstream.limits import Budget


def test_money_without_a_price_bounds_nothing() -> None:
    with pytest.raises(InputError, match="both prices are 0"):
        budget_of(None, 5.0, None, None)
    assert budget_of(None, 5.0, None, 2.0) == Budget(cost=5.0, output_price=2.0)
    assert budget_of(None, None, None, None) == Budget()


def test_the_budget_of_the_lock_holds_where_nothing_else_is_said() -> None:
    live = Live(models={}, budget=Budget(1000, 5.0, 1.0, 2.0))
    locked = Live.model_validate_json(live.model_dump_json())
    assert budget_of(None, None, None, None, locked.budget) == Budget(1000, 5.0, 1.0, 2.0)
    assert budget_of(None, 9.0, None, None, locked.budget) == Budget(1000, 9.0, 1.0, 2.0)
    assert comparable(live.model_dump(mode="json")) == comparable(Live(models={}).model_dump(mode="json"))


def test_a_replay_refuses_what_it_does_not_take(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def said(*options: str) -> str:
        done = CliRunner().invoke(app, ["run", "--model", f"replay:{tmp_path / 'none'}", *options])
        assert done.exit_code
        return str(done.exception) + done.output

    for option, *value in (
        ("--plan",), ("--repeats", "1"), ("--setups", "default"), ("--temperature", "0"), ("--shard", "1/2"),
        ("--builds", "0.17.0"), ("--seed", "0"), ("--start", "cold"), ("--timeout", "9"), ("--budget-tokens", "9"),
        ("--reuse", "x"), ("--record", str(tmp_path / "r")), ("--no-ceiling",), ("--no-probe",), ("--scenarios", "x"),
    ):  # fmt: skip
        told = said(option, *value)
        assert "does not take" in told and option.removeprefix("--no-") in told, option
    assert "--seed, --plan" in said("--plan", "--seed", "3")
    monkeypatch.setenv("LAB_SETUPS", "default")
    for taken in ((), ("--families", "F1"), ("--select", "F1-001"), ("--jobs", "1"), ("--json",)):
        assert "does not take" not in said(*taken), "these it takes, and a variable was not written beside it"
