"""Imports reading sets of the SQuAD form as retrieval: find the paragraph that a question was asked of."""

from __future__ import annotations

from pathlib import Path

from lab.retrieval.data.foreign import head_of, member, one_json
from lab.retrieval.data.lines import BrokenData, json_document
from lab.retrieval.testset import MAIN_STORE, Fact, TestSet, Topic


def import_squad(path: Path, *, language: str = "") -> TestSet:
    """Imports a file of the SQuAD form.

    Equal paragraphs become one fact. Questions that are equal but for case and blanks become one topic, which each of
    their paragraphs answers. Questions marked ``is_impossible`` are left out: that *their* paragraph does not answer
    them says nothing of the other paragraphs, so they are no topics without an answer.

    Args:
        path: The file, or a folder that holds it alone.
        language: Language of all texts, a BCP 47 tag; empty where it is not known.

    Raises:
        InputError: The file is not of that form.
    """
    file = one_json(path)
    facts: dict[str, Fact] = {}
    topics: dict[str, Topic] = {}
    relevant: dict[str, set[str]] = {}
    paragraphs = questions = impossible = 0
    for a, article in enumerate(member(file, json_document(file), "data", list, "the document")):
        for p, paragraph in enumerate(member(file, article, "paragraphs", list, f"data[{a}]")):
            where = f"data[{a}].paragraphs[{p}]"
            context = member(file, paragraph, "context", str, where).strip()
            if not context:
                raise BrokenData(file, 1, f"{where} has an empty context", "remove it")
            paragraphs += 1
            fact = facts.setdefault(context, Fact(id=f"p{len(facts) + 1:05}", text=context, language=language))
            for q, asked in enumerate(member(file, paragraph, "qas", list, where)):
                questions += 1
                if isinstance(asked, dict) and asked.get("is_impossible") is True:
                    impossible += 1
                    continue
                text = member(file, asked, "question", str, f"{where}.qas[{q}]").strip()
                same = " ".join(text.casefold().split())
                topic = topics.setdefault(same, Topic(id=f"q{len(topics) + 1:05}", text=text, language=language))
                relevant.setdefault(topic.id, set()).add(fact.id)
    if not topics:
        raise BrokenData(file, 1, "no answerable question", "give a file of the SQuAD form")
    merged = {
        f"{paragraphs - len(facts)} paragraphs that are there twice became one": paragraphs - len(facts),
        f"{questions - impossible} questions, {len(topics)} different: equal ones became one topic": (
            questions - impossible - len(topics)
        ),
        f"left out: {impossible} questions marked impossible": impossible,
    }
    head = head_of(path, file)
    return TestSet(
        **{**dict(head), "notes": (*head.notes, *(note for note, n in merged.items() if n))},
        stores={MAIN_STORE: tuple(facts.values())},
        topics=tuple(topics.values()),
        qrels={topic: frozenset(found) for topic, found in relevant.items()},
    )
