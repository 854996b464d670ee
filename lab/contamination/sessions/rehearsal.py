"""The session by which a warm sandbox learns what a session imports: constant, and without anything of a trial."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from lab.agents.base import Seed, SessionPlan, WriteIntent
from lab.agents.hermes.adapter import JOB_NAME, MODEL_NAME, SOCKET_NAME
from lab.contamination.sessions.base import Launch, give_to_sandbox
from lab.contamination.sessions.slot import Slot
from lab.gateway.answers import ScriptedAnswers
from lab.gateway.policies.base import Script, ScriptTurn
from lab.gateway.policies.scripted import policy_named
from lab.records import Store

_TURN = "Please remember that my notebook is blue."
_STORED = "The user's notebook is blue."
_POLICY = "always-write"
"""A reviewer that writes, so that the way to the store is imported too."""


def seed(launch: Launch, slot: Slot) -> None:
    """Gives the slot the home that every trial of this setup starts from, but for its memory."""
    launch.agent.initialise_home(slot.home, Seed(), launch.setup)
    give_to_sandbox(slot.home)


@contextmanager
def rehearsal(launch: Launch, slot: Slot) -> Iterator[None]:
    """Lays out home, job and endpoint of the rehearsal for as long as the context lasts."""
    seed(launch, slot)
    (slot.io / JOB_NAME).write_text(json.dumps(launch.agent.job(SessionPlan([_TURN]))), encoding="utf-8")
    give_to_sandbox(slot.io)
    record = slot.root / "rehearsal.jsonl"
    script = Script(
        turns=(ScriptTurn(_TURN, "Noted."),),
        pieces=(_TURN,),
        stored=_STORED,
        paraphrase=_STORED,
        compose=lambda wording, schemas: launch.agent.compose(WriteIntent(Store.USER), wording, schemas),
    )
    gateway = launch.gateways.open(
        socket=slot.io / SOCKET_NAME,
        answers=ScriptedAnswers(policy_named(_POLICY), script),
        delivered=script.delivered,
        record=record,
        phase="session",
        model=MODEL_NAME,
    )
    try:
        yield
    finally:
        launch.gateways.close(gateway)
        record.unlink(missing_ok=True)
