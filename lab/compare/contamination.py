"""Compares contamination runs, or the builds, setups or models of one run, against a baseline."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_uppercase

import lab
from lab.compare.locks import Contrasted, body_lines, check_comparable, contrast_locks
from lab.compare.model import Comparison, Dimension, Side
from lab.compare.rows import ALPHA, make_rows
from lab.compare.sides import Trials, read_trials
from lab.compare.trials import Paired
from lab.contamination.suite import Suite
from lab.errors import InputError
from lab.statistics.proportions import LEVEL

KIND = "contamination"
MARGIN = 0.05
"""Largest difference of two rates that is taken for none, unless another is asked for."""


def compare_runs(suites: Sequence[Suite], *, margin: float = MARGIN, common: bool = False) -> Comparison:
    """Compares runs with the first of them, paired by scenario, build, setup, model and repeat.

    Args:
        suites: Two runs at least.
        margin: Largest difference that is taken for none.
        common: Whether what is not common to both is left out, instead of refused.

    Raises:
        Incomparable: The inputs differ in more than one build, setup or model.
        InputError: There are too few or too many runs, a result is damaged, or nothing can be paired.
    """
    letters = check_sides([str(suite.folder.path.resolve()) for suite in suites])
    read = [read_trials(suite) for suite in suites]
    baseline, *others = read
    pairs = []
    for letter, other in zip(letters[1:], others, strict=True):
        contrasted = contrast_locks(baseline.lock, other.lock)
        check_comparable(contrasted, (baseline.run, other.run), common=common)
        sides = _side(letters[0], baseline, contrasted.dimension), _side(letter, other, contrasted.dimension)
        pairs.append(Paired.of(sides, baseline, other, contrasted))
    return _compare(pairs, margin)


def compare_within(suite: Suite, dimension: Dimension, *, baseline: str = "", margin: float = MARGIN) -> Comparison:
    """Compares the builds, setups or models of one run with one of them.

    Args:
        suite: The run.
        dimension: What is compared.
        baseline: Name of the one that the others are held against; the first of the plan where it is empty.
        margin: Largest difference that is taken for none.

    Raises:
        InputError: The run has only one, or none of that name, or a result is damaged.
    """
    run = read_trials(suite)
    names = list(dict.fromkeys(str(getattr(trial, dimension.value)) for trial in run.trials))
    if baseline and baseline not in names:
        raise InputError(f"{run.run} has no {dimension} {baseline!r}", f"one of: {', '.join(names)}")
    if len(names) < 2:
        raise InputError(
            f"{run.run} has one {dimension} only: {', '.join(names)}", f"run with more: lab run --{dimension}s"
        )
    first = baseline or names[0]
    letters = check_sides(names)
    pairs = []
    for letter, name in zip(letters[1:], [name for name in names if name != first], strict=True):
        sides = (
            Side(letter=letters[0], run=run.run, name=first),
            Side(letter=letter, run=run.run, name=name),
        )
        contrasted = Contrasted(dimension, body_lines(dimension, run.lock, first, name), ())
        pairs.append(Paired.of(sides, run.only(dimension, first), run.only(dimension, name), contrasted))
    return _compare(pairs, margin)


def check_sides(names: Sequence[str]) -> str:
    """Checks how many sides there are and gives each its letter.

    Raises:
        InputError: There are fewer than two, one twice, or more than there are letters.
    """
    if len(names) < 2 or len(set(names)) < len(names):
        raise InputError(
            "a comparison needs two runs at least, each named once", "lab compare RUN RUN, or RUN --by setup"
        )
    if len(names) > len(ascii_uppercase):
        raise InputError(f"{len(names)} sides are too many for one comparison", "compare fewer at a time")
    return ascii_uppercase[: len(names)]


def _side(letter: str, trials: Trials, dimension: Dimension) -> Side:
    """A side, named by what is special about it where a dimension is compared."""
    named = trials.run if dimension is Dimension.RUN else str(getattr(trials.trials[0], dimension.value))
    return Side(letter=letter, run=trials.run, name=named)


def _compare(pairs: Sequence[Paired], margin: float) -> Comparison:
    for paired in pairs:
        if not paired.pairs:
            names = " and ".join(side.name for side in paired.sides)
            raise InputError(f"{names} have no cell in common", "compare runs of the same scenarios, setups and models")
    tests, rows = make_rows([paired.tables() for paired in pairs], margin)
    contrasts = tuple(paired.contrast(mine) for paired, mine in zip(pairs, rows, strict=True))
    return Comparison(
        lab_version=lab.__version__,
        kind=KIND,
        margin=margin,
        level=LEVEL,
        alpha=ALPHA,
        tests=tests,
        sides=(contrasts[0].first, *(contrast.second for contrast in contrasts)),
        contrasts=contrasts,
    )
