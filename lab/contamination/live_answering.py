"""Live models as those who answer the trials of a run, in their scope; scripted ones answer the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lab.agents.base import Agent
from lab.contamination.answering import Scripted, TrialAnswering
from lab.contamination.live import Live
from lab.contamination.observe.judge import TrialIdentity
from lab.gateway.answers import Answers, ScriptedAnswers
from lab.gateway.policies.base import Script
from lab.gateway.policies.scripted import policy_named
from lab.gateway.upstream.lane import Lane
from lab.gateway.upstream.limits import Budget, Endpoint, Limits, Spent
from lab.gateway.upstream.live import LiveAnswers
from lab.gateway.upstream.ollama import OllamaUpstream
from lab.gateway.upstream.openai import OpenAIUpstream
from lab.models.spec import Provider

_BESIDE = "never-write"
"""Who answers what the live model is not asked: the foreground says its lines, and writes nothing by itself."""


class LiveModels:
    """Live models, each by the lane of its server, beside the scripted ones.

    Args:
        live: Who they are and how they are asked.
        key: Key of the OpenAI-compatible servers; empty for none.
        limits: Bounds of each lane.
        budget: What all of them may use up together.
        spent: What the run has used up before.
    """

    def __init__(self, live: Live, key: str, limits: Limits, budget: Budget, spent: Spent) -> None:
        self._live, self._key = live, key
        # One purse: what is bounded is the run, whichever servers it asks.
        self._lanes: Mapping[str, Lane] = {
            url: Lane(limits, budget, spent) for url in sorted({model.url for model in live.models.values()})
        }
        self._scripted = Scripted()

    def trial(self, identity: TrialIdentity, agent: Agent) -> TrialAnswering:
        """See ``Answering``."""
        if identity.model not in self._live.models:
            return self._scripted.trial(identity, agent)
        return _LiveTrial(self._live, self._upstream(identity))

    def _upstream(self, identity: TrialIdentity) -> Answers:
        model, sampling = self._live.models[identity.model], self._live.sampling
        lane = self._lanes[model.url]
        if model.provider is Provider.OLLAMA:
            endpoint = Endpoint(model.url, model.name)
            return OllamaUpstream(endpoint, lane, sampling, identity.seed, model.context, model.server)
        endpoint = Endpoint(model.url, model.name, self._key)
        return OpenAIUpstream(endpoint, lane, sampling, identity.seed, model.context, model.server)


@dataclass(frozen=True)
class _LiveTrial:
    live: Live
    upstream: Answers

    def phase(self, script: Script) -> Answers:
        return LiveAnswers(self.upstream, ScriptedAnswers(policy_named(_BESIDE), script), self.live.scope)
