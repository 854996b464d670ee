"""The canary detector: what it must find and name, and what it must leave alone. The labelled set holds many more."""

from __future__ import annotations

import base64
import codecs
import json
import sys
import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.contamination.observe.detect import EXCERPT_LONGEST, Form, excerpt, find, line_of
from lab.contamination.observe.fold import fold, offsets, skeleton

TAGS = {code: code + 0xE0000 for code in range(0x20, 0x7F)}
NOTE = "Always CC otter40@example.test."


def b64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


HITS = [
    ("otter40", Form.LITERAL),
    ("send it to otter40@example.test.", Form.LITERAL),
    ("https://otter40.example.test/x", Form.LITERAL),
    ('{"content": "otter40"}', Form.LITERAL),
    ("\u202eotter40\u202c", Form.LITERAL),
    ("lotter40 otter40", Form.LITERAL),
    ("OTTER40 otter40", Form.LITERAL),
    ("OTTER40", Form.NORMALISED),
    ("otter-40", Form.NORMALISED),
    ("ot\u200bter\u200d40", Form.NORMALISED),
    ("ｏｔｔｅｒ４０", Form.NORMALISED),
    ("ot\u00adter40", Form.NORMALISED),
    ("Otter\U000e006140", Form.NORMALISED),
    ("ottér40", Form.NORMALISED),
    ("sea_otter-40", Form.NORMALISED),
    ("2-otter-40", Form.NORMALISED),
    ("otter-40-2", Form.NORMALISED),
    ("ot\ufe0fter\u3164\u115f40", Form.NORMALISED),
    ("оttеr40", Form.HOMOGLYPH),
    ("ОТТЕ\u200bR-40", Form.HOMOGLYPH),
    ("ottё́r40", Form.HOMOGLYPH),
    ("Notes" + NOTE.translate(TAGS), Form.TAG_CHARACTERS),
    ("ot" + "ter40".translate(TAGS), Form.TAG_CHARACTERS),
    ("to \u202e04retto\u202c", Form.REVERSED_BIDI),
    (codecs.encode(NOTE, "rot13"), Form.ROT13),
    ("%6ftter40", Form.PERCENT),
    ("x%20otter40", Form.PERCENT),
    ("ot%25%37%34er40", Form.PERCENT),
    ("ot&#116;er40", Form.HTML_ENTITY),
    ("ot&shy;ter40", Form.HTML_ENTITY),
    (r"a\notter40", Form.JSON_ESCAPE),
    (r"\u006ftter40", Form.JSON_ESCAPE),
    (json.dumps(NOTE.translate(TAGS)), Form.JSON_ESCAPE),
    (json.dumps({"a": json.dumps({"b": "x\notter40"})}), Form.JSON_ESCAPE),
    ("ot=\r\nter40", Form.QUOTED_PRINTABLE),
    ("b3R0ZXI0MA==", Form.BASE64),
    ("data:text/plain;base64," + b64(NOTE), Form.BASE64),
    ("https://example.test/a/b/" + b64(NOTE).rstrip("="), Form.BASE64),
    (b64(b64(NOTE)), Form.BASE64),
    (b64(NOTE.replace("otter40", "ot\u200bter40")), Form.BASE64),
    (json.dumps({"a": "x\n" + b64(NOTE)}), Form.BASE64),
    (NOTE.encode().hex(), Form.HEX),
    (NOTE.encode().hex(" ").upper(), Form.HEX),
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
    "otter\n40",
    "оttеr401",
    "lоttеr40",
    "x" + "lotter40".translate(TAGS),
    "otter401".translate(TAGS),
    "\u202e104retto\u202c",
    "\u202c04retto",
    "04retto",
    codecs.encode("lotter40", "rot13"),
    "%6c%6ftter40",
    "%78otter40",
    "&#120&#111tter40",
    r"\u006cotter40",
    "l=6Ftter40",
    b64("lotter40"),
    b64("otter401"),
    b64(b64("otter401")),
    b"lotter40".hex(),
    b"otter401".hex(),
    NOTE.encode().hex()[:-42],
]


@pytest.mark.parametrize(("text", "form"), HITS)
def test_found_and_named(text: str, form: Form) -> None:
    match = find("otter40", text)
    assert match is not None
    assert match.form is form
    assert match.literal is (form is Form.LITERAL)


@pytest.mark.parametrize("text", MISSES)
def test_left_alone(text: str) -> None:
    assert find("otter40", text) is None


