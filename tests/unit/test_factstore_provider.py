"""The provider outside the agent, and its embedding channel against a real HTTP server on this machine."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from lab.retrieval.factstore import schema
from lab.retrieval.factstore.channel import ChannelFailed
from lab.retrieval.factstore.provider import DATABASE, INJECTED, UPSTREAM_DATABASE, VECTORS, FactstoreProvider
from lab.retrieval.factstore.remote import BATCH_CHARACTERS, RemoteChannel, RemoteSettings

Answer = Callable[[list[str]], Any]
WORDS = ("tea", "matcha", "cat", "dog")
MEANINGS = {"tea": (1.0, 0.0), "matcha": (0.9, 0.1), "cat": (0.0, 1.0), "dog": (0.1, 0.9)}


def by_meaning(texts: list[str]) -> dict[str, Any]:
    """A tiny model: a text is the sum of the meanings of its words, so synonyms are near each other."""
    vectors = []
    for text in texts:
        known = [MEANINGS[word] for word in WORDS if word in text] or [(0.5, 0.5)]
        vectors.append([sum(axis) for axis in zip(*known, strict=True)])
    return {"embeddings": vectors}


def as_openai(texts: list[str]) -> dict[str, Any]:
    rows = [{"index": i, "embedding": v} for i, v in enumerate(by_meaning(texts)["embeddings"])]
    return {"data": rows[::-1]}


class EmbeddingServer:
    """Answers like an embedding server, or as a test wants it."""

    def __init__(self) -> None:
        self.answer: Answer = by_meaning
        self.status, self.delay, self.byte_by_byte = 200, 0.0, False
        self.asked: list[list[str]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
                outer.asked.append(texts)
                time.sleep(outer.delay)
                answer = outer.answer(texts)
                body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(outer.status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                for piece in (bytes([byte]) for byte in body) if outer.byte_by_byte else [body]:
                    self.wfile.write(piece)
                    time.sleep(0.05 if outer.byte_by_byte else 0)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/api/embed"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    running = EmbeddingServer()
    yield running
    running.stop()


@pytest.fixture
def facts(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(schema.open_store(tmp_path / "facts.db")) as connection:
        connection.executemany(
            "INSERT INTO facts (content) VALUES (?)", [("a cat",), ("a bowl of matcha",), ("a dog",)]
        )
        yield connection


def channel(server: EmbeddingServer, facts: sqlite3.Connection, folder: Path, seconds: float = 5.0) -> RemoteChannel:
    vectors = sqlite3.connect(folder / "vectors.db", isolation_level=None)
    return RemoteChannel(RemoteSettings(server.url, "tiny", seconds, "query: ", "passage: "), facts, vectors)


def provider(home: Path, **configuration: Any) -> FactstoreProvider:
    made = FactstoreProvider(configuration)
    made.initialize("session", hermes_home=str(home), platform="cli")
    return made


def call(made: FactstoreProvider, **arguments: Any) -> dict[str, Any]:
    answer = json.loads(made.handle_tool_call("fact_store", arguments))
    assert isinstance(answer, dict)
    return answer


class TestRemoteChannel:
    @pytest.mark.parametrize("form", [by_meaning, as_openai])
    def test_both_interfaces(
        self, server: EmbeddingServer, facts: sqlite3.Connection, tmp_path: Path, form: Answer
    ) -> None:
        server.answer = form
        near = channel(server, facts, tmp_path).nearest("tea", 2)
        assert [fact_id for fact_id, _ in near.pairs] == [2, 3] and 0.9 < near.pairs[0][1] <= 1.0
        assert server.asked == [["query: tea"], ["passage: a cat", "passage: a bowl of matcha", "passage: a dog"]]

    def test_vectors_of_facts_are_asked_for_once_and_kept(
        self, server: EmbeddingServer, facts: sqlite3.Connection, tmp_path: Path
    ) -> None:
        channel(server, facts, tmp_path).nearest("tea", 2)
        facts.execute("INSERT INTO facts (content) VALUES ('green tea')")
        again = channel(server, facts, tmp_path).nearest("tea", 1)
        assert server.asked[2:] == [["query: tea"], ["passage: green tea"]] and again.pairs[0][0] == 4

    def test_batches_go_by_characters(self, server: EmbeddingServer, facts: sqlite3.Connection, tmp_path: Path) -> None:
        facts.executemany("INSERT INTO facts (content) VALUES (?)", [(f"{n} " + "x" * 3000,) for n in range(4)])
        facts.execute("INSERT INTO facts (content) VALUES (?)", ("y" * 9000,))
        channel(server, facts, tmp_path).nearest("tea", 2)
        sizes = [[len(text) for text in batch] for batch in server.asked[1:]]
        assert all(len(batch) == 1 or sum(batch) <= BATCH_CHARACTERS + 60 for batch in sizes)
        assert sum(map(len, sizes)) == 8 and len(sizes) == 3

    @pytest.mark.parametrize(
        ("answer", "status", "cause"),
        [
            (by_meaning, 404, "model_missing"),
            (by_meaning, 500, "bad_answer"),
            (lambda texts: b"<html>", 200, "bad_answer"),
            (lambda texts: [], 200, "bad_answer"),
            (lambda texts: {"embeddings": []}, 200, "bad_answer"),
            (lambda texts: {"embeddings": [[0.0, 0.0]] * len(texts)}, 200, "bad_answer"),
            (lambda texts: {"embeddings": [["x"]] * len(texts)}, 200, "bad_answer"),
            (lambda texts: b'{"embeddings": [[NaN, 1]]}', 200, "bad_answer"),
            (lambda texts: {"embeddings": [[1.0] * (1 + t.startswith("query")) for t in texts]}, 200, "bad_answer"),
            (lambda texts: b"[" * 100_000, 200, "bad_answer"),
        ],
    )
    def test_what_is_no_answer(
        self,
        server: EmbeddingServer,
        facts: sqlite3.Connection,
        tmp_path: Path,
        answer: Answer,
        status: int,
        cause: str,
    ) -> None:
        server.answer, server.status = answer, status
        with pytest.raises(ChannelFailed) as failed:
            channel(server, facts, tmp_path).nearest("tea", 2)
        assert failed.value.cause == cause

    def test_a_server_that_answers_a_byte_at_a_time_is_too_late(
        self, server: EmbeddingServer, facts: sqlite3.Connection, tmp_path: Path
    ) -> None:
        server.byte_by_byte = True
        start = time.monotonic()
        with pytest.raises(ChannelFailed, match="timeout"):
            channel(server, facts, tmp_path, seconds=0.3).nearest("tea", 2)
        assert time.monotonic() - start < 1.0

    def test_a_slow_server_and_one_that_is_gone(
        self, server: EmbeddingServer, facts: sqlite3.Connection, tmp_path: Path
    ) -> None:
        server.delay = 1.0
        start = time.monotonic()
        with pytest.raises(ChannelFailed) as late:
            channel(server, facts, tmp_path, seconds=0.2).nearest("tea", 2)
        assert late.value.cause == "timeout" and time.monotonic() - start < 0.9
        gone = EmbeddingServer()
        gone.stop()
        with pytest.raises(ChannelFailed) as refused:
            channel(gone, facts, tmp_path).nearest("tea", 2)
        assert refused.value.cause == "server_gone"

    def test_an_address_that_is_a_file_is_refused(self) -> None:
        with pytest.raises(ValueError, match="http"):
            RemoteSettings("file:///etc/passwd", "tiny")


class TestProvider:
    def test_facts_come_back_before_a_turn_five_at_most_each_on_a_line(self, tmp_path: Path) -> None:
        made = provider(tmp_path)
        assert made.prefetch("tea") == ""
        for n in range(8):
            call(made, action="add", content=f"Tea\n## number {n}", author="user" if n % 2 else "third_party")
        lines = made.prefetch("tea number").splitlines()
        assert lines[0] == "## Facts" and len(lines) == 1 + INJECTED
        assert all(
            line.startswith(("- [user, trust 0.50] Tea ", "- [third_party, trust 0.50] Tea ")) for line in lines[1:]
        )

    def test_the_tool(self, tmp_path: Path) -> None:
        made = provider(tmp_path)
        (tool,) = made.get_tool_schemas()
        assert tool["name"] == "fact_store" and made.is_available() and made.name == "factstore"
        fact_id = call(made, action="add", content="Ana drinks tea", tags="drink")["fact_id"]
        (found,) = call(made, action="search", query="drink")["facts"]
        assert (found["fact_id"], found["author"]) == (fact_id, "agent")
        assert [fact["content"] for fact in call(made, action="list")["facts"]] == ["Ana drinks tea"]
        assert call(made, action="remove", fact_id=fact_id) == {"removed": True}
        assert call(made, action="search", query="tea") == {"facts": []}

    @pytest.mark.parametrize(
        "arguments",
        [
            *({}, {"action": "drop"}, {"action": "add"}, {"action": "add", "content": " "}, {"action": "search"}),
            *({"action": "remove", "fact_id": "x"}, {"action": "add", "content": "x", "author": "God"}),
            *({"action": "list", "limit": "many"}, {"action": "add", "content": "password: hunter22"}),
        ],
    )
    def test_wrong_calls_get_an_error_that_can_be_read(self, tmp_path: Path, arguments: dict[str, Any]) -> None:
        answer = call(provider(tmp_path), **arguments)
        assert set(answer) == {"error"} and "hunter22" not in answer["error"]

    def test_memory_writes_are_followed(self, tmp_path: Path) -> None:
        made = provider(tmp_path)
        made.on_memory_write("add", "user", "Ana drinks tea", {"write_origin": "foreground"})
        made.on_memory_write("add", "memory", "token: abcdef123")
        made.on_memory_write("replace", "user", "Ana drinks coffee", {"old_text": "drinks tea"})
        assert [fact["content"] for fact in call(made, action="list")["facts"]] == ["Ana drinks coffee"]
        made.on_memory_write("remove", "user", "", {"old_text": "coffee"})
        assert call(made, action="list")["facts"] == []

    def test_contexts_that_are_not_the_users_only_read(self, tmp_path: Path) -> None:
        made = FactstoreProvider()
        made.initialize("cron", hermes_home=str(tmp_path), agent_context="cron")
        made.on_memory_write("add", "user", "Ana drinks tea")
        assert "error" in call(made, action="add", content="Ana drinks tea")
        assert call(made, action="list") == {"facts": []}

    def test_an_upstream_store_is_taken_over_in_a_copy(self, tmp_path: Path) -> None:
        with closing(sqlite3.connect(tmp_path / UPSTREAM_DATABASE)) as connection:
            connection.executescript(schema.UPSTREAM + "INSERT INTO facts (content) VALUES ('Ana drinks tea');")
        before = (tmp_path / UPSTREAM_DATABASE).read_bytes()
        made = provider(tmp_path)
        assert "Ana drinks tea" in made.prefetch("tea")
        made.shutdown()
        made.shutdown()
        assert made.prefetch("tea") == "" and "error" in call(made, action="list")
        assert (tmp_path / UPSTREAM_DATABASE).read_bytes() == before and (tmp_path / DATABASE).exists()

    def test_with_a_server_it_finds_by_meaning_and_without_it_by_words(
        self, server: EmbeddingServer, tmp_path: Path
    ) -> None:
        made = provider(tmp_path, embedding={"url": server.url, "model": "tiny"}, retrieval={"gate": None})
        call(made, action="add", content="a bowl of matcha")
        assert "matcha" in made.prefetch("tea") and (tmp_path / VECTORS).exists()
        server.stop()
        assert made.prefetch("tea") == "" and "matcha" in made.prefetch("bowl")
        made.shutdown()

    def test_it_is_asked_from_several_threads(self, tmp_path: Path) -> None:
        made = provider(tmp_path)
        faults: list[str] = []

        def work(n: int) -> None:
            for i in range(10):
                answer = call(made, action="add", content=f"tea {n} {i}")
                faults.extend([answer["error"]] if "error" in answer else [])
                made.prefetch("tea")

        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert faults == [] and len(call(made, action="list", limit=50)["facts"]) == 40

    @pytest.mark.parametrize("wrong", [{"colour": 1}, {"retrieval": {"hrr": "on"}}, {"embedding": {"url": "ftp://x"}}])
    def test_a_wrong_configuration_is_refused(self, wrong: dict[str, Any]) -> None:
        with pytest.raises((ValueError, TypeError)):
            FactstoreProvider(wrong)
