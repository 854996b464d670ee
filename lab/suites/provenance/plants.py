"""Planted faults of extractors and of data, with clean twins: labels that are bad in a known way, and harmless ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from lab.errors import InputError
from lab.retrieval.testset import Author, Purpose
from lab.suites.base import Plant
from lab.suites.provenance.alarms import alarms
from lab.suites.provenance.data import UTTERANCES, Labels, Part, Role, Utterance, Voice, load_part, load_parts

Change = Callable[[Sequence[Utterance]], list[Labels]]
"""What a planted extractor says: it knows the truth and spoils it."""


@dataclass(frozen=True)
class Fault:
    """An extractor's fault.

    Attributes:
        name: What is wrong.
        alarm: The alarm that must tell of it.
        spoil: The answers of an extractor that has it.
        twin: What the clean twin does instead.
        harmless: The answers of the clean twin.
    """

    name: str
    alarm: str
    spoil: Change
    twin: str
    harmless: Change


def planted(part: Part, work: Path) -> list[Plant]:
    """Plants every fault and its clean twin.

    Args:
        part: The truth that is spoilt.
        work: A private folder for planted files.
    """
    plants = []
    for fault in FAULTS:
        rung = alarms(part, fault.spoil(part.utterances))
        seen = rung.get(fault.alarm)
        detail = f"{fault.alarm}: {seen}" if seen else f"not seen; other alarms: {', '.join(rung) or 'none'}"
        plants.append(Plant(fault=fault.name, reported=seen is not None, detail=detail))
        clean = alarms(part, fault.harmless(part.utterances))
        detail = f"{fault.twin}: " + ("; ".join(f"{name}: {told}" for name, told in clean.items()) or "no alarm")
        plants.append(Plant(fault=fault.name, clean=True, reported=bool(clean), detail=detail))
    return plants + list(_files(part, work))


def _files(part: Part, work: Path) -> Iterator[Plant]:
    rows = [one.model_dump(mode="json") for one in part.utterances]
    labels = ("author", "persons", "quotes", "preferences")
    moved = [row | {name: rows[at - 1][name] for name in labels} for at, row in enumerate(rows)]
    fault = "labels of a file moved down by one row"
    for clean, written in ((False, moved), (True, rows)):
        folder = work / f"rows-{clean}"
        _write(folder, written)
        yield _refused(fault, clean, work, partial(load_part, folder, Purpose.DEVELOPMENT))
    fault = "a text of the development part in the hold-out"
    single = next(row for row in rows if not row["pair"])
    for clean, text in ((False, single["text"]), (True, f"{single['text']} ({len(rows)})")):
        root = work / f"leak-{clean}"
        _write(root / "development", rows)
        _write(root / "holdout", [single | {"id": "h-planted", "text": text}])
        yield _refused(fault, clean, work, partial(load_parts, root))


def _write(folder: Path, rows: Sequence[dict[str, Any]]) -> None:
    folder.mkdir(parents=True)
    lines = (Utterance.model_construct(**row).model_dump_json(warnings=False) for row in rows)
    (folder / UTTERANCES).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _refused(fault: str, clean: bool, work: Path, load: Callable[[], object]) -> Plant:
    try:
        load()
    except InputError as error:
        return Plant(fault=fault, clean=clean, reported=True, detail=error.message.replace(f"{work}/", ""))
    return Plant(fault=fault, clean=clean, reported=False, detail="the files were read")


def _truth(these: Sequence[Utterance]) -> list[Labels]:
    return [Labels(**{name: getattr(one, name) for name in Labels.model_fields}) for one in these]


def _each(change: Callable[[Labels], dict[str, object]]) -> Change:
    return lambda these: [one.model_copy(update=change(one)) for one in _truth(these)]


def _every(step: int, change: Callable[[Labels], dict[str, object]]) -> Change:
    return lambda these: [
        one if at % step else one.model_copy(update=change(one)) for at, one in enumerate(_truth(these))
    ]


def _swap(one: Labels) -> dict[str, object]:
    other = {Role.UTTERED_BY: Role.ADDRESSEE, Role.ADDRESSEE: Role.UTTERED_BY, Role.MENTIONED: Role.MENTIONED}
    return {"persons": tuple(p.model_copy(update={"role": other[p.role]}) for p in one.persons)}


def _speakers(kind: Author) -> Callable[[Labels], dict[str, object]]:
    voice = Voice(kind=kind)
    return lambda one: {"quotes": tuple(q.model_copy(update={"speaker": voice}) for q in one.quotes)}


def _moved(these: Sequence[Utterance]) -> list[Labels]:
    truth = _truth(these)
    return [truth[-1], *truth[:-1]]


def _authors_moved(these: Sequence[Utterance]) -> list[Labels]:
    truth = _truth(these)
    return [one.model_copy(update={"author": truth[at - 1].author}) for at, one in enumerate(truth)]


def _capitals(one: Labels) -> dict[str, object]:
    return {"persons": tuple(p.model_copy(update={"name": p.name.upper()}) for p in one.persons)}


def _no_portuguese(step: int) -> Change:
    def spoil(these: Sequence[Utterance]) -> list[Labels]:
        nothing: dict[str, object] = {"persons": (), "quotes": (), "preferences": ()}
        return [
            one.model_copy(update=nothing) if true.language == "pt-BR" and at % step == 0 else one
            for at, (true, one) in enumerate(zip(these, _truth(these), strict=True))
        ]

    return spoil


_USER = Voice(kind=Author.USER)

FAULTS: tuple[Fault, ...] = (
    Fault(
        "speaker and addressee swapped",
        f"swapped {Role.UTTERED_BY} and {Role.ADDRESSEE}",
        _each(_swap),
        "persons in reverse order",
        _each(lambda one: {"persons": one.persons[::-1]}),
    ),
    Fault(
        "every quotation is the user's",
        "constant speaker",
        _each(_speakers(Author.USER)),
        "every seventh message's quotations are the user's",
        _every(7, _speakers(Author.USER)),
    ),
    Fault("labels of the row above", "ungrounded", _moved, "names in capitals", _each(_capitals)),
    Fault(
        "authors of the row above, all else right",
        "shifted",
        _authors_moved,
        "every tenth author is the user",
        _every(10, lambda _: {"author": _USER}),
    ),
    Fault(
        "every author is the user",
        "constant author",
        _each(lambda _: {"author": _USER}),
        "no author is named",
        _each(lambda one: {"author": Voice(kind=one.author.kind)}),
    ),
    Fault(
        "calls taken for subjects, and subjects for calls",
        "vocatives inverted",
        _each(lambda one: {"persons": tuple(p.model_copy(update={"vocative": not p.vocative}) for p in one.persons)}),
        "every other message's calls missed",
        _every(2, lambda one: {"persons": tuple(p.model_copy(update={"vocative": False}) for p in one.persons)}),
    ),
    Fault(
        "every preference is the user's",
        "every preference is the user's",
        _each(lambda one: {"preferences": (_USER,) if one.preferences else ()}),
        "own preferences missed",
        _each(lambda one: {"preferences": tuple(v for v in one.preferences if v.kind is not Author.USER)}),
    ),
    Fault(
        "nothing found in Portuguese",
        "no persons in pt-BR",
        _no_portuguese(1),
        "nothing found in half of the Portuguese messages",
        _no_portuguese(2),
    ),
    Fault(
        "each person given every role",
        "doubled",
        _each(lambda o: {"persons": tuple(p.model_copy(update={"role": r}) for p in o.persons for r in Role)}),
        "each person given once, as mentioned where called",
        _each(
            lambda o: {
                "persons": tuple(p.model_copy(update={"role": Role.MENTIONED}) if p.vocative else p for p in o.persons)
            }
        ),
    ),
)
"""Faults of extractors; each must ring its alarm, each twin none."""
