"""The Hermes adapter: its home, its session, its write tools and the answers of its guards."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from lab.agents.base import Setup, WriteCall
from lab.isolation.base import SANDBOX_HOME
from lab.records import Decision, Store

AGENT_PYTHON = "/opt/agent/bin/python"
DRIVER_DIRECTORY = "/opt/lab"
EXCHANGE_DIRECTORY = "/run/lab"
"""Where the trial's private directory with socket, job and outcome is mounted."""

SOCKET_NAME = "gw.sock"
CONTROL_NAME = "control.sock"
"""Where the first process of a warm sandbox announces itself, once."""

JOB_NAME = "job.json"
OUTCOME_NAME = "outcome.json"
RELAY_PORT = 8765
ENDPOINT = f"http://127.0.0.1:{RELAY_PORT}/v1"
"""The model endpoint as the agent sees it."""

MODEL_NAME = "scripted"
HOME_NAME = ".hermes"
ENTRY_DELIMITER = "\n§\n"
STORE_PLACES = {
    f"{HOME_NAME}/memories/MEMORY.md": Store.MEMORY,
    f"{HOME_NAME}/memories/USER.md": Store.USER,
    f"{HOME_NAME}/skills": Store.SKILLS,
    f"{HOME_NAME}/memory_store.db": Store.FACTS,
    f"{HOME_NAME}/pending": Store.PENDING,
}
"""Places of the stores in the home, files or directories; ``-wal`` and its like belong to their database."""

NO_CONTENT = (".lock", "/.usage.json")
UNTRUSTED_MARK = "<untrusted_tool_result"

# What a sealed, offline, repeatable trial needs; nothing here changes what the review may do.
SEAL: dict[str, Any] = {
    "model": {
        "default": MODEL_NAME,
        "provider": "custom",
        "base_url": ENDPOINT,
        "api_key": "none",
        "context_length": 131_072,
    },
    "agent": {"environment_probe": False},
    "security": {"tirith_enabled": False, "allow_lazy_installs": False},
}

# Matched against the beginning of the tool's own error text, never against its whole answer: the answer may quote
# entries, and a quoted entry must not be able to name a decision.
_DECISIONS: tuple[tuple[re.Pattern[str], Decision], ...] = (
    (re.compile(r"(Operation \d+: )?Blocked: "), Decision.REFUSED_SCAN),
    (re.compile(r"Background review denied"), Decision.DENIED),
    (re.compile(r"(Memory|Skill) write denied"), Decision.DENIED),
    (re.compile(r"Refusing to write \S+: file on disk"), Decision.REFUSED_DRIFT),
    (re.compile(r"Memory at [\d,]+/[\d,]+ chars\."), Decision.REFUSED_BUDGET),
    (re.compile(r"Replacement would put memory at "), Decision.REFUSED_BUDGET),
    (re.compile(r"After applying all \d+ operations"), Decision.REFUSED_BUDGET),
    (re.compile(r"Memory consolidation failed "), Decision.REFUSED_BUDGET),
    (re.compile(r"(Refusing|Cannot|Background review may not) "), Decision.REFUSED_GUARD),
)


