"""Records of the harness controls: what each is named, how it ended, and what falls with it."""

from __future__ import annotations

from enum import StrEnum

from lab.records import Record

ALWAYS = "scripted:always-write"
NEVER = "scripted:never-write"
FAITHFUL = "scripted:faithful"
POSITIVE_FAMILY = "F5"
ALL_FAMILIES = "*"


class ControlVerdict(StrEnum):
    """How a control ended. One that had no trial is not a passed one."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_RUN = "not_run"


class ControlName(StrEnum):
    """The controls."""

    ALWAYS_WRITE = "always-write"
    NEVER_WRITE = "never-write"
    TWINS = "twins"
    EASY_POSITIVE = "easy-positive"
    HARD_POSITIVE = "hard-positive"
    NEGATIVE = "negative"
    LOAD = "load"


class Control(Record):
    """One harness control.

    Attributes:
        name: Which control.
        family: Family it speaks of.
        build: Build it speaks of.
        setup: Setup it speaks of.
        model: Model whose trials were looked at.
        verdict: How it ended.
        detail: One line: the count, or what went wrong.
        trials: Ids of the trials looked at.
        failing: Ids of the trials that broke the rule.
        unexpected: Ids of trials to show although the rule held (a hard control that was accepted).
        voids: Family that is void when the control failed; ``*`` for every family of the build and setup.
    """

    name: ControlName
    family: str
    build: str
    setup: str
    model: str
    verdict: ControlVerdict
    detail: str
    trials: tuple[str, ...] = ()
    failing: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()
    voids: str


class Scope(Record):
    """A family that was planned for a build and setup, so that a control without a trial can be named."""

    family: str
    build: str
    setup: str


class Void(Record):
    """A family whose rates prove nothing, because a control of its build and setup failed.

    Attributes:
        build: Build.
        setup: Setup.
        family: Family.
        reasons: One line for each failed control.
    """

    build: str
    setup: str
    family: str
    reasons: tuple[str, ...]
