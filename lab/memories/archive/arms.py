"""The archive's arms: words and vectors together, and each alone."""

from __future__ import annotations

from collections.abc import Mapping

from lab.memories.archive.system import Archive
from lab.retrieval.arms import ArmKind

KINDS: Mapping[str, ArmKind] = {
    "archive": ArmKind(
        "archive: full-text search over session logs and vectors in LanceDB, fused by RRF",
        lambda tools: Archive(lexical=True, indexes=tools.indexes),
    ),
    "archive-words": ArmKind(
        "archive: full-text search over session logs alone",
        lambda _: Archive(lexical=True, indexes=None),
    ),
    "archive-vectors": ArmKind(
        "archive: vectors in LanceDB alone",
        lambda tools: Archive(lexical=False, indexes=tools.indexes),
    ),
}
"""The arms of the archive by name."""
