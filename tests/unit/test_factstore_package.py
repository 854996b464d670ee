"""The plugin's folder is self-contained: it is copied into an agent's home, where there is no lab."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import lab.retrieval.factstore

FOLDER = Path(lab.retrieval.factstore.__file__).parent
NUMPY_ONLY_IN = {"hrr.py", "hrr_scores.py"}
HOST = {"agent", "hermes_cli"}
"""The agent's own modules, which only the provider may name."""


def foreign_imports(path: Path) -> set[str]:
    """Top-level names that a module imports from outside its package and the standard library."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module.split(".")[0])
        elif isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
    return found - set(sys.stdlib_module_names)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.name)
def test_imports(path: Path) -> None:
    allowed = ({"numpy"} if path.name in NUMPY_ONLY_IN else set()) | (HOST if path.name == "provider.py" else set())
    assert foreign_imports(path) <= allowed


def test_the_check_sees_a_foreign_import(tmp_path: Path) -> None:
    planted = tmp_path / "planted.py"
    planted.write_text("import json\nimport yaml\nfrom lab.errors import LabError\nfrom .tokens import terms\n")
    assert foreign_imports(planted) == {"yaml", "lab"}


def test_it_works_without_numpy_and_says_what_does_not() -> None:
    program = """
import sys, pathlib, tempfile
sys.modules["numpy"] = None
from lab.retrieval.factstore.retriever import Retriever
from lab.retrieval.factstore.schema import open_store
from lab.retrieval.factstore.settings import BadSetting, FactstoreSettings
from lab.retrieval.factstore.store import FactStore
connection = open_store(pathlib.Path(tempfile.mkdtemp()) / "store.db")
FactStore(connection).add("Ana drinks tea")
assert [f.fact_id for f in Retriever(connection, FactstoreSettings()).search("tea", 5).found] == [1]
try:
    Retriever(connection, FactstoreSettings(hrr="textv1"))
except BadSetting as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=FOLDER.parents[2]
    )
    assert "needs numpy" in done.stdout, done.stderr


def test_the_agents_discovery_recognises_it() -> None:
    head = (FOLDER / "__init__.py").read_text()[:8192]
    assert "register_memory_provider" in head
    assert (FOLDER / "plugin.yaml").read_text().startswith("name: factstore\n")
