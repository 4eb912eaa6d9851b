"""Plain files as columns: CSV and TSV with a header, JSON lines, a JSON list, Parquet."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from contam.errors import LogError
from contam.remedies import Remedy
from contam.rescore.logs.files import LogFile, as_dict

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Columns = dict[str, list[Any]]


@dataclass(frozen=True, eq=False)
class Table:
    """A table by columns; `at` says where a row stands in the file.

    open_end  whether the last line has no line end, as in a file that was cut off
    """

    file: LogFile
    columns: Columns
    places: Sequence[int]
    unit: str
    open_end: bool = False

    def at(self, row: int) -> str:
        """Where a row stands, as error messages say it."""
        place = self.places[row]
        return (
            f"{self.file.path}:{place}" if self.unit == "line" else f"{self.file.path}, row {place}"
        )

    def __len__(self) -> int:
        return len(self.places)

    def has(self, name: str) -> bool:
        """Whether there is such a column, or such a field of records in one."""
        return name in self.columns or name in self.nested

    def column(self, name: str) -> Sequence[Any]:
        """The values of a column, or of a field such as `metrics.acc` of the records in one."""
        if name in self.columns:
            return self.columns[name]
        if name not in self._fields:
            root, *path = self.nested[name]
            self._fields[name] = [_inside(value, path) for value in self.columns[root]]
        return self._fields[name]

    @cached_property
    def _fields(self) -> Columns:
        return {}

    @cached_property
    def nested(self) -> dict[str, tuple[str, ...]]:
        """Dotted name -> path, of every field of records that is no record itself."""
        found: dict[str, tuple[str, ...]] = {}
        for name, values in self.columns.items():
            for value in values:
                if isinstance(value, dict):
                    found.update({".".join(path): path for path in _paths((name,), value)})
        return {name: path for name, path in found.items() if name not in self.columns}


def _paths(path: tuple[str, ...], value: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for key, inner in value.items():
        if isinstance(inner, dict):
            yield from _paths((*path, str(key)), inner)
        else:
            yield (*path, str(key))


def _inside(value: object, path: Sequence[str]) -> object:
    """What stands at a path, None where a step of it is missing."""
    for key in path:
        value = as_dict(value).get(key)
    return value


def load(file: LogFile) -> Table:
    """Read a file by its content; LogError, with the line, for one that is not whole."""
    start = file.data[:4]
    if start == b"PAR1":
        from contam.tables.log_io import read_columns

        columns = read_columns(file.path)
        n_rows = len(next(iter(columns.values()), []))
        return Table(file, columns, range(1, n_rows + 1), "row")
    head = file.data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    if head == b"[":
        rows = [as_dict(row) for row in file.document]
        return Table(file, _by_column(rows), range(1, len(rows) + 1), "row")
    if head == b"{":
        lines = file.lines
        return Table(file, _by_column([row for _, row in lines]), [n for n, _ in lines], "line")
    return _delimited(file)


def _by_column(rows: Sequence[Mapping[str, Any]]) -> Columns:
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def _delimited(file: LogFile) -> Table:
    """CSV under the delimiter that its first line has most of."""
    try:
        text = file.data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise LogError("{}: not valid UTF-8", file.path, remedy=Remedy.CONVERT_FILE) from error
    first = text.partition("\n")[0]
    delimiter = max(",;\t", key=first.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows, places = [], []
    try:
        for row in reader:
            if row:
                rows.append(row)
                places.append(reader.line_num)
    except csv.Error as error:
        raise LogError(
            "{}:{}: {}", file.path, reader.line_num, error, remedy=Remedy.IS_FILE_WHOLE
        ) from error
    if not rows:
        return Table(file, {}, [], "line")
    names = [name.strip() for name in rows[0]]
    if len(set(names)) < len(names):
        raise LogError("{}: two columns have one name", file.path, remedy=Remedy.RENAME_ONE_COLUMN)
    for row, place in zip(rows, places, strict=True):
        if len(row) != len(names):
            raise LogError(
                "{}:{}: {} cells under {} columns",
                file.path,
                place,
                len(row),
                len(names),
                remedy=Remedy.NOT_WHOLE_OR_CELL_UNQUOTED,
            )
    columns = {name: [row[at] for row in rows[1:]] for at, name in enumerate(names)}
    return Table(file, columns, places[1:], "line", open_end=not text.endswith(("\n", "\r")))
