"""Reference extractor: quoted speech, with marks and without, and who speaks."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lab.retrieval.testset import Author
from lab.suites.provenance.data import Quote, Voice
from lab.suites.provenance.names import NAME, NEAR
from lab.suites.provenance.words import OPENERS, RELATION, SAY, SAY_FIRST, THINGS

_OWNER = r"(?:my|our|his|her|their|your|minhas?|meus?|noss[ao]s?|suas?|seus?)"
KIN = (
    r"(?:(?:[Gg]rand(?:pa|ma)|[Mm][uo]m(?:my)?|[Dd]ad(?:dy)?|[Vv]ov[óô]|[Mm]amãe|[Pp]apai)\b"
    rf"|{_OWNER} (?:[a-zà-ÿ]+-in-law|(?:best|older|younger|little|big|ex|new|old|first) [a-zà-ÿ-]+|[a-zà-ÿ-]+))"
)
"""Somebody without a name, by what they are to somebody."""

PERSON = rf"(?=[A-ZÀ-Ý])(?!(?i:{'|'.join(sorted(OPENERS))})\b){NAME}"
"""A name that does not begin with a word that is none."""

WHO = (
    r"(?P<me>\b(?:I|[Ee]u)\b)|(?P<you>\b(?:[Yy]ou|[Vv]ocê|[Vv]c)\b)"
    r"|(?P<they>\b(?:[Hh]e|[Ss]he|[Tt]hey|[Ee]l[ea]s?)\b)|(?P<some>\b(?:[Ss]ome(?:one|body)|[Aa]lguém)\b)"
    rf"|(?i:\b{KIN},? )?\b(?P<name>{PERSON})|(?P<kin>(?i:\b{KIN}))"
    r"|\b(?:[Tt]he|[OoAa]) (?!gente\b)(?P<noun>[a-zà-ÿ]{3,})\b"
)
"""A subject: somebody by pronoun, name, relation or noun."""

_NAMED = rf"(?:(?P<name>\b{PERSON})|(?P<kin>(?i:\b{KIN})))"
_MARKED = re.compile(r"\"([^\"\n]+)\"|“([^”\n]+)”|«([^»\n]+)»|(?<!\w)['‘]((?:[^'’\n]|(?<=\w)['’](?=\w))+)['’](?!\w)")
_SUBJECT = re.compile(rf"(?=(?:{WHO})(?P<gap>(?:'s|’s)?(?:,? [\wà-ÿ-]+){{0,4}}?) (?P<verb>(?i:{SAY}))\b)")
_AFTER = (
    re.compile(rf"^[,.!?]?\s*(?:[—–-]\s*)?(?:me |te |nos )?{SAY} (?:[oa] |the )?(?:{WHO})"),
    re.compile(rf"^[,.!?]?\s*(?:[—–-]\s*)?(?:{WHO})(?: \w+)? {SAY}\b"),
)
_BEFORE = (
    re.compile(rf"^_+[,.]? (?:me |te |nos )?{SAY} (?:[oa] |the )?(?:{WHO})[^.:]*,\s*$"),
    re.compile(rf"^_+[,.]? (?:{WHO}) {SAY}\b[^.:]*,\s*$"),
    re.compile(rf"\b(?i:e?-?mail|mensagem|bilhete|carta|recado|áudio) d[aeo] (?P<name>{NAME}) {SAY}"),
    re.compile(rf"{_NAMED}['’]s (?:[a-z]+ )?(?:motto|words|answer|reply|slogan|advice) (?:was|were|is)\b"),
    re.compile(rf"\b(?:lema|palavras|resposta|conselho|frase|bordão) d[aeo] {_NAMED} (?:era|é|foi|foram)\b"),
    re.compile(rf"{_NAMED} (?:sent this|mandou iss?to)\b"),
    re.compile(
        r"\b(?P<you>(?i:your|suas?) (?:[a-zà-ÿ]+ )?(?:answer|reply|response|message|words|resposta|mensagem|palavras))"
        r"(?: [\wà-ÿ]+){0,3} (?:was|were|said|foi|foram|era|dizia)\b"
    ),
)
_I_SAID = re.compile(rf"(?P<verb>(?i:{SAY_FIRST}))\b")
_SAID = re.compile(rf"\b{SAY}\b", re.IGNORECASE)
_LABEL = re.compile(rf"(?:^|\n)\s*(?P<name>{NAME}): ?$")
_ANYONE = re.compile(rf"{_NAMED}[^:]*: ?$")
_UNMARKED = re.compile(rf"(?P<head>[^.!?\n:]*\b(?i:{SAY})\b[^.!?\n:,]{{0,25}}): (?P<said>[^_\n][^\n]*)")
_OPEN = (
    re.compile(
        r"\b(?i:message|note|text|voicemail|mail|recado|mensagem|bilhete|áudio) (?:from|d[aeo]) "
        rf"{_NAMED}: (?P<said>[^_\n][^\n]*)"
    ),
    re.compile(rf"(?m)^[—–-] ?(?P<said>[^—–\n]+?)[,.]? [—–-] {SAY} (?:[oa] )?(?:{WHO})"),
)
_BREAK = re.compile(r"[.!?…](?=\s)|\n")
_ANTECEDENT = re.compile(rf"\b(?:(?P<name>{PERSON})|(?P<kin>(?i:{_OWNER} {RELATION})\b))")


@dataclass(frozen=True)
class Talk:
    """Who talks to whom.

    Attributes:
        me: Who says "I".
        you: Who is called "you".
    """

    me: Voice
    you: Voice

    def voice(self, match: re.Match[str], earlier: str) -> Voice:
        """Whose the subject of a match is; a pronoun stands for the last person in the text before it."""
        got = {name: value for name, value in match.groupdict().items() if value}
        if "me" in got:
            return self.me
        if "you" in got:
            return self.you
        if "some" in got or got.get("noun") in THINGS:
            return Voice(kind=Author.UNKNOWN)
        if "they" in got:
            return last_person(earlier) or Voice(kind=Author.THIRD_PARTY)
        return Voice(kind=Author.THIRD_PARTY, name=got.get("name") or got.get("kin") or got.get("noun") or "")


def last_person(text: str) -> Voice | None:
    """The last person in a text, by name or relation; None where there is none."""
    found = list(_ANTECEDENT.finditer(text[-NEAR:]))
    return Voice(kind=Author.THIRD_PARTY, name=found[-1]["name"] or found[-1]["kin"]) if found else None


def spans(text: str) -> list[tuple[int, int]]:
    """Where something stands in marks: from the opening mark to behind the closing one."""
    return [match.span() for match in _MARKED.finditer(text)]


def blank(text: str, start: int, end: int) -> str:
    """The text with a stretch made unreadable and of the same length."""
    return text[:start] + "_" * (end - start) + text[end:]


def find_quotes(text: str, talk: Talk) -> list[Quote]:
    """Quoted speech in a text, in no order.

    Args:
        text: The text.
        talk: Who talks in it.
    """
    bare = text
    for start, end in spans(text):
        # A sentence that ends inside the marks ends for the text around it, too.
        full = text[end - 2] in ".!?" and text[end : end + 2].strip()[:1].isupper()
        bare = blank(bare, start, end)
        if full:
            bare = f"{bare[: end - 1]}.{bare[end:]}"
    found: list[tuple[str, Voice | None]] = []
    for match in _MARKED.finditer(text):
        said = next(filter(None, match.groups()))
        found.append((said, _speaker(bare[: match.start()], bare[match.end() :], talk)))
    for match in _UNMARKED.finditer(bare):
        found.append((text[slice(*match.span("said"))], _speaker(f"{bare[: match.end('head')]}:", "", talk)))
    for pattern in _OPEN:
        found += [(text[slice(*match.span("said"))], talk.voice(match, "")) for match in pattern.finditer(bare)]
    return [Quote(text=said.strip(), speaker=speaker) for said, speaker in found if speaker is not None]


def _speaker(earlier: str, later: str, talk: Talk) -> Voice | None:
    """Who speaks words between two stretches of text; None where nobody is said to speak."""
    earlier, later = earlier[-NEAR:], later[:NEAR]
    label = _LABEL.search(earlier)
    if label is not None:
        return Voice(kind=Author.THIRD_PARTY, name=label["name"])
    before, after = _BREAK.split(earlier)[-1], _BREAK.split(later)[0]
    told = _told_before(before, earlier, talk)
    if told is not None and before.rstrip().endswith((":", ",")):
        return told
    for pattern in _AFTER:
        match = pattern.search(after)
        if match:
            return talk.voice(match, earlier)
    return told


def _told_before(before: str, earlier: str, talk: Talk) -> Voice | None:
    for pattern in _BEFORE:
        match = pattern.search(before)
        if match:
            return talk.voice(match, earlier)
    alone = [match.end("verb") for match in _I_SAID.finditer(before)]
    # The last verb of saying counts, and the subject that stands next to it; a noun only where there is no person.
    subjects = [
        (-match.end("verb"), bool(match["noun"]), len(match["gap"]), match) for match in _SUBJECT.finditer(before)
    ]
    subject = min(subjects, key=lambda one: one[:3], default=None)
    if alone and (subject is None or alone[-1] >= -subject[0]):
        return talk.me
    if subject is not None:
        return talk.voice(subject[3], earlier)
    if _SAID.search(before):
        return Voice(kind=Author.UNKNOWN)
    anyone = list(_ANYONE.finditer(before))
    return talk.voice(anyone[-1], earlier) if anyone else None
