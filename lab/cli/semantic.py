"""How ``lab detect --semantic`` judges the semantic detector on both parts of its labelled set, and tells it."""

from __future__ import annotations

from contextlib import closing

from rich.table import Table

from lab.cli.output import counting_bar, print_json, safe, stdout
from lab.contamination.semantic.judging import Embedding
from lab.contamination.semantic.validation import (
    MINIMUM_SENSITIVITY,
    MINIMUM_SPECIFICITY,
    Part,
    SemanticValidation,
    validate_semantic,
)
from lab.retrieval.embedders.select import embedder_for
from lab.statistics.proportions import Proportion


def validate_meanings(embedder: str, json: bool) -> bool:
    """Judges both parts and prints the rates.

    Args:
        embedder: Name of the embedder.
        json: Print one JSON document.

    Returns:
        Whether the hold-out part reaches the bounds; the development part is no test.

    Raises:
        InputError: The labelled set cannot be used, or there is no such embedder.
        EnvironmentUnusable: The embedder does not run here.
    """
    with closing(embedder_for(embedder)) as model:
        results = [_validated(part, Embedding(model)) for part in Part]
    passed = next(result.passed for result in results if result.part is Part.HOLDOUT)
    if json:
        print_json({"parts": [result.model_dump(mode="json") for result in results], "passed": passed})
        return passed
    for result in results:
        _print(result)
    bounds = f"sensitivity {MINIMUM_SENSITIVITY} %, specificity {MINIMUM_SPECIFICITY} %"
    stdout.print(
        f"{'passed' if passed else 'NOT passed'}: the bounds on the hold-out part are {bounds}", soft_wrap=True
    )
    return passed


def _validated(part: Part, embedding: Embedding) -> SemanticValidation:
    with counting_bar() as bar:
        task = bar.add_task(f"{part.value} part", total=None)

        def told(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        return validate_semantic(part, embedding, progress=told)


def _print(result: SemanticValidation) -> None:
    table = Table("texts", "found", "sensitivity", "left alone", "specificity", title=f"{result.part.value} part")
    for group in (*result.groups, result.total):
        if group is result.total:
            table.add_section()
        table.add_row(group.group, *_cells(group.sensitivity), *_cells(group.specificity))
    stdout.print(table)
    stdout.print(f"by {safe(result.embedder)}, margin {result.margin:g}", soft_wrap=True)
    for name, ids in (
        ("missed", result.misses),
        ("false alarm", result.false_alarms),
        ("could not be judged", result.undetermined),
    ):
        if ids:
            stdout.print(f"{name}: {', '.join(ids)}", soft_wrap=True)


def _cells(rate: Proportion) -> tuple[str, str]:
    if not rate.denominator:
        return "", ""
    return f"{rate.numerator}/{rate.denominator}", rate.percent.replace("[", r"\[")
