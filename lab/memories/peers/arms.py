"""The arms of the peers."""

from __future__ import annotations

from collections.abc import Mapping

from lab.memories.peers.system import Peer
from lab.retrieval.arms import ArmKind

KINDS: Mapping[str, ArmKind] = {
    "mem0": ArmKind(
        "peer: mem0ai without a language model, facts stored as they are, vectors of the lab's embedder",
        lambda tools: Peer("mem0", tools.indexes, tools.backend),
    ),
    "memorine": ArmKind(
        "peer: memorine, words and weights; a recall changes what it finds next",
        lambda tools: Peer("memorine", None, tools.backend),
    ),
    "mempalace": ArmKind(
        "peer: mempalace on its own exact store, vectors of the lab's embedder, words in its re-ranking",
        lambda tools: Peer("mempalace", tools.indexes, tools.backend),
    ),
}
"""The arms by name, which is that of the peer's lock file."""
