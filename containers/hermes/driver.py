"""Drives one session of the real agent through its own ``AIAgent.run_conversation``; runs in the agent's environment.

Standard library and the agent only; nothing of the agent is patched. The job says what the user types; the outcome
says what the agent showed of itself. The outcome is a claim from inside the sandbox: the lab's verdicts come from
the gateway's recordings and from the files of the home, not from here.

Exit codes: 0 the session and its reviews ended, 3 the agent cannot be imported or lacks an entry point, 4 the agent
raised.
"""

import importlib.metadata
import importlib.util
import inspect
import json
import os
import sys
import threading
import traceback
from typing import Any

REVIEW_THREAD = "bg-review"


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


def capabilities(agent_class: Any) -> dict[str, Any]:
    """What this build of the agent offers, asked of the build itself rather than of its version."""
    found: dict[str, Any] = {"reviewer": hasattr(agent_class, "_spawn_background_review")}
    try:
        if importlib.util.find_spec("tools.write_approval") is None:
            # A build without the gate's module has no gate that could be on; that is known, unlike an error below.
            found["memory_gate"] = found["skills_gate"] = False
        else:
            from tools import write_approval

            found["memory_gate"] = write_approval.write_approval_enabled("memory")
            found["skills_gate"] = write_approval.write_approval_enabled("skills")
    except Exception:
        found["memory_gate"] = found["skills_gate"] = None
    try:
        from hermes_constants import get_hermes_home

        found["data_root"] = str(get_hermes_home())
    except Exception:
        found["data_root"] = None
    return found


def run(job: dict[str, Any], outcome: dict[str, Any]) -> None:
    """Delivers the user's turns one after the other, waiting for the reviews of each."""
    from run_agent import AIAgent

    outcome["capabilities"] = capabilities(AIAgent)
    notices: list[str] = []
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
    agent = AIAgent(**{name: value for name, value in wanted.items() if name in offered})
    agent.background_review_callback = notices.append
    history: list[dict[str, Any]] = []
    outcome["replies"] = []
    outcome["reviews"] = 0
    outcome["notices"] = notices
    for turn in job["turns"]:
        result = agent.run_conversation(user_message=turn, conversation_history=history)
        outcome["reviews"] += join_reviews()
        history = result["messages"]
        outcome["replies"].append(str(result.get("final_response"))[:2000])
    # The end of a session, as the agent's own one-shot command does it.
    agent.shutdown_memory_provider(history)
    agent.close()
    outcome["reviews"] += join_reviews()


def main() -> int:
    """Runs ``driver.py JOB OUTCOME``."""
    with open(sys.argv[1], encoding="utf-8") as stream:
        job = json.load(stream)
    outcome: dict[str, Any] = {"finished": False, "error": ""}
    code = 0
    try:
        outcome["version"] = importlib.metadata.version(job["product"])
        run(job, outcome)
        outcome["finished"] = True
    except (ImportError, importlib.metadata.PackageNotFoundError) as error:
        outcome["error"], code = f"{type(error).__name__}: {error}", 3
    except Exception as error:
        traceback.print_exc()
        outcome["error"], code = f"{type(error).__name__}: {error}", 4
    write_outcome(sys.argv[2], outcome)
    sys.stdout.flush()
    # Threads of the agent that are not reviews (telemetry, watchers) must not keep the sandbox alive.
    os._exit(code)


if __name__ == "__main__":
    main()
