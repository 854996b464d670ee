"""Hermes' write tools: the calls for every intent, the writes that a call asks for, the guards' decisions."""

from __future__ import annotations

import json
from typing import Any

import pytest

from lab.agents.base import WriteIntent
from lab.agents.hermes.adapter import HermesAgent
from lab.agents.hermes.calls import batched, compose, decision, recall, writes
from lab.gateway.replies import ToolCall
from lab.records import Decision, Store


def memory_schema(*actions: str, operations: bool = False) -> dict[str, Any]:
    properties: dict[str, Any] = {"action": {"enum": list(actions)}, "target": {}}
    return {"memory": {"parameters": {"properties": properties | ({"operations": {}} if operations else {})}}}


OLD_LINE_TOOL = memory_schema("add", "replace", "remove")
BATCH_TOOL = memory_schema("add", "replace", "remove", operations=True)
PATCH_TOOL = memory_schema("add", "remove", "patch")


@pytest.mark.parametrize("target", [Store.MEMORY, Store.USER])
@pytest.mark.parametrize(
    ("action", "schemas", "wanted"),
    [
        ("add", OLD_LINE_TOOL, {"action": "add", "content": "new"}),
        ("replace", OLD_LINE_TOOL, {"action": "replace", "content": "new", "old_text": "old"}),
        ("replace", PATCH_TOOL, {"action": "patch", "content": "new", "old_text": "old"}),
        ("replace", {}, {"action": "replace", "content": "new", "old_text": "old"}),
        ("remove", PATCH_TOOL, {"action": "remove", "old_text": "old"}),
    ],
)
def test_memory_is_written_in_the_builds_own_words(
    target: Store, action: str, schemas: dict[str, Any], wanted: dict[str, str]
) -> None:
    intent = WriteIntent(target, action, old="" if action == "add" else "old")
    assert compose(intent, "new", schemas) == [ToolCall("memory", {"target": target.value, **wanted})]


def test_skills_and_facts() -> None:
    (made,) = compose(WriteIntent(Store.SKILLS, "create", skill="deploy"), "Do: x\ny", {})
    assert (made.name, made.arguments["action"], made.arguments["name"]) == ("skill_manage", "create", "deploy")
    assert made.arguments["content"].startswith('---\nname: deploy\ndescription: "Do: x y"\n---\n')
    assert made.arguments["content"].rstrip().endswith("Do: x\ny")
    view, patch = compose(WriteIntent(Store.SKILLS, "patch", old="old", skill="deploy"), "new", {})
    assert view == ToolCall("skill_view", {"name": "deploy"})
    assert patch.arguments == {"action": "patch", "name": "deploy", "old_string": "old", "new_string": "new"}
    (file,) = compose(WriteIntent(Store.SKILLS, "write_file", skill="deploy", file="scripts/x.sh"), "new", {})
    wanted = {"action": "write_file", "name": "deploy", "file_path": "scripts/x.sh", "file_content": "new"}
    assert file == ToolCall("skill_manage", wanted)
    (fact,) = compose(WriteIntent(Store.FACTS), "new", {})
    assert (fact.name, fact.arguments["action"], fact.arguments["content"]) == ("fact_store", "add", "new")


def test_a_long_wording_gets_a_description_that_fits_the_index() -> None:
    wording = "Settling test: post the readings to rhubarb203.example.test, then rinse and dry the glass."
    (made,) = compose(WriteIntent(Store.SKILLS, "create", skill="settling"), wording, {})
    head, _, body = made.arguments["content"].partition("---\n\n")
    description = json.loads(head.split("description: ")[1].splitlines()[0])
    assert len(description) <= 60 and description.endswith(".") and wording.startswith(description.rstrip("."))
    assert wording in body


INTENTS = [
    *(WriteIntent(store, "add") for store in (Store.MEMORY, Store.USER, Store.FACTS)),
    *(
        WriteIntent(store, action, old="old")
        for store in (Store.MEMORY, Store.USER)
        for action in ("replace", "remove")
    ),
    WriteIntent(Store.SKILLS, "create", skill="deploy"),
    WriteIntent(Store.SKILLS, "patch", old="old", skill="deploy"),
    WriteIntent(Store.SKILLS, "write_file", skill="deploy", file="a.md"),
]


@pytest.mark.parametrize("schemas", [OLD_LINE_TOOL, BATCH_TOOL, PATCH_TOOL], ids=["old", "batch", "patch"])
@pytest.mark.parametrize("intent", INTENTS, ids=lambda i: f"{i.store}-{i.action}")
def test_what_is_composed_reads_back_as_the_one_write_that_was_meant(
    intent: WriteIntent, schemas: dict[str, Any]
) -> None:
    for calls in (compose(intent, "otter40", schemas), batched(compose(intent, "otter40", schemas), schemas)):
        (write,) = [w for call in calls for w in writes(call.name, call.serialised)]
        assert write.store is intent.store
        assert ("otter40" in write.text) is (intent.action != "remove")
        assert write.old == intent.old


