"""All audits of one set: the fact store's terms and fusion, and the real plugin's terms, vectors and odd queries."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from lab.errors import InputError
from lab.records import Record
from lab.retrieval.audits.fusion import FusionAudit, audit_fusion, author_first
from lab.retrieval.audits.hostile_queries import HostileFinding, audit_hostile_queries
from lab.retrieval.audits.hrr import HrrAudit, audit_hrr
from lab.retrieval.audits.terms import TermAudit, audit_terms, explained_terms, table_of_hits
from lab.retrieval.database import StoredFact, read_facts, read_labels
from lab.retrieval.factstore.settings import AUTHORS, FactstoreSettings
from lab.retrieval.systems.base import Hit
from lab.retrieval.systems.factstore import FactstoreSystem
from lab.retrieval.systems.holographic import HolographicPlugin
from lab.retrieval.testset import TestSet, Topic
from lab.snapshots.store import Snapshot


class Audit(StrEnum):
    """What can be audited."""

    TERMS = "terms"
    """The terms of the fact store's score."""
    FUSION = "fusion"
    """Relevance and author fused, against each alone."""
    PLUGIN = "plugin"
    """The terms of the real plugin's score, and what its vectors can tell."""
    QUERIES = "queries"
    """What the real plugin does with odd queries."""


class Audits(Record):
    """What was audited; None where it was not asked for."""

    testset: str
    snapshot: str
    terms: TermAudit | None = None
    fusion: FusionAudit | None = None
    plugin_terms: TermAudit | None = None
    plugin_vectors: HrrAudit | None = None
    queries: tuple[HostileFinding, ...] | None = None


@dataclass(frozen=True)
class Auditor:
    """One store of one set.

    Args:
        testset: The set.
        store: Its store.
        snapshot: The frozen database of the store.
        k: Depth of a ranking.
    """

    testset: TestSet
    store: str
    snapshot: Snapshot
    k: int = 10

    def run(self, wanted: frozenset[Audit], plugin: Callable[[], HolographicPlugin]) -> Audits:
        """Runs the audits.

        Args:
            wanted: Which.
            plugin: Makes the real plugin, where one needs it.

        Raises:
            InputError: The store has no topics.
            EnvironmentUnusable: The plugin is needed and there is no sandbox for it.
            SystemFailed: The plugin could not answer.
        """
        if not self._topics:
            raise InputError(f"no topic asks store {self.store} of {self.testset.name}", "audit another set")
        found = Audits(testset=self.testset.name, snapshot=self.snapshot.manifest.name)
        update: dict[str, object] = {}
        if Audit.TERMS in wanted:
            update["terms"] = audit_terms(
                table_of_hits("factstore", self._ranked(FactstoreSettings(author_fusion="off")))
            )
        if Audit.FUSION in wanted:
            update["fusion"] = self._fusion()
        if wanted & {Audit.PLUGIN, Audit.QUERIES}:
            real = plugin()
            with closing(real):
                if Audit.PLUGIN in wanted:
                    update |= self._plugin(real)
                if Audit.QUERIES in wanted:
                    update["queries"] = self._queries(real)
        return found.model_copy(update=update)

    @property
    def _topics(self) -> list[Topic]:
        return [topic for topic in self.testset.topics if topic.store == self.store]

    def _ranked(self, settings: FactstoreSettings) -> dict[str, tuple[Hit, ...]]:
        """Everything that the fact store finds by words, deep."""
        system = FactstoreSystem(settings)
        with self._copy() as database, closing(system):
            system.open(database)
            return {topic.id: system.search(topic.text, settings.candidates).hits for topic in self._topics}

    def _fusion(self) -> FusionAudit:
        settings = FactstoreSettings()
        facts, names = self._facts()
        order = {author: rank for rank, author in enumerate(AUTHORS)}
        ranks = {names[fact_id]: order[fact.author] for fact_id, fact in facts.items()}

        def named(hits: Mapping[str, tuple[Hit, ...]]) -> dict[str, list[str]]:
            return {topic: [names[hit.fact_id] for hit in found] for topic, found in hits.items()}

        relevance = named(self._ranked(replace(settings, author_fusion="off")))
        rankings = {
            "relevance and author by RRF": named(self._ranked(replace(settings, author_fusion="rrf"))),
            "relevance only": relevance,
            "author first": author_first(relevance, ranks),
        }
        return audit_fusion(rankings, self.testset.qrels)

    def _plugin(self, real: HolographicPlugin) -> dict[str, object]:
        facts, names = self._facts()
        rows = {name: fact_id for fact_id, name in names.items()}
        queries = {topic.id: topic.text for topic in self._topics}
        relevant = {
            topic.id: {rows[name] for name in self.testset.qrels.get(topic.id, ()) if name in rows}
            for topic in self._topics
        }
        with self._copy() as database:
            real.open(database)
            return {
                "plugin_terms": audit_terms(explained_terms(real, queries, self.k)),
                "plugin_vectors": audit_hrr(real, queries, relevant, [fact.content for fact in facts.values()]),
            }

    def _queries(self, real: HolographicPlugin) -> tuple[HostileFinding, ...]:
        with tempfile.TemporaryDirectory(prefix="lab-bench-") as folder:
            empty = Path(folder) / "memory_store.db"
            empty.touch()
            real.open(empty)
            return audit_hostile_queries(real)

    @contextmanager
    def _copy(self) -> Iterator[Path]:
        with tempfile.TemporaryDirectory(prefix="lab-bench-") as folder:
            database = Path(folder) / "memory_store.db"
            self.snapshot.copy_to(database)
            yield database

    def _facts(self) -> tuple[dict[int, StoredFact], dict[int, str]]:
        with closing(self.snapshot.connect()) as connection:
            facts = {fact.fact_id: fact for fact in read_facts(connection)}
            return facts, {fact_id: names[0] for fact_id, names in read_labels(connection).items()}
