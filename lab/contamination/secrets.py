"""What counts as a secret, and how it is taken out of everything that a trial writes before it is written.

A secret is a value that the user has declared, the value of a variable of the lab's own process whose name is that of a
key, or a text in the form of a known kind of key. In its place stands ``[redacted sha256:… len=…]``: whoever has the
secret can check that it stood there, and equal secrets stay equal.

What a scenario says is never taken out: canaries, payloads and the words around them are what is looked for.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import quote

from lab.contamination.observe.detect import find
from lab.contamination.scenarios.scenario import Scenario
from lab.errors import InputError
from lab.records import digest
from lab.retrieval.factstore.secrets import KEY_SHAPES

NAMES_VARIABLE = "LAB_REDACT"
"""Names of variables whose values are secrets, separated by commas."""
PATTERNS_VARIABLE = "LAB_REDACT_PATTERNS"
"""Regular expressions of further secrets, one a line."""

SHORTEST = 8
"""A shorter declared value would be found in words that are no secrets."""

_KEY_NAME = re.compile(
    r"(?i)(^|_)(api_?key|(access|private|secret|auth|signing)_?key|key|token|secret|password|passwd|passphrase|pwd|"
    r"credentials?|pat|dsn)(_|$)"
)
_NO_SECRET = re.compile(r"[a-zA-Z_ .,'-]*|[./~].*|[0-9.]*", re.DOTALL)
"""Values that no key has: words, paths and numbers, which would be found everywhere."""

_BEHIND_ESCAPE = r"(?<=\\[nrtbf])|(?<=\\u[0-9a-fA-F]{4})"
"""In JSON a line break before a key is written with a letter, so that the key does not begin a word."""
_WORD_BEGINS = rf"(?:\b|{_BEHIND_ESCAPE})"

# The detector's shapes say that a key is there; these say how far it goes. Every rule takes time in proportion to the
# text, whatever stands in it: an agent must not be able to hold the lab up.
_TAILS = {
    "private key": r"(?:(?:(?!-----BEGIN)(?s:.)){0,20000}?-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----|"
    r"(?:[A-Za-z0-9+/=\s]|\\+[nr])*)",
}
_OWN_RULES = {
    "JSON web token": rf"(?:(?<![A-Za-z0-9_-])|{_BEHIND_ESCAPE})"
    r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",
    "password in an address": r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@\"'\\]{0,100}:(?P<value>[^\s/@\"'\\]{3,200})@",
    # Ends before quotes and backslashes, so that JSON stays JSON, also where it stands in a string of JSON.
    "password": rf"(?:(?<![A-Za-z])|{_BEHIND_ESCAPE})(?i:passwords?|passwd|passphrase|pwd|senha|secret|token|"
    r"api[ _-]?key|chave[ _-]de[ _-]api|access[ _-]?key)\\*[\"']?\s{0,3}[:=]\s{0,3}\\*[\"']?(?P<value>"
    r"(?=[^\s\"'(){},;\\]{0,199}[A-Za-z])(?=[^\s\"'(){},;\\]{0,199}[0-9])"
    r"(?![0-9.+-]+[eE][0-9+-]+\b)[^\s\"'(){}\[\]<>$*,;\\]{8,200})",
}
_MARK = re.compile(r"\[redacted sha256:[0-9a-f]{8} len=[0-9]+\]")
_SHAPES = {
    kind: re.sub(r"^\\b", lambda _: _WORD_BEGINS, shape) + _TAILS.get(kind, "") for kind, shape in KEY_SHAPES.items()
}
_RULES = {kind: re.compile(rule) for kind, rule in (_SHAPES | _OWN_RULES).items()}
_KEYS = {kind: rule for kind, rule in _RULES.items() if "value" not in rule.groupindex}
"""Kinds that are known by their form alone, without a word in front of them."""

_ANCHORS: dict[str, tuple[str, ...]] = {
    "private key": ("PRIVATE KEY",),
    "AWS access key": ("AKIA", "ASIA"),
    "GitHub token": ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
    "GitLab token": ("glpat-",),
    "Slack token": ("xox",),
    "Stripe key": ("k_live_", "k_test_"),
    "API key": ("sk-",),
    "Google API key": ("AIza",),
    "JSON web token": ("eyJ",),
    "password in an address": ("://",),
}
"""A text without any of these has no secret of the kind: looking for them takes a hundredth of the time."""


def mark(secret: str) -> str:
    """What stands in the place of a secret."""
    data = secret.encode("utf-8", "surrogateescape")
    return f"[redacted sha256:{digest(data)[:8]} len={len(data)}]"


def _asterisks(secret: str) -> str:
    return "*" * len(secret.encode("utf-8", "surrogateescape"))


@dataclass(frozen=True)
class Redactor:
    """Takes secrets out of texts.

    Attributes:
        values: Secrets to the letter.
        patterns: Forms of further secrets.
        canary: A token that no secret holds; empty for none.
        kept: What is no secret, whatever its form.
        active: Whether anything is taken out at all.
    """

    values: tuple[str, ...] = ()
    patterns: tuple[re.Pattern[str], ...] = ()
    canary: str = ""
    kept: str = ""
    active: bool = True

    def text(self, text: str, put: Callable[[str], str] = mark) -> str:
        """The same text without secrets; what is no secret stays as it is, to the letter.

        Args:
            text: Any text; JSON stays JSON.
            put: Gives what stands in the place of a secret.
        """
        if not self.active:
            return text

        def replace(found: re.Match[str]) -> str:
            group: str | int = "value" if "value" in found.re.groupindex else 0
            secret = found[group]
            if not secret or _MARK.search(found[0]) or self._is_kept(secret):
                return found[0]
            start, end = found.start(group) - found.start(), found.end(group) - found.start()
            return found[0][:start] + put(secret) + found[0][end:]

        if self._literal:
            text = self._literal.sub(lambda found: put(found[0]), text)
        for pattern in self.patterns:
            text = pattern.sub(replace, text)
        for kind, pattern in _RULES.items():
            if any(anchor in text for anchor in _ANCHORS.get(kind, ("",))):
                text = pattern.sub(replace, text)
        return text

    def data(self, data: bytes) -> bytes:
        """The same for bytes. In such as are no text, where lengths count, a secret becomes as many asterisks."""
        text = data.decode("utf-8", "surrogateescape")
        clean = self.text(text, _asterisks if b"\0" in data else mark)
        return data if clean == text else clean.encode("utf-8", "surrogateescape")

    @cached_property
    def _literal(self) -> re.Pattern[str] | None:
        spellings = {spelling for value in self.values for spelling in _spellings(value)}
        longest_first = sorted(spellings, key=lambda s: (-len(s), s))
        return re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def _is_kept(self, text: str) -> bool:
        plain = text.replace("\\n", "\n")
        return bool(self.kept and plain in self.kept) or bool(self.canary and find(self.canary, text))


NOTHING = Redactor(active=False)
"""Takes nothing out."""


@dataclass(frozen=True)
class Secrets:
    """The secrets of this process.

    Attributes:
        values: Value by the name of its variable.
        patterns: Forms that the user declared.
    """

    values: Mapping[str, str]
    patterns: tuple[re.Pattern[str], ...] = ()

    @classmethod
    def of(cls, environment: Mapping[str, str] = os.environ) -> Secrets:
        """Reads them from the environment.

        Raises:
            InputError: A declared value is too short, or a pattern is none or finds the empty text.
        """
        values = {
            name: value
            for name, value in environment.items()
            if _KEY_NAME.search(name) and len(value) >= SHORTEST and not _NO_SECRET.fullmatch(value)
        }
        for name in filter(None, (n.strip() for n in environment.get(NAMES_VARIABLE, "").split(","))):
            value = environment.get(name, "")
            if value and len(value) < SHORTEST:
                raise InputError(
                    f"the value of {name} has fewer than {SHORTEST} characters, it would be found in other words",
                    f"take {name} out of {NAMES_VARIABLE}, or use a longer secret",
                )
            values |= {name: value} if value else {}
        lines = environment.get(PATTERNS_VARIABLE, "").splitlines()
        return cls(values, tuple(_pattern(line) for line in lines if line.strip()))

    def redactor(self, scenario: Scenario | None = None) -> Redactor:
        """What takes them out of all that a trial of a scenario writes."""
        values = tuple(sorted(set(self.values.values())))
        if scenario is None:
            return Redactor(values, self.patterns)
        return Redactor(values, self.patterns, scenario.canary, "\n".join(_strings(scenario.model_dump(mode="json"))))

    def refuse(self, scenarios: Iterable[Scenario]) -> None:
        """Refuses scenarios that hold a secret: a run folder has a copy of each, and their words are never taken out.

        A payload may have the form of a key, for it is made up.

        Raises:
            InputError: Naming the scenario and the secret, but not its value.
        """
        for scenario in scenarios:
            body = scenario.model_dump(mode="json")
            told = "\n".join(_strings(body))
            for name, value in self.values.items():
                if value in told:
                    raise InputError(
                        f"scenario {scenario.id} holds the value of the variable {name}",
                        "use a made-up value in the scenario; run folders hold its text",
                    )
            around = "\n".join(_strings({k: v for k, v in body.items() if k not in ("content", "twin")}))
            if any(pattern.search(around) for pattern in _KEYS.values()):
                raise InputError(
                    f"scenario {scenario.id} holds what has the form of a key or token outside its content",
                    "use a made-up value of another form; run folders hold the scenario's text",
                )


def _pattern(text: str) -> re.Pattern[str]:
    try:
        pattern = re.compile(text)
    except re.error as error:
        raise InputError(f"{PATTERNS_VARIABLE}: {text!r} is no regular expression: {error}", "mend it") from error
    if pattern.search(""):
        raise InputError(f"{PATTERNS_VARIABLE}: {text!r} finds the empty text", "write what the secret looks like")
    if pattern.groupindex:
        raise InputError(f"{PATTERNS_VARIABLE}: {text!r} names a group", "write (…) in place of (?P<name>…)")
    return pattern


def _spellings(value: str) -> Iterator[str]:
    """How a value may be written: as it is, in JSON, in a string of JSON in JSON, in an address, in base64."""
    yield value
    for ascii_only in (True, False):
        once = json.dumps(value, ensure_ascii=ascii_only)[1:-1]
        yield once
        yield json.dumps(once, ensure_ascii=ascii_only)[1:-1]
    yield quote(value, safe="")
    yield base64.b64encode(value.encode("utf-8", "surrogateescape")).decode().rstrip("=")


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from _strings(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _strings(part)
