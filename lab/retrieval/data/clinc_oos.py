"""Imports CLINC150 (oos-eval): intents as clusters of facts, and questions that belong to none of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lab.retrieval.data.draw import sample
from lab.retrieval.data.foreign import head_of, member, one_json
from lab.retrieval.data.head import SetHead
from lab.retrieval.data.lines import BrokenData, json_document
from lab.retrieval.testset import MAIN_STORE, Fact, TestSet, Topic

PER_INTENT = 5
"""Facts kept of each intent: with all hundred of them nearly every ranking has a hit in its first ten."""

IN_SCOPE, OUT_OF_SCOPE = "in-scope", "out-of-scope"

_HEAD = SetHead(
    name="clinc-oos",
    title="CLINC150: utterances of 150 intents, and out-of-scope ones",
    licence="CC BY 3.0",
    source="clinc/oos-eval, data/data_full.json",
)


def import_clinc_oos(path: Path, *, per_intent: int = PER_INTENT, seed: int = 0) -> TestSet:
    """Imports ``data_full.json``.

    Training utterances are the facts, thinned; test utterances are the topics, answered by the facts of their intent.
    The out-of-scope utterances of the test split are the topics without an answer.

    Args:
        path: The file, or a folder that holds it alone.
        per_intent: Facts kept of each intent.
        seed: Decides which.

    Raises:
        InputError: The file is not of that form.
    """
    file = one_json(path)
    document = json_document(file)
    trained = _utterances(file, document, "train")
    intents: dict[str, list[tuple[int, str]]] = {}
    for number, (text, intent) in enumerate(trained, 1):
        intents.setdefault(intent, []).append((number, text))
    kept = {intent: sample(said, per_intent, seed, lambda item: item[1]) for intent, said in intents.items()}
    numbered = sorted((number, text, intent) for intent, said in kept.items() for number, text in said)
    facts = tuple(Fact(id=f"train-{number:05}", text=text, language="en") for number, text, _ in numbered)
    by_intent = {intent: frozenset(f"train-{number:05}" for number, _ in said) for intent, said in kept.items()}
    topics, qrels = [], {}
    for number, (text, intent) in enumerate(_utterances(file, document, "test"), 1):
        topic = Topic(id=f"test-{number:04}", text=text, topic_class=IN_SCOPE, language="en")
        if intent not in by_intent:
            raise BrokenData(file, 1, f"intent {intent} is tested but not trained", "give the file as it was published")
        topics.append(topic)
        qrels[topic.id] = by_intent[intent]
    for number, (text, _) in enumerate(_utterances(file, document, "oos_test"), 1):
        topics.append(Topic(id=f"oos-{number:04}", text=text, topic_class=OUT_OF_SCOPE, language="en"))
    head = head_of(path, file, _HEAD)
    note = f"thinned: {len(facts)} of {len(trained)} training utterances, {per_intent} of each intent, seed {seed}"
    return TestSet(
        **{**dict(head), "notes": (*head.notes, note)},
        stores={MAIN_STORE: facts},
        topics=tuple(topics),
        qrels=qrels,
    )


def _utterances(path: Path, document: Any, split: str) -> list[tuple[str, str]]:
    """Text and intent of each utterance of a split."""
    rows = member(path, document, split, list, "the document")
    for number, row in enumerate(rows):
        if not (isinstance(row, list) and len(row) == 2 and all(isinstance(x, str) and x.strip() for x in row)):
            raise BrokenData(path, 1, f"{split}[{number}] is no [text, intent]", "give the file as it was published")
    if not rows:
        raise BrokenData(path, 1, f"{split} is empty", "give the file as it was published")
    return [(text, intent) for text, intent in rows]
