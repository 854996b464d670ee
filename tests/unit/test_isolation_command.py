"""The command line that makes bubblewrap a cage."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.errors import SandboxStartFailed
from lab.isolation.base import SANDBOX_UID, Limits, Mount, PreparedEnvironment, SandboxSpec
from lab.isolation.bwrap_command import bwrap_command, launch_command, missing_program, mount_parents


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    for name in ("usr/bin", "run", "mnt", "etc/inside", "home/agent", "opt/lab"):
        (root / name).mkdir(parents=True)
    (root / "usr" / "bin" / "true").touch()
    return root


def line(root: Path, *, as_root: bool, mounts: tuple[Mount, ...] = (), **env: str) -> list[str]:
    environment = PreparedEnvironment("bwrap", str(root), "digest", root / "etc")
    spec = SandboxSpec(environment, ("/usr/bin/true", "--flag"), env=env, mounts=mounts)
    return bwrap_command("/usr/bin/bwrap", spec, as_root=as_root, status_fd=7)


def pairs(command: list[str], option: str) -> list[list[str]]:
    return [command[at + 1 : at + 3] for at, word in enumerate(command) if word == option]


def test_every_namespace_and_no_host_environment(root: Path) -> None:
    command = line(root, as_root=True, PATH="/usr/bin")
    for option in ("pid", "net", "ipc", "uts", "cgroup"):
        assert f"--unshare-{option}" in command
    for option in ("--clearenv", "--die-with-parent", "--new-session"):
        assert option in command
    assert pairs(command, "--setenv") == [["HOME", "/home/agent"], ["PATH", "/usr/bin"]]
    assert pairs(command, "--ro-bind") == [[str(root), "/"], [str(root / "etc"), "/opt/lab"]]
    assert command[-2:] == ["/usr/bin/true", "--flag"]


def test_root_becomes_a_kernel_user_without_capabilities(root: Path) -> None:
    command = line(root, as_root=True)
    assert "--unshare-user" not in command
    assert pairs(command, "--reuid")[0][0] == str(SANDBOX_UID)
    assert {"--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all", "--no-new-privs"} <= set(command)


def test_others_use_a_user_namespace(root: Path) -> None:
    command = line(root, as_root=False)
    assert {"--unshare-user", "--disable-userns"} <= set(command)
    assert "/usr/bin/setpriv" not in command


@pytest.mark.parametrize("as_root", [True, False])
def test_the_filter_is_set_for_root_and_others(root: Path, as_root: bool) -> None:
    spec = SandboxSpec(PreparedEnvironment("bwrap", str(root), "digest"), ("/usr/bin/true",))
    command = bwrap_command("/usr/bin/bwrap", spec, as_root=as_root, status_fd=7, filter_fd=9)
    assert command[command.index("--seccomp") + 1] == "9"
    assert command.index("--seccomp") < command.index("--")
    assert "--seccomp" not in bwrap_command("/usr/bin/bwrap", spec, as_root=as_root, status_fd=7)


def test_mounts(root: Path, tmp_path: Path) -> None:
    mounts = (Mount(tmp_path, "/home/agent", writable=True), Mount(tmp_path, "/run/lab"))
    command = line(root, as_root=True, mounts=mounts)
    assert pairs(command, "--bind") == [[str(tmp_path), "/home/agent"]]
    assert [str(tmp_path), "/run/lab"] in pairs(command, "--ro-bind")
    assert command.index("/run/lab") < len(command) - 1 - command[::-1].index("--remount-ro")


def test_missing_targets_appear_in_empty_directories_only(root: Path) -> None:
    assert mount_parents(root, ["/run/a", "/run/b/c", "/mnt/d", "/home/agent", "/tmp/e"]) == ("/run", "/mnt")
    for target in ("/etc/new", "/new"):
        with pytest.raises(SandboxStartFailed, match=target):
            mount_parents(root, [target])


def test_missing_program(root: Path) -> None:
    environment = PreparedEnvironment("bwrap", str(root), "digest")
    assert not missing_program(SandboxSpec(environment, ("/usr/bin/true",)))
    assert missing_program(SandboxSpec(environment, ("/usr/bin/false",)))
    shown = SandboxSpec(environment, ("/mnt/x/run",), mounts=(Mount(root, "/mnt/x"),))
    assert not missing_program(shown)


def test_launch_enters_groups_first(tmp_path: Path) -> None:
    entry = tmp_path / "cgroup.procs"
    command = launch_command(Limits(file_bytes=5), [entry], ["program"], as_root=True, group_less=False)
    assert command.index(str(entry)) < command.index("prlimit") < command.index("unshare") < command.index("program")
    assert "--fsize=5:5" in command
    assert not any(word.startswith("--as") for word in command)


def test_launch_without_groups_uses_resource_limits() -> None:
    limits = Limits(memory_bytes=1000, processes=7)
    command = launch_command(limits, [], ["program"], as_root=False, group_less=True)
    assert {"--as=1000", "--nproc=7"} <= set(command)
    assert "unshare" not in command
