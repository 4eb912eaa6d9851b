"""Define the result of a scan: verdicts, evidence, items and how the run was made."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import numpy as np

from contam.corpus.columns import UNREAD_COLUMNS
from contam.detect.labels import FLAGGED, SHOWN
from contam.detect.notebook import result_html, result_line
from contam.detect.policies.verdict import COLUMNS, Verdict
from contam.errors import IncompleteError
from contam.files.natural_order import natural_key
from contam.tables import schemas
from contam.tables.frames import Frames, unknown_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from contam.benchmark.items import BenchItem
    from contam.corpus.coverage import Coverage
    from contam.tables.schemas import Columns, Table

Value = TypeVar("Value")

VERDICTS: Final = schemas.schema_of(
    (column.name, column.kind, column.nullable) for column in COLUMNS
)
OPTIONAL: Final = frozenset(column.name for column in COLUMNS if column.optional)
"""Columns of `VERDICTS` that whoever makes a result may leave out: they are null throughout."""

TABLE_NAMES: Final = ("verdicts", "evidence", "items")
"""The tables of a result."""

SKIPPED: Final = ": skipped "
"""What a note on a row of a benchmark has behind the name of the benchmark."""

LEFT_OUT: Final = "left out of the corpus: "
#: In a note on documents whose date is left empty.
UNREADABLE_DATES: Final = "documents found have a date that cannot be read"
#: In a note on a benchmark of which a field may have been taken for the question that is not it.
ONE_QUESTION: Final = "items have the same question"
"""How a note begins that names a file beside the shards."""


class Late(Generic[Value]):
    """A field that may be given as a function, which is called when somebody reads the field."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: object, owner: type) -> Value:
        if instance is None:
            raise AttributeError(self._name)  # a field without a default
        value = instance.__dict__[self._name]
        if callable(value):
            value = instance.__dict__[self._name] = value()
        found: Value = value
        return found

    def __set__(self, instance: object, value: Value | Callable[[], Value]) -> None:
        instance.__dict__[self._name] = value


class ScanTables(Frames):
    """The tables of a scan by their names: `TABLE_NAMES`."""

    def to_arrow(self, table: str = "") -> Table:
        """One table, the verdicts unless named. Raises UsageError for an unknown name."""
        name = table or TABLE_NAMES[0]
        if name not in TABLE_NAMES:
            raise unknown_table(name, TABLE_NAMES)
        return getattr(self, name)


