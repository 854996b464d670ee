"""Finds secrets in text that is about to be remembered: known key shapes, assignments, key blocks, random tokens."""

from __future__ import annotations

import math
import re
from collections import Counter

KEY_SHAPES = {
    "private key": r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY( BLOCK)?-----",
    "AWS access key": r"\b(AKIA|ASIA)[0-9A-Z]{16}\b",
    "GitHub token": r"\b(gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{40,})",
    "GitLab token": r"\bglpat-[A-Za-z0-9_-]{20,}",
    "Slack token": r"\bxox[abeprs]-[A-Za-z0-9-]{10,}",
    "Stripe key": r"\b[rs]k_(live|test)_[A-Za-z0-9]{16,}",
    "API key": r"\bsk-[A-Za-z0-9_-]{20,}",
    "Google API key": r"\bAIza[A-Za-z0-9_-]{35}",
    "JSON web token": r"\beyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.",
    "password in an address": r"\b[a-z][a-z0-9+.-]{1,20}://[^\s/:@]{1,100}:[^\s/@]{3,200}@",
    # "password: hunter2", "senha é abc123", "API_KEY=…"; a value has to follow, so "password: (not stored)" passes.
    "password": r"(?i)(?<![a-z])(passwords?|passwd|passphrase|pwd|senha|secret|token|api[ _-]?key|chave[ _-]de[ _-]api|"
    r"access[ _-]?key)[\"']?\s{0,3}(?P<sign>:|=|\bis\b|\bé\b)\s{0,3}[\"']?(?P<value>[^\s\"'(){},;]{4,200})",
}
_COMPILED = {kind: re.compile(pattern) for kind, pattern in KEY_SHAPES.items()}
_TOKEN = re.compile(r"[A-Za-z0-9+/_=-]{20,512}")
_HEX = re.compile(r"[0-9a-fA-F]{32,}")
# Ticket systems number with UUIDs, so a bare one is an identifier; after "token:" it is a secret by that rule.
_UUID = re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")
_PLAIN_WORDS = re.compile(r"(?i)[a-zà-ÿ]{1,20}[.!?]?")
_ENTROPY_BITS = 3.5
_HEX_ENTROPY_BITS = 3.0
_WORD_LIKE = re.compile(r"[A-Z]?[a-z]{3,}")
_WORD_LIKE_SHARE = 0.5


def find_secret(text: str) -> str:
    """The kind of secret that a text holds, or an empty string. What was found is never returned or logged.

    A token of 20 characters or more counts as random where it has lower case, upper case and digits, at least 3.5 bits
    of entropy a character, and at most half of it looks like words, as camel case does. That takes 94 % of random
    tokens of 20 letters and digits and 99 % of 40. 32 hexadecimal digits count as a key, be they a digest or not:
    nobody searches for them by keyword.
    """
    for kind, pattern in _COMPILED.items():
        for match in pattern.finditer(text):
            if kind != "password" or _is_value(match):
                return kind
    for token in _TOKEN.findall(_UUID.sub(" ", text)):
        if _is_random(token):
            return "random token"
    return ""


def _is_value(match: re.Match[str]) -> bool:
    """After ``is`` a plain word is prose (``the password is needed``); after ``:`` or ``=`` anything is a value."""
    said_in_prose = match["sign"].isalpha()
    return not (said_in_prose and _PLAIN_WORDS.fullmatch(match["value"]))


def _is_random(token: str) -> bool:
    if _HEX.fullmatch(token):
        return _entropy(token.lower()) >= _HEX_ENTROPY_BITS
    kinds = (str.islower, str.isupper, str.isdigit)
    if not all(any(map(kind, token)) for kind in kinds) or _entropy(token) < _ENTROPY_BITS:
        return False
    return sum(map(len, _WORD_LIKE.findall(token))) <= _WORD_LIKE_SHARE * len(token)


def _entropy(token: str) -> float:
    """Shannon entropy of a token's characters, bits a character."""
    return -sum(n / len(token) * math.log2(n / len(token)) for n in Counter(token).values())
