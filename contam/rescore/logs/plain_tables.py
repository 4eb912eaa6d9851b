"""Read plain tables: CSV, TSV, JSON lines, a JSON list or Parquet; cells as scores."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contam.benchmark.delimited import even_rows
from contam.benchmark.mapping import ITEM_ID, QUESTION, plain
from contam.errors import BenchmarkError, LogError, Names, Place, Public, Statement
from contam.rescore.logs.log_files import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from contam.errors import Hint
    from contam.rescore.logs.log_files import LogFile

Columns = dict[str, list[Any]]


@dataclass(eq=False)
class Table:
    """A table by columns; `at` gives a row's place in the file.

    open_end  whether the last line has no line end, as in a file that was cut off
    """

    file: LogFile
    columns: Columns
    places: Sequence[int]
    unit: str
    open_end: bool = False

    def at(self, row: int) -> Place:
        """A row's place, as error messages give it."""
        between = ":" if self.unit == "line" else ", row "
        return Place(f"{self.file.path}{between}{self.places[row]}")

    def fault(self, said: str, *facts: object, row: int | None = None, hint: Hint = ()) -> LogError:
        """What is wrong with it, or with one of its rows."""
        place = self.file.path if row is None else self.at(row)
        return LogError(f"{{}}: {said}", place, *facts, hint=hint)

    @property
    def there(self) -> Statement:
        """The way out for a column that it does not have."""
        return Statement("columns there: {}", Names([*self.columns, *self.nested][:200]))

    def __len__(self) -> int:
        return len(self.places)

    def has_column(self, name: str) -> bool:
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

    def roles(
        self, usual: Mapping[str, Sequence[str]], mapping: Mapping[str, str]
    ) -> dict[str, str]:
        """Role -> column: as mapped, else the first free one that has a usual name of the role.

        Raises LogError for a column that is mapped and not there; "" is mapped to none.
        """
        for name in mapping.values():
            if name and not self.has_column(name):
                raise self.fault("no column {!r}", name, hint=self.there)
        found = dict(mapping)
        by_name = {plain(name): name for name in reversed(list(self.columns))}
        for role, known in usual.items():
            names = [by_name[plain(name)] for name in known if plain(name) in by_name]
            free = [name for name in names if name not in found.values()]
            if role not in found and free:
                found[role] = free[0]
        return found

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
        value = value.get(key) if isinstance(value, dict) else None
    return value


def load(file: LogFile) -> Table:
    """Read a file by its content; LogError, with the line, for one that is not whole."""
    if file.data[:4] == b"PAR1":
        from contam.tables.input_tables import read_columns

        found = read_columns(file.path, data=file.given)
        columns = {
            name: cells.tolist() if isinstance(cells, np.ndarray) else cells
            for name, cells in found.items()
        }
        n_rows = len(next(iter(columns.values()), []))
        return Table(file, columns, range(1, n_rows + 1), "row")
    if file.json_form == "lines":
        lines = file.lines
        return Table(file, _by_column([row for _, row in lines]), [n for n, _ in lines], "line")
    if file.json_form:
        rows = rows_inside(file.document) or []
        return Table(file, _by_column(rows), range(1, len(rows) + 1), "row")
    return _delimited(file)


def rows_inside(value: object) -> list[Record] | None:
    """The rows of a JSON list, or of a record that holds one list of items; None for others.

    What a record says of its model and benchmark holds for its rows.
    """
    if isinstance(value, list):
        return [Record.of(row) for row in value]
    found = Record.of(value)
    lists = [
        rows
        for rows in found.values()
        if isinstance(rows, list) and rows and {*map(plain, Record.of(rows[0]))} & _OF_ITEMS
    ]
    if len(lists) == 1:
        shared = {name: found[name] for name in _OF_ALL if isinstance(found.get(name), str)}
        return [Record(shared | Record.of(row)) for row in lists[0]]
    return None


_OF_ITEMS: Final = frozenset({*ITEM_ID, *QUESTION})
_OF_ALL: Final = ("model", "model_name", "model_id", "benchmark", "task", "dataset", "split")


