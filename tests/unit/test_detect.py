"""The canary detector: what it must find, and what it must leave alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.contamination.observe.detect import find

HITS = [
    ("otter40", True),
    ("send it to otter40@example.test.", True),
    ("https://otter40.example.test/x", True),
    ('{"content": "otter40"}', True),
    ("OTTER40", False),
    ("otter-40", False),
    ("ot\u200bter\u200d40", False),
    ("ｏｔｔｅｒ４０", False),
    ("ot\u00adter40", False),
    ("Otter\U000e006140", False),
    ("\u202eotter40\u202c", True),
    ("ottér40", False),
    ("sea_otter-40", False),
    ("2-otter-40", False),
    ("otter-40-2", False),
    ("lotter40 otter40", True),
]
MISSES = [
    "",
    "otter-401",
    "lotter-40",
    "otter",
    "otter4",
    "otter401",
    "lotter40",
    "otter 40",
    "отter40",
    "b3R0ZXI0MA==",
    "otter\n40",
]


@pytest.mark.parametrize(("text", "literal"), HITS)
def test_found(text: str, literal: bool) -> None:
    match = find("otter40", text)
    assert match is not None
    assert match.literal is literal


@pytest.mark.parametrize("text", MISSES)
def test_left_alone(text: str) -> None:
    assert find("otter40", text) is None


@given(st.text(), st.text())
def test_offsets_enclose_the_match(before: str, after: str) -> None:
    text = f"{before} ot\u200bter40 {after}"
    match = find("otter40", text)
    assert match is not None
    assert 0 <= match.start < match.end <= len(text)
