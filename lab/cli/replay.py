"""``lab run --model replay:RUN``: the same cells once more, answered by what was recorded, without a model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import typer

from lab.cli.build import prepare
from lab.cli.output import console, safe
from lab.cli.report import DERIVED
from lab.cli.work_off import work_off, workers_for
from lab.contamination.answering import Replaying
from lab.contamination.plan import create_run
from lab.contamination.replayed import beside_recording
from lab.contamination.selection import select
from lab.contamination.suite import Suite
from lab.contamination.warm_proof import AUTO, settle_starts
from lab.errors import InputError, VerdictsDiffer
from lab.isolation.select import select_backend
from lab.runs.folder import RESULT, RunFolder

REPLAY = "replay:"
TAKEN = frozenset(
    {"models", "families", "select_", "tags", "backend", "base", "jobs", "error_budget", "reports", "json"}
)
"""Parameters of ``lab run`` that a replay takes; the others stand in its recording."""
_SHOWN = 20


def recording_of(models: list[str], ctx: typer.Context) -> Path | None:
    """The run that is to be replayed; None where models are named.

    Raises:
        InputError: A run is named beside something else, or none behind the word; or options beside it that would
            have no effect.
    """
    if not any(model.startswith(REPLAY) for model in models):
        return None
    if len(models) > 1:
        raise InputError("a replay has the models of its recording", f"name {REPLAY}RUN alone")
    path = models[0].removeprefix(REPLAY)
    if not path:
        raise InputError("no run is named to be replayed", f"{REPLAY}reports/RUN")
    _refuse_others(ctx)
    return Path(path)


def _refuse_others(ctx: typer.Context) -> None:
    """Refuses every option of ``lab run`` that was written beside a replay and would have no effect on it."""
    others = [
        max(param.opts, key=len)
        for param in ctx.command.params
        if param.name and param.name not in TAKEN and (source := ctx.get_parameter_source(param.name))
        if source.name == "COMMANDLINE"
    ]
    if others:
        raise InputError(
            f"a replay has everything but its selection from its recording and does not take {', '.join(others)}",
            "leave it out" if len(others) == 1 else "leave them out",
        )


def replay(
    recording: Path,
    *,
    families: Sequence[str],
    select_: Sequence[str],
    tags: Sequence[str],
    backend: str,
    base: str,
    jobs: int,
    error_budget: float,
    reports: Path,
    json: bool,
) -> None:
    """Runs the cells of an earlier run again, each answered by its own recording, and says where verdicts differ.

    Args:
        recording: The earlier run.
        families: Families of its scenarios to take.
        select_: Ids and globs of its scenarios; all where there are none.
        tags: Tags of its scenarios; all where there are none.
        backend: Isolation, which may be another than the recording's.
        base: Base system of the builds.
        jobs: Trials at once.
        error_budget: Share of the trials that may end in an error.
        reports: Where the run folder is made.
        json: Whether the report is printed as JSON.

    Raises:
        InputError: It is no run, it was changed, or nothing of it is selected.
        VerdictsDiffer: A verdict differs from the recording's.
    """
    earlier = Suite(RunFolder.open(recording))
    earlier.folder.check_seal({*DERIVED, RESULT})
    mine = [s for s in earlier.scenarios.values() if s.family in families]
    scenarios = select(mine, select_, tags)
    isolation = select_backend(backend)
    isolation.reap()
    builds = [prepare(isolation, locked.source, base) for locked in earlier.locked.builds.values()]
    setups = list(earlier.locked.setups.values())
    limits = earlier.locked.limits
    starts = settle_starts(
        AUTO, isolation, builds, setups, limits, lambda line: console.print(safe(line), soft_wrap=True)
    )
    folder = create_run(
        reports,
        scenarios=scenarios,
        builds=builds,
        setups=setups,
        models=[str(model) for model in earlier.lock["models"]],
        backend=isolation,
        repeats=int(earlier.lock.get("repeats", 1)),
        seed=earlier.locked.seed,
        limits=limits,
        starts=starts,
        live=earlier.locked.live,
        replayed={"run_id": earlier.folder.run_id, "folder": str(recording.resolve())},
    )
    with folder.lock(), earlier.folder.lock():
        suite = Suite(folder)
        work_off(
            suite,
            isolation,
            {build.name: build.environment for build in builds},
            workers_for(jobs, limits),
            error_budget,
            json=json,
            answering=Replaying(earlier.folder),
        )
        tell_beside(suite, earlier)


def tell_beside(suite: Suite, recording: Suite) -> None:
    """Says how a replay's verdicts stand beside its recording's.

    Raises:
        VerdictsDiffer: One differs.
    """
    found = beside_recording(suite, recording)
    compared = len(found.equal) + len(found.differing)
    console.print(
        f"verdicts equal to the recording {safe(recording.folder.run_id)}: {len(found.equal)} of {compared} trials",
        soft_wrap=True,
    )
    if found.without:
        console.print(f"without a result on one of the sides, and not compared: {len(found.without)} trials")
    for trial, difference in list(found.differing.items())[:_SHOWN]:
        console.print(f"  {safe(trial)}: {safe(difference)}", soft_wrap=True)
    if len(found.differing) > _SHOWN:
        console.print(f"  … and {len(found.differing) - _SHOWN} more")
    if found.differing:
        raise VerdictsDiffer(
            f"{len(found.differing)} of {compared} replayed trials have another verdict than was recorded",
            f"lab compare {recording.folder.path} {suite.folder.path}",
        )
