"""Hostile text in messages: nothing that moves a cursor, reorders or starts a line may come through."""

from __future__ import annotations

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.text import printable

BIDI = {*map(chr, range(0x202A, 0x202F)), *map(chr, range(0x2066, 0x206A))}
HOSTILE = st.text(st.sampled_from("\x1b[]0;31mH\x07\\\x9b\x9d\x9c\x00\n\r\u2028\u202e\u2066\x85aé ␤\ud800"))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("ação <script>&", "ação <script>&"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[2J\x1b[1;1Hhome", "home"),
        ("\x9b31mred", "red"),
        ("\x1b]0;title\x07rest", "rest"),
        ("\x1b]8;;http://example.test\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]0;never ended", "0;never ended"),
        ("\x1bcreset", "reset"),
        ("a\nb\r\nc\rd", "a␤b␤c␤d"),
        ("a\u2028b\u2029c\x85d\x0be\x0cf", "a␤b␤c␤d␤e␤f"),
        ("a\x00b\x08c\x7fd\x9fe\tf", "abcdef"),
        ("\u202egpj.exe\u202c \u2066x\u2069\u200f", "gpj.exe x"),
        ("\ud800", "\ufffd"),
        ("👩\u200d👧 é", "👩\u200d👧 é"),
        ("", ""),
    ],
)
def test_shows_what_is_harmless_and_drops_the_rest(text: str, shown: str) -> None:
    assert printable(text) == shown


@pytest.mark.parametrize(
    ("text", "limit", "shown"),
    [("abcdef", 6, "abcdef"), ("abcdefg", 6, "abcde…"), ("abc", 1, "…"), ("abc", 0, "…"), ("\x1b[1mabc", 3, "abc")],
)
def test_cuts_at_the_limit_after_cleaning(text: str, limit: int, shown: str) -> None:
    assert printable(text, limit) == shown


@given(st.one_of(HOSTILE, st.text(st.characters()), st.text()), st.integers(-1, 300))
def test_never_lets_a_control_character_through(text: str, limit: int) -> None:
    shown = printable(text, limit)
    assert not [c for c in shown if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") or c in BIDI]
    assert len(shown) <= max(limit, 1)
    assert printable(shown, limit) == shown
    shown.encode()


@pytest.mark.parametrize("unit", ["\x1b]", "\x1b[", "\x9d", "\n", "\x1b]0;x"])
def test_stays_fast_on_megabytes_of_escapes(unit: str) -> None:
    start = time.monotonic()
    printable(unit * (2_000_000 // len(unit)))
    assert time.monotonic() - start < 5
