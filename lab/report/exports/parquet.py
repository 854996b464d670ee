"""A long table as Parquet, with the words of each column in its schema."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from lab.errors import EnvironmentUnusable
from lab.report.exports.long_table import Cell, Column, Kind, LongTable
from lab.report.exports.source import Files

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped, import-not-found, unused-ignore]


def render_parquet(table: LongTable) -> Files:
    """The table as Parquet; the same table gives the same bytes under the same pyarrow.

    Args:
        table: The table.

    Raises:
        EnvironmentUnusable: pyarrow is not installed.
    """
    try:
        import pyarrow as pa  # noqa: PLC0415 - an extra, which other formats do without
        import pyarrow.parquet as pq  # type: ignore[import-untyped, import-not-found, unused-ignore]  # noqa: PLC0415
    except ImportError:
        raise EnvironmentUnusable("Parquet needs pyarrow", "pip install 'agent-memory-lab[parquet]'") from None
    schema = pa.schema([_field(column) for column in table.columns])
    rows = list(table.rows)
    columns = [[_cell(row[at]) for row in rows] for at in range(len(table.columns))]
    arrays = [pa.array(cells, type=field.type) for cells, field in zip(columns, schema, strict=True)]
    out = io.BytesIO()
    pq.write_table(pa.Table.from_arrays(arrays, schema=schema), out, compression="zstd")
    return {f"{table.name}.parquet": out.getvalue()}


def _field(column: Column) -> pa.Field:
    import pyarrow as pa  # noqa: PLC0415

    types = {Kind.STRING: pa.string(), Kind.INTEGER: pa.int64(), Kind.FLOAT: pa.float64(), Kind.BOOLEAN: pa.bool_()}
    return pa.field(column.name, types[column.kind], metadata={"description": column.words})


def _cell(cell: Cell) -> Cell:
    # Data frames take any text but lone surrogates, which no UTF-8 holds.
    return cell.encode("utf-8", "backslashreplace").decode() if isinstance(cell, str) else cell
