"""Vectors of a benchmark's facts: computed and checked before the first query, so that no arm pays for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace

from lab.errors import InputError
from lab.records import Record
from lab.retrieval.database import read_facts
from lab.retrieval.embedders.index import DenseIndexes
from lab.retrieval.embedders.integrity import PROBE, check
from lab.retrieval.embedders.sidecar import Progress
from lab.snapshots.store import Snapshot


class CheckedVectors(Record):
    """Vectors of one snapshot after their check.

    Attributes:
        snapshot: Name of the snapshot.
        rows: Vectors.
        distinct: Distinct ones among them.
        recomputed: Vectors that were computed again and were the same.
        doubts: What the model's answers to the probe questions say against it, one line each. It is no reason to
            refuse a run: an English model misses Portuguese probes by nature.
    """

    snapshot: str
    rows: int
    distinct: int
    recomputed: int
    doubts: tuple[str, ...] = ()


def prepare_vectors(
    snapshots: Sequence[Snapshot], indexes: DenseIndexes, progress: Mapping[str, Progress]
) -> tuple[CheckedVectors, ...]:
    """Fills the sidecar for every snapshot and checks what is in it.

    Args:
        snapshots: Frozen databases.
        indexes: Model and sidecar.
        progress: By name of the snapshot, told of the texts that are embedded.

    Raises:
        InputError: Vectors are not those of their facts, or the model is asked with a wrong prefix.
        EmbeddingFailed: The model cannot be asked.
    """
    found = []
    for shot in snapshots:
        with closing(shot.connect()) as connection:
            rows = [(fact.fact_id, fact.content) for fact in read_facts(connection)]
        index = replace(indexes, progress=progress[shot.manifest.name])(rows)
        integrity = check(index, rows)
        faults = [finding for finding in integrity.findings if finding.check != PROBE]
        if faults:
            first, more = faults[0], len(faults) - 1
            told = f" (and {more} more)" if more else ""
            raise InputError(
                f"the vectors of {shot.manifest.name} cannot be trusted: {first.check}: {first.text}{told}",
                f"remove {indexes.sidecar} so that they are computed again; if it says the same then, it is the model",
            )
        found.append(
            CheckedVectors(
                snapshot=shot.manifest.name,
                rows=integrity.rows,
                distinct=integrity.distinct,
                recomputed=integrity.recomputed,
                doubts=tuple(finding.text for finding in integrity.findings if finding.check == PROBE),
            )
        )
    return tuple(found)
