"""The pytest plugin in a session of its own: how a trial's end becomes the end of a test. Planted trials, no agent."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lab.records import Stage, Status, Value
from lab.retrieval.rows import TopicRow
from lab.testing.retrieval import assert_hit_rate, assert_mrr
from lab.testing.trial import LabTrial, TrialIsNoEvidence
from tests.factories import invalid, quiet, result

PROJECT = Path(__file__).parents[2]
PLANTED = """
import contextlib, pathlib, pytest
from lab.records import Status
from lab.testing.trial import LabTrial
from tests.factories import invalid, quiet, result

ENDS = {
    "persisted": result(),
    "quiet": quiet(),
    "invalid": invalid(result()),
    "error": result(status=Status.ERROR, cause="oom", detail="the kernel killed it"),
    "open": result(persist="undetermined"),
}

class Planted:
    def trial(self, wanted):
        return LabTrial(ENDS[wanted.scenario], pathlib.Path("/evidence"))

@pytest.fixture(scope="session")
def lab_trials():
    return Planted()
"""


def session(folder: Path, tests: str, conftest: str = PLANTED, *options: str) -> tuple[int, str]:
    (folder / "conftest.py").write_text(conftest)
    (folder / "test_mine.py").write_text(f"import pytest\n{tests}")
    plugins = ("-p", "lab.pytest_plugin", "-p", "no:cacheprovider")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, "--strict-markers", "-rA", *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def case(end: str, body: str) -> str:
    name = f"test_{end}_{'not_' if 'not' in body else ''}persisted"
    return f"@pytest.mark.lab({end!r})\ndef {name}(lab_trial):\n    lab_trial.{body}()\n"


def test_only_a_decided_verdict_passes_and_no_evidence_is_an_error(tmp_path: Path) -> None:
    ends = ("persisted", "quiet", "invalid", "error", "open")
    tests = "\n".join(case(end, body) for end in ends for body in ("assert_not_persisted", "assert_persisted"))
    code, out = session(tmp_path, tests)
    assert code == 1
    told = {
        line.split("::")[1].split(" ")[0]: line.split(" ")[0] for line in out.splitlines() if "test_mine.py::" in line
    }
    assert told == {
        "test_persisted_not_persisted": "FAILED",
        "test_persisted_persisted": "PASSED",
        "test_quiet_not_persisted": "PASSED",
        "test_quiet_persisted": "FAILED",
        "test_invalid_not_persisted": "ERROR",
        "test_invalid_persisted": "ERROR",
        "test_error_not_persisted": "ERROR",
        "test_error_persisted": "ERROR",
        "test_open_not_persisted": "FAILED",
        "test_open_persisted": "FAILED",
    }
    for words in (
        "persist is yes, wanted no",
        "requests.jsonl /3/messages/5",
        "evidence  /evidence",
        "is no evidence, invalid: not_delivered",
        "is no evidence, error: oom (the kernel killed it)",
        "persist is undetermined, wanted no",
    ):
        assert words in out
    assert "Traceback" not in out and "During handling" not in out


WRONG_MARKS = {
    "": "lab_trial needs to know which trial",
    "@pytest.mark.lab('F1-001', bogus=1)": "the mark lab is not understood",
    "@pytest.mark.lab('F1-001', model='ollama:x')": "model 'ollama:x' is live: it answers in a run only",
    "@pytest.mark.lab('F9-999')": "F9-999.yaml",
    "@pytest.mark.lab('F5-001', twin=True)": "F5-001 has no twin",
    "@pytest.mark.lab('F1-001', setup='nonsense')": "no setup is named 'nonsense'",
}


def test_a_wrong_mark_is_an_error_that_says_why(tmp_path: Path) -> None:
    tests = "\n".join(f"{mark}\ndef test_{n}(lab_trial):\n    pass\n" for n, mark in enumerate(WRONG_MARKS))
    code, out = session(tmp_path, tests, "")
    assert code == 1 and f"{len(WRONG_MARKS)} errors" in out and "passed" not in out and "failed" not in out
    errors = out.partition("short test summary")[0]
    _, *told = re.split(r"^_+ ERROR at setup of test_\d _+$", errors, flags=re.MULTILINE)
    assert len(told) == len(WRONG_MARKS)
    for words, part in zip(WRONG_MARKS.values(), told, strict=True):
        assert words in part and "Traceback" not in part


def test_a_machine_that_cannot_run_trials_is_an_error_too(tmp_path: Path) -> None:
    tests = "@pytest.mark.lab('F1-001')\ndef test_it(lab_trial):\n    pass\n"
    code, out = session(tmp_path, tests, "", "--lab-backend", "nonsense")
    assert code == 1 and "1 error" in out and "unknown isolation backend nonsense" in out


def test_a_suite_that_asks_for_no_trial_pays_nothing(tmp_path: Path) -> None:
    code, out = session(tmp_path, "import sys\ndef test_it():\n    assert 'scipy' not in sys.modules\n", "")
    assert code == 0, out


@pytest.mark.parametrize("told", [invalid(result()), result(status=Status.ERROR, cause="oom")])
def test_a_trial_that_is_no_evidence_cannot_be_held(told) -> None:
    with pytest.raises(TrialIsNoEvidence):
        LabTrial(told, Path("x"))


def test_stages_are_asserted_and_hostile_words_made_printable() -> None:
    trial = LabTrial(quiet(build="x\x1b[31m\nred"), Path("e"))
    trial.assert_stage(Stage.REACH, Value.YES)
    with pytest.raises(AssertionError, match="attempt is no, wanted yes") as caught:
        trial.assert_stage(Stage.ATTEMPT, Value.YES)
    assert "\x1b" not in str(caught.value)


# retrieval


def rows(hits: int, misses: int, lost: int = 0, rank: int = 2) -> list[TopicRow]:
    fields = {"topic_class": "exact", "store": "main", "answerable": True, "hits": ()}
    made = [TopicRow(topic=f"h{n}", rank=rank, **fields) for n in range(hits)]
    made += [TopicRow(topic=f"m{n}", rank=None, **fields) for n in range(misses)]
    made += [TopicRow(topic=f"e{n}", rank=None, error="gone", **fields) for n in range(lost)]
    return [*made, TopicRow(topic="none", rank=None, **{**fields, "answerable": False})]


def test_a_hit_rate_fails_with_its_denominator() -> None:
    assert_hit_rate(rows(52, 21), at_least=0.7)
    with pytest.raises(AssertionError) as caught:
        assert_hit_rate(rows(52, 21), at_least=0.8, k=5)
    assert str(caught.value) == "Hit@5 52/73 answerable topics = .712 [.600, .803], wanted ≥ .800"
    with pytest.raises(AssertionError, match="Hit@1 0/73"):
        assert_hit_rate(rows(52, 21), at_least=0.1, k=1)


def test_topics_with_an_error_are_counted_as_misses_and_told() -> None:
    assert_hit_rate(rows(9, 0, lost=1), at_least=0.9)
    with pytest.raises(AssertionError, match=r"9/9 .* 2 topics left out by an error \(\.818 with them as misses\)"):
        assert_hit_rate(rows(9, 0, lost=2), at_least=0.9)
    with pytest.raises(AssertionError, match=r"over 9 .* 1 topic left out by an error \(\.900 with them as misses\)"):
        assert_mrr(rows(9, 0, lost=1, rank=1), at_least=0.95)


def test_nothing_to_divide_by_is_no_pass() -> None:
    for check in (assert_hit_rate, assert_mrr):
        with pytest.raises(AssertionError, match="nothing can be told"):
            check(rows(0, 0), at_least=0.0)
        with pytest.raises(AssertionError, match="3 topics left out by an error"):
            check(rows(0, 0, lost=3), at_least=0.0)


def test_mrr_fails_with_its_denominator() -> None:
    assert_mrr(rows(3, 1), at_least=0.375)
    with pytest.raises(AssertionError, match=r"MRR@10 over 4 answerable topics = \.375 \[.*\], wanted ≥ \.400"):
        assert_mrr(rows(3, 1), at_least=0.4)
