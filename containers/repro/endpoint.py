"""Stands for the model: answers an agent's requests with the answers that were recorded, in their order.

Standard library only. Usage: endpoint.py ANSWERS PHASE SOCKET LOG. A request is matched by its class (foreground turn,
background review, compression, …) and by how many of that class came before it. A request that was not recorded is a
difference: it is told, written to LOG, and ends this program, and with it the run. Nothing of what a request says is
ever executed.
"""

import json
import os
import re
import socketserver
import sys
import threading
from http.server import BaseHTTPRequestHandler

CHAT = "/v1/chat/completions"
MAX_REQUEST_BYTES = 64 << 20
DIFFERENT = 3


def fold(text):
    """The letters and digits of a text."""
    return re.sub(r"[\W_]+", "", text)


def text_of(message):
    """The plain text of a message."""
    content = message.get("content")
    if isinstance(content, list):
        return "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def is_delivered(text, delivered, long_enough):
    """Whether a message is, or holds, what the user typed: that is never the agent's own prompt."""
    if text in delivered:
        return True
    folded = fold(text)
    turns = [fold(turn) for turn in delivered]
    return any(turn == folded or (len(turn) >= long_enough and turn in folded) for turn in turns)


def is_review(messages, signals, delivered):
    """Whether the request is of a background review: its last prompt is the agent's own."""
    for message in reversed(messages):
        text = text_of(message)
        if message.get("role") != "user":
            continue
        if is_delivered(text, delivered, signals["long_enough"]):
            return False
        if text.lstrip().startswith(tuple(signals["review_openings"])) and signals["review_closing"] in text:
            return True
    return False


def classify(request, signals, delivered):
    """What a request is for."""
    messages, tools = request["messages"], request.get("tools")
    if not messages:
        return "probe"
    if is_review(messages, signals, delivered):
        return "review"
    users = [text_of(m) for m in messages if m.get("role") == "user"]
    systems = [text_of(m) for m in messages if m.get("role") == "system"]
    if len(users) == 1 and not tools and users[0].lstrip().startswith(signals["compression_opening"]):
        return "compression"
    if any(text.lstrip().startswith(signals["title_opening"]) for text in systems):
        return "title"
    if any(signals["delegate_phrase"] in text for text in systems):
        return "delegate"
    return "foreground" if tools else "auxiliary"


class Difference(Exception):
    """A request that was not recorded; the message says in what it differs."""


class Replay:
    """The recorded answers of one phase, and how far they have been given."""

    def __init__(self, recording, phase, log):
        self.signals, self.delivered = recording["signals"], recording["delivered"]
        self.answers, self.pages = recording["phases"][phase]["answers"], recording["phases"][phase]["pages"]
        self.log, self.lock = log, threading.Lock()
        recorded = {}
        for answer in self.answers:
            recorded.setdefault(answer["kind"], []).append(answer)
        self.recorded = recorded
        self.state = {
            "answered": {},
            "recorded": {k: len(v) for k, v in recorded.items()},
            "notes": [],
            "difference": "",
        }
        self.save()

    def save(self):
        """Writes the state in one step."""
        with open(self.log + ".part", "w", encoding="utf-8") as stream:
            json.dump(self.state, stream, indent=1)
        os.replace(self.log + ".part", self.log)

    def answer(self, method, path, body):
        """The recorded answer to a request."""
        with self.lock:
            try:
                found = self.chat(body) if (method, path.split("?")[0]) == ("POST", CHAT) else self.page(method, path)
            except Difference as difference:
                self.state["difference"] = str(difference)
                raise
            finally:
                self.save()
        return found["status"], found["type"], found["body"].encode("utf-8")

    def page(self, method, path):
        """The answer to a request for anything but a chat completion; those are the same however often asked."""
        for page in self.pages:
            if (page["method"], page["path"]) == (method, path):
                return page
        raise Difference(f"{method} {path[:200]!r} was never asked in the recording")

    def chat(self, body):
        """The next answer of the request's class."""
        try:
            request = json.loads(body)
            kind = classify(request, self.signals, self.delivered)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise Difference(f"a request is no chat completion: {type(error).__name__}") from error
        given, recorded = self.state["answered"].get(kind, 0), self.recorded.get(kind, [])
        if given >= len(recorded):
            raise Difference(f"request {given + 1} of class {kind}: the recording holds {len(recorded)}")
        answer = recorded[given]
        if bool(request.get("stream")) is not answer["stream"]:
            asked, had = ("a stream" if s else "one object" for s in (request.get("stream"), answer["stream"]))
            raise Difference(f"request {given + 1} of class {kind} asks for {asked}, the recorded one for {had}")
        if len(request["messages"]) != answer["messages"]:
            had, has = answer["messages"], len(request["messages"])
            self.state["notes"].append(
                f"request {given + 1} of class {kind} has {has} messages, the recorded one {had}"
            )
        self.state["answered"][kind] = given + 1
        return answer


class Handler(BaseHTTPRequestHandler):
    """Takes one HTTP request after the other from a connection."""

    protocol_version = "HTTP/1.1"

    def handle_any(self):
        """Answers any request."""
        length = int(self.headers.get("content-length") or 0)
        try:
            if length > MAX_REQUEST_BYTES or "chunked" in self.headers.get("transfer-encoding", ""):
                raise Difference("a request is too large, or of unknown length")
            status, kind, body = self.server.replay.answer(self.command, self.path, self.rfile.read(length))
        except Difference as difference:
            print(f"endpoint: DIFFERENT from the recording: {difference}", file=sys.stderr, flush=True)
            os._exit(DIFFERENT)
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_HEAD = do_PUT = do_DELETE = handle_any  # noqa: N815

    def log_message(self, *_):
        """Says nothing: a path is text of unknown origin."""


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    """An HTTP server on a unix socket."""

    daemon_threads = True
    replay = None


def main():
    """Runs until it is killed, or a request differs."""
    answers, phase, socket_path, log = sys.argv[1:5]
    with open(answers, encoding="utf-8") as stream:
        replay = Replay(json.load(stream), phase, os.path.abspath(log))
    # The kernel takes no more than 107 bytes of a socket's path.
    os.chdir(os.path.dirname(os.path.abspath(socket_path)))
    with Server(os.path.basename(socket_path), Handler) as server:
        os.chmod(os.path.basename(socket_path), 0o666)  # the agent may have another user id
        server.replay = replay
        server.serve_forever()


if __name__ == "__main__":
    main()
