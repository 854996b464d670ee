"""Scoring of provenance: what is counted among what; alarms and the faults planted for them."""

from __future__ import annotations

from pathlib import Path

import pytest

import lab
from lab.retrieval.testset import Author, Purpose
from lab.statistics.proportions import Proportion
from lab.suites.provenance import plants
from lab.suites.provenance.alarms import alarms
from lab.suites.provenance.baselines import all_user, majority
from lab.suites.provenance.data import Labels, Part, Person, Quote, Role, Utterance, Voice, load_parts
from lab.suites.provenance.plants import FAULTS, planted
from lab.suites.provenance.scoring import FALSE, PRECISION, RECALL, rates

SCENARIOS = Path(lab.__file__).parent.parent / "scenarios" / "suites" / "provenance"
USER, ANA = Voice(kind=Author.USER), Voice(kind=Author.THIRD_PARTY, name="Ana")


@pytest.fixture(scope="module")
def development() -> Part:
    return load_parts(SCENARIOS)[0]


def truth(part: Part) -> list[Labels]:
    return [Labels(**{name: getattr(one, name) for name in Labels.model_fields}) for one in part.utterances]


def small() -> Part:
    def one(number: int, text: str, **labels: object) -> Utterance:
        fixed: dict[str, object] = {"author": USER, "language": "en", "sent_as": "user", "phenomenon": "quote"}
        return Utterance.model_validate({"id": f"x-{number}", "text": text, **fixed, **labels})

    return Part(
        purpose=Purpose.DEVELOPMENT,
        utterances=(
            one(
                1,
                'Ana said "no" to Rui.',
                persons=(Person(name="Ana", role=Role.UTTERED_BY), Person(name="Rui", role=Role.MENTIONED)),
                quotes=(Quote(text="no", speaker=ANA),),
            ),
            one(2, "Ana likes tea.", persons=(Person(name="Ana", role=Role.MENTIONED),), preferences=(ANA,)),
            one(3, "I like tea.", preferences=(USER,)),
            one(4, "Rui, come!", persons=(Person(name="Rui", role=Role.ADDRESSEE, vocative=True),)),
        ),
    )


def by_measure(part: Part, answers: list[Labels]) -> dict[str, Proportion]:
    return {rate.measure: rate.proportion for rate in rates(part, answers, "x", split=False)}


def share(told: Proportion) -> tuple[int, int]:
    return told.numerator, told.denominator


def test_the_truth_scores_full_marks_everywhere(development: Part) -> None:
    for rate in rates(development, truth(development), "truth"):
        told = rate.proportion
        assert told.numerator == (0 if rate.better == "low" else told.denominator), rate.measure
        assert (told.denominator > 0) == (told.low is not None)


def test_every_kind_has_recall_precision_and_false_positives(development: Part) -> None:
    measures = {rate.measure for rate in rates(development, truth(development), "truth", split=False)}
    kinds = [*(f"author {k}" for k in Author), *(f"role {r}" for r in Role), *(f"quotation of {k}" for k in Author)]
    for kind in (*kinds, "person", "vocative", "quotation", "own preference", "another's preference"):
        assert {f"{kind}: {aspect}" for aspect in (RECALL, PRECISION, FALSE)} <= measures


def test_counts_and_denominators() -> None:
    part, nothing = small(), Labels(author=USER)
    answers = [
        # Ana is missed, Rui called a speaker, somebody invented; the quotation found and given to the user.
        Labels(
            author=USER,
            persons=(Person(name="RUI", role=Role.UTTERED_BY), Person(name="said", role=Role.MENTIONED)),
            quotes=(Quote(text='"No."', speaker=USER),),
        ),
        Labels(author=ANA, preferences=(USER,)),
        nothing,
        Labels(author=USER, persons=(Person(name="Rui", role=Role.ADDRESSEE, vocative=True),)),
    ]
    told = by_measure(part, answers)
    assert share(told["person: recall"]) == (2, 4)
    assert share(told["person: precision"]) == (2, 3)
    assert share(told["person: false positives"]) == (0, 1)
    assert share(told["role uttered_by: recall"]) == (0, 1)
    assert share(told["role uttered_by: precision"]) == (0, 1)
    assert share(told["role uttered_by: false positives"]) == (1, 3)
    assert share(told["role mentioned: precision"]) == (0, 1)
    assert share(told["vocative: recall"]) == share(told["vocative: precision"]) == (1, 1)
    assert share(told["quotation: recall"]) == (1, 1)
    assert share(told["quotation of third_party: recall"]) == (0, 1)
    assert share(told["quotation of user: false positives"]) == (1, 1)
    assert share(told["quotation with its speaker: recall"]) == (0, 1)
    assert share(told["author user: recall"]) == (3, 4)
    assert share(told["author third_party: false positives"]) == (1, 4)
    assert share(told["own preference: recall"]) == (0, 1)
    assert share(told["own preference: false positives"]) == (1, 3)
    assert share(told["another's preference: recall"]) == (0, 1)
    assert share(told["another's preference taken for the user's"]) == (1, 1)


