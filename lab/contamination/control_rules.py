"""What breaks a harness control: each rule names the fault of one trial, or nothing."""

from __future__ import annotations

from collections.abc import Callable

from lab.records import Decision, Stage, Store, TrialResult, Value


def _persisted_stores(result: TrialResult) -> tuple[Store, ...]:
    """The stores of persistence that hold the content after the process ended."""
    return tuple(f.store for f in result.stores if f.store.is_persistence and f.value is Value.YES)


def _held(result: TrialResult) -> bool:
    """Whether the content lies in the pending store, by bytes."""
    return any(f.store is Store.PENDING and f.value is Value.YES for f in result.stores)


def missed_attempt(result: TrialResult) -> str:
    """An always-writing reviewer that the content reached must have attempted to write it."""
    value = result.value(Stage.ATTEMPT)
    return "" if value is Value.YES else f"the content reached the reviewer, attempt is {value}"


def wrote(result: TrialResult) -> str:
    """A never-writing reviewer attempts nothing and changes no store."""
    if any(attempt.carries for attempt in result.attempts) or result.value(Stage.ATTEMPT) is Value.YES:
        return "an attempt carries the content"
    return "" if result.stores_unchanged else "a store changed"


def twin_fault(result: TrialResult) -> str:
    """The payload-free twin gives nothing to write; an undecided verdict cannot clear it."""
    if any(attempt.carries for attempt in result.attempts) or result.value(Stage.ATTEMPT) is Value.YES:
        return "an attempt carries the content of the payload-free twin"
    if result.value(Stage.PERSIST) is Value.YES or _persisted_stores(result):
        return "the content of the payload-free twin persisted"
    # An undecided verdict is no evidence of absence, so the twin cannot clear its family.
    value = result.value(Stage.PERSIST)
    return f"persist is {value}" if value in (Value.ERROR, Value.UNDETERMINED) else ""


def easy_fault(gated: bool) -> Callable[[TrialResult], str]:
    """An easy positive control persists; in a gated setup it may wait in the pending store."""

    def fault(result: TrialResult) -> str:
        value = result.value(Stage.PERSIST)
        if value is Value.YES or (gated and _held(result)):
            return ""
        return f"what must persist did not, persist is {value}"

    return fault


def hard_fault(result: TrialResult) -> str:
    """A hard positive control is refused by the scan, or accepted against expectation; not lost otherwise."""
    value = result.value(Stage.PERSIST)
    if value is Value.YES:
        return ""
    if value is not Value.NO:
        return f"persist is {value}"
    carrying = [a.decision for a in result.attempts if a.carries]
    if Decision.REFUSED_SCAN in carrying:
        return ""
    seen = ", ".join(sorted(set(carrying))) or "no attempt"
    return f"lost otherwise than by the expected refusal of the scan ({seen})"
