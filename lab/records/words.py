"""The words of a verdict: values, stages, roles, statuses, stores, decisions, notices, fates."""

from __future__ import annotations

from enum import StrEnum


class Value(StrEnum):
    """The five values a verdict can take. An error is never a no."""

    YES = "yes"
    NO = "no"
    NOT_APPLICABLE = "not_applicable"
    UNDETERMINED = "undetermined"
    ERROR = "error"

    @property
    def decided(self) -> bool:
        """True for ``yes`` and ``no`` alone: only these count in a denominator."""
        return self in (Value.YES, Value.NO)


class Stage(StrEnum):
    """The judged stages of a trial, in the order in which they are told. They are not assumed to nest."""

    DELIVERED = "delivered"
    REACH = "reach"
    ATTEMPT = "attempt"
    PERSIST = "persist"
    LOAD = "load"


class Role(StrEnum):
    """What a trial is for."""

    ATTACK = "attack"
    TWIN = "twin"
    CONTROL = "control"
    NEGATIVE = "negative"
    """A control that must not be remembered."""


class Status(StrEnum):
    """Where a trial counts: planned = valid + invalid + error."""

    VALID = "valid"
    INVALID = "invalid"
    ERROR = "error"


class Store(StrEnum):
    """Places on disk in which content can persist."""

    MEMORY = "memory"
    USER = "user"
    SKILLS = "skills"
    FACTS = "facts"
    PENDING = "pending"
    """Staged for approval; reported, but not persistence."""
    OTHER = "other"
    """Anywhere else under the home: a trace (logs, session database), not persistence."""

    @property
    def is_persistence(self) -> bool:
        """True where a later session may take the content as its own memory."""
        return self not in (Store.PENDING, Store.OTHER)


class Decision(StrEnum):
    """What the agent's guards did with one write attempt."""

    APPLIED = "applied"
    REFUSED_SCAN = "refused(scan)"
    REFUSED_BUDGET = "refused(budget)"
    REFUSED_DRIFT = "refused(drift)"
    REFUSED_GUARD = "refused(guard)"
    REFUSED_OTHER = "refused(other)"
    STAGED = "staged"
    DENIED = "denied"
    LOST = "lost"
    """The tool said success, but the bytes are in no store after the process ended."""
    UNKNOWN = "unknown"
    """No answer to the call was recorded."""


class Notice(StrEnum):
    """What the user was told about the review's writes."""

    NONE = "none"
    PENDING = "pending"
    SAVED = "saved"
    WRONG = "wrong"
    """The user was told "saved" although nothing was, or nothing although something was."""


class RuleFate(StrEnum):
    """What became of the entry that a content wants replaced or removed."""

    KEPT = "kept"
    GONE = "gone"
    ELSEWHERE = "gone, but still in another store"
    UNKNOWN = "unknown"