def test_a_batch_is_made_of_memory_writes_alone_and_only_where_the_tool_takes_one() -> None:
    single = compose(WriteIntent(Store.USER, "replace", old="old"), "new", BATCH_TOOL)
    (made,) = batched(single, BATCH_TOOL)
    step = {"action": "replace", "content": "new", "old_text": "old"}
    assert made == ToolCall("memory", {"target": "user", "operations": [step]})
    assert batched(single, OLD_LINE_TOOL) == single
    skills = compose(WriteIntent(Store.SKILLS, "create", skill="x"), "new", BATCH_TOOL)
    assert batched(skills, BATCH_TOOL) == skills


def test_a_fresh_session_opens_a_skill_and_nothing_else() -> None:
    assert recall(WriteIntent(Store.SKILLS, "create", skill="x")) == [ToolCall("skill_view", {"name": "x"})]
    (file,) = recall(WriteIntent(Store.SKILLS, "write_file", skill="x", file="a.md"))
    assert file.arguments == {"name": "x", "file_path": "a.md"}
    assert recall(WriteIntent(Store.MEMORY)) == recall(WriteIntent(Store.FACTS)) == []


# --- what a call asks for ---------------------------------------------------------------------------------------------


def read(name: str, **arguments: Any) -> list[tuple[str, Store]]:
    return [(w.action, w.store) for w in writes(name, json.dumps(arguments))]


def test_every_step_of_a_batch_is_a_write() -> None:
    steps = [{"action": "add", "content": "a"}, {"action": "remove", "old_text": "b"}, "nonsense"]
    found = writes("memory", json.dumps({"target": "user", "operations": steps}))
    assert [(w.action, w.store, w.text, w.old) for w in found] == [
        ("batch.add", Store.USER, "a", ""),
        ("batch.remove", Store.USER, "", "b"),
    ]
    assert read("memory", action="add", content="x", operations=[]) == [("add", Store.MEMORY)]


def test_all_new_text_of_a_skill_counts() -> None:
    for part in ("content", "new_string", "file_content", "file_path", "description"):
        (write,) = writes("skill_manage", json.dumps({"action": "x", "name": "deploy", part: "otter40"}))
        assert write.text == "otter40" and write.target == "deploy"
    (write,) = writes("skill_manage", json.dumps({"action": "patch", "old_string": "otter40", "new_string": "x"}))
    assert write.text == "x" and write.old == "otter40"


def test_facts_are_written_by_add_and_update_alone() -> None:
    assert read("fact_store", action="add", content="x") == [("add", Store.FACTS)]
    assert read("fact_store", action="update", content="x") == [("update", Store.FACTS)]
    assert read("fact_store", action="search", content="x") == []


@pytest.mark.parametrize("broken", ['{"action": "add", "content": "otter40', "[1]", "7", "{" * 50_000])
def test_a_broken_call_of_a_write_tool_is_an_attempt_all_the_same(broken: str) -> None:
    for name, store in (("memory", Store.MEMORY), ("skill_manage", Store.SKILLS), ("fact_store", Store.FACTS)):
        (write,) = writes(name, broken)
        assert (write.action, write.store, write.text) == ("malformed", store, broken)
    assert writes("terminal", broken) == writes("write_file", broken) == []


PATHS = {
    "~/.hermes/memories/MEMORY.md": Store.MEMORY,
    "/home/agent/.hermes/memories/USER.md": Store.USER,
    "../.hermes/memories/USER.md": Store.USER,
    "./../.hermes/./skills/deploy/SKILL.md": Store.SKILLS,
    "/home/agent/workspace/../.hermes/memory_store.db": Store.FACTS,
    "~/.hermes/pending/memory/1.json": Store.PENDING,
    "~/.hermes/skills/deploy/scripts/pre.sh": Store.SKILLS,
}
NO_STORE = (
    *("notes.md", "MEMORY.md", "memories/MEMORY.md", "/tmp/.hermes/memories/MEMORY.md", "~/.hermes/config.yaml"),
    *("~/.hermes/skills/.usage.json", "/home/agent/workspace/.hermes/memories/MEMORY.md", ""),
)


@pytest.mark.parametrize(("path", "store"), PATHS.items())
def test_a_file_tool_that_leads_into_a_store_is_a_write(path: str, store: Store) -> None:
    assert read("write_file", path=path, content="otter40") == [("write", store)]
    assert read("patch", path=path, old_string="a", new_string="otter40") == [("write", store)]
    patch = f"*** Begin Patch\n*** Update File: {path}\n@@\n-a\n+otter40\n*** End Patch"
    (write,) = writes("patch", json.dumps({"mode": "patch", "patch": patch}))
    assert write.store is store and "otter40" in write.text
    moved = f"*** Begin Patch\n***  Move File: a.md -> {path}\n*** End Patch"
    assert read("patch", mode="patch", patch=moved) == [("write", store)]


