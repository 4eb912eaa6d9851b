"""Read plain tables of scores: CSV, TSV, JSON or Parquet.

A row per model and item, a row per item and a column per model, or a row per model and a column
per item. A column is what its name and all its cells say; what stays open is an error that asks.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from contam.benchmark.paths import folder_name, name_of, stem_of
from contam.errors import Public, Statement
from contam.rescore.logs.log_files import LogReader
from contam.rescore.logs.model import TABLE, Log, LoggedItem, ScoreColumn, mean_column
from contam.rescore.logs.tools.plain_tables import Table, direction_of, load, number_of, rows_inside
from contam.rescore.logs.tools.table_roles import SHOWN, Roles, check_columns, label, more

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contam.rescore.arrays import Ints
    from contam.rescore.logs.log_files import LogFile

TITLE: Final = "tables of scores"


def reader(columns: Mapping[str, str] | None) -> LogReader:
    """The reader of tables; columns  what they are, where their names do not say it."""
    return LogReader(title=TITLE, fits=_fits, read=lambda file: read(file, columns))


def _fits(file: LogFile) -> bool:
    if file.form == "object":
        return rows_inside(file.document) is not None
    return file.form in {"lines", "list", "parquet", "table"}


def read(file: LogFile, columns: Mapping[str, str] | None = None) -> list[Log]:
    """All logs of a table: one per model and benchmark. Raises LogError when unsure."""
    mapping = check_columns(columns)
    table = load(file)
    if not len(table):
        raise file.fault("the log is empty", hint="was the run stopped?")
    roles = Roles(table, mapping)
    if roles.items:
        table = _turned(table, roles)
        roles = Roles(table, {})
    return _logs(table, roles)


def _turned(table: Table, roles: Roles) -> Table:
    """A table with a row per model as one with a row per model and item."""
    names = [name.rpartition(".")[2] if name in table.nested else name for name in roles.items]
    columns = {
        "model": [cell for cell in table.column(roles.one["model"]) for _ in names],
        "id": names * len(table),
        "score": [table.column(name)[row] for row in range(len(table)) for name in roles.items],
    }
    for role in ("benchmark", "split"):
        if role in roles.one:
            columns[role] = [cell for cell in table.column(roles.one[role]) for _ in names]
    places = [place for place in table.places for _ in names]
    return replace(table, columns=columns, places=places)


def _logs(table: Table, roles: Roles) -> list[Log]:
    """A log per model and benchmark."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for row, key in enumerate(roles.keys):
        groups.setdefault(key, []).append(row)
    known: dict[LoggedItem, LoggedItem] = {}
    every = [known.setdefault(item, item) for item in _items(table, roles)]
    logs: dict[tuple[str, ...], tuple[tuple[LoggedItem, ...], list[ScoreColumn], list[str]]] = {}
    leaves = {name.rpartition(".")[2] for name in roles.models}
    for key, rows in groups.items():
        firsts, places, notes = _once(table, roles, rows, every)
        items = tuple(every[row] for row in firsts)
        for name in roles.models or [roles.one["score"]]:
            column = _column(table, roles, name, rows, places)
            own = key[:3]
            if roles.models:
                model = name.rpartition(".")[0] if len(leaves) == 1 else ""
                own = (model or name, *key[1:3])
            else:
                column = replace(column, metric=key[3] or name)
            if column.note and not {"score", "models"} & roles.mapping.keys():
                hint = Statement(
                    "divide percentages by 100; other scores are taken under --columns score={}",
                    name,
                )
                raise table.fault("{}", Public(column.note), hint=hint)
            log = logs.setdefault(own, (items, [], notes))
            if [item.item_id for item in log[0]] != [item.item_id for item in items]:
                said = "metric {!r} covers other items than the one before it"
                raise table.fault(said, key[3], hint="write a file per metric")
            log[1].append(column)
    return [_log(table, roles, key, *rest) for key, rest in logs.items()]


