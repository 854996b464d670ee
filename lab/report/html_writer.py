"""report.html: one file without external resources, in which hostile text stays text and only our script runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache, partial
from typing import NamedTuple
from urllib.parse import quote, urlencode

from jinja2 import Environment

from lab.contamination.mechanisms.case import FindingKind
from lab.records import Role, Value
from lab.report.brief import brief
from lab.report.figures import bar, forest, forest_axis, forest_beside, funnel
from lab.report.hostile import html_excerpt
from lab.report.model import Report
from lab.report.notes import FINDINGS, MEASURES, RATES, STAGES
from lab.report.rate_model import Group
from lab.report.susceptibility_words import NOTES as LIVE_NOTES
from lab.report.susceptibility_words import VERDICTS
from lab.report.table_model import ScenarioCell, ScenarioRow
from lab.report.templating import Script, Style, html_environment, script, style_sheet
from lab.report.trial_model import Excerpt
from lab.report.trial_row import TrialRow

_SIGNS = {
    Value.YES: "●",
    Value.NO: "○",
    Value.NOT_APPLICABLE: "–",
    Value.UNDETERMINED: "?",
    Value.ERROR: "!",
}
MOST_ROWS = 600
"""Trials that are listed in the report itself; of more, the list stands on pages of its own."""

MOST_COUNTS = 200
"""Rows of decisions, stores and notices that stand in the report itself."""

PAGE_ROWS = 2_000
"""Trials on one such page."""


def evidence_link(trial: str, name: str) -> str:
    """Address of an evidence file, from a page of a trial."""
    # Both parts are quoted whole, so neither can name another scheme, host or folder.
    return f"../trials/{quote(trial, safe='')}/{quote(name, safe='')}"


def _short(text: str, length: int = 12) -> str:
    return text if len(text) <= length else f"{text[:length]}…"


def _values(counts: dict[Value, int]) -> str:
    """``yes`` for a single trial, ``3 yes, 2 no`` for several."""
    if sum(counts.values()) == 1:
        return next(iter(counts)).replace("_", " ")
    return ", ".join(f"{n} {value.replace('_', ' ')}" for value, n in counts.items()) or "none"


def _sign(counts: dict[Value, int]) -> str:
    if not counts:
        return "∅"
    if len(counts) == 1:
        return _SIGNS[next(iter(counts))]
    return f"{counts.get(Value.YES, 0)}/{sum(counts.values())}"


def _tone(counts: dict[Value, int]) -> str:
    if set(counts) == {Value.YES}:
        return "yes"
    if set(counts) == {Value.NO}:
        return "no"
    return "mixed" if set(counts) == {Value.YES, Value.NO} else "open"


def _matrix(groups: Iterable[Group]) -> dict[tuple[str, str, str], dict[str, Group]]:
    """Groups by build, setup and model, then by family: many cards would hide what a table shows at a glance."""
    rows: dict[tuple[str, str, str], dict[str, Group]] = {}
    for group in groups:
        rows.setdefault((group.build, group.setup, group.model), {})[group.family] = group
    return rows


class _Grid(NamedTuple):
    """Scenarios by builds and setups.

    Attributes:
        columns: Builds and setups.
        rows: A scenario in a role, a model, and a cell for each column; None where nothing was planned.
    """

    columns: list[tuple[str, str]]
    rows: list[tuple[ScenarioRow, str, list[ScenarioCell | None]]]


def _grid(scenarios: Iterable[ScenarioRow]) -> _Grid:
    found = [(row, cell) for row in scenarios for cell in row.cells]
    columns = sorted({(cell.build, cell.setup) for _, cell in found})
    rows: dict[tuple[str, str, str], tuple[ScenarioRow, str, dict[tuple[str, str], ScenarioCell]]] = {}
    for row, cell in found:
        key = (row.scenario, row.role, cell.model)
        rows.setdefault(key, (row, cell.model, {}))[2][cell.build, cell.setup] = cell
    return _Grid(columns, [(row, model, [cells.get(c) for c in columns]) for row, model, cells in rows.values()])


def page_parts(style: Style, script: Script | None = None) -> dict[str, str]:
    """What every page needs: style sheet, script, and a policy that allows these, by digest, and nothing else."""
    own = f"script-src {script.source}; " if script else ""
    return {
        "css": style.css,
        "js": script.js if script else "",
        "policy": f"default-src 'none'; {own}style-src {style.source}; base-uri 'none'; form-action 'none'",
    }


def _count_rows(report: Report) -> int:
    tables = report.tables
    return len(tables.decisions) + len(tables.stores) + len(tables.notices)


def counts_here(report: Report) -> bool:
    """Whether the tables of decisions, stores and notices stand in the report itself."""
    return _count_rows(report) <= MOST_COUNTS


@cache
def environment() -> Environment:
    """The template environment of this report."""
    env = html_environment()
    env.filters |= {
        "bar": bar,
        "forest": forest,
        "funnel": funnel,
        "marked": html_excerpt,
        "diff": partial(html_excerpt, diff=True),
        "short": _short,
        "values": _values,
        "sign": _sign,
        "tone": _tone,
        "matrix": _matrix,
        "count_rows": _count_rows,
        "grid": _grid,
        "query": urlencode,
        "brief_value": lambda value: value.value if value.decided else _SIGNS[value],
        "role_class": lambda role: role if role in ("user", "assistant", "tool", "system") else "other",
        "gate": lambda text: str(text).replace("True", "on").replace("False", "off"),
        "words": lambda text: str(text).replace("_", " "),
    }
    env.globals["forest_axis"] = forest_axis
    env.globals["forest_beside"] = forest_beside
    env.tests["shown"] = lambda piece: isinstance(piece, Excerpt) and bool(piece.text or piece.before or piece.after)
    return env


def render_html(report: Report) -> str:
    """The report as one HTML file, which can be read whole without its script.

    Its content security policy allows its own style sheet and script, by digest, and nothing else.

    Args:
        report: The report model.
    """
    env = environment()
    live = ("susceptibility.css",) if report.susceptibility else ()
    page = env.get_template("report.html.j2").render(
        r=report,
        brief=brief(report),
        numbers={row.trial: row.number for row in report.trials},
        listed=len(report.trials) <= MOST_ROWS,
        lists=list_pages(report),
        roles=list(Role),
        rate_names=RATES,
        measures=MEASURES,
        stage_notes=STAGES,
        finding_kinds=list(FindingKind),
        kind_names=FINDINGS,
        counts_here=counts_here(report),
        live_notes=LIVE_NOTES,
        verdicts=VERDICTS,
        **page_parts(style_sheet(env, "base.css", "report.css", *live), script(env)),
    )
    return page + "\n"


def list_pages(report: Report) -> list[tuple[str, Sequence[TrialRow]]]:
    """Names and rows of the pages that list the trials, where the report itself does not."""
    rows = report.trials
    if len(rows) <= MOST_ROWS:
        return []
    starts = range(0, len(rows), PAGE_ROWS)
    return [(f"list-{n}.html", rows[start : start + PAGE_ROWS]) for n, start in enumerate(starts, 1)]
