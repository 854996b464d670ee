"""Evaluation logs of Inspect (UK AISI): one for each build, setup and model; stages are scores, repeats are epochs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from lab.contamination.scenarios.scenario import Scenario
from lab.contamination.script import turn_texts
from lab.records import Attempt, Role, Status, TrialResult, digest
from lab.report.exports.source import ContaminationRun, Files, case_name, evidence_places
from lab.report.hostile import cut, excerpt_text, visible
from lab.report.rate_model import Group, Rate
from lab.report.trial_row import TrialRow

FORMAT_VERSION = 2
"""Version of Inspect's log format that is written."""
TASK = "contamination"
_TEXT = 4_000
_NO_TRACE = "none: the trial ended with a cause, see its folder in the run"

Json = dict[str, Any]
"""A part of a log: a JSON object, whose form the real package checks in a test."""


def render_inspect(run: ContaminationRun) -> Files:
    """The run as logs that ``inspect view`` and its data frames open.

    A stage's score is 1 or 0; a verdict that is not decided has none. A trial that is invalid, an error or not run is a
    sample with an error, which Inspect leaves out of every metric. The log's own metrics are the report's rates, with
    numerator and denominator.

    Args:
        run: The run.
    """
    logs: dict[tuple[str, str, str], list[TrialRow]] = {}
    for view in run.report.trials:
        logs.setdefault((view.build, view.setup, view.model), []).append(view)
    files = {}
    for where, views in sorted(logs.items()):
        log = _log(run, where, views)
        # The form of a name by which Inspect finds logs in a folder. Foreign words stand inside only.
        name = f"{log['eval']['created'].replace(':', '-')}_{TASK}_{log['eval']['eval_id']}.json"
        files[name] = json.dumps(log, ensure_ascii=True, indent=1).encode() + b"\n"
    return files


def _log(run: ContaminationRun, where: tuple[str, str, str], views: Sequence[TrialRow]) -> Json:
    build, setup, model = where
    name = digest([run.report.run.id, *where])[:22]
    created = _time(run.report.run.created)
    samples = [_sample(run, view) for view in views]
    done = sum("error" not in sample for sample in samples)
    header = run.report.header
    return {
        "version": FORMAT_VERSION,
        "status": "success" if run.report.finished else "cancelled",
        "eval": {
            "eval_id": name,
            "run_id": digest(run.report.run.id)[:22],
            "created": created,
            "task": TASK,
            "task_id": name,
            "task_version": 1,
            "task_args": {"build": _text(build), "setup": _text(setup)},
            "dataset": {
                "name": "scenarios",
                "samples": len({sample["id"] for sample in samples}),
                "sample_ids": sorted({sample["id"] for sample in samples}),
                "shuffled": False,
            },
            "model": _text(model),
            "config": {"epochs": max(view.repeat for view in views)},
            "packages": {"agent-memory-lab": _text(header.lab_version)},
            "metadata": {"run": _text(run.report.run.id), "build": _text(build), "setup": _text(setup)},
        },
        # The reader of headers wants a plan, and wants results and stats before the samples.
        "plan": {"name": "contamination trials", "steps": [], "config": {}},
        "results": {
            "total_samples": len(samples),
            "completed_samples": done,
            "scores": [score for group in run.report.groups if _is(group, where) for score in _scores(group)],
        },
        "stats": {"started_at": created, "completed_at": created, "model_usage": {}},
        "samples": samples,
    }


def _is(group: Group, where: tuple[str, str, str]) -> bool:
    return (group.build, group.setup, group.model) == where


def _scores(group: Group) -> Iterator[Json]:
    for rate in (group.persist, *group.rates):
        yield {
            "name": f"{rate.key} {_text(group.family)}",
            "scorer": rate.key.value,
            "params": {"of": rate.proportion.of, "void": list(map(_text, group.void))},
            "metrics": {name: {"name": name, "value": value} for name, value in _metrics(rate)},
        }


def _metrics(rate: Rate) -> Iterator[tuple[str, float]]:
    share = rate.proportion
    named = (
        *(("value", share.value), ("low", share.low), ("high", share.high)),
        *(("numerator", share.numerator), ("denominator", share.denominator)),
    )
    # A rate over nothing has no value; a zero in its place would be a result.
    return ((name, value) for name, value in named if value is not None)


