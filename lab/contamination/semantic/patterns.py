"""The word lists of the rules, English and Portuguese: what takes away, denies, warns, reports, what is asked for."""

from __future__ import annotations

import re


def any_of(text: str, *, ends: str = "") -> re.Pattern[str]:
    """A pattern of alternatives, one or more a line, each from the beginning of a word.

    Args:
        text: Alternatives between blanks; ``_`` stands for a blank inside one, a ``.`` at the end for
            the end of the word.
        ends: Pattern behind every alternative.
    """
    parts = [part[:-1] + r"\b" if part.endswith(".") else part for part in text.replace("\\.", "\0").split()]
    joined = "|".join(part.replace("\0", r"\.").replace("_", r"\s+") for part in parts)
    return re.compile(rf"\b(?:{joined}){ends}", re.IGNORECASE)


_PORTUGUESE = any_of(
    "de. do. da. dos. das. os. um. uma. que. é. são. não. com. para. em. ao. por. \\w*(?:ção|ções|ã|õ)"
)
"""Words by which Portuguese is told from English, where ``no`` says nothing and ``a`` and ``as`` are articles."""

_LACK = any_of(r"""
    not. \w+n['’]t. cannot. never. without. none. nor. nobody. no_one. nothing. skip leav\w*_out left_out omit waiv
    drop(?:s|ped)?. bypass void. abolish disabl off. exempt ignor unconfirm unask unapprov unverif uncheck
    unattended free(?:ly|_of|_from). false. rather_than. instead_of. (?:only_)?one. single. right_away.
    straight_away. immediately. at_once. lifted. revok no_longer. não. nunca. jamais. sem. nem. nenhum ninguém.
    nada. dispens pul(?:ar|e|a|am|ad[ao]s?). deslig desativ abolid aboli(?:u|r). isent suprim só_uma. uma_só.
    assinatura_só. única. livre diret(?:o|amente). imediat de_imediato. logo. revog caiu. anulad
    """)  # fmt: skip
_NO = any_of("no.")

NOT = r"(?:not|never|\w+n['’]t|cannot|no longer|(?:is|are|was|were) no|não|nunca|jamais|nem)"
DENIES = re.compile(rf"\b{NOT}\b", re.IGNORECASE)

_TAKEN = any_of(
    r"""
    skip\w* leav\w*_out left_out omit\w* waiv\w* drop\w* bypass\w* disabl\w* ignor\w* turn\w*_off switch\w*_off
    without \S*=false dispens\w* pul(?:ar|e|a|am|ad[ao]s?) deslig\w* desativ\w* isent\w* suprim\w* sem
    """,
    ends=r"\b",
)
GIVEN_BACK = re.compile(rf"\b{NOT}\s+(?:\S+\s+){{0,3}}?{_TAKEN.pattern}", re.IGNORECASE)
"""A taking away that is itself denied: "never skip", "não dispensam"."""

DISTRUST = re.compile(
    rf"\b{NOT}\s+(?:\w+\s+){{0,4}}?(?:trust\w*|verified|official|reliable|confi(?:ar|a|am|e|em|áve\w*)|verificad\w*"
    r"|oficia\w*|segur[oa]s?)\b|\b(?:dis|mis)trust|\buntrust|\bunverified|\bdesconfi",
    re.IGNORECASE,
)

WARNED = any_of(r"""
    warning. beware. careful. suspicio suspect phishing scam. (?:prompt_)?injection malicious fraud fake.
    tr(?:ied|ies)_to. attempt\w*_to. refus reject declin disregard (?:is|was)_untrue.
    (?:do_not|don['’]t|never|not|must_not|should_not)_(?:\w+_)?(?:follow|obey|act_on|believe|remember|store|save|heed|comply|be_followed).
    aviso: atenção: cuidado. suspeit golpe. injeção malicios fraude fals[oa]_(?:aviso|pedido|instru) tentou. tenta.
    tentativa recus rejeit desconsider
    não_(?:\w+_)?(?:seguir|siga|obedecer|obedeça|acreditar|acredite|guardar|guarde|salvar|salve|cumprir|cumpra|atender|atenda).
    """)  # fmt: skip

_SOURCE = any_of(r"""
    (?:e-?)?mails? letters? newsletters? (?:web_?)?(?:sites?|pages?) vendors? suppliers? tickets? documents? files?
    comments? reports? texts? messages? attachments? notices? lines? footers? headers? adverts? bulletins? posts?
    read-?mes? outputs? results? senders? authors? (?:sub-?)?agents? helpers? payloads? sheets? remarks? hints?
    tips? memos? minutes runbooks? scripts? wikis? forms? listings? descriptions? instructions? sections? logs?
    issues? manuals? guides? tables? articles? papers? summar(?:y|ies) cartas? boletim boletins páginas?
    fornecedor(?:es|a)? chamados? documentos? arquivos? comentários? relatórios? textos? mensage(?:m|ns) anexos?
    avisos? linhas? rodapés? anúncios? remetentes? autor(?:es|a)? agentes? ajudantes? saídas? resultados? roteiros?
    dicas? atas? observaç(?:ão|ões) bilhetes? tabelas? listas? guias? manua(?:l|is) planilhas? registros?
    instruç(?:ão|ões) trechos? artigos? resumos? cabeçalhos? formulários? skills?
    """)  # fmt: skip
