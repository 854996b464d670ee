"""Imports LoCoMo: one store per conversation, a turn is a fact, and questions of other conversations have no answer."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.retrieval.data.draw import sample
from lab.retrieval.data.foreign import head_of, member, one_json
from lab.retrieval.data.head import SetHead
from lab.retrieval.data.lines import BrokenData, json_document
from lab.retrieval.testset import Fact, TestSet, Topic

CLASSES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop", 5: "adversarial"}
"""Names of the categories; peers that rotate them publish one class's numbers under another's name."""

ADVERSARIAL = 5
NO_ANSWER = "no-answer"
CROSS_STORE = 40
"""Questions of each conversation that are asked of another one."""

_HEAD = SetHead(
    name="locomo",
    title="LoCoMo: ten long conversations, one store each",
    licence="CC BY-NC 4.0",
    source="snap-research/LoCoMo, data/locomo10.json",
)
_TURN = re.compile(r"D:?(\d+):(\d+)")
_TIME = re.compile(r"(\d{1,2}):(\d\d) ([ap]m) on (\d{1,2}) ([A-Z][a-z]+), (\d{4})")
_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)


@dataclass(frozen=True)
class _Question:
    """A question with the turns that answer it, repaired.

    Attributes:
        id: Unique in the file.
        text: The question.
        category: 1 to 5.
        evidence: Ids of turns that are there.
        adversarial_answer: Whether the file gives one.
    """

    id: str
    text: str
    category: int
    evidence: frozenset[str]
    adversarial_answer: bool


@dataclass(frozen=True)
class _Conversation:
    name: str
    speakers: frozenset[str]
    facts: tuple[Fact, ...]
    questions: tuple[_Question, ...]


@dataclass
class _Repairs:
    """What was wrong with evidence strings, counted.

    Attributes:
        unusual: Strings that are not the id of a turn as they stand.
        dangling: Ids, after repair, of turns that are not there.
        unusable: Questions that no turn answers.
        doubled: Questions with the words of an earlier one of their conversation.
    """

    unusual: list[str] = field(default_factory=list)
    dangling: list[str] = field(default_factory=list)
    unusable: Counter[str] = field(default_factory=Counter)
    doubled: int = 0

    def notes(self) -> tuple[str, ...]:
        """One line for each kind that occurred."""
        unusable = ", ".join(f"{n} {name}" for name, n in sorted(self.unusable.items()))
        lines = {
            f"repaired: {len(self.unusual)} evidence strings that are no id of a turn as they stand, by the ids in them"
            f" ({len(self.dangling)} name turns that are not there)": self.unusual,
            f"left out: questions without usable evidence: {unusable}": unusable,
            f"kept: {self.doubled} questions that are asked twice of their conversation": self.doubled,
        }
        return tuple(line for line, there in lines.items() if there)


def import_locomo(path: Path, *, adversarial: bool = False, cross_store: int = CROSS_STORE, seed: int = 0) -> TestSet:
    """Imports ``locomo10.json``.

    A fact is ``speaker: text [shares caption]``. Category 5 asks of something that was said, but of the other speaker:
    each of its questions has an evidence turn, so it is no class without an answer. Such a class are questions of
    categories 1 to 4 asked of the next conversation between other speakers.

    Args:
        path: The file, or a folder that holds it alone.
        adversarial: Whether category 5 is taken, as a class of its own.
        cross_store: Questions of each conversation that are asked of another one.
        seed: Decides which.

    Raises:
        InputError: The file is not of that form, or its categories are not those of LoCoMo.
    """
    file = one_json(path)
    document = json_document(file)
    if not isinstance(document, list) or not document:
        raise BrokenData(file, 1, "no list of conversations", "give locomo10.json as it was published")
    repairs = _Repairs()
    conversations = [_conversation(file, item, f"[{n}]", repairs) for n, item in enumerate(document)]
    _require_profile(file, [question for c in conversations for question in c.questions])
    topics: list[Topic] = []
    qrels: dict[str, frozenset[str]] = {}
    for conversation in conversations:
        for question in conversation.questions:
            if question.evidence and (adversarial or question.category != ADVERSARIAL):
                topics.append(_topic(question, CLASSES[question.category], question.id, conversation.name))
                qrels[question.id] = question.evidence
    crossed = _crossed(conversations, cross_store, seed)
    left = sum(question.category == ADVERSARIAL for c in conversations for question in c.questions)
    notes = (
        *repairs.notes(),
        f"{'taken on request' if adversarial else 'left out'}: {left} questions of category 5 (adversarial): each has"
        " an evidence turn, so they are no topics without an answer",
        f"no-answer: {len(crossed)} questions asked of the next conversation between other speakers, seed {seed}",
    )
    head = head_of(path, file, _HEAD)
    return TestSet(
        **{**dict(head), "notes": (*head.notes, *notes)},
        stores={conversation.name: conversation.facts for conversation in conversations},
        topics=(*topics, *crossed),
        qrels=qrels,
    )


def _topic(question: _Question, topic_class: str, name: str, store: str) -> Topic:
    return Topic(id=name, text=question.text, topic_class=topic_class, language="en", store=store)


def _crossed(conversations: Sequence[_Conversation], size: int, seed: int) -> list[Topic]:
    """Questions of each conversation, asked of the next one in which none of its speakers speaks."""
    topics = []
    for number, asked in enumerate(conversations):
        others = (*conversations[number + 1 :], *conversations[:number])
        store = next((other for other in others if not asked.speakers & other.speakers), None)
        if store is None:
            continue
        pool = [q for q in asked.questions if q.evidence and q.category != ADVERSARIAL]
        for question in sample(pool, size, seed, lambda q: q.id):
            topics.append(_topic(question, NO_ANSWER, f"{question.id}@{store.name}", store.name))
    return topics


def _require_profile(path: Path, questions: Sequence[_Question]) -> None:
    """Refuses a file whose categories do not look like LoCoMo's: then the names of the classes would be wrong."""

    def share(category: int, holds: list[bool]) -> tuple[float, int]:
        return (sum(holds) / len(holds) if holds else 1.0), category

    by = {c: [q for q in questions if q.category == c and q.evidence] for c in CLASSES}
    shares = (
        share(1, [len(q.evidence) > 1 for q in by[1]]),
        share(2, [q.text.lower().startswith(("when", "how long")) for q in by[2]]),
        share(4, [len(q.evidence) == 1 for q in by[4]]),
        share(5, [q.adversarial_answer for q in by[5]]),
    )
    # Published: 98 % of 1 have several turns, 77 % of 2 begin with "when", 95 % of 4 have one turn, all of 5 have it.
    for (found, category), least in zip(shares, (0.9, 0.5, 0.9, 1.0), strict=True):
        if found < least:
            fault = f"category {category} does not look like LoCoMo's {CLASSES[category]} ({found:.0%} fit)"
            raise BrokenData(path, 1, fault, "the categories may be renumbered: give the file as it was published")


