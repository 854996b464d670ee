"""Frozen databases of a test set's stores: made once, named after what is in them, and opened again afterwards."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

from lab.errors import InputError
from lab.records import digest
from lab.retrieval.build_database import LAYOUT, build_database
from lab.retrieval.testset import MAIN_STORE, TestSet
from lab.snapshots.freeze import freeze
from lab.snapshots.store import Snapshot, open_snapshot

_DIGITS, _LONGEST = 12, 64
"""Digits of the digest in a snapshot's name, and its longest form; the digest tells long ones apart."""


def snapshot_name(testset: TestSet, store: str) -> str:
    """Name of a store's snapshot: equal facts, written by the same rule, have the same name.

    Args:
        testset: The set.
        store: One of its stores.
    """
    facts = [fact.model_dump(mode="json") for fact in testset.stores[store]]
    place = testset.name if store == MAIN_STORE else f"{testset.name}.{store}"
    return f"{place[: _LONGEST - _DIGITS - 1]}-{digest({'layout': LAYOUT, 'facts': facts})[:_DIGITS]}"


def frozen_store(testset: TestSet, store: str, folder: Path, tell: Callable[[str], None]) -> Snapshot:
    """The snapshot of a store; it is made where there is none yet.

    Args:
        testset: The set.
        store: One of its stores.
        folder: Where snapshots lie.
        tell: Is told, in one line, of a snapshot that is made.

    Raises:
        InputError: A snapshot of that name is there and is not what its manifest says.
        EnvironmentUnusable: There is no room for it.
    """
    name = snapshot_name(testset, store)
    if not (folder / name).is_dir():
        tell(f"freezing {name}: {len(testset.stores[store])} facts")
        with tempfile.TemporaryDirectory(prefix="lab-bench-") as scratch:
            database = Path(scratch) / "memory_store.db"
            build_database(testset.stores[store], database)
            try:
                freeze(database, folder, name=name, licence=testset.licence or "not stated")
            except InputError:
                if not (folder / name).is_dir():
                    raise
                # Another lab was quicker: of that name it has the same facts, and is proved sound below.
    return open_snapshot(folder / name)
