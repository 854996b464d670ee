"""``lab snapshot``: freezes memory databases, verifies, compares and lists the frozen ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.filesize import decimal
from rich.progress import BarColumn, DownloadColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from lab.cli.output import console, print_json, safe, stdout
from lab.cli.places import DEFAULT_SNAPSHOTS, JsonOption, SnapshotsOption
from lab.errors import ExitCode, InputError
from lab.records import digest
from lab.snapshots.compare import Cells, Difference, TableDifference, diff
from lab.snapshots.freeze import freeze
from lab.snapshots.manifest import Manifest, read_manifest
from lab.snapshots.store import find_snapshot, open_snapshot, snapshot_folders
from lab.snapshots.verify import verify

CELL = 80
"""Characters that are shown of a value."""

app = typer.Typer(no_args_is_help=True, help="Freeze memory databases, and prove what is in a frozen one.")


@app.callback()
def _group() -> None:
    """Freeze memory databases, and prove what is in a frozen one."""


@app.command("freeze")
def freeze_command(
    source: Annotated[Path, typer.Argument(metavar="SOURCE", help="The SQLite database; it may be in use.")],
    name: Annotated[str, typer.Option("--name", help="Name of the snapshot, which is the name of its folder.")],
    licence: Annotated[str, typer.Option("--licence", help="Licence of the data, or: synthetic.")] = "not stated",
    snapshots: SnapshotsOption = DEFAULT_SNAPSHOTS,
    json: JsonOption = False,
) -> None:
    """Freeze a database while others write to it: one consistent state, with a manifest."""
    with _copying() as told:
        manifest = freeze(source, snapshots, name=name, licence=licence, progress=told)
    if json:
        print_json(manifest.model_dump(mode="json"))
        return
    for table, content in manifest.content.tables.items():
        stdout.print(f"{safe(table)}: {_rows(content.rows)}", soft_wrap=True)
    stdout.print(f"frozen: {safe(str(snapshots / name), 4096)} ({_size(manifest)})", soft_wrap=True)
    stdout.print(f"content {manifest.content_sha256}")


@app.command("verify")
def verify_command(
    which: Annotated[list[str], typer.Argument(metavar="SNAPSHOT…", help="Names or folders of snapshots.")],
    snapshots: SnapshotsOption = DEFAULT_SNAPSHOTS,
    json: JsonOption = False,
) -> None:
    """Name everything that is not as it was frozen.

    Exit code 1 when there is something.
    """
    found = {}
    for given in which:
        folder = find_snapshot(given, snapshots)
        with console.status(f"verifying {safe(given)} …"):
            found[given] = verify(folder)
    if json:
        print_json({given: [asdict(change) for change in changes] for given, changes in found.items()})
    else:
        for given, changes in found.items():
            if not changes:
                stdout.print(f"{safe(given)}: [green]as frozen[/]", soft_wrap=True)
            for change in changes:
                stdout.print(
                    f"{safe(given)}: [red]{change.kind}[/] {safe(change.what)}: {safe(change.detail)}", soft_wrap=True
                )
    if any(found.values()):
        raise typer.Exit(ExitCode.GATE_FAILED)


@app.command("diff")
def diff_command(
    first: Annotated[str, typer.Argument(metavar="A", help="Name or folder of a snapshot.")],
    second: Annotated[str, typer.Argument(metavar="B", help="Name or folder of another.")],
    limit: Annotated[int, typer.Option("--limit", min=0, help="Most rows of each kind to show for each table.")] = 10,
    snapshots: SnapshotsOption = DEFAULT_SNAPSHOTS,
    json: JsonOption = False,
) -> None:
    """Name the rows that were added, changed and gone from A to B."""
    a, b = (open_snapshot(find_snapshot(given, snapshots)) for given in (first, second))
    with console.status("comparing …"):
        difference = diff(a, b, limit=limit)
    if json:
        print_json({"same": difference.same, **_plain(asdict(difference))})
    else:
        _print_difference(difference)


@app.command("list")
def list_command(snapshots: SnapshotsOption = DEFAULT_SNAPSHOTS, json: JsonOption = False) -> None:
    """List the snapshots; their files are not read (lab snapshot verify does)."""
    rows: list[dict[str, Any]] = []
    for folder in snapshot_folders(snapshots):
        try:
            manifest = read_manifest(folder)
        except InputError as error:
            rows.append({"name": folder.name, "problem": error.message})
            continue
        rows.append({"name": folder.name, "problem": "", **manifest.model_dump(mode="json", exclude={"name"})})
        if not json:
            count = sum(content.rows for content in manifest.content.tables.values())
            facts = (_size(manifest), f"{len(manifest.content.tables)} tables", _rows(count), manifest.licence)
            rows[-1]["line"] = ", ".join((*facts, manifest.created, manifest.content_sha256[:12]))
    if json:
        print_json(rows)
        return
    for row in rows:
        line = f"[red]{safe(row['problem'])}[/]" if row["problem"] else safe(row["line"])
        stdout.print(f"{safe(row['name'])}: {line}", soft_wrap=True)
    if not rows:
        stdout.print(
            f"no snapshot under {safe(str(snapshots), 4096)} → lab snapshot freeze SOURCE --name NAME", soft_wrap=True
        )


@contextmanager
def _copying() -> Iterator[Callable[[int, int], None]]:
    """A bar for the bytes of the copy; then the digests, whose length is not known."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("copying", total=None)

        def told(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total, description="checking" if done == total else "copying")

        yield told


