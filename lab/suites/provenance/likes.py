"""Reference extractor: whose preference a text tells."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lab.suites.provenance.data import Voice
from lab.suites.provenance.speech import KIN, PERSON, WHO, Talk, last_person
from lab.suites.provenance.words import GUESS, PEGA, PEGO, PREFER, PREFER_S, PREFERE, PREFIRO, SAY, TAKE, TAKE_S

_ADVERB = (
    r"(?:(?:really|just|also|still|strongly|much|generally|honestly|both|também|sempre|realmente|mesmo|já|ainda|always"
    r"|só|me|muito|all|absolutely) )*"
)
_HABIT = r"(?:always|never|usually|only|mostly|normally|exclusively)(?: ever)?"
_HABITO = r"(?:sempre|nunca|só|normalmente|geralmente|costumo|costuma)"
_S = rf"(?:{PREFER_S}|{_HABIT} {TAKE_S}|{PREFERE}|{_HABITO} {PEGA}|{PEGA} {_HABITO})\b"
_BASE = rf"(?:{PREFER}|{_HABIT} {TAKE})\b"
_THINGS = r"[a-zà-ÿ ]{0,25}?(?:favorit|preferid|predilet)[ao]s?\b"
_OWN = re.compile(
    rf"\b(?:I|[Ww]e)(?: |(?=')){_ADVERB}(?:{_BASE}|use\b)|\b[Mm]y (?:[a-z]+ )?(?:favou?rite|preferred|preference)\b"
    rf"|(?i:\b(?:{PREFIRO}\b|{_HABITO} {PEGO}\b|(?:(?<=^)|(?<=eu )|(?<=e ))uso\b))"
    rf"|(?i:\b(?:a gente|nós) {_ADVERB}(?:{PREFERE}|{_HABITO} {PEGA}|{PEGA} {_HABITO})\b)"
    rf"|(?i:\b(?:meu|minha)s? {_THINGS})"
)
_YOURS = re.compile(
    rf"\b(?:[Yy]ou {_ADVERB}(?:{_BASE}|use\b)|(?i:(?:você|vc) {_ADVERB}(?:{PREFERE}|{_HABITO} {PEGA})\b))"
    rf"|(?i:\byour (?:[a-z]+ )?(?:favou?rite|preferred)\b|\b(?:seu|sua)s? {_THINGS})"
)
_OTHERS = (
    re.compile(rf"(?:(?P<name>\b{PERSON})|(?P<kin>(?i:\b{KIN})))['’]s (?:[a-z]+ )?(?:favou?rite|preferred)\b"),
    re.compile(
        rf"(?:favorit|preferid|predilet)[ao]s? d(?:[aeo]s? (?:(?P<name>{PERSON})|(?P<kin>(?i:{KIN})))|(?P<they>el[ea]))"
    ),
    re.compile(rf"(?:(?P<kin>(?i:\b{KIN}s))|(?P<they>\b[Tt]hey)) {_ADVERB}{_BASE}"),
    re.compile(rf"(?:{WHO}),? (?:{SAY} (?:that |que )?(?:(?:she|he|they|el[ea]s?) )?)?{_ADVERB}{_S}"),
)
_HEADLESS = re.compile(rf"(?i:^(?:who |that |que |and |but |e |mas )?{_ADVERB}{_S}|\b(?:and|but|e|mas) {_ADVERB}{_S})")
_SENTENCE = re.compile(r"[^.!?\n;:]+[.!?;:]*")
_CLAUSE = re.compile(
    r",\s+(?:but|and|mas|e|so|então)?\s*|\s+(?:but|while|whereas|and|mas|enquanto|porém|e)\s+"
    r"(?=[A-ZÀ-Ý]|I\b|eu\b|my\b|minha\b|meu\b|[oa] [A-ZÀ-Ý]|we\b|they\b)"
)
_GUESS = re.compile(rf"(?i:\b{GUESS}\b)")


def find_holders(text: str, talk: Talk) -> Iterator[Voice]:
    """Holders of preferences told in a text, in which nothing is quoted; one may come twice.

    Args:
        text: The text, without quotations.
        talk: Who talks in it.
    """
    for sentence in _SENTENCE.finditer(text):
        if sentence[0].rstrip().endswith("?"):
            continue
        earlier = text[: sentence.start()]
        for clause in filter(None, map(str.strip, _CLAUSE.split(sentence[0]))):
            if not _GUESS.search(clause):
                yield from _of_clause(clause, earlier, talk)
            earlier += f" {clause}"


def _of_clause(clause: str, earlier: str, talk: Talk) -> Iterator[Voice]:
    rest = clause
    for pattern in _OTHERS:
        for match in pattern.finditer(rest):
            if not {"me", "you", "some"} & {name for name, value in match.groupdict().items() if value}:
                yield talk.voice(match, earlier)
                rest = rest.replace(match[0], " ")
    if _OWN.search(rest):
        yield talk.me
    elif _YOURS.search(rest):
        yield talk.you
    elif headless := _HEADLESS.search(rest):
        # A verb without a subject of its own has that of the clause before it.
        subject = last_person(f"{earlier} {rest[: headless.start()]}")
        if subject is not None:
            yield subject
