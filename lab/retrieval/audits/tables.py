"""The audits as tables for the terminal: names come from data, so they are shown as plain text."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from lab.retrieval.audits.fusion import FusionAudit
from lab.retrieval.audits.hostile_queries import HostileFinding
from lab.retrieval.audits.hrr import COMPONENTS, HrrAudit, Separation
from lab.retrieval.audits.terms import Changes, TermAudit
from lab.text import printable

_NAME = 60


def terms_table(audit: TermAudit) -> RenderableType:
    """A row for each term; below them the factor, and for how many topics nothing was considered."""
    title = f"Terms of {printable(audit.system, _NAME)}: {audit.topics} topics, {audit.candidates} candidates"
    table = _table(title, "Term")
    for heading in ("weight", "value\nmin–max", "range in a\ntopic, median", "weight × value\nmin–max", "mean"):
        table.add_column(heading, justify="right")
    for heading in ("share of\nvariance", "taken out:\ntop-1, top-5, order", "levelled:\ntop-1, top-5, order"):
        table.add_column(heading, justify="right")
    for row in audit.rows:
        table.add_row(
            _text(row.term),
            f"{row.weight:g}",
            f"{row.low:.3f}–{row.high:.3f}",
            f"{row.median_range:.3f}",
            f"{row.low_contribution:.3f}–{row.high_contribution:.3f}",
            f"{row.mean_contribution:.3f}",
            _share(row.variance_share),
            _changed(row.taken_out),
            _changed(row.levelled),
        )
    if audit.factor_share:
        table.add_row("× trust", *[""] * 5, _share(audit.factor_share), _changed(audit.factor), "")
    notes = [
        f"Taken out, levelled: topics of {audit.topics} with another first fact, other first five, the five in another "
        "order.",
        "Levelled: each fact has the topic's mean of the term. Without a constant, trust counts for less.",
    ]
    if audit.without_candidates:
        notes.append(f"No fact was considered for {audit.without_candidates} more topics.")
    return Group(table, *(_text(note, 200) for note in notes))


def hrr_table(audit: HrrAudit) -> RenderableType:
    """How queries and facts compare, and what comes back of a fact that is taken apart."""
    compared = _table("HRR similarity of query and fact", "Fact's vector")
    for heading in ("match\nmean ± sd", "other\nmean ± sd", "AUROC", "pairs"):
        compared.add_column(heading, justify="right")
    for name, measured in (("as stored, as search compares", audit.stored), ("text alone (textv1)", audit.text)):
        compared.add_row(name, *(_separation(measured) if measured else ("no fact has a vector", "", "", "")))
    apart = _table(
        f"Facts taken apart again ({audit.sampled} facts): AUROC of the true content against others", "Operation"
    )
    for components in COMPONENTS:
        apart.add_column(f"{components} part{'s' if components > 1 else ''}", justify="right")
    for operation in dict.fromkeys(one.operation for one in audit.recoveries):
        found = [audit.recovery(operation, components) for components in COMPONENTS]
        apart.add_row(operation, *(f"{one.auroc:.2f}" + ("" if one.stands_out else " nothing") for one in found))
    return Group(compared, apart)


def fusion_table(audit: FusionAudit) -> RenderableType:
    """A row for each pair."""
    table = _table(f"Facts injected (top {audit.depth}), pair by pair", "Pair")
    for heading in ("other facts\n/ n", "other order\n/ n", "Hit@1 only\nfirst : second", "p (Holm)"):
        table.add_column(heading, justify="right")
    for heading in (f"Hit@{audit.depth} only\nfirst : second", "p (Holm)"):
        table.add_column(heading, justify="right")
    table.add_column("Verdict", overflow="fold")
    for pair in audit.pairs:
        tests = [cell for one in pair.hits for cell in (f"{one.only_first} : {one.only_second}", f"{one.p_holm:.3f}")]
        counts = (_of(pair.lists_differ, pair.n), _of(pair.order_differs, pair.n))
        table.add_row(_text(f"{pair.first} / {pair.second}"), *counts, *tests, _text(pair.verdict, 200))
    left = [_text(f"{len(audit.left_out)} topics are not in all rankings and compared nowhere.")]
    return Group(table, *(left if audit.left_out else []))


def hostile_table(findings: Sequence[HostileFinding]) -> RenderableType:
    """A row for each query, a column for each way to ask."""
    ways = tuple(dict.fromkeys(one.way for one in findings))
    table = _table("Hostile queries against the real plugin", "Query")
    for way in ways:
        table.add_column(_text(way), overflow="fold")
    for query in dict.fromkeys(one.query for one in findings):
        told = {one.way: one.told for one in findings if one.query == query}
        table.add_row(_text(query), *(_text(told.get(way, "")) for way in ways))
    return table


def _share(share: float | None) -> str:
    return "n/a" if share is None else f"{share:.1%}"


def _changed(changes: Changes) -> str:
    return f"{changes.top1}, {changes.top5}, {changes.top5_order}"


def _table(title: str, first: str) -> Table:
    table = Table(title=Text(title), title_justify="left")
    table.add_column(first, overflow="fold")
    return table


def _separation(measured: Separation) -> tuple[str, str, str, str]:
    return (
        f"{measured.match_mean:+.4f} ± {measured.match_sd:.4f}",
        f"{measured.other_mean:+.4f} ± {measured.other_sd:.4f}",
        f"{measured.auroc:.3f}",
        f"{measured.matches} : {measured.others}",
    )


def _of(count: int, total: int) -> str:
    return f"{count}/{total}"


def _text(text: str, limit: int = _NAME) -> Text:
    return Text(printable(text, limit))
