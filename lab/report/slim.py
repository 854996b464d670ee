"""Results cut down to what a report counts, so that twenty thousand of them fit into memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from lab.records import Attempt, Evidence, Record, Settled, StoreFinding, TrialResult, Verdict

_EXCERPT = 320
_WORDS = 200
"""Characters kept of evidence and of what was said: findings quote no more, and trial pages read the files."""

_FIELDS = set(TrialResult.model_fields)
R = TypeVar("R", bound=Record)


def slim(results: Iterable[TrialResult]) -> Iterator[TrialResult]:
    """The results one by one, with long texts cut and equal parts shared.

    Verdicts, identities, counts and places of evidence are as they were; only quoted text is shorter.
    """
    shared: dict[Record, Record] = {}
    words: dict[str, str] = {}

    def one(record: R) -> R:
        return shared.setdefault(record, record)  # type: ignore[return-value]

    def word(text: str) -> str:
        return words.setdefault(text, text)

    def evidence(items: tuple[Evidence, ...]) -> tuple[Evidence, ...]:
        return tuple(one(Evidence(file=e.file, pointer=e.pointer, excerpt=e.excerpt[:_EXCERPT])) for e in items)

    # Most records are short already: a copy of each would take longer than all the rest.
    def verdict(found: Verdict) -> Verdict:
        if not found.evidence and len(found.detail) <= _EXCERPT:
            return one(found)
        return one(found.model_copy(update={"detail": found.detail[:_EXCERPT], "evidence": evidence(found.evidence)}))

    def store(found: StoreFinding) -> StoreFinding:
        if not found.evidence:
            return one(found)
        return one(found.model_copy(update={"evidence": evidence(found.evidence)}))

    def attempt(made: Attempt) -> Attempt:
        return one(
            made.model_copy(update={"arguments": made.arguments[:_WORDS], "answer": "", "target": made.target[:_WORDS]})
        )

    def settled(done: Settled) -> Settled:
        steps = tuple(step.model_copy(update={"said": step.said[:_WORDS]}) for step in done.steps)
        stores = tuple(map(store, done.stores))
        return one(done.model_copy(update={"steps": steps, "persist": verdict(done.persist), "stores": stores}))

    for result in results:
        fields = {name: getattr(result, name) for name in TrialResult.model_fields}
        fields |= {name: word(value) for name, value in fields.items() if type(value) is str}
        fields |= {
            "detail": result.detail[:_EXCERPT],
            "notice_text": result.notice_text[:_WORDS],
            "verdicts": {stage: verdict(found) for stage, found in result.verdicts.items()},
            "reach": one(result.reach) if result.reach else None,
            "attempts": tuple(map(attempt, result.attempts)),
            "stores": tuple(map(store, result.stores)),
            "settled": settled(result.settled) if result.settled else None,
            "seconds": {},
        }
        # The set of the fields is shared as well: of each record it would take more room than what it names.
        yield TrialResult.model_construct(_FIELDS, **fields)
