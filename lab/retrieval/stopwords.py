"""Stopwords of English and Portuguese, and the folding in which words are compared with them. Standard library only."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from lab.errors import InputError

# Articles, pronouns, prepositions, conjunctions, auxiliaries, question words, and what a tokeniser leaves of English
# contractions. Words with a sense of their own that a memory may turn on (not, no, never; não, nunca, sem) stay out.
_ENGLISH = """
a about after all also am an and any are as at be because been before being between both but by can could d did do does
doing down during each few for from further get got had has have having he her here hers herself him himself his how i
if in into is it its itself just let ll m may me might more most much must my myself of off on once only or other our
ours ourselves out over own please re s same shall she should so some such t tell than that the their theirs them
themselves then there these they this those through to too under until up upon us ve very was we were what when where
which while who whom whose why will with would you your yours yourself yourselves
"""

_PORTUGUESE = """
a à ao aos aquela aquelas aquele aqueles aquilo as às até cada com como da daquela daquele das de dela delas dele deles
depois desde dessa dessas desse desses desta destas deste destes do dos e é ela elas ele eles em entre era eram éramos
essa essas esse esses esta está estamos estão estar estas estava estavam este esteja estes esteve estive estou eu fez
foi fomos for foram fosse fui há haja havia isso isto já la lhe lhes lo lá mais mas me mesma mesmo meu meus minha
minhas muito muita na naquela naquele nas nessa nesse nesta neste no nos nós nossa nossas nosso nossos num numa o onde
os ou para pela pelas pelo pelos pode por porque pra pro quais qual quando quanta quantas quanto quantos que quê quem se
seja sejam sendo ser será serão seria seu seus si sido sob sobre sou sua suas são só também te tem temos tenha tenho ter
teu teus teve tinha tinham tive tu tua tuas tudo têm um uma umas uns vai vão você vocês vos
"""


def folded(word: str) -> str:
    """A word without case and accents: ``São`` and ``sao`` are one."""
    decomposed = unicodedata.normalize("NFKD", word.casefold())
    return "".join(sign for sign in decomposed if not unicodedata.combining(sign))


STOPWORDS = {
    "en": frozenset(map(folded, _ENGLISH.split())),
    "pt": frozenset(map(folded, _PORTUGUESE.split())),
}
"""Folded words by language."""


def stopwords(languages: Iterable[str]) -> frozenset[str]:
    """The folded stopwords of languages together.

    Args:
        languages: Of ``STOPWORDS``; none for no stopwords.

    Raises:
        InputError: There is no list for one of them.
    """
    found: frozenset[str] = frozenset()
    for language in languages:
        if language not in STOPWORDS:
            raise InputError(f"no stopwords are known for {language!r}", f"take some of {', '.join(STOPWORDS)}")
        found |= STOPWORDS[language]
    return found
