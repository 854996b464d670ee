"""``lab bench audit``: what a ranking rests on, term by term, for the fact store and for the real plugin."""

from __future__ import annotations

from typing import Annotated

import typer

from lab.cli.bench_run import frozen_sets
from lab.cli.output import console, print_json, safe, stdout
from lab.cli.places import (
    DEFAULT_SCENARIOS,
    DEFAULT_SNAPSHOTS,
    BackendOption,
    JsonOption,
    ScenariosOption,
    SnapshotsOption,
)
from lab.errors import InputError

WhatOption = Annotated[
    str,
    typer.Option(
        "--what",
        metavar="AUDIT[,AUDIT…]",
        help="terms and fusion of the fact store; plugin (terms and vectors of the agent's real plugin) and queries "
        "(what it does with odd ones), which need a sandbox with the agent.",
    ),
]
SetOption = Annotated[
    str, typer.Option("--topics", "-t", metavar="SET", help="Set to audit on, as lab bench takes it; one store of it.")
]
StoreOption = Annotated[str, typer.Option("--store", help="Store of the set; the first by default.")]


def audit(
    topics: SetOption = "personal",
    store: StoreOption = "",
    what: WhatOption = "terms,fusion,plugin,queries",
    backend: BackendOption = "auto",
    scenarios: ScenariosOption = DEFAULT_SCENARIOS,
    snapshots: SnapshotsOption = DEFAULT_SNAPSHOTS,
    json: JsonOption = False,
) -> None:
    """Show what the rankings of the fact store and of the real plugin rest on (docs/audits.md)."""
    from lab.retrieval.audits.suite import Audit, Auditor  # noqa: PLC0415 - scipy takes a second to load
    from lab.retrieval.audits.tables import fusion_table, hostile_table, hrr_table, terms_table  # noqa: PLC0415
    from lab.retrieval.systems.holographic import HolographicPlugin, plugin_program  # noqa: PLC0415

    names = [name.strip() for name in what.split(",") if name.strip()]
    if unknown := [name for name in names if name not in set(Audit)]:
        raise InputError(f"no audit is called {unknown[0]}", f"take some of: {', '.join(Audit)}")
    ((testset, shots),) = frozen_sets((topics,), scenarios, snapshots)
    chosen = store or next(iter(shots))
    if chosen not in shots:
        raise InputError(f"set {testset.name} has no store {chosen}", f"it has: {', '.join(shots)}")
    auditor = Auditor(testset, chosen, shots[chosen])
    with console.status("auditing"):
        found = auditor.run(
            frozenset(Audit(name) for name in names), lambda: HolographicPlugin(program=plugin_program(backend))
        )
    if json:
        print_json(found.model_dump(mode="json"))
        return
    stdout.print(safe(f"{found.testset}, snapshot {found.snapshot}"))
    if found.terms:
        stdout.print(terms_table(found.terms))
    if found.fusion:
        stdout.print(fusion_table(found.fusion))
    if found.plugin_terms:
        stdout.print(terms_table(found.plugin_terms))
    if found.plugin_vectors:
        stdout.print(hrr_table(found.plugin_vectors))
    if found.queries is not None:
        stdout.print(hostile_table(found.queries))
