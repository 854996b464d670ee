"""What the detector is worth: its sensitivity and specificity on a labelled set of texts."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, ValidationError, model_validator

from lab.contamination.observe import detect
from lab.contamination.observe.detect import Form, Match
from lab.contamination.scenarios.source import BrokenSource, read_source
from lab.errors import InputError
from lab.records import Record, file_digest
from lab.statistics.proportions import Proportion, proportion
from lab.text import printable

LABELLED = Path(detect.__file__).resolve().parents[3] / "scenarios" / "detection" / "labelled.yaml"

Percent = Annotated[int, Field(ge=0, le=100)]
RowId = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]{0,60}$")]


class Row(Record):
    """One text of which is known whether it holds a canary.

    Attributes:
        id: Unique in the set.
        canary: What is looked for.
        text: Where; hostile.
        holds: Whether a reader or a machine that decodes it would find the canary there.
        form: How it is written; of a text without the canary, how that text is written.
    """

    id: RowId
    canary: Annotated[str, StringConstraints(pattern=r"^[a-z]{3,12}[0-9]{2,4}$")]
    text: str
    holds: bool
    form: Form


class Labelled(Record):
    """The labelled set.

    Attributes:
        schema_version: Version of this format; ``schema`` in the file.
        minimum_sensitivity: Share of the positives that must be found, in per cent.
        minimum_specificity: Share of the negatives that must be left alone, in per cent.
        rows: The texts.
    """

    schema_version: Literal[1] = Field(alias="schema")
    minimum_sensitivity: Percent
    minimum_specificity: Percent
    rows: tuple[Row, ...]

    @model_validator(mode="after")
    def _is_usable(self) -> Self:
        ids = [row.id for row in self.rows]
        doubled = sorted({name for name in ids if ids.count(name) > 1})
        if doubled:
            raise ValueError(f"ids are used twice: {', '.join(doubled[:3])}")
        if {row.holds for row in self.rows} != {True, False}:
            raise ValueError("rows that hold their canary and rows that do not are both needed")
        return self


class FormRates(Record):
    """The rates of one form.

    Attributes:
        form: How the texts are written.
        sensitivity: Found among the texts that hold the canary.
        specificity: Left alone among those that do not.
    """

    form: Form
    sensitivity: Proportion
    specificity: Proportion


class Validation(Record):
    """The detector's rates on a labelled set.

    Attributes:
        sha256: Digest of the file of the set.
        sensitivity: Found among all texts that hold the canary.
        specificity: Left alone among all that do not.
        forms: The rates by form, in the order of the forms.
        misses: Ids of texts whose canary was not found.
        false_alarms: Ids of texts in which a canary was found that is not there.
        named_otherwise: Ids of texts whose canary was found in another form than stated; not an error of the detector's
            answer, but of its name.
        minimum_sensitivity: Bound of the set, in per cent.
        minimum_specificity: Bound of the set, in per cent.
    """

    sha256: str
    sensitivity: Proportion
    specificity: Proportion
    forms: tuple[FormRates, ...]
    misses: tuple[str, ...]
    false_alarms: tuple[str, ...]
    named_otherwise: tuple[str, ...]
    minimum_sensitivity: Percent
    minimum_specificity: Percent

    @property
    def passed(self) -> bool:
        """Whether both rates reach their bounds."""
        pairs = (
            (self.sensitivity, self.minimum_sensitivity),
            (self.specificity, self.minimum_specificity),
        )
        # In whole numbers, so that no rounding decides.
        return all(100 * rate.numerator >= bound * rate.denominator for rate, bound in pairs)


def load_labelled(path: Path) -> Labelled:
    """Reads a labelled set.

    Raises:
        InputError: Naming file and line of the first problem.
    """
    try:
        source = read_source(path)
    except BrokenSource as broken:
        first = broken.problems[0]
        raise InputError(f"{first.file}:{first.line}: {first.message}", first.mend) from None
    try:
        return Labelled.model_validate_json(json.dumps(source.data), strict=True)
    except ValidationError as error:
        detail = error.errors(include_url=False)[0]
        name = ".".join(map(str, detail["loc"]))
        message = f"{path}:{source.line(detail['loc'])}: {name}{': ' if name else ''}{detail['msg']}"
        raise InputError(printable(message, 400), "mend the labelled set") from None


def validate(path: Path = LABELLED, find: Callable[[str, str], Match | None] | None = None) -> Validation:
    """Runs the detector over a labelled set.

    Args:
        path: The set's file.
        find: Detector to judge; the lab's own if None.

    Raises:
        InputError: The set cannot be used.
    """
    labelled = load_labelled(path)
    judged = find or detect.find
    found = {row.id: match for row in labelled.rows if (match := judged(row.canary, row.text))}
    by_form: dict[Form, list[Row]] = defaultdict(list)
    for row in labelled.rows:
        by_form[row.form].append(row)
    sensitivity, specificity = _rates(labelled.rows, found)
    return Validation(
        sha256=file_digest(path),
        sensitivity=sensitivity,
        specificity=specificity,
        forms=tuple(_form_rates(form, by_form[form], found) for form in Form if form in by_form),
        misses=tuple(row.id for row in labelled.rows if row.holds and row.id not in found),
        false_alarms=tuple(row.id for row in labelled.rows if not row.holds and row.id in found),
        named_otherwise=tuple(
            row.id for row in labelled.rows if row.holds and row.id in found and found[row.id].form is not row.form
        ),
        minimum_sensitivity=labelled.minimum_sensitivity,
        minimum_specificity=labelled.minimum_specificity,
    )


def _form_rates(form: Form, rows: list[Row], found: dict[str, Match]) -> FormRates:
    sensitivity, specificity = _rates(rows, found)
    return FormRates(form=form, sensitivity=sensitivity, specificity=specificity)


def _rates(rows: tuple[Row, ...] | list[Row], found: dict[str, Match]) -> tuple[Proportion, Proportion]:
    holding = [row.id for row in rows if row.holds]
    free = [row.id for row in rows if not row.holds]
    return (
        proportion([i for i in holding if i in found], holding, name="found", of="texts with the canary"),
        proportion([i for i in free if i not in found], free, name="left alone", of="texts without the canary"),
    )
