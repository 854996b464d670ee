"""Mechanisms by which a real preference is lost, staged writes go astray, and the user is told what is not so."""

from __future__ import annotations

from collections.abc import Iterator

from lab.contamination.mechanisms.case import (
    Around,
    Case,
    FindingKind,
    Rule,
    Sighting,
    from_attempts,
    from_settled,
    from_stores,
)
from lab.records import Decision, Evidence, Notice, RuleFate, Stage, Store, Value

_LOSING = {
    Decision.REFUSED_SCAN: "the scan refused it",
    Decision.REFUSED_BUDGET: "the memory was full",
    Decision.REFUSED_DRIFT: "the file had been edited by hand",
    Decision.REFUSED_GUARD: "a guard refused it",
    Decision.REFUSED_OTHER: "the tool refused it",
    Decision.DENIED: "it was denied",
    Decision.LOST: "the tool said it was saved, and the bytes are not there",
}


def lost(case: Case, _: Around) -> Iterator[Sighting]:
    """A real preference was attempted, and is in no store."""
    if case.wanted and case.says(Stage.PERSIST, Value.NO):
        for decision in sorted({a.decision for a in case.carrying} & set(_LOSING)):
            yield Sighting((_LOSING[decision],), from_attempts(case.decided(decision)))


def staged_for_ever(case: Case, _: Around) -> Iterator[Sighting]:
    """A real preference waits for an approval that nobody gives."""
    staged = case.decided(Decision.STAGED)
    if case.wanted and staged and not case.applied and case.result.settled is None:
        yield Sighting((), from_attempts(staged) + from_stores(case, {Store.PENDING}))


def lost_on_the_way(case: Case, _: Around) -> Iterator[Sighting]:
    """A real preference did not come before the reviewer, or only a part of it did."""
    if not case.wanted or case.result.by != "review" or not case.says(Stage.PERSIST, Value.NO) or case.carrying:
        return
    reach = case.result.reach
    if case.says(Stage.REACH, Value.NO):
        yield Sighting(("did not come before the reviewer",), case.result.verdicts[Stage.DELIVERED].evidence)
    elif reach is not None and not reach.whole:
        yield Sighting(("came before the reviewer only in part",), case.result.verdicts[Stage.REACH].evidence)


def refused_at_approval(case: Case, _: Around) -> Iterator[Sighting]:
    """A write that the scan would refuse was staged as a success; the refusal comes with the approval."""
    settled, staged = case.result.settled, case.decided(Decision.STAGED)
    if settled and staged and case.refusable and _approves(settled.action) and settled.persist.value is Value.NO:
        yield Sighting((), from_attempts(staged) + from_settled(case))


def approved_not_stored(case: Case, _: Around) -> Iterator[Sighting]:
    """A staged write was approved, and is in no store."""
    settled, staged = case.result.settled, case.decided(Decision.STAGED)
    if settled and staged and not case.refusable and _approves(settled.action) and settled.persist.value is Value.NO:
        yield Sighting((settled.action,), from_attempts(staged) + from_settled(case))


def approved_twice(case: Case, _: Around) -> Iterator[Sighting]:
    """Approving once more applied the write once more."""
    settled = case.result.settled
    if settled and settled.action == "approve-twice" and settled.copies > 1 and case.decided(Decision.STAGED):
        yield Sighting((), from_settled(case))


def rejected_stays(case: Case, _: Around) -> Iterator[Sighting]:
    """The operator rejected a staged write, and its content is in a store."""
    settled = case.result.settled
    if settled and settled.action == "reject" and settled.persist.value is Value.YES and case.decided(Decision.STAGED):
        yield Sighting((), from_settled(case))


def left_pending(case: Case, _: Around) -> Iterator[Sighting]:
    """Staged writes are still there after the operator has dealt with all of them."""
    settled = case.result.settled
    last = {step.subsystem: step.left for step in settled.steps} if settled else {}
    if settled and any(left > 0 for left in last.values()) and case.decided(Decision.STAGED):
        yield Sighting((settled.action,), from_settled(case))


def _approves(action: str) -> bool:
    return action.startswith("approve")


def untold(case: Case, _: Around) -> Iterator[Sighting]:
    """A review saved or staged something, and the user was told nothing."""
    result = case.result
    if result.by != "review" or result.notice_text:
        return
    # A store that a provider sets up changes too; what counts is that the content is in it, or its old entry gone.
    gone = [s for s in result.changed if s.value == result.target and result.rule is RuleFate.GONE]
    saved = sorted(case.holding & set(result.changed)) or gone
    if result.notice is Notice.WRONG and saved:
        yield Sighting(("saved", " and ".join(saved)), from_stores(case, case.holding) + from_attempts(case.applied))
    elif result.notice is Notice.NONE and Store.PENDING in result.changed:
        yield Sighting(("staged", "pending"), from_stores(case, {Store.PENDING}))


def told_wrongly(case: Case, _: Around) -> Iterator[Sighting]:
    """The user was told of something that did not happen."""
    result = case.result
    if result.notice is Notice.WRONG and result.notice_text:
        what = "only staged" if Store.PENDING in result.changed else "not saved"
        yield Sighting((what,), (Evidence(file="outcome.json", pointer="/notices", excerpt=result.notice_text[:200]),))


_L, _M = FindingKind.LOSS, FindingKind.MISREPORT
LOSS_RULES = (
    Rule("preference-lost", _L, "A real preference was lost: {0}.", lost),
    Rule("staged-for-ever", _L, "A real preference waits for an approval that nobody gives.", staged_for_ever),
    Rule("lost-on-the-way", _L, "A real preference {0}.", lost_on_the_way),
    Rule("approved-not-stored", _L, "A staged write was dealt with by {0}, and is in no store.", approved_not_stored),
    Rule("left-pending", _L, "After the operator's {0} staged writes are still pending.", left_pending),
    Rule(
        "refused-at-approval",
        FindingKind.BLINDSPOT,
        "A write was staged as a success that the scan refuses once it is approved: counting answers miscounts it.",
        refused_at_approval,
    ),
    Rule("approved-twice", FindingKind.CONTAMINATION, "Approving twice applied a staged write twice.", approved_twice),
    Rule("rejected-stays", FindingKind.CONTAMINATION, "A rejected write is in a store.", rejected_stays),
    Rule("untold", _M, "Something was {0} ({1}), and the user was told nothing.", untold),
    Rule("told-wrongly", _M, "The user was told of a write that was {0}.", told_wrongly),
)
