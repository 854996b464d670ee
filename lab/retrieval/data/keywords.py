"""Keyword enrichment by a written rule: a function of one fact alone, which has seen no topic."""

from __future__ import annotations

import functools
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise, zip_longest
from pathlib import Path

import yaml
from pydantic import Field, ValidationError

import lab
from lab.errors import InputError
from lab.records import Record, digest
from lab.retrieval.testset import Author, Fact

RULE_FILE = Path(lab.__file__).resolve().parent.parent / "scenarios" / "retrieval" / "keyword-rule.yaml"

_WORD = re.compile(r"\w+")


class Concept(Record):
    """One thing of everyday life and work.

    Attributes:
        triggers: Words or pairs of words that name it; a star at the end stands for any ending.
        en: What an English speaker may also call it.
        pt: The same for Brazilian Portuguese.
    """

    triggers: tuple[str, ...] = Field(min_length=1)
    en: tuple[str, ...] = Field(min_length=1)
    pt: tuple[str, ...] = Field(min_length=1)


class KeywordRule(Record):
    """The rule as it is written.

    Attributes:
        version: Raised with every change.
        most_words: Longer facts are left alone: they have words enough.
        most_keywords: Most keywords of a fact.
        left_alone: Facts of these authors are left alone.
        concepts: The lexicon by name of the concept.
    """

    version: int
    most_words: int = Field(ge=1)
    most_keywords: int = Field(ge=1)
    left_alone: tuple[Author, ...]
    concepts: dict[str, Concept]


@functools.cache
def keyword_rule(path: Path = RULE_FILE) -> KeywordRule:
    """Reads the rule.

    Raises:
        InputError: It is missing or broken.
    """
    try:
        return KeywordRule.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        said = " ".join(str(error).split())
        raise InputError(f"the keyword rule cannot be read: {said}", f"restore {path.name}") from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise InputError(f"the keyword rule is broken at {place}: {first['msg']}", f"mend {path.name}") from None


def rule_digest() -> str:
    """Digest of the rule's content, which goes into the lock; layout and comments do not count."""
    return digest(keyword_rule().model_dump(mode="json"))


def keywords_for(fact: Fact, holds_secret: Callable[[str], bool] | None = None) -> tuple[str, ...]:
    """The keywords that the rule adds to a fact, best first.

    The concepts that its text or the names of its entities trigger, in the order of the lexicon, give one word each in
    turn, those of the fact's own language first, until there are enough. A word that the text has is never added.

    Args:
        fact: Nothing but its text, entities, language and author is looked at.
        holds_secret: Says of a text whether it holds a secret. Such a fact gets no keywords, which would make it
            easier to find.
    """
    rule = keyword_rule()
    words = _words(fact.text)
    if not 0 < len(words) <= rule.most_words or fact.author in rule.left_alone:
        return ()
    if holds_secret is not None and holds_secret(fact.text):
        return ()
    known = set(words)
    own_pt = fact.language.lower().startswith("pt")
    offers = [
        (*c.pt, *c.en) if own_pt else (*c.en, *c.pt)
        for c in _triggered(" ".join(words), *(" ".join(_words(name)) for name in fact.entities))
    ]
    added: dict[str, str] = {}
    for turn in zip_longest(*offers):
        for keyword in turn:
            if keyword is not None and not known.issuperset(_words(keyword)):
                added.setdefault(" ".join(_words(keyword)), keyword)
    return tuple(added.values())[: rule.most_keywords]


def with_keywords(facts: Iterable[Fact], holds_secret: Callable[[str], bool] | None = None) -> tuple[Fact, ...]:
    """The facts with the rule's keywords in place of any others; nothing else of a fact changes, its age neither."""
    return tuple(fact.model_copy(update={"keywords": keywords_for(fact, holds_secret)}) for fact in facts)


def _words(text: str) -> list[str]:
    """Words in lower case without accents, as triggers are written and compared."""
    bare = "".join(c for c in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(c))
    return _WORD.findall(bare)


@functools.cache
def _index() -> tuple[dict[str, list[int]], dict[str, list[int]]]:
    """Positions of concepts by whole trigger and by the beginning that stands before a star."""
    whole: dict[str, list[int]] = {}
    begun: dict[str, list[int]] = {}
    for position, concept in enumerate(keyword_rule().concepts.values()):
        for trigger in concept.triggers:
            table = begun if trigger.endswith("*") else whole
            table.setdefault(" ".join(_words(trigger)), []).append(position)
    return whole, begun


def _triggered(*texts: str) -> Iterator[Concept]:
    whole, begun = _index()
    found: set[int] = set()
    for text in texts:
        words = text.split()
        for term in (*words, *(f"{first} {second}" for first, second in pairwise(words))):
            found.update(whole.get(term, ()))
            for length in range(3, len(term) + 1):
                found.update(begun.get(term[:length], ()))
    concepts = tuple(keyword_rule().concepts.values())
    return (concepts[position] for position in sorted(found))
