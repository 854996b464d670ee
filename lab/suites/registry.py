"""The suites by name, and their run: one after another, into a run folder."""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import ModuleType

from lab.errors import EnvironmentUnusable, InputError
from lab.records import Record, digest
from lab.retrieval.arms import Tools
from lab.runs.folder import RunFolder, write_json
from lab.runs.lock import make_lock, new_run_id
from lab.suites.base import Suite, SuiteContext, SuiteResult

NAMES = ("provenance", "fallback", "supersession", "consolidation", "integrity", "agreement")
"""Every suite, in the order in which they are reported; each is the module ``lab.suites.NAME.suite``."""

LOCK, RESULTS = "lock.json", "suites.json"
FOLDER = "suites"
"""Where the run folders of suites lie, below the reports; apart from runs, of which the newest is a default."""


class SuiteResults(Record):
    """Everything that a run of suites found, as in ``suites.json``.

    Attributes:
        run_id: Id of the run.
        lab_version: Version of the lab.
        suites: One result for each.
    """

    run_id: str
    lab_version: str
    suites: tuple[SuiteResult, ...]

    schema_version: int = 1

    @property
    def sound(self) -> bool:
        """Whether each caught what was planted in it."""
        return all(suite.sound for suite in self.suites)


def suite_module(name: str) -> ModuleType:
    """The module of a suite, with ``TITLE``, ``QUESTION`` and ``run``.

    Raises:
        InputError: There is none of that name.
        EnvironmentUnusable: A package that it needs is not installed.
    """
    if name not in NAMES:
        raise InputError(f"no suite is called {name!r}", f"take some of: {', '.join(NAMES)}")
    try:
        return importlib.import_module(f"lab.suites.{name}.suite")
    except ModuleNotFoundError as error:
        raise EnvironmentUnusable(f"suite {name} needs the package {error.name}", "pip install '.[bench]'") from error


def run_suites(
    names: Sequence[str],
    tools: Tools,
    data: Path,
    reports: Path,
    progress: Callable[[str, int, int], None],
) -> tuple[RunFolder, SuiteResults]:
    """Runs suites one after another and keeps their results.

    Args:
        names: Which.
        tools: Embedder and sandboxed systems.
        data: Folder of the labelled data.
        reports: Folder of all reports.
        progress: Told of each case of a suite that is done.

    Returns:
        The run folder, not yet sealed, and the results.

    Raises:
        InputError: A name is unknown or doubled, or data is broken.
        EnvironmentUnusable: Something that a suite needs is not on this machine.
    """
    if doubled := sorted({name for name in names if names.count(name) > 1}):
        raise InputError(f"suite {doubled[0]} is named twice", "name it once")
    modules: Mapping[str, ModuleType] = {name: suite_module(name) for name in names}
    found = []
    for name, module in modules.items():
        with tempfile.TemporaryDirectory(prefix="lab-suite-") as work:

            def tell(done: int, total: int, name: str = name) -> None:
                progress(name, done, total)

            run: Suite = module.run
            result = run(SuiteContext(tools=tools, data=data, work=Path(work), progress=tell))
            found.append(result)
    decisive = {
        r.suite: {"data": [d.digest for d in r.data], "settings": r.model_dump(mode="json")["settings"]} for r in found
    }
    folder = RunFolder.create(reports / FOLDER, new_run_id(digest(decisive)), "trials")
    lock = make_lock(folder.run_id, {"kind": "suites", "suites": decisive})
    write_json(folder.path / LOCK, lock)
    results = SuiteResults(run_id=folder.run_id, lab_version=str(lock["lab_version"]), suites=tuple(found))
    write_json(folder.path / RESULTS, results.model_dump(mode="json"))
    return folder, results
