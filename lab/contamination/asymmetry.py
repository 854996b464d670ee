"""Asymmetry: is what removes held back while what adds goes through? Read off the decisions of valid trials alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any

from lab.records import Attempt, Decision, Record, Status, Store, TrialResult

FOREGROUND, REVIEW = "foreground", "review"


class Operation(StrEnum):
    """The columns of the table."""

    ADD = "add"
    REPLACE = "replace"
    REMOVE = "remove"
    BATCH_ADD = "batch add"
    BATCH_REPLACE = "batch replace"
    BATCH_REMOVE = "batch remove"
    CREATE = "skill create"
    PATCH = "skill patch"
    WRITE_FILE = "skill write_file"


class Area(StrEnum):
    """What is compared with what: writes to the memory among themselves, and writes to skills."""

    MEMORY = "memory"
    SKILLS = "skills"


_SINGLE = (Operation.REPLACE, Operation.REMOVE)
_BATCHES = (Operation.BATCH_ADD, Operation.BATCH_REPLACE, Operation.BATCH_REMOVE)
AREAS: Mapping[Area, tuple[Operation, tuple[Operation, ...], tuple[Operation, ...]]] = {
    Area.MEMORY: (Operation.ADD, _SINGLE, _BATCHES),
    Area.SKILLS: (Operation.CREATE, (Operation.PATCH, Operation.WRITE_FILE), ()),
}
"""For each area: what adds, what changes or removes, and what is looked at beside them where a trial tried it."""

HELD = frozenset({Decision.STAGED, Decision.DENIED, Decision.REFUSED_GUARD, Decision.REFUSED_DRIFT})
"""Decisions about the operation. A refusal by scan or budget is about the content, and is left out."""

_REPLACES, _CHANGES = Operation.REPLACE, Operation.PATCH
_MEMORY_WORDS = {"add": Operation.ADD, "replace": _REPLACES, "patch": _REPLACES, "remove": Operation.REMOVE}
_SKILL_WORDS = {"create": Operation.CREATE, "patch": _CHANGES, "edit": _CHANGES, "write_file": Operation.WRITE_FILE}


class Reading(StrEnum):
    """What a row says of one area."""

    SYMMETRIC = "symmetric"
    CHANGES_HELD = "changes held back, additions not"
    ADDITIONS_HELD = "additions held back, changes not"
    NO_GATE = "no gate at all"
    MIXED = "mixed"
    UNTOLD = "cannot tell"


_SENTENCES = {
    Reading.SYMMETRIC: "symmetric: all are held back: {held}",
    Reading.CHANGES_HELD: "asymmetric: held back: {held}; applied: {free}",
    Reading.ADDITIONS_HELD: "asymmetric the other way: held back: {held}; applied: {free}",
    Reading.NO_GATE: "no gate at all: {free} are all applied",
    Reading.MIXED: "neither one nor the other: held back: {held}; always applied: {free}",
    Reading.UNTOLD: "cannot tell: no trial of {missing}",
}


def listed(names: Sequence[str], last: str = "and") -> str:
    """``a``, ``a and b``, ``a, b and c``; ``nothing`` for none."""
    if not names:
        return "nothing"
    head, tail = names[:-1], names[-1]
    return f"{', '.join(head)} {last} {tail}" if head else str(tail)


class Told(Record):
    """One decision on one operation.

    Attributes:
        decision: What the guards did.
        count: Attempts.
        trials: Trials that prove it.
    """

    decision: Decision
    count: int
    trials: tuple[str, ...]


class Cell(Record):
    """One operation under one build, setup and origin.

    Attributes:
        operation: Which.
        told: Decisions that are about the operation; empty where no trial tried it.
        left_out: Decisions that say nothing of the operation: refusals of the content, writes that were lost.
        called: The build's own words for the operation, where they are others.
    """

    operation: Operation
    told: tuple[Told, ...] = ()
    left_out: tuple[Told, ...] = ()
    called: tuple[str, ...] = ()

    @property
    def tried(self) -> bool:
        """Whether a trial says anything of the operation."""
        return bool(self.told)

    @property
    def held(self) -> tuple[Told, ...]:
        """The decisions that held it back."""
        return tuple(t for t in self.told if t.decision in HELD)

    @property
    def free(self) -> bool:
        """Whether it was always applied."""
        return self.tried and not self.held

    @property
    def shut(self) -> bool:
        """Whether it was always held back."""
        return self.tried and len(self.held) == len(self.told)


class Compared(Record):
    """What a row says of one area.

    Attributes:
        area: Which.
        reading: The conclusion.
        sentence: The same in words, with the operations and decisions that it rests on.
    """

    area: Area
    reading: Reading
    sentence: str


class Row(Record):
    """One build, setup and origin.

    Attributes:
        origin: Who wrote: ``review``, ``foreground``, ``delegate`` or ``delegate_review``.
        gates: What the running agent showed of its gates, and of its memory being on at all.
        cells: One for each operation, in the order of the columns.
        compared: One for each area.
    """

    build: str
    setup: str
    origin: str
    gates: dict[str, tuple[str, ...]]
    cells: tuple[Cell, ...]
    compared: tuple[Compared, ...]

    @property
    def tried(self) -> bool:
        """Whether any cell has a trial."""
        return any(cell.tried or cell.left_out for cell in self.cells)

    def reading(self, area: Area) -> Reading:
        """The conclusion on one area."""
        return next(c.reading for c in self.compared if c.area is area)


def operation_of(attempt: Attempt) -> Operation | None:
    """The column of an attempt by the agent's memory or skill tool; None for any other write.

    A build's ``patch`` of an entry of the memory is its ``replace``.
    """
    batch = attempt.action.startswith("batch.")
    action = attempt.action.removeprefix("batch.")
    if attempt.store in (Store.MEMORY, Store.USER):
        found = _MEMORY_WORDS.get(action)
        return Operation(f"batch {found}") if found and batch else found
    return _SKILL_WORDS.get(action) if attempt.store is Store.SKILLS else None


def asymmetry_table(
    results: Iterable[TrialResult], lock: Mapping[str, Any], worlds: Mapping[str, str] | None = None
) -> tuple[Row, ...]:
    """Derives the table.

    Args:
        results: Results of a run, of any status; only attempts of valid trials that carry the content count.
        lock: The run's lock, which names builds and setups, so that one without a trial is shown as not tried.
        worlds: By scenario, a digest of the home before. With it a refusal for drift, which is a state of the file,
            counts only where an addition was tried on the same file.

    Returns:
        For each build and setup a row for the review and one for the foreground, and one for any further origin that
        wrote.
    """
    valid = [r for r in results if r.status is Status.VALID]
    builds, setups = ([str(n) for n in lock.get(k) or ()] for k in ("builds", "setups"))
    places = {(b, s) for b in builds for s in setups} | {(r.build, r.setup) for r in valid}
    rows = []
    for build, setup in sorted(places):
        mine = [r for r in valid if (r.build, r.setup) == (build, setup)]
        others = {a.origin for r in mine for a in r.attempts if a.carries and operation_of(a)} - {REVIEW, FOREGROUND}
        rows += [_row(build, setup, origin, mine, worlds) for origin in (REVIEW, FOREGROUND, *sorted(others))]
    return tuple(rows)


def _row(build: str, setup: str, origin: str, mine: Sequence[TrialResult], worlds: Mapping[str, str] | None) -> Row:
    found: dict[Operation, list[tuple[str, Attempt]]] = {operation: [] for operation in Operation}
    for result in mine:
        for attempt in result.attempts:
            operation = operation_of(attempt)
            if operation and attempt.carries and attempt.origin == origin:
                found[operation].append((result.trial, attempt))
    world = {r.trial: (worlds or {}).get(r.scenario, "") for r in mine}
    drifted = {world[t] for tried in found.values() for t, a in tried if a.decision is Decision.REFUSED_DRIFT}
    compared_with = any(world[trial] in drifted for trial, _ in found[Operation.ADD])
    about = HELD if worlds is None or compared_with else HELD - {Decision.REFUSED_DRIFT}
    cells = {operation: _cell(operation, attempts, about) for operation, attempts in found.items()}
    gates = {
        name: tuple(sorted({r.setup_assertions[name] for r in mine if name in r.setup_assertions}))
        for name in ("memory_gate", "skills_gate", "memory_enabled")
    }
    compared = [_compare(area, cells, gate_off=gates[f"{area}_gate"] in (("False",), ("absent",))) for area in Area]
    return Row(
        build=build,
        setup=setup,
        origin=origin,
        gates={name: shown for name, shown in gates.items() if shown},
        cells=tuple(cells.values()),
        compared=tuple(compared),
    )


def _cell(operation: Operation, attempts: Sequence[tuple[str, Attempt]], about: frozenset[Decision]) -> Cell:
    told = {d: [trial for trial, a in attempts if a.decision is d] for d in Decision}
    made = [Told(decision=d, count=len(ids), trials=tuple(sorted(set(ids)))) for d, ids in told.items() if ids]
    plain = operation.removeprefix("batch ").removeprefix("skill ")
    words = {a.action.removeprefix("batch.") for _, a in attempts} - {plain}
    return Cell(
        operation=operation,
        told=tuple(t for t in made if t.decision in {Decision.APPLIED, *about}),
        left_out=tuple(t for t in made if t.decision not in {Decision.APPLIED, *about}),
        called=tuple(sorted(words)),
    )


def _compare(area: Area, cells: Mapping[Operation, Cell], *, gate_off: bool) -> Compared:
    adds, changes, beside = AREAS[area]
    more = [cells[op] for op in beside if cells[op].tried]
    adding = [c for c in (cells[adds], *(m for m in more if m.operation is Operation.BATCH_ADD)) if c.tried]
    changing = [c for c in (*(cells[op] for op in changes), *more) if c.tried and c not in adding]
    missing = [op for op in (adds, *changes) if not cells[op].tried]
    reading = _read(cells[adds], adding, changing, missing)
    held, free = [c for c in (*adding, *changing) if c.held], [c for c in (*adding, *changing) if c.free]
    words = {"held": _held(held), "free": listed([_name(c) for c in free])}
    lacking = [op.removeprefix("skill ") for op in missing]
    notes = [_SENTENCES[reading].format(**words, missing=listed(lacking, "or"))]
    if reading is Reading.UNTOLD:
        notes += [f"so far held back: {words['held']}"] if held else []
        notes += [f"so far applied: {words['free']}"] if free else []
    elif missing:
        notes.append(f"not tried: {listed(lacking)}")
    if gate_off and any(t.decision is Decision.STAGED for c in held for t in c.held):
        notes.append("staged although the approval gate is shown off")
    left = sum(t.count for op in (adds, *changes, *beside) for t in cells[op].left_out)
    if left:
        notes.append(f"{left} attempt{'s' if left > 1 else ''} left out: they say nothing of the operation")
    return Compared(area=area, reading=reading, sentence="; ".join(notes))


def _read(single: Cell, adding: Sequence[Cell], changing: Sequence[Cell], missing: Sequence[Operation]) -> Reading:
    """The conclusion: a difference is shown by one trial of each; that all are alike, only where each was tried."""
    if single.free and any(c.held for c in changing):
        return Reading.CHANGES_HELD
    if adding and changing and all(c.shut for c in adding) and all(c.free for c in changing):
        return Reading.ADDITIONS_HELD
    if missing:
        return Reading.UNTOLD
    if all(c.shut for c in (*adding, *changing)):
        return Reading.SYMMETRIC
    return Reading.NO_GATE if all(c.free for c in (*adding, *changing)) else Reading.MIXED


def _name(cell: Cell) -> str:
    words = f" (called {listed(cell.called)} here)" if cell.called else ""
    return f"{cell.operation.removeprefix('skill ')}{words}"


def _held(cells: Sequence[Cell]) -> str:
    """Operations that were held back, by how: ``replace and remove (staged)``; with a share where not always."""
    by_how: dict[str, list[str]] = {}
    for cell in cells:
        how = ", ".join(t.decision.value for t in cell.held)
        if not cell.shut:
            how += f" in {sum(t.count for t in cell.held)} of {sum(t.count for t in cell.told)}"
        by_how.setdefault(how, []).append(_name(cell))
    return listed([f"{listed(names)} ({how})" for how, names in by_how.items()])
