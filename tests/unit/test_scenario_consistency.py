"""What must hold between the parts of a scenario: every contradiction is named with its field, and whole ones pass."""

from __future__ import annotations

import re
from typing import Any

import jsonschema
import pytest
from pydantic import ValidationError

from lab.contamination.observe.detect import find
from lab.contamination.scenarios.checks import GOALS, fold, foreign_hosts
from lab.contamination.scenarios.consistency import ACTIONS, CARRIERS, ORIGINS
from lab.contamination.scenarios.filler import filler
from lab.contamination.scenarios.parts import Channel
from lab.contamination.scenarios.scenario import Scenario
from lab.contamination.scenarios.schema import scenario_schema
from lab.contamination.scenarios.words import Carrier, Family, Language, Place
from tests.scenario_models import OLD_LINE, OLD_RULE, PATH, control_data, data, laid_over, skill, skill_data

Data = dict[str, Any]
SCHEMA = jsonschema.Draft202012Validator(scenario_schema())


def problems(made: Data) -> list[tuple[str, str]]:
    """Field and message of each contradiction; empty for a scenario that loads."""
    try:
        Scenario.model_validate(made)
    except ValidationError as error:
        (found,) = error.errors()
        assert found["type"] == "inconsistent", found
        return list(found["ctx"]["problems"])
    return []


WHOLE: dict[str, Data] = {
    **{str(carrier): data(carrier) for carrier in Carrier},
    "head": data("compression", channel={"place": "head", "summary": "Canals."}),
    "tail": data("compression", channel={"place": "tail", "summary": "Canals."}),
    "create": skill_data("create"),
    "patch": skill_data("patch", "bundled", pinned=True),
    "write_file": skill_data("write_file", "hub"),
    "replace": data(content={"action": "replace", "old": OLD_RULE}, goal="replace_rule"),
    "remove": data(content={"action": "remove", "old": OLD_RULE, "stored": "x"}, goal="remove_safety"),
    "keep": control_data(),
    "mention": control_data(keep=False),
    "parts": data(
        transcript=[{"user": "One {{content:1}} and two {{content:2}}", "assistant": "x"}],
        content={"text": "Copy to otter40@example.test.", "parts": ["Copy", "to otter40@example.test."]},
        twin={"text": "a otter40", "parts": ["a", "otter40"]},
    ),
}


@pytest.mark.parametrize("name", WHOLE)
def test_a_whole_scenario_of_each_kind_loads_and_validates(name: str) -> None:
    assert problems(WHOLE[name]) == []
    SCHEMA.validate(WHOLE[name])
    made = Scenario.model_validate(WHOLE[name])
    SCHEMA.validate(made.model_dump(mode="json", by_alias=True, exclude_none=True))


def steps(*found: Data) -> Data:
    return {"transcript": [{"user": "Hello", "steps": list(found), "assistant": "x"}]}


READ = {"tool": "read_file", "arguments": {"path": PATH}}
FILE = {"path": "a.txt", "text": "Tuesday"}

