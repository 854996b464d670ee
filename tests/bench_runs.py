"""Folders of benchmark runs made without any system: a set, and rankings drawn at random for two arms."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path

from lab.cli.bench_run import load_named
from lab.retrieval.data.load import save_set
from lab.retrieval.results import LOCK, TIE_RULE, SetInfo, StoreInfo
from lab.retrieval.rows import PASSES, HitRow, Passes, TopicRow, rows_file, rows_text
from lab.retrieval.testset import MAIN_STORE, Fact, TestSet, Topic

ARMS = ("plain", "embeddings+keywords")


@dataclass(frozen=True)
class BenchFolder:
    """A run and the set that it measured.

    Attributes:
        run: The run folder.
        scenarios: Folder that has the set under ``retrieval``.
    """

    run: Path
    scenarios: Path


def made_set(name: str = "made") -> TestSet:
    """Sixty facts, forty topics; every fifth topic has no answer, the others have one to three."""
    draw = random.Random(7)
    facts = tuple(Fact(id=f"d{n}", text=f"Fact number {n} is about thing {n}.") for n in range(60))
    topics = tuple(
        Topic(id=f"q{n}", text=f"thing {n}", topic_class="no-answer" if n % 5 == 4 else ("exact", "paraphrase")[n % 2])
        for n in range(40)
    )
    qrels = {
        topic.id: frozenset(draw.sample([fact.id for fact in facts], draw.randint(1, 3)))
        for topic in topics
        if topic.topic_class != "no-answer"
    }
    return TestSet(name=name, stores={MAIN_STORE: facts}, topics=topics, qrels=qrels)


def topic_rows(testset: TestSet, seed: int, lost: frozenset[str] = frozenset()) -> tuple[TopicRow, ...]:
    """Rankings of up to ten facts, some empty; answers are drawn more often than others."""
    draw = random.Random(seed)
    rows = []
    for topic in testset.topics:
        relevant = testset.qrels.get(topic.id, frozenset())
        pool = [fact.id for fact in testset.stores[topic.store]]
        hits = draw.sample(pool, draw.choice([0, 5, 10, 10]))
        if relevant and hits and draw.random() < 0.7:
            answer = draw.choice(sorted(relevant))
            hits = [hit for hit in hits if hit != answer]
            hits = (
                [*hits, answer] if not hits else [*hits[: (at := draw.randrange(len(hits)))], answer, *hits[at + 1 :]]
            )
        error = "the system gave up" if topic.id in lost else ""
        hits = [] if error else hits
        rank = next((place for place, hit in enumerate(hits, 1) if hit in relevant), None)
        rows.append(
            TopicRow(
                topic=topic.id,
                topic_class=topic.topic_class,
                store=topic.store,
                answerable=bool(relevant),
                rank=rank,
                hits=tuple(HitRow(fact=hit, score=1 / place) for place, hit in enumerate(hits, 1)),
                error=error,
            )
        )
    return tuple(rows)


def bench_folder(root: Path, lost: frozenset[str] = frozenset()) -> BenchFolder:
    """Writes a set and the folder of a run on it; the second arm cannot answer the topics in ``lost``."""
    scenarios, run = root / "scenarios", root / "bench-run"
    save_set(made_set(), scenarios / "retrieval" / "made")
    testset = load_named("made", scenarios)
    classes = ("exact", "paraphrase", "no-answer")
    counts = {name: sum(topic.topic_class == name for topic in testset.topics) for name in classes}
    info = SetInfo(
        name="made",
        title="",
        purpose=testset.purpose,
        licence="synthetic",
        digest=testset.digest(),
        stores=(StoreInfo(store=MAIN_STORE, snapshot="made", content="0" * 64, facts=60, topics=40),),
        classes=counts,
        answerable={name: counts[name] for name in classes[:2]},
        k_of_pool=10 / 60,
        baselines=(),
    )
    lock = {
        "kind": "bench",
        "run_id": "bench-run",
        "lab_version": "0.2.0",
        "k": 10,
        "tie_rule": TIE_RULE,
        "pairs": [list(ARMS)],
        "sets": [info.model_dump(mode="json")],
        "arms": [{"name": a, "label": a, "depth": None, "system": "drawn", "settings": {}} for a in ARMS],
        "absent": [],
        "vectors": [],
    }
    for seed, arm in enumerate(ARMS):
        place = rows_file(run, "made", arm)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(rows_text(topic_rows(testset, seed, lost if seed else frozenset())))
        passes = Passes(settings={}, again=0, changed=0, fresh=False)
        place.with_suffix(PASSES).write_text(passes.model_dump_json())
    (run / LOCK).write_text(json.dumps(lock))
    return BenchFolder(run, scenarios)
