"""The memory provider: what the agent calls before each turn, its tool, and the mirror of its own memory writes."""

from __future__ import annotations

import json
import logging
import sqlite3
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from .remote import RemoteChannel, RemoteSettings
from .retriever import Retriever
from .schema import copy_store, open_store
from .secrets import find_secret
from .settings import AUTHORS, FactstoreSettings
from .store import FactRefused, FactStore

try:
    from agent.memory_provider import MemoryProvider  # type: ignore[import-not-found, unused-ignore]
except ImportError:  # outside the agent, where the lab tests the same class
    MemoryProvider = object

logger = logging.getLogger(__name__)

NAME = "factstore"
DATABASE, VECTORS, UPSTREAM_DATABASE = "factstore.db", "factstore_vectors.db", "memory_store.db"
"""Files in the agent's home: ours, its vectors, and upstream's, which is read once and never changed."""
INJECTED = 5
"""Most facts put before a turn."""
_LISTED = 50
_CONTENT_CHARACTERS = 2000

TOOL = {
    "name": "fact_store",
    "description": (
        "Durable facts that outlive the session. add: store one fact (content, author, tags). "
        "search: find facts for a query. list: browse. remove: delete by fact_id. Never store secrets."
    ),
    "parameters": {
        "type": "object",
        "properties": {
            "action": {"type": "string", "enum": ["add", "search", "list", "remove"]},
            "content": {"type": "string", "description": "The fact, in one sentence (add)."},
            "author": {"type": "string", "enum": list(AUTHORS), "description": "Who said it (add); default agent."},
            "tags": {"type": "string", "description": "Comma-separated tags (add)."},
            "query": {"type": "string", "description": "What to look for (search)."},
            "fact_id": {"type": "integer", "description": "Which fact (remove)."},
            "limit": {"type": "integer", "description": "Most facts returned (search, list)."},
        },
        "required": ["action"],
    },
}


