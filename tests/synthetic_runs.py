"""Run folders whose results are as a test says: planned by the lab, sealed, but nothing was run in a sandbox."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from lab.agents.base import Setup
from lab.contamination.scenarios.scenario import Scenario
from lab.records import Role, TrialResult
from lab.retrieval.arms import Arm
from lab.retrieval.bench import Bench, Work
from lab.retrieval.data.load import load_set
from lab.retrieval.frozen import frozen_store
from lab.retrieval.systems.bm25 import Bm25, Match, Tokenizer
from lab.retrieval.testset import MAIN_STORE
from lab.runs.folder import RESULT
from tests.factories import ALWAYS, FAITHFUL, NEVER, quiet, result
from tests.planted import BUILDS, make

FOLDER = Path(__file__).parents[1] / "scenarios"
ATTACKS, CONTROLS = 12, 8

Planned = Mapping[str, Any]
Ending = Callable[[str, Planned], TrialResult | None]
"""How a trial ended, by scenario and plan; None where it has not run."""


@cache
def scenarios() -> tuple[Scenario, ...]:
    """The first attacks of F1 and the first positive controls, which nothing should stop."""
    names = [f"F1-{n:03}" for n in range(1, ATTACKS + 1)] + [f"F5-{n:03}" for n in range(1, CONTROLS + 1)]
    texts = [(FOLDER / name[:2] / f"{name}.yaml").read_text(encoding="utf-8") for name in names]
    return tuple(Scenario.model_validate(yaml.safe_load(text)) for text in texts)


def told(planned: Planned, *, persists: bool, **more: Any) -> TrialResult:
    """The result of a planned trial."""
    known = {key: planned[key] for key in ("trial", "cell", "setup", "build", "model", "repeat")}
    make_ = result if persists else quiet
    return make_(planned["scenario"], role=Role(planned["role"]), **known, **more)


def sound(planned: Planned, *, persists: bool = False, **more: Any) -> TrialResult:
    """A result with which every harness control holds; ``persists`` is of attacks under ``always-write``."""
    role, model = planned["role"], planned["model"]
    if role == Role.CONTROL:
        return told(planned, persists=model != NEVER, **more)
    if role == Role.ATTACK and model == ALWAYS:
        # always-write attempts all that it sees; a guard may stop it.
        return told(planned, persists=persists, **({} if persists else {"attempted": "yes"}) | more)
    return told(planned, persists=False, **more)


def persisting(count: int) -> Ending:
    """A sound run in which the first ``count`` attacks of F1 persist."""
    return lambda scenario, planned: sound(planned, persists=int(scenario[-3:]) <= count)


def write_run(root: Path, ending: Ending, *, setups: tuple[str, ...] = ("default",), **more: Any) -> Path:
    """Makes a finished, sealed run folder.

    Args:
        root: Where run folders lie.
        ending: How each trial ended.
        setups: Names of the setups.
        more: Further arguments of ``create_run``.
    """
    fields: dict[str, Any] = {
        "scenarios": scenarios(),
        "builds": BUILDS[:1],
        "models": [ALWAYS, NEVER, FAITHFUL],
        "setups": [Setup(name=name, description="As a test says.") for name in setups],
    }
    suite = make(root, **fields | more)
    for trial, planned in suite.trials.items():
        ended = ending(planned["scenario"], planned)
        if ended:
            folder = suite.folder.trial(trial)
            folder.mkdir(parents=True)
            (folder / RESULT).write_text(ended.model_dump_json())
    suite.folder.seal()
    return suite.folder.path


def write_bench_run(root: Path) -> Path:
    """Runs a real benchmark: BM25 and its negative control, on every third topic of the hold-out."""
    whole = load_set(FOLDER / "retrieval" / "holdout")
    topics = whole.topics[::3]
    named = {topic.id for topic in topics}
    part = whole.model_copy(update={"topics": topics, "qrels": {t: r for t, r in whole.qrels.items() if t in named}})
    shot = frozen_store(part, MAIN_STORE, root / "snapshots", lambda _line: None)
    arms = [
        Arm("bm25", "any word", "bm25", {"match": "or"}, lambda: Bm25(Tokenizer.UNICODE61), None),
        Arm("bm25-and", "every word", "bm25", {"match": "and"}, lambda: Bm25(Tokenizer.UNICODE61, Match.AND), None),
    ]
    facts = {"embedder": None, "vectors": [], "absent": []}
    work = Work(sets=[(part, {MAIN_STORE: shot})], arms=arms, k=10, fresh=False, facts=facts)
    made = Bench.start(root / "reports", work)
    made.run(lambda _what, _n: None)
    return made.folder.path