def _print_difference(difference: Difference) -> None:
    if difference.same:
        stdout.print("the same content")
    for change in difference.changes:
        stdout.print(f"{change.kind} {safe(change.what)}: {safe(change.detail)}", soft_wrap=True)
    for table in difference.tables:
        matched = f"by {', '.join(table.key)}" if table.key else "as whole rows"
        counts = f"{table.added} added, {table.changed} changed, {table.gone} gone"
        stdout.print(f"{safe(table.table)}: {counts} (matched {safe(matched)})", soft_wrap=True)
        for line in _rows_of(table):
            stdout.print(f"  {safe(line, 2000)}", soft_wrap=True)


def _rows_of(table: TableDifference) -> Iterator[str]:
    yield from (f"column added: {column}" for column in table.columns_added)
    yield from (f"column gone: {column}" for column in table.columns_gone)
    yield from (f"+ {_cells(row)}" for row in table.rows_added)
    yield from _more(table.added - len(table.rows_added), "added")
    for changed in table.rows_changed:
        moves = (f"{c}: {_cell(was)} → {_cell(changed.after[c])}" for c, was in changed.before.items())
        yield f"~ {_cells(changed.key)}: {', '.join(moves)}"
    yield from _more(table.changed - len(table.rows_changed), "changed")
    yield from (f"- {_cells(row)}" for row in table.rows_gone)
    yield from _more(table.gone - len(table.rows_gone), "gone")


def _more(count: int, what: str) -> Iterator[str]:
    if count:
        yield f"… and {_rows(count)} more that {'is' if count == 1 else 'are'} {what} (--limit)"


def _cells(row: Cells) -> str:
    return ", ".join(f"{column}={_cell(value)}" for column, value in row.items())


def _cell(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bytes):
        return f"{len(value)} bytes {value[:8].hex()}{'…' if len(value) > 8 else ''}"
    text = repr(value)
    return text if len(text) <= CELL else f"{text[:CELL]}…"


def _plain(value: Any) -> Any:
    """Values as JSON can hold them; bytes by their length and digest, for they may be large."""
    if isinstance(value, bytes):
        return {"bytes": len(value), "sha256": digest(value)}
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    return value


def _rows(count: int) -> str:
    return f"{count:,} row" if count == 1 else f"{count:,} rows"


def _size(manifest: Manifest) -> str:
    return decimal(manifest.file.bytes)