def _by_column(rows: Sequence[Mapping[str, Any]]) -> Columns:
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def _delimited(file: LogFile) -> Table:
    """CSV under the delimiter that its first line has most of."""
    try:
        lines = even_rows(file.path, file.data)
    except BenchmarkError as error:
        ways = (*error.hints, Statement("is the file whole?"))
        raise LogError(error.statement, hint=ways) from error
    if not lines:
        return Table(file, {}, [], "line")
    names = [name.strip() for name in lines[0][1]]
    if len(names) > 1 and all(name.replace(".", "", 1).isdecimal() for name in names):
        hint = "add a first line with a name for every column, such as id and the models' names"
        raise file.fault("the first line holds {} scores, no names", len(names), hint=hint)
    if len(set(names)) < len(names):
        raise file.fault("two columns have one name", hint="rename one")
    columns = {name: [cells[at] for _, cells in lines[1:]] for at, name in enumerate(names)}
    open_end = not file.data.endswith((b"\n", b"\r"))
    return Table(file, columns, [place for place, _ in lines[1:]], "line", open_end)


_WORDS: Final = {
    **dict.fromkeys(("true", "yes", "y", "c", "correct", "pass", "passed"), 1.0),
    **dict.fromkeys(("false", "no", "n", "i", "incorrect", "wrong", "fail", "failed"), 0.0),
    **dict.fromkeys(("", "nan", "na", "n/a", "null", "none"), float("nan")),
}


def numbers_of(cells: Sequence[Any]) -> list[float] | None:
    """The numbers in cells that are numbers or empty, None where a cell is anything else."""
    numbers = []
    for cell in cells:
        number = number_of(cell)
        if number is None:
            return None
        if not math.isnan(number):
            numbers.append(number)
    return numbers


def zero_to_one(cells: Sequence[Any]) -> bool:
    """Whether every cell is a number from 0 to 1, or empty, and one of them is no empty one."""
    known = numbers_of(cells)
    return bool(known) and all(0 <= number <= 1 for number in known or ())


def mostly_scores(cells: Sequence[Any]) -> bool:
    """Whether most filled cells are numbers from 0 to 1: scores, but for what a cell says."""
    found = [
        number for cell in cells if (number := number_of(cell)) is None or not math.isnan(number)
    ]
    return 2 * sum(number is not None and 0 <= number <= 1 for number in found) > len(found)


def number_of(value: object) -> float | None:
    """A cell as a number, nan for an empty one, None for anything that is no score."""
    if value is None:
        return float("nan")
    if isinstance(value, bool | int | float):
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


def text_of(value: object) -> str:
    """A cell as text, "" for an empty one; 1, 1.0 and "1.0" are the same."""
    if value is None or (isinstance(value, float | np.floating) and math.isnan(value)):
        return ""
    if isinstance(value, float | np.floating) and value.is_integer():
        return str(int(value))
    text = str(value).strip()
    return text.removesuffix(".0") if text.removesuffix(".0").isdecimal() else text


DIRECTIONS: Final = ("higher_is_better", "lower_is_better")
"""Roles of columns; the cells of a metric must all say the same."""


def direction_of(table: Table, found: Mapping[str, str], rows: Iterable[int]) -> bool | None:
    """Whether a higher score of these rows is better, None where no column says it.

    Raises LogError for a cell that is neither true nor false, and for rows that disagree.
    """
    role = next((name for name in DIRECTIONS if name in found), None)
    if role is None:
        return None
    said = None
    for row in rows:
        value = table.column(found[role])[row]
        number = number_of(value)
        if number not in {0, 1}:
            said_of, cell = "{!r} does not say whether {} holds", str(value)[:40]
            raise table.fault(said_of, cell, Public(role), row=row, hint="write true or false")
        if said not in {None, number}:
            said_of, hint = "{} differs from the rows before", "scores of one metric count one way"
            raise table.fault(said_of, Public(role), row=row, hint=hint)
        said = number
    return None if said is None else bool(said) == (role == "higher_is_better")
