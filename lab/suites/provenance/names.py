"""Reference extractor: names of people in a text, and which of them are called."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lab.suites.provenance.words import HUMAN_VERB, MONTHS, NOT_CALLED, OPENERS, PLACES, RELATION, SAY, TITLES, either

WORD = r"[A-ZÀ-Ý][a-zà-ÿ]+(?:[-’'][A-ZÀ-Ý]?[a-zà-ÿ]{2,})*"
NAME = rf"{WORD}(?: (?:(?:d[aeo]s?|van|von) )?{WORD})*"
_FOUND = re.compile(rf"(?<![\w@/.])(?:[OA]s? )?{NAME}")
_GREETING = either(
    "hi|hey|hello|dear|good morning|good night|good evening|good afternoon|happy birthday|thanks|thank you|morning|yo|bye"
    "|congrats|congratulations|sorry|oi|olá|ola|ei|ô|ó|fala|e aí|bom dia|boa noite|boa tarde|feliz aniversário|tchau"
    "|feliz aniversario|valeu|obrigado|obrigada|prezado|prezada|caro|cara|parabéns|querido|querida|salve|desculpa"
)
_TITLE = r"(?:(?:mr|mrs|ms|dr|dra|sr|sra|dona|seu|tia|tio|aunt|uncle|prof)\.? )?"
_GREETED = re.compile(rf"\b{_GREETING},? {_TITLE}$", re.IGNORECASE)
_LOWER = re.compile(rf"(?:^|[.!?,\n\"]\s*){_GREETING},? {_TITLE}([a-zà-ÿ]{{3,}})(?=\W|$)", re.IGNORECASE)
_START = re.compile(
    r"(?:^|\n|[!?…;:]\s+|(?<!\bMr)(?<!\bMrs)(?<!\bMs)(?<!\bDr)(?<!\bSr)(?<!\bSra)(?<!\bDra)\.\s+)[\"“«'‘>\s—-]*$"
)
_PLACE_BEFORE = re.compile(
    r"\b(?:in|at|near|around|em|rua|avenida|av\.?|praça|the|this|an|bairro|edifício|hotel) $", re.IGNORECASE
)
_FROM = re.compile(r"\b(?:from|de|to|pra|para|até|until|till|since|by|desde) $", re.IGNORECASE)
_TRAVEL = re.compile(
    r"\b(?:fly|flying|flight|trip|travel\w*|mov\w+|go|going|drive|driving|train|bus|vamos|vou|vai|ir|voo|viag\w+|viaj\w+"
    r"|mud\w+|numbers|números|[ôo]nibus|passagem)\b[^.!?]*$",
    re.IGNORECASE,
)
_PLACE_AFTER = re.compile(r"^ (?:Street|Avenue|Road|Park|Club|Bank|Inc|Ltd|Airport|University)\b")
_ARTICLE = re.compile(r"\b(?:[oa]|d[oa]|n[oa]|pr[oa]|ao|à|pel[oa]|com [oa]|e [oa]) $", re.IGNORECASE)
_PERSONAL = re.compile(r"(?:^|\b)(?:[oa]|d[oa]|ao|à|pel[oa]) $", re.IGNORECASE)
_HUMAN = re.compile(
    rf"^ (?:{SAY}|will|wants|likes|loves|hates|prefers|called|emailed|came|comes|sent|has|always|never|sempre|nunca|só|and {WORD} "
    rf"(?:are|were|will|have)|are (?:coming|flying|going)|quer|prefere|adora|odeia|ligou|chega|vem|veio|e {WORD} (?:vão|vêm|chegam))\b"
)
_SUBJECT = re.compile(rf"^(?:'s |’s | (?:{HUMAN_VERB})\b| (?:and|e) (?:[oa] )?[A-ZÀ-Ý])")
_THIRD = re.compile(
    r"^ (?!(?:d[aeo]s?|n[ao]s?|[ao]s|para|pra|uma?|se|que|e|are|were|and|or|of|its|this)\b)"
    r"(?:[a-z]{2,}(?:s|ed)\b|[a-zà-ÿ]{2,}(?:a|e|ou|eu|iu) (?:[oa]s?|uma?|em|n[oa]s?|d[eoa]|pr[oa]|para|com|aos?|às?)\b)"
)
_LIST = re.compile(rf"^,? ?(?:and|e) |^, (?:[oa] )?{WORD}(?:,| and | e )")
_RELATIVE = re.compile(r"^, (?:who|whom|whose|which|where|que|quem|cuj\w+|onde|aged?|de \d)\b")
_APPOSED = re.compile(
    r"^, (?:(?:my|your|our|his|her|their|the|an?|[oa]|uma?|minha|meu|noss[ao]|sua|seu|tua|teu|d[oa])\s|"
    rf"(?:{NAME}'s|irmã|irmão|filh[ao]|mãe|pai|chefe|vizinh[ao]|prim[ao]|espos[ao]|marido) )[^,.!?\n]{{1,40}}, (?=[a-zà-ÿ])"
)
_RELATION = re.compile(rf"\b{RELATION}, $", re.IGNORECASE)
_COPULA = re.compile(r"\b(?:was|were|is|are|foi|foram|é|são)\b[^.!?]{0,25}, $")
_LISTED = re.compile(rf"\b(?P<word>{WORD}), $")
_END = re.compile(r"^[.!?…\"”»')]*\s*(?:$|\n|[.!?…]|[\U0001F300-\U0001FAFF])")


@dataclass(frozen=True)
class Named:
    """A person who is named.

    Attributes:
        name: The name.
        called: Whether it is a call.
    """

    name: str
    called: bool


def find_names(text: str) -> list[Named]:
    """People named in a text, in their order; the same name may come twice."""
    found = []
    for match in _FOUND.finditer(text):
        start, words = match.start(), match[0].split(" ")
        while words and (words[0].lower() in OPENERS or words[0].lower() in TITLES):
            start += len(words.pop(0)) + 1
        while words and words[-1].lower() in OPENERS:
            words.pop()
        name = " ".join(words).removesuffix("'s").removesuffix("’s")
        before, after = text[:start], text[start + len(name) :]
        if words and _is_person(name, before, after):
            found.append(Named(name, _is_called(before, after)))
    for match in _LOWER.finditer(text):
        if match[1].islower() and match[1] not in NOT_CALLED and match[1] not in OPENERS:
            found.append(Named(match[1], True))
    return found


def _is_person(name: str, before: str, after: str) -> bool:
    words = [word.lower() for word in name.split(" ")]
    greeted = bool(_GREETED.search(before)) or (before.split()[-1:] or [""])[0].strip(".").lower() in TITLES
    first = bool(_START.search(before))
    if greeted:
        return not all(word in MONTHS for word in words)
    if _PLACE_BEFORE.search(before) and not re.search(r"(?:^|[ \n])(?:A) $", before):
        return False
    if _PLACE_AFTER.search(after):
        return False
    if any({word, word.removesuffix("s")} & (MONTHS | PLACES) for word in words):
        # A month or a place: a person only with an article that places lack, or where it says or wants something.
        return (
            len(words) > 1 or bool(_PERSONAL.search(before)) or bool(_HUMAN.match(after) and not _FROM.search(before))
        )
    if _FROM.search(before) and _TRAVEL.search(before):
        return False
    if first and len(words) == 1:
        return bool(_SUBJECT.search(after) or _THIRD.search(after) or after.startswith((",", "!")))
    return True


def _is_called(before: str, after: str) -> bool:
    if _GREETED.search(before):
        return True
    if _ARTICLE.search(before):
        return False
    listed = _LIST.search(after) or _APPOSED.search(after)
    if _START.search(before):
        return after.startswith((",", "!")) and not listed and not _RELATIVE.search(after)
    if not before.rstrip().endswith(",") and not re.search(r", (?:Mrs?|Ms|Dr|Sra?|Dona|Seu|Tia|Tio)\.? $", before):
        return False
    among = _LISTED.search(before)
    if _RELATION.search(before) or _COPULA.search(before) or (among and among["word"].lower() not in OPENERS):
        return False
    return bool(_END.search(after)) or (after.startswith(",") and not listed)
