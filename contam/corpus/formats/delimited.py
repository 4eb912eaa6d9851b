"""Read CSV and TSV shards: a header, then one document a row; rows count from below it."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from contam.corpus.formats import records
from contam.corpus.formats.token_file import is_there
from contam.corpus.streams import refuse_wide
from contam.errors import Plain, ShardError
from contam.files.listed import LFS_HEAD, pointer_error
from contam.tables.chat import clean
from contam.tables.columns import ColumnRef

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import PurePath

    from contam.corpus.streams import ByteSpan

# The module's own limit is too low for texts.
csv.field_size_limit(records.MAX_RECORD_BYTES)

#: Messages list the names of columns; a text must not get into them.
_LONGEST_NAME = 200


class _Row(NamedTuple):
    """Cells of a row, none of blank lines; the line it ends on, and all its bytes."""

    line: int
    raw: bytes
    cells: list[str]


_NO_ROW = _Row(1, b"", [])


class Csv(records.RecordFormat):
    """Comma-separated values as RFC 4180 has them, in UTF-8, with a header.

    A cell may be quoted, with line breaks inside. Blank lines are no rows. An empty cell is an
    empty text. A last line that nothing ends is an error, as a file that was cut ends like that.
    """

    name = "csv"
    title = "CSV"
    suffixes = (".csv",)
    unit = "row", 0
    if_bad = "repair the row, or leave the file out"
    delimiter: ClassVar[str] = ","

    def no_shard(self, path: PurePath) -> str:
        ids = str(path).removesuffix(".csv.gz") + ".npy"
        return "tells the documents of token ids" if is_there(ids) else ""

    def columns(self, path: str) -> tuple[ColumnRef, ...]:
        header = next(self._rows(path), _NO_ROW).cells
        return tuple(ColumnRef((name,), "text", "text") for name in _names(path, header))

    def numbered(self, path: str, span: ByteSpan | None) -> Iterator[tuple[int, records.Record]]:
        rows = self._rows(path)
        names = _names(path, next(rows, _NO_ROW).cells)
        for row, found in enumerate(rows):
            _check_width(path, found, names)
            yield row, dict(zip(names, found.cells, strict=True))

    def raw_records(self, path: str) -> Iterator[tuple[int | None, bytes]]:
        row = -1
        for found in self._rows(path, blank=True):
            row += bool(found.cells)
            yield row - 1 if found.cells and row else None, found.raw

    def names(self, path: str) -> Sequence[str]:
        return _names(path, next(self._rows(path), _NO_ROW).cells)

    def edited(self, raw: bytes, names: Sequence[str], edit: records.Editor) -> bytes:
        """The row, written anew; only cells that need quotes have them."""
        text = raw.decode("utf-8", "surrogateescape")
        lines = io.StringIO(text, newline="")
        (cells,) = csv.reader(lines, delimiter=self.delimiter, strict=True)
        record: records.Record = dict(zip(names, cells, strict=True))
        edit(record)
        written = io.StringIO(newline="")
        csv.writer(written, delimiter=self.delimiter, lineterminator="\r\n").writerow(
            record.values()
        )
        end = text[len(text.rstrip("\r\n")) :]
        return (written.getvalue().removesuffix("\r\n") + end).encode("utf-8", "surrogateescape")

    def _rows(self, path: str, *, blank: bool = False) -> Iterator[_Row]:
        """Yield the header and all rows, and what is blank between them if that is wanted."""
        taken: list[bytes] = []

        def lines() -> Iterator[str]:
            mark = records.BYTE_ORDER_MARK
            for line in _lines(path):
                taken.append(line)
                yield line.removeprefix(mark).decode("utf-8", "surrogateescape")
                mark = b""

        reader = csv.reader(lines(), delimiter=self.delimiter, strict=True)
        try:
            for cells in reader:
                if cells or blank:
                    yield _Row(reader.line_num, b"".join(taken), cells)
                taken.clear()
        except csv.Error as error:
            raise _bad(path, reader.line_num, "{}", Plain(error)) from error


class Tsv(Csv):
    """The same with tabs."""

    name = "tsv"
    title = "TSV"
    suffixes = (".tsv",)
    delimiter = "\t"


def _check_width(path: str, row: _Row, names: Sequence[str]) -> None:
    if len(row.cells) != len(names):
        raise _bad(path, row.line, "{} cells where the header has {}", len(row.cells), len(names))


def _lines(path: str) -> Iterator[bytes]:
    """Yield lines with their ends."""
    for number, line in enumerate(records.raw_lines(path), 1):
        if number == 1:
            refuse_wide(path, line)
        if not line.endswith(b"\n"):
            raise ShardError(
                "{shard}, line {}: ends without a line break, and may have been cut", number,
                shard=path, hint="copy the file again; if it is whole, add a line break at its end",
            )  # fmt: skip
        if number == 1 and line.startswith(LFS_HEAD):
            raise pointer_error(path)
        yield line


def _names(path: str, header: list[str]) -> list[str]:
    if not header:
        raise ShardError(
            "{shard}: no header",
            shard=path,
            hint="the first line names the columns: copy the file again, or leave it out",
        )
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
        "{shard}, line {}: " + what,
        line,
        *facts,
        shard=path,
        hint=(
            "a cell with a delimiter, a quotation mark or a line break must be quoted: "
            "repair the line, or leave the file out"
        ),
    )
