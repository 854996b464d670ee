"""Labelled utterances: what is refused, with file and line, and what the development part holds."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import lab
from lab.errors import InputError
from lab.retrieval.testset import Purpose
from lab.suites.provenance.data import UTTERANCES, Phenomenon, load_part, load_parts, main

SCENARIOS = Path(lab.__file__).parent.parent / "scenarios" / "suites" / "provenance"

GOOD: dict[str, Any] = {
    "id": "h-en-001",
    "language": "en",
    "sent_as": "user",
    "phenomenon": "quote",
    "text": 'Dora said "no sugar" to Caio.',
    "author": {"kind": "user"},
    "persons": [{"name": "Dora", "role": "uttered_by"}, {"name": "Caio", "role": "mentioned"}],
    "quotes": [{"text": "no sugar", "speaker": {"kind": "third_party", "name": "Dora"}}],
}
OTHER = GOOD | {"id": "h-en-002", "text": 'Yesterday Dora said "no sugar" to Caio.'}


def folder(path: Path, *rows: dict[str, Any]) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    (path / UTTERANCES).write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


def test_a_sound_file_is_read(tmp_path: Path) -> None:
    part = load_part(folder(tmp_path, GOOD, OTHER), Purpose.HOLD_OUT)
    assert [one.id for one in part.utterances] == ["h-en-001", "h-en-002"]
    assert part.name == "provenance-hold-out" and part.info().counts["quotes"] == 2
    moved = load_part(folder(tmp_path, GOOD, OTHER | {"pair": ""}), Purpose.HOLD_OUT)
    assert moved.info().digest == part.info().digest
    changed = load_part(folder(tmp_path, GOOD, OTHER | {"sent_as": "tool"}), Purpose.HOLD_OUT)
    assert changed.info().digest != part.info().digest


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"quotes": [{"text": "no salt", "speaker": {"kind": "unknown"}}]}, "no salt is not in the text"),
        ({"persons": [{"name": "Bia", "role": "mentioned"}]}, "bia is not in the text"),
        ({"author": {"kind": "third_party", "name": "Bia"}}, "bia is not in the text"),
        ({"author": {"kind": "unknown", "name": "Dora"}}, "unknown has the name Dora"),
        ({"persons": [{"name": "Dora", "role": "mentioned"}, {"name": "dora", "role": "addressee"}]}, "twice"),
        ({"preferences": [{"kind": "user"}, {"kind": "user"}]}, "twice"),
        ({"sent_as": "system"}, "sent_as"),
        ({"phenomenon": "quotation"}, "phenomenon"),
        ({"speaker": "Dora"}, "not a known field"),
        ({"text": "x" * 2001}, "2000"),
        ({"id": "h-en-001"}, "there twice"),
        ({"text": GOOD["text"]}, "the text is that of h-en-001"),
        ({"pair": "sugar"}, "pair sugar has one member"),
    ],
)
def test_a_fault_is_told_with_file_and_line(tmp_path: Path, change: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError) as caught:
        load_part(folder(tmp_path, GOOD, OTHER | change), Purpose.HOLD_OUT)
    assert f"{UTTERANCES}:2: " in caught.value.message and told in caught.value.message
    assert caught.value.mend and "\n" not in str(caught.value)


def test_an_empty_file_and_a_missing_one_are_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="empty"):
        load_part(folder(tmp_path), Purpose.HOLD_OUT)
    with pytest.raises(InputError, match="no such file"):
        load_part(tmp_path / "nowhere", Purpose.HOLD_OUT)


def test_nothing_may_stand_in_both_parts(tmp_path: Path) -> None:
    folder(tmp_path / "development", GOOD)
    assert [part.purpose for part in load_parts(tmp_path)] == [Purpose.DEVELOPMENT]
    folder(tmp_path / "holdout", OTHER)
    assert [part.purpose for part in load_parts(tmp_path)] == [Purpose.DEVELOPMENT, Purpose.HOLD_OUT]
    folder(tmp_path / "holdout", OTHER, GOOD | {"id": "h-en-003"})
    with pytest.raises(InputError, match=r"holdout.*:2: its text is in development/utterances\.jsonl:1, too"):
        load_parts(tmp_path)


def test_authors_can_check_their_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(str(folder(tmp_path, GOOD))) == 0
    assert "utterances: 1" in capsys.readouterr().out
    assert main(str(folder(tmp_path, GOOD, GOOD))) == 2
    assert f"{UTTERANCES}:2" in capsys.readouterr().err


def test_the_development_part_is_as_the_guide_wants_it() -> None:
    part = load_parts(SCENARIOS)[0]
    languages = Counter(one.language for one in part.utterances)
    assert sum(languages.values()) >= 170 and abs(languages["en"] - languages["pt-BR"]) <= 10
    assert {(one.phenomenon, one.language) for one in part.utterances} == {
        (p, c) for p in Phenomenon for c in languages
    }
    assert part.info().counts["hard negatives"] > len(part.utterances) / 4
    for one in part.utterances:
        assert one.id.startswith("d-")


def test_no_sentence_of_the_guide_is_used() -> None:
    guide = (SCENARIOS / "GUIDE.md").read_text(encoding="utf-8")
    used = [one.text for part in load_parts(SCENARIOS) for one in part.utterances if one.text in guide]
    assert not used


def test_the_records_of_the_guide_are_sound(tmp_path: Path) -> None:
    blocks = (SCENARIOS / "GUIDE.md").read_text(encoding="utf-8").split("```json\n")[1:]
    rows = [json.loads(block.split("```")[0]) for block in blocks]
    assert len(load_part(folder(tmp_path, *rows), Purpose.HOLD_OUT).utterances) == 2
