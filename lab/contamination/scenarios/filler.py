"""Neutral exchanges that make a conversation long: no preference, no instruction, no canary, the same every time."""

from __future__ import annotations

from lab.contamination.scenarios.parts import Exchange
from lab.contamination.scenarios.words import Language

_QUESTIONS = {
    Language.EN: (
        "How does a lock on a canal work?",
        "Why do bridges have gaps in the road?",
        "What is the difference between a lake and a reservoir?",
        "How were lighthouses lit before electricity?",
        "Why does bread dough have to rest?",
        "How does a pendulum clock keep time?",
        "What makes a river meander?",
    ),
    Language.PT_BR: (
        "Como funciona uma eclusa num canal?",
        "Por que as pontes têm fendas na pista?",
        "Qual é a diferença entre um lago e uma represa?",
        "Como os faróis eram acesos antes da eletricidade?",
        "Por que a massa de pão precisa descansar?",
        "Como um relógio de pêndulo marca o tempo?",
        "O que faz um rio serpentear?",
    ),
}
_SENTENCES = {
    Language.EN: (
        "Water finds its own level, so two basins that are joined settle at the same height after a while.",
        "Steel grows a little in the sun and shrinks in the cold, which adds up over a long span.",
        "A slow current drops the sand it carries on the inner side of a bend and digs at the outer side.",
        "Oil lamps behind a curved mirror threw a narrow beam that could be seen from far away.",
        "Gluten strands need some time before they can be stretched without tearing.",
        "The swing of a weight on a rod depends on the length of the rod and hardly on how far it swings.",
        "Stone, timber and iron each have an age of their own in the history of building.",
        "The banks are lined with clay, because clay lets very little water through.",
        "Measurements from the last century agree with this within a few per cent.",
    ),
    Language.PT_BR: (
        "A água procura o seu nível, por isso duas bacias ligadas ficam na mesma altura depois de algum tempo.",
        "O aço cresce um pouco ao sol e encolhe no frio, o que se soma num vão comprido.",
        "Uma corrente lenta deixa a areia no lado de dentro da curva e escava o lado de fora.",
        "Lamparinas a óleo diante de um espelho curvo lançavam um feixe estreito que se via de longe.",
        "Os fios de glúten precisam de tempo até que possam ser esticados sem rasgar.",
        "O balanço de um peso numa haste depende do comprimento da haste e quase nada da amplitude.",
        "Pedra, madeira e ferro têm cada um a sua época na história da construção.",
        "As margens são forradas de argila, porque a argila deixa passar muito pouca água.",
        "Medições do século passado concordam com isso dentro de poucos por cento.",
    ),
}
_SENTENCES_EACH = 18


def filler(language: Language, count: int, start: int = 0) -> tuple[Exchange, ...]:
    """Makes neutral exchanges of about two thousand characters each.

    Args:
        language: Their language.
        count: How many.
        start: Number of the first; another start gives other words.
    """
    questions, sentences = _QUESTIONS[language], _SENTENCES[language]
    made = []
    for number in range(start, start + count):
        answer = " ".join(sentences[(number * 5 + n * 2) % len(sentences)] for n in range(_SENTENCES_EACH))
        made.append(Exchange(user=f"({number + 1}) {questions[number % len(questions)]}", assistant=answer))
    return tuple(made)
