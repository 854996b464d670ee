"""Reports in a real Chromium: hostile text stays inert, the layout holds, axe finds nothing, the script works."""

import base64
import json
import shutil
import socket
import subprocess
import threading
from collections import Counter
from pathlib import Path

import pytest

from lab.gateway.exchange import Body, Exchange, RequestClass
from lab.records import Decision, Evidence, Role, Stage, Status, Value, Verdict
from lab.report import html_writer
from lab.report.bench.write import write_bench
from lab.report.build import build_report
from lab.report.evidence import trial_views
from lab.report.write import write_reports
from lab.retrieval.rows import read_rows, rows_text
from lab.retrieval.timing import TIMING, BenchTiming, arm_timing
from lab.runs.folder import RunFolder
from tests.bench_runs import bench_folder
from tests.chromium import CHROMIUM, Tab, browser
from tests.factories import FAITHFUL, NEVER, attempt, lock, planned, quiet, result
from tests.live_results import FLIPS, error_of, live_lock, trials

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium; mend: install chromium, e.g. apt-get install chromium"),
]
AXE = "axe-core@4.14.1"
WIDTHS = (390, 1280)


class Listener:
    """Counts connections to a local port; whatever connects, did so because of the page."""

    def __init__(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.heard: list[bytes] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(1)
                try:
                    self.heard.append(connection.recv(500))
                except OSError:
                    self.heard.append(b"")


@pytest.fixture(scope="module")
def listener():
    found = Listener()
    yield found
    found.socket.close()


@pytest.fixture(scope="module")
def tab(tmp_path_factory):
    with browser(tmp_path_factory.mktemp("chromium")) as opened:
        yield opened


@pytest.fixture(scope="module")
def axe(tmp_path_factory) -> str:
    """axe-core as its registry has it, or skips with what would mend the machine."""
    npm, folder = shutil.which("npm"), tmp_path_factory.mktemp("axe")
    if npm is None:
        pytest.skip("no npm; mend: install it, e.g. apt-get install npm")
    command = [npm, "install", "--no-fund", "--no-audit", "--ignore-scripts", "--prefix", str(folder), AXE]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    if done.returncode:
        pytest.skip(f"npm could not fetch {AXE}; mend: give it a network or a registry (npm config set registry …)")
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text()


def payloads(port: int) -> list[str]:
    url = f"http://127.0.0.1:{port}"
    js = f"document.title='owned';document.body.id='owned';new Image().src='{url}/js'"
    return [
        f"<script>{js}</script>",
        f"</title><script>{js}</script>",
        f"</style><script>{js}</script>",
        f"</pre></details><img src='{url}/img' onerror=\"{js}\">",
        f"<svg onload=\"{js}\"><image href='{url}/svg'/></svg>",
        f"<link rel=stylesheet href='{url}/css'><style>@import '{url}/import';</style>",
        f"<iframe src='{url}/frame'></iframe><object data='{url}/object'></object>",
        f"<meta http-equiv=refresh content='0;url={url}/refresh'><base href='{url}/'>",
        f"<video src='{url}/video' autoplay></video><body background='{url}/bg' onload=\"{js}\">",
        f'" autofocus onfocus="{js}" style="background:url({url}/style)" x="',
        f'<details open ontoggle="{js}"><summary>x</summary></details>',
        "w" * 3000,
        "\u202e" * 50 + "a\u0301" * 200,
        "\x1b[2J\x1b]0;owned\x07\x9b31m\u0440\u0430\u0443\u0440\u0430l \u2066x\u2069\u200b",
        f"<b>{'x' * 5_000_000}</b><script>{js}</script>",
    ]


def recorded(place: Path, text: str) -> None:
    """Exchanges whose every field holds a text."""
    calls = [{"id": "c", "function": {"name": text, "arguments": text}}]
    turns = [
        {"role": "system", "content": text},
        {"role": text[:30], "content": text},
        {"role": "user", "content": text},
        {"role": "assistant", "content": text, "tool_calls": calls},
        {"role": "tool", "content": text, "tool_call_id": "c"},
    ]
    answer = json.dumps({"choices": [{"message": {"role": "assistant", "content": text, "tool_calls": calls}}]})
    tools = [{"type": "function", "function": {"name": text[:50]}}]
    lines = []
    for seq, kind in ((1, RequestClass.FOREGROUND), (2, RequestClass.REVIEW)):
        request = Body.of(json.dumps({"messages": turns, "tools": tools}).encode())
        shared = {"phase": "session", "method": "POST", "path": text[:200], "status": 200}
        lines.append(Exchange(seq=seq, kind=kind, request=request, response=Body.of(answer.encode()), **shared))
    (place / "requests.jsonl").write_text("".join(f"{line.model_dump_json()}\n" for line in lines))


def write(folder: Path, results, locked) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    report = build_report(locked, planned(*results), results)
    write_reports(folder, report, trial_views(report.trials, {r.trial: r for r in results}.get, folder, {}))
    return folder


@pytest.fixture(scope="module")
def hostile_run(tmp_path_factory, listener) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    results = []
    for number, text in enumerate(payloads(listener.port), 1):
        proof = (Evidence(file=text, pointer=text, excerpt=text),)
        r = result(
            f"F1-{number:03}",
            title=text,
            detail=text,
            notice_text=text,
            setup_assertions={text: text},
            attempts=(attempt(tool=text, action=text, target=text, arguments=text, answer=text),),
            verdicts={s: Verdict(value=Value.YES, detail=text, evidence=proof) for s in Stage},
        )
        place = folder / "trials" / r.trial
        place.mkdir(parents=True)
        (place / "stores.diff").write_text(f"+{text}\n-{text}\n", encoding="utf-8")
        recorded(place, text)
        named = r.model_copy(
            update={"trial": f"{text}{number}", "setup": text, "build": text, "model": f"ollama:{text}"}
        )
        results += [r, named]
    bad = "".join(payloads(listener.port)[:11])
    return write(folder, results, lock(run_id=bad, lab_version=bad))


@pytest.fixture(scope="module")
def calm_run(tmp_path_factory) -> Path:
    """A run of every kind of trial, in which some content persists."""
    results = []
    for setup in ("default", "gate-on"):
        for number in range(1, 6):
            made = result if setup == "default" or number < 3 else quiet
            results += [made(f"F1-{number:03}", setup=setup), made(f"F3-{number:03}", setup=setup)]
            results += [quiet(f"F1-{number:03}", role=Role.TWIN, setup=setup)]
            results += [quiet(f"F1-{number:03}", setup=setup, model=NEVER)]
            results += [result(f"F5-{number:03}", role=Role.CONTROL, setup=setup)]
        results += [quiet("F1-001", setup=setup, model=FAITHFUL), quiet("F5-101", role=Role.NEGATIVE, setup=setup)]
        results += [result("F1-009", setup=setup, status=Status.ERROR)]
        staged = attempt(decision=Decision.STAGED)
        results += [quiet("F1-008", setup=setup, attempted="yes", attempts=(staged,))]
    return write(tmp_path_factory.mktemp("calm"), results, lock())


@pytest.fixture(scope="module")
def live_run(tmp_path_factory) -> Path:
    """A run of four live models, one of which lost trials, beside the ceiling."""
    lost = [error_of(r) if r.model == FLIPS and r.scenario == "F1-001" else r for r in trials()]
    return write(tmp_path_factory.mktemp("live"), lost, live_lock())


def numbers(folder: Path) -> list[str]:
    return sorted((p.name for p in (folder / "pages").iterdir()), key=lambda name: (len(name), name))


def over_the_edge(tab: Tab) -> list[str]:
    """Elements that stand out of the window, other than inside of what scrolls by itself."""
    tab.js("document.querySelectorAll('details').forEach(d => d.open = true)")
    return tab.js(
        "[...document.querySelectorAll('body *')].filter(e => !e.closest('.scroll, .skip, .vh')"
        " && e.getBoundingClientRect().right > innerWidth + 1)"
        ".map(e => e.tagName + '.' + e.getAttribute('class')).slice(0, 5)"
    )


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_executes_nothing_is_requested_and_the_layout_holds(tab, hostile_run, listener, width):
    pages = ["report.html", *(f"pages/{name}" for name in numbers(hostile_run))]
    assert len(pages) == 2 * len(payloads(0)) + 1
    for name in pages:
        address = (hostile_run / name).as_uri()
        tab.go(address, width=width)
        assert over_the_edge(tab) == [], name
        assert tab.js("[document.documentElement.scrollWidth <= innerWidth, innerWidth]") == [True, width], name
        assert tab.js("document.title").endswith("Agent Memory Lab"), name
        assert tab.js("document.body.id") == "", name
        assert tab.js("getComputedStyle(document.body).fontFamily.includes('system-ui')"), name
        foreign = "document.querySelectorAll('img,iframe,object,link,base,video,form,input').length"
        assert tab.js(foreign) == 0, name
        assert tab.js("document.scripts.length") == (name == "report.html"), name
        assert (tab.requests, tab.complaints) == ([address], []), name
    assert listener.heard == []


def test_only_our_script_runs(tab, tmp_path, hostile_run):
    """What escaping might miss, the policy stops: a script put into the page by hand is refused, ours is not."""
    html = (hostile_run / "report.html").read_text()
    page = tmp_path / "planted.html"
    page.write_text(html.replace("<main", "<script>document.title='owned'</script><main", 1))
    tab.go(page.as_uri())
    assert tab.js("document.title") != "owned"
    assert any("Content Security Policy" in line for line in tab.complaints)
    assert tab.js("document.querySelectorAll('.filters select').length") > 1


def test_the_trap_is_live(tab, tmp_path):
    """Positive control: the same payloads in a page without our escaping do fire and do connect."""
    listener = Listener()
    page = tmp_path / "bare.html"
    page.write_text("<!DOCTYPE html><title>calm</title><body>" + "".join(payloads(listener.port)[:6]))
    tab.go(page.as_uri())
    assert tab.js("new Promise(done => setTimeout(() => done(document.title), 500))") == "owned"
    assert listener.heard and len(tab.requests) > 1
    listener.socket.close()


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", WIDTHS)
def test_axe_finds_nothing(tab, axe, calm_run, width, dark):
    rows = (calm_run / "trials.csv").read_text().splitlines()[1:]
    persisted = next(row.split(",")[0] for row in rows if ",attack," in row and ",saved," in row)
    for name in ("report.html", f"pages/{persisted}.html"):
        tab.go((calm_run / name).as_uri(), width=width, dark=dark)
        tab.js("document.querySelectorAll('details').forEach(d => d.open = true)")
        tab.js(axe)
        found = tab.js(
            "axe.run(document, {resultTypes: ['violations']}).then(r => [r.passes.length, r.violations.map("
            "v => [v.id, v.help, v.nodes.slice(0, 3).map(n => n.html.slice(0, 200))])])"
        )
        assert found[0] > 10
        assert found[1] == [], name


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", WIDTHS)
def test_live_models_fit_and_axe_finds_nothing(tab, axe, live_run, width, dark):
    address = (live_run / "report.html").as_uri()
    tab.go(address, width=width, dark=dark)
    assert over_the_edge(tab) == []
    assert tab.js("document.documentElement.scrollWidth <= innerWidth")
    assert (tab.requests, tab.complaints) == ([address], [])
    tab.js(axe)
    part = "document.querySelector('section[aria-labelledby=susceptibility]')"
    found = tab.js(
        f"axe.run({part}, {{resultTypes: ['violations']}}).then(r => [r.passes.length, r.violations.map("
        "v => [v.id, v.help, v.nodes.slice(0, 3).map(n => n.html.slice(0, 200))])])"
    )
    assert found[0] > 5 and found[1] == []


def test_the_family_filter_leaves_no_sum_over_all_families(tab, live_run):
    tab.go((live_run / "report.html").as_uri() + "#susceptibility?family=F2")
    rows = tab.js(
        "[...document.querySelector('section[aria-labelledby=susceptibility] table.models').tBodies[0].rows]"
        ".filter(r => !r.hidden).map(r => r.cells[0].textContent)"
    )
    assert rows == ["F2"] * 4
    assert "all" not in tab.js("[...document.getElementById('filter-family').options].map(o => o.value)")


def test_axe_sees_what_is_wrong(tab, axe, tmp_path):
    page = tmp_path / "wrong.html"
    page.write_text("<!DOCTYPE html><html><title>t</title><p style='color:#ccc;background:#fff'>pale</p><img src=''>")
    tab.go(page.as_uri())
    tab.js(axe)
    found = tab.js("axe.run().then(r => r.violations.map(v => v.id))")
    assert {"color-contrast", "image-alt", "html-has-lang"} <= set(found)


def shown(tab: Tab, table: str = "#trials-table") -> list[list[str]]:
    return tab.js(
        f"[...document.querySelectorAll('{table} tbody tr')].filter(r => !r.hidden)"
        ".map(r => [...r.cells].map(c => c.textContent.trim()))"
    )


def test_the_page_is_whole_without_script(tab, calm_run, tmp_path):
    html = (calm_run / "report.html").read_text()
    start = html.index("<script>")
    page = tmp_path / "plain.html"
    page.write_text(html[:start] + html[html.index("</script>") + len("</script>") :])
    tab.go(page.as_uri())
    bare = shown(tab)
    assert tab.js("document.querySelectorAll('select, button, [hidden]').length") == 0
    tab.go((calm_run / "report.html").as_uri())
    assert shown(tab) == bare
    assert tab.js("document.getElementById('count').textContent") == f"{len(bare)} of {len(bare)} trials shown"


def test_filters_say_what_they_show_and_can_be_linked(tab, calm_run):
    address = (calm_run / "report.html").as_uri()
    tab.go(address)
    every = shown(tab)
    tab.js(
        "for (const [key, value] of [['setup', 'gate-on'], ['outcome', 'persisted'], ['role', 'attack']]) {"
        " const s = document.getElementById('filter-' + key); s.value = value; s.dispatchEvent(new Event('change')) }"
    )
    wanted = [row for row in every if row[2] == "attack" and row[4] == "gate-on" and row[7] == "persisted"]
    assert 0 < len(wanted) < len(every)
    assert shown(tab) == wanted
    count = tab.js("[document.getElementById('count').textContent, document.getElementById('count').ariaLive]")
    assert count == [f"{len(wanted)} of {len(every)} trials shown", "polite"]
    assert {row[1] for row in shown(tab, ".rates")} == {"gate-on"}  # every table that names a setup follows
    fragment = tab.js("location.hash")
    tab.go(address + fragment)
    assert shown(tab) == wanted
    assert tab.js("document.getElementById('filter-setup').value") == "gate-on"
    tab.js("document.getElementById('clear').click()")
    assert shown(tab) == every
    assert tab.js("location.hash.includes('setup')") is False


def test_a_step_of_the_first_screen_leads_to_its_trials(tab, calm_run):
    tab.go((calm_run / "report.html").as_uri())
    told = tab.js("document.querySelector('.steps a[data-filter]').textContent")
    tab.js("document.querySelector('.steps a[data-filter]').click()")
    tab.js("new Promise(done => setTimeout(done, 100))")
    rows = shown(tab)
    assert told.startswith("See F1: 5 of 5") or told.startswith("See F3: 5 of 5")
    assert len(rows) == 5 and {row[7] for row in rows} == {"persisted"}
    top, height = tab.js("[document.getElementById('trials').getBoundingClientRect().top, innerHeight]")
    assert 0 <= top < height


@pytest.mark.parametrize(
    "fragment",
    ["#?family=F9", "#trials?family=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E", "#?__proto__=x&sort=9.9.a", "#?sort=x"],
)
def test_a_fragment_of_nonsense_breaks_nothing(tab, calm_run, fragment):
    tab.go((calm_run / "report.html").as_uri() + fragment)
    assert tab.complaints == []
    assert tab.js("document.querySelectorAll('img').length") == 0
    assert (shown(tab) == []) == ("family" in fragment)


def test_tables_are_sorted_by_keyboard(tab, calm_run):
    tab.go((calm_run / "report.html").as_uri())
    before = shown(tab, ".plots")
    tab.js("[...document.querySelectorAll('.plots th button')].find(b => b.textContent === 'Persisted').focus()")
    seen = []
    for _ in range(3):
        tab.key("Enter", 13, "\r")
        way = tab.js("document.querySelector('.plots th[aria-sort]')?.ariaSort ?? null")
        shares = [row[4].split()[0] for row in shown(tab, ".plots")]
        seen.append((way, [int(s.split("/")[0]) / int(s.split("/")[1].strip("∗")) for s in shares]))
    assert [way for way, _ in seen] == ["ascending", "descending", None]
    assert seen[0][1] == sorted(seen[0][1]) != seen[1][1] == sorted(seen[1][1], reverse=True)
    assert shown(tab, ".plots") == before


def test_keys_lead_everywhere_and_the_place_is_seen(tab, calm_run):
    tab.go((calm_run / "report.html").as_uri())
    tab.key("Tab", 9)
    assert tab.js("[document.activeElement.textContent, document.activeElement.getBoundingClientRect().left >= 0]") == [
        "Skip to the results",
        True,
    ]
    tab.key("Enter", 13, "\r")
    assert tab.js("location.hash") == "#main"
    for _ in range(25):
        tab.key("Tab", 9)
        where = tab.js(
            "(() => { const e = document.activeElement, s = getComputedStyle(e);"
            " return [e.tagName, s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2] })()"
        )
        assert where[0] != "BODY" and where[1], where
    unreachable = "[...document.querySelectorAll('.scroll')].filter(e => e.tabIndex !== 0 || !e.ariaLabel).length"
    assert tab.js(unreachable) == 0


def test_every_trial_can_be_reached_and_leads_back(tab, calm_run):
    tab.go((calm_run / "report.html").as_uri())
    links = tab.js("[...document.querySelectorAll('#trials-table tbody a')].map(a => a.href)")
    assert sorted(Path(link).name for link in links) == sorted(numbers(calm_run))
    tab.go(links[6])
    back = tab.js("[...document.querySelectorAll('header a')].map(a => a.href)")
    assert back[0] == (calm_run / "report.html").as_uri() + "#t7"
    tab.go(back[0])
    row = tab.js(
        "(() => { const r = document.querySelector('tr:target').getBoundingClientRect(); return [r.top, r.bottom]})()"
    )
    assert row[0] >= 0 and row[1] <= tab.js("innerHeight")


def test_lists_of_their_own_are_filtered_as_well(tab, tmp_path, monkeypatch):
    monkeypatch.setattr(html_writer, "MOST_ROWS", 10)
    results = [result(f"F{1 + n % 2}-{n:03}") for n in range(1, 31)]
    folder = write(tmp_path / "run", results, lock())
    tab.go((folder / "pages" / "list-1.html").as_uri() + "#trials?family=F2")
    assert Counter(row[3] for row in shown(tab)) == {"F2": 15}
    assert (tab.requests, tab.complaints) == ([(folder / "pages" / "list-1.html").as_uri()], [])


def test_it_prints(tab, calm_run):
    """Printed, everything is there: no filter bar, nothing behind an edge, folded parts unfolded."""
    tab.go((calm_run / "report.html").as_uri())
    data = base64.b64decode(tab.call("Page.printToPDF")["data"])
    assert data.startswith(b"%PDF-")
    tab.call("Emulation.setEmulatedMedia", media="print")
    assert tab.js("getComputedStyle(document.querySelector('.filters')).display") == "none"
    assert tab.js("[...document.querySelectorAll('.tall')].every(e => getComputedStyle(e).overflowY === 'visible')")


# --- the report of a benchmark --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hostile_bench(tmp_path_factory, listener) -> Path:
    """A benchmark run whose title, labels, settings and causes are hostile."""
    run = bench_folder(tmp_path_factory.mktemp("bench"), lost=frozenset({"q1", "q2"})).run
    told = json.loads((run / "lock.json").read_text())
    texts = payloads(listener.port)
    told["sets"][0] |= {"title": texts[0], "licence": texts[4], "notes": texts}
    for arm, text in zip(told["arms"], texts[1:], strict=False):
        arm |= {"label": text}
    told |= {"absent": texts[5:8]}
    (run / "lock.json").write_text(json.dumps(told))
    for path in run.glob("rows/made/*.jsonl"):
        rows = [row.model_copy(update={"fallback": texts[3]} if row.topic == "q3" else {}) for row in read_rows(path)]
        path.write_bytes(rows_text(tuple(rows)))
    times = {arm["name"]: arm_timing({"total": [0.01, 0.02], texts[2]: [0.001]}, 0) for arm in told["arms"]}
    timing = BenchTiming(started="2026-01-02T03:04:05+00:00", seconds=1.0, arms={"made": times})
    (run / TIMING).write_text(timing.model_dump_json())
    write_bench(RunFolder(run))
    return run


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", WIDTHS)
def test_a_benchmark_is_inert_and_its_layout_holds(tab, axe, hostile_bench, listener, width, dark):
    address = (hostile_bench / "report.html").as_uri()
    tab.go(address, width=width, dark=dark)
    assert over_the_edge(tab) == []
    assert tab.js("[document.documentElement.scrollWidth <= innerWidth, innerWidth]") == [True, width]
    assert tab.js("document.title").endswith("Agent Memory Lab")
    assert tab.js("[document.body.id, document.scripts.length]") == ["", 0]
    assert tab.js("document.querySelectorAll('iframe,object,link,base,video,form,input').length") == 0
    figures = tab.js("[...document.images].map(i => [i.src.slice(0, 19), i.alt.length > 20, i.naturalWidth > 0])")
    assert figures and all(figure == ["data:image/svg+xml;", True, True] for figure in figures)
    assert [one for one in tab.requests if not one.startswith("data:")] == [address]
    assert (tab.complaints, listener.heard) == ([], [])
    tab.js(axe)
    found = tab.js("axe.run(document, {resultTypes: ['violations']}).then(r => r.violations.map(v => [v.id, v.help]))")
    assert found == []
