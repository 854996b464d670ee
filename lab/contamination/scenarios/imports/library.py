"""Imports payload files into a scenario library: all of a file's scenarios, or none."""

from __future__ import annotations

import contextlib
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from lab.contamination.scenarios.imports.compose import Data, compose
from lab.contamination.scenarios.imports.deal import deal
from lab.contamination.scenarios.imports.hosts import load_hosts
from lab.contamination.scenarios.imports.payloads import Batch, read_payloads, refused
from lab.contamination.scenarios.library import lint, load_scenario, scenario_files
from lab.contamination.scenarios.schema import SCHEMA_FILE
from lab.contamination.scenarios.source import Problem
from lab.errors import InputError
from lab.records import Record
from lab.text import printable

LAST = 999
"""Highest number of a scenario in its family."""

WIDTH = 120


class Imported(Record):
    """What an import has made.

    Attributes:
        scenarios: For each scenario its id and the id of its payload, in the order of the payloads.
        families: Number of scenarios in each family.
        left_out: Number of items of each other kind.
    """

    scenarios: dict[str, str]
    families: dict[str, int]
    left_out: dict[str, int]


def import_payloads(paths: Sequence[Path], root: Path, first: int = 101, *, force: bool = False) -> Imported:
    """Writes one scenario file for each payload, as ``ROOT/F1/F1-101.yaml`` and so on.

    The files are made and checked beside the library, together with what it holds already, and moved into it at the
    end; where a move fails, those before it are taken back.

    Args:
        paths: Payload files; pairs may stand in different ones.
        root: Folder of the library; made where it is not there.
        first: Number of the first scenario of each family.
        force: Whether scenarios of the same ids may be overwritten.

    Raises:
        InputError: A payload file is broken, or its scenarios do not fit the library; then nothing has been written.
        OSError: The library cannot be written.
    """
    batch = read_payloads(paths)
    ids = _number(batch, first)
    hosts = load_hosts()
    shares = deal(batch.payloads, hosts)
    twins = _twins(batch)
    texts: dict[str, str] = {}
    for payload in batch.payloads:
        pair = ids.get(twins.get(payload.id, ""), "")
        texts[ids[payload.id]] = _text(compose(payload, shares[payload.id], hosts, ids[payload.id], pair), payload.id)
    made = {name: payload for payload, name in ids.items()}
    _write(root, texts, made, batch, force=force)
    return Imported(
        scenarios=made,
        families=dict(sorted(Counter(payload.family.value for payload in batch.payloads).items())),
        left_out=dict(sorted(batch.others.items())),
    )


def _number(batch: Batch, first: int) -> dict[str, str]:
    """Ids of the scenarios by those of the payloads."""
    counts: Counter[str] = Counter()
    ids: dict[str, str] = {}
    for payload in batch.payloads:
        ids[payload.id] = f"{payload.family}-{first + counts[payload.family]:03}"
        counts[payload.family] += 1
        if first + counts[payload.family] - 1 > LAST:
            message = f"{payload.family} would need more numbers than {first} to {LAST}"
            raise InputError(message, "give a lower --first, or a folder for each file")
    return ids


def _twins(batch: Batch) -> dict[str, str]:
    """For each payload its twin in the other language, whichever of the two names the other."""
    by_id = {payload.id: payload for payload in batch.payloads}
    found: dict[str, str] = {}
    for payload in batch.payloads:
        pair = by_id.get(payload.pair or "")
        if pair and pair.family is payload.family and pair.language is not payload.language:
            found[payload.id] = pair.id
            found.setdefault(pair.id, payload.id)
    return found