@dataclass(eq=False, kw_only=True)
class ScanResult(ScanTables):
    """A finished scan. Iterating gives a `Verdict` per item and policy.

    verdict_columns   columns of `VERDICTS` by name; arrays, or lists with None for what is absent;
                      in `best_row` a negative number means none, too; optional ones may be left out
    evidence_columns  columns of `EVIDENCE`; within an item the order given stays (best documents
                      first)
    item_columns      columns of `ITEMS`, one row per item; the text columns may be left out
    run               JSON-able; `parameters`, `inputs`, `versions`, `coverage` are equal for equal
                      runs, `timings` holds what is not (start, seconds, workers, memory).
                      `coverage["complete"]` says whether every shard was read,
                      `parameters["allow_missing"]` whether an incomplete answer was allowed,
                      `parameters["policies"]` names the policies in the order asked,
                      `inputs["shards"]` is a list of `{name, uri, format, size_bytes, digest}`.
    covered           `run["coverage"]` as it was counted, where nobody should have to ask `run`
    about_index       makes `run["index"]`, once; empty where no index was asked
    items_in_order    the items themselves, for callers who want more than the table
    hits              makes the tables of hits.parquet, of a search that kept every hit

    All columns are in canonical order (benchmark, split, item id in natural order, then policy as
    asked), so that equal questions give equal bytes whatever order the items came in.
    """

    verdict_columns: Columns
    evidence_columns: Columns
    item_columns: Late[Columns] = Late()
    run: Late[dict[str, Any]] = Late()
    covered: Coverage | None = None
    about_index: Callable[[], dict[str, Any]] = dict
    items_in_order: Sequence[BenchItem] = field(default=(), repr=False)
    hits: Callable[[], Iterator[Table]] | None = None

    def __post_init__(self) -> None:
        self.verdict_columns = schemas.completed(self.verdict_columns, OPTIONAL)

    @cached_property
    def verdicts(self) -> Table:
        """Arrow table, one row per item and policy."""
        return schemas.table_of(self.verdict_columns, VERDICTS)

    @cached_property
    def evidence(self) -> Table:
        """Arrow table, one row per run of an item part in a document."""
        return schemas.evidence_table(self.evidence_columns)

    @cached_property
    def items(self) -> Table:
        """Arrow table, one row per item."""
        return schemas.item_table(self.item_columns)

    def write_table(self, name: str, path: Path) -> int:
        """Write one of the tables `verdicts`, `evidence`, `items`; returns its rows.

        There may be millions: no table is made. Raises OSError.
        """
        columns, schema = self._columns(name)
        schemas.write_columns(columns, schema, path)
        return len(columns["item_id"])

    def _columns(self, name: str) -> tuple[Columns, schemas.Schema]:
        """The columns of a table, and what they are."""
        if name == "verdicts":
            return self.verdict_columns, VERDICTS
        if name == "evidence":
            return self.evidence_columns, schemas.EVIDENCE
        return schemas.with_texts(self.item_columns), schemas.ITEMS

    @property
    def coverage(self) -> dict[str, Any]:
        """What of the corpus was read: shards, rows, bytes, and what failed."""
        coverage: dict[str, Any] = self.run["coverage"]
        return coverage

    @property
    def complete(self) -> bool:
        """Whether every shard was read to its end."""
        covered = self.covered
        return bool(self.coverage["complete"]) if covered is None else covered.complete

    @property
    def policies(self) -> tuple[str, ...]:
        """The policies asked, in order."""
        return tuple(self.run["parameters"]["policies"])

    def counts(self) -> dict[str, dict[str, dict[str, int]]]:
        """Items by benchmark, policy and label; labels nobody got are 0."""
        return label_counts(*self._pieces(("benchmark", "policy", "label")))

    def flagged(self) -> tuple[Verdict, ...]:
        """The verdicts `contaminated` and `suspect`."""
        return tuple(iter_verdicts(self._flagged))

    @property
    def n_flagged(self) -> int:
        """How many verdicts are `contaminated` or `suspect`."""
        return int(self._flagged.num_rows)

    @cached_property
    def _flagged(self) -> Table:
        found = [schemas.rows_with(table, "label", FLAGGED) for table in self._pieces()]
        return schemas.concatenated(found)

    def _pieces(self, names: Sequence[str] = VERDICTS.names) -> Iterator[Table]:
        """The verdicts, or some of their columns, in tables of some thousand rows."""
        return schemas.pieces(self.verdict_columns, VERDICTS, names)

    def exit_code(self) -> int:
        """0, or 4 when part of the corpus was not read and that was not allowed."""
        if self.complete or self.run["parameters"].get("allow_missing"):
            return 0
        return IncompleteError.exit_code

    def __len__(self) -> int:
        return len(self.verdict_columns["item_id"])

    def __iter__(self) -> Iterator[Verdict]:
        return (Verdict(**row) for row in schemas.records(self.verdict_columns, VERDICTS))

    def __repr__(self) -> str:
        return result_line(type(self).__name__, self.counts(), self.coverage)

    def _repr_html_(self) -> str:
        return result_html(self.counts(), self.coverage, self.run.get("notes", ()))


def iter_verdicts(table: Table) -> Iterator[Verdict]:
    """The rows of a verdict table as records."""
    for row in schemas.rows(table):
        yield Verdict(**row)


def label_counts(*verdicts: Table) -> dict[str, dict[str, dict[str, int]]]:
    """Tables of verdicts -> benchmark -> policy -> label -> number of items, as they appear."""
    counts: dict[str, dict[str, dict[str, int]]] = {}
    names = ("benchmark", "policy", "label")
    for table in verdicts:
        for (benchmark, policy, label), n in schemas.tally(table, names):
            labels = counts.setdefault(benchmark, {}).setdefault(policy, dict.fromkeys(SHOWN, 0))
            labels[label] += n
    return counts


def item_ranks(rows: Sequence[tuple[str, str, str]]) -> NDArray[np.int64]:
    """Places of (benchmark, split, item id) in the canonical order of results; equal for equals."""
    places = np.empty((3, len(rows)), np.int64)
    for at, column in enumerate(zip(*rows, strict=True)):
        # Not as a set: names come nearly in order, and are sorted all the sooner.
        names = sorted(dict.fromkeys(column), key=natural_key)
        place = dict(zip(names, range(len(names)), strict=True))
        places[at] = np.fromiter(map(place.__getitem__, column), np.int64, len(rows))
    order = np.lexsort(places[::-1])
    fresh = (np.diff(places[:, order], axis=1) != 0).any(axis=0)
    ranks = np.zeros(len(rows), np.int64)
    ranks[order[1:]] = np.cumsum(fresh)
    return ranks


def notes_below(run: Mapping[str, Any]) -> list[str]:
    """The notes that are shown below every table and list: without them it could mislead."""
    parts = (UNREADABLE_DATES, ONE_QUESTION, UNREAD_COLUMNS)
    return [note for note in run.get("notes", ()) if any(part in note for part in parts)]
