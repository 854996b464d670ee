"""Where commands find their files, and the options that several of them share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import lab

CONFIG = "lab.toml"
"""File with defaults of options and the rules of the gate, in the folder where ``lab`` is called."""

PROJECT = Path(lab.__file__).resolve().parent.parent

ScenariosOption = Annotated[
    Path, typer.Option("--scenarios", envvar="LAB_SCENARIOS", help="Folder of scenario files.", show_default=False)
]
ReportsOption = Annotated[
    Path,
    typer.Option("--reports", envvar="LAB_REPORTS", help="Folder in which run folders are made.", show_default=False),
]
SnapshotsOption = Annotated[
    Path, typer.Option("--snapshots", envvar="LAB_SNAPSHOTS", help="Folder of the snapshots.", show_default=False)
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output.")]
BackendOption = Annotated[
    str,
    typer.Option("--backend", envvar="LAB_BACKEND", help="auto, docker or bwrap. auto: docker where it is reachable."),
]
BuildOption = Annotated[
    str,
    typer.Option(
        "--build",
        envvar="LAB_BUILD",
        help="The agent: 0.17.0, PRODUCT==VERSION, a path to a .whl file or to a source folder.",
    ),
]
BaseOption = Annotated[
    str,
    typer.Option(
        "--base",
        envvar="LAB_BASE",
        help="Base system: auto, registry, debian (made here with mmdebstrap) or an image reference.",
    ),
]

DEFAULT_SCENARIOS = PROJECT / "scenarios"
DEFAULT_REPORTS = PROJECT / "reports"
DEFAULT_SNAPSHOTS = PROJECT / "snapshots"


def setup_path(name: str) -> Path:
    """File of a setup: a path is taken as it is, a plain name stands under ``containers/hermes/setups``."""
    given = Path(name)
    return given if given.suffix in (".yaml", ".yml") else PROJECT / "containers" / "hermes" / "setups" / f"{name}.yaml"


def latest_run(reports: Path) -> Path | None:
    """The newest run folder, by its id, which begins with its time."""
    runs = sorted(p for p in reports.glob("*") if (p / "lock.json").is_file())
    return runs[-1] if runs else None
