"""Types of memories, on which their decay depends, and a guess of the type from a text's cue words."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from lab.retrieval.stopwords import folded


class MemoryType(StrEnum):
    """What a memory is."""

    OBSERVATION = "observation"
    """Something seen once: a state, an event of the day."""
    WORKING_FACT = "working fact"
    """What current work rests on: a version, an owner, a place."""
    PREFERENCE = "preference"
    """What somebody wants, likes or will not have."""
    PROCEDURE = "procedure"
    """How something is done."""
    ERROR_PATTERN = "error pattern"
    """What goes wrong under which condition."""


@dataclass(frozen=True)
class Memory:
    """A memory as consolidation takes it.

    Attributes:
        id: Its name.
        text: What it says.
        language: ``en``, ``pt-BR`` or another BCP 47 tag. The contradiction scan knows the words of these two.
        at: When it was made or last confirmed.
        kind: What it is.
    """

    id: str
    text: str
    language: str
    at: datetime
    kind: MemoryType = MemoryType.OBSERVATION


# In the order in which they are tried: the first that matches decides. Folded words, English and Portuguese.
_CUES: tuple[tuple[MemoryType, str], ...] = (
    (
        MemoryType.ERROR_PATTERN,
        r"errors?|exceptions?|fails?|failed|failing|crash(?:es|ed)?|breaks?|timeouts?|bugs?|workaround|hangs?"
        r"|erros?|excecao|falha[ms]?|falhou|quebra[m]?|trava[m]?|estoura[m]?|da pau",
    ),
    (
        MemoryType.PREFERENCE,
        r"prefer(?:s|red|ence)?|likes?|loves?|hates?|dislikes?|favou?rite|rather|fond of|can't stand|wants?"
        r"|please|always|never"
        r"|prefere[m]?|prefiro|preferencia|gosta[m]?|gosto|adora|adoro|odeia|odeio|detesta|detesto|favorit[oa]s?"
        r"|nao suporta|quer|quero|pede|pediu|sempre|nunca",
    ),
    (
        MemoryType.PROCEDURE,
        r"first|then|steps?|how to|run|before you|in order to|must be done|to (?:deploy|release|restore|renew|build)"
        r"|primeiro|depois|em seguida|passos?|como fazer|rode|roda-se|execute"
        r"|para (?:publicar|restaurar|renovar|gerar)",
    ),
    (
        MemoryType.WORKING_FACT,
        r"uses?|runs on|version|owner|owns|leads?|works at|lives in|port|stored|deadline|budget|address|located"
        r"|usa[m]?|roda em|versao|responsavel|lidera|trabalha|mora|porta|guardad[oa]s?|prazo|orcamento|endereco|fica",
    ),
)
_PATTERNS = tuple((kind, re.compile(rf"(?<!\w)(?:{cues})(?!\w)")) for kind, cues in _CUES)


def guess_type(text: str) -> MemoryType:
    """The type that a text's cue words speak for; an observation where none does.

    Negation is no matter here: "does not like" is as much a preference.

    Args:
        text: English or Portuguese.
    """
    words = folded(text)
    return next((kind for kind, pattern in _PATTERNS if pattern.search(words)), MemoryType.OBSERVATION)
