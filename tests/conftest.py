"""Fixtures that several test folders share: isolation backends and environments prepared once per session."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lab.agents.hermes.install import ensure
from lab.errors import LabError
from lab.gateway.server import GatewayHost
from lab.isolation.base import Backend, PreparedEnvironment, sandbox_ids
from lab.isolation.select import BACKENDS, backend_named


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out the tests that prepare many builds, of some 60 MB each, unless they are asked for by their mark."""
    if "builds" not in config.option.markexpr:
        costly = [item for item in items if item.get_closest_marker("builds")]
        config.hook.pytest_deselected(items=costly)
        items[:] = [item for item in items if item not in costly]


@pytest.fixture(scope="session")
def prepared() -> Callable[[str], tuple[Backend, PreparedEnvironment]]:
    """Gives a backend by name with its environment, or skips with the command that would mend the machine."""
    made: dict[str, PreparedEnvironment] = {}

    def prepare(name: str) -> tuple[Backend, PreparedEnvironment]:
        backend = backend_named(name)
        status = backend.status()
        if not status.usable:
            pytest.skip(f"{name}: {status.problem} — {status.mend}")
        if name not in made:
            try:
                made[name] = ensure(name)
            except LabError as error:
                pytest.skip(f"{name}: {error}")
        return backend, made[name]

    return prepare


@pytest.fixture(params=[pytest.param(name, marks=[getattr(pytest.mark, name), pytest.mark.agent]) for name in BACKENDS])
def sandbox(
    request: pytest.FixtureRequest, prepared: Callable[[str], tuple[Backend, PreparedEnvironment]]
) -> tuple[Backend, PreparedEnvironment]:
    """Every backend in turn, with its environment."""
    return prepared(request.param)


@pytest.fixture
def sandbox_home(tmp_path: Path) -> Path:
    """A home directory that belongs to the user whom programs have inside."""
    home = tmp_path / "home"
    home.mkdir()
    os.chown(home, *sandbox_ids())
    return home


@pytest.fixture
def gateways() -> Iterator[GatewayHost]:
    """A host of model endpoints for one test."""
    with GatewayHost() as host:
        yield host
