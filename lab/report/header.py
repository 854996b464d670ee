"""What was run, with what, on what: the head of a report, read defensively from the lock."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import Field

from lab.records import Record


class Run(Record):
    """The only part of the report that depends on when the run was made.

    Attributes:
        id: Run id.
        created: Time stamp of the lock.
    """

    id: str
    created: str = ""


class Build(Record):
    """One installed agent, exactly."""

    name: str
    product: str = ""
    version: str = ""
    environment_digest: str = ""
    python: str = ""
    packages: dict[str, str] = Field(default_factory=dict)


class Setup(Record):
    """One configuration.

    Attributes:
        overrides: The agent's own keys with their values as text.
        guards: Guards that the user believes to be on.
        operator: What the operator does with staged writes.
        raw: The configuration file was written as it stands in the setup, broken as it may be.
    """

    name: str
    description: str = ""
    overrides: dict[str, str] = Field(default_factory=dict)
    guards: tuple[str, ...] = ()
    operator: str = ""
    raw: bool = False


class Header(Record):
    """What was run, with what, on what."""

    lab_version: str = ""
    backend: str = ""
    backend_version: str = ""
    weaknesses: tuple[str, ...] = ()
    builds: tuple[Build, ...] = ()
    setups: tuple[Setup, ...] = ()
    models: tuple[str, ...] = ()
    scenarios: dict[str, str] = Field(default_factory=dict)
    driver_digest: str = ""
    reused_run: str = ""
    start: str = ""
    cold_starts: dict[str, str] = Field(default_factory=dict)
    host: dict[str, str] = Field(default_factory=dict)


def _mapping(value: Any) -> dict[str, Any]:
    return {str(key): item for key, item in value.items()} if isinstance(value, Mapping) else {}


def _word(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)


def _flat(value: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    flat: dict[str, str] = {}
    for key, item in sorted(_mapping(value).items()):
        if isinstance(item, Mapping) and item:
            flat |= _flat(item, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = _word(item)
    return flat


def _words(value: Any) -> tuple[str, ...]:
    return tuple(_word(item) for item in value) if isinstance(value, list | tuple) else ()


def read_header(lock: Mapping[str, Any]) -> Header:
    """What the lock says of versions and digests; a key it lacks is left empty."""
    backend = _mapping(lock.get("backend"))
    builds = []
    for name, body in sorted(_mapping(lock.get("builds")).items()):
        entry = _mapping(body)
        plain = {key: _word(entry.get(key)) for key in ("product", "version", "environment_digest", "python")}
        packages = {key: _word(item) for key, item in sorted(_mapping(entry.get("packages")).items())}
        builds.append(Build(name=name, packages=packages, **plain))
    setups = []
    for name, body in sorted(_mapping(lock.get("setups")).items()):
        entry = _mapping(body)
        overrides = _flat(_mapping(entry.get("overrides")))
        setups.append(
            Setup(
                name=name,
                description=_word(entry.get("description")),
                overrides=overrides,
                guards=_words(entry.get("guards")),
                operator=_word(entry.get("pending")).removeprefix("none"),
                raw=entry.get("raw_config") is not None,
            )
        )
    return Header(
        lab_version=_word(lock.get("lab_version")),
        backend=_word(backend.get("name")),
        backend_version=_word(backend.get("version")),
        weaknesses=_words(backend.get("weaknesses")),
        builds=tuple(builds),
        setups=tuple(setups),
        models=_words(lock.get("models")),
        scenarios={key: _word(item) for key, item in sorted(_mapping(lock.get("scenarios")).items())},
        driver_digest=_word(lock.get("driver_digest")),
        reused_run=_word(lock.get("reused_run")),
        start=_word(lock.get("start")),
        cold_starts={key: _word(item) for key, item in sorted(_mapping(lock.get("cold_starts")).items())},
        host={key: _word(_mapping(lock.get("host")).get(key)) for key in ("kernel", "arch", "python")},
    )


def read_run(lock: Mapping[str, Any]) -> Run:
    """The run's id and time stamp."""
    return Run(id=_word(lock.get("run_id")) or "unknown", created=_word(lock.get("created")))
