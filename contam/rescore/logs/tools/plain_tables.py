"""Read plain tables: CSV, TSV, JSON lines, a JSON list or Parquet; cells as scores."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contam.errors import LogError, Place, Public, Remedy
from contam.rescore.logs.log_files import LogFile, as_dict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray


Columns = dict[str, list[Any]]


@dataclass(frozen=True, eq=False)
class Table:
    """A table by columns; `at` gives a row's place in the file.

    open_end  whether the last line has no line end, as in a file that was cut off
    """

    file: LogFile
    columns: Columns
    places: Sequence[int]
    unit: str
    open_end: bool = False

    def at(self, row: int) -> str:
        """A row's place, as error messages give it."""
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
    """The value at a path, None where a step of it is missing."""
    for key in path:
        value = as_dict(value).get(key)
    return value


def load(file: LogFile) -> Table:
    """Read a file by its content; LogError, with the line, for one that is not whole."""
    start = file.data[:4]
    if start == b"PAR1":
        from contam.tables.input_tables import read_columns

        columns = read_columns(file.path, data=file.given)
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
                "{}:{}: {} cells under {} columns", file.path, place, len(row), len(names),
                remedy=Remedy.NOT_WHOLE_OR_CELL_UNQUOTED,
            )  # fmt: skip
    columns = {name: [row[at] for row in rows[1:]] for at, name in enumerate(names)}
    return Table(file, columns, places[1:], "line", open_end=not text.endswith(("\n", "\r")))


_WORDS: Final = {
    **dict.fromkeys(("true", "yes", "y", "c", "correct", "pass", "passed"), 1.0),
    **dict.fromkeys(("false", "no", "n", "i", "incorrect", "wrong", "fail", "failed"), 0.0),
    **dict.fromkeys(("", "nan", "na", "n/a", "null", "none"), float("nan")),
}


def zero_to_one(values: Sequence[Any]) -> bool:
    """Whether every cell is a number from 0 to 1, or empty, and one of them is no empty one."""
    try:
        numbers = [number_of(value) for value in set(as_plain_list(values))]
    except TypeError:  # a list or a record in a cell
        return False
    known = [n for n in numbers if n is None or not math.isnan(n)]
    return bool(known) and all(n is not None and 0 <= n <= 1 for n in known)


def as_plain_list(values: Sequence[Any] | NDArray[Any]) -> Sequence[Any]:
    """A column as a plain list, where it is an array."""
    if isinstance(values, np.ndarray):
        plain_values: list[Any] = values.tolist()
        return plain_values
    return values


def number_of(value: object) -> float | None:
    """A cell as a number, nan for an empty one, None for anything that is no score."""
    if value is None:
        return float("nan")
    if isinstance(value, bool | int | float | np.number | np.bool_):
        return float(value)
    if not isinstance(value, str):
        return None
    word = value.strip().lower()
    if word in _WORDS:
        return _WORDS[word]
    try:
        return float(word)
    except ValueError:
        return None


DIRECTIONS: Final = ("higher_is_better", "lower_is_better")
"""Roles of columns; the cells of a metric must all say the same."""

_YES_OR_NO: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def direction_of(table: Table, found: Mapping[str, str], rows: Iterable[int]) -> bool | None:
    """Whether a higher score of these rows is better, None where no column says it.

    Raises LogError for a cell that is neither true nor false, and for rows that disagree.
    """
    role = next((name for name in DIRECTIONS if name in found), None)
    if role is None:
        return None
    said: bool | None = None
    for row in rows:
        value = table.columns[found[role]][row]
        word = str(value).strip().lower().removesuffix(".0")
        if word not in _YES_OR_NO:
            raise LogError(
                "{}: {!r} does not say whether {} holds", Place(table.at(row)), str(value)[:40],
                Public(role), remedy=Remedy.WRITE_TRUE_OR_FALSE,
            )  # fmt: skip
        if said not in (None, _YES_OR_NO[word]):
            raise LogError(
                "{}: {} is another one here than in the rows before", Place(table.at(row)),
                Public(role), remedy=Remedy.SCORES_COUNT_ONE_WAY,
            )  # fmt: skip
        said = _YES_OR_NO[word]
    if said is None:
        return None
    return said if role == "higher_is_better" else not said
