"""The Hermes adapter: one for every build, because what differs between builds is asked of the build itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lab.agents.base import PendingAction, Seed, SessionPlan, Setup, WriteCall, WriteIntent
from lab.agents.hermes import calls, home
from lab.agents.hermes.volatile import comparable
from lab.gateway.replies import ToolCall
from lab.gateway.request import Schemas
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
DEFAULT_PRODUCT = "hermes-agent"
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


class HermesAgent:
    """Hermes Agent, or a fork of it, driven through ``AIAgent.run_conversation``.

    Args:
        product: Name of the installed distribution.
    """

    workspace = home.WORKSPACE
    data = home.DATA
    delegate_tool = "delegate_task"
    fact_tables: tuple[str, ...] = ("facts",)

    def __init__(self, product: str = DEFAULT_PRODUCT) -> None:
        self.product = product

    def configuration(self, setup: Setup) -> dict[str, Any]:
        """The ``config.yaml`` of a setup: the seal and the setup's overrides over the shipped defaults."""
        return home.merge(SEAL, setup.overrides)

    def initialise_home(self, path: Path, seed: Seed, setup: Setup) -> None:
        """Writes configuration, memory files, skills and the working directory."""
        home.lay_out(path, seed, setup, self.configuration(setup))

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
            "HERMES_HOME": home.DATA,
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

    def job(self, plan: SessionPlan) -> dict[str, Any]:
        """The driver's job for a session."""
        return {
            **self._common(),
            "kind": "session",
            "turns": list(plan.turns),
            "history": [
                {"role": role, "content": text}
                for exchange in plan.history
                for role, text in zip(("user", "assistant"), exchange, strict=True)
            ],
            "delegation": plan.delegation,
            "board": dict(plan.board) if plan.board else None,
            "crash": plan.crash,
        }

    def pending_job(self, action: PendingAction) -> dict[str, Any]:
        """The driver's job for staged writes; the order of the operator's commands says what he does."""
        commands = {
            PendingAction.REJECT: ["reject"],
            PendingAction.APPROVE_TWICE: ["approve", "approve"],
        }
        return {**self._common(), "kind": "pending", "commands": commands.get(action, ["approve"])}

    def _common(self) -> dict[str, Any]:
        return {"product": self.product, "model": MODEL_NAME, "base_url": ENDPOINT, "workspace": self.workspace}

    def compose(self, intent: WriteIntent, wording: str, schemas: Schemas) -> list[ToolCall]:
        """The calls by which a model of this agent writes."""
        return calls.compose(intent, wording, schemas)

    def batched(self, single: Sequence[ToolCall], schemas: Schemas) -> list[ToolCall]:
        """The same writes as one batch, where the offered tool has one."""
        return calls.batched(single, schemas)

    def recall(self, intent: WriteIntent) -> list[ToolCall]:
        """Calls by which a fresh session opens what it does not have in its prompt."""
        return calls.recall(intent)

    def writes(self, name: str, arguments: str) -> list[WriteCall]:
        """The writes that a tool call asks for."""
        return calls.writes(name, arguments)

    def comparable(self, request: bytes) -> bytes:
        """A request without random ids, times and the date."""
        return comparable(request)

    def decision(self, answer: str) -> Decision:
        """What the guards did, by the tool's answer."""
        return calls.decision(answer)

    def store_of(self, path: str) -> Store:
        """Maps a path of the home to its store."""
        return home.store_of(path)

    def stores_below(self, path: str) -> set[Store]:
        """The stores whose place is this path, lies below it, or holds it."""
        return home.stores_below(path)

    def is_wrapped(self, text: str) -> bool:
        """Whether the agent framed the text as untrusted."""
        return UNTRUSTED_MARK in text
