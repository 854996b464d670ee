"""The cache of prepared environments: directories that appear whole or not at all, whoever builds."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from lab.errors import EnvironmentUnusable
from lab.isolation.cache import cache_root, remove_tree

_KINDS = ("base", "wheels", "built", "resolved", "rootfs", "driver", "manifests", "partial", "locks")
_FULL = (errno.ENOSPC, errno.EDQUOT)


class Store:
    """One cache folder.

    Args:
        root: Its path; None for the usual place of this user.
    """

    def __init__(self, root: Path | None = None) -> None:
        self.root = (root or cache_root()).absolute()

    def path(self, kind: str, key: str) -> Path:
        """Where an entry lies or would lie."""
        return self.root / kind / key

    @contextlib.contextmanager
    def making(self, kind: str, key: str) -> Iterator[Path]:
        """A private directory that becomes the entry when the block ends well, and vanishes when it does not.

        A kill in the middle leaves only a directory under ``partial``, which the next builder of the same entry
        sweeps away.

        Raises:
            EnvironmentUnusable: The disk is full or the cache not writable.
        """
        partial = self.root / "partial"
        try:
            partial.mkdir(parents=True, exist_ok=True)
            for stale in partial.glob(f"{kind}-{key}-*"):
                remove_tree(stale)
            directory = Path(tempfile.mkdtemp(prefix=f"{kind}-{key}-", dir=partial))
            directory.chmod(0o755)  # it may become a root directory that another user walks through
            try:
                yield directory
                target = self.path(kind, key)
                target.parent.mkdir(parents=True, exist_ok=True)
                if target.exists():
                    remove_tree(target)
                directory.rename(target)
            finally:
                remove_tree(directory)
        except OSError as error:
            mend = f"free space under {self.root}, or set LAB_CACHE" if error.errno in _FULL else ""
            raise EnvironmentUnusable(f"the cache {self.root} cannot be written: {error}", mend) from error

    @contextlib.contextmanager
    def scratch(self, name: str) -> Iterator[Path]:
        """A directory that lives for one block; on the same file system as the entries, so that links to them work."""
        partial = self.root / "partial"
        partial.mkdir(parents=True, exist_ok=True)
        directory = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=partial))
        try:
            yield directory
        finally:
            remove_tree(directory)

    @contextlib.contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """Keeps other processes from the same piece of work; released by the kernel when the holder dies."""
        try:
            directory = self.root / "locks"
            directory.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(directory / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise EnvironmentUnusable(
                f"the cache {self.root} cannot be written: {error}", "set LAB_CACHE to a writable folder"
            ) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def remove_all(self) -> tuple[str, ...]:
        """Removes every entry.

        Returns:
            Paths, relative to the cache, that could not be removed; empty proves the removal.
        """
        for kind in _KINDS:
            remove_tree(self.root / kind)
        with contextlib.suppress(OSError):
            self.root.rmdir()
        return tuple(kind for kind in _KINDS if (self.root / kind).exists())
