"""The summary of a benchmark in the terminal."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from lab.report.bench.numbers import checks_made, decimal, failed_checks, interval, mean, probability, share
from lab.report.terminal import safe
from lab.retrieval.results import BenchResult, SetResult


def _quality(result: SetResult) -> Table:
    n = result.arms[0].scores[0].n
    purpose = safe(f"{result.info.name} ({result.info.purpose})")
    table = Table(title=f"{purpose}: {n} answerable topics, 95 % intervals", title_justify="left")
    table.add_column("Arm", no_wrap=True)
    for name in ("Hit@1", "Hit@5", "Hit@10", "MRR@10"):
        table.add_column(f"{name}\nn={n}", no_wrap=True)
    noise = next((arm.noise for arm in result.arms if arm.noise), None)
    if noise:
        table.add_column(f"noise\nn={noise.injected.denominator}", no_wrap=True)
    for arm in result.arms:
        overall = arm.scores[0]
        cells = [
            safe(arm.arm if overall.n == n else f"{arm.arm} (n={overall.n})"),
            share(overall.hit1),
            share(overall.hit5),
            share(overall.hit10),
            f"{mean(overall.mrr10)} {interval(overall.mrr10)}",
        ]
        if noise:
            cells.append(share(arm.noise.injected if arm.noise else None))
        table.add_row(*[cell.replace("[", "\\[") for cell in cells])
    for baseline in result.info.baselines:
        values = map(decimal, (baseline.hit1, baseline.hit5, baseline.hit10, baseline.mrr10))
        table.add_row(f"[dim]{safe(baseline.name)}[/]", *[f"[dim]{value}[/]" for value in values])
    return table


def _comparisons(result: SetResult) -> Table:
    table = Table(title=f"{safe(result.info.name)}: arms against each other, paired by topic", title_justify="left")
    table.add_column("First\nsecond", no_wrap=True)
    table.add_column("Hit@1\nonly", no_wrap=True)
    table.add_column("p\n(Holm)", no_wrap=True)
    table.add_column("MRR@10\nfirst − second", no_wrap=True)
    table.add_column("Better")
    for row in result.comparisons:
        better = {"first": row.first, "second": row.second}.get(row.verdict)
        table.add_row(
            f"{safe(row.first)}\n{safe(row.second)}",
            f"{row.only_first} : {row.only_second}",
            probability(row.p_hit1_holm),
            f"{mean(row.mrr_difference)} {interval(row.mrr_difference)}".replace("[", "\\["),
            f"[green]{safe(better)}[/]" if better else "[dim]cannot tell[/]",
        )
    return table


def print_bench(result: BenchResult, console: Console) -> None:
    """Prints what a benchmark run found.

    Args:
        result: The results.
        console: Where to.
    """
    for one in result.sets:
        console.print(_quality(one))
        if one.comparisons:
            console.print(_comparisons(one))
        for arm in one.arms:
            where = safe(f"{one.info.name} · {arm.arm}")
            for cause, named in arm.errors.items():
                console.print(f"[bold red]{where}: {len(named)} topics have no result[/] ({safe(cause)})")
            for cause, named in arm.fallbacks.items():
                told = f"{len(named)} topics were answered without the embedding channel ({cause})"
                console.print(f"[yellow]{where}: {safe(told)}[/]: {safe(' '.join(named))}")
            if arm.changed_again:
                told = f"{arm.changed_again} of {arm.asked_again} rankings changed when asked again"
                console.print(f"[yellow]{where}: {told}; every topic had a fresh copy[/]")
    for row in result.gaps:
        told = f"{mean(row.difference)} {interval(row.difference)}".replace("[", "\\[")
        console.print(f"hold-out minus development, MRR@10, {safe(row.arm)}: {told}")
    for line in result.doubts:
        console.print(f"[yellow]the embedding model is in doubt: {safe(line, 300)}[/]")
    for line in result.absent:
        console.print(f"[yellow]not run: {safe(line, 300)}[/]")
    failed = failed_checks(result)
    for name, of, text in failed:
        console.print(f"[bold red]invariant broken: {safe(f'{name} · {of}')}: {safe(text, 300)}[/]")
    if not failed:
        console.print(f"[green]all {checks_made(result)} invariants hold[/]")
