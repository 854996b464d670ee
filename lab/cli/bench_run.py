"""What ``lab bench`` does: sets and snapshots are opened, arms made, topics asked with progress, reports written."""

from __future__ import annotations

import errno
import signal
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np
import typer
from rich.progress import Progress

from lab.cli.output import console, counting_bar, print_json, safe
from lab.errors import EnvironmentUnusable, ExitCode, InputError
from lab.runs.folder import RunFolder

if TYPE_CHECKING:
    from lab.retrieval.bench import Bench, Snapshots
    from lab.retrieval.embedders.index import DenseIndexes
    from lab.retrieval.testset import TestSet
    from lab.snapshots.store import Snapshot

BENCH_DERIVED = frozenset({"results.json", "report.html", "report.md", "topics.csv"})
"""Files of a benchmark run that are written again from the others."""

VECTORS = "vectors.sqlite"
"""File in the folder of snapshots. Vectors are kept by text, model and prefix, so all snapshots share it."""


@dataclass(frozen=True)
class Request:
    """The options of ``lab bench``; see its help.

    ``reference`` is the arm that all others are compared with, ``absent`` what the caller knows cannot be run, and with
    ``whatever_runs`` an arm that this machine lacks something for is listed there and is no error.
    """

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
    systems: tuple[Path, ...] = ()
    reference: str = ""
    absent: tuple[str, ...] = ()
    whatever_runs: bool = False


def run_bench(request: Request, *, json: bool) -> None:
    """Runs a benchmark, or goes on with one, and writes its reports.

    Args:
        request: What to run.
        json: Whether the results are printed as JSON.

    Raises:
        LabError: Something that the user can mend.
    """
    # The embedder, scipy and pandas take a second or two to load, which other commands should not pay.
    from lab.memories.arms import ALL_KINDS  # noqa: PLC0415
    from lab.memories.system_files import load_system_files  # noqa: PLC0415
    from lab.retrieval.arms import DEFAULT_ARMS, Tools, make_arms  # noqa: PLC0415
    from lab.retrieval.bench import Bench, Work  # noqa: PLC0415
    from lab.retrieval.embedders.threads import one_thread  # noqa: PLC0415
    from lab.retrieval.results import LOCK  # noqa: PLC0415

    own = load_system_files(request.systems, ALL_KINDS)
    named = request.arms or DEFAULT_ARMS
    names = [*named, *(name for name in own if name not in named)]
    absent = list(request.absent)
    with one_thread():
        tools = Tools(
            lambda: dense_indexes(request.embedder, request.ollama_host, request.snapshots, request.embed_timeout),
            request.backend,
        )
        arms = make_arms(names, tools, {**ALL_KINDS, **own}, absent.append if request.whatever_runs else None)
        sets = frozen_sets(request.topics, request.scenarios, request.snapshots, request.snapshot)
        facts = {"embedder": None, "vectors": [], **_common_facts()}
        if tools.embeds:  # some arm needs vectors
            facts |= _embedding_facts(tools.indexes, [shot for _, shots in sets for shot in shots.values()])
        work = Work(sets, arms, request.k, request.fresh, facts, tuple(absent), request.reference)
        if request.resume:
            run = Bench.resume(RunFolder.open(request.resume, (LOCK,)), work)
        else:
            run = Bench.start(request.reports, work)
        with run.folder.lock(), _full_disk(run.folder.path):
            run.folder.unseal()
            console.print(f"run folder: {safe(str(run.folder.path))}", soft_wrap=True)
            _ask_all(run)
            report_on_bench(run.folder, json=json)


def report_on_bench(folder: RunFolder, *, json: bool) -> None:
    """Writes all reports of a benchmark run, seals its folder and prints the summary.

    Raises:
        Exit: An invariant does not hold: the figures cannot be true.
    """
    from lab.report.bench.numbers import failed_checks  # noqa: PLC0415 - see run_bench
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
    if failed_checks(result):
        raise typer.Exit(ExitCode.GATE_FAILED)


def _ask_all(run: Bench) -> None:
    with counting_bar() as bar, _interruption() as stop_if_asked:
        task = bar.add_task("topics", total=run.work.queries)

        def show(what: str, answered: int) -> None:
            bar.update(task, advance=answered, description=safe(what))
            stop_if_asked()

        try:
            run.run(show)
        except KeyboardInterrupt:
            folder = safe(str(run.folder.path))
            console.print(f"[yellow]interrupted[/]; go on with the same options and --resume {folder}", soft_wrap=True)
            raise


