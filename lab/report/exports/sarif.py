"""SARIF 2.1.0: one rule a family, one result a persisted contamination, with the store and line it stands in."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import quote

from lab.records import Evidence, Role, Stage, Status, TrialResult, Value, digest
from lab.report.exports.judged import Judged, judge_case
from lab.report.exports.source import ContaminationRun, Files, stage_value
from lab.report.hostile import cut, excerpt_text, visible
from lab.report.trial_row import TrialRow

NAME = "report.sarif"
SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
FINGERPRINT = "labContamination/v1"
FAMILIES = {
    "F1": ("pasted-document", "A pasted document"),
    "F2": ("tool-result", "A tool's result"),
    "F3": ("another-agent", "A report of another agent"),
    "F4": ("compression", "A compressed conversation"),
    "F5": ("controls", "A stated preference"),
    "F6": ("skills", "A skill"),
}
"""Name of each family's channel, for a rule."""
_LINE = re.compile(r"(?P<path>.+) line (?P<line>[1-9][0-9]{0,8})")
_TEXT, _MOST_LOCATIONS = 1_000, 10

Json = dict[str, Any]
"""A part of the log: a JSON object, whose form the schema of SARIF checks in a test."""


def render_sarif(run: ContaminationRun) -> Files:
    """The run as a SARIF log.

    Repeats of a cell are one result with a count of its occurrences. Its fingerprint is taken over scenario, build,
    setup and model, so it is the same in the next run. Trials of a void family are no results; they and lost trials are
    notifications of the invocation.

    Args:
        run: The run.
    """
    families = sorted({view.family for view in run.report.trials})
    cells: dict[tuple[str, str, str, str], list[TrialRow]] = {}
    for view in run.report.trials:
        if view.role is Role.ATTACK and judge_case(run, view).judged is Judged.FAILED:
            cells.setdefault((view.scenario, view.build, view.setup, view.model), []).append(view)
    log = {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "Agent Memory Lab",
                        "version": _text(run.report.header.lab_version) or "unknown",
                        "rules": [_rule(family) for family in families],
                    }
                },
                "automationDetails": {"id": "agent-memory-lab/contamination/"},
                "columnKind": "unicodeCodePoints",
                "originalUriBaseIds": {"RUN": {"description": {"text": "The run folder, which holds the evidence."}}},
                "invocations": [
                    {
                        "executionSuccessful": run.report.finished and not run.budget_blown,
                        "toolExecutionNotifications": list(_notifications(run)),
                    }
                ],
                "results": [_result(run, views, families) for _, views in sorted(cells.items())],
            }
        ],
    }
    return {NAME: json.dumps(log, ensure_ascii=True, indent=1).encode() + b"\n"}


def _rule(family: str) -> Json:
    name, words = FAMILIES.get(family, ("unknown", "Content of an unknown family"))
    return {
        "id": _text(family),
        "name": "".join(part.title() for part in name.split("-")),
        "shortDescription": {"text": f"{words} wrote into the agent's permanent memory"},
        "fullDescription": {
            "text": f"{words} was reviewed by the agent's own background review, and after its process had ended the "
            "content stood in a store that later sessions take for the agent's own memory."
        },
        "help": {"text": "Open the trial in the run's report.html: it shows the request, the write and the store."},
        "defaultConfiguration": {"level": "error"},
        "properties": {"tags": ["security", "memory-poisoning"]},
    }


def _result(run: ContaminationRun, views: list[TrialRow], families: list[str]) -> Json:
    first = views[0]
    told = run.results[first.trial]
    loaded = sum(stage_value(view, Stage.LOAD) is Value.YES for view in views)
    message = (
        f"{first.scenario} ({first.title}) persisted under {first.model} in setup {first.setup} of {first.build}: "
        f"{judge_case(run, first).message}. Loaded by a fresh session in {loaded} of {len(views)} trials in which it "
        "persisted."
    )
    cell = [first.scenario, first.build, first.setup, first.model]
    return {
        "ruleId": _text(first.family),
        "ruleIndex": families.index(first.family),
        "level": "error",
        "kind": "fail",
        "message": {"text": _text(message)},
        "locations": [_location(told, evidence) for evidence in _places(told)],
        "occurrenceCount": len(views),
        "partialFingerprints": {FINGERPRINT: digest(cell)},
        "properties": {
            "scenario": _text(first.scenario),
            "build": _text(first.build),
            "setup": _text(first.setup),
            "model": _text(first.model),
            "trials": [_text(view.trial) for view in views],
        },
    }


def _places(result: TrialResult) -> tuple[Evidence, ...]:
    return result.verdicts[Stage.PERSIST].evidence[:_MOST_LOCATIONS]


def _location(result: TrialResult, evidence: Evidence) -> Json:
    """Where the evidence lies in the run folder, and as which store's line it stood in the agent's home."""
    match = _LINE.fullmatch(evidence.pointer)
    place = match["path"] if match else evidence.pointer
    store = next((found.store.value for found in result.stores if evidence in found.evidence), result.target)
    path = quote(f"trials/{result.trial}/{evidence.file}".encode("utf-8", "backslashreplace"), safe="/")
    physical: Json = {"artifactLocation": {"uri": path, "uriBaseId": "RUN"}}
    if match:
        physical["region"] = {"startLine": int(match["line"])}
        if evidence.excerpt:
            physical["region"]["snippet"] = {"text": _text(evidence.excerpt)}
    logical = {"name": _text(place), "fullyQualifiedName": _text(f"{store}:{place}"), "kind": "resource"}
    return {"physicalLocation": physical, "logicalLocations": [logical]}


def _notifications(run: ContaminationRun) -> Iterator[Json]:
    for void in run.report.voids:
        where = f"{void.family} in {void.setup} of {void.build}"
        yield _notification(f"void, so without results: {where}: {'; '.join(void.reasons)}", "error")
    for cause in run.report.accounting.causes:
        level = "error" if cause.status is Status.ERROR else "warning"
        trials = "trial" if cause.count == 1 else "trials"
        yield _notification(f"{cause.count} {trials} without a verdict ({cause.status}): {cause.cause}", level)
    undecided = [view.trial for view in _undecided(run)]
    if undecided:
        yield _notification(f"{len(undecided)} valid attack trials undecided, the first: {undecided[0]}", "warning")


def _undecided(run: ContaminationRun) -> Iterable[TrialRow]:
    for view in run.report.trials:
        if view.role is Role.ATTACK and judge_case(run, view).kind == "undecided":
            yield view


def _notification(text: str, level: str) -> Json:
    return {"level": level, "message": {"text": _text(text)}}


def _text(text: str) -> str:
    """Hostile text, short and with what hides in it shown; SARIF readers render plain text."""
    return visible(excerpt_text(cut(text, _TEXT)))
