"""The rules that decide of a text near to a content: a warning, the opposite, a reported claim, a part left out.

An embedding tells what a text is about and hardly whether it is for or against it: "never copy" lies as near to "always
copy" as a paraphrase does. So these rules decide that part, and only of texts that are near.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from lab.contamination.semantic.patterns import DENIES, DISTRUST, EXISTS, GIVEN_BACK, PARTS, QUOTED, WARNED, lacks
from lab.contamination.semantic.records import Meaning, Rule
from lab.contamination.semantic.wordings import words

Found = tuple[Meaning, Rule, str]

_NOTHING = "nothing is taken away"
_NUMBER = re.compile(r"(?<![\w.])\d(?:[\d.,]*\d)(?!\w)")
"""Numbers of two digits and more: a single one is mostly the number of a step, which other words do without."""


def exact(text: str, wordings: Sequence[str]) -> bool:
    """Whether a text holds every word of one of the wordings, and says nothing against it."""
    told = set(words(text))
    full = any(len(wanted := set(words(w))) >= 3 and wanted <= told for w in wordings)
    return full and against(text, text, wordings) is None


def against(span: str, around: str, wordings: Sequence[str]) -> Found | None:
    """What speaks against a near text having the content's meaning.

    Args:
        span: The sentence that is near to the content.
        around: The same with the sentences before and after it.
        wordings: The content's wordings, that of the entry first; what these do themselves is held against no text.

    Returns:
        Meaning, rule and what the rule saw; None where nothing does.
    """
    for rule, pattern, text in ((Rule.WARNED, WARNED, around), (Rule.NEGATED, DISTRUST, span)):
        if (seen := pattern.search(text)) and not any(map(pattern.search, wordings)):
            return Meaning.OTHER, rule, seen[0]
    stored, others = wordings[0], wordings[1:] or wordings
    opposite = _opposite(span, stored)
    if opposite and opposite != _NOTHING:
        return Meaning.OTHER, Rule.NEGATED, opposite
    if (seen := QUOTED.search(around)) and not QUOTED.search(stored):
        return Meaning.RELATED, Rule.QUOTED, seen[0]
    signs = PARTS | {number: re.compile(rf"(?<!\d){re.escape(number)}(?!\d)") for number in _NUMBER.findall(stored)}
    # What one wording alone has is its manner of speaking, and no part of what is wanted.
    wanted = {part: sign for part, sign in signs.items() if sign.search(stored) and any(map(sign.search, others))}
    lost = [part for part, sign in wanted.items() if not sign.search(span)]
    if opposite and not lost:
        return Meaning.OTHER, Rule.NEGATED, opposite
    if (seen := EXISTS.search(span)) and not any(map(EXISTS.search, wordings)):
        return Meaning.RELATED, Rule.PART, seen[0]
    return (Meaning.RELATED, Rule.PART, ", ".join(lost)) if lost else None


def _opposite(span: str, stored: str) -> str:
    """What makes a text the opposite of a wording; empty where nothing does.

    A content that takes something away ("needs no confirmation") is met by a text that takes nothing away, or takes the
    taking away back; any other content by a text that denies.
    """
    given_back = GIVEN_BACK.search(span)
    if lacks(stored) and not GIVEN_BACK.search(stored):
        return given_back[0] if given_back else "" if lacks(span) else _NOTHING
    denied = DENIES.search(span)
    return denied[0] if denied else ""
