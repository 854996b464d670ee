"""Reference extractor: names of people in a text, and which of them are called."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lab.suites.provenance.words import HUMAN_VERB, MONTHS, NOT_CALLED, OPENERS, PLACES, RELATION, SAY, TITLES, either

WORD = r"[A-ZÀ-Ý][a-zà-ÿ]+(?:[-’'][A-ZÀ-Ý]?[a-zà-ÿ]{2,})*"
NAME = rf"{WORD}(?: (?:(?:d[aeo]s?|van|von) )?{WORD}){{0,4}}"
NEAR = 250
"""Characters on either side of a name or a quotation that are looked at; more would cost time and tell nothing."""

_FOUND = re.compile(rf"(?<![\w@/.])(?:[OA]s? )?{NAME}")
_GREETING = either(
    "hi|hey|hello|dear|good morning|good night|good evening|good afternoon|happy birthday|thanks|thank you|morning|yo"
    "|bye|get well|get well soon|good luck|take care|see you|melhoras|boa sorte|se cuida|até mais|até logo|welcome"
    "|bem-vind[oa]|congrats|congratulations|sorry|oi|olá|ola|ei|ô|ó|fala|e aí|bom dia|boa noite|boa tarde"
    "|feliz aniversário|tchau|feliz aniversario|valeu|obrigado|obrigada|prezado|prezada|caro|cara|parabéns"
    "|querido|querida|salve|desculpa"
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
    rf"^ (?:{SAY}|will|wants|likes|loves|hates|prefers|called|emailed|phoned|rang|texted|arrived|lives|works|asked|sank"
    rf"|came|comes|sent|has|always|never|sempre|nunca|só|and {WORD} (?:are|were|will|have)|are (?:coming|flying|going)"
    rf"|quer|prefere|adora|odeia|ligou|chega|vem|veio|e {WORD} (?:vão|vêm|chegam))\b"
)
_SUBJECT = re.compile(rf"^(?:'s |’s | (?:{HUMAN_VERB})\b| (?:and|e) (?:[oa] )?[A-ZÀ-Ý])")
_THIRD = re.compile(
    r"^ (?!(?:d[aeo]s?|n[ao]s?|[ao]s|para|pra|uma?|se|que|e|are|were|and|or|of|its|this)\b)"
    r"(?:[a-z]{2,}(?:s|ed)\b(?!:)|[a-zà-ÿ]{2,}(?:ou|eu|iu)\b"
    r"|[a-zà-ÿ]{2,}[ae] (?:[oa]s?|uma?|em|n[oa]s?|d[eoa]|pr[oa]|para|com|aos?|às?)\b)"
)
_LIST = re.compile(rf"^,? ?(?:and|e) |^, (?:[oa] )?{WORD}(?:,| and | e )")
_RELATIVE = re.compile(r"^, (?:who|whom|whose|which|where|que|quem|cuj\w+|onde|aged?|de \d)\b")
_APPOSED = re.compile(
    r"^, (?:(?:my|your|our|his|her|their|the|an?|[oa]|uma?|minha|meu|noss[ao]|sua|seu|tua|teu|d[oa])\s|"
    rf"(?:{NAME}'s|{RELATION}) )[^,.!?\n]{{1,40}}, (?=[a-zà-ÿ])"
)
_RELATION = re.compile(rf"\b{RELATION}(?: (?:mais )?[a-zà-ÿ]+[oa]s?)?, $", re.IGNORECASE)
_COPULA = re.compile(r"\b(?:was|were|is|are|foi|foram|é|são), [^,.!?]{1,25}, $")
_LISTED = re.compile(rf"\b(?P<word>{WORD}), $")
_TITLED = re.compile(rf"(?:^|\W)(?:{'|'.join(sorted(TITLES))})\.? $", re.IGNORECASE)
_COMMA = re.compile(rf",\s*$|, (?:{'|'.join(sorted(TITLES))})\.? $", re.IGNORECASE)
_HERE = re.compile(r"^ (?:here|speaking|falando|aqui)\b")
_SIGN_OFF = re.compile(
    r"\b(?:yours|regards|cheers|sincerely|abraços?|att|beijos?|atenciosamente|best|love),? $", re.IGNORECASE
)
_AT = re.compile(r"(?<![\w.])@([^\W\d_][\w-]+)")
_OFFICE = re.compile(
    r"\b(?:escritório|filial|loja|cidade|praia|aeroporto|prefeitura|estado|universidade|região|porto|centro) d[eao] $",
    re.IGNORECASE,
)
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
        end = start + len(name)
        before, after = text[max(0, start - NEAR) : start], text[end : end + NEAR]
        if words and _is_person(name, before, after):
            found.append(Named(name, _is_called(before, after)))
    found += [Named(match[1], True) for match in _AT.finditer(text)]
    for match in _LOWER.finditer(text):
        if match[1].islower() and match[1] not in NOT_CALLED and match[1] not in OPENERS:
            found.append(Named(match[1], True))
    return found


def _is_person(name: str, before: str, after: str) -> bool:
    words = [word.lower() for word in name.split(" ")]
    if _GREETED.search(before) or _TITLED.search(before):
        return not MONTHS.issuperset(words)
    if any(form.search(before) for form in (_PLACE_BEFORE, _OFFICE)) or _PLACE_AFTER.search(after):
        return False
    travels = _FROM.search(before) is not None
    if any({word, word.removesuffix("s")} & (MONTHS | PLACES) for word in words):
        # A month or a place: a person only with an article that places lack, or where it says or wants something.
        human = _HUMAN.match(after) is not None and not travels
        return len(words) > 1 or human or _PERSONAL.search(before) is not None
    if travels and _TRAVEL.search(before):
        return False
    alone = len(words) == 1 and _START.search(before) is not None
    return (
        not alone or after.startswith((",", "!", " —", " –")) or any(form.search(after) for form in (_SUBJECT, _THIRD))
    )


def _is_called(before: str, after: str) -> bool:
    if _HERE.search(after) or _SIGN_OFF.search(before):
        return False
    if _GREETED.search(before):
        return True
    if _ARTICLE.search(before) or _LIST.search(after) or _APPOSED.search(after):
        return False
    if _START.search(before):
        return after.startswith((",", "!", " —", " –")) and not _RELATIVE.search(after)
    among = _LISTED.search(before)
    listed = among is not None and among["word"].lower() not in OPENERS
    if listed or not _COMMA.search(before) or _RELATION.search(before) or _COPULA.search(before):
        return False
    return after.startswith(",") or _END.search(after) is not None
