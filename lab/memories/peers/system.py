"""A peer as a system under test: filled once for each store, asked on a copy, in a sandbox without network."""

from __future__ import annotations

import contextlib
import os
import time
import weakref
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from lab.agents.hermes.adapter import AGENT_PYTHON
from lab.agents.hermes.install import ensure
from lab.agents.hermes.sources import normal_name
from lab.errors import EmbeddingFailed, EnvironmentUnusable, SystemFailed
from lab.isolation.base import Mount, sandbox_ids
from lab.isolation.select import select_backend
from lab.isolation.work import make_work_directory, remove_tree
from lab.memories.peers.environment import Packages, peer_file, prepared_packages
from lab.records import digest
from lab.retrieval.database import open_database, read_facts
from lab.retrieval.embedders.base import Kind
from lab.retrieval.embedders.index import DenseIndexes, rows_with_text
from lab.retrieval.systems.base import SCORE_DIGITS, Hit, Ranking
from lab.retrieval.systems.sandboxed import SandboxedWorker, SystemRefused, WorkerProgram

FILL_SECONDS = 900.0
"""Time for one batch of facts, and for a system to open what it holds."""

BATCH = 50
_PACKAGES, _STORE = "/run/peer", "/run/store"


@dataclass(frozen=True)
class Frozen:
    """A store that a peer has filled; sandboxes that answer see it read-only.

    Attributes:
        folder: Its files.
        digest: Over names and bytes of the files, as it was when it was filled.
        facts: Facts that were given.
        memories: What the peer made of them: some drop a fact that is near to another.
    """

    folder: Path
    digest: str
    facts: int
    memories: int


