"""Stream a published table as JSON lines, some rows at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import orjson
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

_ROWS: Final = 128
#: Lines are handed out together up to so many bytes; a longer line comes alone.
_PIECE_BYTES: Final = 256 << 10


def read_rows(path: Path) -> list[dict[str, Any]]:
    """All rows of a published table. Raises OSError or ValueError when it is no such file."""
    with pq.ParquetFile(path, pre_buffer=False) as file:
        rows: list[dict[str, Any]] = file.read(use_threads=False).to_pylist()
        return rows


class TablePages:
    """An open file of `write_parquet`: it can be read on although its name is gone.

    Raises OSError or ValueError when it is no such file.
    """

    def __init__(self, path: Path) -> None:
        self._file = pq.ParquetFile(path, memory_map=True, pre_buffer=False)
        self.n_rows = int(self._file.metadata.num_rows)

    def lines(self, start: int, end: int) -> Iterator[bytes]:
        """Rows `start` to before `end` as lines of JSON, some at a time."""
        with self._file as file:
            begin = 0
            for group in range(file.metadata.num_row_groups):
                n_rows = file.metadata.row_group(group).num_rows
                if begin < end and begin + n_rows > start:
                    yield from self._group(group, begin, start, end)
                begin += n_rows

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def _group(self, group: int, begin: int, start: int, end: int) -> Iterator[bytes]:
        for batch in self._file.iter_batches(_ROWS, row_groups=[group], use_threads=False):
            low, high = max(start - begin, 0), min(end - begin, batch.num_rows)
            if low < high:
                yield from _pieces(batch.slice(low, high - low).to_pylist())
            begin += batch.num_rows


def _pieces(rows: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    made = bytearray()
    for row in rows:
        line = orjson.dumps(row) + b"\n"
        if made and len(made) + len(line) > _PIECE_BYTES:
            yield bytes(made)
            made.clear()
        made += line
    if made:
        yield bytes(made)
