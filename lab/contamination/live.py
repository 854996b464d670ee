"""How a run asks live models: which of the agent's requests, with which options; locked with the run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from lab.gateway.upstream.limits import Budget
from lab.gateway.upstream.live import Scope
from lab.models.identity import LiveModel, Sampling
from lab.records import Record


class Live(Record):
    """The live models of a run.

    Attributes:
        models: What each is, by the name that it was asked for under.
        scope: Which requests they answer.
        sampling: Options that are sent.
        key_env: Name of the variable that holds the key; never the key.
        limits: Bounds of the lane to each server: they decide whether there is a result, not which.
        budget: What the run may use up, unless ``lab resume`` is told otherwise; it decides no result either.
    """

    models: dict[str, LiveModel]
    scope: Scope = Scope.REVIEW
    sampling: Sampling = Sampling()
    key_env: str = "OPENAI_API_KEY"
    limits: dict[str, Any] = Field(default_factory=dict)
    budget: Budget = Budget()

    def cell(self, model: str, seed: int) -> dict[str, Any]:
        """What decides the answers of a model in a trial, as far as anything does.

        Args:
            model: Its name.
            seed: Of the trial.
        """
        told = {"scope": self.scope, "sampling": self.sampling.model_dump(mode="json"), "seed": seed}
        return {"model": self.models[model].decisive, **told}


def comparable(locked: Mapping[str, Any]) -> dict[str, Any]:
    """What of a lock's ``live`` decides an answer; addresses, speeds, bounds and what a probe saw are left out.

    Args:
        locked: That part of a lock, as it was read from JSON.
    """
    live = Live.model_validate(locked)
    return {
        "scope": live.scope.value,
        "sampling": live.sampling.model_dump(mode="json"),
        "models": {name: model.decisive for name, model in live.models.items()},
    }
