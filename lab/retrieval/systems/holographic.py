"""The agent's own holographic plugin as a system under test: unchanged, in the agent's environment, sandboxed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

from lab.agents.hermes.adapter import AGENT_PYTHON
from lab.agents.hermes.install import describe, ensure
from lab.agents.hermes.sources import DEFAULT_BUILD, parse_source
from lab.agents.select import agent_for
from lab.errors import EnvironmentUnusable, InputError, SystemFailed
from lab.isolation.base import Mount
from lab.isolation.select import select_backend
from lab.records import digest
from lab.retrieval.systems.base import SCORE_DIGITS, Hit, Ranking
from lab.retrieval.systems.sandbox_numpy import TARGET, ensure_numpy, worker_file
from lab.retrieval.systems.sandboxed import SandboxedWorker, SystemRefused, WorkerProgram

NAME = "hermes-holographic"
HRR_WEIGHT = 0.3
"""What the plugin takes where its configuration says nothing."""

PREFETCH_DEPTH = 5
"""Facts that the plugin injects at most; it has no option for it."""

_OPEN_SECONDS = 600.0
_COPY = "facts-"


class Mode(StrEnum):
    """Which of the plugin's ways to retrieve is asked."""

    SEARCH = "search"
    PREFETCH = "prefetch"


