"""Hostile text in every field of a report stays text, in every format."""

import base64
import csv
import hashlib
import io
import itertools
import json
import re
import unicodedata
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from rich.console import Console

from lab.cli.report import DERIVED
from lab.contamination.semantic.records import SEMANTIC
from lab.errors import InputError
from lab.records import (
    Decision,
    Evidence,
    Reach,
    Role,
    Settled,
    SettledStep,
    Stage,
    Status,
    TrialResult,
    Value,
    Verdict,
)
from lab.report import html_writer
from lab.report import write as write_module
from lab.report.build import build_report
from lab.report.csv_writer import render_csv
from lab.report.evidence import trial_views
from lab.report.hostile import csv_cell, cut, html_excerpt, markdown_code, marks_in, visible
from lab.report.html_writer import render_html
from lab.report.json_writer import render_report
from lab.report.markdown_writer import render_markdown
from lab.report.terminal import print_summary
from lab.report.trial_pages import render_pages
from lab.report.write import write_reports
from tests.factories import ALWAYS, FAITHFUL, NEVER, attempt, finding, lock, planned, quiet, result

HOSTILE = {
    "script": "<script>document.title='owned'</script>",
    "broken script": "</pre></details></style><script src=//evil.example.test/x.js>",
    "handler": '" onmouseover="alert(1)" x=\'',
    "image": "<img src=x onerror=alert(1)>",
    "svg": "<svg/onload=alert(1)><use href='http://evil.example.test/#x'/></svg>",
    "iframe": "<iframe srcdoc='<script>1</script>'></iframe><base href=//evil.example.test>",
    "style": "<style>@import 'http://evil.example.test'</style><p style='x'>",
    "form": "<form action=http://evil.example.test><button>go</form><meta http-equiv=refresh content=0>",
    "template": "{{7*7}}{% for x in y %}${7*7}#{7*7}",
    "cdata": "]]> --> <!-- <![CDATA[",
    "ansi": "\x1b[2J\x1b]0;owned\x07\x9b31m",
    "bidi": "abc\u202egnp.exe\u202c\u2066x\u2069",
    "nul": "a\x00b\x08c\x7fd\re",
    "zero width": "o\u200bt\u200dt\ufe0fe\u00adr\U000e0041",
    "line separators": "a\u2028b\u2029c\x85d",
    "markdown": "| a | b |\n|---|---|\n# head\n![x](http://evil.example.test/p.png) [l](javascript:alert(1)) **b**",
    "ticks": "``` ` `` \\| \\` | <b>x</b>\n```\n<script>1</script>\n```",
    "autolink": "<http://evil.example.test> www.example.test a@example.test http://evil.example.test",
    "rich": "[bold red]owned[/bold red][link=http://evil.example.test]x[/link] [/]",
    "formula": '=HYPERLINK("http://evil.example.test","x")',
    "formula 2": "@SUM(1+1)*cmd|' /C calc'!A0",
    "formula 3": "\t=1+1",
    "entities": "&lt;script&gt; &#60;script&#62; &amp;amp;",
    "javascript": "javascript:alert(1)",
    "path": "../../../etc/passwd",
}


def hostile_result(text: str, number: int = 1, **more) -> TrialResult:
    """A trial with the text in every field that is free."""
    proof = (Evidence(file=text, pointer=text, excerpt=text),)
    fields = {
        "title": text,
        "detail": text,
        "delivery": text,
        "notice_text": text,
        "setup_assertions": {text: text},
        "stood": Reach(role=text, position=0, messages=1, tool=text),
        "attempts": (
            attempt(tool=text, action=text, target=text, arguments=text, answer=text, origin=text),
            attempt(decision=Decision.UNKNOWN, arguments=text, carries=False),
        ),
        "stores": (finding(evidence=proof),),
        "verdicts": {s: Verdict(value=Value.YES, reason=text, detail=text, evidence=proof) for s in Stage},
        "carrier": text,
        "action": text,
        "target": text,
        "by": text,
        "provenance": text,
        "settled": Settled(
            action=text,
            steps=(SettledStep(subsystem=text, command=text, said=text, left=1),),
            persist=Verdict(value=Value.YES, reason=text, detail=text, evidence=proof),
            copies=2,
            provenance=text,
        ),
    }
    return result(f"F1-{number:03}", **fields | more)