def _once(
    table: Table, roles: Roles, rows: Sequence[int], items: Sequence[LoggedItem]
) -> tuple[list[int], Ints, list[str]]:
    """(first row of every item, place of each row's item, notes); repeats need a column."""
    repeats = roles.cells("repeat")
    firsts: dict[str, int] = {}
    met: set[tuple[str, str]] = set()
    for row in rows:
        name = items[row].item_id
        turn = (name, label(repeats[row]))
        if turn in met:
            what, hint = (
                ("the same repeat of item", "the file holds rows twice")
                if "repeat" in roles.one
                else ("item", "repeats need a column that numbers them: --columns repeat=COLUMN")
            )
            raise table.fault("{} {!r} stands here again", Public(what), name, row=row, hint=hint)
        met.add(turn)
        firsts.setdefault(name, row)
    place_of = {name: place for place, name in enumerate(firsts)}
    places = np.array([place_of[items[row].item_id] for row in rows], np.int64)
    most = int(np.bincount(places).max())
    notes = [f"up to {most} repeats of an item, averaged"] if most > 1 else []
    return [*firsts.values()], places, notes


def _column(
    table: Table, roles: Roles, name: str, rows: Sequence[int], places: Ints
) -> ScoreColumn:
    """A model's scores: repeats of an item become their mean, nan where no cell is filled."""
    cells = table.column(name)
    score = np.array([_checked(table, row, cells[row]) for row in rows], np.float64)
    known = ~np.isnan(score)
    n_items = int(places.max()) + 1
    repeats = np.bincount(places[known], minlength=n_items)
    sums = np.bincount(places[known], score[known], minlength=n_items)
    return mean_column(
        "score",
        np.where(repeats, sums / np.maximum(repeats, 1), np.nan),
        repeats=repeats.astype(np.int32),
        higher_is_better=direction_of(table, roles.one, rows),
    )


def _checked(table: Table, row: int, value: object) -> float:
    """A score, nan where the cell says that there is none; LogError for anything else."""
    number = number_of(value)
    if number is None or math.isinf(number):
        hint = "scores are numbers, TRUE and FALSE, yes and no, or C and I"
        raise table.fault("{!r} is no score", str(value)[:40], row=row, hint=hint)
    return number


def _items(table: Table, roles: Roles) -> list[LoggedItem]:
    """The item of every row."""
    found = []
    named = zip(roles.texts, *map(roles.cells, ("id", "gold", "cluster")), strict=True)
    for row, (texts, name, gold, cluster) in enumerate(named):
        item_id = label(name) or texts.question
        if not item_id:
            hint = "name one: --columns id=COLUMN"
            raise table.fault("neither an id nor a question", row=row, hint=hint)
        parts = texts._asdict() | ({} if texts.question else {"answer": label(gold) or None})
        found.append(LoggedItem(item_id=item_id, cluster=label(cluster) or None, **parts))
    return found


def _log(
    table: Table,
    roles: Roles,
    key: Sequence[str],
    items: tuple[LoggedItem, ...],
    columns: list[ScoreColumn],
    notes: list[str],
) -> Log:
    model, benchmark, split = key
    path = table.file.path
    # A file is named after its models' benchmark where a column has the models, else after one.
    home = name_of(path).benchmark if model else folder_name(path.absolute().parent)
    told = roles.told()
    words = ", ".join(f"{role}={_short(names)}" for role, names in told)
    notes = [f"a plain table: nothing to check the scores against; columns: {words}", *notes]
    if table.open_end:
        notes.append("the last line has no line end: is the file whole?")
    return Log(
        tool=TABLE,
        model=model or stem_of(path),
        benchmark=benchmark or home or stem_of(path),
        names_benchmark=bool(benchmark or model),
        split=split or None,
        items=items,
        columns=tuple(columns),
        notes=tuple(notes),
        roles=told,
    )


def _short(names: str) -> str:
    several = names.split("+")
    return "+".join(several[:SHOWN]) + more(several)
