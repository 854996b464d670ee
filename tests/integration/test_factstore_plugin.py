"""The plugin in the real agent's own loader, and vectors of the real plugin byte for byte, inside a sandbox."""

from __future__ import annotations

import base64
import json
import shutil
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lab.agents.hermes.install import AGENT_PYTHON
from lab.isolation.base import SANDBOX_HOME, Limits, Mount, SandboxSpec
from lab.retrieval.build_database import build_database
from lab.retrieval.factstore.settings import FactstoreSettings
from lab.retrieval.install_factstore import install
from lab.retrieval.systems.factstore import FactstoreSystem
from tests.factstore_stores import fact
from tests.real_trials import Sandbox

pytestmark = pytest.mark.agent

TEXTS = (
    "Ana Souza drinks green tea, not coffee.",
    "The policy POL-358 covers \"Casa Azul\" and 'the garden'; see key:value.",
    "Bruno aka Bubu and Clara Dias also known as Clarinha live in São Tomé.",
    'ana souza is not Ana Souza, and Casa Azul is not "casa azul"!',
    "The code 'axb' opens it.",
    "C++ C++ C++ (again) — 🐢",
    "Rio Branco, \"100%\" e 'a_b': nada mais.",
    "...",
)

REAL_PLUGIN = """
import base64, json, sys
from plugins.memory.holographic.store import MemoryStore
texts = json.loads(sys.argv[1])
store = MemoryStore(db_path="/tmp/real.db")
ids = [store.add_fact(text) for text in texts]
query = "SELECT content, hrr_vector FROM facts ORDER BY fact_id"
vectors = {row[0]: base64.b64encode(row[1]).decode() for row in store._conn.execute(query)}
bank = store._conn.execute("SELECT vector FROM memory_banks").fetchone()[0]
print(json.dumps({"vectors": vectors, "bank": base64.b64encode(bank).decode()}))
"""

ON_OURS = """
import json, sys
from plugins.memory.holographic.store import MemoryStore
from plugins.memory.holographic.retrieval import FactRetriever
store = MemoryStore(db_path=sys.argv[1])
retriever = FactRetriever(store=store)
found = [row["fact_id"] for row in retriever.search("garden keyword", limit=5)]
store.add_fact("Dora keeps an otter.")
author = store._conn.execute("SELECT author FROM facts WHERE content LIKE 'Dora%'").fetchone()[0]
print(json.dumps({"found": found, "author": author}))
"""

IN_THE_AGENT = """
import json, os, sys
from plugins.memory import discover_memory_providers, load_memory_provider
from agent.memory_manager import MemoryManager
from agent.memory_provider import MemoryProvider
home = os.environ["HERMES_HOME"]
found = {name: (text, ok) for name, text, ok in discover_memory_providers()}
provider = load_memory_provider("factstore")
manager = MemoryManager()
manager.add_provider(provider)
manager.initialize_all(session_id="s", hermes_home=home, platform="cli")
def tool(**arguments):
    return json.loads(manager.handle_tool_call("fact_store", arguments))
for n in range(8):
    tool(action="add", content=f"Ana drinks tea number {n}", author="user")
manager.notify_memory_tool_write({"success": True}, {"action": "add", "target": "user", "content": "Ana drinks maté"})
answer = {
    "is_provider": isinstance(provider, MemoryProvider),
    "found": found.get("factstore"),
    "tea": provider.prefetch("what tea does Ana drink?"),
    "mate": provider.prefetch("maté"),
    "through_manager": manager.prefetch_all("which tea?"),
    "search": tool(action="search", query="tea", limit=3),
    "prompt": manager.build_system_prompt(),
    "settings": provider._settings.gate,
    "numpy": "numpy" in sys.modules,
}
manager.shutdown_all()
print(json.dumps(answer))
"""


def run_inside(sandbox: Sandbox, home: Path, program: str, *arguments: str, **env: str) -> Any:
    backend, environment = sandbox
    spec = SandboxSpec(
        environment,
        (AGENT_PYTHON, "-c", program, *arguments),
        env={
            "PATH": "/opt/agent/bin:/usr/bin:/bin",
            "HOME": SANDBOX_HOME,
            "LANG": "C.UTF-8",
            "OMP_NUM_THREADS": "1",
            **env,
        },
        mounts=(Mount(home, SANDBOX_HOME, writable=True),),
        limits=Limits(wall_seconds=60),
    )
    done = backend.run(spec)
    assert done.code == 0, done.stderr.decode(errors="replace")[-2000:]
    return json.loads(done.stdout)


