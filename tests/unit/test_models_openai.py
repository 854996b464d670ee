"""OpenAI-compatible servers against answers in the shapes of several products, over real HTTP; none is the product."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from lab.errors import EnvironmentUnusable, InputError
from lab.models import openai as module
from lab.models.failures import MASK, OLLAMA_KEY_VARIABLE, Cause, ServerFailed, mask_key, one_line, said_by
from lab.models.identify import identify
from lab.models.identity import Ability, LiveModel, Sampling
from lab.models.openai import KEY_VARIABLE, OpenAIServer, read_key, short_number
from lab.models.probe import TOOL, WORD, probe_tools
from lab.models.products import NOT_LISTED, OLLAMA_CUTS
from lab.models.spec import parse_model
from lab.records import digest

KEY = "sk-test-0123456789"
MODELS, CHAT = "/v1/models", "/v1/chat/completions"
CALL = {"id": "1", "type": "function", "function": {"name": TOOL.name, "arguments": json.dumps({"text": WORD})}}


@dataclass
class Answers:
    """A server whose answers a test has written: status and JSON, or bytes, by path; what it has not is 404."""

    routes: dict[str, Any] = field(default_factory=dict)
    turns: list[Any] = field(default_factory=list)
    asked: list[tuple[str, str, Any]] = field(default_factory=list)
    key: str = ""
    url: str = ""
    released: threading.Event = field(default_factory=threading.Event)

    def answer(self, path: str, key: str) -> tuple[int, Any]:
        if self.key and key != f"Bearer {self.key}":
            return 401, {"error": {"message": f"Incorrect API key provided: {key}"}}
        if path == CHAT and self.turns:
            turn = self.turns.pop(0)
            return turn if isinstance(turn, tuple) else (200, turn)
        found = self.routes.get(path, (404, {"error": {"message": "File Not Found"}}))
        return found if isinstance(found, tuple) else (200, found)


class Handler(BaseHTTPRequestHandler):
    answers: Answers

    def do_GET(self) -> None:
        self.reply(None)

    def do_POST(self) -> None:
        self.reply(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def reply(self, body: Any) -> None:
        key = self.headers.get("Authorization", "")
        self.answers.asked.append((self.path, key, body))
        status, answer = self.answers.answer(self.path, key)
        if answer == "hang":
            self.answers.released.wait(30)
            return
        data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        if status in (301, 302):
            self.send_header("Location", "http://127.0.0.1:9/stolen")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def answering() -> Iterator[Answers]:
    answers = Answers()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Own", (Handler,), {"answers": answers}))
    server.daemon_threads = True
    answers.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield answers
    finally:
        answers.released.set()
        server.shutdown()
        server.server_close()


@pytest.fixture
def answers() -> Iterator[Answers]:
    with answering() as running:
        yield running


def listing(*ids: str, **extra: Any) -> dict[str, Any]:
    return {"object": "list", "data": [{"id": name, "object": "model", **extra} for name in ids]}


def completion(text: str | None = None, calls: list[Any] | None = None, **extra: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}
    ended = "tool_calls" if calls else "stop"
    return {
        "choices": [{"index": 0, "finish_reason": extra.pop("ended", ended), "message": message}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 10, "total_tokens": 19},
        **extra,
    }


def who(answers: Answers, *, probe: bool = False, name: str = "m", **options: Any) -> LiveModel:
    spec = parse_model(f"openai:{name}@{answers.url}")
    return identify(spec, sampling=Sampling(), probe=probe, seconds=2, **options)


def failed(answers: Answers, **options: Any) -> ServerFailed:
    with pytest.raises(ServerFailed) as caught:
        who(answers, **options)
    assert caught.value.mend
    assert "\n" not in str(caught.value)
    return caught.value


# ---- products ----


def test_llama_cpp_tells_the_context_of_one_slot(answers: Answers) -> None:
    meta = {"n_ctx": 8192, "n_ctx_train": 32768, "n_params": 8_190_000_000, "size": 1, "ftype": "Q4_K_M"}
    answers.routes[MODELS] = listing("path/to.gguf", owned_by="llamacpp", aliases=["m"], meta=meta)
    answers.routes["/props"] = {
        "default_generation_settings": {"n_ctx": 4096}, "build_info": "b9999-abc", "chat_template": "{{ x }}"
    }  # fmt: skip
    model = who(answers)
    assert (model.server, model.quantisation, model.parameters) == ("llama.cpp b9999-abc", "Q4_K_M", "8.2B")
    assert (model.context, model.context_source) == (4096, "/props n_ctx")
    assert model.template_sha256 == digest(b"{{ x }}")
    assert model.digest == ""
    del answers.routes["/props"]
    assert (who(answers).context, who(answers).context_source) == (8192, "/v1/models meta.n_ctx")


def test_vllm(answers: Answers) -> None:
    answers.routes[MODELS] = listing("m", owned_by="vllm", root="org/m", max_model_len=16384)
    answers.routes["/version"] = {"version": "0.10.2"}
    model = who(answers)
    assert (model.server, model.context, model.context_source) == (
        "vllm 0.10.2", 16384, "/v1/models max_model_len",
    )  # fmt: skip


def test_lm_studio_tells_only_of_what_is_loaded(answers: Answers) -> None:
    answers.routes[MODELS] = listing("m", owned_by="organization_owner")
    row = {"id": "m", "quantization": "4bit", "max_context_length": 32768, "state": "not-loaded"}
    answers.routes["/api/v0/models"] = {"data": [7, {"id": "other"}, row]}
    model = who(answers)
    assert (model.server, model.quantisation, model.context) == ("LM Studio", "4bit", None)
    assert "lms load" in model.notes[0]
    row["loaded_context_length"] = 4096
    model = who(answers)
    assert (model.context, model.context_source) == (4096, "/api/v0/models loaded_context_length")


def test_ollama_behind_openais_protocol_is_named_and_warned_of(answers: Answers) -> None:
    answers.routes[MODELS] = listing("m", owned_by="library")
    answers.routes["/api/version"] = {"version": "0.0.0-shim"}
    model = who(answers)
    assert (model.server, model.context, model.notes) == ("not Ollama (0.0.0-shim)", None, (OLLAMA_CUTS,))


@pytest.mark.parametrize("field_name", ["context_length", "context_window", "max_context_length"])
def test_other_servers_context_is_taken_from_their_list(answers: Answers, field_name: str) -> None:
    answers.routes[MODELS] = listing("m", owned_by="some org\x1b[31m", **{field_name: 131072})
    model = who(answers)
    assert (model.server, model.context, model.context_source) == ("", 131072, f"/v1/models {field_name}")
    assert model.notes == ("the server does not tell what product it is (models of some org)",)
    assert who(answers, context=9000).context == 9000
    assert who(answers, context=999_999).context == 131072


@pytest.mark.parametrize("nonsense", [0, -5, 10**30])
def test_a_context_that_is_none_is_not_taken(answers: Answers, nonsense: int) -> None:
    answers.routes[MODELS] = listing("m", max_model_len=nonsense)
    assert (who(answers).context, who(answers).context_source) == (None, "")


def test_a_server_without_a_list_is_asked_all_the_same(answers: Answers) -> None:
    answers.routes[CHAT] = completion(None, [CALL])
    model = who(answers, probe=True)
    assert model.tools is Ability.YES
    assert NOT_LISTED in model.notes


# ---- what goes wrong ----


def test_an_unknown_model_is_named_beside_what_there_is(answers: Answers) -> None:
    answers.routes[MODELS] = listing(*(f"m{n}" for n in range(20)), "\x1b[2Jevil\nline")
    error = failed(answers, name="nope")
    assert error.cause is Cause.MISSING
    assert error.message == f"{answers.url} has no model nope"
    assert error.mend.startswith("one of: evil␤line, m0, m1")
    assert error.mend.endswith("and 15 more")


def test_a_hostile_list_is_made_printable(answers: Answers) -> None:
    meta = {"ftype": "\x1b[31m" + "Q" * 99, "n_params": 3_000_000_000}
    answers.routes[MODELS] = listing("\x1b]0;owned\x07evil\n" + "x" * 999, meta=meta, max_model_len=10**30)
    (found,) = OpenAIServer(answers.url).listed()
    assert found.name.startswith("evil␤xxx")
    assert (len(found.name), len(found.quantisation), found.parameters, found.context) == (200, 20, "3.0B", None)


def test_a_refused_key_says_where_the_key_belongs_and_does_not_show_it(answers: Answers) -> None:
    answers.key = KEY
    answers.routes[MODELS] = listing("m")
    error = failed(answers, key="sk-wrong")
    assert (error.cause, error.status) == (Cause.KEY_REFUSED, 401)
    assert KEY_VARIABLE in error.mend
    assert "sk-wrong" not in str(error)
    assert who(answers, key=KEY).name == "m"
    assert KEY not in who(answers, key=KEY).model_dump_json()


@pytest.mark.parametrize("escaped", [KEY, KEY.replace("-", "\\u002d")], ids=["plain", "escaped"])
@pytest.mark.parametrize(
    "turn",
    [
        (500, {"error": {"message": "no tool for Bearer KEY"}}),
        completion("your key is KEY"),
        completion(calls=[{"function": {"name": "KEY", "arguments": "{}"}}]),
        (500, b"Bearer KEY, and no JSON"),
    ],
    ids=["error", "words", "call", "bytes"],
)
def test_a_key_that_a_server_echoes_is_kept_nowhere(answers: Answers, turn: Any, escaped: str) -> None:
    status, answer = turn if isinstance(turn, tuple) else (200, turn)
    data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
    answers.routes[MODELS] = listing("m", owned_by=KEY)
    answers.turns = [(status, data.replace(b"KEY", escaped.encode()))] * 2
    model = who(answers, key=KEY, probe=True)
    assert KEY not in model.model_dump_json() and escaped not in model.tools_detail
    assert MASK in model.tools_detail and any(MASK in note for note in model.notes)


def test_a_key_among_the_names_of_models_is_not_shown(answers: Answers) -> None:
    answers.routes[MODELS] = listing(KEY, "other")
    assert [model.name for model in OpenAIServer(answers.url, KEY).listed()] == [MASK, "other"]
    error = failed(answers, key=KEY)
    assert KEY not in error.mend and MASK in error.mend
    assert KEY in failed(answers).mend, "without the key it is a name like another"


def test_every_form_of_a_key_is_found_and_nothing_like_it(monkeypatch: pytest.MonkeyPatch) -> None:
    key = 'k/"é\\-0123'
    for form in (
        key,
        json.dumps(key),
        json.dumps(json.dumps(key)),
        "k\\/%22%C3%a9%5C-0123",
        key.replace("k", "\\u006B"),
    ):
        masked = mask_key(f"a {form} b", key)
        assert MASK in masked and "0123" not in masked, form
    assert mask_key("a k/other-0123 b", key) == "a k/other-0123 b"
    assert mask_key("an ollama model", "ollama") == "an ollama model", "too short to be one"
    monkeypatch.setenv(OLLAMA_KEY_VARIABLE, KEY)
    assert one_line(f"Ollama says {KEY}") == f"Ollama says {MASK}"


def test_the_key_goes_only_to_the_server_that_was_named(answers: Answers) -> None:
    answers.routes[MODELS] = (302, {})
    error = failed(answers, key=KEY)
    assert (error.cause, error.status) == (Cause.REFUSED, 302)
    assert answers.asked == [(MODELS, f"Bearer {KEY}", None)]


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        (b"<html>hello</html>", Cause.GARBAGE),
        (b"[" * 100_000, Cause.GARBAGE),
        (b"\xff\xfe", Cause.GARBAGE),
        ({"models": []}, Cause.GARBAGE),
        ({"data": [{"id": None}]}, Cause.GARBAGE),
        ((500, {"error": {"message": "boom"}}), Cause.REFUSED),
        ((502, b"<html>Bad Gateway\n</html>"), Cause.REFUSED),
        ("hang", Cause.TIMEOUT),
    ],
)
def test_an_answer_that_is_none_is_named(answers: Answers, answer: Any, cause: Cause) -> None:
    answers.routes[MODELS] = answer
    assert failed(answers).cause is cause


def test_an_endless_answer_is_refused(answers: Answers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST_BODY", 1 << 20)
    answers.routes[MODELS] = b" " * (1 << 21)
    error = failed(answers)
    assert error.cause is Cause.GARBAGE
    assert "longer than 1 MiB" in error.message


def test_a_dead_address_is_named() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        spec = parse_model(f"openai:m@http://127.0.0.1:{held.getsockname()[1]}/v1")
        with pytest.raises(EnvironmentUnusable) as caught:
            identify(spec, sampling=Sampling(), seconds=2)
    assert caught.value.message.startswith("no server answers at 127.0.0.1:")
    assert caught.value.message.endswith(": Connection refused")


def test_a_scripted_model_is_none() -> None:
    with pytest.raises(InputError, match="no live model"):
        identify(parse_model("scripted:always-write"), sampling=Sampling())


# ---- the probe ----


@pytest.mark.parametrize(
    ("free", "forced", "tools", "words"),
    [
        (completion(None, [CALL]), None, Ability.YES, "called note with the text"),
        (completion("No."), completion("No."), Ability.NO, "answered in words: 'No.'; forced"),
        (completion("No."), completion(None, [CALL]), Ability.NO, "forced (tool_choice required): it calls"),
        (completion("No."), (400, {"error": {"message": "unknown tool_choice"}}), Ability.NO, "unknown tool_choice"),
        (completion(None, [{"function": {"name": TOOL.name, "arguments": '{"text": '}}]), completion("x"), Ability.NO,
         "no JSON object"),
        (completion(None, [{"function": {"name": TOOL.name, "arguments": "[1]"}}]), completion("x"), Ability.NO,
         "no JSON object"),
        (completion(None, [{"function": {"name": TOOL.name, "arguments": {"text": WORD}}}]), None, Ability.YES,
         "the text"),
        (completion("", ended="length"), None, Ability.UNKNOWN, "used up 512 tokens"),
        ((400, {"object": "error", "message": '"auto" tool choice requires --enable-auto-tool-choice'}), None,
         Ability.NO, "the server refuses tools: \"auto\" tool choice requires --enable-auto-tool-choice"),
        ((500, {"error": {"message": "tools param requires --jinja flag"}}), None, Ability.NO, "refuses tools"),
        ((400, {"error": {"message": "context too long"}}), None, Ability.UNKNOWN, "refused: "),
        ((429, {"error": {"message": "too many tool calls today"}}), None, Ability.UNKNOWN, "HTTP 429"),
        ((503, b"busy"), None, Ability.UNKNOWN, "HTTP 503: busy"),
        ({"choices": []}, None, Ability.UNKNOWN, "garbage: "),
        ({"choices": [{"message": "hello"}]}, None, Ability.UNKNOWN, "garbage: "),
    ],
)  # fmt: skip
def test_what_the_model_does_decides(answers: Answers, free: Any, forced: Any, tools: Ability, words: str) -> None:
    answers.routes[MODELS] = listing("m", owned_by="vllm")
    answers.turns += [free] if forced is None else [free, forced]
    model = who(answers, probe=True)
    assert model.tools is tools
    assert words in model.tools_detail
    assert answers.turns == [], "it is asked a second time only where that says more"
    bodies = [body for path, _, body in answers.asked if path == CHAT]
    assert [body["tool_choice"] for body in bodies] == ["auto", "required"][: len(bodies)]
    assert bodies[0]["tools"] == [TOOL.definition]


def test_a_probe_that_times_out_is_unknown(answers: Answers) -> None:
    answers.routes[CHAT] = "hang"
    found = probe_tools(OpenAIServer(answers.url), "m", Sampling(), seconds=0.3)
    assert found.tools is Ability.UNKNOWN
    assert found.detail.startswith("timeout: ")


def test_speed_is_by_the_servers_clock_or_by_the_wall(answers: Answers) -> None:
    timings = {"predicted_n": 30, "predicted_ms": 1500.0}
    answers.turns += [completion(None, [CALL], timings=timings), completion(None, [CALL])]
    server = OpenAIServer(answers.url)
    by_server = probe_tools(server, "m", Sampling())
    assert (by_server.tokens_per_second, by_server.clock) == (20.0, "the server's own clock")
    by_wall = probe_tools(server, "m", Sampling())
    assert by_wall.tokens_per_second is not None
    assert by_wall.tokens_per_second > 20
    assert by_wall.clock.startswith("wall time")


def test_the_newer_word_for_the_length_is_used_where_the_old_one_is_refused(answers: Answers) -> None:
    said = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    answers.turns += [(400, {"error": {"message": said}}), completion(None, [CALL])]
    assert probe_tools(OpenAIServer(answers.url), "m", Sampling()).tools is Ability.YES
    first, second = (body for path, _, body in answers.asked)
    assert (first["max_tokens"], second["max_completion_tokens"]) == (512, 512)
    assert "max_tokens" not in second


# ---- keys and small things ----


def test_a_key_comes_only_from_a_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    assert read_key() == ""
    monkeypatch.setenv(KEY_VARIABLE, f" {KEY}\n")
    assert read_key() == KEY
    with pytest.raises(InputError, match="MY_KEY holds no key"):
        read_key("MY_KEY")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"error": {"message": "a\nb"}}, "a␤b"),
        ({"error": "plain"}, "plain"),
        ({"detail": "Not Found"}, "Not Found"),
        ({"message": "m"}, "m"),
        ([1, 2], "[1, 2]"),
        ("x" * 999, "x" * 199 + "…"),
    ],
)
def test_what_an_error_says_is_one_bounded_line(body: Any, said: str) -> None:
    assert said_by(json.dumps(body).encode()) == said


def test_numbers_of_parameters() -> None:
    assert [short_number(n) for n in (None, 0, -1, 134_515_008, 8_190_000_000)] == ["", "", "", "134.5M", "8.2B"]
