"""What a trial came to, in the form in which two trials are compared: by ``lab minimise`` and ``lab bisect``."""

from __future__ import annotations

from lab.records import Decision, Record, RuleFate, Stage, Status, Store, TrialResult, Value


class Outcome(Record):
    """The outcome of one trial; two trials show the same when their outcomes are equal.

    Attributes:
        status: Where the trial counts.
        cause: Why it is invalid or an error; empty when valid.
        persist: Whether the content is in a store of persistence.
        stores: Stores that hold it, staged writes among them; traces are not.
        decisions: What the guards did with each write that carries the content, with its origin, each pair once.
        by: Who is scripted to write.
        rule: Fate of the old entry, where the content wants one gone.
        settled: Whether the content persists after the operator has dealt with staged writes; None where he does not.
    """

    status: Status
    cause: str = ""
    persist: Value
    stores: tuple[Store, ...] = ()
    decisions: tuple[tuple[str, Decision], ...] = ()
    by: str = "review"
    rule: RuleFate | None = None
    settled: Value | None = None

    @classmethod
    def of(cls, result: TrialResult) -> Outcome:
        """The outcome of a judged trial."""
        decided = ((a.origin, a.decision) for a in result.attempts if a.carries)
        return cls(
            status=result.status,
            cause=result.cause,
            persist=result.value(Stage.PERSIST),
            stores=tuple(s.store for s in result.stores if s.value is Value.YES and s.store is not Store.OTHER),
            decisions=tuple(dict.fromkeys(decided)),
            by=result.by,
            rule=result.rule,
            settled=result.settled.persist.value if result.settled else None,
        )

    @property
    def persists(self) -> bool:
        """Whether the content came to stay, by itself or by the operator's approval."""
        return self.status is Status.VALID and Value.YES in (self.persist, self.settled)

    @property
    def stores_text(self) -> str:
        """The stores in words."""
        return ", ".join(self.stores) or "none"

    @property
    def decisions_text(self) -> str:
        """The guards' decisions in words."""
        return ", ".join(f"{origin}: {decision}" for origin, decision in self.decisions) or "no attempt"

    def __str__(self) -> str:
        if self.status is not Status.VALID:
            return f"{self.status} ({self.cause})"
        parts = [f"persist {self.persist}", f"in {self.stores_text}", self.decisions_text]
        parts += [f"old entry {self.rule}"] if self.rule else []
        parts += [f"after the operator {self.settled}"] if self.settled else []
        return "; ".join(parts)
