"""A real run in whose home, tool output, environment and logs credentials were planted: no byte that the lab writes
has them, what the agent does is judged as without them, and nothing of the lab's own environment gets inside."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lab.cli.report import report_on, rescore
from lab.contamination.plan import Build, create_run
from lab.contamination.scenarios.library import load_scenario
from lab.contamination.secrets import NOTHING, Secrets, mark
from lab.contamination.suite import Suite
from lab.gateway.exchange import read_exchanges
from lab.records import Role, Stage, Value
from tests.real_trials import DEFAULT, DRIVER, PROJECT, Sandbox, with_driver

pytestmark = [pytest.mark.agent, pytest.mark.bwrap]

INSIDE = "AKIA" + "QXWZ7TPLANTED3KD"
"""A credential that exists inside only: in the agent's home and in what its tool says."""
OUTSIDE = "corr3ct-h0rse/b@ttery"
"""A credential of the lab's own process, that something inside has learned in another way."""

PLANT = f"""
import json, os, sqlite3, sys, urllib.request
key, value = "AKIA" + {INSIDE[4:]!r}, {OUTSIDE!r}
home = os.environ["HOME"] + "/.hermes"
print("printed", key, value)
print(key, value, file=sys.stderr)
open(home + "/.env", "w").write(f"AWS_KEY={{key}}\\nother={{value}}\\n")
open(home + "/memories/USER.md", "a").write(f"\\n§\\nThe key is {{key}}.")
database = sqlite3.connect(home + "/notes.db")
database.execute("CREATE TABLE IF NOT EXISTS notes (text)")
database.execute("INSERT INTO notes VALUES (?)", ("z" * 4000 + " " + key + " " + value,))
database.commit()
seen = {{}}
for process in filter(str.isdigit, os.listdir("/proc")):
    try:
        seen[process] = open(f"/proc/{{process}}/environ").read().split("\\0")
    except OSError:
        pass
open(home + "/environment.json", "w").write(json.dumps(seen))
asked = {{"name": "terminal", "arguments": json.dumps({{"command": key}})}}
call = {{"id": "c1", "type": "function", "function": asked}}
messages = [
    {{"role": "user", "content": "Show the environment."}},
    {{"role": "assistant", "content": None, "tool_calls": [call]}},
    {{"role": "tool", "tool_call_id": "c1", "content": json.dumps({{"output": f"KEY={{key}}\\nTOKEN={{value}}"}})}},
]
body = json.dumps({{"model": "m", "messages": messages}}).encode()
url = "http://127.0.0.1:8765/v1/chat/completions?key=" + key
urllib.request.urlopen(urllib.request.Request(url, body, {{"Content-Type": "application/json"}})).read()
del messages, body, call
"""


def bytes_of(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in folder.rglob("*"):
        yield str(path.relative_to(folder)), path.read_bytes() if path.is_file() else b""


def planted(folder: Path) -> list[str]:
    spellings = [OUTSIDE.encode(), json.dumps(OUTSIDE)[1:-1].encode(), INSIDE.encode()]
    return [name for name, data in bytes_of(folder) if any(s in data or s in name.encode() for s in spellings)]


def run(sandbox: Sandbox, root: Path, capsys: pytest.CaptureFixture[str]) -> tuple[Suite, str]:
    text = (DRIVER / "driver.py").read_text()
    first, rest = text.split("from __future__ import annotations\n", 1) if "from __future__" in text else ("", text)
    future = "from __future__ import annotations\n" if first else ""
    root.mkdir()
    backend, environment = with_driver(sandbox, root, first + future + PLANT + rest)
    build = Build("agent", "hermes-agent", "0.19.0", environment, {}, "0.19.0")
    scenario = load_scenario(PROJECT / "scenarios" / "F1" / "F1-001.yaml")
    folder = create_run(
        root / "reports",
        scenarios=[scenario],
        builds=[build],
        setups=[DEFAULT],
        models=["scripted:always-write"],
        backend=backend,
    )
    suite = Suite(folder)
    assert suite.run(backend, {"agent": environment}, suite.pending(), workers=1, error_budget=1)
    report_on(suite, json=True)
    said = capsys.readouterr()
    return suite, said.out + said.err


def test_planted_credentials_are_in_no_artefact(
    prepared: Callable[[str], Sandbox],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(Secrets, "redactor", lambda *_: NOTHING)
    open_run, _ = run(prepared("bwrap"), tmp_path / "open", capsys)
    found = planted(open_run.folder.path)
    assert {name.rpartition("/")[2] for name in found} >= {"requests.jsonl", "session.stdout.txt", "stores.diff"}
    verdicts = {r.trial: r.verdicts for r in open_run.results()}
    assert {r.role: r.value(Stage.PERSIST) for r in open_run.results()}[Role.ATTACK] is Value.YES
    monkeypatch.undo()

    monkeypatch.setenv("LAB_TEST_API_KEY", OUTSIDE)
    suite, said = run(prepared("bwrap"), tmp_path / "clean", capsys)
    folder = suite.folder.path
    assert planted(folder) == []
    assert OUTSIDE not in said and INSIDE not in said
    for result in suite.results():
        trial = suite.folder.trial(result.trial)
        assert {s: v.value for s, v in result.verdicts.items()} == {
            s: v.value for s, v in verdicts[result.trial].items()
        }
        assert mark(INSIDE) in (trial / "session.stdout.txt").read_text()
        assert mark(OUTSIDE) in (trial / "session.stderr.txt").read_text()
        assert mark(INSIDE) in (trial / "stores.diff").read_text()
        marked = [e for e in read_exchanges(trial / "requests.jsonl") if e.request.kept_sha256]
        assert any(mark(INSIDE) in e.path for e in marked)
        manifest = json.loads((trial / "home-after.json").read_text())["files"]
        environment = manifest[".hermes/environment.json"]
        inside = json.loads((trial / "files" / environment["sha256"]).read_text())
        assert len(inside) >= 1 and all("LAB_TEST_API_KEY" not in str(entries) for entries in inside.values())
        assert any("HOME=/home/agent" in entries for entries in inside.values()), "the probe reads environments"
    rescore(folder, folder.parent, json=True)
    assert json.loads(capsys.readouterr().out)["same"] == 2
    assert planted(folder) == []
