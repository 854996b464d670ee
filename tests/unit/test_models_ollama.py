"""The official Ollama client against a protocol double over real HTTP. Nothing here says anything of Ollama itself."""

from __future__ import annotations

import json
import socket
import sys
import time
from collections.abc import Iterator
from typing import Any

import httpx
import jsonschema
import pytest

pytest.importorskip("ollama", reason="the models extra is not installed: pip install -e '.[models]'")

import ollama

from lab.cli import doctor
from lab.errors import EnvironmentUnusable
from lab.models import ollama as module
from lab.models.failures import Cause, ServerFailed
from lab.models.identify import DEFAULT_CONTEXT, identify
from lab.models.identity import Ability, LiveModel, Sampling
from lab.models.ollama import OllamaServer, sampling_options
from lab.models.probe import PROMPT, TOOL, WORD, probe_tools
from lab.models.server import Question
from lab.models.spec import parse_model
from lab.records import digest
from tests.doubles.ollama_double import (
    CHAT_MODEL,
    MAXIMUM_CONTEXT,
    MODEL,
    TEMPLATE,
    OllamaDouble,
    Turn,
    serving,
)
from tests.doubles.ollama_double import (
    DEFAULT_CONTEXT as DOUBLES_DEFAULT,
)
from tests.ollama_shapes import check, schema_of

CHAT_DIGEST = "c4" * 32
CALLED = Turn(calls=[(TOOL.name, {"text": WORD})])
NAME = f"{CHAT_MODEL}:latest"


@pytest.fixture
def double(monkeypatch: pytest.MonkeyPatch) -> Iterator[OllamaDouble]:
    with serving() as running:
        running.models[NAME] = CHAT_DIGEST
        monkeypatch.setenv("OLLAMA_HOST", running.url)
        yield running


@pytest.fixture
def server(double: OllamaDouble) -> OllamaServer:
    return OllamaServer(seconds=5)


def who(probe: bool = True, **options: Any) -> LiveModel:
    context = options.pop("context", None)
    return identify(parse_model(f"ollama:{CHAT_MODEL}"), sampling=Sampling(**options), context=context, probe=probe)


def failed(call: Any, *arguments: Any) -> ServerFailed:
    with pytest.raises(ServerFailed) as caught:
        call(*arguments)
    assert caught.value.message
    assert caught.value.mend
    assert "\n" not in str(caught.value)
    return caught.value


def silent(*_: object) -> None:
    pass


# ---- shapes: the double against Ollama's published description and the client's own types ----

CHAT = {"model": CHAT_MODEL, "messages": [{"role": "user", "content": "a b"}], "tools": [TOOL.definition]}
BODIES: dict[str, tuple[dict[str, Any], tuple[str, ...], type[Any]]] = {
    "/api/version": ({}, ("version",), dict),
    "/api/tags": ({}, ("models",), ollama.ListResponse),
    "/api/ps": ({}, ("models",), ollama.ProcessResponse),
    "/api/show": ({"model": CHAT_MODEL}, ("template", "details", "model_info", "capabilities"), ollama.ShowResponse),
    "/api/embed": ({"model": MODEL, "input": ["a"]}, ("embeddings",), ollama.EmbedResponse),
    "/api/chat": ({**CHAT, "stream": False}, ("message", "done", "done_reason", "eval_count"), ollama.ChatResponse),
}


@pytest.mark.parametrize("path", BODIES)
def test_the_double_answers_as_published(double: OllamaDouble, path: str) -> None:
    body, needed, client_type = BODIES[path]
    double.turns.append(Turn("some words", [(TOOL.name, {"text": WORD})], thinking="hm"))
    double.loaded[NAME] = DOUBLES_DEFAULT
    _, answer = double.answer(path, body)
    check(schema_of(path, "response"), answer, *needed)
    client_type(**answer)
    for rows in (answer["models"],) if "models" in answer else ():
        assert rows
        for row in rows:
            check("Ps" if path == "/api/ps" else "ModelSummary", row, "model", "digest", "details", "size")


