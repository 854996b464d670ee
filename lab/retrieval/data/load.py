"""Loads, checks and saves the folder of a set: ``facts.jsonl``, ``topics.jsonl``, ``qrels.tsv``, ``set.yaml``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import Field, ValidationError

from lab.errors import EnvironmentUnusable, InputError
from lab.records import Record
from lab.retrieval.data.head import HEAD, SetHead, head_beside, set_name
from lab.retrieval.data.judgements import qrels_lines
from lab.retrieval.data.keywords import with_keywords
from lab.retrieval.data.lines import BrokenData, explained, numbered_lines, refuse_escaped_nul
from lab.retrieval.results import OVERALL
from lab.retrieval.testset import MAIN_STORE, Fact, TestSet, Topic
from lab.text import printable

FACTS, TOPICS, QRELS = "facts.jsonl", "topics.jsonl", "qrels.tsv"

SCHEMAS = "schema"
"""Folder of the published JSON Schemas beside the sets."""

MAX_FAULTS = 30
"""Faults told of one set; more would hide the others."""

_Line = TypeVar("_Line", bound=Record)


class FactLine(Fact):
    """One memory: a line of ``facts.jsonl``.

    Attributes:
        store: The store that it lies in, for sets of several.
    """

    store: str = Field(default=MAIN_STORE, pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")


def load_set(folder: Path, *, keywords: bool = False) -> TestSet:
    """Loads a set.

    Args:
        folder: Any folder that holds one.
        keywords: Whether the keyword rule is applied; its keywords then stand in place of what the file says.

    Raises:
        InputError: Naming file, line and mend of the first fault, and how many there are.
    """
    testset = _sound(*_read(folder))
    if keywords:
        stores = {store: with_keywords(facts) for store, facts in testset.stores.items()}
        return testset.model_copy(update={"stores": stores})
    return testset


def load_topics(folder: Path, facts: Sequence[Fact]) -> TestSet:
    """Loads topics and judgements over facts that lie elsewhere: in a snapshot.

    Args:
        folder: Folder with topics and judgements; facts in it are not looked at.
        facts: The facts that the judgements name.

    Raises:
        InputError: As for ``load_set``.
    """
    return _sound(*_read(folder, facts))


def _sound(testset: TestSet | None, faults: Sequence[BrokenData]) -> TestSet:
    if testset is None:
        first, more = faults[0], len(faults) - 1
        said = f"{first.message} (and {more} more fault{'s' * (more > 1)})" if more else first.message
        raise InputError(said, first.mend)
    return testset


def check_set(folder: Path) -> list[BrokenData]:
    """All faults of a set's folder, file by file and by line, at most ``MAX_FAULTS``; empty when all is well."""
    faults = _read(folder)[1]
    if len(faults) > MAX_FAULTS:
        last = BrokenData(folder, 1, f"and {len(faults) - MAX_FAULTS + 1} more faults", "mend the first ones")
        faults = [*faults[: MAX_FAULTS - 1], last]
    return faults


def set_folders(root: Path) -> list[Path]:
    """The folders of sets below a folder, by name; that of the published schemas is none."""
    folders = (path for path in root.glob("*") if path.is_dir())
    return sorted(path for path in folders if path.name != SCHEMAS and not path.name.startswith("."))


def save_set(testset: TestSet, folder: Path) -> None:
    """Writes a set in the form that ``load_set`` reads; fields at their default are left out.

    Raises:
        InputError: The folder is not empty, or an id holds white space, which columns cannot carry.
        EnvironmentUnusable: It cannot be written.
    """
    ids = [fact.id for facts in testset.stores.values() for fact in facts] + [topic.id for topic in testset.topics]
    broken = next((name for name in ids if name.split() != [name]), None)
    if broken is not None:
        raise InputError(f"the id {printable(broken)!r} holds white space", "rename it before the set is saved")
    facts = (
        _json(fact.model_dump(mode="json", exclude_defaults=True) | ({} if store == MAIN_STORE else {"store": store}))
        for store, held in testset.stores.items()
        for fact in held
    )
    topics = (_json(topic.model_dump(mode="json", exclude_defaults=True)) for topic in testset.topics)
    qrels = (f"{t.id}\t0\t{fact}\t1" for t in testset.topics for fact in sorted(testset.qrels.get(t.id, ())))
    head = testset.model_dump(mode="json", include=set(SetHead.model_fields))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise InputError(f"{printable(str(folder))} is not empty", "name a new folder")
        (folder / HEAD).write_text(yaml.safe_dump(head, sort_keys=False, allow_unicode=True), encoding="utf-8")
        for name, lines in ((FACTS, facts), (TOPICS, topics), (QRELS, qrels)):
            with (folder / name).open("w", encoding="utf-8", newline="\n") as stream:
                stream.writelines(f"{line}\n" for line in lines)
    except OSError as error:
        raise EnvironmentUnusable(
            f"{printable(str(folder))} cannot be written: {error.strerror}", "check the disk and the permissions"
        ) from None


