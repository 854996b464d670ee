"""``lab bench check``: a run of another system, or figures that somebody published, against the lab's invariants."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lab.cli.bench_run import load_named
from lab.cli.output import print_json, safe, stdout
from lab.cli.places import DEFAULT_SCENARIOS, JsonOption, ScenariosOption
from lab.errors import ExitCode, InputError

if TYPE_CHECKING:
    from lab.retrieval.results import Check
    from lab.retrieval.testset import TestSet

RunArgument = Annotated[
    Path | None,
    typer.Argument(metavar="RUN", help="Run in TREC's form: topic Q0 fact rank score tag."),
]
SetOption = Annotated[str, typer.Option("--topics", "-t", metavar="SET", help="Set that it is a run of.")]
DepthOption = Annotated[int, typer.Option("--k", "-k", min=5, max=1000, help="Depth of the ranking.")]
PublishedOption = Annotated[
    list[str],
    typer.Option(
        "--published",
        metavar="NAME=FIGURE",
        help="A figure as it was printed, repeatable: n, hit1, hit5, hit10, mrr10, mrr_conditional (0 to 1), and "
        "qrels, the number of topics that are judged.",
    ),
]
FIGURES = ("n", "hit1", "hit5", "hit10", "mrr10")


def check(
    run: RunArgument = None,
    topics: SetOption = "personal",
    k: DepthOption = 10,
    published: PublishedOption = [],  # noqa: B006 - typer copies it
    scenarios: ScenariosOption = DEFAULT_SCENARIOS,
    json: JsonOption = False,
) -> None:
    """Check a run of another system, or published figures; exit code 1 where an invariant does not hold."""
    checks: tuple[Check, ...]
    told: dict[str, Any] = {}
    if published:
        if run:
            raise InputError("a run and published figures are two things", "check one of them at a time")
        checks = _published(published)
    elif run:
        checks, told = _of_run(run, load_named(topics, scenarios), k)
    else:
        raise InputError("nothing to check", "name a run, or figures with --published")
    broken = [one for one in checks if not one.holds]
    if json:
        print_json({**told, "checks": [one.model_dump(mode="json") for one in checks]})
    else:
        for line in told.get("figures", []):
            stdout.print(safe(line), soft_wrap=True)
        for one in checks:
            verdict = "[green]holds[/] " if one.holds else "[bold red]broken[/]"
            stdout.print(f"{verdict} {safe(one.name)}: {safe(one.text)}", soft_wrap=True)
    if broken:
        raise typer.Exit(ExitCode.GATE_FAILED)


def _published(figures: list[str]) -> tuple[Check, ...]:
    from lab.retrieval.metrics.invariants import check_published  # noqa: PLC0415 - scipy takes a second to load

    given = dict(figure.split("=", 1) for figure in figures if "=" in figure)
    known = {*FIGURES, "mrr_conditional", "qrels"}
    if len(given) < len(figures) or not set(given) <= known or not set(FIGURES) <= set(given):
        raise InputError("these figures are not enough", f"give {', '.join(f'{name}=…' for name in FIGURES)}")
    try:
        # Of the least precise one: figures that were printed with fewer digits than others must not look wrong.
        digits = min(len(given[name].partition(".")[2]) for name in given if name not in ("n", "qrels"))
        return check_published(
            _topics(given["n"]),
            *(given[name] for name in FIGURES[1:]),
            digits=digits,
            mrr_conditional=given.get("mrr_conditional"),
            qrels=_topics(given["qrels"]) if "qrels" in given else None,
        )
    except (ValueError, ZeroDivisionError) as error:
        raise InputError(f"a figure is no number: {error}", "write them as they were printed, as .712") from error


def _topics(figure: str) -> int:
    """A number of topics; over none of them every figure would pass."""
    number = int(figure)
    if number < 1:
        raise ValueError(f"{number} topics")
    return number


def _of_run(run: Path, testset: TestSet, k: int) -> tuple[tuple[Check, ...], dict[str, Any]]:
    from lab.report.bench.numbers import interval, mean, share  # noqa: PLC0415 - as above
    from lab.retrieval.metrics.invariants import checks, judged  # noqa: PLC0415
    from lab.retrieval.metrics.scores import score_rows  # noqa: PLC0415
    from lab.retrieval.results import Check  # noqa: PLC0415
    from lab.retrieval.trec_run import read_run  # noqa: PLC0415

    foreign = read_run(run, testset, k)
    rows = foreign.rows
    declared = dict(Counter(topic.topic_class for topic in testset.topics if testset.answerable(topic)))
    scores = score_rows(rows, tuple(declared), depth=k, clusters=len(testset.stores) > 1)
    odd = len(foreign.contradicted)
    text = (
        f"{odd} topics rank facts against their scores: distances?" if odd else "all topics rank facts by their scores"
    )
    by_score = Check(name="ranks follow scores", holds=not odd, text=text)
    found = (by_score, *checks(rows, scores, declared_n=declared), judged(rows, testset.qrels))
    figures = [
        f"{one.topic_class}, n={one.n}: Hit@1 {share(one.hit1)}, Hit@5 {share(one.hit5)}, Hit@10 {share(one.hit10)}, "
        f"MRR@10 {mean(one.mrr10)} {interval(one.mrr10)}"
        for one in scores
    ]
    return found, {"figures": figures, "scores": [one.model_dump(mode="json") for one in scores]}
