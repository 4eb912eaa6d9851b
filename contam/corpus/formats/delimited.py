"""Read CSV and TSV shards: a header, then one document a row; rows count from below it."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, ClassVar

from contam.corpus.formats import records
from contam.corpus.streams import refuse_wide, stream
from contam.errors import Plain, Remedy, ShardError
from contam.files.csv_cells import large_cells
from contam.files.lfs import LFS_FACT, LFS_HEAD
from contam.tables.columns import ColumnRef
from contam.tables.json_text import clean

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contam.corpus.offsets import ByteSpan

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
#: Messages list the names of columns; a text must not get into them.
_LONGEST_NAME = 200


class Csv(records.ReadyRecords):
    """Comma-separated values as RFC 4180 has them, in UTF-8, with a header.

    A cell may be quoted, with line breaks inside. Blank lines are no rows. An empty cell is an
    empty text. A last line that nothing ends is an error, as a file that was cut ends like that.
    """

    name = "csv"
    title = "CSV"
    suffixes = (".csv",)
    delimiter: ClassVar[str] = ","

    def columns(self, path: str) -> tuple[ColumnRef, ...]:
        _, header = next(self._rows(path), (1, []))
        return tuple(ColumnRef((name,), "text", "text") for name in _names(path, header))

    def numbered(
        self,
        path: str,
        span: ByteSpan | None,
    ) -> Iterator[tuple[int, records.Record]]:
        rows = self._rows(path)
        _, header = next(rows, (1, []))
        names = _names(path, header)
        for row, (line, cells) in enumerate(rows):
            if len(cells) != len(names):
                raise _bad(path, line, "{} cells where the header has {}", len(cells), len(names))
            yield row, dict(zip(names, cells, strict=True))

    def bad(self, path: str, row: int, what: str, *facts: object) -> ShardError:
        return ShardError(
            "{shard}, row {}: " + what, row, *facts, shard=path,
            remedy=Remedy.REPAIR_ROW_OR_LEAVE_OUT,
        )  # fmt: skip

    def _rows(self, path: str) -> Iterator[tuple[int, list[str]]]:
        """Yield (line it ends on, cells) of the header and all rows."""
        reader = csv.reader(_lines(path), delimiter=self.delimiter, strict=True)
        with large_cells(records.MAX_RECORD_BYTES):
            try:
                for cells in reader:
                    if cells:
                        yield reader.line_num, cells
            except csv.Error as error:
                raise _bad(path, reader.line_num, "{}", Plain(error)) from error


class Tsv(Csv):
    """The same with tabs."""

    name = "tsv"
    title = "TSV"
    suffixes = (".tsv",)
    delimiter = "\t"


def _lines(path: str) -> Iterator[str]:
    """Yield lines with their ends; bytes that are not UTF-8 stay visible as surrogates."""
    file = stream(path)
    number = 0
    while line := file.readline(records.MAX_RECORD_BYTES + 1):
        number += 1
        if len(line) > records.MAX_RECORD_BYTES:
            raise _bad(path, number, "longer than {} MiB", records.MAX_RECORD_BYTES >> 20)
        if number == 1:
            refuse_wide(path, line)
        if not line.endswith(b"\n"):
            raise ShardError(
                "{shard}, line {}: ends without a line break, and may have been cut", number,
                shard=path, remedy=Remedy.COPY_AGAIN_OR_END_LINE,
            )  # fmt: skip
        if number == 1:
            if line.startswith(LFS_HEAD):
                raise ShardError("{shard} " + LFS_FACT, shard=path, remedy=Remedy.RUN_GIT_LFS_PULL)
            line = line.removeprefix(_BYTE_ORDER_MARK)
        yield line.decode("utf-8", "surrogateescape")


def _names(path: str, header: list[str]) -> list[str]:
    if not header:
        raise ShardError("{shard}: no header", shard=path, remedy=Remedy.COPY_WITH_HEADER)
    if max(map(len, header)) > _LONGEST_NAME:
        raise _bad(path, 1, "no header, but a cell as long as a text")
    cells = [clean(cell.strip())[0].decode() for cell in header]
    # Tables written with a numbered index have no name for it.
    names = [cell or f"column {place}" for place, cell in enumerate(cells)]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise _bad(path, 1, "the header names {!r} twice", twice)
    return names


def _bad(path: str, line: int, what: str, *facts: object) -> ShardError:
    return ShardError(
        "{shard}, line {}: " + what, line, *facts, shard=path,
        remedy=Remedy.QUOTE_CELL_OR_LEAVE_OUT,
    )  # fmt: skip
