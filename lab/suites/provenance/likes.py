"""Reference extractor: whose preference a text tells."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lab.suites.provenance.data import Voice
from lab.suites.provenance.speech import KIN, PERSON, WHO, voice_of
from lab.suites.provenance.words import GUESS, PEGA, PEGO, PREFER, PREFER_S, PREFERE, PREFIRO, SAY, TAKE, TAKE_S

_ADVERB = r"(?:(?:really|just|also|still|strongly|much|generally|honestly|both|also|também|sempre|realmente|mesmo|já|ainda|always|só|me|muito) )*"
_HABIT = r"(?:always|never|usually|only|mostly|normally)"
_HABITO = r"(?:sempre|nunca|só|normalmente|geralmente)"
_OWN = re.compile(
    rf"\b(?:I|[Ww]e)(?: |(?=')){_ADVERB}(?:{PREFER}|{_HABIT} {TAKE}|use)\b|\b[Mm]y (?:[a-z]+ )?(?:favou?rite|preferred)\b"
    rf"|(?i:\b(?:{PREFIRO}\b|{_HABITO} {PEGO}\b|(?:(?<=^)|(?<=eu )|(?<=e ))uso\b))"
    rf"|(?i:\b(?:a gente|nós) {_ADVERB}(?:{PREFERE}|{_HABITO} {PEGA}|{PEGA} {_HABITO})\b)"
    r"|(?i:\b(?:meu|minha)s? [a-zà-ÿ ]{0,25}?(?:favorit|preferid|predilet)[ao]s?\b)"
)
_YOURS = re.compile(
    rf"\b(?:[Yy]ou {_ADVERB}(?:{PREFER}|{_HABIT} {TAKE}|use)|(?i:(?:você|vc) {_ADVERB}(?:{PREFERE}|{_HABITO} {PEGA})))\b"
    r"|(?i:\byour (?:[a-z]+ )?(?:favou?rite|preferred)\b|\b(?:seu|sua) [a-zà-ÿ ]{0,25}?(?:favorit|preferid)[ao]\b)"
)
_OTHERS = re.compile(
    rf"(?:{WHO}),? (?:{SAY} (?:that |que )?(?:(?:she|he|they|el[ea]s?) )?)?{_ADVERB}(?:{PREFER_S}|{_HABIT} {TAKE_S}|{PREFERE}|{_HABITO} {PEGA}|{PEGA} {_HABITO})\b"
)
_PLURAL = re.compile(rf"(?P<kin>(?i:\b{KIN}s)) {_ADVERB}(?:{PREFER}|{_HABIT} {TAKE})\b")
_FAVOURITE = re.compile(rf"(?:(?P<name>{PERSON})|(?P<kin>(?i:\b{KIN})))['’]s (?:[a-z]+ )?(?:favou?rite|preferred)\b")
_FAVORITO = re.compile(
    rf"(?:favorit|preferid|predilet)[ao]s? d(?:[aeo] (?P<name>{PERSON})|[aeo]s? (?P<kin>(?i:{KIN}))|(?P<they>el[ea]))"
)
_SENTENCE = re.compile(r"[^.!?\n;]+[.!?;]*")
_CLAUSE = re.compile(
    r",\s+(?:but|and|mas|e|so|então)?\s*|\s+(?:but|while|whereas|and|mas|enquanto|porém|e)\s+(?=[A-ZÀ-Ý]|I\b|eu\b|my\b|minha\b|meu\b|[oa] [A-ZÀ-Ý]|we\b)"
)
_GUESS = re.compile(rf"(?i:\b{GUESS}\b)")


def find_holders(text: str, me: Voice, you: Voice) -> Iterator[Voice]:
    """Holders of preferences told in a text, in which nothing is quoted; one may come twice.

    Args:
        text: The text, without quotations.
        me: Who says "I" in it.
        you: Whom it calls "you".
    """
    for sentence in _SENTENCE.finditer(text):
        if sentence[0].rstrip().endswith("?"):
            continue
        for clause in filter(None, map(str.strip, _CLAUSE.split(sentence[0]))):
            if not _GUESS.search(clause):
                yield from _of_clause(clause, text[: sentence.end()], me, you)


def _of_clause(clause: str, earlier: str, me: Voice, you: Voice) -> Iterator[Voice]:
    others = [
        match
        for pattern in (_FAVOURITE, _FAVORITO, _PLURAL, _OTHERS)
        for match in pattern.finditer(clause)
        if not any(match[name] for name in ("me", "you", "some") if name in match.groupdict())
    ]
    for match in others:
        yield voice_of(match, me, you, earlier)
    rest = clause
    for match in others:
        rest = rest.replace(match[0], " ")
    if _OWN.search(rest):
        yield me
    if _YOURS.search(rest):
        yield you
