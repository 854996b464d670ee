"""Who answers the trials of a run: the scripted models, a recording, or live models beside the scripted ones."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

from lab.agents.base import Agent
from lab.contamination.observe.judge import REQUESTS, TrialIdentity
from lab.gateway.answers import Answers, ScriptedAnswers
from lab.gateway.exchange import read_exchanges
from lab.gateway.policies.base import SCRIPTED, Script
from lab.gateway.policies.scripted import policy_named
from lab.gateway.replay import ReplayAnswers
from lab.runs.folder import RunFolder


class Answering(Protocol):
    """Makes who answers one trial; called once for each, in the trial's own thread."""

    def trial(self, identity: TrialIdentity, agent: Agent) -> TrialAnswering:
        """Who answers a trial."""
        ...


class TrialAnswering(Protocol):
    """Makes who answers one phase of a trial."""

    def phase(self, script: Script) -> Answers:
        """Who answers a phase.

        Args:
            script: What scripted models do in it.
        """
        ...


class Scripted:
    """The scripted models alone."""

    def trial(self, identity: TrialIdentity, agent: Agent) -> TrialAnswering:  # noqa: ARG002 - see the protocol
        """See ``Answering``."""
        return _ScriptedTrial(identity.model)


class _ScriptedTrial:
    def __init__(self, model: str) -> None:
        self._policy = policy_named(model.removeprefix(SCRIPTED))

    def phase(self, script: Script) -> Answers:
        return ScriptedAnswers(self._policy, script)


class Replaying:
    """What was recorded in an earlier run, trial by trial.

    Args:
        recording: The earlier run.
    """

    def __init__(self, recording: RunFolder) -> None:
        self._recording = recording

    def trial(self, identity: TrialIdentity, agent: Agent) -> TrialAnswering:
        """See ``Answering``; of a trial that recorded no request, none is answered.

        Raises:
            InputError: The recording of the trial is damaged.
        """
        return _ReplayedTrial(self._recording.trial(identity.trial) / REQUESTS, agent)


class _ReplayedTrial:
    def __init__(self, path: Path, agent: Agent) -> None:
        # One for all phases: each recorded answer is given once.
        self._answers = ReplayAnswers(read_exchanges(path), agent.comparable)

    def phase(self, script: Script) -> Answers:  # noqa: ARG002 - the recording decides
        return self._answers
