"""The house rules that a machine can check: imports go down only, modules stay small and say what they are for."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import lab

ROOT = Path(lab.__file__).parent
FLOORS = (
    *("pytest_plugin", "testing", "cli", "history", "gate", "report", "compare", "contamination", "suites"),
    *(
        "memories",
        "retrieval",
        "agents",
        "gateway",
        "models",
        "isolation",
        "runs",
        "snapshots",
        "statistics",
        "records",
        "ground",
    ),
)
GROUND = {"errors", "text", "__init__"}
MODULES = sorted(ROOT.rglob("*.py"))


def floor(dotted: str) -> int:
    name = dotted.split(".")[1] if "." in dotted else "__init__"
    return FLOORS.index("ground" if name in GROUND else name)


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "lab":
            found.add(node.module if node.module != "lab" else f"lab.{node.names[0].name}")
        elif isinstance(node, ast.Import):
            found |= {a.name for a in node.names if a.name.split(".")[0] == "lab"}
    return found


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_module(path: Path) -> None:
    own = ".".join(("lab", *path.relative_to(ROOT).with_suffix("").parts))
    above = {name for name in imports(path) if floor(name) < floor(own)}
    assert not above, f"imports from a floor above: {sorted(above)}"
    text = path.read_text()
    assert len(text.splitlines()) <= 320
    assert ast.get_docstring(ast.parse(text)), "says nothing of what it is for"
    assert path.stem != "utils"


def test_the_check_sees_an_upward_import(tmp_path: Path) -> None:
    planted = tmp_path / "planted.py"
    planted.write_text("from lab.cli.app import main\nimport lab.errors\n")
    assert {floor(name) for name in imports(planted)} == {FLOORS.index("cli"), FLOORS.index("ground")}
