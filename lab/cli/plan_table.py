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

Trials = Sequence[Mapping[str, Any]]
_CELL = ("family", "role", "build", "setup", "model")


def show_plan(trials: Trials, backend: str, estimate: Estimate, *, seed: int, shard: str, cold: bool = True) -> None:
    """Prints the plan: one row for each build, setup and model, one column for each family and role."""
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
    console.print(safe(told + hint), soft_wrap=True)


def print_plan_json(trials: Trials, estimate: Estimate, *, seed: int, shard: str) -> None:
    """Prints the plan as one JSON document: every trial, the counts and the estimate."""
    counts = Counter(tuple(str(t[part]) for part in _CELL) for t in trials)
    told = asdict(estimate) | {"pace": estimate.pace.model_dump()}
    document = {
        "trials": trials,
        "total": len(trials),
        "counts": [dict(zip(_CELL, cell, strict=True)) | {"trials": n} for cell, n in counts.items()],
        "estimate": told,
        "seed": seed,
        "shard": shard,
    }
    print_json(document)
