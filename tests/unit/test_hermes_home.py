"""Hermes' home before a trial: skills with the agent's own records of who made them, configuration, files, stores."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.agents.base import Seed, SeedSkill, Setup
from lab.agents.hermes.adapter import SEAL, HermesAgent
from lab.agents.hermes.home import merge, skill_text, store_of, stores_below
from lab.records import Store


def laid_out(home: Path, seed: Seed | None = None, **setup: Any) -> Path:
    home.mkdir()
    HermesAgent().initialise_home(home, seed or Seed(), Setup(name="x", description="x", **setup))
    return home / ".hermes"


def skill(made_by: str, *, pinned: bool = False) -> SeedSkill:
    return SeedSkill(
        f"by-{made_by}{'-pinned' if pinned else ''}", made_by, pinned, "How we\ndeploy: quickly", "# Deploy"
    )


MAKERS = ("agent", "user", "bundled", "hub")


def records(folder: Path) -> dict[str, Any]:
    """The agent's own records, empty where there are none."""

    def read(name: str) -> Any:
        path = folder / name
        return json.loads(path.read_text()) if path.exists() else {}

    manifest = folder / ".bundled_manifest"
    return {
        "usage": read(".usage.json"),
        "hub": sorted(read(".hub/lock.json").get("installed", {})),
        "bundled": manifest.read_text().splitlines() if manifest.exists() else [],
    }


def test_every_provenance_stands_in_the_agents_own_records(tmp_path: Path) -> None:
    folder = laid_out(tmp_path / "home", Seed(skills=[skill(maker) for maker in MAKERS])) / "skills"
    text = (folder / "by-bundled" / "SKILL.md").read_bytes()
    assert records(folder) == {
        "usage": {"by-agent": {"created_by": "agent", "pinned": False, "state": "active"}},
        "hub": ["by-hub"],
        "bundled": [f"by-bundled:{hashlib.md5(text, usedforsecurity=False).hexdigest()}"],
    }
    for maker in MAKERS:
        head, _, body = (folder / f"by-{maker}" / "SKILL.md").read_text().removeprefix("---\n").partition("\n---\n")
        assert yaml.safe_load(head) == {"name": f"by-{maker}", "description": "How we deploy: quickly"}
        assert body.strip() == "# Deploy"


@pytest.mark.parametrize("maker", MAKERS)
def test_a_pin_is_recorded_and_makes_nobody_the_maker(tmp_path: Path, maker: str) -> None:
    folder = laid_out(tmp_path / "home", Seed(skills=[skill(maker, pinned=True)])) / "skills"
    (record,) = records(folder)["usage"].values()
    assert record["pinned"] is True
    assert ("created_by" in record) is (maker == "agent")


@pytest.mark.parametrize("maker", MAKERS)
def test_only_its_own_record_is_written(tmp_path: Path, maker: str) -> None:
    folder = laid_out(tmp_path / "home", Seed(skills=[skill(maker)])) / "skills"
    found = {name for name, record in records(folder).items() if record}
    assert found == {"agent": {"usage"}, "user": set(), "bundled": {"bundled"}, "hub": {"hub"}}[maker]


def test_entries_files_and_an_empty_seed(tmp_path: Path) -> None:
    seed = Seed(memory=(" a ", "b"), user=("c",), files={"inbox/x.txt": "é\n", "y": "z"})
    data = laid_out(tmp_path / "home", seed)
    assert (data / "memories" / "MEMORY.md").read_text(encoding="utf-8") == "a\n§\nb"
    assert (data / "memories" / "USER.md").read_text(encoding="utf-8") == "c"
    work = tmp_path / "home" / "workspace"
    assert {str(p.relative_to(work)): p.read_text(encoding="utf-8") for p in work.rglob("*") if p.is_file()} == {
        "inbox/x.txt": "é\n",
        "y": "z",
    }
    bare = laid_out(tmp_path / "bare")
    assert [str(p.relative_to(bare)) for p in bare.rglob("*") if p.is_file()] == ["config.yaml"]
    assert (tmp_path / "bare" / "workspace").is_dir()


def test_a_configuration_is_the_seal_under_the_overrides(tmp_path: Path) -> None:
    overrides = {"memory": {"write_approval": True}, "agent": {"extra": 1}}
    config = yaml.safe_load((laid_out(tmp_path / "home", overrides=overrides) / "config.yaml").read_text())
    assert config["memory"] == {"write_approval": True}
    assert config["agent"] == {**SEAL["agent"], "extra": 1}
    assert config["model"] == SEAL["model"]


def test_a_raw_configuration_is_written_as_it_is(tmp_path: Path) -> None:
    raw = "memory: [broken\n  é: {\n"
    data = laid_out(tmp_path / "home", raw_config=raw, overrides={"memory": {"write_approval": True}})
    assert (data / "config.yaml").read_text(encoding="utf-8") == raw


def test_an_empty_raw_configuration_is_one_too(tmp_path: Path) -> None:
    assert (laid_out(tmp_path / "home", raw_config="") / "config.yaml").read_text() == ""


def test_merging_changes_neither_side() -> None:
    base, over = {"a": {"b": 1, "c": {"d": 2}}, "e": 3}, {"a": {"c": {"d": 4}}, "e": {"f": 5}}
    assert merge(base, over) == {"a": {"b": 1, "c": {"d": 4}}, "e": {"f": 5}}
    assert base == {"a": {"b": 1, "c": {"d": 2}}, "e": 3}


def test_a_description_is_one_line_that_yaml_reads_back() -> None:
    for hostile in ('a: b # "c"', "---\nname: x", "x" * 500, "é\u202e"):
        head = skill_text("x", hostile, "body").split("---")[1]
        if "---" not in hostile:
            assert yaml.safe_load(head)["description"] == " ".join(hostile.split())[:200]
        assert yaml.safe_load(skill_text("x", hostile, "body").split("\n---\n")[0])["name"] == "x"


@pytest.mark.parametrize(
    ("path", "store"),
    [
        (".hermes/memories/MEMORY.md", Store.MEMORY),
        (".hermes/memories/USER.md", Store.USER),
        (".hermes/memories/MEMORY.md.lock", Store.OTHER),
        (".hermes/memories/MEMORY.md.bak.1", Store.OTHER),
        (".hermes/memory_store.db-wal", Store.FACTS),
        (".hermes/skills/deploy/scripts/x.sh", Store.SKILLS),
        (".hermes/skills/.usage.json", Store.OTHER),
        (".hermes/skills/.hub/lock.json", Store.OTHER),
        (".hermes/skills/deploy/lock.json", Store.SKILLS),
        (".hermes/pending/skills/1.json", Store.PENDING),
        ("workspace/.hermes/memories/MEMORY.md", Store.OTHER),
        (".hermes/skills2/x", Store.OTHER),
    ],
)
def test_stores_by_path(path: str, store: Store) -> None:
    assert store_of(path) is store


def test_what_lies_behind_a_link() -> None:
    assert stores_below(".hermes/memories") == {Store.MEMORY, Store.USER}
    assert stores_below(".hermes/skills/deploy") == {Store.SKILLS}
    assert stores_below(".") == {Store.MEMORY, Store.USER, Store.SKILLS, Store.FACTS, Store.PENDING}
    assert stores_below("workspace") == set()
