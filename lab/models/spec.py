"""Names of models as a user writes them: ``scripted:POLICY``, ``ollama:NAME``, ``openai:NAME@URL``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlsplit

from lab.errors import InputError
from lab.records import digest
from lab.text import printable

FORMS = "scripted:POLICY, ollama:NAME or openai:NAME@URL"
_OPENAI = re.compile(r"(?P<name>.+?)@(?P<url>https?://.+)", re.DOTALL)
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
        text: As it was written; stands in plans, results and reports, and never holds a key.
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
    if found is None:
        raise InputError(f"model {printable(text)!r} names no server", "openai:NAME@http://HOST:PORT/v1")
    url = found["url"].rstrip("/")
    try:
        parts = urlsplit(url)
        hidden = parts.username is not None or parts.password is not None or bool(parts.query)
        usable = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        hidden, usable = False, False
    if hidden:
        # Not printed: it may hold a key, and what is printed ends in logs.
        raise InputError("the address of a model holds credentials or a query", "give the key in OPENAI_API_KEY")
    if not usable:
        raise InputError(f"{printable(url)!r} is no address of a server", "openai:NAME@http://HOST:PORT/v1")
    return ModelSpec(f"openai:{found['name']}@{url}", Provider.OPENAI, found["name"], url)
