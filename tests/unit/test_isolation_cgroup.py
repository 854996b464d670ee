"""Where control groups are made and what is written into them, on directories that look like the kernel's."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.isolation.base import Limits
from lab.isolation.cgroup import GROUP_PARENT, Group, Hierarchies, find_hierarchies, groups_in

LIMITS = Limits(memory_bytes=64 << 20, processes=10, cpus=1.5)


def v1_line(point: Path, controller: str) -> str:
    return f"30 24 0:27 / {point} rw,relatime - cgroup cgroup rw,{controller}\n"


def v1_tree(tmp_path: Path, *controllers: str) -> str:
    """Mount lines of a v1 machine, with the lab's parents and the files that the kernel would put in them."""
    text = "22 1 0:21 / /proc rw - proc proc rw\n"
    for name in controllers:
        parent = tmp_path / name / GROUP_PARENT
        parent.mkdir(parents=True)
        (parent / "cgroup.procs").touch()
        text += v1_line(tmp_path / name, name)
    return text


def test_v1_takes_the_root_of_each_hierarchy(tmp_path: Path) -> None:
    text = v1_tree(tmp_path, "memory", "pids", "cpu")
    found = find_hierarchies(text, "4:memory:/deep/below\n8:pids:/\n")
    assert found is not None
    assert found.version == 1
    assert found.missing == ()
    assert found.parents["memory"] == tmp_path / "memory" / GROUP_PARENT


def test_v1_without_cpu_is_usable_and_says_so(tmp_path: Path) -> None:
    found = find_hierarchies(v1_tree(tmp_path, "memory", "pids"), "")
    assert found is not None
    assert found.missing == ("cpu",)


def test_v1_without_pids_is_not_usable(tmp_path: Path) -> None:
    assert find_hierarchies(v1_tree(tmp_path, "memory", "cpu"), "") is None


def test_v1_falls_back_to_the_own_group(tmp_path: Path) -> None:
    text = ""
    for name in ("memory", "pids"):
        (tmp_path / name).mkdir()
        (tmp_path / name / GROUP_PARENT).write_text("a file: no directory can be made here")
        own = tmp_path / name / "own" / GROUP_PARENT
        own.mkdir(parents=True)
        (own / "cgroup.procs").touch()
        text += v1_line(tmp_path / name, name)
    found = find_hierarchies(text, "4:memory:/own\n8:pids:/own\n")
    assert found is not None
    assert found.parents["memory"] == tmp_path / "memory" / "own" / GROUP_PARENT


def v2_directory(path: Path, controllers: str, enabled: str) -> None:
    path.mkdir(parents=True, exist_ok=True)
    (path / "cgroup.controllers").write_text(controllers)
    (path / "cgroup.subtree_control").write_text(enabled)


def v2_line(point: Path) -> str:
    return f"30 24 0:27 / {point} rw,relatime shared:4 - cgroup2 cgroup2 rw\n"


def test_v2_root(tmp_path: Path) -> None:
    v2_directory(tmp_path, "cpu memory pids", "cpu memory pids")
    v2_directory(tmp_path / GROUP_PARENT, "cpu memory pids", "cpu memory pids")
    found = find_hierarchies(v2_line(tmp_path), "0::/user.slice/session\n")
    assert found is not None
    assert found.version == 2
    assert found.parents == {"unified": tmp_path / GROUP_PARENT}


def test_v2_delegated_ancestor_and_never_the_own_group(tmp_path: Path) -> None:
    v2_directory(tmp_path, "", "")
    manager = tmp_path / "user" / "manager"
    for path in (manager, manager / GROUP_PARENT, manager / "own"):
        v2_directory(path, "memory pids", "memory pids")
    found = find_hierarchies(v2_line(tmp_path), "0::/user/manager/own\n")
    assert found is not None
    assert found.parents == {"unified": manager / GROUP_PARENT}


def test_v2_without_controllers_is_not_usable(tmp_path: Path) -> None:
    v2_directory(tmp_path, "hugetlb", "")
    assert find_hierarchies(v2_line(tmp_path), "0::/\n") is None


def test_v1_limits(tmp_path: Path) -> None:
    group = Group.named(Hierarchies({name: tmp_path / name for name in ("memory", "pids", "cpu")}), "one")
    group.create(LIMITS, extra_processes=2)
    read = {path.name: path.read_text() for path in tmp_path.rglob("*") if path.is_file()}
    assert read == {
        "memory.limit_in_bytes": str(64 << 20),
        "memory.memsw.limit_in_bytes": str(64 << 20),
        "pids.max": "12",
        "cpu.cfs_period_us": "100000",
        "cpu.cfs_quota_us": "150000",
    }


def test_v2_limits(tmp_path: Path) -> None:
    group = Group.named(Hierarchies({"unified": tmp_path}), "one")
    group.create(LIMITS)
    read = {path.name: path.read_text() for path in tmp_path.rglob("*") if path.is_file()}
    assert read == {
        "memory.max": str(64 << 20),
        "memory.swap.max": "0",
        "pids.max": "10",
        "cpu.max": "150000 100000",
    }


@pytest.mark.parametrize(
    ("key", "name", "text", "kills"),
    [
        ("memory", "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n", 3),
        ("memory", "memory.oom_control", "oom_kill_disable 0\nunder_oom 0\n", 0),
        ("unified", "memory.events", "low 0\nhigh 0\nmax 7\noom 1\noom_kill 1\noom_group_kill 0\n", 1),
    ],
)
def test_memory_kills(tmp_path: Path, key: str, name: str, text: str, kills: int) -> None:
    (tmp_path / name).write_text(text)
    assert Group({key: tmp_path}).memory_kills() == kills


def test_removed_group_is_no_error(tmp_path: Path) -> None:
    group = Group({"memory": tmp_path / "gone"})
    assert group.memory_kills() == 0
    assert group.processes() == frozenset()
    assert group.remove()


def test_groups_by_name(tmp_path: Path) -> None:
    for path in ("memory/a", "pids/a", "pids/b"):
        (tmp_path / path).mkdir(parents=True)
    found = groups_in(Hierarchies({name: tmp_path / name for name in ("memory", "pids")}))
    assert {name: set(group.paths) for name, group in found.items()} == {
        "a": {"memory", "pids"},
        "b": {"pids"},
    }