@contextmanager
def _full_disk(folder: Path) -> Iterator[None]:
    """Says which disk is full and how to go on: the system's own error has neither."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        mend = f"make room, then go on with the same options and --resume {folder}"
        raise EnvironmentUnusable(f"the disk is full: {folder}", mend) from error


@contextmanager
def _interruption() -> Iterator[Callable[[], None]]:
    """Holds Ctrl-C back until it is asked for; a second one comes through at once.

    An interruption inside a function that SQLite calls would come out as an error of SQLite.
    """
    asked = threading.Event()

    def hold_back(signum: int, frame: FrameType | None) -> None:
        if asked.is_set():
            signal.default_int_handler(signum, frame)
        asked.set()

    def stop_if_asked() -> None:
        if asked.is_set():
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, hold_back)
    try:
        yield stop_if_asked
    finally:
        signal.signal(signal.SIGINT, before)


def frozen_sets(
    topics: Sequence[str], scenarios: Path, snapshots: Path, own: str = ""
) -> Sequence[tuple[TestSet, Snapshots]]:
    """Sets with the frozen database of each of their stores.

    Args:
        topics: Names, folders or importers' specs.
        scenarios: Folder of the named sets.
        snapshots: Folder of snapshots.
        own: A snapshot of one's own, that is asked in place of one of the set's facts.

    Raises:
        InputError: A set or snapshot is broken, or two have the same name.
    """
    from lab.retrieval.frozen import frozen_store  # noqa: PLC0415
    from lab.snapshots.store import find_snapshot, open_snapshot  # noqa: PLC0415

    if own:
        from lab.retrieval.data.own import topics_on  # noqa: PLC0415

        if len(topics) != 1:
            raise InputError("a snapshot of your own needs topics of its own", "name one folder with them: --topics")
        shot = open_snapshot(find_snapshot(own, snapshots))
        testset = topics_on(shot, Path(_folder(topics[0], scenarios)))
        return [(testset, dict.fromkeys(testset.stores, shot))]
    sets = [load_named(spec, scenarios) for spec in topics]
    if len({one.name for one in sets}) < len(sets):
        raise InputError("two sets have the same name", "name each set once, or name them apart in their set.yaml")
    return [(one, {store: frozen_store(one, store, snapshots, _tell) for store in one.stores}) for one in sets]


def _tell(line: str) -> None:
    console.print(safe(line), soft_wrap=True)


def _folder(spec: str, scenarios: Path) -> str:
    """The folder of a set that is named; anything else is left as it is.

    Raises:
        InputError: It is a name, and no set has it.
    """
    from lab.retrieval.data.load import set_folders  # noqa: PLC0415 - see run_bench

    named = {folder.name: str(folder) for folder in set_folders(scenarios / "retrieval")}
    if spec in named:
        return named[spec]
    if ":" not in spec and (not spec or (Path(spec).name == spec and not Path(spec).exists())):
        raise InputError(f"no set is called {spec!r}", f"take {' or '.join(named)}, or name a folder or FORM:PATH")
    return spec


def load_named(spec: str, scenarios: Path) -> TestSet:
    """A set by name, by folder or by importer; the keyword rule is applied to all alike."""
    from lab.retrieval.data.importers import import_set  # noqa: PLC0415
    from lab.retrieval.data.keywords import with_keywords  # noqa: PLC0415
    from lab.retrieval.factstore.secrets import find_secret  # noqa: PLC0415

    testset = import_set(_folder(spec, scenarios))
    stores = {
        store: with_keywords(facts, lambda text: bool(find_secret(text))) for store, facts in testset.stores.items()
    }
    return testset.model_copy(update={"stores": stores})


def dense_indexes(embedder: str, host: str | None, snapshots: Path, timeout: float) -> DenseIndexes:
    """What makes the embedding indexes of a run; vectors are kept beside the snapshots.

    Args:
        embedder: Name of the embedder.
        host: Address of the Ollama server; None for its own default.
        snapshots: Folder of snapshots.
        timeout: Seconds that the embedding of one query may take.
    """
    from lab.retrieval.embedders.index import DenseIndexes  # noqa: PLC0415
    from lab.retrieval.embedders.select import embedder_for  # noqa: PLC0415

    chosen = embedder_for(embedder, host=host)
    snapshots.mkdir(parents=True, exist_ok=True)
    return DenseIndexes(chosen, snapshots / VECTORS, timeout)


def _embedding_facts(indexes: DenseIndexes, snapshots: Sequence[Snapshot]) -> dict[str, Any]:
    """Computes and checks all vectors; what decides them and what was found goes into the lock."""
    from lab.retrieval.vectors import prepare_vectors  # noqa: PLC0415

    identity = asdict(indexes.embedder.identity)
    with counting_bar() as bar:
        shown = {shot.manifest.name: partial(_show_vectors, bar, shot.manifest.name) for shot in snapshots}
        vectors = prepare_vectors(snapshots, indexes, shown)
    return {
        "embedder": {**identity, "prefixes": dict(identity["prefixes"]), "timeout": indexes.timeout},
        "vectors": [one.model_dump(mode="json") for one in vectors],
    }


def _show_vectors(bar: Progress, name: str, done: int, total: int) -> None:
    task = next((one for one in bar.tasks if one.description == name), None)
    number = task.id if task else bar.add_task(name, total=total)
    bar.update(number, completed=done, total=total)


def _common_facts() -> dict[str, Any]:
    """What decides the results beside sets, arms and vectors."""
    from lab.retrieval.data.keywords import rule_digest  # noqa: PLC0415

    return {
        "keyword_rule": rule_digest(),
        "libraries": {"numpy": np.__version__, "sqlite": sqlite3.sqlite_version},
    }
