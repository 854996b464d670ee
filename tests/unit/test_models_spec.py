"""Names of models: what they say, what is refused, and that nothing secret is printed."""

from __future__ import annotations

import pytest

from lab.contamination.plan import check_models
from lab.errors import InputError
from lab.models.spec import Provider, addressed, parse_model, server_address
from lab.runs.folder import SAFE_ID


@pytest.mark.parametrize(
    ("text", "provider", "name", "url", "shown"),
    [
        ("scripted:always-write", Provider.SCRIPTED, "always-write", "", "scripted:always-write"),
        ("ollama:qwen3:8b", Provider.OLLAMA, "qwen3:8b", "", "ollama:qwen3:8b"),
        ("openai:m@http://127.0.0.1:8080/v1/", Provider.OPENAI, "m", "http://127.0.0.1:8080/v1", "openai:m"),
        ("openai:org/m@v2@https://h.example.test/v1", Provider.OPENAI, "org/m@v2", "https://h.example.test/v1", None),
        ("openai:gpt", Provider.OPENAI, "gpt", "", "openai:gpt"),
    ],
)
def test_forms(text: str, provider: Provider, name: str, url: str, shown: str | None) -> None:
    spec = parse_model(text)
    assert (spec.provider, spec.name, spec.url) == (provider, name, url)
    assert spec.text == (shown or f"openai:{name}")
    assert SAFE_ID.fullmatch(spec.slug)
    assert spec.is_live is (provider is not Provider.SCRIPTED)
    assert parse_model(spec.text).text == spec.text  # what stands in a lock can be read again


@pytest.mark.parametrize("url", ["ftp://x", "file:///x", "x:80", "//x", "unix://x/v1"])
def test_a_server_speaks_http(url: str) -> None:
    with pytest.raises(InputError, match="is no address of a server"):
        server_address(url)
    assert server_address("HTTPS://x/v1/") == "HTTPS://x/v1"


def test_one_model_of_ollama_under_two_names_is_refused() -> None:
    with pytest.raises(InputError, match="named twice: ollama:x:latest"):
        check_models(["ollama:x", "ollama:x:latest"])
    assert len(check_models(["ollama:x", "ollama:x:8b", "openai:x", "openai:x:latest"])) == 4


def test_slugs_of_different_models_differ_and_the_address_changes_none() -> None:
    assert parse_model("ollama:a/b").slug != parse_model("ollama:a:b").slug
    assert parse_model("openai:m@http://a/v1").slug == parse_model("openai:m@http://b:1/v1").slug


@pytest.mark.parametrize("text", ["gpt", "ollama:", "ollama: ", "vllm:x", "", ":x"])
def test_what_is_no_model(text: str) -> None:
    with pytest.raises(InputError, match="is not known"):
        parse_model(text)


@pytest.mark.parametrize(
    "url",
    [
        *("http://user:pa55word@h/v1", "https://pa55word@h", "http://h/v1?key=pa55word", "ftp://user:pa55word@h/v1"),
        *("HTTP://user:pa55word@h/v1", "//user:pa55word@h"),
    ],
)
def test_an_address_with_credentials_is_refused_and_not_printed(url: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_model(f"openai:m@{url}")
    assert "pa55word" not in str(caught.value)


@pytest.mark.parametrize("url", ["http:///v1", "http://h:99999", "http://h:x"])
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(InputError, match="is no address"):
        parse_model(f"openai:m@{url}")


def test_the_address_may_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(InputError, match="names no server"):
        addressed(parse_model("openai:m"))
    monkeypatch.setenv("OPENAI_BASE_URL", "http://h/v1/")
    assert addressed(parse_model("openai:m")).url == "http://h/v1"
    assert addressed(parse_model("openai:m@http://own/v1")).url == "http://own/v1"
    assert addressed(parse_model("ollama:m")).url == ""
