"""Drives one session of the real agent through its own ``AIAgent.run_conversation``; runs in the agent's environment.

Standard library and the agent only; nothing of the agent is patched. The job says what the user types, or what the
operator does with staged writes; the outcome says what the agent showed of itself. The outcome is a claim from inside
the sandbox: the lab's verdicts come from the gateway's recordings and from the files of the home, not from here.

What a build offers is asked of the build, never of its version number.

Exit codes: 0 the session and its reviews ended, 3 the agent cannot be imported or lacks an entry point, 4 the agent
raised, 5 the session crashed on demand.
"""

import contextlib
import importlib.metadata
import importlib.util
import inspect
import json
import os
import queue
import sys
import threading
import traceback
from typing import Any

REVIEW_THREAD = "bg-review"
NOTICE_SECONDS = 60
"""How long to wait for a child that works in the background; it answers in a second, or was lost."""


class MissingCapability(Exception):
    """This build lacks something that the job needs; the message names it."""


def write_outcome(path: str, outcome: dict[str, Any]) -> None:
    """Writes the outcome in one step."""
    with open(path + ".part", "w", encoding="utf-8") as stream:
        json.dump(outcome, stream, ensure_ascii=True)
    os.replace(path + ".part", path)


def join_reviews() -> int:
    """Waits until every running review has ended; returns how many there were.

    ``run_conversation`` starts the review's thread before it returns, so the list is complete here. Threads are
    joined without a time limit: the sandbox's wall clock is the limit, and ending early would read as "resisted".
    """
    threads = [t for t in threading.enumerate() if t.name == REVIEW_THREAD]
    for thread in threads:
        thread.join()
    return len(threads)


def gate(subsystem: str) -> Any:
    """State of an approval gate; ``absent`` where this build has none."""
    try:
        if importlib.util.find_spec("tools.write_approval") is None:
            return "absent"
        from tools import write_approval

        return bool(write_approval.write_approval_enabled(subsystem))
    except Exception as error:
        return f"unknown: {type(error).__name__}"


def skill_guard() -> Any:
    """Whether skills that the agent writes are scanned; ``absent`` where this build has no such switch."""
    try:
        from tools import skill_manager_tool

        return bool(skill_manager_tool._guard_agent_created_enabled())
    except (ImportError, AttributeError):
        return "absent"
    except Exception as error:
        return f"unknown: {type(error).__name__}"


def capabilities(agent_class: Any) -> dict[str, Any]:
    """What this build of the agent offers, asked of the build itself rather than of its version."""
    found: dict[str, Any] = {
        "reviewer": hasattr(agent_class, "_spawn_background_review"),
        "memory_gate": gate("memory"),
        "skills_gate": gate("skills"),
        "skill_guard": skill_guard(),
        "data_root": None,
    }
    with contextlib.suppress(Exception):
        from hermes_constants import get_hermes_home

        found["data_root"] = str(get_hermes_home())
    return found


def provider_shown(agent: Any) -> dict[str, Any]:
    """The external memory provider that the running agent really holds."""
    manager = getattr(agent, "_memory_manager", None)
    external = [p for p in getattr(manager, "providers", []) or [] if getattr(p, "name", "") != "builtin"]
    provider = external[0] if external else None
    config = getattr(provider, "_config", None) or {}
    return {
        "provider": str(getattr(provider, "name", "")),
        # The provider asks for truth in Python's sense, so that is what is shown: the text "false" reads as on.
        "auto_extract": bool(config.get("auto_extract", False)),
        "memory_enabled": bool(getattr(agent, "_memory_enabled", False)),
    }


def board_connection(kanban_db: Any) -> Any:
    """The function that opens the board; a later line of the agent has it in a module of its own."""
    if hasattr(kanban_db, "connect"):
        return kanban_db.connect
    from hermes_cli import kanban_db_connect

    return kanban_db_connect.connect


def put_on_board(board: dict[str, str]) -> None:
    """Makes a task with another agent's comment, by the agent's own board, and makes this process its worker."""
    try:
        from hermes_cli import kanban_db

        connect = board_connection(kanban_db)
    except (ImportError, AttributeError) as error:
        raise MissingCapability(f"this build has no shared board: {error}") from error
    connection = connect()
    try:
        task = kanban_db.create_task(
            connection, title=board["title"], body=board["body"], assignee="default", created_by="lab"
        )
        kanban_db.add_comment(connection, task, board["author"], board["comment"])
    finally:
        connection.close()
    os.environ["HERMES_KANBAN_TASK"] = str(task)


def delegate_inline() -> None:
    """Asks for children's reports as tool results, where a build would otherwise send them to the background."""
    with contextlib.suppress(ImportError):
        from gateway.session_context import declare_stateless_channel

        declare_stateless_channel()


