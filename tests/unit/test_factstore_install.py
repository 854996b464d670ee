"""``lab factstore install``."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from lab.cli.app import app
from lab.errors import InputError
from lab.retrieval.install_factstore import install


def test_the_plugin_is_copied_and_an_earlier_copy_replaced(tmp_path: Path) -> None:
    for _ in range(2):
        done = CliRunner().invoke(app, ["factstore", "install", str(tmp_path)])
        assert done.exit_code == 0
    folder = tmp_path / "plugins" / "factstore"
    assert {"__init__.py", "plugin.yaml", "provider.py"} <= {path.name for path in folder.iterdir()}
    assert not (folder / "__pycache__").exists()
    lines = [line for line in done.output.splitlines() if line.startswith("  ")]
    assert [yaml.safe_load(line) for line in lines] == [
        {"memory": {"provider": "factstore"}},
        {"plugins": {"factstore": {"retrieval": {}}}},
    ]
    (folder / "old.py").write_text("")
    install(tmp_path)
    assert not (folder / "old.py").exists()


def test_what_is_somebody_elses_stays(tmp_path: Path) -> None:
    other = tmp_path / "plugins" / "factstore"
    other.mkdir(parents=True)
    (other / "plugin.yaml").write_text("name: other\n")
    for home in (tmp_path, tmp_path / "none"):
        with pytest.raises(InputError):
            install(home)
    assert (other / "plugin.yaml").exists()
