"""What is compared: the content's wordings without the canary, the benign sentences around it, the spans of a text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from lab.contamination.observe.detect import find
from lab.contamination.scenarios.scenario import Scenario

MOST_SPANS = 200
"""Spans of one text that are compared. A longer one is not called harmless by what was read of it."""

SPAN_WORDS = 40
"""Longest span; what is longer is cut, so that one sentence does not drown in what stands beside it."""

_WORD = re.compile(r"\w+(?:[=./-]\w+)*")
_HOST = re.compile(r"^[@.]?[\w.-]*example\.test\b", re.IGNORECASE)
_ENDS = re.compile(r"(?<=[.!?;])\s+|\n+|\s§\s")
_CLAUSES = re.compile(r",\s+|\s(?:and|e)\s")
_DRESS = " \t-*#|<>!/\"'"
_BLANKS = re.compile(r" {2,}")
_LEAST_WORDS = 2
_MOST_CANARIES = 50


@dataclass(frozen=True)
class References:
    """What a text is held against.

    Attributes:
        wordings: Ways to say what the content wants, the canary taken out.
        benign: Sentences of the same scenario that say something else.
    """

    wordings: tuple[str, ...]
    benign: tuple[str, ...]


def without_canary(canary: str, text: str) -> str:
    """A text with every canary taken out, and the host that it was a part of."""
    for _ in range(_MOST_CANARIES):
        match = find(canary, text)
        if match is None:
            break
        text = text[: match.start] + _HOST.sub("", text[match.end :])
    return _BLANKS.sub(" ", text).strip()


def words(text: str) -> list[str]:
    """Words of a text in small letters, in order."""
    return _WORD.findall(text.lower())


def sentences(text: str) -> list[str]:
    """Pieces of a text that may each say something by itself: of three words at least and ``SPAN_WORDS`` at most."""
    found = []
    for piece in _ENDS.split(text):
        bare = piece.strip(_DRESS)
        pieces = bare.split()
        for start in range(0, len(pieces), SPAN_WORDS):
            part = " ".join(pieces[start : start + SPAN_WORDS])
            if len(words(part)) >= _LEAST_WORDS:
                found.append(part)
    return list(dict.fromkeys(found))


def spans(text: str) -> dict[str, str]:
    """What of a text is compared, each with the sentence that it stands in.

    These are the whole text where it is short, its sentences, and their clauses: in a list of facts each is one.
    """
    whole = " ".join(text.split())
    found = {whole: whole} if words(whole) and len(whole.split()) <= SPAN_WORDS else {}
    for sentence in sentences(text):
        for part in (sentence, *_CLAUSES.split(sentence)):
            if len(words(part)) >= _LEAST_WORDS:
                found.setdefault(part.strip(_DRESS), sentence)
    return found


def references(scenario: Scenario, *, paraphrase: bool = True) -> References:
    """The wordings and the benign sentences of a scenario.

    Benign are the twin's words, which stand in the content's place, the rest of the conversation and what the home held
    before. The old entry that a content wants gone is not among them: what revokes it is always near to it.

    Args:
        scenario: The scenario.
        paraphrase: Whether the content's paraphrase is a wording.
    """
    content = scenario.content
    wanted = (content.stored, *([content.paraphrase] if paraphrase else []), content.text)
    wordings = tuple(dict.fromkeys(filter(words, (without_canary(scenario.canary, text) for text in wanted))))
    around: list[str] = list(scenario.surroundings())
    if scenario.twin:
        around += [without_canary(scenario.canary, text) for text in (scenario.twin.text, *scenario.twin.parts)]
    return References(wordings, tuple(_benign(around, content.old or "")))


def _benign(texts: Iterable[str], old: str) -> list[str]:
    gone = " ".join(words(old))
    found = [part for text in texts for part in sentences(text)]
    return [part for part in dict.fromkeys(found) if not gone or " ".join(words(part)) not in gone]
