"""Puts the shards of one plan together into one run folder, whose report is the whole's."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from lab.contamination.live import comparable
from lab.contamination.plan import LOCK, PLAN, SCENARIOS
from lab.contamination.selection import Shard
from lab.contamination.suite import Suite
from lab.errors import InputError
from lab.records import digest
from lab.runs.folder import EARLIER, RunFolder, write_json
from lab.runs.lock import differences, make_lock, new_run_id

_OWN = frozenset({"run_id", "created", "host", "shard", "scenarios", "plan_digest", "reused_run"})
"""Parts of a lock in which the shards of one plan may differ."""

_SOURCE = "source"
"""Part of a build in which they may, too: a path on the machine. The digest of its environment says what was there."""

_DIFFERENCES = 5


def merge(suites: Sequence[Suite], root: Path) -> RunFolder:
    """Copies the evidence of all shards of a plan into a new run folder.

    Shards that are not finished may be merged; what is missing is then run by ``lab resume``.

    Args:
        suites: The shards, whose evidence has been checked.
        root: Where run folders are made.

    Raises:
        InputError: One is no shard, their locks differ, they overlap, or a shard is missing.
        OSError: The folder cannot be written.
    """
    _check(suites)
    first = suites[0]
    trials = _in_order_of_plan(suites)
    folder = RunFolder.create(root, new_run_id(digest([t["cell"] for t in trials])))
    for suite in suites:
        source = suite.folder.path
        for name in ("trials", EARLIER, SCENARIOS):
            if (source / name).is_dir():
                shutil.copytree(source / name, folder.path / name, dirs_exist_ok=True, symlinks=True)
    plan = {"trials": trials, "seed": first.locked.seed}
    hosts = [suite.lock.get("host", {}) for suite in suites]
    inputs = {name: part for name, part in first.lock.items() if name not in _OWN} | {
        "scenarios": first.locked.whole,
        "whole": {},
        "shard": "",
        "reused_run": ", ".join(sorted({str(s.lock.get("reused_run", "")) for s in suites} - {""})),
        "host": {key: " / ".join(sorted({str(host.get(key, "")) for host in hosts})) for key in hosts[0]},
        "merged": [suite.folder.run_id for suite in suites],
        "plan_digest": digest(plan),
    }
    # Lock and plan come last: without them this is no run folder, so a merge that was cut short is not taken for one.
    write_json(folder.path / LOCK, make_lock(folder.run_id, inputs) | {"host": inputs["host"]})
    write_json(folder.path / PLAN, plan)
    return folder


def _check(suites: Sequence[Suite]) -> None:
    for suite in suites:
        if not suite.locked.shard:
            raise InputError(f"{suite.folder.path} is not a shard", "merge what lab run --shard K/N has made")
    first, *others = suites
    for other in others:
        found = list(differences(_comparable(first.lock), _comparable(other.lock)))
        if found:
            more = f" and {len(found) - _DIFFERENCES} more" if len(found) > _DIFFERENCES else ""
            told = f"{first.folder.path} and {other.folder.path} are not of one plan: {'; '.join(found[:_DIFFERENCES])}"
            raise InputError(told + more, "merge shards that were run with the same options and builds")
    for one, another in combinations(suites, 2):
        if both := [trial for trial in one.trials if trial in another.trials]:
            folders = f"{one.folder.path} and {another.folder.path}"
            raise InputError(f"{folders} both hold {len(both)} trials, the first is {both[0]}", "name each shard once")
    count = Shard.parse(first.locked.shard).count
    given = {suite.locked.shard for suite in suites}
    held = {name for suite in suites for name in suite.scenarios}
    missing = [
        str(shard)
        for shard in (Shard(index, count) for index in range(1, count + 1))
        if str(shard) not in given and any(shard.holds(name) for name in first.locked.whole)
    ]
    if missing:
        raise InputError(f"missing: shard {', '.join(missing)}", f"run it: lab run … --shard {missing[0]}")
    if held != set(first.locked.whole):
        raise InputError(
            f"the shards do not hold what the plan does: {', '.join(sorted(held ^ set(first.locked.whole)))}",
            "run the shards again with one version of the lab",
        )


def _comparable(lock: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: part for name, part in lock.items() if name not in _OWN}
    builds = kept["builds"].items()
    live = {"live": comparable(lock["live"])} if lock.get("live") else {}
    return kept | live | {"builds": {name: {k: v for k, v in body.items() if k != _SOURCE} for name, body in builds}}


def _in_order_of_plan(suites: Sequence[Suite]) -> list[dict[str, Any]]:
    """The trials in the order in which the whole would have planned them.

    Builds, setups and models stand in the order that all shards share, scenarios in that of their ids; within a
    scenario the order is the shard's own.
    """
    trials = [planned for suite in suites for planned in suite.trials.values()]
    groups = {(t["build"], t["setup"], t["model"]): None for t in trials}
    place = {group: number for number, group in enumerate(groups)}
    return sorted(trials, key=lambda t: (place[t["build"], t["setup"], t["model"]], t["scenario"]))
