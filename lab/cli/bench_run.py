"""What ``lab bench`` does: sets and snapshots are opened, arms made, topics asked with progress, reports written."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from lab.cli.output import console, counting_bar, print_json, safe
from lab.errors import InputError
from lab.runs.folder import RunFolder

if TYPE_CHECKING:
    from lab.retrieval.arms import Tools
    from lab.retrieval.bench import Bench, Snapshots
    from lab.retrieval.embedders.index import DenseIndexes
    from lab.retrieval.testset import TestSet

VECTORS = "vectors.sqlite"
"""File in the folder of snapshots. Vectors are kept by text, model and prefix, so all snapshots share it."""


@dataclass(frozen=True)
class Request:
    """The options of ``lab bench``; see its help."""

    topics: tuple[str, ...]
    snapshot: str
    arms: tuple[str, ...]
    embedder: str
    ollama_host: str | None
    embed_timeout: float
    k: int
    fresh: bool
    backend: str
    scenarios: Path
    snapshots: Path
    reports: Path
    resume: Path | None


def run_bench(request: Request, *, json: bool) -> None:
    """Runs a benchmark, or goes on with one, and writes its reports.

    Args:
        request: What to run.
        json: Whether the results are printed as JSON.

    Raises:
        LabError: Something that the user can mend.
    """
    # The embedder, scipy and pandas take a second or two to load, which other commands should not pay.
    from lab.retrieval.arms import DEFAULT_ARMS, Tools, make_arms  # noqa: PLC0415
    from lab.retrieval.bench import Bench, Work  # noqa: PLC0415
    from lab.retrieval.embedders.threads import one_thread  # noqa: PLC0415
    from lab.retrieval.results import LOCK  # noqa: PLC0415

    names = request.arms or DEFAULT_ARMS
    with one_thread():
        tools = Tools(lambda: _indexes(request), request.backend)
        arms = make_arms(names, tools)
        sets = _frozen_sets(request)
        work = Work(sets=sets, arms=arms, k=request.k, fresh=request.fresh, facts=_facts(request, tools))
        if request.resume:
            run = Bench.resume(RunFolder.open(request.resume, (LOCK,)), work)
        else:
            run = Bench.start(request.reports, work)
        with run.folder.lock():
            run.folder.unseal()
            console.print(f"run folder: {safe(str(run.folder.path))}", soft_wrap=True)
            _ask_all(run)
            report_on_bench(run.folder, json=json)


def report_on_bench(folder: RunFolder, *, json: bool) -> None:
    """Writes all reports of a benchmark run, seals its folder and prints the summary."""
    from lab.report.bench.terminal import print_bench  # noqa: PLC0415
    from lab.report.bench.write import write_bench  # noqa: PLC0415

    result, written = write_bench(folder)
    folder.seal()
    if json:
        print_json(result.model_dump(mode="json"))
    else:
        print_bench(result, console)
    for path in written:
        if path.suffix == ".html":
            console.print(f"report: {safe(path.resolve().as_uri())}", soft_wrap=True)


def _ask_all(run: Bench) -> None:
    with counting_bar() as bar:
        task = bar.add_task("topics", total=run.work.queries)

        def show(what: str, answered: int) -> None:
            bar.update(task, advance=answered, description=safe(what))

        try:
            run.run(show)
        except KeyboardInterrupt:
            console.print(
                f"[yellow]interrupted[/]; go on: lab bench --resume {safe(str(run.folder.path))} and the same options"
            )
            raise


def _frozen_sets(request: Request) -> Sequence[tuple[TestSet, Snapshots]]:
    from lab.retrieval.frozen import frozen_store  # noqa: PLC0415
    from lab.snapshots.store import find_snapshot, open_snapshot  # noqa: PLC0415

    def tell(line: str) -> None:
        console.print(safe(line), soft_wrap=True)

    if request.snapshot:
        from lab.retrieval.data.own import topics_on  # noqa: PLC0415

        shot = open_snapshot(find_snapshot(request.snapshot, request.snapshots))
        if len(request.topics) != 1:
            raise InputError("a snapshot of your own needs topics of its own", "name one folder with them: --topics")
        testset = topics_on(shot, Path(request.topics[0]))
        return [(testset, dict.fromkeys(testset.stores, shot))]
    sets = [load_measured_set(spec, request.scenarios) for spec in request.topics]
    if len({one.name for one in sets}) < len(sets):
        raise InputError("two sets have the same name", "name each set once, or name them apart in their set.yaml")
    return [(one, {store: frozen_store(one, store, request.snapshots, tell) for store in one.stores}) for one in sets]


def load_measured_set(spec: str, scenarios: Path) -> TestSet:
    """A set as it is measured, by name, by folder or by importer; the keyword rule is applied to all alike.

    Args:
        spec: Name under ``scenarios/retrieval``, folder, or importer with a path.
        scenarios: Folder of the scenarios.

    Raises:
        InputError: There is no such set, or it is damaged.
    """
    from lab.retrieval.data.importers import import_set  # noqa: PLC0415
    from lab.retrieval.data.keywords import with_keywords  # noqa: PLC0415
    from lab.retrieval.factstore.secrets import find_secret  # noqa: PLC0415

    named = scenarios / "retrieval" / spec
    testset = import_set(str(named) if Path(spec).name == spec and named.is_dir() else spec)
    stores = {
        store: with_keywords(facts, lambda text: bool(find_secret(text))) for store, facts in testset.stores.items()
    }
    return testset.model_copy(update={"stores": stores})


def _indexes(request: Request) -> DenseIndexes:
    from lab.retrieval.embedders.index import DenseIndexes  # noqa: PLC0415
    from lab.retrieval.embedders.select import embedder_for  # noqa: PLC0415

    embedder = embedder_for(request.embedder, host=request.ollama_host)
    request.snapshots.mkdir(parents=True, exist_ok=True)
    return DenseIndexes(embedder, request.snapshots / VECTORS, request.embed_timeout)


def _facts(request: Request, tools: Tools) -> dict[str, Any]:
    """What decides the results beside sets and arms."""
    from lab.retrieval.data.keywords import rule_digest  # noqa: PLC0415

    embedder = None
    if "indexes" in vars(tools):  # some arm needed it
        identity = asdict(tools.indexes.embedder.identity)
        embedder = {**identity, "prefixes": dict(identity["prefixes"]), "timeout": request.embed_timeout}
    return {
        "embedder": embedder,
        "keyword_rule": rule_digest(),
        "libraries": {"numpy": np.__version__, "sqlite": sqlite3.sqlite_version},
    }
