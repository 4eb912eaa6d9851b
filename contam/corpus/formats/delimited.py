"""Read CSV and TSV shards: a header, then one document a row; rows count from below it."""

from __future__ import annotations

import csv
import io
import re
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from contam.corpus.formats import records
from contam.corpus.formats.rewriting import Place, Places
from contam.corpus.streams import refuse_wide, stream
from contam.errors import Plain, Remedy, ShardError
from contam.files.csv_cells import large_cells
from contam.files.lfs import LFS_FACT, LFS_HEAD
from contam.tables.columns import ColumnRef
from contam.tables.json_text import clean
from contam.tables.literals import BareCell, Literal, QuotedCell

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from contam.corpus.offsets import ByteSpan
    from contam.tables.edits import Edit

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
#: Messages list the names of columns; a text must not get into them.
_LONGEST_NAME = 200
_CELL_END = {delimiter: re.compile(rf"[{delimiter}\r\n]") for delimiter in ",\t"}


class _Row(NamedTuple):
    """Cells of a row, the line it ends on, and the bytes [begin, end) of the unpacked file."""

    line: int
    begin: int
    end: int
    cells: list[str]


_NO_ROW = _Row(1, 0, 0, [])


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
        header = next(self._rows(path), _NO_ROW).cells
        return tuple(ColumnRef((name,), "text", "text") for name in _names(path, header))

    def numbered(
        self,
        path: str,
        span: ByteSpan | None,
    ) -> Iterator[tuple[int, records.Record]]:
        rows = self._rows(path)
        names = _names(path, next(rows, _NO_ROW).cells)
        for row, found in enumerate(rows):
            _check_width(path, found, names)
            yield row, dict(zip(names, found.cells, strict=True))

    def places(self, path: str, edits: Sequence[Edit]) -> Places:
        ends: list[tuple[int, int]] = []
        rows = self._rows(path, ends)
        names = _names(path, next(rows, _NO_ROW).cells)
        places: list[Place] = []
        left = iter(edits)
        edit = next(left, None)
        row = -1
        for row, found in enumerate(rows):
            _check_width(path, found, names)
            if edit is not None and edit.row == row:
                places.append(Place(found.begin, found.end, edit))
                edit = next(left, None)
        return Places(places, row + 1, ends, names)

    def strings(
        self, text: str, names: Sequence[str]
    ) -> tuple[records.Record, Mapping[str, object]]:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=self.delimiter, strict=True)
        cells = _cells(text, self.delimiter)
        with large_cells(records.MAX_RECORD_BYTES):
            if list(reader) != [cells]:
                raise ValueError("its cells cannot be told apart")
        strings = dict(zip(names, cells, strict=True))
        return {name: str(cell) for name, cell in strings.items()}, strings

    def bad(self, path: str, row: int, what: str, *facts: object) -> ShardError:
        return ShardError(
            "{shard}, row {}: " + what, row, *facts, shard=path,
            remedy=Remedy.REPAIR_ROW_OR_LEAVE_OUT,
        )  # fmt: skip

    def _rows(self, path: str, ends: list[tuple[int, int]] | None = None) -> Iterator[_Row]:
        """Yield the header and all rows; `ends` as for `contam.corpus.streams.pieces`."""
        n_read = 0

        def lines() -> Iterator[str]:
            nonlocal n_read
            for line in _lines(path, ends):
                text = line if n_read else line.removeprefix(_BYTE_ORDER_MARK)
                n_read += len(line)
                yield text.decode("utf-8", "surrogateescape")

        reader = csv.reader(lines(), delimiter=self.delimiter, strict=True)
        begin = 0
        with large_cells(records.MAX_RECORD_BYTES):
            try:
                for cells in reader:
                    if cells:
                        yield _Row(reader.line_num, begin, n_read, cells)
                    begin = n_read
            except csv.Error as error:
                raise _bad(path, reader.line_num, "{}", Plain(error)) from error


class Tsv(Csv):
    """The same with tabs."""

    name = "tsv"
    title = "TSV"
    suffixes = (".tsv",)
    delimiter = "\t"


def _cells(text: str, delimiter: str) -> list[Literal]:
    """The cells of one row, of which `text` is all."""
    cells: list[Literal] = []
    at = 0
    while True:
        if text[at : at + 1] == '"':
            begin = at + 1
            end = text.find('"', begin)
            while end >= 0 and text[end + 1 : end + 2] == '"':
                end = text.find('"', end + 2)
            if end < 0:
                raise ValueError("a quote does not end")
            written = text[begin:end]
            cells.append(QuotedCell(written.replace('""', '"'), begin, end, written, None))
            at = end + 1
        else:
            stop = _CELL_END[delimiter].search(text, at)
            end = stop.start() if stop else len(text)
            cells.append(BareCell(text[at:end], at, end, text[at:end], None))
            at = end
        if text[at : at + 1] != delimiter:
            break
        at += 1
    return cells


def _check_width(path: str, row: _Row, names: Sequence[str]) -> None:
    if len(row.cells) != len(names):
        raise _bad(path, row.line, "{} cells where the header has {}", len(row.cells), len(names))


def _lines(path: str, ends: list[tuple[int, int]] | None) -> Iterator[bytes]:
    """Yield lines with their ends."""
    file = stream(path, ends)
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
        if number == 1 and line.startswith(LFS_HEAD):
            raise ShardError("{shard} " + LFS_FACT, shard=path, remedy=Remedy.RUN_GIT_LFS_PULL)
        yield line


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