def _write(root: Path, texts: dict[str, str], made: dict[str, str], batch: Batch, *, force: bool) -> None:
    if root.exists() and not root.is_dir():
        raise InputError(f"{printable(str(root))} is not a folder", "name a folder for the scenarios")
    targets = {name: root / name.partition("-")[0] / f"{name}.yaml" for name in texts}
    there = [path for path in targets.values() if path.exists()]
    if there and not force:
        told = f" and {len(there) - 1} more are there" if len(there) > 1 else " is there"
        raise InputError(f"{printable(str(there[0]))}{told} already", "another --first, or --force to overwrite")
    fresh = not root.exists()
    root.mkdir(parents=True, exist_ok=True)
    # Hidden, so that a check of the library does not see it; inside, so that a move is a mere renaming.
    staging = Path(tempfile.mkdtemp(prefix=".import-", dir=root))
    try:
        for name, target in targets.items():
            staged = staging / target.relative_to(root)
            staged.parent.mkdir(exist_ok=True)
            staged.write_text(texts[name], encoding="utf-8")
        replaced = set(targets.values())
        _check(staging, [path for path in scenario_files(root) if path not in replaced], made, batch)
        _move(staging, root, list(targets.values()))
    finally:
        shutil.rmtree(staging, ignore_errors=True)
        if fresh:
            with contextlib.suppress(OSError):  # only where nothing has come into it
                root.rmdir()


def _check(staging: Path, beside: Sequence[Path], made: dict[str, str], batch: Batch) -> None:
    """Asks the library's own rules; what is wrong is told of the payload it comes from."""
    told = _clashes(beside, batch)
    for problem in lint([staging, *beside]) if not told else ():
        name = made.get(Path(problem.file).stem, "")
        if problem.blocking and name and Path(problem.file).is_relative_to(staging):
            file, line = batch.origins[name]
            mend = problem.mend or "mend the item"
            told.append(Problem(file=file, line=line, message=f"item {name}: {problem.message}", mend=mend))
        elif problem.blocking:
            told.append(problem)
    if told:
        raise refused(told)


def _clashes(beside: Sequence[Path], batch: Batch) -> list[Problem]:
    """Payloads whose canary stands for another scenario already; the library's own rule would accuse either."""
    taken: dict[str, Path] = {}
    for path in beside:
        # A broken file beside is no fault of the payloads, and is told by the library's rules.
        with contextlib.suppress(InputError):
            taken[load_scenario(path).canary] = path
    told: list[Problem] = []
    for payload in batch.payloads:
        if payload.canary in taken:
            file, line = batch.origins[payload.id]
            message = f"item {payload.id}: canary {payload.canary} is taken by {taken[payload.canary].stem}"
            mend = "give the item another canary, or import into a folder of its own"
            told.append(Problem(file=file, line=line, message=printable(message), mend=mend))
    return told


def _move(staging: Path, root: Path, targets: Sequence[Path]) -> None:
    """Moves all files to their places, or none."""
    kept = staging / "kept"
    done: list[Path] = []
    made: list[Path] = []
    try:
        for target in targets:
            inner = target.relative_to(root)
            if not target.parent.exists():
                target.parent.mkdir()
                made.append(target.parent)
            if target.exists():
                (kept / inner).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(target, kept / inner)
            (staging / inner).replace(target)
            done.append(target)
    except BaseException:
        for target in done:
            before = kept / target.relative_to(root)
            before.replace(target) if before.exists() else target.unlink()
        for folder in made:
            folder.rmdir()
        raise


class _Dumper(yaml.SafeDumper):
    """Texts of several lines as blocks, where YAML can write them so."""


def _string(dumper: _Dumper, text: str) -> yaml.Node:
    # A line that ends in a space, or an unseen character, would be lost or unseen in a block.
    block = "\n" in text and not re.search(r"[ \t]\n|[^\S \n]", text) and text.replace("\n", "").isprintable()
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if block else None)


_Dumper.add_representer(str, _string)


def _text(data: Data, payload: str) -> str:
    """A scenario file."""
    head = f"# yaml-language-server: $schema=../{SCHEMA_FILE.as_posix()}\n"
    origin = f"# Made by lab import from the payload {printable(payload)}\n"
    body: Any = yaml.dump(data, Dumper=_Dumper, allow_unicode=True, sort_keys=False, width=WIDTH)
    return f"{head}{origin}{body}"