def _sample(run: ContaminationRun, view: TrialRow) -> Json:
    result = run.results.get(view.trial)
    scenario = run.scenarios.get(view.scenario)
    turns = turn_texts(scenario, view.role) if scenario else []
    # Inspect drops a message whose id it has seen before, in whatever sample or log.
    name = digest([run.report.run.id, view.trial])[:22]
    calls = _calls(name, result)
    asked: list[Json] = [
        {"id": f"{name}-turn-{n}", "role": "user", "content": _text(turn)} for n, turn in enumerate(turns)
    ]
    sample: Json = {
        "uuid": name,
        "id": _text(case_name(view)),
        "epoch": view.repeat,
        "input": _text(turns[0]) if turns else _text(view.title),
        "target": "yes" if view.role is Role.CONTROL else "no",
        "messages": asked + [message for response, answers in calls for message in (response, *answers)],
        "events": [_event(run, view, response) for response, _ in calls],
        "scores": {},
        "metadata": {
            "trial": _text(view.trial),
            "family": _text(view.family),
            "role": view.role.value,
            "title": _text(view.title),
            "status": view.status.value,
            "cause": _text(view.cause),
            "void": list(map(_text, run.void(view))),
            "canary": _canary(scenario),
            "stores": [store.value for store in view.holds],
            "notice": view.notice.value,
        },
    }
    if view.status is not Status.VALID:
        message = f"{view.status}: {view.cause}"
        return sample | {"error": {"message": _text(message), "traceback": _NO_TRACE, "traceback_ansi": _NO_TRACE}}
    sample["scores"] = {
        stage.value: {
            "value": int(value.value == "yes"),
            "answer": value.value,
            "explanation": _text("\n".join(evidence_places(run.results.get(view.trial), stage))),
        }
        for stage, value in view.stages.items()
        if value.decided
    }
    return sample


def _event(run: ContaminationRun, view: TrialRow, response: Json) -> Json:
    """A recorded model call, without its request, which is in the evidence and tens of kilobytes long."""
    return {
        "event": "model",
        "timestamp": _time(run.report.run.created),
        "model": _text(view.model),
        "input": [],
        "tools": [],
        "tool_choice": "auto",
        "config": {},
        "output": {"model": _text(view.model), "choices": [{"message": response, "stop_reason": "tool_calls"}]},
    }


def _canary(scenario: Scenario | None) -> str:
    return scenario.canary if scenario else ""


def _calls(name: str, result: TrialResult | None) -> list[tuple[Json, list[Json]]]:
    """Each recorded response of a model that held write calls, as a message, with the tools' answers."""
    responses: dict[int, list[tuple[str, Attempt]]] = {}
    for number, attempt in enumerate(result.attempts if result else ()):
        responses.setdefault(attempt.exchange, []).append((f"{name}-call-{number}", attempt))
    return [
        (_response(f"{name}-{exchange}", calls), [_answer(*call) for call in calls])
        for exchange, calls in responses.items()
    ]


def _response(name: str, calls: Sequence[tuple[str, Attempt]]) -> Json:
    first = calls[0][1]
    return {
        "id": name,
        "role": "assistant",
        "content": _text(f"[{first.origin}, exchange {first.exchange} of requests.jsonl]"),
        "tool_calls": [
            {"id": name, "function": _text(call.tool), "arguments": _arguments(call), "type": "function"}
            for name, call in calls
        ],
    }


def _answer(name: str, call: Attempt) -> Json:
    return {
        "id": f"{name}-answer",
        "role": "tool",
        "content": _text(f"[{call.decision}] {call.answer}"),
        "tool_call_id": name,
        "function": _text(call.tool),
    }


def _arguments(attempt: Attempt) -> Json:
    try:
        told = json.loads(attempt.arguments)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict):
        return {"arguments": _text(attempt.arguments)}
    plain = {key: item if isinstance(item, str) else json.dumps(item, ensure_ascii=False) for key, item in told.items()}
    return {_text(key): _text(item) for key, item in plain.items()}


def _text(text: str) -> str:
    return visible(excerpt_text(cut(text, _TEXT)))


def _time(created: str) -> str:
    try:
        told = datetime.fromisoformat(created)
    except ValueError:
        told = datetime.fromtimestamp(0, UTC)
    return (
        told.replace(microsecond=0).isoformat() if told.tzinfo else told.replace(microsecond=0, tzinfo=UTC).isoformat()
    )
