"""Planted faults: lying copies, careless and paranoid systems, and labels that are wrong."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from lab.errors import InputError
from lab.suites.agreement.data import FILE, PLANTED, Copy, Part, load
from lab.suites.agreement.judge import Judged, judge
from lab.suites.agreement.systems import Checker, CrossCheck, Examined, Retrieval
from lab.suites.base import Plant


class _Flagger:
    """Retrieves perfectly and flags those it is told to.

    Args:
        flags: Ids of the cases.
    """

    name = "planted"

    def __init__(self, flags: frozenset[str]) -> None:
        self._flags = flags

    def examine(self, copies: Sequence[Copy], _folder: Path, /) -> Examined:
        """See ``Checker``."""
        texts = {copy.case.id: copy.text for copy in copies}
        return Examined(texts, frozenset(texts), self._flags)


def planted(part: Part, work: Path) -> Iterator[Plant]:
    """Plants every fault and its clean twin into the development part.

    Args:
        part: The development part.
        work: A private folder.
    """
    worlds = _Worlds(part, work)
    fault = "wrong copies, perfectly retrieved"
    yield worlds.lying(fault, Retrieval(), part.faulty(), clean=False)
    yield worlds.lying(fault, Retrieval(), part.repaired(), clean=True)
    fault = "one wrong copy among sound ones"
    victim = next(copy for copy in part.faulty() if copy.case.kind is PLANTED)
    one = tuple(victim if copy.case.id == victim.case.id else copy for copy in part.repaired())
    yield worlds.flagged(fault, CrossCheck(), one, clean=False)
    yield worlds.flagged(fault, CrossCheck(), part.repaired(), clean=True)
    ids = frozenset(copy.case.id for copy in part.faulty())
    wrong = frozenset(copy.case.id for copy in part.faulty() if copy.wrong)
    for fault, flags in (("a system that flags everything", ids), ("a system that flags nothing", frozenset[str]())):
        yield worlds.unfit(fault, _Flagger(flags), clean=False)
        yield worlds.unfit(fault, _Flagger(wrong), clean=True)
    yield from _files(part, work)


class _Worlds:
    """Examines planted worlds, each in a folder of its own."""

    def __init__(self, part: Part, work: Path) -> None:
        self._part, self._work, self._count = part, work, 0

    def _judged(self, system: Checker, copies: Sequence[Copy]) -> Judged:
        self._count += 1
        folder = self._work / f"planted-{self._count}"
        folder.mkdir()
        return judge(copies, system.examine(copies, folder))

    def lying(self, fault: str, system: Checker, copies: Sequence[Copy], *, clean: bool) -> Plant:
        """Whether the suite says that what is retrieved lies, though all of it is retrieved."""
        seen = self._judged(system, copies)
        detail = f"{len(seen.first)} of {len(copies)} at rank 1, {len(seen.lying)} of them wrong and not flagged"
        return Plant(fault=fault, clean=clean, reported=bool(seen.lying), detail=detail)

    def flagged(self, fault: str, system: Checker, copies: Sequence[Copy], *, clean: bool) -> Plant:
        """Whether the cross-check says something."""
        seen = self._judged(system, copies)
        detail = (
            f"flagged: {', '.join(sorted(seen.flagged)) or 'none'}; wrong: {', '.join(sorted(seen.wrong)) or 'none'}"
        )
        return Plant(fault=fault, clean=clean, reported=bool(seen.flagged), detail=detail)

    def unfit(self, fault: str, system: Checker, *, clean: bool) -> Plant:
        """Whether the two error rates show that a system's flags are worth nothing."""
        seen = self._judged(system, self._part.faulty())
        accused, missed = seen.flagged - seen.wrong, seen.wrong - seen.flagged
        detail = f"{len(accused)} clean copies accused, {len(missed)} wrong ones not flagged"
        return Plant(fault=fault, clean=clean, reported=bool(accused or missed), detail=detail)


def _files(part: Part, work: Path) -> Iterator[Plant]:
    rows = [case.model_dump(mode="json") for case in part.cases]
    right = rows[0] | {
        "stored": rows[0]["stored"].replace(rows[0]["value"], rows[0]["true"][0]),
        "value": rows[0]["true"][0],
    }
    split = rows[0] | {"sources": [rows[0]["stored"], *rows[0]["sources"][1:]]}
    leak = [rows[0] | {"id": "h-planted"}]
    own = [leak[0] | {"question": f"{rows[0]['question']} ({len(rows)})"}]
    for fault, development, holdout, clean in (
        ("a copy labelled wrong that is right", [right, *rows[1:]], None, False),
        ("a copy labelled wrong that is right", rows, None, True),
        ("a source that does not agree, not labelled so", [split, *rows[1:]], None, False),
        ("a source that does not agree, not labelled so", rows, None, True),
        ("a question of the development part in the hold-out", rows, leak, False),
        ("a question of the development part in the hold-out", rows, own, True),
    ):
        root = work / f"files-{clean}-{''.join(c for c in fault if c.isalpha())}"
        for name, written in (("development", development), ("holdout", holdout)):
            if written is not None:
                (root / name).mkdir(parents=True)
                lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in written)
                (root / name / FILE).write_text("".join(lines), encoding="utf-8")
        try:
            load(root)
        except InputError as error:
            yield Plant(fault=fault, clean=clean, reported=True, detail=error.message.replace(f"{root}/", ""))
        else:
            yield Plant(fault=fault, clean=clean, reported=False, detail="the files were read")
