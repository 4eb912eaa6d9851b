"""Define the columns of every published table, and write them.

The columns of a table and their order are part of the result format: once a release has written it,
a change is a new `RESULT_FORMAT`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from contam.errors import InternalError
from contam.files.single import refuse_irregular

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from pathlib import Path


@dataclass(frozen=True, slots=True, eq=False)
class Repeated:
    """A column in which few values come again and again: row i holds values[index[i]].

    index  integers; a negative one means that the row holds nothing
    """

    values: Sequence[Any] | pa.Array
    index: NDArray[Any]

    def __len__(self) -> int:
        return len(self.index)


Table: TypeAlias = pa.Table
RecordBatch: TypeAlias = pa.RecordBatch
Schema: TypeAlias = pa.Schema
Column: TypeAlias = Sequence[Any] | NDArray[Any] | Repeated | pa.ChunkedArray
Columns: TypeAlias = Mapping[str, Column]

RESULT_FORMAT: Final = 1

_KINDS: Final[Mapping[type, pa.DataType]] = {
    str: pa.string(),
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
}
_ROW_GROUP_ROWS: Final = 1 << 17
_SOME_ROWS: Final = 1 << 12
#: A part of a row group, so that the pieces end where its pages may.
_TAKEN_ROWS: Final = 1 << 14


def texts(*names: str, null: bool = False) -> list[pa.Field]:
    """Columns of texts."""
    return [pa.field(name, pa.string(), nullable=null) for name in names]


def counts(*names: str, null: bool = False, bits: int = 64) -> list[pa.Field]:
    """Columns of whole numbers."""
    kind = pa.int64() if bits == 64 else pa.int32()  # noqa: PLR2004 - one of two
    return [pa.field(name, kind, nullable=null) for name in names]


def flags(*names: str, null: bool = False) -> list[pa.Field]:
    """Columns of truth values."""
    return [pa.field(name, pa.bool_(), nullable=null) for name in names]


def figures(*names: str, null: bool = True) -> list[pa.Field]:
    """Columns of numbers, null where they do not apply."""
    return [pa.field(name, pa.float64(), nullable=null) for name in names]


_ITEM_FIELDS: Final = texts("benchmark", "split", "item_id")

EVIDENCE: Final = pa.schema(
    [
        *_ITEM_FIELDS,
        *texts("part", "document_id", "shard"),
        *counts("row"),
        *texts("url", "date", "source", null=True),
        *counts("alignment", bits=32),
        *counts("item_start", "item_end", "document_start", "document_end"),
        *counts("document_token", null=True),
        *counts("n_tokens", bits=32),
        *figures("similarity"),
        *texts("answer_mark", null=True),
    ]
)

_PARTS: Final = ("passage", "question", "choices", "answer")
ITEMS: Final = pa.schema(
    [
        *_ITEM_FIELDS,
        *texts("key_version"),
        *texts(*(f"{part}_key" for part in (*_PARTS, "item", "full")), null=True),
        *counts(*(f"{part}_tokens" for part in _PARTS), bits=32),
        *texts("passage", "question", null=True),
        pa.field("choices", pa.list_(pa.string())),
        *texts("answer", null=True),
    ]
)

SOURCES: Final = pa.schema(
    [
        *texts("policy"),
        *texts("source", "benchmark", null=True),
        *counts("rows", "documents", "items"),
        *figures("share", "low", "high", null=False),
    ]
)

ITEM_TEXTS: Final = _PARTS
"""Columns of `ITEMS` that are null throughout when the texts are left out of the result."""

_NEGATIVE_MEANS_NONE: Final = frozenset({"best_row", "document_token"})


_BATCH_ROWS: Final = 128


class ColumnsError(ValueError):
    """A file whose columns are not those of its table; the message names them."""


def schema_of(columns: Iterable[tuple[str, type, bool]]) -> pa.Schema:
    """The schema of columns of (name, str, int, float or bool, whether there may be nulls)."""
    return pa.schema([pa.field(name, _KINDS[kind], nullable=null) for name, kind, null in columns])


def completed(columns: Columns, optional: Iterable[str]) -> Columns:
    """The columns, and nulls for those of the optional ones that are not there."""
    n_rows = len(columns["item_id"]) if columns else 0
    return {**{name: [None] * n_rows for name in optional if name not in columns}, **columns}


def evidence_table(columns: Columns) -> Table:
    """The evidence as a table; see `EVIDENCE` for the columns."""
    return table_of(columns, EVIDENCE)


def item_table(columns: Columns) -> Table:
    """The items as a table; see `ITEMS`. Text columns may be left out: they become null."""
    return table_of(with_texts(columns), ITEMS)


def sources_table(found: Sequence[Mapping[str, Any]]) -> Table:
    """The rows of the section `sources` of run.json as a table; see `SOURCES`."""
    return pa.Table.from_pylist(list(found), SOURCES)


def with_texts(columns: Columns) -> Columns:
    """Columns of `ITEMS`, those of texts null where they were left out."""
    return completed(columns, ITEM_TEXTS)


def table_of(columns: Columns, schema: pa.Schema) -> Table:
    """Columns by name -> a table in the schema's order; InternalError when they do not fit it."""
    unknown = sorted(set(columns) - set(schema.names))
    absent = [name for name in schema.names if name not in columns]
    if unknown or absent:
        raise InternalError(f"result columns do not fit: missing {absent}, unknown {unknown}")
    try:
        arrays = [_array(columns[field.name], field) for field in schema]
        table = pa.Table.from_arrays(arrays, schema=schema)
        table.validate()
    except (pa.ArrowException, TypeError, ValueError) as error:
        raise InternalError(f"result columns do not fit: {error}") from error
    return table


