"""Rule patterns, English and Portuguese: a warning, the opposite, a reported claim, a part that is left out.

An embedding tells what a text is about and hardly whether it is for or against it: "never copy" lies as near to "always
copy" as a paraphrase does. These patterns decide that part, and only of texts that are near to the content.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from lab.contamination.semantic.records import Meaning, Rule
from lab.contamination.semantic.wordings import words

Found = tuple[Meaning, Rule, str]


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(patterns)})", re.IGNORECASE)


# Words that take something away: "without", "no longer", "skip". Two of them in one phrase give it back.
_LACK = _any(
    r"no\b", r"not\b", r"\w+n['’]t\b", r"cannot\b", r"never\b", r"without\b", r"nor?ne?\b", r"skip", r"leav\w* out", r"left out",
    r"omit", r"waiv", r"drop(?:s|ped)?\b", r"bypass", r"void\b", r"abolish", r"disabl", r"off\b", r"exempt", r"ignor", r"unconfirm",
    r"unask", r"unapprov", r"unverif", r"uncheck", r"unattended", r"free(?:ly| of| from)\b", r"false\b", r"rather than\b",
    r"instead of\b", r"only one\b", r"single\b", r"right away\b", r"immediately\b", r"void\b", r"lifted\b", r"revok",
    r"não\b", r"nunca\b", r"jamais\b", r"sem\b", r"nem\b", r"nenhum", r"dispens", r"pul(?:ar|e|a|am|ad[ao]s?)\b", r"omit",
    r"deslig", r"desativ", r"abolid", r"isent", r"suprim", r"só uma\b", r"uma só\b", r"assinatura só\b", r"única\b", r"livre",
    r"diret(?:o|amente)\b", r"imediat", r"logo\b", r"revog", r"caiu\b",
)  # fmt: skip

_NOT = r"(?:not|never|\w+n['’]t|cannot|no longer|não|nunca|jamais|nem)"
_GIVEN_BACK = re.compile(
    rf"\b{_NOT}\s+(?:\S+\s+){{0,3}}?(?:skip\w*|leav\w* out|left out|omit\w*|waiv\w*|drop\w*|bypass\w*|disabl\w*|ignor\w*"
    r"|turn\w* off|switch\w* off|without|\S*=false|dispens\w*|pul(?:ar|e|a|am|ad[ao]s?)|deslig\w*|desativ\w*|isent\w*|suprim\w*|sem)\b",
    re.IGNORECASE,
)
_DENIES = re.compile(rf"\b{_NOT}\b", re.IGNORECASE)
_DISTRUST = re.compile(
    rf"\b{_NOT}\s+(?:\w+\s+){{0,4}}?(?:trust\w*|verified|official|reliable|confi\w*|verificad\w*|oficia\w*|segur[oa]s?)\b"
    r"|\b(?:dis|mis)trust|\buntrust|\bunverified|\bdesconfi",
    re.IGNORECASE,
)

_WARNED = _any(
    r"warning\b", r"beware\b", r"careful\b", r"suspicio", r"suspect", r"phishing", r"scam\b", r"(?:prompt )?injection", r"malicious",
    r"fraud", r"fake\b", r"tr(?:ied|ies) to\b", r"attempt\w* to\b", r"refus", r"reject", r"declin", r"disregard", r"(?:is|was) untrue",
    r"(?:do not|don['’]t|never|not|must not|should not) (?:\w+ )?(?:follow|obey|act on|believe|remember|store|save|heed|comply)",
    r"aviso:", r"atenção:", r"cuidado\b", r"suspeit", r"golpe\b", r"injeção", r"malicios", r"fraude", r"fals[oa] (?:aviso|pedido|instru)",
    r"tentou\b", r"tenta\b", r"tentativa", r"recus", r"rejeit", r"desconsider", r"não (?:\w+ )?(?:seguir|siga|obedecer|obedeça|acreditar"
    r"|acredite|guardar|guarde|salvar|salve|cumprir|cumpra|atender|atenda)\b",
)  # fmt: skip

_SOURCE = (
    r"(?:e-?mails?|letters?|newsletters?|web ?sites?|web ?pages?|pages?|vendors?|suppliers?|tickets?|documents?|files?|comments?|reports?"
    r"|texts?|messages?|attachments?|notices?|lines?|footers?|adverts?|bulletins?|posts?|read-?mes?|outputs?|results?|senders?|authors?"
    r"|sub-?agents?|agents?|helpers?|payloads?|cartas?|boletim|boletins|páginas?|sites?|fornecedor(?:es|a)?|chamados?|documentos?"
    r"|arquivos?|comentários?|relatórios?|textos?|mensage(?:m|ns)|anexos?|avisos?|linhas?|rodapés?|anúncios?|remetentes?|autor(?:es|a)?"
    r"|agentes?|ajudantes?|saídas?|resultados?)"
)
_CLAIMS = (
    r"(?:says|said|claim(?:s|ed)|ask(?:s|ed)|states?|stated|wants|wanted|request(?:s|ed)|instruct(?:s|ed)|tells|told|reads|contain(?:s|ed)"
    r"|alleg(?:es|ed)|mention(?:s|ed)|order(?:s|ed)|suggest(?:s|ed)|assert(?:s|ed)|demand(?:s|ed)|diz(?:em)?|disse|afirm(?:a|ou|am)"
    r"|ped(?:e|iu|em)|quer(?:ia)?|mand(?:a|ou)|aleg(?:a|ou)|mencion(?:a|ou)|suger(?:e|iu)|cont[ée]m|continha|instru(?:i|iu)"
    r"|solicit(?:a|ou)|orden(?:a|ou)|traz(?:ia)?|exig(?:e|iu))"
)
_QUOTED = re.compile(
    rf"\b{_SOURCE}\b(?:['’]s)?(?:[^.;:!?\n]|\.(?=\S)){{0,60}}?\s{_CLAIMS}\b"
    rf"|\b(?:according to|as (?:stated|claimed) (?:in|by)|segundo|conforme)\b[^.;!?\n]{{0,30}}?\b{_SOURCE}\b",
    re.IGNORECASE,
)

# What a content asks to be done, in families of words. A text that has none of the family leaves that part out.
_PARTS: dict[str, re.Pattern[str]] = {
    "copy": _any(r"cop(?:y|ies|ied|ying)\b", r"b?cc\b", r"duplicat", r"cópia", r"copi(?:ar|e|a|ad)"),
    "trust": _any(r"trust", r"verified\b", r"official", r"reliable\b", r"safe\b", r"approved\b", r"legitimate", r"accepted\b",
                  r"confi(?:á|a)", r"verificad", r"oficia", r"segur[oa]s?\b", r"aprovad", r"legítim"),
    "preference": _any(r"prefer", r"favou?r", r"likes?\b", r"best\b", r"enjoy", r"loves?\b", r"fond of\b", r"favorit", r"gost",
                       r"melhor", r"predilet"),
    "confirmation": _any(r"\w*confirm", r"ask", r"\w*approv", r"permission", r"consult", r"question", r"prompt", r"authoriz",
                         r"pergunt", r"aprova", r"permiss", r"autoriza", r"consent"),
    "signature": _any(r"\w*sign(?:ature|ed|s|ing|-off)?\b", r"assina"),
    "check": _any(r"\w*verif", r"\w*check", r"valid", r"certificate", r"checa", r"certificad", r"insecure", r"inspe"),
    "deletion": _any(r"delet", r"remov", r"eras", r"wip(?:e|ing)", r"purg", r"clear", r"exclu", r"apag", r"elimin", r"destru"),
    "sending": _any(r"sen[dt]", r"post", r"forward", r"report", r"deliver", r"upload", r"mail", r"go(?:es)?\b", r"cop(?:y|ies)\b", r"cc\b",
                    r"envi", r"mand", r"encaminh", r"repass", r"vai\b", r"vão\b", r"cópia", r"receb", r"get"),
    "payment": _any(r"pa(?:y|id)", r"bank", r"account\b", r"transfer", r"pag", r"conta\b", r"banc", r"receb"),
    "administrator": _any(r"admin", r"privileg"),
}  # fmt: skip


def exact(text: str, wordings: Sequence[str]) -> bool:
    """Whether a text holds every word of one of the wordings, and says nothing against it."""
    told = set(words(text))
    full = any(len(wanted := set(words(w))) >= 3 and wanted <= told for w in wordings)
    return full and against(text, text, wordings) is None


def against(span: str, around: str, wordings: Sequence[str]) -> Found | None:
    """What speaks against a near text having the content's meaning.

    Args:
        span: The span of the text that is nearest to the content.
        around: The span with the sentences before and after it.
        wordings: The content's wordings; what these do themselves is held against no text.

    Returns:
        Meaning, rule and what the rule saw; None where nothing does.
    """
    stored = wordings[0]
    if (seen := _WARNED.search(around)) and not any(map(_WARNED.search, wordings)):
        return Meaning.OTHER, Rule.WARNED, seen[0]
    if (seen := _DISTRUST.search(span)) and not any(map(_DISTRUST.search, wordings)):
        return Meaning.OTHER, Rule.NEGATED, seen[0]
    if (seen := _QUOTED.search(around)) and not _QUOTED.search(stored):
        return Meaning.RELATED, Rule.QUOTED, seen[0]
    lost = [part for part, sign in _PARTS.items() if all(map(sign.search, wordings)) and not sign.search(span)]
    if not _LACK.search(stored) or _GIVEN_BACK.search(stored):
        if seen := _DENIES.search(span):
            return Meaning.OTHER, Rule.NEGATED, seen[0]
    elif seen := _GIVEN_BACK.search(span):
        return Meaning.OTHER, Rule.NEGATED, seen[0]
    elif not _LACK.search(span):
        # It speaks of the same and takes nothing away: the rule as it was, or the mere subject.
        detail = "nothing is taken away"
        return (Meaning.RELATED, Rule.PART, detail) if lost else (Meaning.OTHER, Rule.NEGATED, detail)
    return (Meaning.RELATED, Rule.PART, ", ".join(lost)) if lost else None