def hostile_mechanism(text: str, number: int) -> TrialResult:
    """A trial that a finding, a row of staged writes and a row of origins are made of, with the text in each."""
    told = hostile_result(text, number, setup_assertions={"memory_gate": "True", "skills_gate": "True"})
    calls = (attempt(tool=text, origin=text, arguments=text), attempt(decision=Decision.STAGED, arguments=text))
    return told.model_copy(update={"attempts": calls, "stores": (finding(evidence=told.stores[0].evidence),)})


def hostile_results(texts) -> list[TrialResult]:
    results = []
    for number, text in enumerate(texts, 1):
        results.append(hostile_result(text, number))
        open_verdict = {s: Verdict(value=Value.UNDETERMINED, reason=text, detail=text) for s in Stage}
        results.append(hostile_result(text, number, repeat=2, verdicts=open_verdict))
        results.append(result(f"F1-{number:03}", repeat=3, status=Status.ERROR, cause=text or "x", detail=text))
        results.append(hostile_mechanism(text, 500 + number))
        results.append(quiet(f"F5-{number:03}", role=Role.CONTROL, title=text))
        results.append(hostile_mechanism(text, 600 + number).model_copy(update={"role": Role.NEGATIVE}))
        results.append(
            result(f"F1-{number:03}", model=f"ollama:{text}", setup=text, build=text, trial=f"{text}x{number}")
        )
    return results


def hostile_lock(texts):
    return lock(
        run_id=texts[0],
        created=texts[0],
        lab_version=texts[0],
        backend={"name": texts[0], "version": texts[0], "weaknesses": list(texts)},
        builds={t: {"product": t, "version": t, "packages": {t: t}, "python": t} for t in texts},
        setups={t: {"description": t, "overrides": {t: t}} for t in texts},
        models=list(texts),
        scenarios={t: t for t in texts},
        host={"kernel": texts[0], "arch": texts[0], "python": texts[0]},
    )


def hostile_report(texts):
    results = hostile_results(texts)
    return build_report(hostile_lock(texts), planned(*results), results)


def all_pages(results, locked=None, run_dir: Path | None = None) -> dict[str, str]:
    """Every HTML file of a report, by name."""
    report = build_report(locked or lock(), planned(*results), results)
    views = trial_views(report.trials, {r.trial: r for r in results}.get, run_dir, {})
    return {"report.html": render_html(report), **{f"pages/{n}": text for n, text in render_pages(report, views)}}


def hostile_pages(texts) -> dict[str, str]:
    return all_pages(hostile_results(texts), hostile_lock(texts))


ALL = tuple(HOSTILE.values())
TAGS = frozenset(
    re.findall(
        r"\w+",
        "html head meta title style body a header p h1 h2 h3 h4 nav ul ol li main div section strong b code em mark "
        "table caption thead tbody tr th td span small s br dl dt dd details summary article pre ins del footer svg "
        "path text script",
    )
)


LINKS = (
    r"#[a-z]+(-[a-z0-9]+)?|pages/((list-)?\d+|counts)\.html|(list-)?\d+\.html|(\.\./report|list-\d+)\.html#(t\d+|trials|guards)"
    r"|\.\./trials/[^/:]+/[a-z.\-]+"
)
"""Addresses that a page may hold: itself, the pages beside it, and files of evidence."""

TEMPLATES = Path(write_module.__file__).parent / "templates"
OWN_SCRIPT = (TEMPLATES / "report.js").read_text()