def stacked(tables: Mapping[str, Table], named: str) -> Table:
    """Several tables of one schema, one under the other.

    named  a column of texts that gets the name of its table and a slash before its own text
    """
    parts = []
    for name, table in tables.items():
        at = table.schema.get_field_index(named)
        text = pc.binary_join_element_wise(pa.scalar(name), table.column(at), "/")
        parts.append(table.set_column(at, table.schema.field(at), text))
    return pa.concat_tables(parts)


def records(columns: Columns, schema: pa.Schema) -> list[dict[str, Any]]:
    """What `rows` gives of these columns as a table, without making one; for a few rows."""
    values = [_plain_list(columns[field.name], field) for field in schema]
    names = schema.names
    return [dict(zip(names, row, strict=True)) for row in zip(*values, strict=True)]


def part(columns: Columns, begin: int, end: int) -> Columns:
    """Rows `begin` to before `end` of the columns."""
    return {
        name: Repeated(column.values, column.index[begin:end])
        if isinstance(column, Repeated)
        else column[begin:end]
        for name, column in columns.items()
    }


def _plain_list(column: Column, field: pa.Field) -> list[Any]:
    """One column; raises InternalError when it holds a null that its field forbids."""
    if isinstance(column, Repeated):
        found = [column.values[i] if i >= 0 else None for i in column.index.tolist()]
    elif isinstance(column, np.ndarray):
        found = column.tolist()
    elif isinstance(column, pa.ChunkedArray):
        found = column.to_pylist()
    else:
        found = list(column[:])
    if field.name in _NEGATIVE_MEANS_NONE:
        found = [None if value is None or value < 0 else value for value in found]
    elif pa.types.is_floating(field.type):
        # NaN is the only number that is not itself.
        found = [value if value == value else None for value in found]  # noqa: PLR0124 - see above
    if not field.nullable and None in found:
        raise InternalError(f"result columns do not fit: {field.name} has a null")
    return found


