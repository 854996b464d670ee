"""The arms of the universal layer."""

from __future__ import annotations

from collections.abc import Mapping

from lab.memories.universal.fusion import Fusion
from lab.memories.universal.system import UniversalSystem
from lab.retrieval.arms import ArmKind

KINDS: Mapping[str, ArmKind] = {
    "universal": ArmKind(
        "universal layer: vectors, words and graph, fused by the published formula",
        lambda tools: UniversalSystem(Fusion.PUBLISHED, tools.indexes),
    ),
    "universal-rrf": ArmKind(
        "universal layer: vectors, words and graph, fused by RRF with k = 60",
        lambda tools: UniversalSystem(Fusion.RRF, tools.indexes),
    ),
    "universal-words": ArmKind(
        "universal layer: words and graph alone, published formula",
        lambda _: UniversalSystem(Fusion.PUBLISHED, None),
    ),
}
"""The arms by name."""
