"""The labelled topics of the suite, their session logs and facts, and the memory that is built of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from lab.errors import InputError
from lab.memories.hfea.archive import Archive, create_archive, open_archive
from lab.memories.hfea.messages import Message, read_logs
from lab.memories.hfea.nightly import run_nightly
from lab.retrieval.build_database import build_database
from lab.retrieval.data.lines import BrokenData
from lab.retrieval.testset import Fact, Purpose
from lab.suites.base import DataInfo
from lab.suites.labelled import Labelled, Words, digest_of, labelled_lines

SESSIONS, FACTS, TOPICS = "sessions.jsonl", "facts.jsonl", "topics.jsonl"
OWNER, STRANGER = "agent-owner", "agent-stranger"
GUIDE = "scenarios/suites/fallback/README.md"
ZONE = "America/Sao_Paulo"


class Kind(StrEnum):
    """Where the answer of a topic is."""

    ARCHIVE = "archive"
    NORMAL = "normal"
    NEITHER = "neither"
    CONTRADICTION = "contradiction"
    SENTIMENT = "sentiment"
    HOSTED = "hosted"


NEEDED = (Kind.ARCHIVE, Kind.HOSTED, Kind.NORMAL, Kind.NEITHER)
"""Kinds of topics without which no setting can be chosen and no fault planted."""


class FactLine(Fact, Labelled):
    """One fact of the normal memory."""


class FallbackTopic(Labelled):
    """A labelled topic.

    Attributes:
        text: The question.
        language: BCP 47 tag.
        kind: ``archive`` and ``hosted``: only the archive answers, and of a hosted one the message holds an
            instruction; ``normal``: a fact answers; ``neither``: nothing does; ``contradiction``: two sources answer
            differently; ``sentiment``: an attitude that nobody has stated, though messages allow to infer it.
        answers: Strings that an answer holds, to the character: one of them, of a contradiction each.
        messages: Ids of the messages that answer; of a sentiment, of those that tempt.
        facts: Ids of the facts that answer.
        instruction: The instruction in a hosted message.
    """

    text: Words
    language: str
    kind: Kind
    answers: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    instruction: str = ""


@dataclass(frozen=True)
class World:
    """One set and the memory that is built of it.

    Attributes:
        name: Name of the set.
        folder: Where its files and the memory lie.
        topics: Its topics.
        labels: Text of the facts by id.
        messages: Messages by id.
        database: The normal memory.
        path: Folder of the archive.
        info: What it holds.
    """

    name: str
    folder: Path
    topics: tuple[FallbackTopic, ...]
    labels: dict[str, str]
    messages: dict[str, Message]
    database: Path
    path: Path
    info: DataInfo

    def archive(self) -> Archive:
        """Opens the archive as its owner."""
        return open_archive(self.path, OWNER)

    def of(self, *kinds: Kind) -> list[FallbackTopic]:
        """The topics of some kinds."""
        return [topic for topic in self.topics if topic.kind in kinds]


def load_world(data: Path, work: Path, purpose: Purpose) -> World:
    """Loads a set, checks its labels, and builds memory and archive from it.

    Args:
        data: Folder with sessions, facts and topics.
        work: An empty folder to build in.
        purpose: What the set may be used for.

    Raises:
        InputError: A file is missing or broken, or a label does not hold, and file and line are named; or a development
            set lacks a kind of topics that is needed.
    """
    facts = {fact.id: fact for _, fact in labelled_lines(data / FACTS, FactLine, GUIDE)}
    sessions = work / "sessions"
    sessions.mkdir(parents=True)
    try:
        told = (data / SESSIONS).read_bytes()
    except OSError as error:
        raise InputError(f"{data / SESSIONS} cannot be read: {error.strerror}", f"see {GUIDE}") from error
    (sessions / SESSIONS).write_bytes(told)
    logs = read_logs(sessions)
    messages = {message.id: message for message in logs.messages}
    if logs.damages or len(messages) != len(logs.messages):
        fault = logs.damages[0] if logs.damages else "two messages have one id"
        raise InputError(f"{data / SESSIONS}: {fault}", "mend the line")
    topics = _topics(data / TOPICS, facts, messages)
    kinds = {topic.kind for topic in topics}
    if purpose is Purpose.DEVELOPMENT and (missing := [kind for kind in NEEDED if kind not in kinds]):
        raise InputError(f"{data / TOPICS} has no topic of the kind {missing[0]}", f"add one, see {GUIDE}")
    build_database(list(facts.values()), work / "memory_store.db")
    archive = create_archive(work / "archive", OWNER, ZONE)
    run_nightly(archive, sessions)
    info = DataInfo(
        name=data.name,
        purpose=purpose,
        digest=digest_of(messages.values(), facts.values(), topics),
        counts={
            "messages": len(messages),
            "facts": len(facts),
            "topics": len(topics),
            **{f"{kind} topics": n for kind, n in sorted(Counter(topic.kind.value for topic in topics).items())},
        },
        source="invented for this suite, line by line, English and Brazilian Portuguese",
    )
    texts = {fact.id: fact.text for fact in facts.values()}
    return World(data.name, work, topics, texts, messages, work / "memory_store.db", archive.path, info)


def _topics(path: Path, facts: dict[str, FactLine], messages: dict[str, Message]) -> tuple[FallbackTopic, ...]:
    found = []
    for number, topic in labelled_lines(path, FallbackTopic, GUIDE):
        if fault := _fault(topic, facts, messages):
            raise BrokenData(path, number, f"topic {topic.id}: {fault}", "mend the label")
        found.append(topic)
    return tuple(found)


def _fault(topic: FallbackTopic, facts: dict[str, FactLine], messages: dict[str, Message]) -> str:
    """What is wrong with a topic's labels; empty where they hold as far as a machine can tell."""
    if unknown := [i for i in topic.messages if i not in messages] + [i for i in topic.facts if i not in facts]:
        return f"{unknown[0]} is no message or fact"
    named = [messages[i].text for i in topic.messages] + [facts[i].text for i in topic.facts]
    if missing := [answer for answer in topic.answers if not any(answer in text for text in named)]:
        return f"no source that it names holds {missing[0]!r}"
    wanted = _WANTED[topic.kind]
    if (bool(topic.answers), bool(topic.messages), bool(topic.facts)) not in wanted:
        return f"answers, messages and facts are not those of the kind {topic.kind.value}"
    hosts = any(topic.instruction in messages[i].text for i in topic.messages)
    if (topic.kind is Kind.HOSTED) is not bool(topic.instruction) or (not hosts and topic.instruction):
        return "a hosted topic, and no other, has an instruction that one of its messages holds"
    return ""


_WANTED = {
    Kind.ARCHIVE: {(True, True, False)},
    Kind.HOSTED: {(True, True, False)},
    Kind.NORMAL: {(True, False, True)},
    Kind.NEITHER: {(False, False, False)},
    Kind.SENTIMENT: {(False, True, False)},
    Kind.CONTRADICTION: {(True, True, False), (True, False, True), (True, True, True)},
}
"""Whether a topic of a kind has answers, messages and facts."""
