"""The run folder: where everything of a run lies, and how files get into it in one step."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lab.errors import InputError
from lab.records import file_digest

RESULT = "result.json"
EARLIER = "earlier"
CHECKSUMS = "SHA256SUMS"
LOCK_FILE = ".lock"
SAFE_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
"""Form of a trial's id, which is its folder's name."""


def write_atomic(path: Path, data: bytes) -> None:
    """Writes a file so that a reader sees the old content or the new, never a part; survives a kill at any point.

    Raises:
        OSError: It cannot be written; the old content is still there.
    """
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def write_json(path: Path, value: Any) -> None:
    """Writes readable JSON in one step."""
    write_atomic(path, json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True).encode() + b"\n")


class RunFolder:
    """A run's folder ``reports/<run-id>``.

    Args:
        path: The folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def create(cls, root: Path, run_id: str, inner: str = "trials") -> RunFolder:
        """Makes a new run folder.

        Args:
            root: Where run folders lie.
            run_id: The run's id; where there is such a folder, the new one gets a number.
            inner: Folder inside for the evidence.

        Raises:
            OSError: It cannot be made.
        """
        root.mkdir(parents=True, exist_ok=True)
        for suffix in ("", *(f"-{n}" for n in range(2, 100))):
            path = root / f"{run_id}{suffix}"
            try:
                path.mkdir()
            except FileExistsError:  # another run of the same plan began within the same second
                continue
            (path / inner).mkdir()
            return cls(path)
        raise InputError(f"{root / run_id} and 98 like it exist", "wait a second")

    @classmethod
    def open(cls, path: Path, needed: Sequence[str] = ("lock.json", "plan.json")) -> RunFolder:
        """Opens an existing run folder.

        Args:
            path: The folder.
            needed: Files without which it is none.

        Raises:
            InputError: It is none, or its plan or lock cannot be read.
        """
        folder = cls(path)
        for name in needed:
            if not (path / name).is_file():
                raise InputError(f"{path} is not a run folder: {name} is missing", "give a folder under reports/")
        return folder

    @property
    def run_id(self) -> str:
        """The run's id, which is the folder's name."""
        return self.path.name

    def read(self, name: str) -> dict[str, Any]:
        """Reads a JSON file of the run.

        Raises:
            InputError: It is missing or damaged.
        """
        path = self.path / name
        try:
            data = json.loads(path.read_bytes())
        except FileNotFoundError as error:
            raise InputError(f"{path} is missing", "give a folder made by lab run") from error
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path} is damaged: {error}", "start a new run: lab run") from error
        if not isinstance(data, dict):
            raise InputError(f"{path} is damaged: not an object", "start a new run: lab run")
        return data

    def trial(self, trial_id: str) -> Path:
        """The folder of one trial.

        Raises:
            InputError: The id could lead out of the run folder.
        """
        path = self.path / "trials" / trial_id
        if not SAFE_ID.fullmatch(trial_id) or path.is_symlink() or path.parent.is_symlink():
            raise InputError(f"{trial_id!r} names no trial folder of {self.path}", "start a new run: lab run")
        return path

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Keeps every other lab process out of the folder while one writes in it.

        Raises:
            InputError: Another process is at work in it.
        """
        with (self.path / LOCK_FILE).open("wb") as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InputError(f"another lab is at work in {self.path}", "wait until it has ended") from None
            yield

    def is_done(self, trial_id: str) -> bool:
        """Whether a trial's result, its last file, is there."""
        return (self.trial(trial_id) / RESULT).is_file()

    def fresh_trial(self, trial_id: str) -> Path:
        """An empty folder for a trial.

        What an interrupted attempt left is removed. An attempt that has a result (an error that is tried again) is kept
        as ``earlier/<trial>.<number>``.
        """
        path = self.trial(trial_id)
        if self.is_done(trial_id):
            earlier = self.path / EARLIER
            earlier.mkdir(exist_ok=True)
            number = 1
            while (kept := earlier / f"{trial_id}.{number}").exists():
                number += 1
            path.rename(kept)
        elif path.exists():
            shutil.rmtree(path)
        path.mkdir(parents=True)
        return path

    def earlier(self) -> Iterator[tuple[str, Path]]:
        """Attempts that were followed by another: the trial's id and the attempt's folder, in the order of names."""
        for path in sorted((self.path / EARLIER).glob("*")):
            trial_id, _, number = path.name.rpartition(".")
            if number.isdigit() and path.is_dir():
                yield trial_id, path

    def unseal(self) -> None:
        """Takes the seal away before anything is run in the folder."""
        (self.path / CHECKSUMS).unlink(missing_ok=True)

    def check_seal(self, derived: Collection[str]) -> None:
        """Checks the evidence against the seal, where there is one.

        Args:
            derived: Names of files that are written again and need not match: reports, or every ``result.json``; a
                name that ends in a slash stands for a folder of the run with all that is in it.

        Raises:
            InputError: A sealed file is missing or was changed.
        """
        for name, wanted in self.sealed().items():
            path = self.path / name
            if name in derived or path.name in derived or f"{name.partition('/')[0]}/" in derived:
                continue
            if not path.is_file() or file_digest(path) != wanted:
                mend = f"lab rescore {self.path}" if path.name == RESULT else "start a new run: lab run"
                raise InputError(f"{path} is missing or was changed after the run was sealed", mend)

    def sealed(self) -> dict[str, str]:
        """Digests by name as they were sealed; empty where there is no seal."""
        seal = self.path / CHECKSUMS
        if not seal.is_file():
            return {}
        lines = seal.read_text(encoding="utf-8", errors="replace").splitlines()
        return {name: wanted for wanted, _, name in (line.partition("  ") for line in lines)}

    def seal(self) -> None:
        """Writes ``SHA256SUMS`` over every file."""
        write_atomic(self.path / CHECKSUMS, self.checksums())

    def checksums(self) -> bytes:
        """Digests of every file, in the form that ``sha256sum -c`` reads in the folder."""
        lines = [f"{file_digest(path)}  {path.relative_to(self.path)}\n" for path in self._files()]
        return "".join(lines).encode()

    def _files(self) -> Iterator[Path]:
        for path in sorted(self.path.rglob("*")):
            if path.is_file() and path.name != CHECKSUMS and not path.name.startswith("."):
                yield path
