"""A comparison in the terminal: the tables, the verdicts, and where the evidence of what flipped lies."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from lab.compare.model import Comparison, Contrast, Verdict
from lab.report.bench.numbers import decimal, probability
from lab.report.compare.words import differs_in, left_out, noise_rate, points, points_interval, share, tally, verdict
from lab.report.terminal import safe

_TONES = {
    Verdict.BETTER: "bold green",
    Verdict.WORSE: "bold red",
    Verdict.NONE_SHOWN: "green",
    Verdict.CANNOT_TELL: "yellow",
}
_MOST_FLIPS = 8
_MOST_LINES = 12


def _rows(contrast: Contrast) -> Table:
    other = contrast.second.letter
    heading = f"{other} {contrast.second.name} against A {contrast.first.name}: {contrast.pairs} pairs"
    table = Table(title=safe(heading), title_justify="left")
    columns = (
        "A",
        other,
        f"A only\n: {other} only",
        "difference,\npoints",
        "p\n(Holm)",
        f"repeats\ndiffer A : {other}",
    )
    for name in ("Measure", *columns, "Verdict"):
        table.add_column(name)
    for row in contrast.rows:
        if not row.declared:
            continue
        tone = _TONES[row.verdict] if row.verdict else "dim"
        table.add_row(
            safe(f"{row.measure}, {row.group.removeprefix('scripted:')}"),
            escape(share(row.first)),
            escape(share(row.second)),
            f"{row.only_first} : {row.only_second}",
            escape(f"{points(row.difference.value)} {points_interval(row.difference)}"),
            probability(row.p_holm) if row.p_holm is not None else "–",
            " : ".join(noise_rate(told) for told in row.noise or ()),
            f"[{tone}]{safe(verdict(row))}[/]",
        )
    return table


def print_comparison(comparison: Comparison, console: Console, runs: Mapping[str, Path]) -> None:
    """Prints a comparison.

    Args:
        comparison: The comparison.
        console: Where to.
        runs: Run folder of each side by letter, for the paths of the evidence.
    """
    for contrast in comparison.contrasts:
        console.print(_rows(contrast))
        console.print(safe(differs_in(contrast)))
        print_lines(contrast.compared, console)
        if contrast.remaining:
            console.print(
                f"[yellow]put up with: {len(contrast.remaining)} further differences, which may be the cause[/]"
            )
            print_lines(contrast.remaining, console)
        if contrast.alone:
            console.print(f"[yellow]left out, without a partner: {safe(tally(contrast.alone), 500)}[/]")
        for where, told in left_out(contrast):
            console.print(f"left out of {safe(where)}: {safe(told, 500)}", soft_wrap=True)
        for mean in contrast.means:
            found = mean.difference
            means = f"{decimal(mean.first)} → {decimal(mean.second)}, n={mean.n}, difference {decimal(found.value)}"
            bounds = escape(f"[{decimal(found.low)}, {decimal(found.high)}]")
            console.print(
                f"{safe(mean.group)}: {mean.measure} {means} {bounds}: [{_TONES[mean.verdict]}]{mean.verdict}[/]"
            )
        _print_flips(contrast, console, runs)


def print_lines(lines: tuple[str, ...], console: Console, most: int = _MOST_LINES) -> None:
    """Prints differences of locks, a line each."""
    for line in lines[:most]:
        console.print(f"  {safe(line, 200)}", soft_wrap=True)
    if len(lines) > most:
        console.print(f"  and {len(lines) - most} more")


def _print_flips(contrast: Contrast, console: Console, runs: Mapping[str, Path]) -> None:
    if not contrast.flips:
        console.print("no cell flipped")
        return
    console.print(f"{len(contrast.flips)} cells flipped, A → {contrast.second.letter}:")
    for flip in contrast.flips[:_MOST_FLIPS]:
        changes = ", ".join(f"{change.measure} {change.before} → {change.after}" for change in flip.changes)
        console.print(f"  {safe(f'{flip.what} {flip.role}, {flip.where}')}: {safe(changes)}", soft_wrap=True)
        for place in (flip.first, flip.second):
            console.print(f"    [dim]{safe(str(runs[place.letter] / place.path), 400)}[/]", soft_wrap=True)
    if len(contrast.flips) > _MOST_FLIPS:
        console.print(f"  and {len(contrast.flips) - _MOST_FLIPS} more, in compare.html")
