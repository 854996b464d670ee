"""Names of models as a user writes them: ``scripted:POLICY``, ``ollama:NAME``, ``openai:NAME@URL``."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from enum import StrEnum
from urllib.parse import urlsplit

from lab.errors import InputError
from lab.records import digest
from lab.text import printable

BASE_URL_VARIABLE = "OPENAI_BASE_URL"
"""Address of the server of a model that is named without one, as OpenAI's own clients have it."""

FORMS = "scripted:POLICY, ollama:NAME or openai:NAME@URL"
_OPENAI = re.compile(r"(?P<name>.+?)@(?P<url>https?://.+)", re.DOTALL | re.IGNORECASE)
_UNSAFE = re.compile(r"[^A-Za-z0-9]+")
_LONGEST_SLUG = 40


class Provider(StrEnum):
    """Who answers for a model."""

    SCRIPTED = "scripted"
    """A pure function of the request, in the lab itself."""
    OLLAMA = "ollama"
    """An Ollama server, by its own protocol."""
    OPENAI = "openai"
    """Any server with OpenAI's chat completions."""


@dataclass(frozen=True)
class ModelSpec:
    """A model by name.

    Attributes:
        text: Provider and name: ``openai:NAME``. Stands in plans, results and reports, so that a model has the same
            name whatever the address of its server.
        provider: Who answers for it.
        name: Its name there.
        url: Base address of the server, up to and with its ``/v1``; empty where the provider's own settings decide.
    """

    text: str
    provider: Provider
    name: str
    url: str = ""

    @property
    def is_live(self) -> bool:
        """Whether a real model answers."""
        return self.provider is not Provider.SCRIPTED

    @property
    def slug(self) -> str:
        """Short form, fit for the name of a folder; different for different models."""
        if not self.is_live:
            return self.text.replace(":", "-")
        name = _UNSAFE.sub("_", self.name).strip("_")[:_LONGEST_SLUG]
        return f"{self.provider}-{name}-{digest(self.text)[:6]}"


def parse_model(text: str) -> ModelSpec:
    """Reads the name of a model.

    Raises:
        InputError: It has none of the known forms, or its address holds credentials.
    """
    provider, colon, rest = text.partition(":")
    if not colon or not rest.strip() or provider not in set(Provider):
        raise InputError(f"model {printable(text)!r} is not known", FORMS)
    if provider != Provider.OPENAI:
        return ModelSpec(text, Provider(provider), rest)
    found = _OPENAI.fullmatch(rest)
    if found is None and "//" in rest:
        # Not printed: it may hold a password.
        raise InputError("the address of a model begins neither with http:// nor with https://", FORMS)
    if found is None:
        return ModelSpec(text, Provider.OPENAI, rest)
    url = server_address(found["url"])
    return ModelSpec(f"openai:{found['name']}", Provider.OPENAI, found["name"], url)


def addressed(spec: ModelSpec) -> ModelSpec:
    """The same model with an address: its own, or that of ``OPENAI_BASE_URL`` where it was named without one.

    Raises:
        InputError: It needs an address and there is none.
    """
    if spec.provider is not Provider.OPENAI or spec.url:
        return spec
    url = os.environ.get(BASE_URL_VARIABLE, "")
    if not url:
        told = f"model {printable(spec.text)!r} names no server"
        raise InputError(told, f"openai:NAME@http://HOST:PORT/v1, or set {BASE_URL_VARIABLE}")
    return replace(spec, url=server_address(url))


def server_address(text: str) -> str:
    """Checks the address of a server, and gives it without a slash at its end.

    Raises:
        InputError: It is none, or it holds credentials.
    """
    url = text.rstrip("/")
    try:
        parts = urlsplit(url)
        hidden = parts.username is not None or parts.password is not None or bool(parts.query)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        hidden, usable = False, False
    if hidden:
        # Not printed: it may hold a key, and what is printed ends in logs.
        raise InputError("the address of a model holds credentials or a query", "give the key in OPENAI_API_KEY")
    if not usable:
        raise InputError(f"{printable(url)!r} is no address of a server", "openai:NAME@http://HOST:PORT/v1")
    return url
