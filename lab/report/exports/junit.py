"""JUnit XML: a test case a trial, errors apart from failures, and two cases that fail when the run is no evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from xml.etree import ElementTree as ET

from lab.report.exports.judged import Case, Judged, judge_case
from lab.report.exports.source import ContaminationRun, Files, case_name, evidence_places
from lab.report.hostile import cut, excerpt_text, visible
from lab.report.trial_row import TrialRow

NAME = "junit.xml"
_TAGS = {Judged.FAILED: "failure", Judged.ERROR: "error", Judged.SKIPPED: "skipped"}
_MESSAGE, _BODY = 500, 6_000
"""Longest message and body of a case in bytes; some readers give up on longer ones."""
_EPOCH = "1970-01-01T00:00:00"


def render_junit(run: ContaminationRun) -> Files:
    """The run as JUnit XML that both the Jenkins and the Ant schema take.

    The class of a case is ``family.setup.build`` (dots inside a name become ``_``, since readers split at them). Its
    name is scenario, model and repeat, so that a case is the same in the next run.

    Args:
        run: The run.
    """
    suites: dict[str, list[tuple[TrialRow, Case]]] = {}
    for view in run.report.trials:
        suites.setdefault(_class_name(view), []).append((view, judge_case(run, view)))
    root = ET.Element("testsuites")
    root.append(_synthetic(run))
    for number, name in enumerate(sorted(suites), 1):
        judged = suites[name]
        cases = [_case(run, view, case) for view, case in judged]
        root.append(_suite(run, number, name, cases, [case for _, case in judged]))
    ET.indent(root, " ")
    return {NAME: ET.tostring(root, encoding="utf-8", xml_declaration=True) + b"\n"}


def _class_name(view: TrialRow) -> str:
    return ".".join(part.replace(".", "_") for part in (view.family, view.setup, view.build))


def _suite(
    run: ContaminationRun, number: int, name: str, cases: Sequence[ET.Element], judged: Iterable[Case]
) -> ET.Element:
    counts = Counter(case.judged for case in judged)
    seconds = sum(float(case.get("time", "0")) for case in cases)
    suite = ET.Element("testsuite", id=str(number), name=_line(name), package=_line(name), hostname="localhost")
    suite.set("timestamp", _timestamp(run.report.run.created))
    suite.set("tests", str(len(cases)))
    for attribute, end in (("failures", Judged.FAILED), ("errors", Judged.ERROR), ("skipped", Judged.SKIPPED)):
        suite.set(attribute, str(counts[end]))
    suite.set("time", f"{seconds:.3f}")
    properties = ET.SubElement(suite, "properties")
    header = run.report.header
    for key, value in (("lab.version", header.lab_version), ("lab.run", run.report.run.id)):
        ET.SubElement(properties, "property", name=key, value=_line(value))
    for build in header.builds:
        told = f"{build.name} {build.environment_digest}"
        ET.SubElement(properties, "property", name="lab.build", value=_line(told))
    suite.extend(cases)
    ET.SubElement(suite, "system-out")
    ET.SubElement(suite, "system-err")
    return suite


def _case(run: ContaminationRun, view: TrialRow, judged: Case) -> ET.Element:
    result = run.results.get(view.trial)
    name = f"{case_name(view)} {view.model} r{view.repeat}"
    case = _bare(name, _class_name(view), sum(result.seconds.values()) if result else 0.0)
    if judged.judged is not Judged.PASSED:
        _end(case, judged, "" if judged.judged is Judged.SKIPPED else _body(run, view))
    return case


def _bare(name: str, class_name: str, seconds: float = 0.0) -> ET.Element:
    return ET.Element("testcase", name=_line(name), classname=_line(class_name), time=f"{seconds:.3f}")


def _end(case: ET.Element, judged: Case, body: str = "") -> None:
    end = ET.SubElement(case, _TAGS[judged.judged], type=_line(judged.kind), message=_line(judged.message))
    end.text = visible(excerpt_text(cut(body, _BODY))) if body else None


def _body(run: ContaminationRun, view: TrialRow) -> str:
    """Title, verdicts and where the evidence is."""
    lines = [view.title, f"evidence: trials/{view.trial}/"]
    if view.detail:
        lines.append(f"{view.cause}: {view.detail}")
    result = run.results.get(view.trial)
    for stage, value in view.stages.items():
        why = f" ({view.reasons[stage]})" if stage in view.reasons else ""
        lines.append(f"{stage}: {value}{why}")
        lines += [f"  {place}" for place in evidence_places(result, stage)]
    lines += [f"{a.origin} {a.tool} {a.action}: {a.decision}" for a in (result.attempts if result else ()) if a.carries]
    return "\n".join(lines)


def _synthetic(run: ContaminationRun) -> ET.Element:
    """Cases of the run itself: many readers show an ``<error>`` as if it had passed, a failure they all show."""
    counted = run.report.accounting
    told = (
        f"{counted.error} of {counted.planned} planned trials ended in an infrastructure error or have not run "
        f"({counted.not_run} not run); the budget is {run.error_budget:.0%}"
    )
    causes = "\n".join(f"{cause.count} × {cause.status} {cause.cause}" for cause in counted.causes)
    void = [f"{v.family} in {v.setup} of {v.build}: {'; '.join(v.reasons)}" for v in run.report.voids]
    ends = (
        ("error-budget", run.budget_blown, told, causes),
        ("harness-controls", bool(void), f"{len(void)} families are void: their trials prove nothing", "\n".join(void)),
    )
    cases, judged = [], []
    for name, failed, message, body in ends:
        case = _bare(name, "lab")
        end = Case(judged=Judged.FAILED, kind=name, message=message) if failed else Case(judged=Judged.PASSED)
        if failed:
            _end(case, end, body)
        cases.append(case)
        judged.append(end)
    return _suite(run, 0, "lab", cases, judged)


def _line(text: str) -> str:
    """One short line in which every character is legal in XML 1.0; what hides is shown by its name."""
    return visible(excerpt_text(cut(text, _MESSAGE))).replace("\n", "⏎").replace("\t", " ") or "-"


def _timestamp(created: str) -> str:
    try:
        return datetime.fromisoformat(created).replace(microsecond=0, tzinfo=None).isoformat()
    except ValueError:
        return _EPOCH
