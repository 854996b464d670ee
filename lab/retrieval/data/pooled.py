"""Imports the forms of retrieval research, BEIR and TREC: documents, queries and judgements over one pool."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from lab.retrieval.data.foreign import head_of
from lab.retrieval.data.judgements import qrels_lines, whole_number
from lab.retrieval.data.lines import BrokenData, json_objects, numbered_lines, text_field
from lab.retrieval.testset import MAIN_STORE, Fact, TestSet, Topic

_Pairs = Iterable[tuple[Path, int, str, str]]
"""File, line, id and text."""

_TREC_DOCUMENTS = ("docs.jsonl", "docs.tsv", "collection.tsv")
_TREC_TOPICS = ("topics.tsv", "queries.tsv")
_TREC_QRELS = ("qrels.tsv", "qrels.txt", "qrels")


def import_beir(path: Path, *, language: str = "") -> TestSet:
    """Imports a folder of BEIR's form: ``corpus.jsonl``, ``queries.jsonl``, ``qrels/test.tsv``.

    Args:
        path: The folder.
        language: Language of all texts, a BCP 47 tag; empty where it is not known.

    Raises:
        InputError: Naming file, line and mend.
    """
    qrels = path / "qrels" / "test.tsv"
    documents = _json_texts(path / "corpus.jsonl")
    return _pooled(path, qrels, documents, _json_texts(path / "queries.jsonl"), _beir_judgements(qrels), language)


def import_trec(path: Path, *, language: str = "") -> TestSet:
    """Imports a folder with ``docs.jsonl`` (or ``docs.tsv``), ``topics.tsv`` and ``qrels.tsv`` (four columns).

    Args:
        path: The folder.
        language: As for ``import_beir``.

    Raises:
        InputError: Naming file, line and mend.
    """
    documents, topics, qrels = (_first(path, names) for names in (_TREC_DOCUMENTS, _TREC_TOPICS, _TREC_QRELS))
    texts = _json_texts(documents) if documents.suffix == ".jsonl" else _tab_texts(documents)
    return _pooled(path, qrels, texts, _tab_texts(topics), qrels_lines(qrels), language)


def _first(folder: Path, names: tuple[str, ...]) -> Path:
    return next((folder / name for name in names if (folder / name).exists()), folder / names[0])


def _json_texts(path: Path) -> Iterator[tuple[Path, int, str, str]]:
    for line, record in json_objects(path):
        title = text_field(path, line, record, "title", default="")
        body = text_field(path, line, record, "text", "contents")
        yield path, line, text_field(path, line, record, "_id", "id", "docno"), f"{title} {body}".strip()


def _tab_texts(path: Path) -> Iterator[tuple[Path, int, str, str]]:
    for line, text in numbered_lines(path):
        name, tab, body = text.partition("\t")
        if not tab or not name.strip():
            raise BrokenData(path, line, "no two columns with a tab between them", "write: id, tab, text")
        yield path, line, name.strip(), body.strip()


def _beir_judgements(path: Path) -> Iterator[tuple[int, str, str, int]]:
    for order, (line, text) in enumerate(numbered_lines(path)):
        cells = [cell.strip() for cell in text.split("\t")]
        if len(cells) != 3:
            raise BrokenData(path, line, f"{len(cells)} columns instead of three", "write: query-id, corpus-id, score")
        # The published files begin with a header; one without it is taken too.
        if order or cells[2] != "score":
            yield line, cells[0], cells[1], whole_number(path, line, cells[2])


def _pooled(
    folder: Path, qrels: Path, documents: _Pairs, queries: _Pairs, judged: Iterable[tuple[int, str, str, int]], tag: str
) -> TestSet:
    """A set over one pool.

    A query without a relevant document is *not* taken for one without an answer: pools are judged in part only.
    """
    left_out: Counter[str] = Counter()
    facts: dict[str, Fact] = {}
    for path, line, name, text in documents:
        if name in facts:
            raise BrokenData(path, line, f"the id {name} is there twice", "rename one of the two")
        if text:
            facts[name] = Fact(id=name, text=text, language=tag)
        else:
            left_out["documents without a text"] += 1
    topics: dict[str, Topic] = {}
    for path, line, name, text in queries:
        if name in topics:
            raise BrokenData(path, line, f"the id {name} is there twice", "rename one of the two")
        topics[name] = Topic(id=name, text=text, language=tag)
    relevant: dict[str, set[str]] = {}
    for line, topic, document, relevance in judged:
        if topic not in topics:
            raise BrokenData(qrels, line, f"judged query {topic} is not there", "give the queries of these judgements")
        if relevance > 0 and document in facts:
            relevant.setdefault(topic, set()).add(document)
        elif relevance > 0:
            left_out["judgements of documents that are not there"] += 1
    if not relevant:
        raise BrokenData(qrels, 1, "no document that is there answers any query", "give the files that belong together")
    if unjudged := len(topics) - len(relevant):
        left_out["queries without a relevant document in these judgements"] = unjudged
    head = head_of(folder, qrels)
    return TestSet(
        **{**dict(head), "notes": (*head.notes, *(f"left out: {n} {what}" for what, n in left_out.items()))},
        stores={MAIN_STORE: tuple(facts.values())},
        topics=tuple(topic for topic in topics.values() if topic.id in relevant),
        qrels={topic: frozenset(found) for topic, found in relevant.items()},
    )