def _conversation(path: Path, value: Any, where: str, repairs: _Repairs) -> _Conversation:
    name = re.sub(r"[^A-Za-z0-9-]", "-", member(path, value, "sample_id", str, where))
    talk = member(path, value, "conversation", dict, where)
    facts: dict[str, Fact] = {}
    speakers = set()
    sessions = sorted((key for key in talk if re.fullmatch(r"session_[0-9]+", key)), key=lambda key: int(key[8:]))
    for session in sessions:
        time = _utc(str(talk.get(f"{session}_date_time", "")))
        for number, turn in enumerate(member(path, talk, session, list, where)):
            place = f"{where}.{session}[{number}]"
            speaker, text, turn_id = (member(path, turn, key, str, place) for key in ("speaker", "text", "dia_id"))
            caption = turn.get("blip_caption")
            shown = f" [shares {caption}]" if isinstance(caption, str) and caption.strip() else ""
            if turn_id in facts:
                raise BrokenData(
                    path, 1, f"{place}: turn {turn_id} is there twice", "give the file as it was published"
                )
            speakers.add(speaker)
            facts[turn_id] = Fact(
                id=f"{name}/{turn_id}", text=f"{speaker}: {text}{shown}", language="en", created_at=time
            )
    questions = []
    seen: set[str] = set()
    for number, asked in enumerate(member(path, value, "qa", list, where), 1):
        place = f"{where}.qa[{number - 1}]"
        text, category = member(path, asked, "question", str, place), member(path, asked, "category", int, place)
        if category not in CLASSES:
            raise BrokenData(path, 1, f"{place} has category {category}", "LoCoMo has categories 1 to 5")
        evidence = _evidence(member(path, asked, "evidence", list, place), facts, repairs)
        if not evidence:
            repairs.unusable[CLASSES[category]] += 1
        repairs.doubled += text in seen
        seen.add(text)
        found = frozenset(facts[turn].id for turn in evidence)
        questions.append(_Question(f"{name}/q{number:03}", text, category, found, "adversarial_answer" in asked))
    return _Conversation(name, frozenset(speakers), tuple(facts.values()), tuple(questions))


def _evidence(strings: list[Any], turns: dict[str, Fact], repairs: _Repairs) -> set[str]:
    """Turns named by evidence strings, some of which hold several ids, a colon too many or a leading zero."""
    found = set()
    for string in map(str, strings):
        if string in turns:
            found.add(string)
            continue
        repairs.unusual.append(string)
        for session, turn in _TURN.findall(string):
            name = f"D{int(session)}:{int(turn)}"
            if name in turns:
                found.add(name)
            else:
                repairs.dangling.append(name)
    return found


def _utc(text: str) -> str:
    """A session's time (``1:56 pm on 8 May, 2023``) in ISO 8601; the file names no zone. Empty where it is another."""
    parts = _TIME.fullmatch(text)
    if not parts or parts[5] not in _MONTHS:
        return ""
    hour = int(parts[1]) % 12 + 12 * (parts[3] == "pm")
    return f"{parts[6]}-{_MONTHS.index(parts[5]) + 1:02}-{int(parts[4]):02}T{hour:02}:{parts[2]}:00Z"
