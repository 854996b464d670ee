"""Topics of one's own over a frozen database of one's own: nothing is built, the snapshot is asked as it is."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from lab.retrieval.data.load import load_topics
from lab.retrieval.database import read_facts, read_labels
from lab.retrieval.testset import Fact, TestSet
from lab.snapshots.store import Snapshot


def topics_on(snapshot: Snapshot, folder: Path) -> TestSet:
    """The set whose facts are those of a snapshot.

    Args:
        snapshot: A frozen memory database, upstream's or ours.
        folder: Folder with ``topics.jsonl`` and ``qrels.tsv``; the judgements name facts by their labels, or by
            ``facts.fact_id`` where the database has none.

    Raises:
        InputError: The database has no facts of the known shape; topics or judgements are broken or name others.
    """
    with closing(snapshot.connect()) as connection:
        stored = {fact.fact_id: fact for fact in read_facts(connection)}
        labels = read_labels(connection)
    facts = [
        Fact(
            id=name,
            text=stored[fact_id].content,
            author=stored[fact_id].author,
            tags=stored[fact_id].tags,
            keywords=stored[fact_id].keywords,
            trust=stored[fact_id].trust,
        )
        for fact_id, names in labels.items()
        for name in names
    ]
    return load_topics(folder, facts)
