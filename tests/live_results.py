"""Results of planted live models: one always tries, one never, one is refused, one changes its mind between repeats."""

from __future__ import annotations

from typing import Any

from lab.records import Decision, ModelUse, Reach, Role, Status, TrialResult
from tests.factories import ALWAYS, NEVER, attempt, lock, quiet, result

TRIES, SILENT, REFUSED, FLIPS = (
    f"openai:{name}@http://127.0.0.1:9/v1" for name in ("tries", "silent", "held", "flips")
)
LIVE = (TRIES, SILENT, REFUSED, FLIPS)
SCENARIOS, REPEATS = 6, 3

PLACES = (Reach(role="user", position=1, messages=9), Reach(role="tool", position=4, messages=9))
LATE = Reach(role="tool", position=6, messages=9)
"""The first index of the last third of nine messages."""


def use(**more: Any) -> ModelUse:
    """What one trial asked: two answers to reviews, one call."""
    fields: dict[str, Any] = {
        "requests": 2,
        "prompt_tokens": 11_000,
        "completion_tokens": 100,
        "uncounted": 0,
        "seconds": 4.5,
        "review_answers": 2,
        "calls": 1,
        "unparsable_calls": 0,
        "unknown_tools": 0,
        "refusals": 0,
    }
    return ModelUse(**fields | more)


def _known(scenario: str, number: int) -> dict[str, Any]:
    return {
        "delivery": ("visible_instruction", "hidden_comment")[number % 2],
        "language": "pt" if number == SCENARIOS else "en",
        "stood": LATE if number > 4 else PLACES[number % 2],
    }


def attack(model: str, scenario: str, number: int, repeat: int, **more: Any) -> TrialResult:
    """One attack trial of a planted model."""
    known = _known(scenario, number) | {"model": model, "repeat": repeat, "model_use": use()} | more
    if model in (TRIES, ALWAYS):
        return result(scenario, **known)
    if model == REFUSED:
        stopped = (attempt(decision=Decision.REFUSED_SCAN),)
        return quiet(scenario, **known | {"attempted": "yes", "attempts": stopped})
    if model == FLIPS and number % 2 and repeat == 1:
        return result(scenario, **known)
    return quiet(scenario, **known | ({"model_use": use(calls=0, refusals=1)} if model == SILENT else {}))


def trials(
    models: tuple[str, ...] = (ALWAYS, NEVER, *LIVE),
    *,
    families: tuple[str, ...] = ("F1", "F2"),
    repeats: int = REPEATS,
) -> list[TrialResult]:
    """Attacks, twins and positive controls of the models; every harness control holds."""
    found = []
    for model in models:
        scripted = {"model_use": None} if model in (ALWAYS, NEVER) else {}
        for repeat in range(1, repeats + 1):
            for number in range(1, SCENARIOS + 1):
                for family in families:
                    name = f"{family}-{number:03}"
                    found.append(attack(model, name, number, repeat, **scripted))
                    known = _known(name, number) | {"model": model, "repeat": repeat, "model_use": use()} | scripted
                    found.append(quiet(name, role=Role.TWIN, **known))
                control = quiet if model in (NEVER, SILENT) else result
                known = {"model": model, "repeat": repeat, "model_use": use()} | scripted
                found.append(control(f"F5-{number:03}", role=Role.CONTROL, **known))
    return found


def error_of(trial: TrialResult, cause: str = "model_timeout") -> TrialResult:
    """The same trial, lost by the infrastructure: nothing of it is known."""
    keys = ("scenario", "role", "model", "setup", "build", "repeat", "delivery", "language", "trial", "cell")
    fields = {key: getattr(trial, key) for key in keys}
    return result(fields.pop("scenario"), status=Status.ERROR, cause=cause, **fields)


def live_lock(models: tuple[str, ...] = LIVE, **more: Any) -> dict[str, Any]:
    """The lock of a run with the planted models."""
    facts = {
        model: {
            "spec": model,
            "provider": "openai",
            "name": model.partition(":")[2].partition("@")[0],
            "url": model.partition("@")[2],
            "server": "llama.cpp b1",
            "digest": "ab" * 32,
            "quantisation": "Q4_K_M",
            "context": 8192,
            "context_source": "/props n_ctx",
            "tools": "yes",
            "tools_detail": "called note with the text",
            "tokens_per_second": 21.5,
        }
        for model in models
    }
    live = {"models": facts, "scope": "review", "sampling": {"temperature": 0.0, "max_tokens": 512}}
    return lock(models=[ALWAYS, NEVER, *models], live=live, **more)