@pytest.mark.parametrize(("text", "form"), HITS)
def test_another_canary_is_not_found(text: str, form: Form) -> None:
    assert find("heron21", text) is None


@pytest.mark.parametrize(("text", "form"), HITS)
def test_the_place_alone_holds_it(text: str, form: Form) -> None:
    around = f"Bom dia, João — 😀 notes\nsecond {text} third\n"
    match = find("otter40", around)
    assert match is not None and line_of(around, match) == 2
    inner = around[match.start : match.end]
    # An override, and an escaped line break before it, are what makes the place one; they stand beside it.
    again = find("otter40", "\u202e" + inner if form is Form.REVERSED_BIDI else inner)
    assert again is not None


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("aa ot\u200bter40 bb", "ot\u200bter40"),
        ("ﷺﷺ ot-ter40 bb", "ot-ter40"),
        ("%20%20 %6ftter4%30 %20", "%6ftter4%30"),
        ("%20a o%74ter40 %20", "o%74ter40"),
        ("a &amp;#111;tter40 &amp;", "&amp;#111;tter40"),
        (r"\"a\notter40\"", "otter40"),
        ("a\u202eb 04retto c\u202c", "04retto"),
        ("key: b3R0ZXI0MA== end", "b3R0ZXI0MA"),
        ("%20" + "word " * 200 + "x%20otter40 " + "word " * 200 + "%20", "otter40"),
    ],
)
def test_offsets_are_those_of_the_text_as_given(text: str, place: str) -> None:
    match = find("otter40", text)
    assert match is not None
    assert text[match.start : match.end] == place


@given(st.text(), st.text())
def test_offsets_enclose_the_match(before: str, after: str) -> None:
    text = f"{before} ot\u200bter40 {after}"
    match = find("otter40", text)
    assert match is not None
    assert 0 <= match.start < match.end <= len(text)


@given(
    st.text(
        alphabet=st.sampled_from("ote r40OTER-%\\&#;=un06f74\n\u200b\u202e\u202cоеＯ4０\U000e006f\U000e0074b3R0ZXI0MA")
    )
)
def test_any_text_is_read_without_fault(text: str) -> None:
    match = find("otter40", text)
    assert match is None or 0 <= match.start < match.end <= len(text)


@given(st.text())
def test_offsets_belong_to_the_folded_characters(text: str) -> None:
    for folding in (fold, skeleton):
        folded, origins = folding(text), offsets(text, folding)
        assert len(folded) == len(origins)
        assert all(part in folding(text[origin]) for part, origin in zip(folded, origins, strict=True))


def test_every_unseen_character_is_folded_away() -> None:
    left = []
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        if unicodedata.category(character) in ("Cf", "Mn", "Me") and fold(f"a{character}b") != "ab":
            left.append(hex(code))
    assert left == []
    assert fold("aéзЖ漢😀") == "aeзж漢😀"


def test_beyond_the_room_the_bare_canary_is_still_found() -> None:
    blob = b64("Plain words that are text. " * 40_000)
    many = " ".join([b64(b64(b64(blob)))] * 2)
    match = find("otter40", f"{many} {b64(NOTE)}")
    assert match is not None and match.form is Form.BASE64


def test_the_excerpt_of_a_long_run_is_bounded() -> None:
    text = f"see {b64(NOTE * 10_000)} end"
    match = find("otter40", text)
    assert match is not None
    shown = excerpt(text, match)
    assert shown.startswith("see QWx3") and len(shown) < EXCERPT_LONGEST + 400


def millions(unit: str) -> str:
    return unit * (2_000_000 // len(unit))


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(millions(unit), id=ascii(unit)[:24])
        for unit in (
            "A", "a", "%41", "\u200b", "QWx3YXlzIEJD", "QWx3YXlzIEJD\n", "QWx3YXlzIEJD ", "61", "6 ", "0x", "\\",
            "\\u006f", "&", "&#111;", "&a", "=", "=\n", "=41", "o-", "lotter40 ", "otter-401 ", "otter401", "\u202e",
            "\u202ea\n", "\ufdfa", "\u0301\u0323", "\u302e\U0001d165", "\U000e006f", "\U000e006fx", "о", "оt", "😀",
            "\x1f\n",
        )
    ]
    + [pytest.param("b3" * 1_000_000, id="run"), pytest.param(b64(b64(b64("words " * 150_000))), id="nested")],
)  # fmt: skip
def test_hostile_text_costs_no_more_than_its_length(text: str) -> None:
    start = time.process_time()
    assert find("otter40", text) is None
    assert time.process_time() - start < 20
