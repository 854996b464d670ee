"""Live models in HTML, Markdown and the terminal: everything is told, names stay inert, scripted runs are as before."""

from __future__ import annotations

import io
import re
import unicodedata
from pathlib import Path

import pytest
from rich.console import Console

from lab.contamination.live import Live
from lab.contamination.suite import Suite
from lab.models.identity import Ability, LiveModel
from lab.models.spec import Provider
from lab.records import TrialResult
from lab.report.build import build_report
from lab.report.html_writer import render_html
from lab.report.markdown_writer import render_markdown
from lab.report.model import Report
from lab.report.terminal import print_summary
from lab.runs.folder import RunFolder
from tests.factories import ALWAYS, FAITHFUL, NEVER, lock, planned
from tests.live_results import LIVE, SILENT, TRIES, error_of, live_lock, trials, use
from tests.synthetic_runs import Planned, sound, write_run

NASTY = "ollama:<img src=x onerror=alert(1)>|[bold]`x`[/bold]\x1b[2J\u202e:x:\n# head $a$"


def of(results: list[TrialResult]) -> Report:
    return build_report(live_lock(), planned(*results), results)


def section(html: str) -> str:
    found = re.search(r'<section aria-labelledby="susceptibility">.*?</section>', html, re.DOTALL)
    assert found
    return found[0]


def terminal(report: Report) -> str:
    out = io.StringIO()
    print_summary(report, Console(file=out, width=140, emoji=False))
    return out.getvalue()


@pytest.fixture(scope="module")
def report() -> Report:
    results = trials()
    lost = [error_of(r) if r.model == TRIES and r.scenario == "F1-001" and r.repeat == 1 else r for r in results]
    return of(lost)


def test_html_tells_every_rate_with_its_denominator_beside_the_ceiling(report: Report) -> None:
    html = section(render_html(report))
    assert html.count("<b>35/35</b>") >= 1 and html.count("<b>0/36</b>") >= 2 and "<b>36/36</b>" in html
    for word in ("reached attack trials", "attempted attack trials", "valid twins", "valid positive controls"):
        assert word in html
    for word in ("answers to reviews", "tool calls in answers to reviews", "reached attack cells with repeats"):
        assert word in html
    assert "model_timeout" in html and "stopped: 36 × refused(scan)" in html
    # The row of the error has a ceiling and no rate.
    assert html.count('class="point beside"') - 1 == html.count('class="point"') == 4 * 10
    for name in ("By delivery", "By language", "By position", "Tokens and time", "llama.cpp b1", "Q4_K_M"):
        assert name in html
    assert "cannot tell" in html and "worse" in html and "never deterministic" in html


def test_markdown_and_terminal_tell_the_same(report: Report) -> None:
    md, shown = render_markdown(report), terminal(report)
    for model in LIVE:
        assert f"`{model}`" in md and model in re.sub(r"\s*│\n│ *|\n", "", shown) + shown
    assert "35/35 of reached attack trials" in md and "error 1 × `model_timeout`" in md
    assert "35/35" in shown and "0/36" in shown and "36/36" in shown and "cannot tell" in shown
    part = md.partition("## Live models")[2].partition("## Findings")[0]
    rows = [line for line in part.splitlines() if line.startswith(("| part", "| all |", "| position", "| family"))]
    assert len(rows) == 1 + 4 * 6 + 1
    assert len({len(re.findall(r"(?<!\\)\|", re.sub(r"`[^`]*`", "", row))) for row in rows}) == 1


def test_the_first_screen_leads_to_the_live_models(report: Report) -> None:
    html = render_html(report)
    assert '<a href="#susceptibility">Read how often the 4 live models tried' in html
    assert '<a href="#susceptibility">Live models</a>' in html


def test_without_the_ceiling_no_cell_is_blank() -> None:
    results = trials((NEVER, SILENT), repeats=1)
    html, md, shown = render_html(of(results)), render_markdown(of(results)), terminal(of(results))
    assert section(html).count("<td>not run</td>") >= 2 and "Run without <code>--no-ceiling</code>" in html
    assert "| not run |" in md and "Run without `--no-ceiling`" in md and "not run" in shown
    assert "--repeats 3" in html and "--repeats 3" in md and "--repeats 3" in shown


def test_a_hostile_name_of_a_model_is_text_everywhere() -> None:
    results = [
        r.model_copy(update={"model": NASTY, "trial": f"n{number}"}) if r.model == TRIES else r
        for number, r in enumerate(trials((ALWAYS, NEVER, TRIES, SILENT)))
    ]
    facts = {"spec": NASTY, "provider": "ollama", "name": NASTY, "url": NASTY, "server": NASTY, "notes": [NASTY]}
    locked = live_lock() | {"live": {"models": {NASTY: facts}}}
    report = build_report(locked, planned(*results), results)
    html, md, shown = render_html(report), render_markdown(report), terminal(report)
    assert "<img" not in html and "\x1b" not in html and "\u202e" not in html and "⟦ESC⟧" in html
    for line in md.partition("## Live models")[2].partition("## Findings")[0].splitlines():
        assert not line.startswith("# head")
        assert "<img" not in re.sub(r"(`+).*?\1", "", line)
    assert not any(unicodedata.category(c) in ("Cc", "Cf") for c in shown if c != "\n")
    assert "[bold]" in shown and ":x:" in shown.replace("\n", ""), "neither markup nor emoji"


def test_scripted_runs_are_told_without_a_word_of_it() -> None:
    results = trials((ALWAYS, NEVER, FAITHFUL))
    report = build_report(lock(), planned(*results), results)
    html = render_html(report)
    assert 'id="susceptibility"' not in html and ".beside" not in html and "#susceptibility" not in html
    assert "Live models" not in render_markdown(report) and "Live models" not in terminal(report)


def test_a_run_folder_with_a_live_model_is_read_back(tmp_path: Path) -> None:
    name = "ollama:qwen3"
    model = LiveModel(
        spec=name, provider=Provider.OLLAMA, name="qwen3", url="http://127.0.0.1:11434", tools=Ability.YES
    )

    def ending(_scenario: str, planned_: Planned) -> TrialResult:
        used = {"model_use": use()} if planned_["model"] == name else {}
        return sound(planned_, persists=True, **used)

    path = write_run(tmp_path, ending, models=[name, ALWAYS, NEVER], live=Live(models={name: model}))
    suite = Suite(RunFolder.open(path))
    found = build_report(suite.lock, suite.plan, suite.each_result(), scenarios=suite.scenarios).susceptibility
    assert found and found.facts == (model,)
    (row,) = found.rows
    assert row.whole.attempt.proportion.text().startswith("0/12 of reached attack trials")
    assert row.whole.ceiling and row.whole.ceiling.persist.proportion.numerator == 12
