"""The file of a history: read whole, written in one step, a run never twice in it."""

from __future__ import annotations

import fcntl
import io
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from lab.errors import EnvironmentUnusable, InputError
from lab.history.rows import HistoryRow
from lab.runs.folder import write_atomic

_FORMAT = b"lab-history/1"
_KEY = b"format"
_WHOLE = ("planned", "errors", "numerator", "n")
_REAL = ("value", "low", "high")


def read_history(path: Path) -> tuple[HistoryRow, ...]:
    """The rows of a history, by the time of their runs.

    Raises:
        InputError: There is none, or the file is damaged or no history.
        EnvironmentUnusable: pyarrow is not installed.
    """
    if not path.is_file():
        raise InputError(f"{path} is no history", "begin one: lab history add RUN")
    return _read(path)


def add_run(path: Path, rows: Sequence[HistoryRow]) -> bool:
    """Puts the rows of a run into a history, in the place of those that it has of the same run.

    Args:
        path: The file, made when it is not there.
        rows: All rows of one run.

    Returns:
        Whether the file changed; the same rows once more change nothing.

    Raises:
        InputError: The run has no number, or the file is damaged or no history; it is left as it is.
        EnvironmentUnusable: pyarrow is not installed.
        OSError: The file cannot be written; the old one is still there.
    """
    if not rows:
        raise InputError("the run has no number to keep", "lab report shows why")
    path.parent.mkdir(parents=True, exist_ok=True)
    with _alone(path):
        old = _read(path) if path.exists() else ()
        kept = [row for row in old if row.run != rows[0].run]
        new = tuple(sorted([*kept, *rows], key=_order))
        if new == old:
            return False
        write_atomic(path, _encode(new))
        return True


def _order(row: HistoryRow) -> tuple[str, ...]:
    place = (row.name, row.family, row.setup, row.model, row.build, row.set, row.arm, row.against, row.topic_class)
    return (row.created, row.run, *place)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Lets two jobs that add at the same time add one after the other, so that no run is lost."""
    with path.with_name(f".{path.name}.lock").open("wb") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield


def _arrow() -> tuple[Any, Any]:  # pyarrow has no types
    try:
        import pyarrow  # type: ignore[import-untyped]  # noqa: PLC0415 - an extra, and slow to load
        import pyarrow.parquet  # type: ignore[import-untyped]  # noqa: PLC0415
    except ImportError:
        raise EnvironmentUnusable("pyarrow is not installed", "pip install 'agent-memory-lab[parquet]'") from None
    return pyarrow, pyarrow.parquet


def _schema(pyarrow: Any) -> Any:
    types = {
        **dict.fromkeys(HistoryRow.model_fields, pyarrow.string()),
        **dict.fromkeys(_WHOLE, pyarrow.int64()),
        **dict.fromkeys(_REAL, pyarrow.float64()),
        "void": pyarrow.bool_(),
    }
    return pyarrow.schema(list(types.items()), metadata={_KEY: _FORMAT})


def _encode(rows: Sequence[HistoryRow]) -> bytes:
    pyarrow, parquet = _arrow()
    table = pyarrow.Table.from_pylist([row.model_dump(mode="json") for row in rows], schema=_schema(pyarrow))
    stream = io.BytesIO()
    parquet.write_table(table, stream)
    return stream.getvalue()


def _read(path: Path) -> tuple[HistoryRow, ...]:
    pyarrow, parquet = _arrow()
    try:
        table = parquet.read_table(path)
    except (OSError, pyarrow.ArrowException) as error:
        raise InputError(f"{path} is damaged or is no Parquet file: {error}", "restore it from a backup") from error
    told = (table.schema.metadata or {}).get(_KEY)
    if told != _FORMAT:
        named = told.decode(errors="replace") if told else "none"
        raise InputError(f"{path} is no history of this lab: format {named}, not {_FORMAT.decode()}", "name another")
    try:
        return tuple(HistoryRow.model_validate(row) for row in table.to_pylist())
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise InputError(f"{path} is damaged: {where}: {first['msg']}", "restore it from a backup") from error
