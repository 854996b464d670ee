"""A run of several builds worked off with a planted backend: each trial in its build's environment, retries by cause,
order of start, the lock, and nothing that grows."""

from __future__ import annotations

import gc
import json
import sys
import tracemalloc
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from lab.contamination.plan import plan_trials, start_order, trial_seed
from lab.contamination.selection import Shard
from lab.contamination.suite import Suite
from lab.errors import ErrorBudgetExceeded, InputError, SandboxOutOfMemory, SandboxTimeout
from lab.report.build import build_report
from lab.runs.runner import Progress
from tests.planted import BUILDS, ENVIRONMENTS, MODEL, SETUP, Planted, build, make, work
from tests.published import published
from tests.trial_evidence import SCENARIO

LIBRARY = published()


def test_each_trial_runs_in_the_environment_of_its_build(tmp_path: Path) -> None:
    backend = Planted()
    suite = make(tmp_path, backend)
    assert work(suite, backend)
    assert Counter(digest for _, digest in backend.ran) == {"a" * 64: 2, "b" * 64: 2}
    assert all((".fork-2.0." in trial) == (digest == "b" * 64) for trial, digest in backend.ran)
    assert {r.build for r in suite.results()} == {"hermes-agent-1.0", "fork-2.0"}


def test_the_lock_holds_every_build_with_its_source(tmp_path: Path) -> None:
    suite = make(tmp_path)
    assert {name: (b["product"], b["source"]) for name, b in suite.lock["builds"].items()} == {
        "hermes-agent-1.0": ("hermes-agent", "1.0"),
        "fork-2.0": ("fork", "2.0"),
    }
    assert {b.source for b in suite.locked.builds.values()} == {"1.0", "2.0"}


def test_environments_that_are_swapped_changed_or_missing_are_refused(tmp_path: Path) -> None:
    """Both digests are locked, but each for its own build."""
    backend = Planted()
    suite = make(tmp_path, backend)
    one, two = ENVIRONMENTS.values()
    names = list(ENVIRONMENTS)
    with pytest.raises(InputError, match=r"build fork-2.0 is no longer what .* now gives .*aaaa.* not bbbb"):
        work(suite, backend, environments=dict(zip(names, (two, one), strict=True)))
    with pytest.raises(InputError, match=r"build fork-2.0 is no longer what"):
        work(suite, backend, environments={names[0]: one, names[1]: replace(two, digest="c" * 64)})
    with pytest.raises(InputError, match=r"build fork-2.0 of the run is not prepared"):
        work(suite, backend, environments={names[0]: one})
    with pytest.raises(InputError, match="locked with backend planted, not other"):
        work(suite, Planted(name="other"))
    assert not backend.ran


def test_a_build_named_twice_is_refused() -> None:
    with pytest.raises(InputError, match=r"a build is named twice: fork-2\.0"):
        plan_trials([SCENARIO], [*BUILDS, BUILDS[1]], [SETUP], [MODEL])
    with pytest.raises(InputError, match="cannot be a folder's name"):
        plan_trials([SCENARIO], [build("../x", "a")], [SETUP], [MODEL])


def a_trial(suite: Suite, name: str = "F1-900.hermes") -> str:
    return next(trial for trial in suite.trials if trial.startswith(name))


def test_a_cause_that_passes_is_tried_again_and_counts_once_by_its_last_attempt(tmp_path: Path) -> None:
    backend = Planted()
    suite = make(tmp_path, backend)
    trial = a_trial(suite)
    backend.ends[trial] = [SandboxTimeout("slow")]
    seen: list[Progress] = []
    assert work(suite, backend, budget=0, on_progress=seen.append)
    assert [t for t, _ in backend.ran].count(trial) == 2
    assert suite.attempts()[trial] == 2 and sum(suite.attempts().values()) == 5
    assert suite.retried() == {"sandbox_timeout": 1}
    results = {r.trial: r for r in suite.results()}
    assert len(results) == 4 and results[trial].status == "invalid"
    kept = json.loads((suite.folder.path / "earlier" / f"{trial}.1" / "result.json").read_text())
    assert kept["cause"] == "sandbox_timeout"
    assert [p.done for p in seen] == [0, 1, 2, 3, 4] and [p.again for p in seen] == [True, False, False, False, False]
    report = build_report(suite.lock, suite.plan, suite.results())
    assert report.accounting.planned == 4 and report.accounting.error == 0


def test_a_cause_that_stays_ends_as_one_error_and_counts_once_against_the_budget(tmp_path: Path) -> None:
    backend = Planted()
    suite = make(tmp_path, backend)
    trial = a_trial(suite)
    backend.ends[trial] = [SandboxTimeout("slow")] * 9
    assert work(suite, backend, budget=0.25), "one error of four is within the budget"
    assert [t for t, _ in backend.ran].count(trial) == 2
    assert Counter(r.status.value for r in suite.results()) == {"error": 1, "invalid": 3}
    assert suite.pending() == [] and suite.pending(retry_errors=True) == [trial]


def test_a_cause_of_the_run_itself_is_never_tried_again(tmp_path: Path) -> None:
    backend = Planted()
    suite = make(tmp_path, backend)
    trial = a_trial(suite)
    backend.ends[trial] = [SandboxOutOfMemory("too big")]
    with pytest.raises(ErrorBudgetExceeded, match="1 of 4 planned trials"):
        work(suite, backend, budget=0)
    assert [t for t, _ in backend.ran].count(trial) == 1
    assert suite.retried() == {} and not (suite.folder.path / "earlier").exists()


