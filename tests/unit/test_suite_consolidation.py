"""The suite of consolidation, with an embedder of its own: rates, planted faults, sweeps, and faults of its files."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from lab.errors import InputError
from lab.retrieval.arms import Tools
from lab.retrieval.embedders.base import Kind, ModelIdentity, Vectors
from lab.retrieval.embedders.index import DenseIndexes
from lab.suites.base import SuiteContext, SuiteResult
from lab.suites.consolidation import suite
from lab.suites.consolidation.data import load
from lab.suites.consolidation.disputes import Scanned
from lab.suites.consolidation.merging import Merging, characters

DATA = Path(__file__).parents[2] / "scenarios" / "suites"
EVERYTHING = "nearby test at 0.70, of the design"


class Nearby:
    """Embeds like e5 as far as the suite is concerned: all cosines lie high and close together."""

    identity = ModelIdentity("nearby", "test", "0" * 64, 257, (), "none", "1")

    def embed(self, texts: Sequence[str], kind: Kind, timeout: float | None = None) -> Vectors:
        assert kind is Kind.DOCUMENT
        rows = np.zeros((len(texts), 257), dtype=np.float32)
        for row, text in enumerate(texts):
            for word in text.casefold().split():
                rows[row, sum(word.encode()) % 256] += 1
        rows[:, :256] *= 0.45 / np.linalg.norm(rows[:, :256], axis=1, keepdims=True)
        rows[:, 256] = np.sqrt(1 - 0.45**2)
        return rows

    def close(self) -> None:
        pass


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> SuiteResult:
    work = tmp_path_factory.mktemp("work")
    told: list[tuple[int, int]] = []
    tools = Tools(lambda: DenseIndexes(Nearby(), work / "vectors.sqlite"))
    found = suite.run(SuiteContext(tools, DATA, work, lambda done, total: told.append((done, total))))
    cases = sum(part.cases for part in load(DATA / "consolidation"))
    assert told[-1] == (cases, cases)
    return found


def value(result: SuiteResult, measure: str, system: str, data: str, **group: str) -> tuple[int, int]:
    (found,) = [
        rate.proportion
        for rate in result.rates
        if (rate.measure, rate.system, rate.data, rate.group) == (measure, system, data, group)
    ]
    return found.numerator, found.denominator


def test_the_designs_threshold_merges_everything_where_all_cosines_are_high(result: SuiteResult) -> None:
    for data in ("development", "holdout"):
        for measure in ("false merges", "merged with another matter"):
            merged, of = value(result, measure, EVERYTHING, data)
            assert merged == of > 0
        assert value(result, "missed duplicates", EVERYTHING, data)[0] == 0
        lost, of = value(result, "contradictions merged as duplicates", EVERYTHING, data)
        assert lost == of > 0


def test_the_second_threshold_comes_from_the_development_part_alone(tmp_path: Path, result: SuiteResult) -> None:
    chosen = result.settings["duplicates"]
    shutil.copytree(DATA / "consolidation", tmp_path / "consolidation")
    path = tmp_path / "consolidation" / "holdout" / "duplicates.jsonl"
    # On these the best threshold is another one: words change their places, and the foil shares none.
    easy = (("a", None, "red apples grow here"), ("a", None, "here grow red apples"), ("b", "opposite", "moon"))
    rows = [
        {"id": f"{scene}{number}", "scene": scene, "cluster": cluster, "differs": how, "language": "en"}
        | {"text": f"{scene} {text}"}
        for scene in ("north", "south")
        for number, (cluster, how, text) in enumerate(easy)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    part = load(tmp_path / "consolidation")[1]
    own = Merging(part, "characters", characters([telling.text for telling in part.tellings])).best()
    assert own != chosen["chosen"]["characters"]  # type: ignore[index]
    tools = Tools(lambda: DenseIndexes(Nearby(), tmp_path / "vectors.sqlite"))
    again = suite.run(SuiteContext(tools, tmp_path, tmp_path))
    assert again.settings["duplicates"] == chosen
    assert [r for r in again.rates if r.data == "development"] == [r for r in result.rates if r.data == "development"]


def test_no_single_signal_is_ever_flagged_and_the_window_hides_what_is_later(result: SuiteResult) -> None:
    for data in ("development", "holdout"):
        for group in ({"signals": "none"}, {"signals": "one"}, {"window": "later"}):
            flagged, of = value(result, "contradictions flagged", "scan without a model", data, **group)
            assert flagged == 0 < of
        assert value(result, "contradictions flagged", "scan without a model", data, signals="two or more")[0] > 0
        assert value(result, "false alarms", "scan without a model", data)[0] > 0


def test_preferences_are_lost_only_where_their_type_is_guessed_wrong(result: SuiteResult) -> None:
    for data in ("development", "holdout"):
        assert value(result, "preferences lost to decay", "types as labelled", data)[0] == 0
        assert value(result, "preferences lost to decay", "types guessed by cue words", data)[0] > 0


def test_every_planted_fault_is_caught_and_no_twin_accused(result: SuiteResult) -> None:
    assert result.sound
    assert {plant.clean for plant in result.plants} == {True, False}
    assert SuiteResult.model_validate_json(result.model_dump_json()) == result


def test_sweeps_run_from_everything_merged_to_nothing(result: SuiteResult) -> None:
    (curve,) = [curve for curve in result.curves if curve.title == "Duplicates by threshold, development"]
    assert curve.mark == 0.70
    for name, points in curve.lines.items():
        shares = [share for _, share in points]
        assert shares == sorted(shares, reverse=not name.endswith("missed duplicates"))
    assert dict(curve.lines["nearby test: false merges"])[0.0] == 1
    assert dict(curve.lines["nearby test: missed duplicates"])[1.0] == 1


def test_vectors_that_know_the_clusters_are_perfect_at_the_threshold() -> None:
    """The judgement itself: a perfect encoder gets no error, one that swaps two memories gets some."""
    part = load(DATA / "consolidation")[0]
    keys = sorted({(telling.scene, telling.cluster) for telling in part.tellings})
    vectors = np.eye(len(keys), dtype=np.float32)[[keys.index((t.scene, t.cluster)) for t in part.tellings]]
    oracle = Merging(part, "oracle", vectors)
    assert oracle.errors(0.70) == (0, 0, 0)
    assert oracle.best() == 1.0  # of all that make no error the highest; 0.0 would merge everything
    vectors[[0, -1]] = vectors[[-1, 0]]
    false, missed, strayed = Merging(part, "swapped", vectors).errors(0.70)
    assert missed > 0
    assert strayed > 0
    assert false == 0


def test_characters_know_copies_and_nothing_of_meaning() -> None:
    vectors = characters(["the same", "the same", "zzz"])
    cosines = vectors @ vectors.T
    assert cosines[0, 1] == pytest.approx(1)
    assert cosines[0, 2] == pytest.approx(0, abs=1e-6)


def test_data_have_both_languages_and_enough_of_each_kind() -> None:
    for part in load(DATA / "consolidation"):
        for cases in (part.tellings, part.aged, part.disputes):
            assert {case.language for case in cases} == {"en", "pt-BR"}
        assert {case.contradicts for case in part.disputes} == {True, False}
    development, holdout = load(DATA / "consolidation")
    assert len(development.disputes) >= 60
    assert len(holdout.disputes) >= 40
    assert not {one.text for one in development.tellings} & {one.text for one in holdout.tellings}


def test_a_dispute_is_scanned_with_its_own_distance_in_time() -> None:
    case = next(one for one in load(DATA / "consolidation")[0].disputes if one.contradicts and Scanned.of(one).flagged)
    assert not Scanned.of(case.model_copy(update={"days": 7.5})).flagged


@pytest.mark.parametrize(
    ("file", "change", "told"),
    [
        ("duplicates", {"differs": "number"}, "a foil says by what it differs"),
        ("duplicates", {"text": " "}, "text"),
        ("decay", {"kind": "dream"}, "kind"),
        ("decay", {"age_hours": -1}, "age_hours"),
        ("contradictions", {"signals": ["smell"]}, "signals"),
        ("decay", {"age_hours": float("inf")}, "age_hours"),
        ("contradictions", {"days": float("inf")}, "days"),
    ],
)
def test_a_broken_line_is_told_with_file_and_line(
    file: str, change: dict[str, object], told: str, tmp_path: Path
) -> None:
    shutil.copytree(DATA / "consolidation", tmp_path / "consolidation")
    path = tmp_path / "consolidation" / "development" / f"{file}.jsonl"
    lines = path.read_text().splitlines()
    lines[1] = json.dumps(json.loads(lines[1]) | change)
    path.write_text("\n".join(lines))
    with pytest.raises(InputError) as caught:
        load(tmp_path / "consolidation")
    assert f"{file}.jsonl:2:" in caught.value.message
    assert told in caught.value.message
