"""What ``lab run`` and ``lab resume`` do about live models: who they are, whether they are fit, what they use up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from lab.cli.models import pull_model, summary
from lab.cli.output import console, safe
from lab.cli.redact import declare_key
from lab.contamination.live import Live
from lab.contamination.live_answering import LiveModels
from lab.contamination.suite import Suite
from lab.errors import InputError
from lab.gateway.upstream.limits import Budget, Limits, Spent
from lab.gateway.upstream.live import Scope
from lab.models.identify import identify
from lab.models.identity import Ability, LiveModel, Sampling
from lab.models.ollama import OllamaServer
from lab.models.ollama_client import full_name
from lab.models.openai import read_key
from lab.models.spec import ModelSpec, Provider
from lab.runs.tokens import Planned, TokenPlan, estimate_tokens

SESSION_SECONDS = 3600.0
"""Wall seconds of a session with a live model, where nothing else is said."""

ANSWER_SECONDS = Limits().total
"""Seconds that one answer may take, where nothing else is said."""

CEILING = ("scripted:always-write", "scripted:never-write")
"""Run beside live models: what the guards let through at most, and what changes without any model."""


@dataclass(frozen=True)
class Asking:
    """How live models are asked.

    Attributes:
        scope: Which requests they answer.
        sampling: Options that are sent.
        context: What the user says that the context is.
        key_env: Variable that holds the key.
        limits: Bounds of each lane.
        budget: What a run may use up.
    """

    scope: Scope
    sampling: Sampling
    context: int | None
    key_env: str
    limits: Limits
    budget: Budget


def introduce(specs: Sequence[ModelSpec], asking: Asking, *, pull: bool, probe: bool) -> Live | None:
    """Asks the servers who the live models are, and whether they call tools; None where there is no live model.

    Args:
        specs: All models of the run.
        asking: How they are asked.
        pull: Whether Ollama fetches what it does not have.
        probe: Whether each is asked for a tool call; one that makes none is refused.

    Raises:
        EnvironmentUnusable: A server or a model cannot be reached.
        InputError: A model calls no tools: it could not write, whatever it was told.
    """
    declare_key(asking.key_env)
    models: dict[str, LiveModel] = {}
    for spec in (spec for spec in specs if spec.is_live):
        if pull and spec.provider is Provider.OLLAMA:
            _pull_missing(spec.name)
        with console.status(f"asking {safe(spec.text)} …"):
            model = identify(
                spec, key=read_key(asking.key_env), sampling=asking.sampling, context=asking.context, probe=probe
            )
        console.print(f"{safe(spec.text)}: {safe(summary(model), 400)}", soft_wrap=True)
        if probe and model.tools is Ability.NO:
            raise InputError(
                f"{spec.text} calls no tools, so it could write nothing: {model.tools_detail}",
                "take a model that does, or --no-probe to run it all the same",
            )
        models[spec.text] = model
    if not models:
        return None
    return Live(
        models=models,
        scope=asking.scope,
        sampling=asking.sampling,
        key_env=asking.key_env,
        limits=asdict(asking.limits),
        budget=asking.budget,
    )


def _pull_missing(name: str) -> None:
    """Fetches a model that Ollama does not have; one that it has is left as it is, and with it its digest."""
    server = OllamaServer()
    if full_name(name) not in {full_name(listed.name) for listed in server.listed()}:
        pull_model(server, name)


def check_same_models(live: Live, asking: Asking) -> None:
    """Checks that the live models of a run are still what it was locked with.

    Raises:
        EnvironmentUnusable: A server or a model cannot be reached.
        InputError: A model is another now.
    """
    declare_key(live.key_env)
    for name, locked in live.models.items():
        spec = ModelSpec(name, locked.provider, locked.name, locked.url)
        now = identify(
            spec,
            key=read_key(live.key_env),
            sampling=live.sampling,
            context=asking.context or locked.context,
            probe=False,
        )
        for part, was in locked.decisive.items():
            # What a server told only once the model was loaded, by the probe, it may not tell before.
            if (is_now := now.decisive[part]) != was and is_now not in ("", None):
                raise InputError(
                    f"{name} is no longer what the run was locked with: its {part} was {was} and is {is_now}",
                    "start a new run: lab run",
                )


def live_models(live: Live, asking: Asking, suite: Suite) -> LiveModels:
    """Who answers the trials of a run with live models.

    Args:
        live: Who they are, as locked.
        asking: Limits and budget.
        suite: The run: what its results have used up counts.
    """
    spent = Spent()
    for result in suite.each_result():
        if result.model_use:
            spent.prompt_tokens += result.model_use.prompt_tokens
            spent.completion_tokens += result.model_use.completion_tokens
    return LiveModels(live, read_key(live.key_env), asking.limits, asking.budget, spent)


def with_ceiling(named: Sequence[str], live: Live | None, wanted: bool) -> list[str]:
    """The models of a run, and the two scripted ones beside live ones."""
    if live is None or not wanted:
        return list(named)
    return [*named, *(model for model in CEILING if model not in named)]


def lane_limits(concurrency: int, answer_seconds: float) -> Limits:
    """Limits of a lane by the two that a user sets."""
    usual = Limits()
    return replace(
        usual, concurrency=concurrency, total=answer_seconds, first_byte=min(usual.first_byte, answer_seconds)
    )


def budget_of(
    tokens: int | None,
    cost: float | None,
    price_in: float | None,
    price_out: float | None,
    locked: Budget | None = None,
) -> Budget:
    """The budget that options give; what is not given is as the run was locked with.

    Raises:
        InputError: It bounds nothing.
    """
    given = {"tokens": tokens, "cost": cost, "input_price": price_in, "output_price": price_out}
    return Budget(**{**(asdict(locked) if locked else {}), **{n: v for n, v in given.items() if v is not None}})


def token_plan(
    trials: Sequence[Mapping[str, Any]], live: Live | None, asking: Asking, reports: Path
) -> TokenPlan | None:
    """What the live models of a plan will be asked; None where it has none.

    Args:
        trials: The planned trials.
        live: The live models.
        asking: How they are asked.
        reports: Folder with earlier run folders.
    """
    if live is None:
        return None
    counts = Counter(str(trial["model"]) for trial in trials)
    return estimate_tokens(
        [
            Planned(name, counts[name], model.url, model.tokens_per_second)
            for name, model in live.models.items()
            if counts[name]
        ],
        reports,
        scope=live.scope,
        concurrency=asking.limits.concurrency,
        price_in=asking.budget.input_price,
        price_out=asking.budget.output_price,
    )


def lanes(live: Live | None, asking: Asking) -> int | None:
    """Requests under way at once: more trials would only wait, on their sessions' time; None without a bound."""
    if live is None:
        return None
    return asking.limits.concurrency * len({model.url for model in live.models.values()})