class FactstoreProvider(MemoryProvider):  # type: ignore[misc, unused-ignore]
    """Memory provider ``factstore``.

    Args:
        configuration: What stands under ``plugins.factstore``: ``retrieval`` (see ``FactstoreSettings``),
            ``embedding`` (see ``RemoteSettings``; no channel without it), ``default_trust``.

    Raises:
        ValueError: A setting is unknown or out of its range.
    """

    def __init__(self, configuration: Mapping[str, Any] | None = None) -> None:
        given = dict(configuration or {})
        self._settings = FactstoreSettings.from_mapping(given.pop("retrieval", None) or {})
        remote = given.pop("embedding", None)
        self._remote = RemoteSettings(**remote) if remote else None
        self._default_trust = float(given.pop("default_trust", 0.5))
        given.pop("enabled", None)
        if given:
            raise ValueError(f"plugins.{NAME} has no setting {sorted(given)[0]!r}")
        # The agent calls from several threads; one connection and one lock keep their order.
        self._lock = threading.RLock()
        self._connections: list[sqlite3.Connection] = []
        self._store: FactStore | None = None
        self._retriever: Retriever | None = None
        self._writes = True

    @property
    def name(self) -> str:
        """The name under ``memory.provider``."""
        return NAME

    def is_available(self) -> bool:
        """SQLite is all it needs."""
        return True

    def initialize(self, session_id: str, **kwargs: Any) -> None:
        """Opens the store in the agent's home; the first time it takes over the facts of upstream's store.

        Raises:
            StoreUnreadable: A store is there that cannot be used.
        """
        del session_id
        home = Path(kwargs["hermes_home"])
        with self._lock:
            self.shutdown()
            # Cron jobs and sub-agents have prompts of their own, which are nothing the user said.
            self._writes = kwargs.get("agent_context", "primary") in ("", "primary")
            path = home / DATABASE
            if not path.exists() and (home / UPSTREAM_DATABASE).exists():
                copy_store(home / UPSTREAM_DATABASE, path)
            facts = open_store(path)
            self._connections.append(facts)
            channel = None
            if self._remote:
                vectors = sqlite3.connect(home / VECTORS, check_same_thread=False, isolation_level=None)
                self._connections.append(vectors)
                channel = RemoteChannel(self._remote, facts, vectors)
            self._store = FactStore(facts, self._default_trust)
            self._retriever = Retriever(facts, self._settings, channel)

    def system_prompt_block(self) -> str:
        """Tells the model that there is a store; static, so that the prompt's prefix stays cached."""
        return "# Fact store\nFacts that fit the turn are put before it. Use fact_store to add, search, list or remove."

    def prefetch(self, query: str, *, session_id: str = "") -> str:
        """The facts for a turn, at most five, a line each with author and trust; empty where none was found."""
        del session_id
        with self._lock:
            if self._retriever is None:
                return ""
            found = self._retriever.search(query, INJECTED).found
        # A fact is one line: a line break in it could otherwise begin a heading or a fact of its own.
        lines = [f"- [{fact.author}, trust {fact.trust:.2f}] {' '.join(fact.content.split())}" for fact in found]
        return "\n".join(["## Facts", *lines]) if lines else ""

    def get_tool_schemas(self) -> list[dict[str, Any]]:
        """The one tool."""
        return [TOOL]

    def handle_tool_call(self, tool_name: str, args: dict[str, Any], **kwargs: Any) -> str:
        """Runs the tool; whatever the model asks for wrongly is answered with an error that it can read."""
        del kwargs
        if tool_name != TOOL["name"]:
            return _error(f"unknown tool {tool_name}")
        with self._lock:
            if self._store is None or self._retriever is None:
                return _error("the fact store is not open")
            try:
                return json.dumps(self._run(self._store, self._retriever, args), ensure_ascii=False)
            except KeyError as error:
                return _error(f"{error.args[0]} is missing")
            except (FactRefused, TypeError, ValueError, sqlite3.Error) as error:
                return _error(str(error))

    def _run(self, store: FactStore, retriever: Retriever, args: Mapping[str, Any]) -> dict[str, Any]:
        action = args["action"]
        limit = min(max(int(args.get("limit", 10)), 1), _LISTED)
        if action == "search":
            return {"facts": [_shown(fact) for fact in retriever.search(str(args["query"]), limit).found]}
        if action == "list":
            return {"facts": [fact.as_dict() for fact in store.list(limit)]}
        if action not in ("add", "remove"):
            raise FactRefused("action is one of add, search, list, remove")
        if not self._writes:
            raise FactRefused("this context only reads")
        if action == "remove":
            return {"removed": store.remove(int(args["fact_id"]))}
        content = str(args["content"])[:_CONTENT_CHARACTERS]
        if kind := find_secret(content):
            raise FactRefused(f"the fact holds a secret ({kind})")
        author, tags = str(args.get("author", "agent")), str(args.get("tags", ""))
        return {"fact_id": store.add(content, author=author, tags=tags)}

    def on_memory_write(
        self, action: str, target: str, content: str, metadata: Mapping[str, Any] | None = None
    ) -> None:
        """Follows the agent's memory files: what is added is a fact, what is removed or replaced is none any more.

        The agent wrote it, so the agent is its author, also where it is about the user.
        """
        del target
        with self._lock:
            if self._store is None or not self._writes:
                return
            old = str((metadata or {}).get("old_text") or (content if action == "remove" else ""))
            if old and action in ("remove", "replace") and (known := self._store.find(old)) is not None:
                self._store.remove(known)
            if action in ("add", "replace") and content.strip() and not find_secret(content):
                self._store.add(content[:_CONTENT_CHARACTERS], author="agent")

    def shutdown(self) -> None:
        """Closes everything; may be called twice."""
        with self._lock:
            self._store = self._retriever = None
            while self._connections:
                self._connections.pop().close()


def configuration() -> dict[str, Any]:
    """What stands under ``plugins.factstore`` in the agent's configuration."""
    from hermes_cli.config import load_config  # type: ignore[import-not-found, unused-ignore] # noqa: PLC0415

    plugins = load_config().get("plugins")
    own = plugins.get(NAME) if isinstance(plugins, Mapping) else None
    return dict(own) if isinstance(own, Mapping) else {}


def _shown(fact: Any) -> dict[str, Any]:
    return {name: getattr(fact, name) for name in ("fact_id", "content", "author", "trust", "score")}


def _error(message: str) -> str:
    return json.dumps({"error": message}, ensure_ascii=False)