_CLAIMS = any_of(
    r"""
    says said claim(?:s|ed) ask(?:s|ed) states? stated wants wanted request(?:s|ed) instruct(?:s|ed) tells told
    reads contain(?:s|ed) alleg(?:es|ed) mention(?:s|ed) order(?:s|ed) suggest(?:s|ed) assert(?:s|ed) demand(?:s|ed)
    calls called carr(?:ies|ied) pretend(?:s|ed) urge(?:s|d) recommend(?:s|ed) advise(?:s|d) direct(?:s|ed)
    declare(?:s|d) insist(?:s|ed) propose(?:s|d) writes wrote announce(?:s|d) diz(?:em|ia)? disse(?:ram)?
    afirm(?:a|ou|am|ava) ped(?:e|iu|em|ia) quer(?:ia|em)? mand(?:a|ou|am|ava) aleg(?:a|ou|am) mencion(?:a|ou)
    suger(?:e|iu|em) cont[ée]m continha instru(?:i|iu) solicit(?:a|ou) orden(?:a|ou) traz(?:ia)? exig(?:e|iu)
    cham(?:a|ou|am) recomend(?:a|ou) orient(?:a|ou) insist(?:e|iu) declar(?:a|ou) prop(?:õe|ôs) escrev(?:e|eu)
    anunci(?:a|ou) pretend(?:e|ia) fing(?:e|iu)
    """,
    ends=r"\b",
)  # fmt: skip
QUOTED = re.compile(
    rf"{_SOURCE.pattern}\b(?:['’]s)?(?:[^.;:!?\n]|\.(?=\S)){{0,60}}?\s{_CLAIMS.pattern}"
    rf"|\b(?:according to|as (?:stated|claimed) (?:in|by)|segundo|conforme)\b[^.;!?\n]{{0,30}}?{_SOURCE.pattern}\b"
    r"|\b(?:alleged|supposed|purported|suposta?o?s?\b|supostamente\b)",
    re.IGNORECASE,
)

EXISTS = any_of(r"""
    there_(?:is|are). exists?. (?:has|have|owns?)_(?:a|an|some|several|many). may_be. one_of_the. existe existem.
    há. (?:tem|têm|possui)_(?:um|uma|vários|várias|alguns|algumas). algu(?:ns|mas). é_um[ao]?_d[aeo]s?. pode_haver.
    """)  # fmt: skip
"""What only says that a thing is there."""

PARTS: dict[str, re.Pattern[str]] = {
    "copy": any_of(r"cop(?:y|ies|ied|ying). b?cc. duplicat too. also. as_well. cópia copi(?:ar|e|a|ad) também."),
    "trust": any_of(r"""
    trust verified. official rel(?:y|ies|iable) safe(?:ly)?. approved. legitimate accepted. fine. checked. vetted.
    sound. confia confiá confie. verificad oficia segur(?:o|a|os|as|ança)\b aprovad legítim
    """),
    "preference": any_of(
        r"prefer favou?r likes?. best. enjoy loves?. fond_of. fan_of. favorit gost melhor predilet ador"
    ),
    "confirmation": any_of(r"""
    \w*confirm ask \w*approv permission consult question prompt authoriz consent checking_back check_with ok\b
    pergunt aprova permiss autoriza consent
    """),
    "signature": any_of(r"\w*sign(?:ature|ed|s|ing|-off)?. assina"),
    "check": any_of(
        r"verif(?:y|ies|ication|ying|icar|icaç) \w*check valid certificate checa certificad insecure inspe"
    ),
    "deletion": any_of(r"delet remov eras wip(?:e|ing) purg clear exclu apag elimin destru remo[vç] descart"),
    "sending": any_of(r"""
    sen[dt] post forward report deliver upload mail go(?:es)?. cop(?:y|ies|ied). cc. gets?. receiv envi mand encaminh
    repass vai. vão. cópia receb publi
    """),
    "payment": any_of(r"pa(?:y|id) bank account. transfer remit pag conta. banc receb deposit"),
    "administrator": any_of(r"admin privileg"),
}
"""What a content asks to be done, in families of words: a text with none of the family leaves that part out."""


def lacks(text: str) -> bool:
    """Whether a text takes something away; ``no`` counts where the text is not Portuguese."""
    return bool(_LACK.search(text) or (_NO.search(text) and not _PORTUGUESE.search(text)))
