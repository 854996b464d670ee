"""All arms that a benchmark can ask: those of the fact store and yardsticks, and one for each memory architecture."""

from __future__ import annotations

from collections.abc import Mapping

from lab.memories.archive.arms import KINDS as ARCHIVE
from lab.memories.peers.arms import KINDS as PEERS
from lab.memories.universal.arms import KINDS as UNIVERSAL
from lab.retrieval.arms import KINDS, ArmKind

MEMORY_KINDS: Mapping[str, ArmKind] = {**UNIVERSAL, **ARCHIVE, **PEERS}
"""The arms of the memory architectures by name."""

ALL_KINDS: Mapping[str, ArmKind] = {**KINDS, **MEMORY_KINDS}
"""Every arm that comes with the lab."""
