"""Serves the agent's holographic memory plugin inside a sandbox: one JSON line in, one JSON line out.

It has the standard library and the agent, and no network. The plugin is used through its own classes and functions and
stays as it is: nothing here scores or ranks, but for the recomputation of the plugin's terms, which is compared with
the plugin's own scores before it is told.
"""

import functools
import hashlib
import importlib.metadata
import inspect
import json
import os
import platform
import re
import socket
import sqlite3
import sys
import time
from pathlib import Path
from typing import Any

from plugins.memory.holographic import HolographicMemoryProvider
from plugins.memory.holographic import holographic as hrr

HEADING = "## Holographic Memory\n"
LINE = re.compile(r"- \[(\d+\.\d)\] ")
SAME = 1e-9
ROLE_ENTITY, ROLE_CONTENT = "__hrr_role_entity__", "__hrr_role_content__"


@functools.lru_cache(maxsize=10_000)
def text_vector(text: str, dim: int) -> Any:
    """The plugin's vector of a text; kept, because audits hold the same texts against each other again and again."""
    return hrr.encode_text(text, dim)


class Worker:
    """The plugin on one database at a time."""

    def __init__(self) -> None:
        self.provider: Any = None

    def about(self) -> dict[str, Any]:
        """What is here, as far as it may decide a result."""
        folder = Path(hrr.__file__).parent
        sources = hashlib.sha256()
        for path in sorted(folder.glob("*.py")):
            sources.update(path.name.encode() + b"\0" + path.read_bytes())
        numpy = None
        if hrr._HAS_NUMPY:
            numpy = importlib.metadata.version("numpy")
        return {
            "plugin": sources.hexdigest(),
            "python": platform.python_version(),
            "sqlite": sqlite3.sqlite_version,
            "numpy": numpy,
        }

    def open(self, path: str, config: dict[str, Any]) -> dict[str, Any]:
        """Opens a database through the provider, and tells with which weights it will rank."""
        self.close()
        provider = HolographicMemoryProvider({"db_path": path, **config})
        provider.initialize("retrieval")
        self.provider = provider
        retriever = provider._retriever
        return {
            **self._vectors(),
            "weights": {
                "fts": retriever.fts_weight,
                "jaccard": retriever.jaccard_weight,
                "hrr": retriever.hrr_weight,
            },
            "half_life": retriever.half_life,
            "hrr_dim": retriever.hrr_dim,
            "min_trust": provider._min_trust,
        }

    def _vectors(self) -> dict[str, str]:
        count = "SELECT COUNT(*), COUNT(hrr_vector) FROM facts"
        facts, with_vector = self.provider._store._conn.execute(count).fetchone()
        return {"vectors": "none" if not with_vector else "all" if with_vector == facts else "some"}

    def close(self) -> dict[str, Any]:
        """Lets go of the database."""
        if self.provider is not None:
            provider, self.provider = self.provider, None
            provider.shutdown()
        return {}

    def add(self, facts: list[dict[str, str]]) -> dict[str, Any]:
        """Stores facts as the agent's tool does."""
        add_fact = self.provider._store.add_fact
        ids = [add_fact(one["content"], tags=one.get("tags", "")) for one in facts]
        return {"ids": ids, **self._vectors()}

    def extract(self, messages: list[dict[str, str]]) -> dict[str, Any]:
        """What the plugin's own extraction stores of each message, taken as a session of one message that ends.

        Each fact with its category and the names of its entities; ``columns`` are all that the table has for a fact.
        """
        connection = self.provider._store._conn
        columns = [row[1] for row in connection.execute("PRAGMA table_info(facts)").fetchall()]
        entities = "SELECT name FROM entities JOIN fact_entities USING (entity_id) WHERE fact_id = ? ORDER BY entity_id"
        stored = []
        for message in messages:
            last = connection.execute("SELECT COALESCE(MAX(fact_id), 0) FROM facts").fetchone()[0]
            self.provider.on_session_end([message])
            rows = connection.execute(
                "SELECT fact_id, content, category FROM facts WHERE fact_id > ? ORDER BY fact_id", (last,)
            ).fetchall()
            stored.append(
                [
                    {
                        "content": row[1],
                        "category": row[2],
                        "entities": [one[0] for one in connection.execute(entities, (row[0],)).fetchall()],
                    }
                    for row in rows
                ]
            )
        return {"stored": stored, "columns": columns}

    def rebuild(self) -> dict[str, Any]:
        """Computes all vectors again, by the plugin's own means; facts stored by others may have none."""
        self.provider._store.rebuild_all_vectors()
        return self._vectors()

    def search(self, query: str, k: int) -> dict[str, Any]:
        """The plugin's ranking."""
        start = time.perf_counter()
        found = self.provider._retriever.search(query, limit=k)
        seconds = time.perf_counter() - start
        hits = [
            {"fact_id": one["fact_id"], "score": one["score"], "fts": one["fts_rank"], "trust": one["trust_score"]}
            for one in found
        ]
        return {"hits": hits, "seconds": seconds}

    def search_facts(self, query: str, k: int) -> dict[str, Any]:
        """The store's own search, which counts what it returned and so changes the database."""
        return {"ids": [one["fact_id"] for one in self.provider._store.search_facts(query, limit=k)]}

    def prefetch(self, query: str) -> dict[str, Any]:
        """What the agent would inject: the facts whose lines the text consists of, in its order.

        ``readings`` holds every way in which the text can be cut into facts; a fact whose own text contains the line of
        another makes more than one.
        """
        start = time.perf_counter()
        text = self.provider.prefetch(query)
        seconds = time.perf_counter() - start
        if not text:
            return {"readings": [[]], "seconds": seconds}
        readings = self._read(text.removeprefix(HEADING).split("\n"), 0, ()) if text.startswith(HEADING) else []
        return {"readings": readings, "seconds": seconds}

    def _read(self, lines: list[str], at: int, taken: tuple[int, ...]) -> list[list[int]]:
        if at == len(lines):
            return [list(taken)]
        head = LINE.match(lines[at])
        if head is None:
            return []
        found = []
        ends = [i for i in range(at + 1, len(lines)) if LINE.match(lines[i])]
        for end in (*ends, len(lines)):
            content = "\n".join(lines[at:end])[head.end() :]
            query = "SELECT fact_id, trust_score FROM facts WHERE content = ?"
            for fact_id, trust in self.provider._store._conn.execute(query, (content,)).fetchall():
                if fact_id not in taken and f"{trust:.1f}" == head[1]:
                    found += self._read(lines, end, (*taken, fact_id))
        return found

    def terms(self, query: str, k: int) -> dict[str, Any]:
        """Every candidate of a query with the terms of its score, by the plugin's own functions.

        Raises:
            ValueError: The terms do not give the score that the plugin itself gave: they do not explain it.
        """
        retriever = self.provider._retriever
        weights = (retriever.fts_weight, retriever.jaccard_weight, retriever.hrr_weight)
        words = retriever._tokenize(query)
        asked = hrr.encode_text(query, retriever.hrr_dim) if retriever.hrr_weight > 0 else None
        found = []
        min_trust = inspect.signature(retriever.search).parameters["min_trust"].default
        for fact in retriever._fts_candidates(query, None, min_trust, 3 * k):
            own = retriever._tokenize(fact["content"]) | retriever._tokenize(fact.get("tags", ""))
            similarity = None
            if asked is not None and fact.get("hrr_vector"):
                similarity = hrr.similarity(asked, hrr.bytes_to_phases(fact["hrr_vector"]))
            values = {
                "fts": fact["fts_rank"],
                "jaccard": retriever._jaccard_similarity(words, own),
                "hrr": 0.5 if similarity is None else (similarity + 1.0) / 2.0,
            }
            found.append({"fact_id": fact["fact_id"], "terms": values, "trust": fact["trust_score"]})
        expected = {
            one["fact_id"]: one["trust"] * sum(w * v for w, v in zip(weights, one["terms"].values(), strict=True))
            for one in found
        }
        for one in retriever.search(query, limit=k):
            told = expected.get(one["fact_id"])
            if retriever.half_life > 0 or told is None or abs(told - one["score"]) > SAME:
                raise ValueError(f"the terms give {told} and the plugin gave {one['score']} to fact {one['fact_id']}")
        return {"candidates": found}

    def similarities(self, query: str) -> dict[str, Any]:
        """Similarity of a query's vector to every fact: to its stored vector, and to the vector of its text alone."""
        dim = self.provider._retriever.hrr_dim
        asked = hrr.encode_text(query, dim)
        rows = self.provider._store._conn.execute("SELECT fact_id, content, hrr_vector FROM facts ORDER BY fact_id")
        ids, stored, text = [], [], []
        for fact_id, content, vector in rows.fetchall():
            ids.append(fact_id)
            stored.append(None if vector is None else hrr.similarity(asked, hrr.bytes_to_phases(vector)))
            text.append(hrr.similarity(asked, text_vector(content, dim)))
        return {"ids": ids, "stored": stored, "text": text}

    def unbinding(self, content: str, others: list[str], entities: list[str], dim: int) -> dict[str, Any]:
        """What comes back when a fact is taken apart again; ``entities`` bundled beside the content, the first asked.

        Each operation gives the similarity to the true answer and those to the answers of other facts.
        """
        role_entity, role_content = hrr.encode_atom(ROLE_ENTITY, dim), hrr.encode_atom(ROLE_CONTENT, dim)
        # Without an entity in the fact, the key is of one that is not: all that can be asked of such a fact.
        entity = hrr.encode_atom((entities or [f"no entity of: {content}"])[0].lower(), dim)
        key = hrr.bind(entity, role_entity)
        fact = hrr.encode_fact(content, entities, dim)
        true, false = text_vector(content, dim), [text_vector(one, dim) for one in others]
        # What is meant by a fact from which content can be had by entity: each content bound to its own key.
        keys = [hrr.bind(hrr.encode_atom(one.lower(), dim), role_entity) for one in entities[1:]]
        pairs = [hrr.bind(key, true), *(hrr.bind(k, v) for k, v in zip(keys, false, strict=False))]
        results = {
            "text against the fact, as search compares": fact,
            "content by entity": hrr.unbind(fact, key),
            "content by role": hrr.unbind(fact, role_content),
            "bound pair, not bundled": hrr.unbind(hrr.bind(key, true), key),
            "bound pairs, bundled": hrr.unbind(hrr.bundle(*pairs), key),
        }
        told = {
            name: [hrr.similarity(got, true), [hrr.similarity(got, one) for one in false]]
            for name, got in results.items()
        }
        # As ``probe`` compares it: the content still bound to its role.
        got = results["content by entity"]
        bound = [hrr.similarity(got, hrr.bind(one, role_content)) for one in (true, *false)]
        told["content by entity, as probe compares"] = [bound[0], bound[1:]]
        return {"operations": told}


def main() -> int:
    """Runs ``worker.py SOCKET``; returns when the lab hangs up."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(sys.argv[1])
    worker = Worker()
    with connection.makefile("rwb") as stream:
        for line in stream:
            request = json.loads(line)
            number, operation = request.pop("id"), request.pop("op")
            try:
                answer = getattr(worker, operation)(**request)
            except Exception as error:
                answer = {"error": type(error).__name__, "text": str(error)[:500]}
            stream.write(json.dumps({"id": number, **answer}).encode() + b"\n")
            stream.flush()
    worker.close()
    return 0


if __name__ == "__main__":
    os.umask(0o077)
    sys.exit(main())
