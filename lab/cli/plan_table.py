"""Shows the plan of a run before anything of it runs: counts by cell, total and estimated time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import timedelta
from typing import Any

from rich.table import Table

from lab.cli.output import console, print_json, safe
from lab.runs.pace import Estimate
from lab.runs.tokens import Span, TokenPlan

Trials = Sequence[Mapping[str, Any]]
_CELL = ("family", "role", "build", "setup", "model")


def show_plan(
    trials: Trials,
    backend: str,
    estimate: Estimate,
    *,
    seed: int,
    shard: str,
    cold: bool = True,
    tokens: TokenPlan | None = None,
) -> None:
    """Prints the plan: one row for each build, setup and model, one column for each family and role.

    Args:
        trials: The trials.
        backend: Name of the isolation.
        estimate: How long they will take.
        seed: Of the order of start.
        shard: Which part of a run it is; empty for a whole one.
        cold: Whether all sessions are started cold.
        tokens: What live models will be asked; None without one.
    """
    columns = sorted({(str(t["family"]), str(t["role"])) for t in trials})
    rows = dict.fromkeys((str(t["build"]), str(t["setup"]), str(t["model"])) for t in trials)
    counts = Counter(tuple(str(t[part]) for part in _CELL) for t in trials)
    table = Table(box=None, pad_edge=False)
    for name in ("build", "setup", "model"):
        table.add_column(name, overflow="fold")
    for family, role in columns:
        table.add_column(f"{family} {role}", justify="right")
    table.add_column("trials", justify="right")
    for row in rows:
        cells = [counts[*column, *row] for column in columns]
        table.add_row(*map(safe, row), *(str(n) if n else "·" for n in cells), str(sum(cells)))
    console.print(table)
    parts = f", shard {shard}" if shard else ""
    order = f", started in the order of seed {seed}" if seed else ""
    console.print(f"plan: {len(trials)} trials in {backend}{parts}{order}")
    pace = estimate.pace
    told = (
        f"about {timedelta(seconds=round(estimate.seconds))} with {estimate.jobs} at once: "
        f"{pace.seconds_per_session * pace.sessions_per_trial:.1f} s a trial by {pace.source}"
    )
    # The pace may come from cold sessions; how many of these will be forked is known only after the comparison.
    hint = "" if cold else "; sessions that can be forked take a small part of a cold one's time"
    hint += "; the answers of live models come on top" if tokens else ""
    console.print(safe(told + hint), soft_wrap=True)
    if tokens:
        _show_tokens(tokens)


def _show_tokens(tokens: TokenPlan) -> None:
    """Prints what live models will be asked; every number of it is an estimate."""
    table = Table(box=None, pad_edge=False)
    table.add_column("live model (estimate)", overflow="fold", min_width=22)
    for name in ("trials", "requests", "tokens in", "tokens out", "time", *(["cost"] if _costs(tokens) else [])):
        table.add_column(name, justify="right", no_wrap=True)
    for model in tokens.models:
        cost = [_span(model.cost, 2) if model.cost else "?"] if _costs(tokens) else []
        table.add_row(
            safe(model.model),
            str(model.trials),
            str(model.requests),
            _tokens(model.prompt_tokens),
            _tokens(Span(model.completion_tokens, model.completion_tokens)),
            time_words(model.seconds),
            *cost,
        )
    console.print(table)
    for model in tokens.models:
        console.print(safe(f"{model.model}: tokens by {model.source}; time: {model.time_source}", 500), soft_wrap=True)
    at_once = "1 request" if tokens.concurrency == 1 else f"{tokens.concurrency} requests"
    told = f"live models, {at_once} to a server at once: {time_words(tokens.seconds)}"
    console.print(f"{told}; an estimate, not a bound (see --budget-tokens)", soft_wrap=True)


def _costs(tokens: TokenPlan) -> bool:
    return any(model.cost for model in tokens.models)


def _span(span: Span, places: int = 0) -> str:
    low, high = f"{span.low:.{places}f}", f"{span.high:.{places}f}"
    return low if low == high else f"{low}–{high}"


def _tokens(span: Span) -> str:
    return _span(span) if span.high < 10_000 else f"{_span(Span(span.low / 1000, span.high / 1000))} k"


def time_words(seconds: Span | None) -> str:
    """A span of time in the unit of its upper end: ``0.5–2.5 h``, ``1.5 min``, ``not known``."""
    if seconds is None:
        return "not known"
    size, unit = next(((size, unit) for size, unit in ((3600, "h"), (60, "min")) if seconds.high >= size), (1, "s"))
    return f"{_span(Span(seconds.low / size, seconds.high / size), 1)} {unit}"


def print_plan_json(
    trials: Trials, estimate: Estimate, *, seed: int, shard: str, tokens: TokenPlan | None = None
) -> None:
    """Prints the plan as one JSON document: every trial, the counts and the estimates."""
    counts = Counter(tuple(str(t[part]) for part in _CELL) for t in trials)
    told = asdict(estimate) | {"pace": estimate.pace.model_dump()}
    document = {
        "trials": trials,
        "total": len(trials),
        "counts": [dict(zip(_CELL, cell, strict=True)) | {"trials": n} for cell, n in counts.items()],
        "estimate": told,
        **({"live": asdict(tokens)} if tokens else {}),
        "seed": seed,
        "shard": shard,
    }
    print_json(document)
