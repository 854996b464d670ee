"""What is written of a comparison: the same bytes twice, links to the evidence, hostile text that stays text."""

from __future__ import annotations

import io
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest
from rich.console import Console

from lab.agents.base import Setup
from lab.compare.contamination import compare_runs
from lab.compare.model import Comparison, Difference, Noise, Row, Verdict
from lab.contamination.suite import Suite
from lab.records import Status
from lab.report.compare.html import linker
from lab.report.compare.terminal import print_comparison, print_lines
from lab.report.compare.words import noise, points, verdict
from lab.report.compare.write import write_comparison
from tests.finished_runs import finished, persisting, scenarios
from tests.planted import SETUP

ATTACKS = scenarios(12)
IDS = [s.id for s in ATTACKS]
HOSTILE = "</td><script>x()</script>|`\u202e\x1b[31m\n# <img src=x onerror=x()>"


class Page(HTMLParser):
    """Tags and links of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.links += [value or "" for name, value in attrs if name in ("href", "src")]
        assert not any(name.startswith("on") or name == "style" for name, _ in attrs)


@pytest.fixture(scope="module")
def suites(tmp_path_factory: pytest.TempPathFactory) -> list[Suite]:
    """Two runs that differ in a setup with a hostile description; one trial ended in a hostile cause."""
    root = tmp_path_factory.mktemp("runs")
    hostile = Setup(name="hostile", description=HOSTILE[:38], overrides={})

    def outcome(planned):  # type: ignore[no-untyped-def]
        if planned["scenario"] == IDS[0]:
            return {"status": Status.ERROR, "cause": HOSTILE}
        return persisting(IDS[4:])(planned)

    return [
        finished(root / "a", persisting(IDS), scenarios=ATTACKS, setups=[SETUP]),
        finished(root / "b", outcome, scenarios=ATTACKS, setups=[hostile]),
    ]


def places(suites: list[Suite]) -> dict[str, Path]:
    return {letter: suite.folder.path for letter, suite in zip("AB", suites, strict=True)}


def printed(comparison: Comparison, runs: dict[str, Path]) -> str:
    stream = io.StringIO()
    print_comparison(comparison, Console(file=stream, width=160, highlight=False), runs)
    return stream.getvalue()


def test_twice_the_same_bytes_and_json_reads_back(suites: list[Suite], tmp_path: Path) -> None:
    written = [
        write_comparison(compare_runs([Suite(s.folder) for s in suites]), tmp_path / name, places(suites))
        for name in ("one", "two")
    ]
    assert [path.name for path in written[0]] == ["compare.html", "compare.md", "compare.json"]
    for one, two in zip(*written, strict=True):
        assert one.read_bytes() == two.read_bytes()
    assert Comparison.model_validate_json(written[0][2].read_bytes()) == compare_runs(suites)
    assert str(tmp_path) not in written[0][1].read_text() + written[0][2].read_text(), "no path of the machine"


def test_links_lead_to_the_evidence_and_nowhere_else(suites: list[Suite], tmp_path: Path) -> None:
    page = Page(write_comparison(compare_runs(suites), tmp_path, places(suites))[0].read_text())
    away = [link for link in page.links if not link.startswith("#")]
    targets = {(tmp_path / unquote(link)).resolve() for link in away}
    flipped = IDS[1:4]
    assert targets == {
        path.resolve()
        for suite in suites
        for path in suite.folder.path.glob("trials/*")
        if path.name.split(".")[0] in flipped
    }
    assert len(targets) == 6 and not any(link.startswith(("/", "http", "file")) for link in away)


def test_no_link_leads_out_of_a_run_folder(tmp_path: Path) -> None:
    (tmp_path / "run" / "trials").mkdir(parents=True)
    (tmp_path / "secret").write_text("x")
    (tmp_path / "run" / "away").symlink_to(tmp_path / "secret")
    link = linker(tmp_path / "out", {"A": tmp_path / "run"})
    assert link("A", "trials") == "../run/trials"
    assert link("A", "../secret") == link("A", "away") == link("A", "absent") == ""


def test_hostile_text_stays_text(suites: list[Suite], tmp_path: Path) -> None:
    comparison = compare_runs(suites)
    html, markdown, _ = (path.read_text() for path in write_comparison(comparison, tmp_path, places(suites)))
    assert not {"script", "img", "iframe"} & Page(html).tags
    assert "&lt;script&gt;" in html and "⟦U+202E⟧" in html
    assert "default-src &#39;none&#39;" in html
    outside = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", markdown)
    assert "<" not in outside.replace("&lt;", "") and "\u202e" not in markdown and "\x1b" not in markdown
    assert "script" in markdown, "the hostile cause is shown"
    assert not re.search(r"^# <img", markdown, re.MULTILINE)
    shown = printed(comparison, places(suites))
    assert "\x1b" not in shown and "\u202e" not in shown and "error (</td><script>" in shown
    stream = io.StringIO()
    print_lines((HOSTILE, *["line"] * 50), Console(file=stream, width=100))
    assert "\x1b" not in stream.getvalue() and "and 39 more" in stream.getvalue()


def test_the_same_numbers_everywhere(suites: list[Suite], tmp_path: Path) -> None:
    comparison = compare_runs(suites)
    html, markdown, _ = (path.read_text() for path in write_comparison(comparison, tmp_path, places(suites)))
    shown = printed(comparison, places(suites))
    persist = comparison.contrasts[0].rows[0]
    assert (persist.first.numerator, persist.second.numerator, persist.n) == (11, 8, 11)
    for text in (html, markdown, shown):
        assert "11/11" in text and "8/11" in text and "3 : 0" in text and "−27.3" in text
        assert verdict(persist) in " ".join(text.replace("│", "").split()) or text is shown
    assert verdict(persist).startswith("cannot tell (n = 11 too small; about ")


def test_words() -> None:
    assert [points(v) for v in (None, 0, 0.0001, -0.0001, -0.833, 0.5)] == [
        "n/a",
        "0",
        "+<0.1",
        "−<0.1",
        "−83.3",
        "+50.0",
    ]
    assert noise(Noise(cells=40, disagreeing=2, rate=0.033)) == "2 of 40 cells (3.3 %)"
    assert noise(Noise(cells=0, disagreeing=0, rate=None)) == "not known: no repeats"


def test_a_row_without_a_pair_says_so(suites: list[Suite]) -> None:
    row: Row = compare_runs(suites).contrasts[0].rows[0]
    empty = row.model_copy(update={"n": 0, "needed": None, "difference": Difference(), "verdict": Verdict.CANNOT_TELL})
    assert verdict(empty) == "cannot tell (no pair is decided on both sides)"
    assert verdict(row.model_copy(update={"needed": 300, "needed_units": 100, "n": 36})) == (
        "cannot tell (n = 36 too small; about 300 pairs of 100 scenarios needed)"
    )
