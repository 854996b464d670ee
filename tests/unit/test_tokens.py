"""The estimate of what live models will be asked: from their own answers, from recorded requests, or as shipped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from lab.cli.live import Asking, token_plan
from lab.cli.output import console
from lab.cli.plan_table import print_plan_json, show_plan, time_words
from lab.contamination.live import Live
from lab.gateway.upstream.limits import Budget, Limits
from lab.gateway.upstream.live import Scope
from lab.models.identity import LiveModel, Sampling
from lab.models.spec import Provider
from lab.runs.pace import Estimate, Pace
from lab.runs.tokens import Planned, Span, default_appetite, estimate_tokens

MODEL = "ollama:x:8b"


def exchange(kind: str, size: int, phase: str = "session") -> dict[str, Any]:
    return {"kind": kind, "phase": phase, "request": {"text": "é" * (size // 2)}}


def write_folder(reports: Path, name: str, *, lock: Any = None, uses: Any = (), exchanges: Any = ()) -> Path:
    folder = reports / name
    (folder / "trials").mkdir(parents=True)
    (folder / "lock.json").write_text(json.dumps(lock or {}))
    for number, use in enumerate(uses):
        place = folder / "trials" / f"live{number}"
        place.mkdir()
        (place / "result.json").write_text(json.dumps(use))
    for number, lines in enumerate(exchanges):
        place = folder / "trials" / f"t{number}"
        place.mkdir()
        (place / "requests.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return folder


def used(model: str = MODEL, status: str = "valid", **more: Any) -> dict[str, Any]:
    use = {"requests": 2, "prompt_tokens": 8000, "completion_tokens": 100, "uncounted": 0, "seconds": 30.0}
    return {"model": model, "status": status, "model_use": use | more}


def test_as_shipped_where_nothing_was_recorded(tmp_path: Path) -> None:
    one = default_appetite()
    assert (one.prompt_low, one.prompt_high) == (5400, 13_900)
    (told,) = estimate_tokens([Planned(MODEL, 100, "a")], tmp_path).models
    assert told.requests == 250 and told.prompt_tokens == Span(250 * 5400, 250 * 13_900)
    assert told.seconds is None and "not known" in told.time_source and told.cost is None
    assert "the lab's own measurement" in told.source


def test_recorded_requests_count_four_bytes_a_token_and_only_those_that_are_asked(tmp_path: Path) -> None:
    lines = [
        exchange("review", 40_000),
        exchange("review", 60_000),
        exchange("foreground", 9_000),
        exchange("probe", 0),
    ]
    lines.append(exchange("review", 80_000, "load"))
    write_folder(tmp_path, "2026a", exchanges=[lines, [exchange("foreground", 100)]])
    (told,) = estimate_tokens([Planned(MODEL, 10, "a")], tmp_path).models
    assert (told.requests, told.prompt_tokens) == (20, Span(250_000, 250_000))
    assert told.source == "recorded requests of run 2026a (n = 2), 4 bytes a token"
    (whole,) = estimate_tokens([Planned(MODEL, 10, "a")], tmp_path, scope="all").models
    assert whole.requests == 25, "all that is no probe, of both trials"


def test_the_models_own_answers_come_first_and_the_newest_run_of_them(tmp_path: Path) -> None:
    live = {"live": {"scope": "review"}}
    write_folder(tmp_path, "2026a", lock=live, uses=[used(prompt_tokens=2)])
    answers = [
        used(),
        used(requests=4, prompt_tokens=12_000, uncounted=1, seconds=60.0),
        used("ollama:y"),
        used(status="error"),
    ]
    write_folder(tmp_path, "2026b", lock=live, uses=answers)
    write_folder(tmp_path, "2026c", lock=live | {"replayed": {"run_id": "2026a"}}, uses=[used(seconds=0.1)])
    write_folder(tmp_path, "2026d", lock={"live": {"scope": "all"}}, uses=[used(requests=9)])
    write_folder(tmp_path, "2026e", lock=live, exchanges=[[exchange("review", 4)]])
    told, other = estimate_tokens([Planned(MODEL, 10, "a"), Planned("ollama:z", 10, "a")], tmp_path).models
    assert told.requests == 30 and told.prompt_tokens == Span(120_000, 120_000) and told.completion_tokens == 1200
    assert told.seconds == Span(450.0, 450.0) and "its own answers in run 2026b (n = 6)" in told.source
    assert other.source.startswith("recorded requests of run 2026e")


def test_time_by_the_probe_lies_between_cached_and_read_as_slowly_as_written(tmp_path: Path) -> None:
    (told,) = estimate_tokens([Planned(MODEL, 100, "a", 50.0)], tmp_path, concurrency=2).models
    assert told.seconds == Span(37_500 / 50 / 2, (250 * 13_900 + 37_500) / 50 / 2)


def test_models_of_one_server_wait_for_each_other_and_servers_do_not(tmp_path: Path) -> None:
    models = [Planned("a", 100, "one", 50.0), Planned("b", 100, "one", 50.0), Planned("c", 100, "two", 50.0)]
    plan = estimate_tokens(models, tmp_path)
    single = plan.models[0].seconds
    assert single and plan.seconds == Span(2 * single.low, 2 * single.high)
    assert estimate_tokens([*models, Planned("d", 1, "two")], tmp_path).seconds is None, "one speed is not known"


def test_cost_is_by_both_prices(tmp_path: Path) -> None:
    (told,) = estimate_tokens([Planned(MODEL, 100, "a")], tmp_path, price_in=2.0, price_out=10.0).models
    assert told.cost == Span(1.35 * 2 + 0.375, 3.475 * 2 + 0.375)


@pytest.mark.parametrize(
    "line", ["", "x", "[]", "{}", '{"kind": "review"}', '{"kind":"review","phase":"session","request":3}', "[" * 9999]
)
def test_a_damaged_old_folder_stops_nothing(tmp_path: Path, line: str) -> None:
    folder = write_folder(tmp_path, "2026a", lock=[1], uses=[[], used(requests="x"), {"model": MODEL, "model_use": 3}])
    (folder / "trials" / "t").mkdir()
    (folder / "trials" / "t" / "requests.jsonl").write_text(line)
    (told,) = estimate_tokens([Planned(MODEL, 1, "a")], tmp_path).models
    assert "the lab's own measurement" in told.source


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (None, "not known"),
        (Span(1.0, 30.0), "1.0–30.0 s"),
        (Span(90.0, 90.0), "1.5 min"),
        (Span(90.0, 9000.0), "0.0–2.5 h"),
    ],
)
def test_time_is_told_in_the_unit_of_its_upper_end(seconds: Span | None, words: str) -> None:
    assert time_words(seconds) == words


def test_the_plan_shows_it(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "width", 200)
    live = Live(models={MODEL: LiveModel(spec=MODEL, provider=Provider.OLLAMA, name="x:8b", url="http://127.0.0.1:1")})
    budget = Budget(None, None, 1.0, 1.0)
    asking = Asking(Scope.REVIEW, Sampling(), None, "KEY", Limits(concurrency=2), budget)
    cell = {"family": "F1", "role": "attack", "build": "b", "setup": "s"}
    trials = [cell | {"trial": f"t{n}", "model": m} for n, m in enumerate([MODEL] * 10 + ["scripted:always-write"])]
    tokens = token_plan(trials, live, asking, tmp_path)
    assert tokens and token_plan(trials, None, asking, tmp_path) is None
    estimate = Estimate(10.0, 11, 1, Pace(seconds_per_session=1.0, sessions_per_trial=1.0))
    show_plan(trials, "bwrap", estimate, seed=0, shard="", tokens=tokens)
    shown = capsys.readouterr().err
    assert "135–348 k" in shown and "0.14–0.35" in shown and MODEL in shown and "not known" in shown
    assert "2 requests to a server at once" in shown and "an estimate, not a bound" in shown
    print_plan_json(trials, estimate, seed=0, shard="", tokens=tokens)
    (told,) = json.loads(capsys.readouterr().out)["live"]["models"]
    assert (told["model"], told["trials"], told["requests"]) == (MODEL, 10, 25)
    assert told["prompt_tokens"] == {"low": 135_000, "high": 347_500}
    print_plan_json(trials[-1:], estimate, seed=0, shard="")
    assert "live" not in json.loads(capsys.readouterr().out)
