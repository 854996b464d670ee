"""Words of English and Brazilian Portuguese that the rule of evidence knows, folded: lower case, without accents."""

from __future__ import annotations

import re


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FRAMING = _words(
    "say said says tell told tells mention mentioned mentions remember recall know knew talk talked please find give "
    "exactly happened happen called name named "
    "disse dizer falou falei falar falamos contou contei mencionou mencionei lembra lembro lembrar sabe saber conversa "
    "conversamos favor according segundo exatamente aconteceu chama chamava nome tinha era sao ser vai ficou esta"
)
"""Words by which a question asks; an answer has no need of them."""

WHEN = _words("when quando since desde")
"""Words that ask for a time."""
WHEN_NOUNS = _words("date data day dia time hora horas horario month mes year ano weekday deadline prazo")
"""What is asked for after ``what`` or ``which`` where the answer is a time."""
HOW_MANY = _words("many much quanto quanta quantos quantas")
QUANTITY_NOUNS = _words("number numero price preco code codigo cost custo size tamanho phone telefone amount valor")
"""What is asked for after ``what`` or ``which`` where the answer is a number."""
WHO = _words("who whom whose quem")
WHICH = _words("what which qual quais que")

MONTHS = _words(
    "january february march april may june july august september october november december "
    "janeiro fevereiro marco abril maio junho julho agosto setembro outubro novembro dezembro"
)
WEEKDAY = re.compile(
    r"(?P<name>monday|tuesday|wednesday|thursday|friday|saturday|sunday|sabado|domingo)s?"
    r"|(?P<nome>segunda|terca|quarta|quinta|sexta)s?(?:-feiras?)?"
)
"""A weekday in singular or plural."""
DAY_BEFORE = _words("dia dias day")
"""Words after which a number is a day of a month."""
DAY_LINKS = _words("de to a e and of the at until ate")
"""Words that may stand between a day and its month."""
NUMBERS = _words(
    "two three four five six seven eight nine ten eleven twelve fifteen twenty thirty forty fifty hundred thousand "
    "dois duas tres quatro cinco seis sete oito nove dez onze doze quinze vinte trinta quarenta cinquenta cem mil"
)
"""Number words; one, um and uma are left out, being articles more often."""
RELATIVE_TIMES = _words("tomorrow yesterday today noon midnight amanha ontem hoje meio-dia meia-noite")

TASTES = _words(
    "like likes liked love loves loved hate hates hated prefer prefers preferred enjoy enjoys enjoyed dislike dislikes "
    "disliked adore adores favourite favorite fond "
    "gosto gosta gostam gostou gostava adoro adora adorou amo ama amou odeio odeia odiou detesto detesta prefiro "
    "prefere preferiu curto curte favorito favorita preferido preferida"
)
"""Words by which somebody states what they like or not."""
FEELINGS = _words(
    "feel feels felt happy unhappy angry upset sad afraid proud disappointed annoyed "
    "sinto sente sentiu feliz infeliz triste bravo brava chateado chateada zangado zangada medo orgulho orgulhoso "
    "orgulhosa decepcionado decepcionada irritado irritada"
)
"""Words by which somebody states how they feel."""
FIRST_PERSON = _words("i eu gosto adoro amo odeio detesto prefiro curto sinto")
"""Words by which a sentence states the attitude of who says it; Portuguese verbs do so without a pronoun."""

NEGATIONS = _words("not no never n't cannot nao nunca nem sem without nobody ninguem")
REVISIONS = _words(
    "now anymore longer instead changed moved switched correction corrected actually replaced "
    "agora mudou mudamos passou passamos trocou trocamos correcao corrigindo corrigido substituido verdade"
)
"""Words by which a statement says that it replaces an earlier one."""
