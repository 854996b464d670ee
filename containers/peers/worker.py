"""Serves a memory system of somebody else inside a sandbox: one JSON line in, one JSON line out.

The system is used through its public classes and stays as it is: nothing here scores or ranks. It sees the standard
library and the folder of its own packages; packages of the agent whose base system it borrows are out of its reach.
Any attempt to reach a network is refused and told.
"""

import hashlib
import importlib.metadata
import json
import os
import platform
import shutil
import socket
import sqlite3
import sys
import time
from pathlib import Path
from typing import Any

PACKAGES = "/run/peer"
STORE = Path("/run/store")
OWNER = "lab"
NOW = 1_767_225_600.0
"""What a clock shows that stands still."""

ATTEMPTS: list[str] = []
_NETWORK = frozenset(
    {"socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo", "socket.gethostbyname"}
)


def guard(event: str, arguments: tuple[Any, ...]) -> None:
    """Audit hook: refuses and remembers what would reach a network."""
    if event not in _NETWORK:
        return
    of_socket = isinstance(arguments[0], socket.socket)
    if of_socket and arguments[0].family == socket.AF_UNIX:
        return
    ATTEMPTS.append(f"{event} {arguments[-1] if of_socket else arguments[0]}"[:200])
    raise PermissionError(f"{event}: there is no network here")


class Memorine:
    """``memorine``: SQLite and FTS5; a recall makes what it returns weigh more.

    Weights decay by age. The clock stands still, so that all facts are equally old: they are stored one after the
    other here, and the order in which that happens to be done would decide rankings.
    """

    clock = "stands still"

    def __init__(self, place: Path) -> None:
        time.time = lambda: NOW
        from memorine import Mind, embeddings

        self.legs = {"fts5": True, "embeddings": embeddings.is_available()}
        self.mind = Mind(OWNER, str(place / "memorine.db"))

    def add(self, facts: list[dict[str, Any]]) -> None:
        """Learns facts; the system itself drops one that has nearly the words of another."""
        for fact in facts:
            self.mind.learn(fact["text"], source=str(fact["id"]))

    def count(self) -> int:
        """Memories that it holds."""
        return len(self.mind.facts())

    def search(self, query: str, k: int, _vector: list[float] | None) -> list[dict[str, Any]]:
        """Its recall, best first; many share a weight, and then stand in the order of the full-text index."""
        found = self.mind.recall(query, limit=k)
        return [{"fact_id": int(one["source"]), "parts": {"weight": one["effective_weight"]}} for one in found]

    def close(self) -> None:
        """Lets go of the database, which empties its log into it."""
        self.mind.conn.close()


class Mem0:
    """``mem0ai`` without a language model: what it is given is stored as it is, in the vector store inside it."""

    clock = "runs"

    def __init__(self, place: Path) -> None:
        from mem0 import Memory
        from mem0.embeddings.base import EmbeddingBase
        from mem0.utils.spacy_models import get_nlp_full

        given: dict[tuple[str, str], list[float]] = {}

        class Given(EmbeddingBase):
            """Vectors that the lab has made: those of facts as documents, those of queries as queries."""

            def embed(self, text: str, memory_action: str | None = None) -> list[float]:
                return given[memory_action or "", text]

        unused = {"provider": "openai", "config": {"api_key": "unused"}}
        store = {"path": str(place / "qdrant"), "on_disk": True, "embedding_model_dims": int(os.environ["DIMENSIONS"])}
        self.memory = Memory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": store},
                "history_db_path": str(place / "history.db"),
                "embedder": unused,
                "llm": unused,
            }
        )
        self.memory.embedding_model = Given()
        self.given = given
        words = self.memory.vector_store.keyword_search(query="word", top_k=1, filters={"user_id": OWNER})
        self.legs = {"vector": True, "bm25": words is not None, "entity": get_nlp_full() is not None}

    def add(self, facts: list[dict[str, Any]]) -> None:
        """Stores facts."""
        for fact in facts:
            self.given["add", fact["text"]] = fact["vector"]
            self.memory.add(fact["text"], user_id=OWNER, metadata={"fact_id": fact["id"]}, infer=False)
            self.given.clear()

    def count(self) -> int:
        """Memories that it holds."""
        return int(self.memory.vector_store.client.count(self.memory.collection_name).count)

    def search(self, query: str, k: int, vector: list[float] | None) -> list[dict[str, Any]]:
        """Its search with its own threshold, best first."""
        self.given["search", query.strip()] = vector or []
        found = self.memory.search(query, top_k=k, filters={"user_id": OWNER}, explain=True)["results"]
        self.given.clear()
        return [
            {
                "fact_id": one["metadata"]["fact_id"],
                "score": one["score"],
                "parts": {leg: one["score_details"][name] for leg, name in self._details()},
            }
            for one in found
        ]

    def _details(self) -> list[tuple[str, str]]:
        names = {"vector": "semantic_score", "bm25": "bm25_score", "entity": "entity_boost"}
        return [(leg, name) for leg, name in names.items() if self.legs[leg]]

    def close(self) -> None:
        """Lets go of the store."""
        self.memory.vector_store.client.close()
        self.memory.close()


