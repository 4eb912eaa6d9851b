"""Read the document table of an index segment, one row per document."""

from __future__ import annotations

import io
import threading
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from contam.tables.schemas import counts, texts

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from contam.tables.schemas import Column

DOCUMENTS: Final = pa.schema(
    [
        *counts("shard", bits=32),
        *counts("row"),
        *texts("document_id", "url", "date", "source", "language", null=True),
        *counts("n_tokens", "n_bytes"),
    ]
)

# Small enough that a few documents cost little to look up, large enough to compress.
_ROW_GROUP_ROWS: Final = 1 << 13
_GROUPS_KEPT: Final = 16
_ROWS_KEPT: Final = 1 << 12


def write_documents(path: Path, columns: Mapping[str, Column]) -> None:
    """Write the table; `columns` has every column of DOCUMENTS. Equal columns give equal bytes."""
    arrays = [pa.array(columns[field.name], field.type) for field in DOCUMENTS]
    _write(path, pa.Table.from_arrays(arrays, schema=DOCUMENTS))


def join_documents(path: Path, tables: Sequence[DocumentTable]) -> None:
    """Write the rows of several tables, one table after another, as one."""
    joined = pa.concat_tables([table.whole() for table in tables])
    _write(path, joined.combine_chunks())


def _write(path: Path, table: pa.Table) -> None:
    pq.write_table(
        table,
        path,
        compression="zstd",
        row_group_size=_ROW_GROUP_ROWS,
        write_page_checksum=True,
        store_schema=False,
    )


class _Ranges(io.RawIOBase):
    """A file whose bytes a function gives."""

    def __init__(self, fetch: Callable[[int, int], memoryview], size: int) -> None:
        self._fetch, self._size, self._at = fetch, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = (0, self._at, self._size)[whence] + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:  # noqa: ANN401 - any buffer
        found = self._fetch(self._at, min(self._at + len(buffer), self._size))
        buffer[: len(found)] = found
        self._at += len(found)
        return len(found)


class DocumentTable:
    """A table that `write_documents` wrote.

    fetch  gives the bytes [begin, end) of its file, which has `size`
    Raises ValueError when it is no such table. Several threads may use one.
    """

    def __init__(self, fetch: Callable[[int, int], memoryview], size: int) -> None:
        try:
            self._file = pq.ParquetFile(
                pa.PythonFile(_Ranges(fetch, size), "r"),
                pre_buffer=False,
                page_checksum_verification=True,
            )
            meta = self._file.metadata
            names = tuple(self._file.schema_arrow.names)
        except pa.ArrowException as error:
            raise ValueError(f"is no Parquet file: {error}") from error
        if names != tuple(DOCUMENTS.names):
            raise ValueError(f"has the columns {', '.join(names)}")
        self._fetch = fetch
        self._begins = [0]
        for group in range(meta.num_row_groups):
            self._begins.append(self._begins[-1] + meta.row_group(group).num_rows)
        self._group = lru_cache(maxsize=_GROUPS_KEPT)(self._read_group)
        self._row = lru_cache(maxsize=_ROWS_KEPT)(self._read_row)
        # A reader is not made for two threads.
        self._reading = threading.Lock()

    def __len__(self) -> int:
        return self._begins[-1]

    def rows(self, numbers: Sequence[int], names: Sequence[str]) -> list[tuple[Any, ...]]:
        """The columns `names` of these rows, in the order asked. Raises ValueError."""
        wanted = tuple(names)
        return [self._row(number, wanted) for number in numbers]

    def _read_row(self, number: int, names: tuple[str, ...]) -> tuple[Any, ...]:
        if not 0 <= number < len(self):
            raise ValueError(f"has no row {number}")
        group, row = divmod(number, _ROW_GROUP_ROWS)
        with self._reading:
            table = self._group(group)
        return tuple(table.column(name)[row].as_py() for name in names)

    def column(self, name: str) -> Any:  # noqa: ANN401 - Arrow ships no types
        """A whole column, as an Arrow array."""
        with self._reading:
            return self._file.read([name], use_threads=False).column(name).combine_chunks()

    def whole(self) -> pa.Table:
        """All rows and columns."""
        with self._reading:
            return self._file.read(use_threads=False).cast(DOCUMENTS)

    def numbers_of(self, ids: Sequence[str]) -> dict[str, list[int]]:
        """The rows of the documents with these ids: several where the corpus repeats one."""
        found: dict[str, list[int]] = {}
        wanted = pa.array(ids, pa.string())
        column = self.column("document_id")
        for number in pc.indices_nonzero(pc.is_in(column, value_set=wanted)).to_pylist():
            found.setdefault(column[number].as_py(), []).append(number)
        return found

    def counts_of(self, name: str, shortened: str, length: int) -> dict[str, int]:
        """The different texts of a column, and how many documents have each.

        shortened  a regular expression: a text that matches counts as its first `length` characters
        """
        texts = self.column(name).drop_null()
        fits = pc.match_substring_regex(texts, shortened)
        texts = pc.if_else(fits, pc.utf8_slice_codeunits(texts, 0, length), texts)
        found = pc.value_counts(texts)
        return dict(
            zip(found.field("values").to_pylist(), found.field("counts").to_pylist(), strict=True)
        )

    def _read_group(self, group: int) -> pa.Table:
        try:
            # Arrow asks for column after column: from a store all are fetched at once.
            about = self._file.metadata.row_group(group)
            columns = [about.column(i) for i in range(about.num_columns)]
            begin = min(one.dictionary_page_offset or one.data_page_offset for one in columns)
            self._fetch(begin, begin + sum(one.total_compressed_size for one in columns))
            return self._file.read_row_group(group, use_threads=False)
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"cannot be read: {error}") from error
