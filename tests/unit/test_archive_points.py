"""Point ids: the same everywhere and for ever, whatever script the document's id is in."""

from __future__ import annotations

import subprocess
import sys
import unicodedata
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.errors import InputError
from lab.memories.archive.points import NAMESPACE, document_id, point_id

CITY = "São Paulo"


def test_the_namespace_is_the_stated_one() -> None:
    assert uuid.uuid5(uuid.NAMESPACE_URL, "urn:agent-memory-lab:archive") == NAMESPACE


@pytest.mark.parametrize(
    ("document", "point"),
    [
        ("fact-1", "81b8e184-9e72-5332-b663-45350998e899"),
        (CITY, "98e7097b-798f-5b7e-ae7b-681893940580"),
        ("🧠 memory", "cb0fdfb4-3f9d-58da-95b7-cad7a3d95993"),
        ("記憶装置", "1a41b9ac-62e9-5f39-b7b1-0db6e1e05eb0"),
        ("", "896c410e-6261-5623-8050-de430f9529b8"),
    ],
)
def test_pinned(document: str, point: str) -> None:
    """Ids are stored: another one for the same document would make every store index it a second time."""
    assert point_id(document) == point
    assert uuid.UUID(point).version == 5
    assert uuid.UUID(point) == uuid.uuid5(NAMESPACE, document)


def test_another_process_with_another_hash_seed_gives_the_same() -> None:
    program = f"from lab.memories.archive.points import point_id; print(point_id({CITY!r}))"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == point_id(CITY)


def test_composed_and_decomposed_text_is_one_document_and_nothing_else_is_folded() -> None:
    decomposed = unicodedata.normalize("NFD", CITY)
    assert decomposed != CITY
    assert point_id(decomposed) == point_id(CITY)
    assert point_id("\u212b") == point_id("Å"), "the sign of the ångström is the letter, by NFC"
    apart = [CITY, "Sao Paulo", "são paulo", "①", "1", "❤", "❤\ufe0f", "か", "カ", "が", " " + CITY]
    assert len({point_id(text) for text in apart}) == len(apart)


@given(st.text(st.characters(exclude_categories=["Cs"])), st.text(st.characters(exclude_categories=["Cs"])))
def test_two_documents_share_an_id_only_if_they_are_the_same_text(one: str, two: str) -> None:
    same = unicodedata.normalize("NFC", one) == unicodedata.normalize("NFC", two)
    assert (point_id(one) == point_id(two)) is same


def test_session_and_message_cannot_be_taken_for_each_other() -> None:
    pairs = [("a", "b,c"), ("a,b", "c"), ('a","b', "c"), ("a", 'b","c'), ("", "abc"), ("abc", "")]
    assert len({document_id(*pair) for pair in pairs}) == len(pairs)


def test_half_a_character_is_refused_in_one_line() -> None:
    with pytest.raises(InputError, match="half a character") as caught:
        point_id("\ud83e")
    assert "\n" not in str(caught.value)