def finished_children() -> list[str]:
    """The messages that finished children leave behind, as the agent's own command line collects them."""
    try:
        from tools.process_registry import process_registry

        waiting = process_registry.completion_queue
        drain = process_registry.drain_notifications
    except (ImportError, AttributeError) as error:
        raise MissingCapability(f"this build has no background delegation: {error}") from error
    try:
        first = waiting.get(timeout=NOTICE_SECONDS)
    except queue.Empty:
        return []
    waiting.put(first)
    return [text for _, text in drain()]


def make_agent(job: dict[str, Any]) -> Any:
    """Constructs the agent with the keyword arguments that this build takes."""
    from run_agent import AIAgent

    offered = inspect.signature(AIAgent).parameters
    wanted = {
        "model": job["model"],
        "provider": "custom",
        "base_url": job["base_url"],
        "api_key": "none",
        "quiet_mode": True,
        "platform": "cli",
        "session_db": None,
    }
    return AIAgent(**{name: value for name, value in wanted.items() if name in offered})


def run_session(job: dict[str, Any], outcome: dict[str, Any]) -> None:
    """Delivers the user's turns one after the other, waiting for the reviews of each."""
    if job.get("board"):
        put_on_board(job["board"])
    if job.get("delegation") == "inline":
        delegate_inline()
    from run_agent import AIAgent

    outcome["capabilities"] = capabilities(AIAgent)
    notices: list[str] = []
    agent = make_agent(job)
    outcome["capabilities"].update(provider_shown(agent))
    agent.background_review_callback = notices.append
    history: list[dict[str, Any]] = list(job.get("history") or [])
    outcome.update(replies=[], reviews=0, notices=notices)

    def say(text: str) -> None:
        nonlocal history
        result = agent.run_conversation(user_message=text, conversation_history=history)
        outcome["reviews"] += join_reviews()
        history = result["messages"]
        outcome["replies"].append(str(result.get("final_response"))[:2000])

    for turn in job["turns"]:
        say(turn)
        if job.get("delegation") == "background":
            for text in finished_children():
                say(text)
    if job.get("crash"):
        return
    # The end of a session, as the agent's own one-shot command does it.
    agent.shutdown_memory_provider(history)
    agent.close()
    outcome["reviews"] += join_reviews()


def memory_store() -> Any:
    """The memory as the operator's commands get it when no session runs."""
    from tools import memory_tool

    if hasattr(memory_tool, "load_on_disk_store"):
        return memory_tool.load_on_disk_store()
    store = memory_tool.MemoryStore()
    store.load_from_disk()
    return store


def run_pending(job: dict[str, Any], outcome: dict[str, Any]) -> None:
    """Runs the operator's commands on every staged write, by the agent's own handler."""
    outcome["pending"] = []
    try:
        from hermes_cli.write_approval_commands import handle_pending_subcommand
        from tools import write_approval
    except ImportError as error:
        raise MissingCapability(f"this build stages nothing: {error}") from error
    for subsystem in ("memory", "skills"):
        for record in write_approval.list_pending(subsystem):
            for command in job["commands"]:
                said = handle_pending_subcommand(subsystem, [command, record["id"]], memory_store=memory_store())
                step = {"subsystem": subsystem, "command": command, "said": str(said)[:2000]}
                outcome["pending"].append({**step, "left": len(write_approval.list_pending(subsystem))})


def main() -> int:
    """Runs ``driver.py JOB OUTCOME``."""
    with open(sys.argv[1], encoding="utf-8") as stream:
        job = json.load(stream)
    outcome: dict[str, Any] = {"finished": False, "error": "", "missing": ""}
    code = 0
    try:
        os.makedirs(job["workspace"], exist_ok=True)
        os.chdir(job["workspace"])
        outcome["version"] = importlib.metadata.version(job["product"])
        run_pending(job, outcome) if job.get("kind") == "pending" else run_session(job, outcome)
        outcome["finished"] = True
    except MissingCapability as error:
        # Not an infrastructure fault: the trial is told apart as one that this build cannot have.
        outcome["missing"] = str(error)
    except (ImportError, importlib.metadata.PackageNotFoundError) as error:
        outcome["error"], code = f"{type(error).__name__}: {error}", 3
    except Exception as error:
        traceback.print_exc()
        outcome["error"], code = f"{type(error).__name__}: {error}", 4
    if job.get("crash") and not code:
        code = 5
    write_outcome(sys.argv[2], outcome)
    sys.stdout.flush()
    # Threads of the agent that are not reviews (telemetry, watchers) must not keep the sandbox alive; and a crash is
    # an end without any clean-up of the agent's own.
    os._exit(code)


if __name__ == "__main__":
    main()
