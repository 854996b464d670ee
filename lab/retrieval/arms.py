"""The arms of a benchmark run: configured systems under the names by which they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from lab.errors import EnvironmentUnusable, InputError
from lab.retrieval.embedders.index import DenseIndexes
from lab.retrieval.factstore.settings import FactstoreSettings
from lab.retrieval.systems.base import System
from lab.retrieval.systems.bm25 import Bm25, Match, Tokenizer
from lab.retrieval.systems.dense import Dense
from lab.retrieval.systems.factstore import FactstoreSystem
from lab.retrieval.systems.holographic import PREFETCH_DEPTH, HolographicPlugin, Mode, plugin_program
from lab.retrieval.systems.sandboxed import WorkerProgram

FOUR_ARMS = ("plain", "keywords", "embeddings", "embeddings+keywords")
"""The four arms: embeddings × keywords."""


@dataclass(frozen=True)
class Arm:
    """One configuration of a system under test.

    Attributes:
        name: Name by which it is asked for; also that of its files.
        label: One line for reports.
        system: Name of the system.
        settings: All that decides its results beside the database.
        make: Makes the system.
        depth: Most hits that it returns; None where k decides.
    """

    name: str
    label: str
    system: str
    settings: Mapping[str, Any]
    make: Callable[[], System]
    depth: int | None = None


class Tools:
    """What arms are made of: loaded once, and only where an arm needs it.

    Args:
        indexes: Makes the maker of embedding indexes.
        backend: Isolation of systems that run in a sandbox.
    """

    def __init__(self, indexes: Callable[[], DenseIndexes], backend: str = "auto") -> None:
        self._indexes, self.backend = indexes, backend
        self._plugins: dict[bool, WorkerProgram] = {}

    @cached_property
    def indexes(self) -> DenseIndexes:
        """The maker of embedding indexes."""
        return self._indexes()

    @property
    def embeds(self) -> bool:
        """Whether an arm has asked for it."""
        return "indexes" in vars(self)

    def plugin(self, *, numpy: bool) -> WorkerProgram:
        """The real plugin in its sandbox."""
        if numpy not in self._plugins:
            self._plugins[numpy] = plugin_program(self.backend, numpy=numpy)
        return self._plugins[numpy]


@dataclass(frozen=True)
class ArmKind:
    """What an arm is, before it is made.

    Attributes:
        label: One line for reports and lists.
        make: Makes its system; costly things come from the tools, which make them once.
    """

    label: str
    make: Callable[[Tools], System]


def _factstore(*, embeddings: bool = False, **settings: Any) -> Callable[[Tools], System]:
    chosen = FactstoreSettings(**settings)
    return lambda tools: FactstoreSystem(chosen, tools.indexes if embeddings else None)


def _plugin(*, numpy: bool = True, **options: Any) -> Callable[[Tools], System]:
    return lambda tools: HolographicPlugin(program=tools.plugin(numpy=numpy), **options)


KINDS: Mapping[str, ArmKind] = {
    "plain": ArmKind("fact store: words and trust", _factstore(keywords=False)),
    "keywords": ArmKind("fact store: words and trust, added keywords", _factstore()),
    "embeddings": ArmKind(
        "fact store: words and trust, embeddings behind the gate",
        _factstore(keywords=False, embeddings=True),
    ),
    "embeddings+keywords": ArmKind(
        "fact store: words and trust, added keywords, embeddings behind the gate",
        _factstore(embeddings=True),
    ),
    "open-gate": ArmKind(
        "fact store: as embeddings, but every query is embedded",
        _factstore(keywords=False, gate=None, embeddings=True),
    ),
    "rrf": ArmKind(
        "fact store as published: embeddings behind the gate, everything fused by RRF",
        _factstore(keywords=False, fusion="rrf", author_fusion="rrf", embeddings=True),
    ),
    "bm25": ArmKind("yardstick: BM25 of FTS5, words as they are", lambda _: Bm25(Tokenizer.UNICODE61)),
    "bm25-porter": ArmKind("yardstick: BM25 of FTS5, English endings taken off", lambda _: Bm25(Tokenizer.PORTER)),
    "bm25-and": ArmKind(
        "negative control: BM25 of facts that hold every word of the query",
        lambda _: Bm25(Tokenizer.UNICODE61, Match.AND),
    ),
    "dense": ArmKind("yardstick: embeddings alone", lambda tools: Dense(tools.indexes)),
    "hermes": ArmKind("the real plugin, its search: content and tags, added keywords among them", _plugin()),
    "hermes-no-hrr": ArmKind("the real plugin, its search with hrr_weight 0", _plugin(hrr_weight=0)),
    "hermes-no-numpy": ArmKind(
        "the real plugin, its search as a plain installation has it: without NumPy, hence without vectors",
        _plugin(numpy=False),
    ),
    "hermes-prefetch": ArmKind(
        f"the real plugin, what it injects ({PREFETCH_DEPTH} facts)",
        _plugin(mode=Mode.PREFETCH),
    ),
}
"""The arms of this package by name."""

DEFAULT_ARMS = (*FOUR_ARMS, "bm25", "bm25-porter", "dense")


def make_arms(
    names: Sequence[str],
    tools: Tools,
    kinds: Mapping[str, ArmKind] = KINDS,
    lacking: Callable[[str], None] | None = None,
) -> tuple[Arm, ...]:
    """Arms by name, in the order given.

    Args:
        names: Their names.
        tools: What they are made of.
        kinds: All that there are.
        lacking: Told of each arm that this machine cannot run, which is left out then; by default that is an error.

    Raises:
        InputError: A name is unknown or there twice, or none is given.
        EnvironmentUnusable: A system lacks something on this machine.
    """
    if not names:
        raise InputError("no arm is named", f"take some of: {', '.join(kinds)}")
    arms = []
    for name in names:
        if name not in kinds:
            raise InputError(f"no arm is called {name!r}", f"take some of: {', '.join(kinds)}")
        if names.count(name) > 1:
            raise InputError(f"arm {name} is named twice", "name it once")
        kind = kinds[name]
        try:
            system = kind.make(tools)
        except EnvironmentUnusable as error:
            if lacking is None:
                raise
            lacking(f"{name}: {error}")
            continue
        settings = dict(system.settings())
        arms.append(Arm(name, kind.label, system.name, settings, partial(kind.make, tools), settings.get("depth")))
    return tuple(arms)
