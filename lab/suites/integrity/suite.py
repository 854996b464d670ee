"""The suite of integrity and recovery: every fault on every store, and what was lost, with or without a word."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from lab.errors import EmbeddingFailed, EnvironmentUnusable
from lab.memories.archive.vectors import lancedb_version
from lab.records import digest
from lab.retrieval.testset import Purpose
from lab.suites.base import DataInfo, Number, Plant, Rate, SuiteContext, SuiteResult
from lab.suites.integrity import living, torn
from lab.suites.integrity.cases import Case, Verdict
from lab.suites.integrity.enrichment import AGE, SECRET, enrichments
from lab.suites.integrity.inputs import FAULT as INPUT
from lab.suites.integrity.inputs import inputs
from lab.suites.integrity.restoring import FAULT as RESTORE
from lab.suites.integrity.restoring import restores
from lab.suites.integrity.vectors import FAULT as VECTORS
from lab.suites.integrity.vectors import vectors
from lab.suites.integrity.writers import Writers
from lab.suites.rates import rate

NAME = "integrity"
TITLE = "Integrity and recovery"
QUESTION = "What does a fault take out of a store, and is the loss told?"

BASELINE = "plain copies and lenient readers"
"""The system of all ways that the lab does not go."""

DATA = "integrity-faults"

NOTES = (
    "A case is one fault on one store, done or read in one way. What is read afterwards is held against what had been "
    "acknowledged before: nothing lost, loss told (a refusal, an error, a report), or lost silently. A row that was "
    "never written, or is changed, counts as lost.",
    "Baseline ways are counted apart: copying the file of a live database, writing a copy over a newer one, reading "
    "without a check. They are there because they are what is usually done.",
    "Nothing lost may come with a refusal: a restore that does not begin loses nothing.",
    "A store is read as it is used: rows that its own index of words finds, by their ids. A row that no search finds "
    "is lost to whoever asks.",
    "A store is killed by SIGKILL before its commit, not by a loss of power: what the disk does with a page that was "
    "not synced is not tested.",
    "Cases are all that were thought of, not a sample of what happens: a rate says how a store fares under these "
    "faults, its interval only how few they are.",
    "Verdicts do not depend on timing: a writer stops before its commit and goes on when it is told to. Bytes may "
    "differ by what SQLite has spilled.",
)

_PLANTS = (
    (
        "the file of a live database copied",
        living.BACKUP,
        "plain copy of the file",
        "SQLite backup",
        "agent's database",
    ),
    (
        "a database and its log copied, a commit between",
        living.BACKUP,
        "plain copy of the file and its log, a commit between",
        "SQLite backup",
        "universal layer",
    ),
    ("a backup copied over a newer database", RESTORE, "plain copy over it", "a snapshot's copy", "universal layer"),
    (
        "a backup copied over a newer archive",
        RESTORE,
        "plain copy over it",
        "the archive's own restore",
        "HFEA chronicles",
    ),
    (
        "age touched by enrichment",
        AGE,
        "by an update that sets updated_at",
        "by the fact store",
        "fact store",
    ),
    (
        "a secret made findable",
        SECRET,
        "assigned password in the fact, by a plain update",
        "assigned password in the fact, by the fact store",
        "fact store",
    ),
)
"""Planted fault, its case by fault and way, the way of its clean twin, and the store of both."""

_PAIRS = (
    (
        "a log rewritten in place, killed in between",
        (living.KILL, "read afterwards", "log rewritten in place"),
        (living.KILL, "read afterwards", "log replaced in one step"),
    ),
    (
        "two writers of one file, the last one wins",
        (living.TWO, "each by the store's own code", "log rewritten in place"),
        (living.TWO, "each by the store's own code", "fact store"),
    ),
    (
        "rows of a matrix shifted",
        (VECTORS, "rows shifted", "plain matrix"),
        (VECTORS, "rows as they were written", "plain matrix"),
    ),
    (
        "a byte-order mark passed over with its line",
        (INPUT, "byte-order mark at the start", "lenient reader"),
        (INPUT, "byte-order mark at the start", "episodic index"),
    ),
)
"""The same where fault and twin are of two stores."""


def run(context: SuiteContext) -> SuiteResult:
    """Runs it; see ``lab.suites.base.Suite``."""
    work, notes = context.work, list(NOTES)
    found: list[Case] = []
    with Writers() as writers:
        steps: list[Callable[[], Iterable[Case]]] = [
            lambda: living.backups(writers, work),
            lambda: living.kills(writers, work),
            lambda: living.pairs(writers, work),
            lambda: restores(writers, work),
            lambda: torn.logs(writers, work),
            lambda: torn.torn(work),
            lambda: torn.snapshots(work),
            lambda: enrichments(work),
            lambda: inputs(work),
            lambda: vectors(context.tools.indexes.embedder, work),
        ]
        for done, step in enumerate(steps):
            context.progress(done, len(steps))
            try:
                for case in step():  # one by one: what was done before an error is kept
                    found.append(case)
            except (EnvironmentUnusable, EmbeddingFailed) as error:
                notes.append(f"Cases are left out: {error}")
        context.progress(len(steps), len(steps))
    cases = [_placed(case, work) for case in found]
    return SuiteResult(
        suite=NAME,
        title=TITLE,
        question=QUESTION,
        data=(_info(cases),),
        rates=tuple(_rates(cases)),
        numbers=tuple(map(_number, cases)),
        plants=tuple(_plants(cases)),
        notes=(*notes, *_silent(cases)),
        settings={"sqlite": sqlite3.sqlite_version, "lancedb": _lancedb(), "cases": [case.id for case in cases]},
    )


def _lancedb() -> str:
    try:
        return lancedb_version()
    except EnvironmentUnusable:
        return "not installed"


def _placed(case: Case, work: Path) -> Case:
    """Without the private folder of this run, which is another each time."""
    return case.model_copy(update={"told": case.told.replace(f"{work}/", "")})


def _info(cases: Sequence[Case]) -> DataInfo:
    counts = {"cases": len(cases), "of the lab's ways": sum(not case.baseline for case in cases)}
    return DataInfo(
        name=DATA,
        purpose=Purpose.DEVELOPMENT,
        digest=digest([case.id for case in cases]),
        counts=counts | {"stores": len({case.store for case in cases}), "faults": len({case.fault for case in cases})},
        source="invented texts; faults made while the suite runs",
    )


def _rates(cases: Sequence[Case]) -> Iterator[Rate]:
    """Shares by store, then the silent losses by fault."""
    own, plain = [c for c in cases if not c.baseline], [c for c in cases if c.baseline]
    by_system = {"all stores": own} | {one.store: [c for c in own if c.store == one.store] for one in own}
    for system, some in (*by_system.items(), (BASELINE, plain)):
        lossy = [case for case in some if case.verdict is not Verdict.NOTHING_LOST]
        yield _share("cases in which nothing was lost", "high", system, "cases", Verdict.NOTHING_LOST, some)
        yield _share("losses that were told", "high", system, "cases with a loss", Verdict.LOSS_TOLD, lossy)
        yield _share("silent losses", "low", system, "cases", Verdict.SILENT, some)
    for system, some in (("all stores", own), (BASELINE, plain)):
        for fault in dict.fromkeys(case.fault for case in some):
            among = [case for case in some if case.fault == fault]
            yield _share("silent losses", "low", system, "cases", Verdict.SILENT, among, fault=fault)


def _share(
    measure: str, better: str, system: str, of: str, verdict: Verdict, among: Sequence[Case], **group: str
) -> Rate:
    return rate(
        measure,
        system=system,
        data=DATA,
        counted=[case.id for case in among if case.verdict is verdict],
        among=[case.id for case in among],
        of=of,
        better=better,
        group=group,
    )


def _number(case: Case) -> Number:
    return Number(
        measure=f"left after: {case.fault} · {case.way}",
        system=f"{case.store} (baseline way)" if case.baseline else case.store,
        data=DATA,
        value=None if case.after.rows is None else float(case.after.rows),
        unit="rows",
        detail=case.detail,
    )


def _plants(cases: Sequence[Case]) -> Iterator[Plant]:
    by_key = {(case.fault, case.way, case.store): case for case in cases}
    pairs = [(name, (fault, way, store), (fault, twin, store)) for name, fault, way, twin, store in _PLANTS]
    for name, planted, twin in (*pairs, *_PAIRS):
        for key, clean in ((planted, False), (twin, True)):
            # What could not be run is left out here, and said in the notes.
            if case := by_key.get(key):
                reported = case.verdict is not Verdict.NOTHING_LOST
                yield Plant(
                    fault=name, clean=clean, reported=reported, detail=f"{case.way}, {case.store}: {case.detail}"
                )


def _silent(cases: Sequence[Case]) -> list[str]:
    """The silent losses of the lab's own ways, one line each: what is to be mended."""
    silent = [case for case in cases if case.verdict is Verdict.SILENT and not case.baseline]
    return [f"Lost silently: {case.store}: {case.fault}, {case.way}." for case in silent]
