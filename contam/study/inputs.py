"""Read the tables of a study: columns by what they are, every cell checked."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contam.benchmark.field_names import plain
from contam.benchmark.sources import BenchmarkFile
from contam.detect.given import given_benchmark
from contam.errors import LogError, Public, Statement, UsageError
from contam.rescore.logs.log_files import LogFile
from contam.rescore.logs.tools.plain_tables import load, number_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contam.detect.given import Source
    from contam.errors import Hint
    from contam.rescore.arrays import Bools, Floats
    from contam.rescore.logs.tools.plain_tables import Table

USUAL: Final[Mapping[str, tuple[str, ...]]] = {
    "model": ("model", "model_name", "name", "system"),
    "correct": ("correct", "n_correct", "right", "n_right", "hits", "passed"),
    "score": ("score", "accuracy", "acc", "mean", "value"),
    "n": ("n", "n_items", "items", "total", "size", "count"),
}
"""What a column is -> the names it usually has; the first that is there counts."""

GIVE_SHARES: Final = "give shares from 0 to 1, or counts; a percent is a hundredth"


class Rows:
    """One table of a caller, whose columns are asked for by what they are."""

    def __init__(
        self,
        given: Source,
        called: str,
        *,
        usual: Mapping[str, Sequence[str]] = USUAL,
        columns: Mapping[str, str] | None = None,
    ) -> None:
        """Read the table. Raises LogError when it cannot be read or has no rows.

        given    the path of a CSV, TSV, JSON lines, JSON or Parquet file; or rows or a table
        called   what messages call it when it is in memory
        columns  role -> column, where the usual names do not fit
        """
        self._table = _loaded(given, called)
        if not len(self._table):
            raise self.fault("the file has no rows", hint="is it the right file, and whole?")
        self._found = self._columns(usual, columns or {})

    def __len__(self) -> int:
        return len(self._table)

    def fault(self, said: str, *facts: object, row: int | None = None, hint: Hint = ()) -> LogError:
        """What is wrong with the table, or with one of its rows."""
        return self._table.fault(said, *facts, row=row, hint=hint)

    @property
    def path(self) -> Path:
        """The file, or `memory:NAME`."""
        return self._table.file.path

    @property
    def source(self) -> dict[str, Any]:
        """What run.json says of it."""
        return {
            "path": str(self.path),
            "sha256": self._table.file.digest,
            "rows": len(self),
            "columns": dict(self._found),
        }

    @property
    def names(self) -> list[str]:
        """The names of all columns."""
        return list(self._table.columns)

    @property
    def there(self) -> Statement:
        """The way out for a column that it does not have."""
        return self._table.there

    def has(self, role: str) -> bool:
        """Whether there is a column of this kind."""
        return role in self._found

    def texts(self, role: str, *, empty: bool = False) -> list[str]:
        """A column as texts. Raises LogError for an empty cell unless those are fine."""
        found = [_text(value) for value in self._table.column(self._name(role))]
        if not empty and "" in found:
            row, hint = found.index(""), "is the file whole?"
            raise self.fault("{} is empty", Public(role), row=row, hint=hint)
        return found

    def numbers(self, role: str, *, empty: bool = False) -> Floats:
        """float64[rows]: a column as finite numbers, nan for an empty cell where those are fine."""
        return self.column(self._name(role), empty=empty)

    def column(self, name: str, *, empty: bool = False) -> Floats:
        """float64[rows]: a column by its own name, as above. Raises LogError with the row."""
        found = np.empty(len(self))
        for row, value in enumerate(self._table.column(name)):
            number = _number(value)
            if number is None or math.isinf(number):
                said = "{!r} in {!r} is no number"
                raise self.fault(said, str(value)[:40], name, row=row, hint="scores are numbers")
            if math.isnan(number) and not empty:
                raise self.fault("{!r} is empty", name, row=row, hint="is the file whole?")
            found[row] = number
        return found

    def known(self, role: str) -> Floats:
        """The same, nan for an empty cell, and everywhere where no column is of this kind."""
        return self.numbers(role, empty=True) if self.has(role) else np.full(len(self), math.nan)

    def shares(self, role: str) -> Floats:
        """The same within 0 and 1. Raises LogError for percents and anything else outside."""
        found = self.numbers(role)
        self.refuse_outside(found, self._name(role))
        return found

    def refuse_outside(self, values: Floats, name: str) -> None:
        """Raise LogError for the first value that is not within 0 and 1."""
        said = "{} in {!r} is no share between 0 and 1"
        self.refuse((values < 0) | (values > 1), said, values, name, hint=GIVE_SHARES)

    def refuse(
        self, bad: Bools, said: str, values: Floats, *facts: object, hint: Hint = ()
    ) -> None:
        """Raise LogError for the first row of a mask, saying its value and facts."""
        for row in np.flatnonzero(bad)[:1].tolist():
            raise self.fault(said, float(values[row]), *facts, row=row, hint=hint)

    def refuse_doubles(self, names: Sequence[Any], what: str) -> None:
        """Raise LogError for two rows of one name."""
        seen: dict[Any, int] = {}
        for row, name in enumerate(names):
            if (first := seen.setdefault(name, row)) != row:
                said, place = "{} {!r} has a row in {}, too", self._table.at(first)
                raise self.fault(said, Public(what), name, place, row=row, hint="rename one")

    def _name(self, role: str) -> str:
        if role not in self._found:
            said = "{}: no column is called {} or the like: name it under `columns`"
            raise UsageError(said, self.path, Public(role), hint=self.there)
        return self._found[role]

    def no_column(self, name: str) -> LogError:
        """What is said of a name that no column has."""
        return self.fault("no column {!r}", name, hint=self.there)

    def _columns(
        self, usual: Mapping[str, Sequence[str]], columns: Mapping[str, str]
    ) -> dict[str, str]:
        for role, name in columns.items():
            if role not in usual:
                hint = Statement("known: {}", Public(", ".join(usual)))
                raise UsageError("{} is no kind of column of this table", role, hint=hint)
            if not self._table.has(name):
                raise self.no_column(name)
        found = dict(columns)
        by_name = {plain(name): name for name in reversed(self.names)}
        for role, known in usual.items():
            names = [by_name[plain(name)] for name in known if plain(name) in by_name]
            free = [name for name in names if name not in found.values()]
            if role not in found and free:
                found[role] = free[0]
        return found


def columns_of(columns: Mapping[str, str] | None, side: str) -> dict[str, str]:
    """Role -> column for one input of several: `SIDE.ROLE` goes before `ROLE`."""
    found: dict[str, str] = {}
    for role, name in sorted((columns or {}).items(), key=lambda pair: "." in pair[0]):
        of, _, own = role.rpartition(".")
        if of in {"", side}:
            found[own] = name
    return found


def refuse_unknown_sides(columns: Mapping[str, str] | None, sides: Sequence[str]) -> None:
    """Raise UsageError for a column `SIDE.ROLE` of an input that is not there."""
    for role in columns or {}:
        side, dot, _ = role.rpartition(".")
        if dot and side not in sides:
            hint = Statement("known: {}", ", ".join(sides))
            raise UsageError("there is no input {!r} with columns", side, hint=hint)


def _loaded(given: Source, called: str) -> Table:
    if isinstance(given, str | Path):
        path = Path(given)
        if not path.exists():
            hint = "check the path and its rights"
            raise LogError("no such file: {}", path, hint=hint).of_call()
        return load(LogFile(path))
    found = given_benchmark(given, called)
    if len(found) != 1:
        hint = "give a list of the rows you mean"
        raise UsageError("{} is one table with rows", Public(called), hint=hint)
    (one,) = found
    if isinstance(one, BenchmarkFile):
        return load(LogFile(one.path, one.data))
    return load(LogFile(Path(one)))


def _text(value: object) -> str:
    if value is None or (isinstance(value, float | np.floating) and math.isnan(value)):
        return ""
    return str(value).strip()


def _number(value: object) -> float | None:
    """A cell as a number, nan for an empty one, None for anything else."""
    found = number_of(value)
    # The score of an item may be "yes"; a count or a mean is none.
    is_word = isinstance(value, str) and found in {0, 1} and value.strip().isalpha()
    return None if is_word else found
