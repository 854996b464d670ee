"""Writes all files of a benchmark report from lock and rows."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from lab.report.bench.csv import render_csv
from lab.report.bench.html import render_html
from lab.report.bench.markdown import render_markdown
from lab.report.json_writer import render_json
from lab.report.write import write_files
from lab.retrieval.assemble import finished
from lab.retrieval.results import RESULTS, BenchResult
from lab.retrieval.timing import TIMING, BenchTiming, read_times
from lab.runs.folder import RunFolder


def write_bench(folder: RunFolder) -> tuple[BenchResult, list[Path]]:
    """Computes the results of a run and writes them in every form.

    Args:
        folder: Folder of a finished benchmark run.

    Returns:
        The results, and the files written.

    Raises:
        InputError: The folder is not that of a finished benchmark run, or is damaged.
        OSError: A file cannot be written.
    """
    run = finished(folder)
    result, rows = run.result, run.rows
    timing = read_times(folder.path / TIMING, BenchTiming)
    renders = {
        RESULTS: partial(render_json, result),
        "report.html": partial(render_html, folder.run_id, result, timing, rows),
        "report.md": partial(render_markdown, folder.run_id, result),
        "topics.csv": partial(render_csv, rows),
    }
    return result, write_files(folder.path, renders)
