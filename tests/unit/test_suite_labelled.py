"""No suite takes a case that stands in both parts: the check itself, and every suite that has two parts."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.errors import InputError
from lab.retrieval.arms import Tools
from lab.suites.agreement import data as agreement
from lab.suites.base import SuiteContext
from lab.suites.consolidation import data as consolidation
from lab.suites.fallback import suite as fallback
from lab.suites.labelled import require_apart
from lab.suites.provenance import data as provenance
from lab.suites.supersession import data as supersession

DATA = Path(__file__).parents[2] / "scenarios" / "suites"


def unused() -> object:
    raise AssertionError("nothing is embedded before the data are read")


def run_fallback(folder: Path) -> object:
    return fallback.run(SuiteContext(Tools(unused), folder.parent, folder.parent / "work", lambda _done, _total: None))  # type: ignore[arg-type]


LOADS: dict[str, tuple[Callable[[Path], object], dict[str, str]]] = {
    "agreement": (agreement.load, {"cases": "question"}),
    "consolidation": (consolidation.load, {"duplicates": "text", "decay": "text", "contradictions": "first"}),
    "fallback": (run_fallback, {"sessions": "text", "facts": "text", "topics": "text"}),
    "provenance": (provenance.load_parts, {"utterances": "text"}),
    "supersession": (supersession.load, {"statements": "text", "questions": "text"}),
}
CASES = [
    (suite, file, field)
    for suite, (_, files) in LOADS.items()
    for file, text in files.items()
    for field in ("id", text)
]


@pytest.mark.parametrize(("suite", "file", "field"), CASES)
def test_a_case_of_one_part_is_refused_in_the_other(suite: str, file: str, field: str, tmp_path: Path) -> None:
    shutil.copytree(DATA / suite, tmp_path / suite)
    first, second = (tmp_path / suite / part / f"{file}.jsonl" for part in ("development", "holdout"))
    row = json.loads(first.read_text(encoding="utf-8").splitlines()[0])
    if field != "id":
        row["id"] = "planted-1"
    if suite == "supersession" and file == "questions":
        # It must fit the statements of its part to be refused for nothing but its place.
        row = json.loads(second.read_text(encoding="utf-8").splitlines()[0]) | {"id": row["id"], field: row[field]}
    lines = second.read_text(encoding="utf-8").splitlines()
    second.write_text("\n".join([*lines, json.dumps(row)]), encoding="utf-8")
    told = rf"holdout/{file}\.jsonl:{len(lines) + 1}: its {field} is in development/{file}\.jsonl:1, too: "
    with pytest.raises(InputError, match=told) as caught:
        LOADS[suite][0](tmp_path / suite)
    assert caught.value.mend and "\n" not in str(caught.value)


def test_texts_are_compared_over_all_files_whatever_their_case_and_spaces(tmp_path: Path) -> None:
    def put(part: str, file: str, *rows: dict[str, object]) -> None:
        (tmp_path / part).mkdir(exist_ok=True)
        (tmp_path / part / file).write_text("\n" + "\n".join(map(json.dumps, rows)))

    put("development", "a.jsonl", {"id": "1", "text": "Otters sleep."}, {"id": "2", "text": "Otters sleep."})
    put("development", "b.jsonl", {"id": "1", "text": "Herons fish."})
    require_apart(tmp_path, ["a.jsonl", "b.jsonl"], "text")  # twice in one part, and no hold-out
    put("holdout", "a.jsonl", {"id": "3", "text": "Badgers dig.", "note": "Otters sleep."}, {"id": 1})
    put("holdout", "b.jsonl", {"id": "2", "text": "The tide turned."})
    require_apart(tmp_path, ["a.jsonl", "b.jsonl"], "text")
    put("holdout", "b.jsonl", {"id": "2", "text": " otters  SLEEP. "})
    with pytest.raises(
        InputError, match=r"holdout/b\.jsonl:2: its text is in development/a\.jsonl:2, too: otters SLEEP\."
    ):
        require_apart(tmp_path, ["a.jsonl", "b.jsonl"], "text")