def test_the_agent_loads_it_and_gets_at_most_five_facts(sandbox: Sandbox, sandbox_home: Path) -> None:
    data = sandbox_home / "data"
    data.mkdir()
    install(data)
    (data / "config.yaml").write_text(
        "memory: {provider: factstore}\nplugins: {factstore: {retrieval: {gate: 0.8}}}\n"
        "security: {allow_lazy_installs: false}\n"
    )
    for path in (data, *data.rglob("*")):
        path.chmod(0o777 if path.is_dir() else 0o666)
    got = run_inside(sandbox, sandbox_home, IN_THE_AGENT, HERMES_HOME=f"{SANDBOX_HOME}/data")
    assert got["is_provider"] and got["found"][1] is True and got["found"][0].startswith("Facts in SQLite")
    lines = got["tea"].splitlines()
    assert lines[0] == "## Facts" and len(lines) == 6
    assert all(line.startswith("- [user, trust 0.50] Ana drinks tea number ") for line in lines[1:])
    assert got["mate"] == "## Facts\n- [agent, trust 0.50] Ana drinks maté"
    assert "Ana drinks tea" in got["through_manager"] and "# Fact store" in got["prompt"]
    assert [hit["author"] for hit in got["search"]["facts"]] == ["user"] * 3
    assert got["settings"] == 0.8 and got["numpy"] is False
    assert (data / "factstore.db").exists() and not (data / "memory_store.db").exists()


def test_vectors_are_those_of_the_real_plugin_byte_for_byte(
    prepared: Callable[[str], Sandbox], sandbox_home: Path, tmp_path: Path
) -> None:
    if sys.version_info[:2] != (3, 11):
        pytest.skip("numpy of this interpreter does not fit the agent's Python 3.11")
    # The agent is installed without numpy, so it is given that of the tests' own environment, in its home.
    for name in ("numpy", "numpy.libs"):
        source = Path(np.__file__).parents[1] / name
        if source.exists():
            shutil.copytree(source, sandbox_home / "packages" / name, ignore=shutil.ignore_patterns("tests"))
    env = {"PYTHONPATH": f"{SANDBOX_HOME}/packages", "HERMES_HOME": "/tmp/h"}
    got = run_inside(prepared("bwrap"), sandbox_home, REAL_PLUGIN, json.dumps(TEXTS), **env)
    build_database([fact(text) for text in TEXTS], tmp_path / "ours.db")
    with closing(sqlite3.connect(tmp_path / "ours.db")) as connection:
        ours = dict(connection.execute("SELECT content, hrr_vector FROM facts"))
        (bank,) = connection.execute("SELECT vector FROM memory_banks").fetchone()
    real = {text: base64.b64decode(vector) for text, vector in got["vectors"].items()}
    assert set(ours) == set(real) == set(TEXTS)
    assert [text for text in TEXTS if ours[text] != real[text]] == []
    assert bank == base64.b64decode(got["bank"])


def test_the_real_plugin_works_on_our_database_and_we_on_what_it_leaves(
    prepared: Callable[[str], Sandbox], sandbox_home: Path
) -> None:
    ours = sandbox_home / "ours.db"
    build_database([*(fact(text) for text in TEXTS), fact("Nothing.", keywords=("keyword",))], ours)
    ours.chmod(0o666)
    inside = f"{SANDBOX_HOME}/{ours.name}"
    got = run_inside(prepared("bwrap"), sandbox_home, ON_OURS, inside, HERMES_HOME="/tmp/h")
    assert sorted(got["found"]) == [2, len(TEXTS) + 1] and got["author"] == "unknown"
    system = FactstoreSystem(FactstoreSettings())
    system.open(ours)
    assert [hit.fact_id for hit in system.search("otter", 5).hits] == [len(TEXTS) + 2]
    system.close()