class Mempalace:
    """``mempalace`` on its exact store: the nearest by vector, ordered again by its own sum of cosine and BM25."""

    clock = "runs"

    def __init__(self, place: Path) -> None:
        os.environ["MEMPALACE_BACKEND"] = "sqlite_exact"
        from mempalace import embedding, palace, searcher

        given: dict[tuple[str, str], list[float]] = {}

        class Given:
            """Vectors that the lab has made: those of facts as documents, those of queries as queries."""

            def embed_query(self, input: list[str]) -> list[list[float]]:
                return [given["query", text] for text in input]

            def embed_documents(self, input: list[str]) -> list[list[float]]:
                return [given["document", text] for text in input]

        embedding.configured_embedding_function = Given
        self.given, self.place, self.searcher = given, str(place), searcher
        self.drawers = palace.get_collection(self.place, create=True)
        # Closets are pointers that its miner writes, which reads files; what is stored directly has none.
        self.legs = {"vector": True, "bm25": True, "closets": False}

    def add(self, facts: list[dict[str, Any]]) -> None:
        """Files facts, each from a source of its own: of one source it shows one drawer."""
        self.given.update({("document", fact["text"]): fact["vector"] for fact in facts})
        self.drawers.add(
            documents=[fact["text"] for fact in facts],
            ids=[str(fact["id"]) for fact in facts],
            metadatas=[{"wing": OWNER, "room": "facts", "source_file": str(fact["id"])} for fact in facts],
        )
        self.given.clear()

    def count(self) -> int:
        """Memories that it holds."""
        return int(self.drawers.count())

    def search(self, query: str, k: int, vector: list[float] | None) -> list[dict[str, Any]]:
        """Its search as its server calls it, best first; it tells an order and the two parts of its sum."""
        self.given["query", query] = vector or []
        answer = self.searcher.search_memories(query, self.place, n_results=k)
        self.given.clear()
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return [
            {
                "fact_id": int(one["source_path"]),
                "parts": {"vector": one["similarity"], "bm25": one["bm25_score"]},
            }
            for one in answer["results"]
        ]

    def close(self) -> None:
        """Lets go of the store, which empties its log into it."""
        from mempalace.backends.registry import reset_backends

        reset_backends()


SYSTEMS = {"memorine": Memorine, "mem0": Mem0, "mempalace": Mempalace}


class Worker:
    """One system; ``create``, ``add``, ``freeze`` fill a store, ``open`` and ``search`` ask a copy of it."""

    def __init__(self) -> None:
        self.system: Any = None

    def about(self) -> dict[str, Any]:
        """What is here, as far as it may decide a result: every package that can be imported, by name."""
        found = {one.metadata["Name"]: one.version for one in importlib.metadata.distributions()}
        return {"packages": found, "python": platform.python_version(), "sqlite": sqlite3.sqlite_version}

    def create(self) -> dict[str, Any]:
        """Begins a new store where it will be frozen."""
        self.system = SYSTEMS[os.environ["PEER"]](STORE)
        return {}

    def add(self, facts: list[dict[str, Any]]) -> dict[str, Any]:
        """Gives it facts."""
        self.system.add(facts)
        return {}

    def freeze(self) -> dict[str, Any]:
        """Ends the filling; tells how many memories came of it, and a digest of the files."""
        count = self.system.count()
        self.system.close()
        self.system = None
        return {"memories": count, "store": digest_of(STORE)}

    def open(self) -> dict[str, Any]:
        """Opens a private copy of the frozen store."""
        place = Path.home() / "store"
        shutil.copytree(STORE, place)
        self.system = SYSTEMS[os.environ["PEER"]](place)
        return {"legs": self.system.legs, "clock": self.system.clock, "store": digest_of(STORE)}

    def search(self, query: str, k: int, vector: list[float] | None = None) -> dict[str, Any]:
        """Its ranking."""
        start = time.perf_counter()
        hits = self.system.search(query, k, vector)
        return {"hits": hits, "seconds": time.perf_counter() - start}


def digest_of(folder: Path) -> str:
    """SHA-256 over names and bytes of all files."""
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            found.update(f"{path.relative_to(folder)}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    return found.hexdigest()


def main() -> int:
    """Runs ``worker.py SOCKET``; returns when the lab hangs up."""
    sys.path[:] = [PACKAGES, *(path for path in sys.path[1:] if not path.endswith("-packages"))]
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(sys.argv[1])
    sys.addaudithook(guard)
    worker = Worker()
    with connection.makefile("rwb") as stream:
        for line in stream:
            request = json.loads(line)
            number, operation = request.pop("id"), request.pop("op")
            try:
                answer = getattr(worker, operation)(**request)
            except Exception as error:
                answer = {"error": type(error).__name__, "text": str(error)[:500]}
            stream.write(json.dumps({"id": number, **answer, "attempts": ATTEMPTS}).encode() + b"\n")
            stream.flush()
    return 0


if __name__ == "__main__":
    os.umask(0o077)
    sys.exit(main())