def plugin_program(
    backend: str = "auto",
    build: str = DEFAULT_BUILD,
    *,
    numpy: bool = True,
    progress: Callable[[str], None] | None = None,
) -> WorkerProgram:
    """The worker that holds the plugin, in the environment that trials use, too.

    Args:
        backend: ``auto``, ``docker`` or ``bwrap``.
        build: The agent, as ``lab build --build`` takes it.
        numpy: Whether NumPy is there. A plain installation of the agent has none, and its plugin then leaves out its
            vectors without a word.
        progress: Told one line before each long step, where something has to be prepared first.

    Raises:
        InputError: There is no such backend or build.
        EnvironmentUnusable: No sandbox can be started here, or the environment is not there and cannot be made.
    """
    isolation = select_backend(backend)
    tell = progress or _silent
    environment = ensure(isolation.name, parse_source(build), progress=tell)
    variables = dict(agent_for(describe(environment)["product"]).environment())
    mounts: tuple[Mount, ...] = ()
    if numpy:
        mounts = (Mount(ensure_numpy(tell), TARGET),)
        # One thread: sums in another order would be other sums.
        variables |= {"PYTHONPATH": TARGET, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    source = worker_file("worker.py").read_bytes()
    return WorkerProgram(NAME, isolation, environment, AGENT_PYTHON, source, variables, mounts)


class HolographicPlugin:
    """The real plugin.

    A new ``open`` takes a fresh copy into the same sandbox: what a stateful plugin has changed in the one before is
    gone, and it costs the copy and no start.

    Args:
        mode: Its search, or what it would inject into a turn.
        hrr_weight: Weight of its vectors in its configuration; 0 leaves them out.
        program: Where it runs; None for the usual build in the best sandbox of this machine.
        rebuild: Computes all vectors anew after a copy, by the plugin's own means: for databases that others made.
    """

    name = NAME

    def __init__(
        self,
        mode: Mode | str = Mode.SEARCH,
        hrr_weight: float = HRR_WEIGHT,
        program: WorkerProgram | None = None,
        *,
        rebuild: bool = False,
    ) -> None:
        self.mode = Mode(mode)
        self._hrr_weight = hrr_weight
        self._program = program
        self._rebuild = rebuild
        self._worker: SandboxedWorker | None = None
        self._about: dict[str, Any] = {}
        self._opened: dict[str, Any] = {}
        self._copies = 0

    @property
    def depth(self) -> int | None:
        """Most facts that it returns whatever is asked for; None where ``k`` decides."""
        return PREFETCH_DEPTH if self.mode is Mode.PREFETCH else None

    def settings(self) -> Mapping[str, Any]:
        """What decides its results; before ``open`` only what was asked for.

        ``legs`` are the parts of the score that can tell facts apart on this database: HRR is none without NumPy, with
        weight 0, or where no fact has a vector. ``weights`` are the plugin's own, after what it did with them:
        without NumPy it gives the weight of HRR to the others, and says so nowhere. ``vectors``: ``all``, ``some`` or
        ``none`` of the facts have one.
        """
        asked = {"mode": str(self.mode), "hrr_weight": self._hrr_weight, "depth": self.depth, "rebuild": self._rebuild}
        return {**asked, **self._about, **self._opened, "legs": list(self.legs)} if self._opened else asked

    @property
    def weights(self) -> Mapping[str, float]:
        """The plugin's own weights of ``fts``, ``jaccard`` and ``hrr``; empty before ``open``."""
        return dict(self._opened.get("weights", {}))

    @property
    def legs(self) -> tuple[str, ...]:
        """The terms that can tell facts apart; empty before ``open``."""
        dead = {"hrr"} if self._opened.get("vectors") == "none" else set()
        return tuple(name for name, weight in self.weights.items() if weight > 0 and name not in dead)

    def open(self, database: Path) -> None:
        """See ``System.open``."""
        if not database.is_file():
            raise InputError(f"no database at {database}", "freeze one: lab snapshot freeze")
        self._opened = {}
        try:
            worker = self._idle()
            # Each copy has another name: the plugin keeps connections by path, also one that it failed to open.
            self._copies += 1
            inside = worker.put(database, f"{_COPY}{self._copies}.db", _COPY)
            opened = worker.ask("open", path=inside, config={"hrr_weight": self._hrr_weight}, seconds=_OPEN_SECONDS)
            if self._rebuild:
                opened |= worker.ask("rebuild", seconds=_OPEN_SECONDS)
        except SystemRefused as error:
            raise InputError(
                f"the plugin cannot open {database.name}: {error.kind}: {error.text}", "freeze the database again"
            ) from error
        except SystemFailed as error:
            raise EnvironmentUnusable(error.message, error.mend) from error
        self._opened = opened

    def search(self, query: str, k: int) -> Ranking:
        """See ``System.search``. A prefetch tells an order and no scores: each hit's score is minus its rank then."""
        worker = self._asked()
        if self.mode is Mode.SEARCH:
            answer = worker.ask("search", query=query, k=k)
            found = [
                Hit(hit["fact_id"], hit["score"], {"fts": hit["fts"], "trust": hit["trust"]}) for hit in answer["hits"]
            ]
            # The plugin leaves equal scores in the order of its full-text index; here they stand as in every ranking.
            hits = sorted(found, key=lambda hit: (-round(hit.score, SCORE_DIGITS), hit.fact_id))
        else:
            answer = worker.ask("prefetch", query=query)
            if len(answer["readings"]) != 1:
                many = len(answer["readings"])
                raise SystemFailed(f"{NAME}: the prefetched text can be read as facts in {many} ways")
            hits = [Hit(fact_id, -float(rank)) for rank, fact_id in enumerate(answer["readings"][0][:k], 1)]
        return Ranking(tuple(hits), {"plugin": answer["seconds"]}, self.legs)

    def search_facts(self, query: str, k: int) -> tuple[int, ...]:
        """Ids by the store's own search, which counts what it returns: it changes the copy.

        Raises:
            SystemFailed: It could not answer; ``SystemRefused`` where the plugin raised.
        """
        return tuple(self._asked().ask("search_facts", query=query, k=k)["ids"])

    def add(self, facts: Sequence[Mapping[str, str]]) -> tuple[int, ...]:
        """Stores facts (``content``, ``tags``) in the copy as the agent's tool does; ids in their order.

        Raises:
            SystemFailed: The plugin raised, or is gone.
        """
        answer = self._asked().ask("add", facts=[dict(one) for one in facts], seconds=_OPEN_SECONDS)
        self._opened["vectors"] = answer["vectors"]
        return tuple(answer["ids"])

    def terms(self, query: str, k: int) -> list[dict[str, Any]]:
        """Every candidate of a query: ``fact_id``, raw ``terms`` by name, and ``trust``, the factor of their sum.

        Raises:
            SystemFailed: The terms do not give the plugin's own scores, or the plugin is gone.
        """
        return list(self._asked().ask("terms", query=query, k=k)["candidates"])

    def similarities(self, query: str) -> dict[str, list[Any]]:
        """Similarity of the query's HRR vector to every fact, by ``ids``: ``stored`` (or None) and ``text`` vectors.

        Raises:
            SystemFailed: There is no NumPy, or the plugin is gone.
        """
        return self._asked().ask("similarities", query=query)

    def unbinding(self, content: str, others: Sequence[str], entities: Sequence[str]) -> dict[str, Any]:
        """Takes a fact apart again: by operation, the similarity to the truth and those to the other contents.

        Raises:
            SystemFailed: There is no NumPy, or the plugin is gone.
        """
        dim = self._opened.get("hrr_dim")
        answer = self._asked().ask("unbinding", content=content, others=list(others), entities=list(entities), dim=dim)
        return dict(answer["operations"])

    def close(self) -> None:
        """See ``System.close``."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.close()

    def _asked(self) -> SandboxedWorker:
        if self._worker is None or not self._opened:
            raise SystemFailed(f"{NAME} has no database open")
        return self._worker

    def _idle(self) -> SandboxedWorker:
        """The worker with no database open; another one where the old one is gone, or does not let go."""
        if self._worker is not None:
            with contextlib.suppress(SystemFailed):
                self._worker.ask("close")
                return self._worker
        self.close()
        program = self._program = self._program or plugin_program()
        self._worker = SandboxedWorker(program)
        described = describe(program.environment)
        self._about = {
            "agent": f"{described['product']} {described['version']}",
            **self._worker.ask("about"),
            "backend": program.backend.name,
            "build": program.environment.digest,
            "worker": digest(program.source),
        }
        return self._worker


def _silent(_line: str) -> None:
    return
