"""Hold records as columns in memory, in a fraction of what an object for each takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contam.files.natural_order import natural_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

Kind = Literal["name", "text", "texts", "number"]
"""What a column holds: texts of which few differ, any texts, lists of texts, whole numbers."""

_TYPES: Final[dict[str, pa.DataType]] = {
    "name": pa.dictionary(pa.int32(), pa.binary()),
    "text": pa.large_string(),
    "texts": pa.list_(pa.large_string()),
    "number": pa.int64(),
}

#: Names of files may hold bytes that are no UTF-8.
_NAMES: Final = ("utf-8", "surrogatepass")
#: Texts of which keys are made at a time.
_AT_ONCE: Final = 1 << 14


@dataclass(frozen=True, eq=False)
class Records:
    """Records as an Arrow table, every column of which is one array."""

    table: pa.Table

    @classmethod
    def of(cls, rows: Sequence[Sequence[Any]], kinds: Mapping[str, Kind]) -> Records:
        """Records whose values are given row by row, in the order of `kinds`."""
        columns = zip(*rows, strict=True) if rows else ((),) * len(kinds)
        return cls(
            pa.table(
                {
                    name: _array(values, kind)
                    for (name, kind), values in zip(kinds.items(), columns, strict=True)
                }
            )
        )

    @classmethod
    def joined(cls, parts: Iterable[Records]) -> Records:
        """The records of all parts, at least one, behind each other."""
        tables = [part.table for part in parts]
        if len(tables) == 1:
            return cls(tables[0])
        return cls(pa.concat_tables(tables).unify_dictionaries().combine_chunks())

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __getstate__(self) -> dict[str, Any]:
        """One array of bytes, which may be shared between processes."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, self.table.schema) as stream:
            stream.write_table(self.table)
        return {"data": np.frombuffer(sink.getvalue(), np.uint8)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        alone = pa.ipc.IpcReadOptions(use_threads=False)
        table = pa.ipc.open_stream(pa.py_buffer(state["data"]), options=alone).read_all()
        object.__setattr__(self, "table", table)

    def select(self, *names: str) -> Records:
        """The records with these columns alone."""
        return Records(self.table.select(names))

    def take(self, rows: slice | NDArray[np.int64]) -> Records:
        """The records in these rows; a slice shares their memory."""
        if isinstance(rows, slice):
            begin, end, _ = rows.indices(len(self))
            return Records(self.table.slice(begin, max(0, end - begin)))
        return Records(self.table.take(pa.array(rows)))

    def column(self, name: str) -> pa.Array:
        """One column as Arrow has it."""
        chunks = self.table.column(name)
        return chunks.chunk(0) if chunks.num_chunks == 1 else chunks.combine_chunks()

    def values(self, name: str) -> list[Any]:
        """One column as plain values."""
        column = self.column(name)
        if pa.types.is_dictionary(column.type):
            names, codes = self.codes(name)
            return [names[code] for code in codes.tolist()]
        found: list[Any] = column.to_pylist()
        return found

    def codes(self, name: str) -> tuple[list[str], NDArray[np.int32]]:
        """The different names of a column, and for each record which of them it has."""
        column = self.column(name)
        names = [value.decode(*_NAMES) for value in column.dictionary.to_pylist()]
        return names, column.indices.to_numpy()

    def numbers(self, name: str, absent: int) -> NDArray[np.int64]:
        """A column of numbers."""
        found: NDArray[np.int64] = self.column(name).fill_null(absent).to_numpy()
        return found

    def counts(self, name: str) -> NDArray[np.int64]:
        """How many texts each list of a column has."""
        found: NDArray[np.int64] = pc.list_value_length(self.column(name)).to_numpy()
        return found

    def natural_order(self, names: Sequence[str]) -> NDArray[np.int64]:
        """Places of the records in the natural order of these columns, the first before all."""
        columns = {name: self._ranks(name) for name in names}
        order = pc.sort_indices(
            pa.table(columns), sort_keys=[(name, "ascending") for name in columns]
        )
        found: NDArray[np.int64] = order.to_numpy().astype(np.int64)
        return found

    def _ranks(self, name: str) -> pa.Array | pa.ChunkedArray:
        """Something that sorts as the texts of a column do in natural order."""
        column = self.column(name)
        if pa.types.is_dictionary(column.type):
            names, codes = self.codes(name)
            rank = np.empty(len(names), np.int64)
            rank[sorted(range(len(names)), key=lambda at: natural_key(names[at]))] = np.arange(
                len(names)
            )
            return pa.array(rank[codes])
        keys = [
            pa.array(map(natural_key, column.slice(begin, _AT_ONCE).to_pylist()), column.type)
            for begin in range(0, len(column), _AT_ONCE)
        ]
        return pa.chunked_array(keys, column.type)

    def n_bytes(self, names: Sequence[str]) -> NDArray[np.int64]:
        """Bytes of the texts of these columns together, in each record."""
        total = np.zeros(len(self), np.int64)
        for name in names:
            column = self.column(name)
            if pa.types.is_list(column.type):
                lengths = pc.binary_length(column.values).to_numpy()
                ends = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
                edges = column.offsets.to_numpy()
                total += np.diff(ends[edges]) + np.maximum(np.diff(edges) - 1, 0)
            else:
                total += pc.binary_length(column).fill_null(0).to_numpy()
        return total

    def texts(self, names: Sequence[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """Texts of these columns in UTF-8, record by record, and one byte more.

        Also returns where each begins, int64[n * names + 1]. What is absent is empty; the texts of
        a list have line feeds between.
        """
        n = len(self)
        if n == 1:
            # A service asks for one: calls of Arrow would take longer than all else here.
            own = [self.table.column(name)[0].as_py() or "" for name in names]
            parts = [(text if isinstance(text, str) else "\n".join(text)).encode() for text in own]
            starts = np.cumsum([0, *map(len, parts)], dtype=np.int64)
            return np.frombuffer(b"".join(parts) + b"\0", np.uint8), starts
        order = np.arange(len(names) * n + 1)
        order[:-1] = order[:-1].reshape(len(names), n).T.reshape(-1)
        every = [self._texts(name) for name in names]
        whole = pa.concat_arrays([*every, pa.array(["\0"], pa.large_string())])
        whole = whole.take(pa.array(order))
        _, starts, data = whole.buffers()
        return np.frombuffer(data, np.uint8), np.frombuffer(starts, np.int64)[: len(order)]

    def with_names(self, name: str, chosen: Mapping[int, str]) -> Records:
        """The records with other names in these rows of a column."""
        values = self.values(name)
        for row, value in chosen.items():
            values[row] = value
        at = self.table.column_names.index(name)
        return Records(self.table.set_column(at, name, _array(values, "name")))

    def _texts(self, name: str) -> pa.Array:
        column = self.column(name)
        if pa.types.is_list(column.type):
            column = pc.binary_join(column, pa.scalar("\n", pa.large_string()))
        return column.fill_null("") if column.null_count else column


def _array(values: Sequence[Any], kind: Kind) -> pa.Array:
    if kind == "name":
        encoded = [value.encode(*_NAMES) for value in values]
        return pa.array(encoded, pa.binary()).dictionary_encode()
    return pa.array(values, _TYPES[kind])
