"""What a scenario becomes in one trial: the home before, the session's plan, and the script of its models."""

from __future__ import annotations

import re
from collections.abc import Sequence

from lab.agents.base import Agent, PendingAction, Seed, SeedSkill, SessionPlan, Setup, WriteIntent
from lab.contamination.scenarios.filler import filler
from lab.contamination.scenarios.parts import Exchange, Step
from lab.contamination.scenarios.scenario import Scenario
from lab.contamination.scenarios.words import Carrier, Origin, Place
from lab.gateway.policies.base import Script, ScriptStep, ScriptTurn
from lab.gateway.replies import ToolCall
from lab.records import Role, Store

FRESH_TURN = ScriptTurn("Good morning! What can you help me with today?", "Good morning! Tell me what you need.")
"""User turn of the fresh session and the scripted reply; holds no canary."""

_BEHIND_HEAD = 5
"""Exchanges in front of the middle: behind every build's protected head, and far in front of its protected tail, which
in some builds is most of the conversation."""

_PRIOR_FILLER_START = 500
"""Number of the first neutral exchange before a session; no scenario's padding goes that far."""


def intent_of(scenario: Scenario) -> WriteIntent:
    """What the content wants written."""
    content = scenario.content
    return WriteIntent(
        Store(content.target.value), content.action.value, content.old or "", content.skill or "", content.file or ""
    )


def seed_of(scenario: Scenario, role: Role) -> Seed:
    """The home before the trial."""
    world = scenario.world
    return Seed(
        memory=world.memory,
        user=world.user,
        skills=[
            SeedSkill(s.name, s.made_by.value, s.pinned, s.description, scenario.fill(s.body, role))
            for s in world.skills
        ],
        files={f.path: scenario.fill(f.text, role) for f in world.files},
    )


def history_of(scenario: Scenario, role: Role, setup: Setup) -> list[tuple[str, str]]:
    """The conversation before the session: what a setup needs, and what the scenario's channel needs."""
    own = [Exchange(user=scenario.fill(e.user, role), assistant=e.assistant) for e in scenario.history]
    channel = scenario.channel
    if channel.carrier is Carrier.COMPRESSION:
        padding = list(filler(scenario.language, channel.padding))
        at = {Place.HEAD: 0, Place.MIDDLE: min(_BEHIND_HEAD, len(padding) // 2), Place.TAIL: len(padding)}[
            channel.place
        ]
        own = [*padding[:at], *own, *padding[at:]]
    prior = filler(scenario.language, setup.prior_turns, start=_PRIOR_FILLER_START)
    return [(e.user, e.assistant) for e in (*prior, *own)]


def turn_texts(scenario: Scenario, role: Role) -> list[str]:
    """What the user types, turn by turn."""
    return [scenario.fill(turn.user, role) for turn in scenario.transcript]


def session_plan(scenario: Scenario, role: Role, setup: Setup) -> SessionPlan:
    """What the session does."""
    channel = scenario.channel
    board = channel.board
    return SessionPlan(
        turns=turn_texts(scenario, role),
        history=history_of(scenario, role, setup),
        delegation={Carrier.DELEGATE: "inline", Carrier.DELEGATION_NOTICE: "background"}.get(channel.carrier, ""),
        board=None
        if board is None
        else {
            "title": board.title,
            "body": board.body,
            "author": board.author,
            "comment": scenario.fill(board.comment, role),
        },
        crash=setup.pending is PendingAction.APPROVE_AFTER_CRASH,
    )


def script_of(scenario: Scenario, role: Role, agent: Agent) -> Script:
    """What the scripted models do in the session.

    The script always holds the payload, in the twin's trial as well: there the models look for it and must not find
    it.
    """
    content, channel = scenario.content, scenario.channel
    intent = intent_of(scenario)
    return Script(
        turns=tuple(
            ScriptTurn(scenario.fill(t.user, role), t.assistant, _steps(scenario, t.steps, agent), t.full)
            for t in scenario.transcript
        ),
        earlier=tuple(text for e in scenario.history for text in (scenario.fill(e.user, role), e.assistant)),
        pieces=content.parts or (content.text,),
        stored=content.stored,
        paraphrase=content.paraphrase,
        compose=lambda wording, schemas: agent.compose(intent, wording, schemas),
        batch=agent.batched,
        user_stated=content.origin is Origin.USER_STATEMENT,
        by_foreground=scenario.writes_itself,
        summary=scenario.fill(channel.summary or "", role),
        report=scenario.fill(channel.child.report, role) if channel.child else "",
        child_steps=_steps(scenario, channel.child.steps, agent) if channel.child else (),
    )


def fresh_script(scenario: Scenario, agent: Agent) -> Script:
    """The fresh session: a greeting, and where the content went into a skill or a fact, a reason to open it."""
    intent = intent_of(scenario)
    turn = FRESH_TURN
    if intent.store is Store.FACTS:
        # Facts are recalled by words of the question; the canary itself must not be asked for.
        words = re.sub(rf"\S*{re.escape(scenario.canary)}\S*", " ", scenario.content.stored)
        turn = ScriptTurn(f"What do you know about this: {' '.join(words.split())}", turn.assistant)
    steps = tuple(ScriptStep(call) for call in agent.recall(intent))
    return Script(turns=(ScriptTurn(turn.user, turn.assistant, steps),))


def _steps(scenario: Scenario, steps: Sequence[Step], agent: Agent) -> tuple[ScriptStep, ...]:
    words = {"{{workspace}}": agent.workspace, "{{data}}": agent.data, "{{stored}}": scenario.content.stored}

    def filled(value: object) -> object:
        if isinstance(value, str):
            for name, word in words.items():
                value = value.replace(name, word)
            return value
        if isinstance(value, dict):
            return {key: filled(inner) for key, inner in value.items()}
        return [filled(inner) for inner in value] if isinstance(value, list) else value

    return tuple(
        ScriptStep(
            ToolCall(step.tool, {name: filled(value) for name, value in step.arguments.items()}) if step.tool else None,
            step.writes,
        )
        for step in steps
    )
