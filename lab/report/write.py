"""Writes all report files of a run; each appears whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from lab.errors import InputError
from lab.report.csv_writer import render_csv
from lab.report.html_writer import render_html
from lab.report.json_writer import render_json
from lab.report.markdown_writer import render_markdown
from lab.report.model import Report

WRITERS: dict[str, Callable[[Report], str]] = {
    "report.json": render_json,
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


def write_reports(run_dir: Path, report: Report) -> list[Path]:
    """Writes the reports of a run in every form, all of them or none.

    Args:
        run_dir: Run folder, which exists.
        report: The report model.

    Returns:
        The files written.

    Raises:
        InputError: The folder does not exist.
        OSError: A file cannot be written.
    """
    return write_files(run_dir, {name: partial(render, report) for name, render in WRITERS.items()})


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
    if not run_dir.is_dir():
        raise InputError(f"{run_dir} is not a run folder", "name a folder below reports/")
    texts = {name: render() for name, render in renders.items()}
    for name, text in texts.items():
        _write(run_dir / name, text)
    return [run_dir / name for name in texts]