def _read(folder: Path, given: Sequence[Fact] | None = None) -> tuple[TestSet | None, list[BrokenData]]:
    if not folder.is_dir():
        fault = "is a file, not the folder of a set" if folder.exists() else "no such folder"
        return None, [BrokenData(folder, 1, fault, f"name a folder that holds {FACTS}, {TOPICS} and {QRELS}")]
    faults: list[BrokenData] = []
    if given is None:
        fact_lines = list(_records(folder / FACTS, FactLine, _fact_fault, faults))
    else:
        fact_lines = [(0, FactLine.model_construct(store=MAIN_STORE, **dict(fact))) for fact in given]
    topic_lines = list(_records(folder / TOPICS, Topic, _topic_fault, faults))
    facts = _unique(folder / FACTS, fact_lines, faults)
    topics = _unique(folder / TOPICS, topic_lines, faults)
    faults += _links(folder, fact_lines, topic_lines, facts)
    # Judgements are looked at only where the ids are known: otherwise each of them would be a fault of its own.
    qrels = {} if faults else _judgements(folder / QRELS, facts, topics, faults)
    head = None
    try:
        head = head_beside(folder)
    except BrokenData as broken:
        faults.append(broken)
    if faults:
        return None, faults
    stores: dict[str, list[Fact]] = {}
    for _, line in fact_lines:
        # Already validated as a line; only the name of the store is taken off.
        plain = Fact.model_construct(**{name: getattr(line, name) for name in Fact.model_fields})
        stores.setdefault(line.store, []).append(plain)
    head = head or SetHead(name=set_name(folder.resolve().name))
    return TestSet(
        **dict(head),
        stores={store: tuple(held) for store, held in stores.items()},
        topics=tuple(topic for _, topic in topic_lines),
        qrels={topic: frozenset(relevant) for topic, relevant in qrels.items()},
    ), []


def _records(
    path: Path, model: type[_Line], look: Callable[[_Line], str], faults: list[BrokenData]
) -> Iterator[tuple[int, _Line]]:
    """The valid lines of a file; what is wrong with the others is added to ``faults``."""
    found = 0
    try:
        for number, text in numbered_lines(path):
            found += 1
            try:
                refuse_escaped_nul(path, number, text)
                # Through JSON and strictly: what the published schema refuses ("1" for 1) is refused here too.
                line = model.model_validate_json(text, strict=True)
            except ValidationError as error:
                faults.append(explained(path, number, error, model))
                continue
            except BrokenData as broken:
                faults.append(broken)
                continue
            if fault := look(line):
                faults.append(BrokenData(path, number, fault, "mend the field"))
            yield number, line
    except BrokenData as broken:
        faults.append(broken)
    else:
        if not found:
            faults.append(BrokenData(path, 1, "the file is empty", f"write one {path.stem.rstrip('s')} a line"))


def _fact_fault(fact: FactLine) -> str:
    if not fact.text.strip():
        return "text is blank"
    if fact.created_at:
        try:
            offset = datetime.fromisoformat(fact.created_at).utcoffset()
        except ValueError:
            return f"created_at {fact.created_at!r} is no ISO 8601 time"
        if offset not in (None, timedelta(0)):
            return f"created_at {fact.created_at!r} is not in UTC"
    for tag in (*fact.tags, *fact.keywords):
        if "," in tag:
            return f"the tag {tag!r} has a comma, which parts tags in a database"
    return _id_fault(fact.id)


def _topic_fault(topic: Topic) -> str:
    if topic.topic_class == OVERALL:
        return f"topic_class {OVERALL} is the name of all classes together"
    return _id_fault(topic.id)


def _id_fault(name: str) -> str:
    return "" if name.split() == [name] else f"the id {name!r} holds white space"


def _unique(path: Path, lines: Iterable[tuple[int, Fact | Topic]], faults: list[BrokenData]) -> dict[str, str]:
    """Store by id; an id that is there twice is a fault."""
    places: dict[str, int] = {}
    stores: dict[str, str] = {}
    for number, line in lines:
        if line.id in places:
            fault = f"the id {line.id} is there twice, first on line {places[line.id]}"
            faults.append(BrokenData(path, number, fault, "rename one of the two"))
        places.setdefault(line.id, number)
        stores[line.id] = getattr(line, "store", MAIN_STORE)
    return stores


def _links(
    folder: Path, facts: list[tuple[int, FactLine]], topics: list[tuple[int, Topic]], stores: dict[str, str]
) -> Iterator[BrokenData]:
    """Faults of what points from one line to another."""
    for number, fact in facts:
        if fact.supersedes is not None and (fact.supersedes == fact.id or stores.get(fact.supersedes) != fact.store):
            fault = f"supersedes {fact.supersedes}, which is no other fact of its store"
            yield BrokenData(folder / FACTS, number, fault, "name the older fact's id")
    known = set(stores.values())
    for number, topic in topics:
        if known and topic.store not in known:
            fault = f"asks store {topic.store}, in which there is no fact"
            yield BrokenData(folder / TOPICS, number, fault, f"stores: {', '.join(sorted(known)[:5])}")


def _judgements(
    path: Path, facts: dict[str, str], topics: dict[str, str], faults: list[BrokenData]
) -> dict[str, set[str]]:
    """Relevant facts by topic."""
    qrels: dict[str, set[str]] = {}
    seen: set[tuple[str, str]] = set()
    try:
        for number, topic, fact, relevance in qrels_lines(path):
            fault, mend = "", "mend the id"
            if topic not in topics:
                fault = f"topic {topic} is not in {TOPICS}"
            elif fact not in facts:
                fault = f"fact {fact} is not in {FACTS}"
            elif facts[fact] != topics[topic]:
                fault = f"fact {fact} is in store {facts[fact]}, topic {topic} asks {topics[topic]}"
            elif (topic, fact) in seen:
                fault, mend = f"topic {topic} and fact {fact} are judged twice", "remove one of the two lines"
            if fault:
                faults.append(BrokenData(path, number, fault, mend))
            seen.add((topic, fact))
            if relevance > 0:
                qrels.setdefault(topic, set()).add(fact)
    except BrokenData as broken:
        faults.append(broken)
    else:
        if not qrels and not faults:
            faults.append(BrokenData(path, 1, "no fact answers any topic", "write: topic, 0, fact, 1"))
    return qrels


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)