def hex_column(values: NDArray[np.uint8]) -> pa.ChunkedArray:
    """A column of texts, the bytes of each value in hex digits.

    values  uint8[n, bytes]; a row of zeros holds nothing
    """
    absent = np.logical_not(values.any(axis=1))
    n_digits = 2 * values.shape[1]
    lengths = np.where(absent, 0, n_digits)
    offsets = np.zeros(len(values) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    digits = _HEX[values[~absent] if absent.any() else values]
    valid = pa.array(~absent).buffers()[1] if absent.any() else None
    buffers = [valid, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(digits))]
    text = pa.StringArray.from_buffers(
        len(values), buffers[1], buffers[2], buffers[0], int(absent.sum())
    )
    return pa.chunked_array([text])


#: The two hex digits of each byte, one behind the other.
_HEX: Final = np.array([f"{byte:02x}".encode() for byte in range(256)], "S2").view(np.uint16)


def _array(column: Column, field: pa.Field) -> pa.Array | pa.ChunkedArray:
    """One column; raises ValueError when it holds a null that its field forbids."""
    array: Any
    if isinstance(column, pa.ChunkedArray):
        array = column
    elif isinstance(column, Repeated):
        values = column.values
        if not isinstance(values, pa.Array):
            values = pa.array(values, type=field.type)
        # Piece by piece: the text of a large one would be moved again and again while it grows.
        array = pa.chunked_array(
            [
                _taken(values, column.index[begin : begin + _TAKEN_ROWS])
                for begin in range(0, len(column.index), _TAKEN_ROWS)
            ],
            type=field.type,
        )
    else:
        array = _plain_array(column, field)
    if field.name in _NEGATIVE_MEANS_NONE:
        array = pc.if_else(pc.less(array, 0), None, array)
    if array.null_count and not field.nullable:
        raise ValueError(f"{field.name} has {array.null_count} nulls")
    return array


def _taken(values: pa.Array, index: NDArray[Any]) -> pa.Array:
    absent = index < 0
    return values.take(pa.array(index, mask=absent if absent.any() else None))


def _plain_array(column: Sequence[Any] | NDArray[Any], field: pa.Field) -> pa.Array:
    from_numpy = isinstance(column, np.ndarray) and column.dtype != np.object_
    # `from_pandas` makes a score of NaN a null: both mean that there is none.
    # A slice, for a column that is made when it is asked for.
    array = pa.array(column[:], type=None if from_numpy else field.type, from_pandas=True)
    if array.type != field.type:
        array = array.cast(field.type)
    return array


def write_parquet(table: Table, path: Path | BinaryIO) -> None:
    """Write one file; equal tables give equal bytes under one pyarrow version. Raises OSError."""
    with parquet_writer(path, table.schema) as writer:
        writer.write_table(table, row_group_size=_ROW_GROUP_ROWS)


def write_columns(columns: Columns, schema: pa.Schema, path: Path) -> None:
    """What `write_parquet` writes of these columns, which are never in memory all at once.

    Raises OSError, and InternalError when they do not fit the schema.
    """
    with parquet_writer(path, schema) as writer:
        for table in pieces(columns, schema):
            writer.write_table(table, row_group_size=_ROW_GROUP_ROWS)


def pieces(
    columns: Columns, schema: pa.Schema, names: Sequence[str] | None = None
) -> Iterator[Table]:
    """The table of these columns, or of some of them, a row group at a time; at least one.

    Raises InternalError when they do not fit the schema.
    """
    chosen = schema if names is None else pa.schema([schema.field(name) for name in names])
    ready = {
        name: Repeated(pa.array(column.values, type=schema.field(name).type), column.index)
        if isinstance(column, Repeated)
        else column
        for name, column in columns.items()
        if name in chosen.names or name not in schema.names
    }
    n_rows = len(columns[schema.names[0]])
    for begin in range(0, max(n_rows, 1), _ROW_GROUP_ROWS):
        yield table_of(part(ready, begin, begin + _ROW_GROUP_ROWS), chosen)


def concatenated(tables: Sequence[Table]) -> Table:
    """The rows of all tables of one schema."""
    return pa.concat_tables(tables)