def test_the_doubles_streams_are_as_published(double: OllamaDouble) -> None:
    double.turns.append(Turn("some words", [(TOOL.name, {"text": WORD})]))
    _, chunks = double.answer("/api/chat", CHAT)
    *pieces, last = chunks
    for piece in pieces:
        check("ChatStreamEvent", piece, "message", "done")
    check("ChatResponse", last, "done_reason", "eval_count", "prompt_eval_count")
    assert [piece["done"] for piece in chunks] == [False] * len(pieces) + [True]
    double.library["double-new"] = [10]
    for event in double.answer("/api/pull", {"model": "double-new"})[1]:
        check("StatusEvent", event, "status")
        ollama.ProgressResponse(**event)
    check("ErrorResponse", double.answer("/api/show", {"model": "nobody"})[1], "error")


@pytest.mark.parametrize(
    ("name", "planted"),
    [
        ("ChatResponse", {"model": 3}),
        ("ChatResponse", {"message": {"role": "assistant", "tool_calls": [{"function": {"arguments": {}}}]}}),
        ("ChatResponse", {"message": {"role": "assistant", "tool_calls": [{"function": {"name": "x", "args": {}}}]}}),
        ("StatusEvent", {"status": "pulling", "completed": "12"}),
        ("ListResponse", {"models": [{"name": "x", "digset": "typo"}]}),
        ("ChatRequest", {"messages": []}),
    ],
)
def test_the_check_of_shapes_sees_a_wrong_one(name: str, planted: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        check(name, planted)


def test_what_the_lab_sends_is_as_published(server: OllamaServer, double: OllamaDouble) -> None:
    double.library["double-new"] = [10]
    double.turns.append(CALLED)
    server.tell(CHAT_MODEL)
    server.pull("double-new", silent)
    probe_tools(server, CHAT_MODEL, Sampling(temperature=0, top_p=0.5, top_k=3, num_ctx=2048))
    for path in ("/api/show", "/api/pull", "/api/chat"):
        (body,) = double.asked(path)
        check(schema_of(path, "request"), body)
    (asked,) = double.asked("/api/chat")
    assert asked["options"] == {"temperature": 0, "top_p": 0.5, "top_k": 3, "num_ctx": 2048, "num_predict": 512}
    assert asked["messages"] == [{"role": "user", "content": PROMPT}]


# ---- list, show ----


def test_the_list_names_each_model_with_its_digest(server: OllamaServer) -> None:
    found = {model.name: model for model in server.listed()}
    assert set(found) == {f"{MODEL}:latest", NAME}
    chat = found[NAME]
    assert (chat.digest, chat.parameters, chat.quantisation, chat.size) == (CHAT_DIGEST, "0M", "F32", 1)
    assert server.version() == "not Ollama (0.0.0-shim)"


@pytest.mark.parametrize("version", ["0.6.5", "0.12.6-rc1"])
def test_a_real_version_is_called_ollama(double: OllamaDouble, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setattr("tests.doubles.ollama_double.VERSION", version)
    assert OllamaServer().version() == f"ollama {version}"


def test_identity_is_what_the_server_tells(double: OllamaDouble) -> None:
    double.turns.append(CALLED)
    model = who(num_ctx=2048)
    assert (model.name, model.url, model.server) == (CHAT_MODEL, double.url, "not Ollama (0.0.0-shim)")
    assert (model.digest, model.quantisation, model.parameters) == (CHAT_DIGEST, "F32", "0M")
    assert model.template_sha256 == digest(TEMPLATE.encode())
    assert (model.context, model.context_source) == (2048, "num_ctx sent")
    assert model.tools is Ability.YES
    assert model.decisive["digest"] == CHAT_DIGEST


@pytest.mark.parametrize(
    ("sent", "own", "probe", "given", "expected"),
    [
        (None, "", True, None, (DOUBLES_DEFAULT, "/api/ps context_length of the probe, the server's default")),
        (None, "", False, None, (None, "")),
        (None, "num_ctx                        3000\nstop \"x\"", False, None, (3000, "num_ctx of the model")),
        (2048, "num_ctx 3000", False, None, (2048, "num_ctx sent")),
        (20_000, "", False, None, (MAXIMUM_CONTEXT, "the model's own maximum, below the num_ctx sent")),
        (20_000, "", True, None, (MAXIMUM_CONTEXT, "the model's own maximum, below the num_ctx sent")),
        (None, "", False, 6000, (6000, "--context")),
        (2048, "", False, 6000, (2048, "num_ctx sent")),
        (2048, "", False, 2048, (2048, "num_ctx sent")),
        (20_000, "", False, 20_000, (MAXIMUM_CONTEXT, "the model's own maximum, below the num_ctx sent")),
        (2048, "", False, 1000, (1000, "--context")),
    ],
)  # fmt: skip
def test_the_context_is_what_is_sent_or_loaded_and_never_the_maximum(
    double: OllamaDouble, sent: int | None, own: str, probe: bool, given: int | None, expected: tuple[int | None, str]
) -> None:
    double.parameters[NAME] = own
    double.turns.append(CALLED)
    model = who(probe, num_ctx=sent, context=given)
    assert (model.context, model.context_source) == expected
    assert (DEFAULT_CONTEXT in model.notes) == (sent is None and not own and not probe)
    if sent == 20_000:
        assert [note for note in model.notes if "20000" in note] == ["num_ctx 20000 is sent, and 8192 is what there is"]
    if (sent, given) == (2048, 6000):
        assert any("--context 6000 is more" in note for note in model.notes)


def test_an_embedding_model_cannot_chat(double: OllamaDouble) -> None:
    with pytest.raises(EnvironmentUnusable, match=r"double-e5-small cannot chat.*embedding"):
        identify(parse_model(f"ollama:{MODEL}"), sampling=Sampling())


def test_a_model_without_a_probe_is_unknown_and_says_what_the_server_says(double: OllamaDouble) -> None:
    model = who(probe=False)
    assert model.tools is Ability.UNKNOWN
    assert model.tools_detail == "not probed; the server says that it can completion, tools"
    assert double.asked("/api/chat") == []


# ---- the probe ----


@pytest.mark.parametrize(
    ("turn", "tools", "words"),
    [
        (CALLED, Ability.YES, "called note with the text"),
        (Turn(calls=[(TOOL.name, {"text": "else"})]), Ability.YES, "another text"),
        (Turn("I will call it at once."), Ability.NO, "answered in words: 'I will call it at once.'"),
        (Turn('{"name": "note", "arguments": {"text": "otter40"}}'), Ability.NO, "answered in words"),
        (Turn(calls=[("search", {"text": WORD})]), Ability.NO, "'search', which was not offered"),
        (Turn(calls=[(TOOL.name, {})]), Ability.NO, "without its argument"),
        (Turn(""), Ability.NO, "answered nothing"),
        (Turn("", thinking="long", done_reason="length"), Ability.UNKNOWN, "used up 512 tokens"),
        (Turn("\x1b[31mred\nline " + "x" * 9999), Ability.NO, "redline"),
    ],
)
def test_what_the_model_does_decides(double: OllamaDouble, turn: Turn, tools: Ability, words: str) -> None:
    double.turns.append(turn)
    model = who()
    assert model.tools is tools
    assert words in model.tools_detail.replace("␤", "")
    assert len(model.tools_detail) < 200
    assert model.tools_detail.isprintable()


def test_a_server_that_refuses_tools_is_a_no(double: OllamaDouble) -> None:
    double.capabilities[NAME] = ["completion"]
    model = who()
    assert model.tools is Ability.NO
    assert model.tools_detail == "the server refuses tools: double-chat does not support tools"
    assert model.tokens_per_second is None


def test_speed_is_by_the_servers_own_clock(double: OllamaDouble) -> None:
    double.turns.append(Turn("one two three four", CALLED.calls))
    model = who()
    assert model.tokens_per_second == 8.0  # 4 tokens in half a second
    assert "the server's own clock" in model.notes[-1]


@pytest.mark.parametrize(
    ("fault", "words"),
    [("500", "refused: the Ollama server says 500"), ("reset", "unreachable: no Ollama server"), ("list", "garbage:"),
     ("broken_json", "garbage:")],
)  # fmt: skip
def test_a_probe_that_could_not_be_made_is_unknown_with_its_cause(double: OllamaDouble, fault: str, words: str) -> None:
    double.faults["/api/chat"] = fault
    model = who()
    assert model.tools is Ability.UNKNOWN
    assert words in model.tools_detail


@pytest.mark.parametrize("fault", ["hang", "trickle"])
def test_the_probes_limit_holds_for_the_whole_answer(server: OllamaServer, double: OllamaDouble, fault: str) -> None:
    double.faults["/api/chat"] = fault
    started = time.monotonic()
    found = probe_tools(server, CHAT_MODEL, Sampling(), seconds=0.3)
    assert found.tools is Ability.UNKNOWN
    assert found.detail.startswith("timeout: double-chat did not answer within 0.3 s")
    assert time.monotonic() - started < 3


# ---- failures ----


def test_an_unknown_model_is_missing_with_the_command_that_mends_it(server: OllamaServer) -> None:
    error = failed(server.tell, "qwen3:8b")
    assert error.cause is Cause.MISSING
    assert "model 'qwen3:8b' not found" in error.message
    assert error.mend == "lab models pull qwen3:8b (ollama pull qwen3:8b)"


def test_the_schedulers_wording_of_a_missing_model_is_understood(server: OllamaServer, double: OllamaDouble) -> None:
    """``model "x" not found, try pulling it first``: what a server says whose model went away under it."""
    del double.models[NAME]
    with httpx.Client(base_url=double.url) as client:
        said = client.post("/api/embed", json={"model": CHAT_MODEL, "input": ["a"]}).json()
    assert said == {"error": f'model "{CHAT_MODEL}" not found, try pulling it first'}
    assert failed(server.ask, Question(CHAT_MODEL, "a")).cause is Cause.MISSING


def test_a_refused_connection_says_how_to_start_a_server_and_shows_no_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        monkeypatch.setenv("OLLAMA_HOST", f"http://user:secret@127.0.0.1:{held.getsockname()[1]}")
        error = failed(OllamaServer().listed)
    assert error.cause is Cause.UNREACHABLE
    assert error.mend.startswith("ollama serve")
    assert "secret" not in f"{error}{OllamaServer().url}"


@pytest.mark.parametrize("path", ["/api/tags", "/api/show", "/api/version"])
@pytest.mark.parametrize(
    ("fault", "cause"),
    [("500", {Cause.REFUSED, Cause.GARBAGE}), ("reset", {Cause.UNREACHABLE}), ("broken_json", {Cause.GARBAGE}),
     ("list", {Cause.GARBAGE}), ("hang", {Cause.TIMEOUT})],
)  # fmt: skip
def test_each_question_names_what_went_wrong(double: OllamaDouble, path: str, fault: str, cause: set[Cause]) -> None:
    double.faults[path] = fault
    assert failed(OllamaServer(seconds=0.3).tell, CHAT_MODEL).cause in cause


def test_what_is_no_ollama_is_named(double: OllamaDouble, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(double, "answer", lambda path, body: (404, {"error": "no route"}))
    error = failed(OllamaServer().version)
    assert (error.cause, error.status) == (Cause.GARBAGE, 404)
    assert "is no Ollama server" in error.message


@pytest.mark.parametrize("host", ["http://[bad", "http://x:notaport"])
def test_an_address_that_is_none(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OLLAMA_HOST", host)
    with pytest.raises(EnvironmentUnusable, match="address of Ollama"):
        OllamaServer()


def test_an_address_of_ipv6_can_be_asked_again() -> None:
    assert OllamaServer("http://[::1]:11434").url == "http://[::1]:11434"


@pytest.mark.parametrize("host", ["127.0.0.1:abc", "http://[::1", "::::"])
def test_an_address_that_is_none_while_the_client_is_first_imported(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "ollama"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setenv("OLLAMA_HOST", host)
    found = doctor._models(["ollama:m", "no such form"], probe=False)
    assert [finding.ok for finding in found] == [False] * 3, "it goes on with the others"
    assert "address of Ollama" in found[0].detail and "OLLAMA_HOST" in found[0].mend


def test_without_the_client_there_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ollama", None)
    with pytest.raises(EnvironmentUnusable) as caught:
        OllamaServer()
    assert "pip install -e '.[models]'" in str(caught.value)


def test_a_hostile_list_is_made_printable(server: OllamaServer, double: OllamaDouble) -> None:
    double.models["\x1b]0;owned\x07evil\n:latest"] = "\x1b[2J" + "d" * 999
    found = server.listed()[-1]
    assert found.name == "evil␤:latest"
    assert len(found.digest) <= 80
    assert found.digest.isprintable()


def test_hostile_numbers_of_a_model_are_no_context(double: OllamaDouble) -> None:
    double.parameters[NAME] = "num_ctx " + "9" * 4000 + "\nnum_ctx -3"
    assert who(probe=False).context is None


# ---- pull ----


def test_a_pull_tells_its_progress_and_the_model_is_there(server: OllamaServer, double: OllamaDouble) -> None:
    double.library["double-new"] = [1000, 50]
    told: list[tuple[str, int, int]] = []
    server.pull("double-new", lambda *event: told.append(event))
    assert told[0] == ("pulling manifest", 0, 0)
    assert told[-1] == ("success", 0, 0)
    assert ("pulling", 1000, 1000) in [(status.split()[0], done, total) for status, done, total in told]
    assert "double-new:latest" in {model.name for model in server.listed()}


@pytest.mark.parametrize(
    ("fault", "words"), [("cut", "no Ollama server"), ("ends", "before it was done"), ("broken_json", "cannot be read"),
                         ("error", "an error was encountered"), ("stalls", "did not answer")]
)  # fmt: skip
def test_a_pull_that_breaks_off_goes_on_where_it_stopped(
    server: OllamaServer, double: OllamaDouble, monkeypatch: pytest.MonkeyPatch, fault: str, words: str
) -> None:
    monkeypatch.setattr(module, "STALLED_SECONDS", 0.5)
    double.library["double-new"] = [1000]
    double.faults["/api/pull"] = fault
    error = failed(server.pull, "double-new", silent)
    assert "the pull of double-new" in error.message
    assert words in error.message
    assert error.mend == "lab models pull double-new goes on where it stopped"
    assert "double-new:latest" not in double.models
    double.faults.clear()
    again: list[int] = []
    server.pull("double-new", lambda status, done, total: again.append(done) if total else None)
    assert again[0] > 0, "what was fetched is not fetched again"
    assert "double-new:latest" in double.models


def test_a_name_that_the_library_has_not_is_one_line(server: OllamaServer) -> None:
    error = failed(server.pull, "nobody/nothing", silent)
    assert error.cause is Cause.MISSING
    assert error.message == "there is no model nobody/nothing to pull"


@pytest.mark.parametrize(("fault", "cause"), [("500", Cause.REFUSED), ("reset", Cause.UNREACHABLE)])
def test_a_pull_that_never_begins(server: OllamaServer, double: OllamaDouble, fault: str, cause: Cause) -> None:
    double.faults["/api/pull"] = fault
    assert failed(server.pull, "double-new", silent).cause is cause


# ---- the double's chat stream, through the client, as an upstream meets it ----


def streamed(double: OllamaDouble) -> list[Any]:
    return list(ollama.Client(double.url).chat(CHAT_MODEL, [{"role": "user", "content": "a b c"}], stream=True))


def test_a_chat_streams_and_ends_with_its_counts(double: OllamaDouble) -> None:
    double.turns.append(Turn("three words here", CALLED.calls))
    chunks = streamed(double)
    assert "".join(chunk.message.content for chunk in chunks) == "three words here"
    calls = [call.function for chunk in chunks for call in chunk.message.tool_calls or ()]
    assert [(call.name, call.arguments) for call in calls] == [(TOOL.name, {"text": WORD})]
    assert (chunks[-1].done, chunks[-1].done_reason, chunks[-1].prompt_eval_count) == (True, "stop", 3)


@pytest.mark.parametrize(
    ("fault", "error"),
    [("cut", httpx.RemoteProtocolError), ("broken_json", json.JSONDecodeError), ("error", ollama.ResponseError)],
)
def test_a_broken_chat_stream_is_an_error_of_the_client(
    double: OllamaDouble, fault: str, error: type[Exception]
) -> None:
    double.turns.append(Turn("one two three four five"))
    double.faults["/api/chat"] = fault
    with pytest.raises(error):
        streamed(double)


def test_a_chat_stream_that_ends_early_is_none_for_the_client(double: OllamaDouble) -> None:
    """The client alone is lenient: whoever streams has to look for ``done`` himself."""
    double.turns.append(Turn("one two three four five"))
    double.faults["/api/chat"] = "ends"
    assert not streamed(double)[-1].done


def test_options_that_are_not_set_are_not_sent() -> None:
    assert sampling_options(Sampling()) == {}
    assert sampling_options(Sampling(max_tokens=7, num_ctx=300)) == {"num_predict": 7, "num_ctx": 300}
