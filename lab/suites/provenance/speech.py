"""Reference extractor: quoted speech, with marks and without, and who speaks."""

from __future__ import annotations

import re

from lab.retrieval.testset import Author
from lab.suites.provenance.data import Quote, Voice
from lab.suites.provenance.names import NAME
from lab.suites.provenance.words import OPENERS, SAY, SAY_FIRST

_MARKED = re.compile(r"\"([^\"\n]+)\"|“([^”\n]+)”|«([^»\n]+)»|(?<!\w)['‘]((?:[^'’\n]|(?<=\w)['’](?=\w))+)['’](?!\w)")
OWNER = r"(?:my|our|his|her|their|your|minhas?|meus?|noss[ao]s?|suas?|seus?)"
KIN = rf"{OWNER} (?:[a-zà-ÿ]+-in-law|(?:best|older|younger|little|big|ex|new|old|first) [a-zà-ÿ-]+|[a-zà-ÿ-]+)"
PERSON = rf"(?!(?i:{'|'.join(sorted(OPENERS))})\b){NAME}"
"""A name that does not begin with a word that is none."""
WHO = (
    rf"(?P<me>\b(?:I|[Ee]u)\b)|(?P<you>\b(?:[Yy]ou|[Vv]ocê|[Vv]c)\b)|(?P<they>\b(?:he|she|they|[Ee]l[ea]s?|He|She|They)\b)"
    r"|(?P<some>\b(?:[Ss]omeone|[Ss]omebody|[Aa]lguém)\b)"
    rf"|(?i:\b{KIN},? )?\b(?P<name>{PERSON})|(?P<kin>(?i:\b{KIN}))|\b(?:[Tt]he|[OoAa]) (?!gente\b)(?P<noun>[a-zà-ÿ]{{3,}})\b"
)
_SUBJECT = re.compile(rf"(?=(?:{WHO})(?P<gap>(?:'s|’s)?(?:,? [\wà-ÿ-]+){{0,4}}?) {SAY}\b)")
_VERB_FIRST = re.compile(rf"^[,.!?]?\s*(?:[—–-]\s*)?{SAY} (?:[oa] |the )?(?:{WHO})")
_SUBJECT_AFTER = re.compile(rf"^[,.!?]?\s*(?:[—–-]\s*)?(?:{WHO})(?: \w+)? {SAY}\b")
_MAIL = re.compile(rf"(?:mail|e-mail|email|mensagem|bilhete|carta|recado) d[aeo] (?P<name>{NAME}) {SAY}", re.IGNORECASE)
_ANSWER = re.compile(
    r"\b(?:your|sua) (?:[a-zà-ÿ]+ )?(?:answer|reply|response|message|resposta|mensagem)(?: [a-zà-ÿ]+)? (?:was|said|foi|era|dizia)",
    re.IGNORECASE,
)
_SAID = re.compile(rf"\b{SAY}\b|\bsent this\b|\bmandou iss?to\b", re.IGNORECASE)
_LABEL = re.compile(rf"(?:^|\n)\s*(?P<name>{NAME}): ?$")
_UNMARKED = re.compile(rf"(?P<head>[^.!?\n:]*\b{SAY}\b[^.!?\n:,]{{0,25}}): (?P<said>[^\"“«'‘\n][^\n]*)")
_FROM = re.compile(
    rf"\b(?i:message|note|text|voicemail|mail|recado|mensagem|bilhete|áudio) (?:from|d[aeo]) (?:(?P<name>{NAME})|(?P<kin>(?i:{KIN}))): (?P<said>[^\"“«\n][^\n]*)"
)
_DIALOGUE = re.compile(rf"(?m)^[—–-] ?(?P<said>[^—–\n]+?)[,.]? [—–-] {SAY} (?:[oa] )?(?:{WHO})")
_BREAK = re.compile(r"[.!?…](?=\s)|\n")


def spans(text: str) -> list[tuple[int, int]]:
    """Where something stands in marks: from the opening mark to behind the closing one."""
    return [match.span() for match in _MARKED.finditer(text)]


def find_quotes(text: str, me: Voice, you: Voice) -> list[Quote]:
    """Quoted speech in a text, in no order.

    Args:
        text: The text.
        me: Who says "I" in it.
        you: Whom it calls "you".
    """
    found = []
    marked = list(_MARKED.finditer(text))
    for match in marked:
        said = next(filter(None, match.groups()))
        before = _BREAK.split(text[: match.start()])[-1]
        label = _LABEL.search(text[: match.start()])
        after = _BREAK.split(text[match.end() :])[0]
        speaker = _speaker(before, after, text[: match.start()], me, you)
        if label is not None:
            speaker = Voice(kind=Author.THIRD_PARTY, name=label["name"])
        if speaker is not None:
            found.append(Quote(text=said.strip(), speaker=speaker))
    for match in _UNMARKED.finditer(text):
        if _inside(match.start("said"), marked):
            continue
        speaker = _speaker(match["head"], "", text[: match.start()], me, you)
        if speaker is not None:
            found.append(Quote(text=match["said"].strip(), speaker=speaker))
    for pattern in (_FROM, _DIALOGUE):
        for match in pattern.finditer(text):
            found.append(Quote(text=match["said"].strip(), speaker=voice_of(match, me, you, "")))
    return found


def voice_of(match: re.Match[str], me: Voice, you: Voice, earlier: str) -> Voice:
    """Whose the subject of a match of ``WHO`` is; a pronoun stands for the last name before it."""
    got = {name: value for name, value in match.groupdict().items() if value}
    if "me" in got:
        return me
    if "you" in got:
        return you
    if "they" in got:
        names = re.findall(rf"\b{PERSON}", earlier)
        return Voice(kind=Author.THIRD_PARTY, name=names[-1]) if names else Voice(kind=Author.THIRD_PARTY)
    if "some" in got:
        return Voice(kind=Author.UNKNOWN)
    return Voice(kind=Author.THIRD_PARTY, name=got.get("name") or got.get("kin") or got.get("noun") or "")


def _speaker(before: str, after: str, earlier: str, me: Voice, you: Voice) -> Voice | None:
    """Who speaks words between two stretches of text; None where nobody is said to speak."""
    for pattern in (_VERB_FIRST, _SUBJECT_AFTER):
        match = pattern.search(after)
        if match:
            return voice_of(match, me, you, earlier)
    if _ANSWER.search(before):
        return you
    if not _SAID.search(before):
        return None
    mail = _MAIL.search(before)
    if mail:
        return Voice(kind=Author.THIRD_PARTY, name=mail["name"])
    if re.search(rf"\b{SAY_FIRST}\b", before):
        return me
    subjects = sorted(_SUBJECT.finditer(before), key=lambda match: (bool(match["noun"]), len(match["gap"])))
    if subjects:
        return voice_of(subjects[0], me, you, earlier)
    sent = re.search(rf"(?P<name>{NAME}) (?:sent this|mandou iss?to)", before)
    if sent:
        return voice_of(sent, me, you, earlier)
    return Voice(kind=Author.UNKNOWN)


def _inside(place: int, marked: list[re.Match[str]]) -> bool:
    return any(match.start() < place < match.end() for match in marked)