def test_a_measure_without_a_case_is_not_left_out() -> None:
    told = by_measure(small(), [Labels(author=USER)] * 4)
    assert share(told["vocative: precision"]) == (0, 0) and told["vocative: precision"].percent == "n/a"
    assert share(told["vocative: recall"]) == (0, 1)


def test_variants_of_one_sentence_are_one_cluster() -> None:
    part = small()
    paired = tuple(one.model_copy(update={"pair": "tea"}) for one in part.utterances)
    told = by_measure(part.model_copy(update={"utterances": paired}), truth(part))
    assert by_measure(part, truth(part))["author kind: right"].method == "wilson"
    assert "over 1 utterances or pairs" in told["author kind: right"].method


def test_answers_must_belong_to_the_utterances() -> None:
    with pytest.raises(ValueError, match="zip"):
        rates(small(), truth(small())[1:], "x")


def test_groups_add_up(development: Part) -> None:
    found = rates(development, all_user().extract([one.message for one in development.utterances]), "x")
    for name in ("language", "phenomenon"):
        parts = [r.proportion for r in found if r.measure == "author kind: right" and name in r.group]
        assert sum(one.denominator for one in parts) == len(development.utterances)


def test_every_planted_fault_is_seen_and_no_twin_accused(development: Part, tmp_path: Path) -> None:
    found = planted(development, tmp_path)
    assert all(plant.holds for plant in found), [plant for plant in found if not plant.holds]
    assert len(found) == 2 * (len(FAULTS) + 2)
    assert {plant.fault for plant in found if plant.clean} == {plant.fault for plant in found if not plant.clean}
    assert str(tmp_path) not in "".join(plant.detail for plant in found)


def test_a_plant_tells_where_the_alarms_are_deaf_or_ring_at_all(
    development: Part, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plants, "alarms", lambda part, answers: {})
    deaf = planted(development, tmp_path / "deaf")[: 2 * len(FAULTS)]
    assert not any(plant.holds for plant in deaf if not plant.clean)
    monkeypatch.setattr(plants, "alarms", lambda part, answers: {"swapped": "always"})
    shrill = planted(development, tmp_path / "shrill")[: 2 * len(FAULTS)]
    assert not any(plant.holds for plant in shrill)


def test_planted_faults_cost_what_they_spoil(development: Part) -> None:
    spoilt = {fault.name: by_measure(development, fault.spoil(development.utterances)) for fault in FAULTS}
    assert spoilt["speaker and addressee swapped"]["role uttered_by: recall"].numerator == 0
    assert spoilt["every quotation is the user's"]["quotation of third_party: recall"].numerator == 0
    assert spoilt["every preference is the user's"]["another's preference: recall"].numerator == 0
    assert spoilt["each person given every role"]["person: precision"].value == pytest.approx(1 / 3, abs=1e-6)
    assert spoilt["calls taken for subjects, and subjects for calls"]["vocative: recall"].numerator == 0


def test_the_truth_rings_no_alarm_and_baselines_ring_theirs(development: Part) -> None:
    messages = [one.message for one in development.utterances]
    assert alarms(development, truth(development)) == {}
    user = alarms(development, all_user().extract(messages))
    assert {"constant author", "constant speaker", "every preference is the user's"} <= set(user)
    most = majority(development)
    assert most.settings()["author"] == Author.USER and most.settings()["holder"] is None
    assert "constant author" in alarms(development, most.extract(messages))