def test_a_run_killed_between_two_attempts_goes_on_with_the_second(tmp_path: Path) -> None:
    """The same ends as in a run that was not killed, whatever was on disk at that moment."""
    backend = Planted()
    suite = make(tmp_path, backend)
    trial = a_trial(suite)
    backend.ends[trial] = [SandboxTimeout("slow")]
    suite.run(backend, ENVIRONMENTS, [trial], workers=1, error_budget=1)
    first = suite.folder.path / "earlier" / f"{trial}.1"
    suite.folder.trial(trial).rename(tmp_path / "second")
    first.rename(suite.folder.trial(trial))
    again = Suite(suite.folder)
    assert trial in again.pending() and again.attempts() == {trial: 1}
    assert work(again, backend)
    assert again.retried() == {"sandbox_timeout": 1}
    assert {r.trial: r.status.value for r in again.results()}[trial] == "invalid"
    assert work(again, backend) and again.attempts()[trial] == 2, "what has ended is not run again"


def test_the_seed_decides_the_order_of_start_and_nothing_else(tmp_path: Path) -> None:
    ran, reports, cells = {}, {}, {}
    for seed in (0, 1, 2):
        backend = Planted()
        suite = make(tmp_path / str(seed), backend, scenarios=LIBRARY[:6], seed=seed)
        assert suite.lock["seed"] == suite.plan["seed"] == seed
        work(suite, backend)
        ran[seed] = [trial for trial, _ in backend.ran]
        cells[seed] = {t["trial"]: t["cell"] for t in suite.trials.values()}
        report = build_report(suite.lock, suite.plan, suite.results()).model_dump(mode="json")
        for trial in report["trials"]:
            trial.pop("seconds", None)
        reports[seed] = {name: part for name, part in report.items() if name != "run"}
    assert ran[0] == list(suite.trials), "seed 0 is the order of the plan"
    assert ran[1] != ran[0] != ran[2] != ran[1]
    assert sorted(ran[0]) == sorted(ran[1]) == sorted(ran[2])
    assert cells[0] == cells[1] == cells[2]
    assert reports[0] == reports[1] == reports[2]


def test_what_is_left_starts_in_the_order_in_which_it_would_have() -> None:
    names = [f"t{i}" for i in range(50)]
    whole = start_order(names, 7)
    assert start_order(names[::2], 7) == [t for t in whole if t in names[::2]]


def test_trial_seeds_are_shared_by_pairs_and_differ_between_repeats() -> None:
    def seeds(seed: int) -> dict[tuple[str, int], set[int]]:
        found: dict[tuple[str, int], set[int]] = {}
        for t in plan_trials(LIBRARY[:2], BUILDS, [SETUP], [MODEL], repeats=3, seed=seed):
            found.setdefault((t["scenario"], t["repeat"]), set()).add(t["seed"])
        return found

    first = seeds(1)
    assert all(len(values) == 1 for values in first.values()), "attack and twin, and both builds, draw the same"
    assert len({next(iter(v)) for v in first.values()}) == len(first) == 6
    assert first != seeds(2)
    assert all(0 <= trial_seed(s, "F1-001", 1) < 2**31 for s in range(200))


def test_a_shard_is_locked_with_the_whole_it_is_part_of(tmp_path: Path) -> None:
    half = Shard(1, 2)
    suite = make(tmp_path, scenarios=LIBRARY, shard=half)
    assert suite.locked.shard == "1/2"
    assert set(suite.locked.whole) == {s.id for s in LIBRARY}
    assert set(suite.scenarios) == {s.id for s in LIBRARY if half.holds(s.id)}
    rest = make(tmp_path, scenarios=LIBRARY, shard=Shard(2, 2))
    whole = {t["trial"]: t for t in plan_trials(LIBRARY, BUILDS, [SETUP], [MODEL])}
    assert suite.trials | rest.trials == whole and not set(suite.trials) & set(rest.trials)


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def with_room_for_interned_strings() -> list[str]:
    """Strings that make the interpreter enlarge its table of interned strings now.

    pathlib interns every part of a path. Where the table is nearly full when a measurement begins, it grows by two
    megabytes in the middle of it, which no trial has kept.

    Returns:
        What has to stay alive, so that the table does not shrink again.
    """
    kept: list[str] = []
    tracemalloc.start()
    try:
        grown = 0
        while grown < 500_000:
            before = tracemalloc.get_traced_memory()[0]
            kept.append(sys.intern(f"room for interned strings {len(kept)}"))
            grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    return kept


def test_memory_and_files_do_not_grow_with_the_number_of_trials(tmp_path: Path) -> None:
    backend = Planted()
    suite = make(tmp_path, backend, repeats=40)
    sizes: list[int] = []
    files: list[int] = []

    def look(progress: Progress) -> None:
        if progress.done % 40 == 0:
            backend.ran.clear()
            gc.collect()
            sizes.append(tracemalloc.get_traced_memory()[0])
            files.append(open_files())

    room = with_room_for_interned_strings()
    gc.collect()
    before = open_files()
    tracemalloc.start()
    try:
        work(suite, backend, on_progress=look)
    finally:
        tracemalloc.stop()
    assert room and len(sizes) == 4
    assert sizes[-1] - sizes[0] < 120 * 200, f"more than 200 bytes stay of each trial: {sizes}"
    assert max(files) - min(files) <= 2, files
    assert open_files() <= before
