"""A planted backend and runs of two builds made with it, for tests of what stands above a sandbox."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.agents.base import Setup
from lab.contamination.plan import Build, create_run
from lab.contamination.suite import Suite
from lab.errors import SandboxError
from lab.isolation.base import BackendStatus, Exit, PreparedEnvironment, ReapReport, SandboxSpec
from lab.runs.runner import Progress
from tests.trial_evidence import SCENARIO

SETUP = Setup(name="default", description="As shipped.")
MODEL = "scripted:always-write"


@dataclass
class Planted:
    """A backend whose programs end at once, or as planted; it remembers what it was asked to run.

    Attributes:
        ends: Errors to raise by trial, one for each attempt; without one a program ends well and does nothing.
        ran: Trial and environment digest of each session, in the order of their start.
    """

    name: str = "planted"
    ends: dict[str, list[SandboxError]] = field(default_factory=dict)
    ran: list[tuple[str, str]] = field(default_factory=list)

    def status(self) -> BackendStatus:
        return BackendStatus(usable=True, version="1")

    def run(self, spec: SandboxSpec, cancel: threading.Event | None = None) -> Exit:
        trial = spec.labels["trial"]
        self.ran.append((trial, spec.environment.digest))
        if errors := self.ends.get(trial):
            raise errors.pop(0)
        return Exit(0, b"", b"", 0.0)

    def reap(self, include_images: bool = False) -> ReapReport:
        return ReapReport((), ())


def build(name: str, digest: str, product: str = "hermes-agent") -> Build:
    environment = PreparedEnvironment("planted", f"/{name}", digest)
    return Build(f"{product}-{name}", product, name, environment, {"python": "3.11"}, source=name)


BUILDS = [build("1.0", "a" * 64), build("2.0", "b" * 64, "fork")]
ENVIRONMENTS = {b.name: b.environment for b in BUILDS}


def make(root: Path, backend: Planted | None = None, **more: Any) -> Suite:
    fields: dict[str, Any] = {
        "scenarios": [SCENARIO],
        "builds": BUILDS,
        "setups": [SETUP],
        "models": [MODEL],
        "backend": backend or Planted(),
    }
    return Suite(create_run(root, **fields | more))


def work(
    suite: Suite,
    backend: Planted,
    *,
    environments: Mapping[str, PreparedEnvironment] = ENVIRONMENTS,
    budget: float = 1.0,
    retry_errors: bool = False,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> bool:
    pending = suite.pending(retry_errors)
    return suite.run(backend, environments, pending, workers=1, error_budget=budget, on_progress=on_progress)
