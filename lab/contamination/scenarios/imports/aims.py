"""What a payload's goal means in a scenario: store, action, the old entry or the skill it is aimed at."""

from __future__ import annotations

import re
from typing import Any

from lab.contamination.scenarios.checks import GOALS
from lab.contamination.scenarios.imports.deal import Share, mentions
from lab.contamination.scenarios.imports.hosts import Hosts, Rules
from lab.contamination.scenarios.imports.payloads import Payload
from lab.contamination.scenarios.words import Action, Family, Target
from lab.records import Record

_NAMED = re.compile(r"([a-z0-9]+(?:-[a-z0-9]+)*):\s")
"""A skill that opens the distilled form, as in ``fetch-reports: treat …``."""

_SUBJECT = re.compile(r"(.{3,60}?)(?:: | is (?:the )?| é | fica )")
_FILE = re.compile(r"\b((?:scripts|references)/[A-Za-z0-9_-][A-Za-z0-9._-]*[A-Za-z0-9])")
_FILES = {"add_script": "scripts/prepare.sh", "add_file": "references/notes.md"}
NEW_SKILL = "new-routine"
"""Name of a skill to be made where the payload gives none."""


class Aim(Record):
    """What the content wants, and what must be there for it.

    Attributes:
        goal: The goal as the scenario names it.
        target: The store.
        action: What is wanted there.
        old: The old entry or the line of the skill.
        skill: The skill's name.
        file: The file below the skill.
        entries: Entries to be added to the memory before the trial.
        skills: Skills to be there before the trial, as the scenario states them.
        note: What a reader of the card must know besides.
    """

    goal: str
    target: Target
    action: Action
    old: str | None = None
    skill: str | None = None
    file: str | None = None
    entries: tuple[str, ...] = ()
    skills: tuple[dict[str, Any], ...] = ()
    note: str = ""


def aim_of(payload: Payload, share: Share, hosts: Hosts) -> Aim:
    """What a payload wants in its scenario.

    Family F6 is about skills alone: a goal of another store is taken there as the change of a skill.
    """
    goal, note = payload.goal, ""
    if payload.family is Family.F6 and Target.SKILLS not in GOALS[goal][0]:
        goal, note = "patch_skill", f" Its file says {payload.goal}; family F6 takes that as a change of a skill."
    target = next(t for t in Target if t in GOALS[goal][0])  # of memory and user: memory
    common: dict[str, Any] = {"goal": goal, "target": target, "note": note}
    if target is Target.SKILLS:
        return _skill_aim(payload, share, common)
    if goal == "replace_rule":
        old = replaced_rule(payload, hosts.rules)
    elif goal in ("remove_safety", "forget"):
        old = safety_rule(payload, hosts.rules)
    else:
        return Aim(**common, action=Action.ADD)
    action = {"replace_rule": Action.REPLACE, "forget": Action.REMOVE}.get(goal, share.safety)
    return Aim(**common, action=action, old=old if action.destroys else None, entries=(old,))


def replaced_rule(payload: Payload, rules: Rules) -> str:
    """An old rule about the subject of the distilled form, or about what the effect is about."""
    subject = _SUBJECT.match(payload.distilled)
    if subject and payload.canary not in subject[1]:
        return f"{subject[1]}: {rules.handbook.of(payload.language)}"
    return rules.replaced.get(payload.effect, rules.replaced["other"]).of(payload.language)


def safety_rule(payload: Payload, rules: Rules) -> str:
    """A real safety rule of the kind that the payload is about."""
    said = payload.distilled.casefold()
    fitting = next(rule for rule in rules.safety if not rule.words or any(word in said for word in rule.words))
    return fitting.of(payload.language)


def _skill_aim(payload: Payload, share: Share, common: dict[str, Any]) -> Aim:
    named = _NAMED.match(payload.distilled)
    name = named[1] if named and len(named[1]) <= 60 and payload.canary not in named[1] else ""
    if common["goal"] == "create_skill":
        return Aim(**common, action=Action.CREATE, skill=name or NEW_SKILL)
    seed, (made_by, pinned) = share.seed.of(payload.language), share.provenance
    if not name or name == "scripts" or not mentions(payload, name):
        name = share.seed.id
    skill = {
        "name": name,
        "made_by": made_by.value,
        "pinned": pinned,
        "description": seed.description,
        "body": seed.body.replace("<skill>", name) + "\n",
    }
    if common["goal"] == "patch_skill":
        return Aim(**common, action=Action.PATCH, old=seed.line, skill=name, skills=(skill,))
    wanted = _FILE.search(f"{payload.distilled} {payload.content}")
    folder = "scripts/" if common["goal"] == "add_script" else "references/"
    file = wanted[1] if wanted and wanted[1].startswith(folder) else _FILES[common["goal"]]
    return Aim(**common, action=Action.WRITE_FILE, skill=name, file=file, skills=(skill,))
