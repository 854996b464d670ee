"""The command line that makes bubblewrap a cage, from limits and mounts; nothing here starts a process."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath

from lab.errors import SandboxStartFailed
from lab.isolation.base import SANDBOX_HOME, SANDBOX_UID, Limits, Mount, SandboxSpec

DRIVER_TARGET = "/opt/lab"
"""Where the driver directory is shown inside."""

_SHM_BYTES = 64 << 20
_MOUNT_PARENT_BYTES = 64 << 10

# Enters the groups, then becomes the rest of the line. A child made in Python between fork and exec would not be safe
# in a lab that runs several threads.
_ENTER_GROUPS = 'while [ "$1" != -- ]; do echo $$ >"$1" || exit 125; shift; done; shift; exec "$@"'

# As root, bubblewrap drops all capabilities and the program gets another user id: bubblewrap's death can then no longer
# kill the program, for want of permission. So both live in a process namespace whose first process is bubblewrap: when
# it ends, in whatever way, the kernel itself ends everything in there. The lab's death reaches it through the two
# parent-death signals.
_WARDEN = ("setpriv", "--pdeathsig", "KILL", "--", "unshare", "--pid", "--fork", "--kill-child=SIGKILL", "--")

NAMESPACES = ("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup")
"""Every namespace that needs no user namespace beside it."""


def namespace_options(as_root: bool) -> list[str]:
    """Namespaces to unshare: root needs no user namespace, and without one the ids inside are those of the kernel."""
    return [*NAMESPACES] if as_root else ["--unshare-user", *NAMESPACES, "--disable-userns"]


def filter_options(filter_fd: int | None) -> list[str]:
    """Bubblewrap sets the filter as its very last act, so that only the program and its chain are bound by it."""
    return [] if filter_fd is None else ["--seccomp", str(filter_fd)]


def launch_command(
    limits: Limits, entry_files: Iterable[Path], program: Sequence[str], *, as_root: bool, group_less: bool
) -> list[str]:
    """Wraps ``program`` so that it starts in its control groups, under its resource limits, and dies with the lab.

    Args:
        limits: Bounds of the sandbox.
        entry_files: ``cgroup.procs`` files of the groups.
        program: The bubblewrap command line.
        as_root: Whether the lab runs as root.
        group_less: True where no group is writable: address space and process count are then bounded per process and
        per user.
    """
    bounds = ["--core=0:0", f"--fsize={limits.file_bytes}:{limits.file_bytes}"]
    if group_less:
        bounds += [f"--as={limits.memory_bytes}", f"--nproc={limits.processes}"]
    enter = ["/bin/sh", "-c", _ENTER_GROUPS, "lab", *map(str, entry_files), "--"]
    return [*enter, "prlimit", *bounds, "--", *(_WARDEN if as_root else ()), *program]


def bwrap_command(
    bwrap: str, spec: SandboxSpec, *, as_root: bool, status_fd: int, filter_fd: int | None = None
) -> list[str]:
    """The bubblewrap command line for ``spec``.

    Args:
        bwrap: Path of the bubblewrap program.
        spec: What to run.
        as_root: Whether the lab runs as root; the program then is given ``SANDBOX_UID`` by the kernel itself.
        status_fd: Inherited descriptor for bubblewrap's own status lines.
        filter_fd: Inherited descriptor of the system-call filter; None where there is none for this machine.

    Raises:
        SandboxStartFailed: A mount target has no place in the root file system.
    """
    root = Path(spec.environment.reference)
    mounts = list(spec.mounts)
    if spec.environment.driver is not None:
        mounts.insert(0, Mount(spec.environment.driver, DRIVER_TARGET))
    parents = mount_parents(root, (mount.target for mount in mounts))
    line = [bwrap, *namespace_options(as_root)]
    line += ["--die-with-parent", "--new-session", "--as-pid-1", "--json-status-fd", str(status_fd)]
    line += filter_options(filter_fd)
    line += ["--hostname", "lab", "--ro-bind", str(root), "/", "--proc", "/proc", "--dev", "/dev"]
    line += _tmpfs("/dev/shm", min(_SHM_BYTES, spec.limits.tmp_bytes), "1777")  # noqa: S108
    line += ["--remount-ro", "/dev"]
    line += _tmpfs("/tmp", spec.limits.tmp_bytes, "1777")  # noqa: S108
    for parent in parents:
        line += _tmpfs(parent, _MOUNT_PARENT_BYTES, "0755")
    for mount in mounts:
        line += ["--bind" if mount.writable else "--ro-bind", str(mount.source.resolve()), mount.target]
    for parent in parents:
        line += ["--remount-ro", parent]
    line += ["--clearenv"]
    for key, value in {"HOME": SANDBOX_HOME, **spec.env}.items():
        line += ["--setenv", key, value]
    return [*line, "--chdir", spec.workdir, "--", *_become(as_root), *_drop_pwd(spec), *spec.command]


def mount_parents(root: Path, targets: Iterable[str]) -> tuple[str, ...]:
    """Directories to cover with a small memory file system, so that missing mount targets can be made in them.

    The root file system is read-only, so a target that is not there can only appear on something mounted over an
    empty directory.

    Args:
        root: The root file system.
        targets: Absolute mount targets.

    Raises:
        SandboxStartFailed: The nearest existing directory holds something that would be hidden.
    """
    parents: dict[str, None] = {}
    for target in targets:
        pure = PurePosixPath(target)
        if _inside(root, pure).exists() or pure.parts[1] in ("tmp", "dev"):
            continue
        nearest = next(parent for parent in pure.parents if _inside(root, parent).is_dir())
        if str(nearest) in parents:
            continue
        if str(nearest) == "/" or any(_inside(root, nearest).iterdir()):
            raise SandboxStartFailed(f"the root file system has no place for the mount target {target}")
        parents[str(nearest)] = None
    return tuple(parents)


def missing_program(spec: SandboxSpec) -> bool:
    """True when the program is surely not there: neither in the root file system nor below a mount."""
    program = PurePosixPath(spec.command[0])
    covered = {mount.target: mount.source for mount in spec.mounts}
    if spec.environment.driver is not None:
        covered[DRIVER_TARGET] = spec.environment.driver
    if any(PurePosixPath(target) in program.parents for target in covered):
        return False
    return not os.path.lexists(_inside(Path(spec.environment.reference), program))


def _become(as_root: bool) -> list[str]:
    """Gives up root for good: ids, groups, and all five capability sets."""
    if not as_root:
        return []
    ids = ["--reuid", str(SANDBOX_UID), "--regid", str(SANDBOX_UID), "--clear-groups"]
    capabilities = ["--bounding-set=-all", "--inh-caps=-all", "--ambient-caps=-all", "--no-new-privs"]
    return ["/usr/bin/setpriv", *ids, *capabilities, "--"]


def _drop_pwd(spec: SandboxSpec) -> list[str]:
    """Bubblewrap sets PWD of its own accord; the environment is to be the caller's and nothing else."""
    return ["/usr/bin/env", *([] if "PWD" in spec.env else ["-u", "PWD"]), "--"]


def _tmpfs(target: str, size: int, mode: str) -> list[str]:
    return ["--perms", mode, "--size", str(size), "--tmpfs", target]


def _inside(root: Path, path: PurePosixPath) -> Path:
    return root / str(path).lstrip("/")
