"""report.html: one file without scripts or external resources, in which hostile text stays text."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache, partial
from urllib.parse import quote

from jinja2 import Environment
from markupsafe import Markup

from lab.contamination.mechanisms.case import FindingKind
from lab.records import Role, Value
from lab.report.hostile import html_excerpt
from lab.report.model import Report
from lab.report.notes import FINDINGS, MEASURES, RATES, STAGES
from lab.report.rate_model import Group
from lab.report.templating import html_environment, style_sheet
from lab.report.trial_model import Excerpt
from lab.statistics.proportions import Proportion

_SIGNS = {
    Value.YES: "●",
    Value.NO: "○",
    Value.NOT_APPLICABLE: "–",
    Value.UNDETERMINED: "?",
    Value.ERROR: "!",
}
_WIDTH = 240


def _bar(share: Proportion) -> Markup:
    """A bar with its interval as whiskers; hidden from screen readers because the same numbers stand beside it."""
    if share.value is None or share.low is None or share.high is None:
        return Markup("")
    x = {key: round(2 + n * (_WIDTH - 4), 1) for key, n in (("v", share.value), ("l", share.low), ("h", share.high))}
    return Markup(
        '<svg class="bar" viewBox="0 0 {w} 16" width="{w}" height="16" aria-hidden="true" focusable="false">'
        '<rect class="track" x="2" y="4" width="{full}" height="8" rx="2"></rect>'
        '<rect class="fill" x="2" y="4" width="{fill}" height="8" rx="2"></rect>'
        '<path class="whisker" d="M{l} 8H{h}M{l} 3V13M{h} 3V13"></path></svg>'
    ).format(w=_WIDTH, full=_WIDTH - 4, fill=max(0.0, round(x["v"] - 2, 1)), l=x["l"], h=x["h"])


def _link(trial: str, name: str) -> str:
    # Both parts are quoted whole, so neither can name another scheme, host or folder.
    return f"trials/{quote(trial, safe='')}/{quote(name, safe='')}"


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


@cache
def environment() -> Environment:
    """The template environment of this report."""
    env = html_environment()
    env.filters |= {
        "bar": _bar,
        "marked": html_excerpt,
        "diff": partial(html_excerpt, diff=True),
        "short": _short,
        "values": _values,
        "sign": _sign,
        "tone": _tone,
        "matrix": _matrix,
        "gate": lambda text: str(text).replace("True", "on").replace("False", "off"),
        "words": lambda text: str(text).replace("_", " "),
    }
    env.tests["shown"] = lambda piece: isinstance(piece, Excerpt) and bool(piece.text or piece.before or piece.after)
    return env


def render_html(report: Report) -> str:
    """The report as one HTML file.

    Its content security policy allows its own style sheet, by digest, and nothing else.

    Args:
        report: The report model.
    """
    env = environment()
    style = style_sheet(env)
    anchors = {view.trial: f"trial-{number}" for number, view in enumerate(report.trials, 1)}
    page = env.get_template("report.html.j2").render(
        r=report,
        css=style.css,
        policy=f"default-src 'none'; style-src {style.source}; base-uri 'none'; form-action 'none'",
        anchors=anchors,
        link=_link,
        roles=list(Role),
        rate_names=RATES,
        measures=MEASURES,
        stage_notes=STAGES,
        finding_kinds=list(FindingKind),
        kind_names=FINDINGS,
    )
    return page + "\n"
