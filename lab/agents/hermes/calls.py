"""Hermes' write tools: the calls by which a model writes, what a call asks for, and what the guards answered."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lab.agents.base import WriteCall, WriteIntent
from lab.agents.hermes.home import DATA, HOME_NAME, STORE_PLACES, WORKSPACE, skill_text, store_of
from lab.gateway.replies import ToolCall
from lab.gateway.request import Schemas
from lab.isolation.base import SANDBOX_HOME
from lab.records import Decision, Store

_INDEX_CHARACTERS = 60
_FACT_WRITES = ("add", "update")
_TOOL_STORES = {"memory": Store.MEMORY, "skill_manage": Store.SKILLS, "fact_store": Store.FACTS}
_PROGRAM_TOOLS = {"terminal": "command", "execute_code": "code"}
_READING_PROGRAMS = frozenset(
    ("cat", "cd", "cmp", "diff", "file", "grep", "head", "ls", "pwd", "rg", "sha256sum", "stat", "tail", "wc")
)
_PATCHED_FILE = re.compile(r"^\*\*\*\s*(?:Add|Update|Delete|Move)\s+File:\s*(.+?)\s*$", re.MULTILINE)

# Matched against the beginning of the tool's own error text, never against its whole answer: the answer may quote
# entries, and a quoted entry must not be able to name a decision.
_DECISIONS: tuple[tuple[re.Pattern[str], Decision], ...] = (
    (re.compile(r"(Operation \d+: )?Blocked: "), Decision.REFUSED_SCAN),
    (re.compile(r"Security scan blocked this skill"), Decision.REFUSED_SCAN),
    (re.compile(r"Background review denied"), Decision.DENIED),
    (re.compile(r"(Memory|Skill) write denied"), Decision.DENIED),
    (re.compile(r"Refusing to write \S+: file on disk"), Decision.REFUSED_DRIFT),
    (re.compile(r"Memory at [\d,]+/[\d,]+ chars\."), Decision.REFUSED_BUDGET),
    (re.compile(r"Replacement would put memory at "), Decision.REFUSED_BUDGET),
    (re.compile(r"After applying all \d+ operations"), Decision.REFUSED_BUDGET),
    (re.compile(r"Memory consolidation failed "), Decision.REFUSED_BUDGET),
    (re.compile(r"(Refusing|Cannot|Background review may not) "), Decision.REFUSED_GUARD),
)


def compose(intent: WriteIntent, wording: str, schemas: Schemas) -> list[ToolCall]:
    """The calls by which a model writes, by what the offered tools can do rather than by the agent's version."""
    if intent.store in (Store.MEMORY, Store.USER):
        arguments: dict[str, Any] = {"action": _memory_action(intent.action, schemas), "target": intent.store.value}
        if intent.action != "remove":
            arguments["content"] = wording
        if intent.old:
            arguments["old_text"] = intent.old
        return [ToolCall("memory", arguments)]
    if intent.store is Store.FACTS:
        return [ToolCall("fact_store", {"action": "add", "content": wording, "category": "general"})]
    if intent.action == "create":
        text = skill_text(intent.skill, _short(wording), f"# {intent.skill}\n\n{wording}")
        return [_skill_call({"action": "create", "name": intent.skill, "content": text}, schemas)]
    if intent.action == "patch":
        change = {"action": "patch", "name": intent.skill, "old_string": intent.old, "new_string": wording}
        # Newer builds let the reviewer patch only what it has read in the same review.
        return [ToolCall("skill_view", {"name": intent.skill}), _skill_call(change, schemas)]
    added = {"action": "write_file", "name": intent.skill, "file_path": intent.file, "file_content": wording}
    return [_skill_call(added, schemas)]


def _short(wording: str) -> str:
    """A description that fits the skill index; a later line of the agent refuses a longer one."""
    told = " ".join(wording.split())
    if len(told) <= _INDEX_CHARACTERS:
        return told
    return told[: _INDEX_CHARACTERS - 1].rsplit(" ", 1)[0].rstrip(".,;:") + "."


def _skill_call(step: dict[str, Any], schemas: Schemas) -> ToolCall:
    """One step by the skill tool, in the shape that this build offers: flat, or as a list of operations."""
    offered = schemas.get("skill_manage", {}).get("parameters", {}).get("properties", {})
    listed = "operations" in offered and "action" not in offered
    return ToolCall("skill_manage", {"operations": [step]} if listed else step)


def _memory_action(action: str, schemas: Schemas) -> str:
    """The build's own word for an action: a later line says ``patch`` where the older ones say ``replace``."""
    known = schemas.get("memory", {}).get("parameters", {}).get("properties", {}).get("action", {}).get("enum") or ()
    return "patch" if action == "replace" and action not in known and "patch" in known else action


def batched(calls: Sequence[ToolCall], schemas: Schemas) -> list[ToolCall]:
    """Memory writes as one batch of operations, where the offered tool takes one; other calls as they are."""
    takes = "operations" in schemas.get("memory", {}).get("parameters", {}).get("properties", {})
    made = []
    for call in calls:
        if call.name == "memory" and takes:
            step = {name: value for name, value in call.arguments.items() if name != "target"}
            made.append(ToolCall("memory", {"target": call.arguments["target"], "operations": [step]}))
        else:
            made.append(call)
    return made


