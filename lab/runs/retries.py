"""Which infrastructure errors are tried again, and how often: a table as data, ``retries.yaml`` beside this module."""

from __future__ import annotations

import fnmatch
from pathlib import Path
from typing import Annotated, Self

import yaml
from pydantic import Field, StringConstraints, ValidationError, model_validator

from lab.errors import InputError
from lab.records import Record

RETRIES_FILE = Path(__file__).with_name("retries.yaml")
"""The table that every new run is locked with."""

ANY_CAUSE = "*"


class RetryRule(Record):
    """What is done about one class of error.

    Attributes:
        cause: Shell glob over the causes of results.
        more: Further attempts after the first.
        pause_seconds: How long no trial is started before the next attempt.
        why: The reason, for the reader.
    """

    cause: Annotated[str, StringConstraints(pattern=r"^[a-z_*?]+$")]
    more: int = Field(ge=0, le=5)
    pause_seconds: float = Field(ge=0, le=600)
    why: Annotated[str, StringConstraints(min_length=1)]


class RetryTable(Record):
    """The rules, of which the first that fits a cause counts.

    Attributes:
        rules: At least one; the last fits every cause.
    """

    rules: Annotated[tuple[RetryRule, ...], Field(min_length=1)]

    @model_validator(mode="after")
    def _decides_everything(self) -> Self:
        patterns = [rule.cause for rule in self.rules]
        if patterns[-1] != ANY_CAUSE:
            raise ValueError(f"the last rule must be for cause {ANY_CAUSE!r}")
        for position, pattern in enumerate(patterns):
            # A glob reads as plain text here, so "sandbox_*" after "sandbox_*" or "*" is found, which is what slips.
            if any(fnmatch.fnmatchcase(pattern, before) for before in patterns[:position]):
                raise ValueError(f"the rule for {pattern!r} is never reached: an earlier one fits all that it fits")
        return self

    def rule(self, cause: str) -> RetryRule:
        """The rule for a cause."""
        return next(rule for rule in self.rules if fnmatch.fnmatchcase(cause, rule.cause))

    def again(self, status: str, cause: str, attempts: int) -> RetryRule | None:
        """The rule by which a trial is to be tried again; None where it is not.

        Args:
            status: How its last attempt ended; only ``error`` is ever tried again.
            cause: Cause of that end.
            attempts: Attempts so far, that one included.
        """
        if status != "error":
            return None
        rule = self.rule(cause)
        return rule if attempts <= rule.more else None


def load_retries(path: Path = RETRIES_FILE) -> RetryTable:
    """Reads a table.

    Raises:
        InputError: It is missing or not a table.
    """
    try:
        return RetryTable.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"]))
        raise InputError(f"{path}: {place}: {first['msg']}".replace(": : ", ": "), "see the table's head") from error
    except (OSError, yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {str(error).splitlines()[0]}", "see the table's head") from error
