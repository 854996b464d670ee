"""Reads relevance judgements (*qrels*) in TREC's four columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from lab.retrieval.data.lines import BrokenData, numbered_lines


def qrels_lines(path: Path) -> Iterator[tuple[int, str, str, int]]:
    """Yields line number, topic, document and relevance of judgements in TREC's four columns.

    Columns stand apart by tabs where the line has any, else by blanks. Zero and below is not relevant.

    Raises:
        BrokenData: A line has other columns.
    """
    for number, text in numbered_lines(path):
        cells = [cell.strip() for cell in text.split("\t")] if "\t" in text else text.split()
        if len(cells) != 4:
            fault = f"{len(cells)} columns instead of four"
            raise BrokenData(path, number, fault, "write: topic, 0, fact, relevance")
        yield number, cells[0], cells[2], whole_number(path, number, cells[3])


def whole_number(path: Path, line: int, text: str) -> int:
    """A judgement as a number.

    Raises:
        BrokenData: It is none.
    """
    if not re.fullmatch(r"[+-]?[0-9]{1,9}", text):
        raise BrokenData(path, line, f"relevance {text!r} is not a whole number", "write 1 for relevant, 0 for not")
    return int(text)
