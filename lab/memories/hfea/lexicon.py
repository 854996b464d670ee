"""Words of English and Brazilian Portuguese that the rule of evidence knows, folded: lower case, without accents."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FRAMING = _words(
    "say said says tell told tells mention mentioned mentions remember recall know knew talk talked please find give "
    "exactly happened happen called name named "
    "disse dizer falou falei falar falamos contou contei mencionou mencionei lembra lembro lembrar sabe saber conversa "
    "conversamos favor exatamente aconteceu chama chamava nome tinha era sao ser vai ficou esta"
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
WEEKDAYS = _words(
    "monday tuesday wednesday thursday friday saturday sunday segunda terca quarta quinta sexta sabado domingo "
    "segunda-feira terca-feira quarta-feira quinta-feira sexta-feira"
)
NUMBERS = _words(
    "two three four five six seven eight nine ten eleven twelve fifteen twenty thirty forty fifty hundred thousand "
    "dois duas tres quatro cinco seis sete oito nove dez onze doze quinze vinte trinta quarenta cinquenta cem mil"
)
"""Number words; one, um and uma are left out, being articles more often."""
RELATIVE_TIMES = _words("tomorrow yesterday today noon midnight amanha ontem hoje meio-dia meia-noite")

ATTITUDES = _words(
    "like likes liked love loves loved hate hates hated prefer prefers preferred enjoy enjoys enjoyed dislike dislikes "
    "disliked adore adores feel feels felt happy unhappy angry upset sad afraid proud fond favourite favorite "
    "disappointed annoyed "
    "gosto gosta gostam gostou gostava adoro adora adorou amo ama amou odeio odeia odiou detesto detesta prefiro "
    "prefere preferiu curto curte sinto sente sentiu feliz infeliz triste bravo brava chateado chateada zangado "
    "zangada medo orgulho orgulhoso orgulhosa favorito favorita preferido preferida decepcionado decepcionada irritado irritada"
)
"""Words by which somebody states what they feel or like."""
FIRST_PERSON = _words("i i'm my me eu meu minha mim")
"""Words by which a sentence speaks of who says it. The Portuguese verb forms below do so without a pronoun."""
FIRST_PERSON_ATTITUDES = _words("gosto adoro amo odeio detesto prefiro curto sinto")

NEGATIONS = _words("not no never n't cannot nao nunca nem sem without nobody ninguem")
REVISIONS = _words(
    "now anymore longer instead changed moved switched correction corrected actually replaced "
    "agora mudou mudamos passou passamos trocou trocamos correcao corrigindo corrigido substituido verdade"
)
"""Words by which a statement says that it replaces an earlier one."""