def peer_program(peer: str, packages: Packages, backend: str = "auto") -> WorkerProgram:
    """The worker that holds a peer. It borrows the agent's base system and none of the agent's packages.

    Args:
        peer: Name of the peer.
        packages: Its packages.
        backend: ``auto``, ``docker`` or ``bwrap``.

    Raises:
        InputError: There is no such backend, or the checkout is not complete.
        EnvironmentUnusable: No sandbox can be started here.
    """
    isolation = select_backend(backend)
    return WorkerProgram(
        name=peer,
        backend=isolation,
        environment=ensure(isolation.name),
        interpreter=AGENT_PYTHON,
        source=peer_file("worker.py").read_bytes(),
        # One thread: sums in another order would be other sums. Telemetry is the one thing that is switched off.
        variables={"PEER": peer, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MEM0_TELEMETRY": "False"},
        mounts=(Mount(packages.folder, _PACKAGES),),
    )


class Peer:
    """A memory system of somebody else.

    ``open`` fills a store of the peer's own kind with the facts of a database, once, and freezes it. Every ``open``
    then takes a new sandbox with a fresh copy of that store: what a stateful memory has changed before is gone.

    Args:
        name: Name of the peer.
        indexes: Makes vectors, for a peer that takes them; None for one that does not.
        backend: Isolation.
        cache: Folder of what is prepared; None for the usual one.

    Raises:
        EnvironmentUnusable: Its packages are not prepared, or no sandbox can be started.
    """

    def __init__(
        self, name: str, indexes: DenseIndexes | None = None, backend: str = "auto", cache: Path | None = None
    ) -> None:
        self.name = name
        self._indexes = indexes
        self._packages = prepared_packages(name, cache)
        self._program = peer_program(name, self._packages, backend)
        if indexes is not None:
            size = {"DIMENSIONS": str(indexes.embedder.identity.dimensions)}
            self._program = replace(self._program, variables={**self._program.variables, **size})
        self._frozen: dict[str, Frozen] = {}
        self._worker: SandboxedWorker | None = None
        self._legs: dict[str, bool] = {}
        self._clock = ""

    def settings(self) -> Mapping[str, Any]:
        """What decides its results: every package with its version, the set's digest, the model of the vectors.

        After ``open`` also ``legs``, the ways of searching that the peer has and whether each is on, whether its
        ``clock`` runs, and how many ``memories`` it has made of the ``facts`` that it was given, over all stores.
        """
        told: dict[str, Any] = {
            "packages": dict(self._packages.versions),
            "installed": self._packages.digest,
            "build": self._program.environment.digest,
            "backend": self._program.backend.name,
            "worker": digest(self._program.source),
            "given": "content of the facts",
        }
        if self._indexes is not None:
            model = asdict(self._indexes.embedder.identity)
            told["embedder"] = {**model, "prefixes": dict(model["prefixes"])}
        if self._legs:
            told["legs"], told["clock"] = dict(self._legs), self._clock
            told["facts"] = sum(one.facts for one in self._frozen.values())
            told["memories"] = sum(one.memories for one in self._frozen.values())
        return told

    @cached_property
    def _work(self) -> Path:
        """Where frozen stores are; it goes when the system goes."""
        work = make_work_directory()
        weakref.finalize(self, remove_tree, work)
        return work

    def frozen(self, database: Path) -> Frozen:
        """The store that the peer has made of a database, filled when there is none.

        Raises:
            InputError: It is no database of facts.
            EnvironmentUnusable: The peer cannot be filled with it.
        """
        with closing(open_database(database)) as source:
            rows = rows_with_text([(fact.fact_id, fact.content) for fact in read_facts(source)])
        key = digest(rows)
        if key not in self._frozen:
            self._frozen[key] = self._fill(rows, self._work / key[:16])
        return self._frozen[key]

    def open(self, database: Path) -> None:
        """See ``System.open``."""
        self.close()
        frozen = self.frozen(database)
        self._worker = self._started(frozen.folder, writable=False)
        opened = self._asked("open")
        if opened["store"] != frozen.digest:
            raise EnvironmentUnusable(f"the frozen store of {self.name} is not as it was", "start the run again")
        self._legs, self._clock = opened["legs"], opened["clock"]

    def search(self, query: str, k: int) -> Ranking:
        """See ``System.search``. Where the peer gives an order and no score, each hit's score is minus its rank."""
        vector, seconds = self._vector(query)
        if self._worker is None:
            raise SystemFailed(f"{self.name} has no database open", "open one first")
        answer = self._worker.ask("search", query=query, k=k, vector=vector)
        self._check_network(answer)
        hits = [
            Hit(one["fact_id"], one.get("score", -float(rank)), one["parts"])
            for rank, one in enumerate(answer["hits"], 1)
        ]
        # A peer leaves equal scores in an order of its own; here they stand as in every ranking.
        hits.sort(key=lambda hit: (-round(hit.score, SCORE_DIGITS), hit.fact_id))
        channels = tuple(leg for leg, on in self._legs.items() if on)
        # Where other legs take part, the nearest by vector may not be among the hits.
        confidence = max((hit.parts["vector"] for hit in hits), default=None) if channels == ("vector",) else None
        return Ranking(tuple(hits), {**seconds, "peer": answer["seconds"]}, channels, confidence=confidence)

    def close(self) -> None:
        """See ``System.close``; frozen stores stay until the system itself is gone."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.close()

    def _fill(self, rows: Sequence[tuple[int, str]], folder: Path) -> Frozen:
        folder.mkdir(mode=0o700)
        if os.geteuid() == 0:
            os.chown(folder, *sandbox_ids())
        facts: list[dict[str, Any]] = [{"id": fact_id, "text": text} for fact_id, text in rows]
        if self._indexes is not None:
            for fact, vector in zip(facts, self._indexes(rows).vectors.matrix, strict=True):
                fact["vector"] = vector.tolist()
        with contextlib.closing(self._started(folder, writable=True)) as self._worker:
            self._check_packages()
            self._asked("create")
            for start in range(0, len(facts), BATCH):
                self._asked("add", facts=facts[start : start + BATCH])
            made = self._asked("freeze")
        self._worker = None
        return Frozen(folder, made["store"], len(facts), made["memories"])

    def _started(self, folder: Path, *, writable: bool) -> SandboxedWorker:
        mounts = (*self._program.mounts, Mount(folder, _STORE, writable=writable))
        return SandboxedWorker(replace(self._program, mounts=mounts))

    def _asked(self, operation: str, **arguments: Any) -> dict[str, Any]:
        """Asks for something without which there is no system to measure."""
        assert self._worker is not None  # noqa: S101 - the callers start it
        try:
            answer = self._worker.ask(operation, seconds=FILL_SECONDS, **arguments)
            self._check_network(answer)
        except SystemFailed as error:
            self.close()
            mend = "its adapter is containers/peers/worker.py" if isinstance(error, SystemRefused) else error.mend
            raise EnvironmentUnusable(error.message, mend) from error
        return answer

    def _check_packages(self) -> None:
        """What can be imported inside is what the lock names, and nothing else."""
        found = {normal_name(name): version for name, version in self._asked("about")["packages"].items()}
        if found != self._packages.versions:
            odd = sorted(found.items() ^ self._packages.versions.items())[0][0]
            self.close()
            raise EnvironmentUnusable(f"{self.name} sees other packages than its lock names: {odd}", "lab clean --all")

    def _check_network(self, answer: Mapping[str, Any]) -> None:
        """A system that wanted the network and did without may have answered worse than it can: no result."""
        if answer["attempts"]:
            raise SystemFailed(f"{self.name} tried to reach a network: {answer['attempts'][0]}", "it must run offline")

    def _vector(self, query: str) -> tuple[list[float] | None, dict[str, float]]:
        """A query's vector, embedded as a query, never as a document; and the seconds that it took."""
        if self._indexes is None:
            return None, {}
        started = time.perf_counter()
        try:
            found = self._indexes.embedder.embed([query], Kind.QUERY, self._indexes.timeout)
        except EmbeddingFailed as error:
            raise SystemFailed(f"{error.cause}: {error.message}", error.mend) from error
        return found[0].tolist(), {"embed": time.perf_counter() - started}
