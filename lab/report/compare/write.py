"""Writes all files of a comparison."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from lab.compare.model import Comparison
from lab.report.compare.html import linker, render_html
from lab.report.compare.markdown import render_markdown
from lab.report.json_writer import render_json
from lab.report.write import write_files


def write_comparison(comparison: Comparison, folder: Path, runs: Mapping[str, Path]) -> list[Path]:
    """Writes a comparison in every form, all of them or none.

    Args:
        comparison: The comparison.
        folder: Where to; made if need be.
        runs: Run folder of each side by letter, for links.

    Returns:
        The files written.

    Raises:
        OSError: A file cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    renders = {
        "compare.html": partial(render_html, comparison, linker(folder, runs)),
        "compare.md": partial(render_markdown, comparison),
        "compare.json": partial(render_json, comparison),
    }
    return write_files(folder, renders)