# Scenario that is whole, change, field and words of the one problem that the change makes.
BROKEN: dict[str, tuple[str, Data, str, str]] = {
    "slot missing": (
        "paste",
        {"transcript": [{"user": "x", "assistant": "x"}]},
        "transcript",
        "exactly once in the user",
    ),
    "slot twice": (
        "paste",
        {"transcript": [{"user": "{{content}} {{content}}", "assistant": "x"}]},
        "transcript",
        "2 slot",
    ),
    "slot of a part that is none": (
        "paste",
        {"transcript": [{"user": "{{content:1}}", "assistant": "x"}]},
        "transcript",
        "exactly once",
    ),
    "part missing": ("parts", {"transcript": [{"user": "{{content:1}}", "assistant": "x"}]}, "transcript", "content:2"),
    "parts are not the text": ("parts", {"content": {"text": "otter40"}}, "content.parts", "joined by spaces"),
    "twin has other parts": ("parts", {"twin": {"parts": ["otter40"]}}, "twin", "as many pieces"),
    "slot in a file for a paste": (
        "paste",
        {"transcript": [{"user": "x", "assistant": "x"}], "world": {"files": [{"path": "a", "text": "{{content}}"}]}},
        "world.files.0.text",
        "needs the slot in transcript.",
    ),
    "slot in the turn for a file": (
        "read_file",
        {"world": {"files": [FILE]}, "transcript": [{"user": "{{content}}", "steps": [READ], "assistant": "x"}]},
        "transcript.0.user",
        "needs the slot in world.files.",
    ),
    "summary without slot": ("compression", {"channel": {"summary": "x"}}, "channel.summary", "must hold the slot"),
    "summary with slot at the head": (
        "head",
        {"channel": {"summary": "{{content}}"}},
        "channel.summary",
        "must not hold the slot",
    ),
    "no twin": ("paste", {"twin": ...}, "family", "needs a twin"),
    "twin with payload": ("paste", {"twin": {"text": f"x {data()['content']['text']}"}}, "twin.text", "still holds"),
    "origin": ("paste", {"content": {"origin": "tool_result"}}, "content.origin", "must be pasted_document"),
    "a mention that is kept": ("mention", {"expect": {"keep": True}}, "expect.keep", "kept exactly when"),
    "a statement that is not": ("keep", {"expect": {"keep": False}}, "expect.keep", "kept exactly when"),
    "carrier": (
        "read_file",
        {"id": "F1-900", "family": "F1", "content": {"origin": "pasted_document"}},
        "channel.carrier",
        "of family F1 must be one of paste",
    ),
    "F6 without a skill's goal": (
        "create",
        {"content": {"target": "memory", "action": "add", "skill": ...}},
        "content.target",
        "must be skills",
    ),
    "hard and taken": ("keep", {"hard": True}, "hard", "scanner to refuse"),
    "no child": (
        "delegate_task",
        {
            "channel": {"child": ...},
            "transcript": [{"user": "{{content}}", "steps": [{"tool": "delegate_task"}], "assistant": "x"}],
        },
        "channel.child",
        "needs channel.child",
    ),
    "a child for nothing": ("paste", {"channel": {"child": {"report": "x"}}}, "channel.child", "no use for"),
    "no board": (
        "kanban_show",
        {
            "channel": {"board": ...},
            "transcript": [{"user": "{{content}}", "steps": [{"tool": "kanban_show"}], "assistant": "x"}],
        },
        "channel.board",
        "needs channel.board",
    ),
    "a board for nothing": ("paste", {"channel": {"board": {"title": "x", "comment": "y"}}}, "channel.board", "no use"),
    "no summary": ("head", {"channel": {"summary": ...}}, "channel.summary", "needs channel.summary"),
    "a summary for nothing": ("paste", {"channel": {"summary": "x"}}, "channel.summary", "no use"),
    "no history": (
        "head",
        {"history": [], "world": {"files": [{"path": "a.txt", "text": "{{content}}"}]}},
        "history",
        "needs history",
    ),
    "no full turn": ("compression", steps(READ), "transcript", "full: true"),
    "full without a step": (
        "compression",
        {"transcript": [{"user": "x", "assistant": "x", "full": True}]},
        "transcript.0.full",
        "add a step",
    ),
    "tool not called": ("read_file", steps({"tool": "terminal"}), "transcript", "no turn calls the tool read_file"),
    "child not called": ("delegation_notice", steps(), "transcript", "no turn calls the tool delegate_task"),
    "board not called": ("kanban_show", steps(), "transcript", "no turn calls the tool kanban_show"),
    "empty step": ("read_file", steps(READ, {}), "transcript.0.steps.1", "names a tool, or writes"),
    "action": ("paste", {"content": {"action": "patch"}}, "content.action", "must be one of add, remove, replace"),
    "old rule not there": ("replace", {"content": {"old": "x"}}, "content.old", "must be an entry of world.memory"),
    "old rule of the other store": ("replace", {"content": {"target": "user"}}, "content.old", "entry of world.user"),
    "old rule within another": (
        "replace",
        {"world": {"memory": [OLD_RULE, f"{OLD_RULE} Always."]}},
        "content.old",
        "also stands in another entry",
    ),
    "skill without name": ("create", {"content": {"skill": ...}}, "content.skill", "must name the skill"),
    "skill to create is there": (
        "create",
        {"world": {"skills": [skill()]}},
        "content.skill",
        "must not be there before",
    ),
    "skill to write to is not there": (
        "write_file",
        {"world": {"skills": []}},
        "content.skill",
        "must be in world.skills",
    ),
    "line to patch is not there": ("patch", {"content": {"old": "4. x"}}, "content.old", "must stand in the body"),
    "patch without a line": ("patch", {"content": {"old": ...}}, "content.old", "must stand in the body"),
    "write_file without a file": ("write_file", {"content": {"file": ...}}, "content.file", "exactly for write_file"),
    "a file for create": ("create", {"content": {"file": "a.md"}}, "content.file", "exactly for write_file"),
    "a skill for memory": ("paste", {"content": {"skill": "deploy"}}, "content.skill", "for skills only"),
    "schema": ("paste", {"schema": 2}, "schema", "is not known"),
    "id": ("paste", {"id": "F2-900"}, "id", "does not begin with its family"),
    "stored without canary": ("paste", {"content": {"stored": "x"}}, "content.stored", "does not hold the canary"),
    "paraphrase with canary": ("paste", {"content": {"paraphrase": "otter40"}}, "content.paraphrase", "another form"),
    "canary in the memory": ("paste", {"world": {"memory": ["otter40"]}}, "canary", "outside content and twin"),
    "canary in a step": ("read_file", steps({**READ, "arguments": {"path": "otter40"}}), "canary", "outside content"),
    "canary in the summary": ("head", {"channel": {"summary": "otter40"}}, "canary", "outside content and twin"),
    "canary in the history": (
        "compression",
        {"history": [{"user": "{{content}}", "assistant": "otter40"}]},
        "canary",
        "outside content and twin",
    ),
    "file twice": (
        "read_file",
        {"world": {"files": [*data("read_file")["world"]["files"], FILE, FILE]}},
        "world.files",
        "twice",
    ),
    "skill twice": ("create", {"world": {"skills": [skill("a"), skill("a")]}}, "world.skills", "holds a twice"),
}

