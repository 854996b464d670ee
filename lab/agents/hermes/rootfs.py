"""Prepares bubblewrap's root file system: the Debian base, with the agent installed in it without network."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from lab.agents.hermes.base_system import ensure_debian_base, find_debian_base
from lab.agents.hermes.recipe import Recipe, ensure_driver
from lab.agents.hermes.store import Store
from lab.agents.hermes.wheelhouse import ensure_wheelhouse
from lab.errors import EnvironmentUnusable
from lab.isolation.base import PreparedEnvironment, sandbox_ids
from lab.isolation.bwrap import BWRAP_MEND
from lab.isolation.bwrap_command import NAMESPACES

_INSTALL_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def ensure_root_file_system(store: Store, recipe: Recipe, progress: Callable[[str], None]) -> PreparedEnvironment:
    """The root file system of this recipe over the Debian base, prepared when missing.

    Raises:
        EnvironmentUnusable: A tool, the archive, the package index or space is missing.
    """
    uid = sandbox_ids()[0]
    base = find_debian_base(store)
    if base is None or not store.path("rootfs", _key(recipe, base.sha256, uid)).is_dir():
        base = ensure_debian_base(store, progress)
        _prepare(store, recipe, base.tar, _key(recipe, base.sha256, uid), uid, progress)
    return PreparedEnvironment(
        backend="bwrap",
        reference=str(store.path("rootfs", _key(recipe, base.sha256, uid))),
        digest=recipe.digest(base.sha256, uid),
        driver=ensure_driver(store, recipe),
    )


def _key(recipe: Recipe, base: str, uid: int) -> str:
    return recipe.system_digest(base, uid)[:32]


def _prepare(store: Store, recipe: Recipe, tar: Path, key: str, uid: int, progress: Callable[[str], None]) -> None:
    bwrap = shutil.which("bwrap")
    if bwrap is None:
        raise EnvironmentUnusable("bubblewrap is not installed", BWRAP_MEND)
    wheels = ensure_wheelhouse(store, recipe.lock, progress, recipe.wheel)
    with store.lock("rootfs"):
        if store.path("rootfs", key).is_dir():
            return
        progress("installing the agent into a root file system (about half a minute)")
        with store.making("rootfs", key) as root:
            # Device nodes need rights that an unprivileged lab lacks, and bubblewrap brings its own.
            _call(["tar", "-x", "-f", str(tar), "-C", str(root), "--exclude=./dev/*", "--numeric-owner"])
            root.chmod(0o755)
            _call(_install_command(bwrap, root, wheels, recipe, uid))


def _install_command(bwrap: str, root: Path, wheels: Path, recipe: Recipe, uid: int) -> list[str]:
    as_root = os.geteuid() == 0
    line = [bwrap, *NAMESPACES, "--die-with-parent"]
    line += [] if as_root else ["--unshare-user", "--uid", "0", "--gid", "0"]
    line += ["--bind", str(root), "/", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]  # noqa: S108
    line += ["--ro-bind", str(wheels), "/tmp/wheels"]  # noqa: S108
    line += ["--ro-bind", str(recipe.lock), "/tmp/requirements.lock"]  # noqa: S108
    line += ["--ro-bind", str(recipe.install), "/tmp/install.sh"]  # noqa: S108
    line += ["--clearenv", "--setenv", "PATH", _INSTALL_PATH, "--setenv", "HOME", "/tmp"]  # noqa: S108
    script = ["/bin/sh", "/tmp/install.sh", "/tmp/wheels", "/tmp/requirements.lock", str(uid)]  # noqa: S108
    return [*line, "--chdir", "/", "--", *script]


def _call(command: list[str]) -> None:
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", umask=0o022, check=False
    )
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["no reason given"]
        raise EnvironmentUnusable(
            f"the root file system could not be prepared ({Path(command[0]).name}): {lines[-1][:300]}",
            "lab clean --all, then: lab build",
        )