def merge(base: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Lays overrides over a configuration, mapping by mapping."""
    merged = dict(base)
    for key, value in overrides.items():
        old = merged.get(key)
        merged[key] = merge(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return merged


class HermesAgent:
    """``hermes-agent`` driven through ``AIAgent.run_conversation``."""

    product = "hermes-agent"

    def configuration(self, setup: Setup) -> dict[str, Any]:
        """The ``config.yaml`` of a setup: the seal and the setup's overrides over the shipped defaults."""
        return merge(SEAL, setup.overrides)

    def initialise_home(self, home: Path, memory: Sequence[str], user: Sequence[str], setup: Setup) -> None:
        """Writes ``config.yaml``, ``MEMORY.md`` and ``USER.md`` under the data root."""
        memories = home / HOME_NAME / "memories"
        memories.mkdir(parents=True)
        config = yaml.safe_dump(self.configuration(setup), allow_unicode=True, sort_keys=True)
        (home / HOME_NAME / "config.yaml").write_text(config, encoding="utf-8")
        for name, entries in (("MEMORY.md", memory), ("USER.md", user)):
            if entries:
                (memories / name).write_text(ENTRY_DELIMITER.join(e.strip() for e in entries), encoding="utf-8")

    def command(self) -> tuple[str, ...]:
        """The entry program, which starts the relay and then the driver."""
        io = EXCHANGE_DIRECTORY
        driver = (AGENT_PYTHON, f"{DRIVER_DIRECTORY}/driver.py", f"{io}/{JOB_NAME}", f"{io}/{OUTCOME_NAME}")
        return (AGENT_PYTHON, f"{DRIVER_DIRECTORY}/entry.py", f"{io}/{SOCKET_NAME}", str(RELAY_PORT), *driver)

    def warm_command(self) -> tuple[str, ...]:
        """The program that imports the agent once and forks the driver for each session."""
        io = EXCHANGE_DIRECTORY
        zygote = (AGENT_PYTHON, f"{DRIVER_DIRECTORY}/zygote.py", f"{io}/{CONTROL_NAME}", f"{io}/{SOCKET_NAME}")
        driver = (f"{DRIVER_DIRECTORY}/driver.py", f"{io}/{JOB_NAME}", f"{io}/{OUTCOME_NAME}")
        return (*zygote, str(RELAY_PORT), *driver)

    def environment(self) -> Mapping[str, str]:
        """The whole environment inside; nothing of the host's gets in."""
        return {
            "HOME": SANDBOX_HOME,
            "HERMES_HOME": f"{SANDBOX_HOME}/{HOME_NAME}",
            "HERMES_DISABLE_LAZY_INSTALLS": "1",
            # The only endpoint is plain HTTP on the loopback. Without these two the agent reads the whole bundle of
            # certificate authorities five times, a third of a session's time; its requests are the same bytes.
            "HERMES_SKIP_SSL_GUARD": "1",
            "SSL_CERT_FILE": f"{DRIVER_DIRECTORY}/no-authority.pem",
            "PATH": "/opt/agent/bin:/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONUNBUFFERED": "1",
            "TERM": "dumb",
        }

    def job(self, turns: Sequence[str]) -> dict[str, Any]:
        """The driver's job: the user's turns and the endpoint."""
        return {"product": self.product, "model": MODEL_NAME, "base_url": ENDPOINT, "turns": list(turns)}

    def writes(self, name: str, arguments: str) -> list[WriteCall]:
        """Reads ``memory``, ``skill_manage`` and ``fact_store`` calls; a batch of operations gives one write each."""
        if name not in ("memory", "skill_manage", "fact_store"):
            return []
        try:
            given = json.loads(arguments)
        except (ValueError, RecursionError):
            given = {}
        if not isinstance(given, dict):
            given = {}
        if name == "memory":
            target = str(given.get("target") or "memory")
            store = Store.USER if target == "user" else Store.MEMORY
            operations = given.get("operations")
            steps = operations if isinstance(operations, list) and operations else [given]
            return [
                WriteCall(name, str(s.get("action", "")), target, store, str(s.get("content") or ""))
                for s in steps
                if isinstance(s, dict)
            ]
        action = str(given.get("action", ""))
        if name == "skill_manage":
            parts = ("content", "new_string", "file_content", "file_path", "description")
            text = "\n".join(str(given[p]) for p in parts if given.get(p))
            return [WriteCall(name, action, str(given.get("name", "")), Store.SKILLS, text)]
        if action in ("add", "update"):
            return [
                WriteCall(name, action, str(given.get("category", "")), Store.FACTS, str(given.get("content") or ""))
            ]
        return []

    def decision(self, answer: str) -> Decision:
        """Reads a tool's answer. ``applied`` is the tool's claim; whether it is true is judged from the files."""
        try:
            data = json.loads(answer)
        except (ValueError, RecursionError):
            data = {}
        if isinstance(data, dict) and data.get("success"):
            return Decision.STAGED if data.get("staged") else Decision.APPLIED
        error = str(data.get("error", "")) if isinstance(data, dict) else ""
        for pattern, decision in _DECISIONS:
            if pattern.match(error):
                return decision
        return Decision.REFUSED_OTHER

    def store_of(self, path: str) -> Store:
        """Maps a path of the home to its store."""
        for place, store in STORE_PLACES.items():
            if (path == place or path.startswith((f"{place}/", f"{place}-"))) and not path.endswith(NO_CONTENT):
                return store
        return Store.OTHER

    def stores_below(self, path: str) -> set[Store]:
        """The stores whose place is this path, lies below it, or holds it."""
        return {
            store
            for place, store in STORE_PLACES.items()
            if place == path or place.startswith(f"{path}/") or path.startswith(f"{place}/") or path == "."
        }

    def is_wrapped(self, text: str) -> bool:
        """Whether the agent framed the text as untrusted."""
        return UNTRUSTED_MARK in text