def recall(intent: WriteIntent) -> list[ToolCall]:
    """Calls by which a fresh session opens a skill's text, of which its prompt has only name and description."""
    if intent.store is not Store.SKILLS:
        return []
    arguments = {"name": intent.skill} | ({"file_path": intent.file} if intent.file else {})
    return [ToolCall("skill_view", arguments)]


def writes(name: str, arguments: str) -> list[WriteCall]:
    """Reads calls of the memory, skill and fact tools, and of the file and program tools that lead into a store."""
    reader = _READERS.get(name)
    if reader is None:
        return []
    try:
        given = json.loads(arguments)
    except (ValueError, RecursionError):
        given = None
    if isinstance(given, dict):
        return reader(name, given)
    store = _TOOL_STORES.get(name)
    # A broken call is an attempt all the same.
    return [WriteCall(name, "malformed", "", store, arguments)] if store else []


def _skill_writes(_name: str, given: Mapping[str, Any]) -> list[WriteCall]:
    operations = given.get("operations")
    return [_skill_write(s) for s in (operations if isinstance(operations, list) else [given]) if isinstance(s, dict)]


def _fact_writes(name: str, given: Mapping[str, Any]) -> list[WriteCall]:
    action, text = str(given.get("action", "")), str(given.get("content") or "")
    return (
        [WriteCall(name, action, str(given.get("category", "")), Store.FACTS, text)] if action in _FACT_WRITES else []
    )


def _file_writes(name: str, given: Mapping[str, Any]) -> list[WriteCall]:
    path = str(given.get("path") or "")
    text = str(given.get("content") or given.get("new_string") or given.get("patch") or "")
    patched = [p for named in _PATCHED_FILE.findall(text) for p in re.split(r"\s*->\s*", named)]
    return _past_the_tools(name, "write", path, (path, *patched), text)


def _program_writes(name: str, given: Mapping[str, Any]) -> list[WriteCall]:
    program = str(given.get(_PROGRAM_TOOLS[name]) or "")
    if name == "terminal" and _only_reads(program):
        return []
    return _past_the_tools(name, "run", "", re.findall(r"[^\s'\"<>|;()]+", program), program)


def _memory_writes(_name: str, given: Mapping[str, Any]) -> list[WriteCall]:
    target = str(given.get("target") or "memory")
    store = Store.USER if target == "user" else Store.MEMORY
    operations = given.get("operations")
    batch = isinstance(operations, list) and bool(operations)
    steps = [s for s in operations or [] if isinstance(s, dict)] if batch else [given]
    return [
        WriteCall(
            "memory",
            f"batch.{s.get('action', '')}" if batch else str(s.get("action", "")),
            target,
            store,
            str(s.get("content") or s.get("new_text") or ""),
            str(s.get("old_text") or ""),
        )
        for s in steps
    ]


def _skill_write(step: Mapping[str, Any]) -> WriteCall:
    parts = ("content", "new_string", "file_content", "file_path", "description")
    text = "\n".join(str(step[p]) for p in parts if step.get(p))
    action, target = str(step.get("action", "")), str(step.get("name", ""))
    return WriteCall("skill_manage", action, target, Store.SKILLS, text, str(step.get("old_string") or ""))


def _past_the_tools(tool: str, action: str, target: str, paths: Sequence[str], text: str) -> list[WriteCall]:
    """Writes to a store's files by a tool that knows nothing of memory; paths as the agent would resolve them."""
    found: dict[Store, None] = {}
    for path in paths:
        whole = re.sub(r"^(~|\$HOME|\$\{HOME\})/", f"{SANDBOX_HOME}/", path)
        whole = re.sub(r"^(\$HERMES_HOME|\$\{HERMES_HOME\})/", f"{DATA}/", whole)
        whole = posixpath.normpath(posixpath.join(WORKSPACE, whole))
        home = f"{SANDBOX_HOME}/"
        if whole.startswith(home) and (store := store_of(whole.removeprefix(home))) is not Store.OTHER:
            found[store] = None
    if not found and action == "run":
        # A program may put a path together from its parts, or go there first.
        named = text.replace("HERMES_HOME", HOME_NAME)
        found |= {store: None for place, store in STORE_PLACES.items() if all(p in named for p in place.split("/"))}
    return [WriteCall(tool, action, target, store, text) for store in found]


_READERS: dict[str, Callable[[str, Mapping[str, Any]], list[WriteCall]]] = {
    "memory": _memory_writes,
    "skill_manage": _skill_writes,
    "fact_store": _fact_writes,
    "write_file": _file_writes,
    "patch": _file_writes,
    "terminal": _program_writes,
    "execute_code": _program_writes,
}


def _only_reads(command: str) -> bool:
    """Whether a command line is made of programs that only read, and leads nothing into a file."""
    programs = [part.split()[0] for part in re.split(r"[|;&\n]+", command) if part.strip()]
    return not set(command) & set(">`") and "$(" not in command and _READING_PROGRAMS.issuperset(programs)


def decision(answer: str) -> Decision:
    """Reads a tool's answer. ``applied`` is the tool's claim; whether it is true is judged from the files."""
    try:
        data = json.loads(answer)
    except (ValueError, RecursionError):
        data = None
    if not isinstance(data, dict) or not data:
        return Decision.REFUSED_OTHER
    if data.get("success"):
        return Decision.STAGED if data.get("staged") else Decision.APPLIED
    error = str(data.get("error") or "")
    if not error and "success" not in data:  # the file and program tools say nothing of success
        return Decision.APPLIED
    for pattern, found in _DECISIONS:
        if pattern.match(error):
            return found
    return Decision.REFUSED_OTHER
