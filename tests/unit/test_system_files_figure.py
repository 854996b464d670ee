"""The figure of all systems on all sets: the yardstick is found, a mark is filled only where the verdict says so."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

import pytest

from lab.report.bench.figures import common_arm, systems_figure
from lab.report.bench.html import render_html
from lab.retrieval.arms import Tools, make_arms
from lab.retrieval.assemble import finished
from lab.retrieval.bench import Bench, Work
from lab.retrieval.data.load import load_set
from lab.retrieval.frozen import frozen_store
from lab.retrieval.results import BenchResult
from lab.retrieval.timing import BenchTiming

SETS = Path(__file__).parents[2] / "scenarios" / "retrieval"
ARMS = ("bm25", "bm25-porter", "bm25-and")


def no_indexes() -> object:
    raise AssertionError("no arm here embeds")


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    place = tmp_path_factory.mktemp("bench")
    sets = [load_set(SETS / name) for name in ("personal", "holdout")]
    frozen = [
        (one, {store: frozen_store(one, store, place / "s", lambda _: None) for store in one.stores}) for one in sets
    ]
    arms = make_arms(ARMS, Tools(no_indexes))  # type: ignore[arg-type]
    facts: dict[str, Any] = {"embedder": None, "vectors": []}
    work = Work(
        frozen,
        arms,
        10,
        fresh=False,
        facts=facts,
        absent=("mem0: not here — lab bench prepare mem0",),
        reference="bm25",
    )
    made = Bench.start(place / "reports", work)
    made.run(lambda _what, _n: None)
    return made


@pytest.fixture(scope="module")
def result(bench: Bench) -> BenchResult:
    return finished(bench.folder).result


def test_the_yardstick_is_the_arm_of_all_pairs(result: BenchResult) -> None:
    assert common_arm(result) == "bm25"
    (first, *_), other = result.sets[0].comparisons, result.sets[1]
    odd = first.model_copy(update={"second": "bm25-and"})
    mixed = result.model_copy(update={"sets": (result.sets[0], other.model_copy(update={"comparisons": (odd,)}))})
    assert common_arm(mixed) == ""


def marks(result: BenchResult) -> tuple[int, int]:
    """Hollow and filled marks of the drawing, the legend's among the filled."""
    figure = systems_figure(result)
    assert figure
    svg = base64.b64decode(figure.source.split(",")[1]).decode()
    uses = re.findall(r"<use [^>]*style=\"fill: (#[0-9a-f]+); stroke: (#[0-9a-f]+)", svg)
    coloured = [(fill, stroke) for fill, stroke in uses if stroke != "#000000"]
    hollow = sum(fill == "#ffffff" for fill, _ in coloured)
    return hollow, len(coloured) - hollow


def test_filled_marks_are_those_that_the_verdict_tells_apart(result: BenchResult) -> None:
    apart = sum(row.verdict != "cannot tell" for one in result.sets for row in one.comparisons)
    assert 0 < apart < 4, "the negative control is worse than the yardstick, the other stemming is not told apart"
    legend = len(result.sets)
    assert marks(result) == (len(ARMS) * len(result.sets) - apart, apart + legend)


def test_one_set_needs_no_overview(result: BenchResult) -> None:
    assert systems_figure(result.model_copy(update={"sets": result.sets[:1]})) is None


def test_the_report_shows_figure_yardstick_and_what_was_not_run(bench: Bench) -> None:
    done = finished(bench.folder)
    page = render_html("run", done.result, BenchTiming(started="", seconds=0, arms={}), done.rows)
    assert "All systems on all sets" in page and "Dotted lines: bm25" in page
    assert "mem0: not here — lab bench prepare mem0" in page
