"""Generates sets of any size from a seed. Synthetic by template: for speed and scale, not for statements of quality."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import TypeVar

from lab.errors import InputError
from lab.retrieval.data.templates import ENGLISH, PORTUGUESE, Attribute, EntityKind, Language, Pattern, templates
from lab.retrieval.testset import MAIN_STORE, Author, Fact, Purpose, Relation, TestSet, Topic

TOPICS = 79
"""Topics of the published shape."""

_BEGIN, _BETWEEN = datetime(2016, 1, 1, 8, tzinfo=UTC), timedelta(minutes=10)
_EXACT, _PARAPHRASE, _THIRD_PARTY, _NO_ANSWER = "exact", "paraphrase", "third-party", "no-answer"
_FIELDS = set(Fact.model_fields)
_Item = TypeVar("_Item")


@dataclass(frozen=True)
class _Statement:
    """One pair of entity and attribute, which occurs once: its facts, or none where nothing was said.

    Attributes:
        facts: An older value first where there was one, then the current one, then a restatement.
        answers: Those of the facts that say the current value.
        exact: The question in the fact's words.
        paraphrase: The question in others.
        language: Language of all of it.
        third_party: Whether another person said it.
    """

    facts: tuple[Fact, ...]
    answers: frozenset[str]
    exact: str
    paraphrase: str
    language: Language
    third_party: bool


def generate(facts: int, topics: int = TOPICS, seed: int = 0) -> TestSet:
    """Generates a set of the published shape: 55 exact, 12 paraphrase, 6 third-party, 6 without an answer in 79.

    The same arguments give the same set with every version of Python: of the generator of random numbers only
    ``random()`` is used, which is the one method that promises this. More topics do not change the facts, and a larger
    set begins with the facts of a smaller one.

    Args:
        facts: Facts, exactly.
        topics: Topics, exactly; split among the classes by largest remainder.
        seed: Decides all.

    Raises:
        InputError: So few facts do not give so many topics.
    """
    if topics < 1:
        raise InputError(f"{topics} topics", "ask for at least one")
    wanted = _split(topics)
    held: list[Fact] = []
    sizes = {_EXACT: wanted[_EXACT] + wanted[_PARAPHRASE], _THIRD_PARTY: wanted[_THIRD_PARTY]}
    sizes[_NO_ANSWER] = wanted[_NO_ANSWER]
    chosen = {name: _Reservoir(size, _rng(seed + n)) for n, (name, size) in enumerate(sizes.items(), 1)}
    for statement in _statements(seed):
        if len(held) + len(statement.facts) > facts:
            held += statement.facts[: facts - len(held)]
            break
        held += statement.facts
        asked = _NO_ANSWER if not statement.facts else _THIRD_PARTY if statement.third_party else _EXACT
        chosen[asked].offer(statement)
    if any(len(reservoir.kept) < reservoir.size for reservoir in chosen.values()):
        raise InputError(f"{facts} facts are too few for {topics} topics", "ask for more facts or fewer topics")
    made: list[Topic] = []
    qrels: dict[str, frozenset[str]] = {}
    for name, size in wanted.items():
        kept = chosen[name if name in chosen else _EXACT].kept
        for number in range(1, size + 1):
            statement = kept.pop()
            text = statement.paraphrase if name == _PARAPHRASE else statement.exact
            topic = Topic(id=f"{name}-{number:04}", text=text, topic_class=name, language=statement.language)
            made.append(topic)
            if statement.answers:
                qrels[topic.id] = statement.answers
    return TestSet(
        name=f"generated-{facts}-{topics}-{seed}",
        title=f"Generated from templates: {facts:,} facts, seed {seed}",
        purpose=Purpose.DEVELOPMENT,
        licence="synthetic",
        source=f"lab.retrieval.data.generate, seed {seed}",
        stores={MAIN_STORE: tuple(held)},
        topics=tuple(made),
        qrels=qrels,
        notes=("synthetic by template: for speed and scale, not for statements of quality",),
    )


def generated_facts(seed: int = 0) -> Iterator[Fact]:
    """The facts of a seed one after another, without end and without holding them."""
    return (fact for statement in _statements(seed) for fact in statement.facts)


class _Reservoir:
    """An even choice of ``size`` statements from a stream of unknown length (Vitter's algorithm R)."""

    def __init__(self, size: int, rng: Random) -> None:
        self.size, self._rng, self._seen = size, rng, 0
        self.kept: list[_Statement] = []

    def offer(self, statement: _Statement) -> None:
        self._seen += 1
        if len(self.kept) < self.size:
            self.kept.append(statement)
        elif (place := int(self._rng.random() * self._seen)) < self.size:
            self.kept[place] = statement


def _split(topics: int) -> dict[str, int]:
    """Topics by class in the published shares, by largest remainder."""
    shares = templates().classes
    whole = sum(shares.values())
    wanted = {name: topics * share // whole for name, share in shares.items()}
    by_remainder = sorted(shares, key=lambda name: -(topics * shares[name] % whole))
    for name in by_remainder[: topics - sum(wanted.values())]:
        wanted[name] += 1
    return wanted


def _statements(seed: int) -> Iterator[_Statement]:
    """All statements of a seed, entity by entity; of each entity one attribute is never stated."""
    rng = _rng(seed)
    kinds = [kind for kind in templates().kinds for _ in range(kind.weight)]
    orders = {kind.kind: kind.order(rng) for kind in templates().kinds}
    made = dict.fromkeys(orders, 0)
    writer = _Writer(rng)
    while True:
        for kind in kinds:
            name = kind.name(made[kind.kind], orders[kind.kind])
            made[kind.kind] += 1
            yield from writer.about(kind, name)


class _Writer:
    """Writes statements; counts the facts and keeps one copy of what many facts share."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._facts = 0
        self._relations: dict[tuple[str, str], tuple[Relation, ...]] = {}

    def about(self, kind: EntityKind, name: str) -> Iterator[_Statement]:
        languages: tuple[Language, Language] = (ENGLISH, PORTUGUESE)
        language = languages[self._rng.random() < templates().shares.portuguese]
        silent = _pick(self._rng, kind.attributes)
        entities = (name,)
        for attribute in kind.attributes:
            yield self._statement(attribute, entities, language, silent=attribute is silent)

    def _statement(
        self, attribute: Attribute, entities: tuple[str, ...], language: Language, *, silent: bool
    ) -> _Statement:
        shares, said = templates().shares, attribute.sentences(language)
        exact, paraphrase = (question.format(e=entities[0]) for question in (said.exact, said.paraphrase))
        if silent:
            return _Statement((), frozenset(), exact, paraphrase, language, third_party=False)
        old, value = self._two_values(attribute, language)
        text = said.fact.format(e=entities[0], v=value)
        draw = self._rng.random()
        if draw < shares.third_party:
            wrapper, speaker = templates().wrappers[language], _pick(self._rng, templates().speakers)
            text = wrapper.third_party.format(s=speaker, fact=text)
            fact = self._fact(text, attribute, value, (*entities, speaker), language, Author.THIRD_PARTY)
            exact = wrapper.asked.format(s=speaker, question=exact)
            return _Statement((fact,), frozenset({fact.id}), exact, paraphrase, language, third_party=True)
        draw -= shares.third_party
        author = Author.AGENT if draw < shares.agent else Author.USER
        if shares.agent <= draw < shares.agent + shares.unknown:
            author = Author.UNKNOWN
        facts = []
        replaced = None
        if self._rng.random() < shares.superseded:
            former = templates().wrappers[language].superseded.format(fact=said.fact.format(e=entities[0], v=old))
            facts.append(self._fact(former, attribute, old, entities, language, author))
            replaced = facts[0].id
        facts.append(self._fact(text, attribute, value, entities, language, author, replaced))
        answers = [facts[-1].id]
        if self._rng.random() < shares.restated:
            again = said.restated.format(e=entities[0], v=value)
            facts.append(self._fact(again, attribute, value, entities, language, Author.AGENT))
            answers.append(facts[-1].id)
        return _Statement(tuple(facts), frozenset(answers), exact, paraphrase, language, third_party=False)

    def _two_values(self, attribute: Attribute, language: Language) -> tuple[str, str]:
        """An older value and the current one, which are never the same."""
        values = attribute.values
        count = values.most - values.least + 1 if isinstance(values, Pattern) else len(values[language])
        first = int(self._rng.random() * count)
        second = (first + 1 + int(self._rng.random() * (count - 1))) % count
        if isinstance(values, Pattern):
            return values.pattern.format(n=values.least + first), values.pattern.format(n=values.least + second)
        return values[language][first], values[language][second]

    def _fact(
        self,
        text: str,
        attribute: Attribute,
        value: str,
        entities: tuple[str, ...],
        language: Language,
        author: Author,
        supersedes: str | None = None,
    ) -> Fact:
        number, self._facts = self._facts, self._facts + 1
        related = (attribute.key, value)
        if related not in self._relations:
            self._relations[related] = (Relation(kind=attribute.key, target=value),)
        # Validation would cost more than all the rest; a test validates what is made here.
        return Fact.model_construct(
            _fields_set=_FIELDS,
            id=f"g{number + 1:06}",
            text=text,
            language=language,
            author=author,
            created_at=(_BEGIN + number * _BETWEEN).strftime("%Y-%m-%dT%H:%M:%SZ"),
            category=attribute.category,
            entities=entities,
            relations=self._relations[related],
            tags=(),
            keywords=(),
            supersedes=supersedes,
            trust=0.5,
        )


def _rng(seed: int) -> Random:
    return Random(seed)  # noqa: S311 - nothing secret is made; the same seed must give the same set


def _pick(rng: Random, items: tuple[_Item, ...]) -> _Item:
    return items[int(rng.random() * len(items))]