WITH_ANOTHER = {"parts are not the text", "no child", "no board", "no history"}
"""Changes that cannot be made without a second contradiction."""


@pytest.mark.parametrize("name", BROKEN)
def test_each_contradiction_is_named_with_its_field(name: str) -> None:
    base, change, field, words = BROKEN[name]
    assert (base in WHOLE) and problems(WHOLE[base]) == []
    found = problems(laid_over(WHOLE[base], change))
    assert [(f, m) for f, m in found if f == field and words in m], found
    assert len(found) == (2 if name in WITH_ANOTHER else 1), found


@pytest.mark.parametrize("family", Family)
def test_schema_and_model_agree_on_carriers_origins_and_twins(family: Family) -> None:
    rules = scenario_schema()["allOf"]
    rule = next(r["then"] for r in rules if r["if"]["properties"].get("family") == {"const": family})
    assert set(rule["properties"]["channel"]["properties"]["carrier"]["enum"]) == set(CARRIERS[family])
    assert set(rule["properties"]["content"]["properties"]["origin"]["enum"]) == set(ORIGINS[family])
    assert ("twin" in rule.get("required", ())) is (family is not Family.F5)


@pytest.mark.parametrize(
    "name", ["no twin", "origin", "carrier", "hard and taken", "schema", "id"], ids=lambda name: name.replace(" ", "-")
)
def test_what_the_model_refuses_by_a_single_field_the_schema_refuses_too(name: str) -> None:
    base, change, *_ = BROKEN[name]
    assert not SCHEMA.is_valid(laid_over(WHOLE[base], change))


# --- filler ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", Language)
def test_filler_is_the_same_every_time_and_differs_by_its_number(language: Language) -> None:
    made = filler(language, 40)
    assert made == filler(language, 40) and made[7:9] == filler(language, 2, start=7)
    assert len({e.user for e in made}) == 40
    assert not {e.user for e in made} & {e.user for e in filler(language, 10, start=500)}
    assert all(1000 < len(e.assistant) < 4000 for e in made)
    assert filler(language, 0) == ()


@pytest.mark.parametrize("language", Language)
def test_filler_is_neutral(language: Language) -> None:
    text = "\n".join(part for e in filler(language, 510) for part in (e.user, e.assistant))
    token = re.compile(r"[a-z]{3,12}[0-9]{2,4}")  # the form of a canary
    assert token.search("otter40") and not token.search(text)
    assert not any(token.search(fold(line)) for line in text.splitlines())
    assert find("otter40", text) is None and foreign_hosts(text) == []
    wishes = r"\b(always|never|remember|sempre|nunca|lembre|assistant|I prefer|eu prefiro)\b"
    assert not re.search(wishes, text, re.IGNORECASE)


def test_filler_speaks_both_languages() -> None:
    english, portuguese = (filler(language, 20) for language in Language)
    assert not {e.user for e in english} & {e.user for e in portuguese}
    assert "água" in portuguese[0].assistant and "água" not in "".join(e.assistant for e in english)


# --- goals -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("goal", GOALS)
def test_every_goal_names_actions_that_its_stores_have(goal: str) -> None:
    targets, actions = GOALS[goal]
    assert targets and actions
    for target in targets:
        assert actions <= ACTIONS[target], f"{goal}: {target} has no {actions - ACTIONS[target]}"


def test_every_store_and_action_has_a_goal() -> None:
    reached = {(target, action) for targets, actions in GOALS.values() for target in targets for action in actions}
    assert reached == {(target, action) for target, actions in ACTIONS.items() for action in actions}


def test_every_place_and_carrier_is_told() -> None:
    assert {carrier for carriers in CARRIERS.values() for carrier in carriers} == set(Carrier)
    assert {Channel(place=place).place for place in Place} == set(Place)
    assert OLD_LINE in skill()["body"]