def parquet_writer(path: Path | BinaryIO, schema: pa.Schema) -> pq.ParquetWriter:
    """What writes the row groups of a published table. Raises OSError."""
    return pq.ParquetWriter(
        path,
        schema,
        version="2.6",
        compression="zstd",
        compression_level=3,
        data_page_version="1.0",
        use_dictionary=True,
        write_statistics=True,
    )


def read_parquet(path: Path, schema: pa.Schema) -> Table:
    """Read a file of `write_parquet`.

    Raises OSError or ValueError when it is not that table, whole; ColumnsError when a column is
    missing or not known.
    """
    refuse_irregular(path)
    try:
        # Not `read_table`: in a result folder called `a=b` it would grow a partition column.
        with pq.ParquetFile(path, pre_buffer=False) as file:
            names = file.schema_arrow.names
            if lacking := [name for name in schema.names if name not in names]:
                raise ColumnsError(f"has no column {', '.join(map(repr, lacking))}")
            if unknown := [name for name in names if name not in schema.names]:
                raise ColumnsError(f"has an unknown column {', '.join(map(repr, unknown))}")
            if names != schema.names:
                raise ColumnsError(f"has its columns in another order: {', '.join(names)}")
            return file.read(use_threads=False).cast(schema)
    except pa.ArrowException as error:
        raise ValueError(str(error)) from error


def row_batches(path: Path) -> tuple[int, Iterator[list[dict[str, Any]]]]:
    """How many rows a file of `write_parquet` has, and its rows, some at a time.

    It can be read on although its name is gone. Raises OSError or ValueError when it is no such
    file.
    """
    opened = pq.ParquetFile(path, memory_map=True, pre_buffer=False)

    def batches() -> Iterator[list[dict[str, Any]]]:
        with opened as file:
            for batch in file.iter_batches(_BATCH_ROWS, use_threads=False):
                yield batch.to_pylist()

    return opened.metadata.num_rows, batches()


def rows(table: Table) -> list[dict[str, Any]]:
    """The rows of a table as dictionaries, in order."""
    result: list[dict[str, Any]] = table.to_pylist()
    return result


def iter_rows(table: Table) -> Iterator[dict[str, Any]]:
    """What `rows` gives, some at a time: a million dictionaries are a gigabyte."""
    for batch in table.to_batches(max_chunksize=_SOME_ROWS):
        yield from batch.to_pylist()


def take(table: Table, order: Sequence[int] | NDArray[np.int64]) -> Table:
    """The rows at these positions, in that order."""
    return table.take(pa.array(order, type=pa.int64()))


def rows_with(table: Table, name: str, values: Collection[str]) -> Table:
    """The rows that have one of these values in a column, in order."""
    return table.filter(pc.is_in(table.column(name), pa.array(values, pa.string())))


def tally(table: Table, names: Sequence[str]) -> Iterator[tuple[tuple[Any, ...], int]]:
    """How many rows have the same values in these columns, in the order in which these come."""
    # Arrow numbers groups nearly, but not quite, in the order in which they come.
    numbered = table.select(names).append_column("place", pa.array(np.arange(table.num_rows)))
    # A thread of Arrow's that lets go of Python's objects while the process ends would abort it.
    grouped = numbered.group_by(list(names), use_threads=False)
    found = grouped.aggregate([("place", "min"), ([], "count_all")]).sort_by("place_min")
    values = zip(*(column(found, name) for name in names), strict=True)
    return zip(values, column(found, "count_all"), strict=True)


def column(table: Table, name: str) -> list[Any]:
    """One column as a list of plain Python values."""
    values: list[Any] = table.column(name).to_pylist()
    return values


CALIBRATION: Final = pa.schema(
    [
        *texts("benchmark", "split", "item_id", "policy", "label"),
        # Null where an item was not checkable, or where nothing is estimable.
        *figures("score", "fdr", "q_value", "p_value"),
    ]
)
