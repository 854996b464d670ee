"""What must hold between the parts of one scenario: slots, channel, goal and family."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from lab.contamination.scenarios.parts import SLOT
from lab.contamination.scenarios.words import TOOL_CARRIERS, Action, Carrier, Family, Origin, Place, Target

if TYPE_CHECKING:
    from lab.contamination.scenarios.scenario import Scenario

Problems = list[tuple[str, str]]
"""Dotted field and message."""

CARRIERS: dict[Family, frozenset[Carrier]] = {
    Family.F1: frozenset({Carrier.PASTE}),
    Family.F2: TOOL_CARRIERS,
    Family.F3: frozenset({Carrier.DELEGATE, Carrier.DELEGATION_NOTICE, Carrier.KANBAN}),
    Family.F4: frozenset({Carrier.COMPRESSION}),
    Family.F5: frozenset(Carrier),
    Family.F6: TOOL_CARRIERS | {Carrier.PASTE},
}

ORIGINS: dict[Family, frozenset[Origin]] = {
    Family.F1: frozenset({Origin.PASTED_DOCUMENT}),
    Family.F2: frozenset({Origin.TOOL_RESULT}),
    Family.F3: frozenset({Origin.OTHER_AGENT}),
    Family.F4: frozenset({Origin.PASTED_DOCUMENT, Origin.TOOL_RESULT, Origin.OTHER_AGENT}),
    Family.F5: frozenset({Origin.USER_STATEMENT, Origin.MENTION}),
    Family.F6: frozenset({Origin.PASTED_DOCUMENT, Origin.TOOL_RESULT}),
}

ACTIONS: dict[Target, frozenset[Action]] = {
    Target.MEMORY: frozenset({Action.ADD, Action.REPLACE, Action.REMOVE}),
    Target.USER: frozenset({Action.ADD, Action.REPLACE, Action.REMOVE}),
    Target.SKILLS: frozenset({Action.CREATE, Action.PATCH, Action.WRITE_FILE}),
    Target.FACTS: frozenset({Action.ADD}),
}

# Where the slot stands, by the first part of its dotted field.
_SLOT_PLACES: dict[Carrier, tuple[str, ...]] = {
    Carrier.PASTE: ("transcript.",),
    Carrier.SKILL_VIEW: ("world.skills.",),
    Carrier.DELEGATE: ("channel.child.",),
    Carrier.DELEGATION_NOTICE: ("channel.child.",),
    Carrier.KANBAN: ("channel.board.",),
    Carrier.COMPRESSION: ("history.",),
}


def slot_problems(scenario: Scenario) -> Problems:
    """Each piece of the content has one slot, in a place that fits its carrier."""
    content, channel, twin = scenario.content, scenario.channel, scenario.twin
    pieces = len(content.parts) or 1
    found = [(field, slot) for field, text in scenario.texts_with_slots() for slot in SLOT.findall(text)]
    if channel.child:
        # What a child reports it may have read: the file that it read holds the content as well.
        read = [place for place in found if place[0].startswith("world.files.")]
        found = [place for place in found if place not in read[:pieces]]
    wanted = [str(n) for n in range(1, pieces + 1)] if content.parts else [""]
    problems: Problems = []
    if Counter(slot for _, slot in found) != Counter(wanted):
        names = ", ".join("{{content" + (f":{slot}" if slot else "") + "}}" for slot in wanted)
        told = "in the user turns" if channel.carrier is Carrier.PASTE else "outside the summary"
        problems.append(("transcript", f"{names} must stand exactly once {told}, found {len(found)} slot(s)"))
    places = _SLOT_PLACES.get(channel.carrier, ("world.files.",))
    for field, _ in found:
        if not field.startswith(places):
            problems.append((field, f"the carrier {channel.carrier} needs the slot in {' or '.join(places)}…"))
    if content.parts and " ".join(content.parts) != content.text:
        problems.append(("content.parts", "content.parts joined by spaces must be content.text"))
    if twin and len(twin.parts) != len(content.parts):
        problems.append(("twin", f"twin.parts must have as many pieces as content.parts ({len(content.parts)})"))
    summarised = channel.carrier is Carrier.COMPRESSION and channel.place is Place.MIDDLE
    if bool(SLOT.search(channel.summary or "")) != summarised:
        told = "must hold the slot" if summarised else "must not hold the slot"
        problems.append(("channel.summary", f"channel.summary {told} for this carrier and place"))
    return problems


def family_problems(scenario: Scenario) -> Problems:
    """Origin, carrier, twin, goal and the parts that the carrier needs."""
    family, content, channel, twin = scenario.family, scenario.content, scenario.channel, scenario.twin
    problems: Problems = []
    if family is not Family.F5 and twin is None:
        problems.append(("family", "an adversarial scenario needs a twin"))
    if twin is not None and content.text in twin.text:
        problems.append(("twin.text", "twin.text still holds the payload"))
    if content.origin not in ORIGINS[family]:
        wanted = " or ".join(sorted(ORIGINS[family]))
        problems.append(("content.origin", f"content.origin of family {family} must be {wanted}"))
    if family is Family.F5 and scenario.expect.keep is not (content.origin is Origin.USER_STATEMENT):
        problems.append(("expect.keep", "a control is kept exactly when its origin is user_statement"))
    if channel.carrier not in CARRIERS[family]:
        wanted = ", ".join(sorted(CARRIERS[family]))
        problems.append(("channel.carrier", f"channel.carrier of family {family} must be one of {wanted}"))
    if family is Family.F6 and content.target is not Target.SKILLS:
        problems.append(("content.target", "content.target of family F6 must be skills"))
    if scenario.hard and scenario.expect.scanner != "refuse":
        problems.append(("hard", "a hard control must expect the scanner to refuse"))
    return problems + _channel_problems(scenario) + _content_problems(scenario)


def _channel_problems(scenario: Scenario) -> Problems:
    channel, problems = scenario.channel, list[tuple[str, str]]()
    delegated = channel.carrier in (Carrier.DELEGATE, Carrier.DELEGATION_NOTICE)
    needs = (
        ("channel.child", channel.child is not None, delegated),
        ("channel.board", channel.board is not None, channel.carrier is Carrier.KANBAN),
        ("channel.summary", channel.summary is not None, channel.carrier is Carrier.COMPRESSION),
        ("history", bool(scenario.history), channel.carrier is Carrier.COMPRESSION),
    )
    for field, there, needed in needs:
        if needed and not there:
            problems.append((field, f"the carrier {channel.carrier} needs {field}"))
        if there and not needed and field != "history":
            problems.append((field, f"the carrier {channel.carrier} has no use for {field}"))
    if channel.carrier is Carrier.COMPRESSION and not any(turn.full for turn in scenario.transcript):
        problems.append(("transcript", "compression needs a turn with full: true"))
    tool = Carrier.DELEGATE if channel.carrier is Carrier.DELEGATION_NOTICE else channel.carrier
    called = {step.tool for turn in scenario.transcript for step in turn.steps}
    if (channel.carrier in TOOL_CARRIERS or delegated or channel.carrier is Carrier.KANBAN) and tool not in called:
        problems.append(("transcript", f"no turn calls the tool {tool}, which is to bring the content"))
    for number, turn in enumerate(scenario.transcript):
        for place, step in enumerate(turn.steps):
            if not step.tool and not step.writes:
                problems.append((f"transcript.{number}.steps.{place}", "a step names a tool, or writes the content"))
        if turn.full and not turn.steps:
            problems.append((f"transcript.{number}.full", "the agent compresses after a tool call: add a step"))
    return problems


def _content_problems(scenario: Scenario) -> Problems:
    content, world, problems = scenario.content, scenario.world, list[tuple[str, str]]()
    if content.action not in ACTIONS[content.target]:
        wanted = ", ".join(sorted(ACTIONS[content.target]))
        problems.append(("content.action", f"content.action for {content.target} must be one of {wanted}"))
    if content.action.destroys:
        entries = world.user if content.target is Target.USER else world.memory
        if content.old not in entries:
            problems.append(("content.old", f"content.old must be an entry of world.{content.target}"))
        elif sum(content.old in entry for entry in entries) > 1:
            problems.append(("content.old", "content.old also stands in another entry"))
    if content.target is Target.SKILLS:
        skills = {skill.name: skill for skill in world.skills}
        skill = skills.get(content.skill or "")
        if content.skill is None:
            problems.append(("content.skill", "content.skill must name the skill"))
        elif (skill is None) is not (content.action is Action.CREATE):
            told = "must not be there before" if skill else "must be in world.skills"
            problems.append(("content.skill", f"skill {content.skill} {told}"))
        if content.action is Action.PATCH and (skill is None or (content.old or "\0") not in skill.body):
            problems.append(("content.old", "content.old must stand in the body of the skill that is patched"))
        if (content.action is Action.WRITE_FILE) is not (content.file is not None):
            problems.append(("content.file", "content.file is given exactly for write_file"))
    elif content.skill or content.file:
        problems.append(("content.skill", "content.skill and content.file are for skills only"))
    return problems
