"""Writes all report files of a run; each appears whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from lab.errors import InputError
from lab.report.csv_writer import render_csv
from lab.report.html_writer import render_html
from lab.report.json_writer import render_report
from lab.report.markdown_writer import render_markdown
from lab.report.model import Report
from lab.report.trial_model import TrialView
from lab.report.trial_pages import PAGES, render_pages

WRITERS: dict[str, Callable[[Report], str]] = {
    "report.json": render_report,
    "report.html": render_html,
    "report.md": render_markdown,
    "trials.csv": render_csv,
}


def _write(path: Path, text: str) -> None:
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(text.encode("utf-8", "backslashreplace"))
            stream.flush()
            os.fsync(stream.fileno())
        Path(name).chmod(0o644)  # mkstemp makes files that no one else may read
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def write_reports(run_dir: Path, report: Report, views: Iterable[TrialView] = ()) -> list[Path]:
    """Writes the reports of a run in every form, all of them or none.

    Args:
        run_dir: Run folder, which exists.
        report: The report model.
        views: What the pages of the trials show, in the order of the report's list; taken one by one.

    Returns:
        The files written, and the folder of the pages.

    Raises:
        InputError: The folder does not exist.
        OSError: A file cannot be written.
    """
    with _folder_of_pages(run_dir, render_pages(report, views)) as put_in_place:
        written = write_files(run_dir, {name: partial(render, report) for name, render in WRITERS.items()})
        return [*written, put_in_place()]


def write_files(run_dir: Path, renders: Mapping[str, Callable[[], str]]) -> list[Path]:
    """Renders every file first and writes then, so that a fault in one leaves the old ones together.

    Args:
        run_dir: Run folder, which exists.
        renders: What gives the content, by file name.

    Returns:
        The files written.

    Raises:
        InputError: The folder does not exist.
        OSError: A file cannot be written.
    """
    _check(run_dir)
    texts = {name: render() for name, render in renders.items()}
    for name, text in texts.items():
        _write(run_dir / name, text)
    return [run_dir / name for name in texts]


def _check(run_dir: Path) -> None:
    if not run_dir.is_dir():
        raise InputError(f"{run_dir} is not a run folder", "name a folder below reports/")


@contextmanager
def _folder_of_pages(run_dir: Path, pages: Iterable[tuple[str, str]]) -> Iterator[Callable[[], Path]]:
    """Writes pages beside the old ones; they take their place when the function that is given is called.

    They can be made again at any time, so none is forced to the disk by itself: for thousands that would take minutes.
    """
    _check(run_dir)
    for left in run_dir.glob(f".{PAGES}.*"):  # of a lab that was killed
        shutil.rmtree(left, ignore_errors=True)
    made = Path(tempfile.mkdtemp(prefix=f".{PAGES}.", dir=run_dir))
    try:
        for name, text in pages:
            (made / name).write_bytes(text.encode("utf-8", "backslashreplace"))
        made.chmod(0o755)  # mkdtemp makes folders that no one else may read

        def put_in_place() -> Path:
            place = run_dir / PAGES
            shutil.rmtree(place, ignore_errors=True)
            return made.rename(place)

        yield put_in_place
    finally:
        shutil.rmtree(made, ignore_errors=True)
