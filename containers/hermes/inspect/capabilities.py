"""Tells, from inside the environment, what a build of the agent has: one JSON object on standard output.

Standard library and the agent only. It asks the build itself, never its version. ``missing`` names what the lab's
driver cannot do without; everything else describes what differs between builds.
"""

import importlib.util
import json
import os
import sys
from typing import Any

METHODS = {
    "run_conversation": "the conversation entry AIAgent.run_conversation",
    "_spawn_background_review": "the background reviewer AIAgent._spawn_background_review",
    "shutdown_memory_provider": "the end of a session AIAgent.shutdown_memory_provider",
    "close": "the end of a session AIAgent.close",
}
MODULES = {
    "approval_gate": "tools.write_approval",
    "background_review": "agent.background_review",
    "compressor": "agent.context_compressor",
    "holographic_memory": "plugins.memory.holographic",
    "threat_scan": "tools.threat_patterns",
}


def one_line(error: BaseException) -> str:
    """The kind and the text of an error."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]


def has_module(name: str) -> bool:
    """Whether a module can be found, without running it."""
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def actions(schema: Any) -> set[str]:
    """The values that a field named ``action`` may take, wherever in a schema it stands."""
    if isinstance(schema, list):
        return set().union(*map(actions, schema))
    if not isinstance(schema, dict):
        return set()
    found = set().union(*map(actions, schema.values()))
    field = schema.get("action")
    if isinstance(field, dict):
        found |= {str(value) for value in (*field.get("enum", ()), *([field["const"]] if "const" in field else ()))}
    return found


def tools_found() -> dict[str, Any]:
    """The tools that the build offers to a model, and the shape of those that write."""
    from model_tools import get_tool_definitions

    functions = {f["name"]: f for f in (tool["function"] for tool in get_tool_definitions(quiet_mode=True))}
    found: dict[str, Any] = {"tools": sorted(functions)}
    for tool in ("memory", "skill_manage"):
        parameters = functions.get(tool, {}).get("parameters", {})
        found[f"{tool}_actions"] = sorted(actions(parameters))
        found[f"{tool}_batch"] = "operations" in parameters.get("properties", {})
    return found


def inspect_build() -> dict[str, Any]:
    """Everything found, with the list ``missing``."""
    missing: list[str] = []
    found: dict[str, Any] = {"missing": missing}
    try:
        from run_agent import AIAgent
    except BaseException as error:
        missing.append(f"an importable run_agent.AIAgent ({one_line(error)})")
        return found
    missing += [what for name, what in METHODS.items() if not callable(getattr(AIAgent, name, None))]
    found.update({name: has_module(module) for name, module in MODULES.items()})
    try:
        found.update(tools_found())
    except Exception as error:
        missing.append(f"a list of tools by model_tools.get_tool_definitions ({one_line(error)})")
    else:
        if "memory" not in found["tools"]:
            missing.append("the memory tool")
    return found


def main() -> None:
    """Prints what was found, whatever the agent's own modules print."""
    answer = os.dup(1)
    os.dup2(2, 1)
    found = inspect_build()
    with os.fdopen(answer, "w", encoding="utf-8") as stream:
        json.dump(found, stream, sort_keys=True)
    sys.stderr.flush()
    # Threads that the agent's modules have started must not keep the sandbox alive.
    os._exit(0)


if __name__ == "__main__":
    main()