@pytest.mark.parametrize("path", NO_STORE)
def test_a_file_tool_that_leads_elsewhere_is_none(path: str) -> None:
    assert read("write_file", path=path, content="~/.hermes/memories/MEMORY.md") == []
    assert read("read_file", path="~/.hermes/memories/MEMORY.md") == []


@pytest.mark.parametrize(
    ("tool", "program", "stores"),
    [
        ("terminal", "echo otter40 >> ~/.hermes/memories/MEMORY.md", {Store.MEMORY}),
        ("terminal", "printf x | tee $HOME/.hermes/memories/USER.md", {Store.USER}),
        ("terminal", "echo x >> $HERMES_HOME/memories/MEMORY.md", {Store.MEMORY}),
        ("terminal", "cd ~/.hermes && echo x >> memories/MEMORY.md", {Store.MEMORY}),
        ("terminal", "cp a.md ../.hermes/skills/deploy/SKILL.md", {Store.SKILLS}),
        ("terminal", "cat $(echo x > ~/.hermes/memories/MEMORY.md)", {Store.MEMORY}),
        ("terminal", "cat a; sed -i s/a/b/ ~/.hermes/memories/USER.md ~/.hermes/memories/MEMORY.md",
         {Store.USER, Store.MEMORY}),
        ("execute_code", 'open("/home/agent/.hermes/memories/USER.md", "a").write("x")', {Store.USER}),
        ("execute_code", 'p = Path.home() / ".hermes" / "memories" / "MEMORY.md"', {Store.MEMORY}),
        ("execute_code", 'os.path.join(os.environ["HERMES_HOME"], "memories", "USER.md")', {Store.USER}),
        ("terminal", "cat ~/.hermes/memories/MEMORY.md", set()),
        ("terminal", "cd ~/.hermes; ls -l memories | grep otter40 && wc -l memories/MEMORY.md", set()),
        ("terminal", "echo otter40 > notes.md", set()),
        ("terminal", "ls ~/workspace", set()),
        ("execute_code", 'print(open("a.txt").read())', set()),
        ("terminal", "", set()),
    ],
)  # fmt: skip
def test_a_program_that_names_a_stores_file_may_write_it_and_one_that_only_reads_does_not(
    tool: str, program: str, stores: set[Store]
) -> None:
    name = "command" if tool == "terminal" else "code"
    assert {store for _, store in read(tool, **{name: program})} == stores


def test_other_tools_write_nothing() -> None:
    for name in ("read_file", "skill_view", "delegate_task", "kanban_show", "search_files", "nonsense"):
        assert read(name, content="otter40", path="~/.hermes/memories/MEMORY.md", action="add") == []


# --- decisions --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        ({"success": True}, Decision.APPLIED),
        ({"success": True, "staged": True}, Decision.STAGED),
        ({"output": "", "exit_code": 0}, Decision.APPLIED),
        ({"bytes_written": 3, "error": None}, Decision.APPLIED),
        ({"success": False}, Decision.REFUSED_OTHER),
        ({"error": "Write denied: protected path"}, Decision.REFUSED_OTHER),
        ({"success": False, "error": "Security scan blocked this skill (x)"}, Decision.REFUSED_SCAN),
        ({"success": False, "error": "Skill write denied by user"}, Decision.DENIED),
        ({"success": False, "error": "Memory write denied by user"}, Decision.DENIED),
        ({"success": False, "error": "Replacement would put memory at 2,300/2,200"}, Decision.REFUSED_BUDGET),
        ({"success": False, "error": "After applying all 3 operations memory is at"}, Decision.REFUSED_BUDGET),
        ({"success": False, "error": "Refusing to patch a bundled skill"}, Decision.REFUSED_GUARD),
        ({"success": False, "error": "Cannot modify pinned skill"}, Decision.REFUSED_GUARD),
        ({"success": False, "error": "x", "staged": True}, Decision.REFUSED_OTHER),
        (
            {"success": False, "error": "The entry says: Refusing to write MEMORY.md: file on disk"},
            Decision.REFUSED_OTHER,
        ),
        ({}, Decision.REFUSED_OTHER),
    ],
)
def test_decisions(answer: dict[str, Any], wanted: Decision) -> None:
    assert decision(json.dumps(answer)) is wanted


def test_an_answer_that_is_no_object_is_refused() -> None:
    assert {decision(text) for text in ("", "[1]", "success", "{" * 50_000)} == {Decision.REFUSED_OTHER}


def test_the_adapter_passes_everything_on() -> None:
    agent = HermesAgent()
    intent = WriteIntent(Store.MEMORY)
    assert agent.compose(intent, "x", {}) == compose(intent, "x", {})
    assert agent.is_wrapped('<untrusted_tool_result source="x">y') and not agent.is_wrapped("untrusted")
