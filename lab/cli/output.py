"""How commands print: tables and lines for people, one JSON document for programs, one line for an error."""

from __future__ import annotations

import json
import sys
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from lab.errors import LabError
from lab.text import printable

# Without emoji: the name of a model holds colons, and ":x:" would become a cross.
console = Console(stderr=True, highlight=False, emoji=False)
"""For people: progress, tables, errors. Standard output stays free for what a program reads."""

stdout = Console(highlight=False, emoji=False)


def safe(text: str, limit: int = 300) -> str:
    """Makes any text fit to print: no control characters, no markup."""
    return escape(printable(text, limit=limit))


def counting_bar() -> Progress:
    """A progress bar that counts trials, topics and the like, for people."""
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    return Progress(*columns, console=console)


def print_json(value: Any) -> None:
    """Prints one JSON document on standard output; non-ASCII is escaped, so hostile text cannot act on a terminal."""
    json.dump(value, sys.stdout, indent=2, ensure_ascii=True, sort_keys=False)
    sys.stdout.write("\n")


def print_error(error: LabError) -> None:
    """Prints an error in one line: what is wrong, and what mends it."""
    mend = f" [dim]→ {safe(error.mend, 500)}[/]" if error.mend else ""
    console.print(f"[bold red]lab:[/] {safe(error.message, 500)}{mend}", soft_wrap=True)
