"""Copies the fact store's plugin into an agent's home."""

from __future__ import annotations

import shutil
from pathlib import Path

import lab.retrieval.factstore
from lab.errors import InputError

PLUGIN = "factstore"


def install(home: Path) -> Path:
    """Copies the plugin to ``plugins/factstore`` of an agent's home, in the place of an earlier copy.

    Args:
        home: The agent's data directory (``HERMES_HOME``).

    Returns:
        The folder of the plugin.

    Raises:
        InputError: There is no such directory, or another plugin has the name.
        OSError: It cannot be written.
    """
    if not home.is_dir():
        raise InputError(f"there is no directory {home}", "give the agent's home, the one with config.yaml")
    target = home / "plugins" / PLUGIN
    if target.exists():
        manifest = target / "plugin.yaml"
        if not manifest.is_file() or f"name: {PLUGIN}" not in manifest.read_text(errors="replace").splitlines():
            raise InputError(f"{target} is something else", "move it away")
        shutil.rmtree(target)
    source = Path(lab.retrieval.factstore.__file__).parent
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    return target
