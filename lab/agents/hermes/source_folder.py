"""A user's source folder: which of its files make the build, their digest, and a private copy to build from."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path

from lab.errors import InputError
from lab.records import digest, file_digest
from lab.text import printable

_NEVER = frozenset(
    {
        *(".git", ".hg", ".svn", ".venv", "venv", "node_modules", "__pycache__"),
        *(".mypy_cache", ".pytest_cache", ".ruff_cache", ".hypothesis", ".tox", ".nox", ".idea", ".vscode"),
    }
)
# What an earlier build left behind: setuptools would pack the stale copies under build/lib again.
_NOT_AT_TOP = frozenset({"build", "dist"})


def folder_digest(folder: Path) -> str:
    """Identity of what is built: names, contents and execute bits of the files, and nothing else.

    Raises:
        InputError: A file cannot be read, or a link leads out of the folder.
    """
    try:
        return digest([_entry(folder, name) for name in source_files(folder)])
    except OSError as error:
        raise InputError(f"{printable(str(folder))} cannot be read: {error}", "mend its permissions") from error


def copy_folder(folder: Path, target: Path) -> None:
    """Copies what is built into an empty directory; the user's folder is only read.

    Raises:
        InputError: A file cannot be read, or a link leads out of the folder.
        OSError: The copy cannot be written.
    """
    for name in source_files(folder):
        copy = target / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        try:
            shutil.copy(folder / name, copy, follow_symlinks=False)
        except PermissionError as error:
            raise InputError(f"{printable(str(folder / name))} cannot be read", "mend its permissions") from error
        if not copy.is_symlink():
            copy.chmod(0o755 if copy.stat().st_mode & stat.S_IXUSR else 0o644)


def source_files(folder: Path) -> tuple[str, ...]:
    """Relative paths of the files and links that make the build, sorted.

    Left out are version control, virtual environments, caches, compiled files, top-level ``build`` and ``dist``
    folders that are no packages, ``*.egg-info``, and what is neither file nor link.

    Raises:
        InputError: A link leads out of the folder: the build would depend on what its identity does not cover.
    """
    root = folder.resolve()
    return tuple(sorted(_walk(folder, root)))


def _walk(folder: Path, root: Path) -> Iterator[str]:
    for place, directories, files in os.walk(folder, onerror=_raise):
        here = Path(place)
        linked = [d for d in directories if (here / d).is_symlink() and not _left_out(here / d, folder)]
        directories[:] = sorted(d for d in directories if d not in linked and not _left_out(here / d, folder))
        for name in (*files, *linked):
            path = here / name
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode) and (path.readlink().is_absolute() or not path.resolve().is_relative_to(root)):
                raise InputError(
                    f"{printable(str(path))} is a link that leads out of the source folder",
                    "put a copy or a relative link in its place, or build a wheel and name that",
                )
            if (stat.S_ISREG(mode) or stat.S_ISLNK(mode)) and not name.endswith((".pyc", ".pyo")):
                yield str(path.relative_to(folder))


def _left_out(directory: Path, folder: Path) -> bool:
    if directory.name in _NEVER or directory.name.endswith(".egg-info"):
        return True
    stale = directory.parent == folder and directory.name in _NOT_AT_TOP
    return stale and not (directory / "__init__.py").exists()


def _entry(folder: Path, name: str) -> tuple[str, str, str]:
    path = folder / name
    if path.is_symlink():
        return name, "link", str(path.readlink())
    return name, "program" if path.stat().st_mode & stat.S_IXUSR else "file", file_digest(path)


def _raise(error: OSError) -> None:
    raise error
