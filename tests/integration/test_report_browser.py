"""A hostile report in a real Chromium: nothing executes, nothing is requested, nothing runs over the edge."""

import os
import re
import shutil
import socket
import subprocess
import threading
from html import escape
from pathlib import Path

import pytest

from lab.records import Evidence, Stage, Value, Verdict
from lab.report.build import build_report
from lab.report.write import write_reports
from tests.factories import attempt, lock, planned, result

CHROMIUM = next((p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None)
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium; mend: install chromium, e.g. apt-get install chromium"),
]
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-extensions",
    "--host-resolver-rules=MAP * 127.0.0.1",
)


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


@pytest.fixture
def listener():
    found = Listener()
    yield found
    found.socket.close()


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
    ]


def hostile_run(folder: Path, port: int) -> Path:
    results = []
    for number, text in enumerate(payloads(port), 1):
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
        results.append(r)
    bad = "".join(payloads(port)[:11])
    write_reports(folder, build_report(lock(run_id=bad, lab_version=bad), planned(*results), results, folder))
    return folder / "report.html"


def chromium(tmp_path: Path, page: Path, width: int, *flags: str) -> str:
    profile = tmp_path / f"profile-{width}-{len(list(tmp_path.iterdir()))}"
    command = [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", f"--window-size={width},900", *flags, page.as_uri()]
    env = {k: v for k, v in os.environ.items() if "proxy" not in k.lower()}
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, env=env)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_executes_and_nothing_is_requested(tmp_path, listener, width):
    page = hostile_run(tmp_path / "run", listener.port)
    # Everything is opened, so that what a closed <details> would hold back has its chance too.
    page.write_text(page.read_text().replace('<details class="trial"', '<details open class="trial"'))
    dom = chromium(tmp_path, page, width, "--dump-dom", "--virtual-time-budget=3000")
    assert "Harness controls" in dom
    title = re.search(r"<title>(.*?)</title>", dom, re.DOTALL).group(1)
    assert title.startswith("Contamination report") and title.endswith("Agent Memory Lab")
    assert '<body id="owned"' not in dom
    assert not re.search(r"<(script|img|iframe|object|link|base|video|form)\b", dom)
    assert listener.heard == []


def test_the_trap_is_live(tmp_path, listener):
    """Positive control: the same payloads in a page without our escaping do fire and do connect."""
    page = tmp_path / "bare.html"
    page.write_text("<!DOCTYPE html><title>calm</title><body>" + "".join(payloads(listener.port)[:6]))
    dom = chromium(tmp_path, page, 1280, "--dump-dom", "--virtual-time-budget=3000")
    assert "<title>owned</title>" in dom
    assert listener.heard


@pytest.mark.parametrize("width", [390, 1280])
def test_the_style_sheet_applies_and_nothing_runs_over_the_edge(tmp_path, listener, width):
    """A probe page frames the report at the exact width, which a headless window does not give below 500 pixels."""
    html = hostile_run(tmp_path / "run", listener.port).read_text()
    html = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", html)  # a frame of a script page needs none
    html = html.replace('<details class="trial"', '<details open class="trial"')
    page = tmp_path / "probe.html"
    page.write_text(
        f'<!DOCTYPE html><iframe id=f width={width} height=800 frameborder=0 srcdoc="{escape(html)}"></iframe>'
        "<script>onload=()=>{const w=f.contentWindow,d=w.document.documentElement,"
        "o=[...d.querySelectorAll('body *')].filter(e=>!e.closest('.scroll,pre,.skip,.vh')"
        "&&e.getBoundingClientRect().right>w.innerWidth+1).map(e=>e.tagName+'.'+e.getAttribute('class')).slice(0,5);"
        "document.body.setAttribute('data-probe',[d.scrollWidth,w.innerWidth,"
        "w.getComputedStyle(w.document.body).fontFamily.includes('system-ui'),o.join()].join(' '))}</script>"
    )
    dom = chromium(tmp_path, page, 1400, "--dump-dom", "--virtual-time-budget=2000")
    scroll, inner, styled, over = re.search(r'data-probe="(\d+) (\d+) (\w+) ([^"]*)"', dom).groups()
    assert (int(inner), styled) == (width, "true")
    assert over == ""
    assert int(scroll) <= width
