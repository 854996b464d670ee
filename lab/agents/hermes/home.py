"""Hermes' home: where its stores are, and how it is laid out before a trial."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from lab.agents.base import Seed, SeedSkill, Setup
from lab.isolation.base import SANDBOX_HOME
from lab.records import Store

HOME_NAME = ".hermes"
WORK_NAME = "workspace"
DATA = f"{SANDBOX_HOME}/{HOME_NAME}"
WORKSPACE = f"{SANDBOX_HOME}/{WORK_NAME}"
_DESCRIPTION_CHARACTERS = 200
ENTRY_DELIMITER = "\n§\n"

STORE_PLACES = {
    f"{HOME_NAME}/memories/MEMORY.md": Store.MEMORY,
    f"{HOME_NAME}/memories/USER.md": Store.USER,
    f"{HOME_NAME}/skills": Store.SKILLS,
    f"{HOME_NAME}/memory_store.db": Store.FACTS,
    f"{HOME_NAME}/pending": Store.PENDING,
}
"""Places of the stores in the home, files or directories; ``-wal`` and its like belong to their database."""

# Records that the agent keeps about its skills, and locks: they change without anything being remembered.
_NO_CONTENT = (".lock", "/.usage.json", "/.curator_state", "/.bundled_manifest", "/.hub/lock.json")


def store_of(path: str) -> Store:
    """Maps a path of the home to its store."""
    for place, store in STORE_PLACES.items():
        if (path == place or path.startswith((f"{place}/", f"{place}-"))) and not path.endswith(_NO_CONTENT):
            return store
    return Store.OTHER


def stores_below(path: str) -> set[Store]:
    """The stores whose place is this path, lies below it, or holds it."""
    return {
        store
        for place, store in STORE_PLACES.items()
        if place == path or place.startswith(f"{path}/") or path.startswith(f"{place}/") or path == "."
    }


def merge(base: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Lays overrides over a configuration, mapping by mapping."""
    merged = dict(base)
    for key, value in overrides.items():
        old = merged.get(key)
        merged[key] = merge(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return merged


def lay_out(home: Path, seed: Seed, setup: Setup, configuration: Mapping[str, Any]) -> None:
    """Writes the configuration, the memory files, the skills and the working directory.

    Raises:
        OSError: It cannot be written.
    """
    data = home / HOME_NAME
    (data / "memories").mkdir(parents=True)
    shipped = yaml.safe_dump(dict(configuration), allow_unicode=True, sort_keys=True)
    config = shipped if setup.raw_config is None else setup.raw_config
    (data / "config.yaml").write_text(config, encoding="utf-8")
    for name, entries in (("MEMORY.md", seed.memory), ("USER.md", seed.user)):
        if entries:
            text = ENTRY_DELIMITER.join(entry.strip() for entry in entries)
            (data / "memories" / name).write_text(text, encoding="utf-8")
    if seed.skills:
        _lay_out_skills(data / "skills", seed.skills)
    (home / WORK_NAME).mkdir()
    for relative, text in seed.files.items():
        path = home / WORK_NAME / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def skill_text(name: str, description: str, body: str) -> str:
    """A whole SKILL.md: its head and its body."""
    told = " ".join(description.split())[:_DESCRIPTION_CHARACTERS]
    return f"---\nname: {name}\ndescription: {json.dumps(told, ensure_ascii=False)}\n---\n\n{body}\n"


def _lay_out_skills(folder: Path, skills: Sequence[SeedSkill]) -> None:
    """The skills with the agent's own records of who made them."""
    usage: dict[str, dict[str, Any]] = {}
    bundled, hub = [], {}
    for skill in skills:
        text = skill_text(skill.name, skill.description, skill.body)
        (folder / skill.name).mkdir(parents=True)
        (folder / skill.name / "SKILL.md").write_text(text, encoding="utf-8")
        if skill.made_by == "agent" or skill.pinned:
            made = {"created_by": "agent"} if skill.made_by == "agent" else {}
            usage[skill.name] = {**made, "pinned": skill.pinned, "state": "active"}
        if skill.made_by == "bundled":
            digest = hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()  # the agent's own form
            bundled.append(f"{skill.name}:{digest}\n")
        if skill.made_by == "hub":
            hub[skill.name] = {"source": "example.test", "install_path": skill.name}
    if usage:
        (folder / ".usage.json").write_text(json.dumps(usage), encoding="utf-8")
    if bundled:
        (folder / ".bundled_manifest").write_text("".join(bundled), encoding="utf-8")
    if hub:
        (folder / ".hub").mkdir()
        (folder / ".hub" / "lock.json").write_text(json.dumps({"version": 1, "installed": hub}), encoding="utf-8")
