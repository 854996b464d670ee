"""Systems that a user brings in a Python file of their own: loaded by path, their faults told in one line."""

from __future__ import annotations

import importlib.util
import re
import sys
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from lab.errors import InputError, LabError, SystemFailed
from lab.records import canonical_json, file_digest
from lab.retrieval.arms import ArmKind, Tools
from lab.retrieval.systems.base import Ranking, System
from lab.text import printable

TABLE = "KINDS"
"""Name in the file of the arms that it brings."""

_ARM = re.compile(r"[a-z0-9][a-z0-9+._-]{0,63}")
_METHODS = ("settings", "open", "search", "close")
_MEND = "docs/systems.md shows a whole file"


def load_system_files(paths: Sequence[Path], known: Collection[str]) -> dict[str, ArmKind]:
    """The arms of files that define ``KINDS: dict[str, ArmKind]``; their code is run.

    A system's settings get the name and the digest of its file beside its own. What the file imports from elsewhere
    is in no digest.

    Args:
        paths: The files.
        known: Names that are taken.

    Raises:
        InputError: A file is not there, does not run, or brings no arms, or a name is taken or fit for no file.
    """
    found: dict[str, ArmKind] = {}
    for path in paths:
        if not path.is_file():
            raise InputError(f"there is no file {path}", "name a Python file: --system my_system.py")
        origin = {"file": path.name, "file_sha256": file_digest(path)}
        for name, kind in _table(path, origin["file_sha256"]).items():
            if not isinstance(name, str) or not _ARM.fullmatch(name):
                raise InputError(f"{path}: no arm can be called {printable(str(name), 80)!r}", "take a-z, 0-9, +._-")
            if name in known or name in found:
                raise InputError(f"{path}: there is an arm {name} already", "give yours another name")
            if not isinstance(kind, ArmKind):
                raise InputError(f"{path}: {TABLE}[{name!r}] is no ArmKind but of type {type(kind).__name__}", _MEND)
            found[name] = ArmKind(kind.label, partial(_guarded, path, origin, kind.make))
    return found


def _table(path: Path, digest: str) -> Mapping[Any, Any]:
    name = f"lab_system_{digest[:16]}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InputError(f"{path} is no Python file", "give it a name that ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    with _faults(path, InputError):
        spec.loader.exec_module(module)
    table = getattr(module, TABLE, None)
    if not isinstance(table, Mapping) or not table:
        raise InputError(f"{path} defines no arms in {TABLE}", _MEND)
    return table


def _guarded(path: Path, origin: Mapping[str, str], make: Callable[[Tools], System], tools: Tools) -> System:
    with _faults(path, InputError):
        system = make(tools)
    lacking = [name for name in _METHODS if not callable(getattr(system, name, None))]
    if lacking or not isinstance(getattr(system, "name", None), str):
        raise InputError(f"{path}: {type(system).__name__} has no {', '.join(lacking) or 'name'}", _MEND)
    return _Guarded(path, origin, system)


class _Guarded:
    """A system of a file: whatever it raises becomes one line that names the file and the line in it."""

    def __init__(self, path: Path, origin: Mapping[str, str], system: System) -> None:
        self.name = system.name
        self._path, self._origin, self._system = path, origin, system

    def settings(self) -> Mapping[str, Any]:
        with _faults(self._path, InputError):
            told = {**self._system.settings(), **self._origin}
            canonical_json(told)
        return told

    def open(self, database: Path) -> None:
        with _faults(self._path, InputError):
            self._system.open(database)

    def search(self, query: str, k: int) -> Ranking:
        with _faults(self._path, SystemFailed):
            found = self._system.search(query, k)
        if not isinstance(found, Ranking):
            raise InputError(f"{self._path}: search returned a {type(found).__name__}, no Ranking", _MEND)
        return found

    def close(self) -> None:
        with _faults(self._path, InputError):
            self._system.close()


@contextmanager
def _faults(path: Path, kind: type[LabError]) -> Iterator[None]:
    try:
        yield
    except LabError:
        raise
    except (Exception, SystemExit) as error:
        frames = [one.lineno for one in traceback.extract_tb(error.__traceback__) if one.filename == str(path)]
        line = error.lineno if isinstance(error, SyntaxError) else frames[-1] if frames else None
        where = f"{path}, line {line}" if line else str(path)
        raise kind(f"{where}: {type(error).__name__}: {printable(str(error), 200)}", "mend the file") from error