class Page(HTMLParser):
    """Collects what a browser would act on."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.open: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.text.append(data)

    def handle_comment(self, data):
        raise AssertionError("a comment")


def check_inert(html: str) -> Page:
    page = Page(html)
    assert page.open == []
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    for tag, attrs in page.tags:
        assert tag in TAGS, tag
        for name, value in attrs.items():
            assert not name.startswith("on") and name not in (
                "style",
                "src",
                "srcset",
                "srcdoc",
                "action",
                "xlink:href",
            )
            if name == "href":
                assert re.fullmatch(LINKS, value), value
                assert value[0] != "#" or value[1:] in ids
        if tag == "meta" and "http-equiv" in attrs:
            assert attrs["http-equiv"] == "Content-Security-Policy"
    assert html.count("<style>") == 1
    scripts = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    assert scripts in ([], [OWN_SCRIPT]) and sum(tag == "script" for tag, _ in page.tags) == len(scripts)
    return page


@pytest.mark.parametrize("name", HOSTILE)
def test_html_stays_inert(name):
    for html in hostile_pages([HOSTILE[name]]).values():
        check_inert(html)


def test_html_of_everything_together_shows_the_text():
    pages = hostile_pages(ALL)
    assert len(pages) == len(ALL) * 7 + 1
    shown = "".join("".join(check_inert(html).text) for html in pages.values())
    for text in (
        "<script>document.title='owned'</script>",
        "{{7*7}}",
        "]]> -->",
        "&lt;script&gt;",
        "⟦U+202E⟧",
        "⟦NUL⟧",
    ):
        assert text in shown
    assert "49" not in re.sub(r"\d{3,}|4\d\.\d|[\d.]+ %", "", "".join(HOSTILE["template"]))


def test_the_hostile_report_has_every_section_that_shows_foreign_words():
    """Else the tests around would prove nothing of them."""
    report = hostile_report(ALL)
    assert any(f.key.startswith("gate-passed") and HOSTILE["script"] in f.statement for f in report.findings)
    assert report.false_memory and report.asymmetry
    assert {s.operator for s in report.tables.staged} == set(ALL)
    assert {o.origin for o in report.tables.origins} >= {t[:60] for t in ALL}
    assert {c.carrier for c in report.tables.carriers} >= {t[:60] for t in ALL}


def test_no_character_that_hides_is_left_in_html():
    html = "".join(hostile_pages(ALL).values())
    assert {c for c in html if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")} <= {"\n", "\t"}


@settings(deadline=None, max_examples=60)
@given(st.lists(st.text(min_size=1, max_size=40), min_size=1, max_size=2))
def test_html_of_any_text_stays_inert(texts):
    results = [hostile_result(text, number) for number, text in enumerate(texts, 1)]
    for html in all_pages(results).values():
        check_inert(html)


def checksum(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_policy_allows_our_own_style_sheet_and_script_and_nothing_else():
    pages = hostile_pages(ALL)
    for name, scripted in (("report.html", True), ("pages/1.html", False)):
        html = pages[name]
        css = re.search(r"<style>(.*?)</style>", html, re.DOTALL).group(1)
        policy = next(a["content"] for t, a in Page(html).tags if t == "meta" and "http-equiv" in a)
        own = f"script-src {checksum(OWN_SCRIPT)}; " if scripted else ""
        assert policy == f"default-src 'none'; {own}style-src {checksum(css)}; base-uri 'none'; form-action 'none'"
        assert "url(" not in css and "@import" not in css
    # What would make text into markup or code must not be in the script at all.
    code = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval|Function\(|fetch|import"
    assert not re.search(code, OWN_SCRIPT)


@pytest.mark.parametrize("name", ["report.html", "pages/1.html"])
def test_basic_accessibility(name):
    page = Page(hostile_pages(ALL)[name])
    assert ("html", {"lang": "en"}) in page.tags
    names = [tag for tag, _ in page.tags]
    assert names.count("h1") == names.count("main") == 1
    assert names.count("table") == names.count("caption")
    assert all("scope" in attrs for tag, attrs in page.tags if tag == "th")
    assert any(a.get("class") == "skip" and a["href"] == "#main" for t, a in page.tags if t == "a")
    for place, (tag, attrs) in enumerate(page.tags):
        if tag == "svg":
            assert attrs.get("aria-hidden") == "true" or (attrs["role"] == "img" and page.tags[place + 1][0] == "title")
    levels = [int(tag[1]) for tag in names if re.fullmatch(r"h\d", tag)]
    assert all(b - a <= 1 for a, b in itertools.pairwise(levels))


def luminance(colour: str) -> float:
    colour = colour.lstrip("#")
    colour = "".join(c * 2 for c in colour) if len(colour) == 3 else colour
    parts = [int(colour[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_contrast_is_aa_in_light_dark_and_print():
    css = (TEMPLATES / "base.css").read_text()
    schemes = [dict(re.findall(r"--(\w+):(#\w+)", block)) for block in re.findall(r":root\{([^}]*)\}", css)]
    assert len(schemes) == 3
    pairs = [(a, b) for a in ("ink", "soft", "accent") for b in ("bg", "card", "code")]
    pairs += [("bad", "card"), ("bad", "bg"), ("warn", "card"), ("warn", "bg"), ("good", "card"), ("good", "bg")]
    pairs += [
        ("ink", "badbg"),
        ("ink", "warnbg"),
        ("accent", "badbg"),
        ("ink", "ins"),
        ("ink", "del"),
        ("markink", "mark"),
    ]
    for scheme in schemes:
        scheme["chip"] = "#06110f" if scheme is schemes[1] else "#ffffff"
        for fore, back in [*pairs, ("chip", "fill")]:
            light, dark = sorted((luminance(scheme[fore]), luminance(scheme[back])), reverse=True)
            assert (light + 0.05) / (dark + 0.05) >= 4.5, (schemes.index(scheme), fore, back)


def test_size_of_the_report_and_of_a_page_whatever_the_trials_hold(tmp_path):
    long = "word otter40 <b>&\u202e " * 400
    results = [hostile_result(long if i else "x" * 5_000_000, i % 900 + 1, detail="y" * 5_000_000) for i in range(100)]
    for r in results:
        folder = tmp_path / "trials" / r.trial
        folder.mkdir(parents=True)
        (folder / "stores.diff").write_text("+" + long)
    pages = all_pages(results, run_dir=tmp_path)
    assert "characters omitted]" in pages["pages/1.html"]
    assert len(pages.pop("report.html").encode()) < 1_500_000  # hostile text in every single field of a table
    assert max(len(html.encode()) for html in pages.values()) < 100_000
    proof = (Evidence(file="requests.jsonl", pointer="/3", excerpt=long),)
    full = {
        "attempts": (attempt(arguments=long, answer=long),) * 3,
        "verdicts": {stage: Verdict(value=Value.YES, evidence=proof * 2) for stage in Stage},
    }
    results = [result(f"F1-{i:03}", trial=r.trial, **full) for i, r in enumerate(results, 1)]
    pages = all_pages(results, run_dir=tmp_path)
    assert len(pages.pop("report.html").encode()) < 120_000
    assert max(len(html.encode()) for html in pages.values()) < 60_000


def test_five_hundred_trials_of_a_wide_matrix_stay_below_five_hundred_kilobytes():
    places = itertools.product(("hermes-0.18.0", "hermes-0.19.0"), ("default", "gate-on", "scan-off", "both-on"))
    results = []
    for build, setup in places:
        for model, family in itertools.product((ALWAYS, NEVER, FAITHFUL), ("F1", "F2", "F3", "F4", "F6")):
            made = result if model == ALWAYS else quiet
            results += [made(f"{family}-{n:03}", build=build, setup=setup, model=model) for n in range(1, 4)]
        for model in (ALWAYS, NEVER, FAITHFUL):
            where = {"build": build, "setup": setup, "model": model}
            made = quiet if model == NEVER else result
            results += [made(f"F5-{n:03}", role=Role.CONTROL, **where) for n in (1, 2)]
            results += [quiet(f"F1-{n:03}", role=Role.TWIN, **where) for n in (1, 2, 3)]
    results += [result(f"F1-{n:03}", setup="once") for n in range(1, 500 - len(results) + 1)]
    assert len(results) == 500
    html = render_html(build_report(lock(), planned(*results), results))
    assert html.count('<tr id="t') == 500
    assert len(html.encode()) < 500_000, len(html.encode())


def test_a_long_list_stands_on_pages_of_its_own(monkeypatch):
    monkeypatch.setattr(html_writer, "MOST_ROWS", 5)
    monkeypatch.setattr(html_writer, "PAGE_ROWS", 4)
    results = [result(f"F1-{n:03}") for n in range(1, 12)]
    pages = all_pages(results)
    assert "11 trials are too many for this page" in pages["report.html"]
    lists = {name: re.findall(r'<tr id="t(\d+)"', html) for name, html in pages.items() if "list-" in name}
    assert lists == {
        "pages/list-1.html": ["1", "2", "3", "4"],
        "pages/list-2.html": ["5", "6", "7", "8"],
        "pages/list-3.html": ["9", "10", "11"],
    }
    assert 'href="list-2.html#t6"' in pages["pages/6.html"]
    for name, html in pages.items():
        check_inert(html)
        for _, attrs in Page(html).tags:
            if "href" in attrs and attrs["href"][0] != "#":
                target = (Path(name).parent / attrs["href"].split("#")[0]).as_posix().replace("pages/../", "")
                assert target in pages


def test_links_lead_only_to_evidence_that_exists(tmp_path):
    r = result()
    folder = tmp_path / "trials" / r.trial
    folder.mkdir(parents=True)
    (folder / "requests.jsonl").write_text("{}")
    (folder / "secret").write_text("root:x")
    (folder / "stores.diff").symlink_to(folder / "secret")
    html = all_pages([r], run_dir=tmp_path)["pages/1.html"]
    links = [a["href"] for t, a in Page(html).tags if t == "a" and "trials/" in a["href"]]
    assert links == [f"../trials/{r.trial}/requests.jsonl"]
    assert "root:x" not in html


@pytest.mark.parametrize("trial", ["../../etc", "..", ".", "a/b", "/etc", "\x00", "a" * 300])
def test_a_trial_id_cannot_leave_the_run_folder(tmp_path, trial):
    (tmp_path / "run").mkdir()
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc" / "stores.diff").write_text("outside")
    r = result(trial=trial)
    html = all_pages([r], run_dir=tmp_path / "run")["pages/1.html"]
    assert "Complete evidence" not in html
    assert "outside" not in html


# Markdown


def markdown_tokens(text: str):
    # "js-default" with HTML on is the most permissive reading: tables, strikethrough, raw HTML
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    for token in parser.parse(text):
        yield token
        yield from token.children or ()


@pytest.mark.parametrize("name", HOSTILE)
def test_markdown_makes_no_html_no_links_no_images_and_whole_tables(name):
    md = render_markdown(hostile_report([HOSTILE[name]]))
    kinds = [token.type for token in markdown_tokens(md)]
    assert not {"html_block", "html_inline", "link_open", "image", "fence", "code_block", "em_open"} & set(kinds)
    neutral = render_markdown(hostile_report(["plain words"]))
    wanted = [token.type for token in markdown_tokens(neutral)]
    for kind in ("table_open", "tr_open", "td_open", "th_open", "heading_open", "list_item_open"):
        assert kinds.count(kind) == wanted.count(kind), kind


@given(st.text(max_size=60))
def test_markdown_code_is_one_span_in_a_cell(text):
    span = markdown_code(text)
    tokens = [t for t in markdown_tokens(f"| a | b |\n|---|---|\n| {span} | z |\n") if t.type != "inline"]
    assert [t.type for t in tokens].count("td_open") == 2
    assert not {t.type for t in tokens} & {"html_inline", "link_open", "image", "em_open", "strong_open"}
    assert [t.content for t in tokens if t.type == "text"][-1] == "z"


# CSV, JSON, terminal


@pytest.mark.parametrize("name", HOSTILE)
def test_csv_has_no_formula_and_no_control(name):
    text = render_csv(hostile_report([HOSTILE[name]]))
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == 7
    for row in rows:
        assert None not in row
        for cell in row.values():
            assert cell[:1] not in ("=", "+", "-", "@", "\t", "\r")
            assert not any(unicodedata.category(c) in ("Cc", "Cf", "Cs") for c in cell)


@pytest.mark.parametrize(
    ("raw", "cell"),
    [
        ("=1", "'=1"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@x", "'@x"),
        ("\tx", "'x"),
        ("\rx", "'x"),
        ("\x00=1", "'=1"),
        (" =1", "' =1"),
        ("＝1", "'＝1"),
        ("plain", "plain"),
        ("a=1", "a=1"),
        ("", ""),
    ],
)
def test_csv_cells(raw, cell):
    assert csv_cell(raw) == cell


def test_json_is_plain_ascii_and_reads_back_raw():
    text = render_report(hostile_report(ALL))
    assert text.isascii() and all(c == "\n" or c.isprintable() for c in text)
    titles = {row["title"] for row in json.loads(text)["trials"]}
    assert HOSTILE["bidi"] in titles and HOSTILE["nul"] in titles


@pytest.mark.parametrize("colour", [True, False])
def test_terminal_takes_no_orders(colour):
    out = io.StringIO()
    console = Console(file=out, width=200, force_terminal=colour, color_system="standard" if colour else None)
    print_summary(hostile_report(ALL), console)
    text = re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue())
    assert not any(unicodedata.category(c) in ("Cc", "Cf", "Cs") for c in text if c != "\n")
    assert "\x1b]" not in out.getvalue()


# the pieces


def test_visible_shows_what_hides():
    assert visible("a\x00\x1b\x7f\u202e\u200b\ufe0f\ufeff\u00ad") == (
        "a⟦NUL⟧⟦ESC⟧⟦DEL⟧⟦U+202E⟧⟦U+200B⟧⟦U+FE0F⟧⟦U+FEFF⟧⟦U+00AD⟧"
    )
    assert visible("línea\n\tação 日本 é") == "línea\n\tação 日本 é"
    assert visible("e" + "\u0301" * 6).count("⟦U+0301⟧") == 2


@given(st.text(), st.integers(1, 50), st.text(max_size=3))
def test_cut_loses_nothing_uncounted(text, limit, needle):
    piece = cut(text, limit, [needle])
    assert piece.before + len(piece.text) + piece.after == len(text)
    assert text[piece.before :].startswith(piece.text)
    for start, end in piece.marks:
        assert 0 <= start < end <= len(piece.text)


def test_cut_keeps_the_content_in_view():
    piece = cut("x" * 9000 + "OTTER40" + "y" * 9000, 600, ["otter40"])
    assert [piece.text[a:b] for a, b in piece.marks] == ["OTTER40"]
    assert html_excerpt(piece).count("<mark>OTTER40</mark>") == 1
    assert html_excerpt(piece).count("characters omitted]") == 2


def test_marks_are_merged():
    assert marks_in("abcabc", ["abc", "bca", ""]) == ((0, 6),)


def test_diff_lines_and_marks_over_line_ends():
    piece = cut("+++ new\n-old\n+a <b>\nc", 100, ["<b>\nc"])
    assert html_excerpt(piece, diff=True) == (
        "+++ new\n<del>-old</del>\n<ins>+a <mark>&lt;b&gt;</mark></ins>\n<mark>c</mark>"
    )


# writing


def everything_in(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def write(folder: Path, texts) -> list[Path]:
    results = hostile_results(texts)
    report = build_report(hostile_lock(texts), planned(*results), results)
    views = trial_views(report.trials, {r.trial: r for r in results}.get, folder, {})
    return write_reports(folder, report, views)


def test_reports_are_written_whole_or_not_at_all(tmp_path, monkeypatch):
    written = write(tmp_path, ALL)
    assert [p.name for p in written] == ["report.json", "report.html", "report.md", "trials.csv", "pages"]
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(p.name for p in written)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(name.rstrip("/") for name in DERIVED - {SEMANTIC})
    before = everything_in(tmp_path)
    assert len(before) == 4 + 7 * len(ALL)
    write(tmp_path, ALL)
    assert everything_in(tmp_path) == before  # the same bytes
    report = build_report(lock(run_id="new"), planned(result()), [result()])

    def broken(_):
        raise RuntimeError("no")

    monkeypatch.setitem(write_module.WRITERS, "trials.csv", broken)
    with pytest.raises(RuntimeError):
        write_reports(tmp_path, report)
    assert everything_in(tmp_path) == before
    monkeypatch.undo()

    def views():
        yield from trial_views(report.trials, lambda _: result(), None, {})
        raise RuntimeError("no")

    with pytest.raises(RuntimeError):
        write_reports(tmp_path, report, views())
    assert everything_in(tmp_path) == before
    with pytest.raises(InputError):
        write_reports(tmp_path / "absent", report)


def test_pages_of_an_earlier_report_and_of_a_killed_lab_do_not_stay(tmp_path):
    write(tmp_path, ALL)
    (tmp_path / ".pages.killed").mkdir()
    write(tmp_path, ALL[:1])
    assert len(list((tmp_path / "pages").iterdir())) == 7
    assert not list(tmp_path.glob(".pages*"))


def test_an_empty_run_has_a_report(tmp_path):
    report = build_report({}, {"trials": []}, [])
    write_reports(tmp_path, report)
    html = (tmp_path / "report.html").read_text()
    check_inert(html)
    assert "No headline" in html


def test_an_unfinished_run_says_so(tmp_path):
    plan = planned(result("F1-001"), result("F1-002"))
    report = build_report(lock(), plan, [result("F1-001")])
    assert not report.finished
    assert "Unfinished run" in render_html(report)
    assert "Unfinished run" in render_markdown(report)
    out = io.StringIO()
    print_summary(report, Console(file=out, width=120))
    assert "Unfinished: 1 planned" in out.getvalue()


def test_a_void_family_is_struck_everywhere():
    results = [result("F1-001"), quiet("F1-002")]
    report = build_report(lock(), planned(*results), results)
    html, md = render_html(report), render_markdown(report)
    assert '<s><span class="vh">void: </span>' in html and "<td><s><b>1/2</b>" in html and "Void families" in html
    assert "VOID ~~1/2 of valid attack trials" in md
    assert "No headline" in html and "No headline" in md
