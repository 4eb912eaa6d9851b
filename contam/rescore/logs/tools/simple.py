"""Read plain tables of scores, long or wide: CSV, TSV, JSON or Parquet.

Long: a row per model and item, with one column of scores. Wide: a row per item, a column per model.
What cannot be told for sure is an error that names the columns and asks.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contam.benchmark.field_names import (
    ANSWER,
    ANSWER_INDEX,
    CHOICE_LISTS,
    PASSAGE,
    QUESTION,
    plain,
)
from contam.benchmark.naming import name_of
from contam.errors import LogError, Names, Place, Public, Remedy, UsageError
from contam.rescore.logs.item_parts import PartsReader
from contam.rescore.logs.log_reader import LogReader, NoScoresError
from contam.rescore.logs.model import TABLE, Log, LoggedItem, ScoreColumn, mean_column
from contam.rescore.logs.tools.plain_tables import (
    DIRECTIONS,
    Table,
    as_plain_list,
    direction_of,
    load,
    number_of,
    zero_to_one,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from contam.rescore.logs.log_files import LogFile

NAMES: Final[dict[str, tuple[str, ...]]] = {
    "id": (
        "item_id",
        "question_id",
        "sample_id",
        "example_id",
        "doc_id",
        "task_id",
        "qid",
        "id",
        "idx",
        "index",
    ),
    "model": ("model", "model_name", "model_id", "system"),
    "benchmark": ("benchmark", "task", "dataset", "eval", "eval_name"),
    "split": ("split",),
    "repeat": ("repeat", "epoch", "seed", "trial", "run", "run_id", "attempt", "sample_index"),
    "score": (
        "score",
        "correct",
        "is_correct",
        "passed",
        "acc",
        "accuracy",
        "exact_match",
        "em",
        "result",
    ),
    "metric": ("metric", "metric_name"),
    **{name: (name,) for name in DIRECTIONS},
}
"""What a column is called -> what it is; the first that is there counts, but scores must be one."""

MAPPABLE: Final = (*NAMES, "question", "passage", "choices", "answer", "models")
_INSIDE: Final = frozenset({"id", "score"})
"""What is looked for in the fields of records, too, where no column has its name."""

TITLE: Final = "tables of scores"
_TEXTS: Final = ("question", "passage", "choices", "answer")
_OF_ITEMS: Final = frozenset({*ANSWER, *ANSWER_INDEX, *PASSAGE, *QUESTION, *CHOICE_LISTS})


def check_columns(columns: Mapping[str, str] | None) -> dict[str, str]:
    """A user's own word on the columns; UsageError for a part that is none."""
    for name in columns or {}:
        if name not in MAPPABLE:
            raise UsageError(
                "a log has no {!r}", name,
                remedy=Remedy.CHOOSE_KNOWN(known=Public(", ".join(MAPPABLE))),
            )  # fmt: skip
    return dict(columns or {})


def read(file: LogFile, columns: Mapping[str, str] | None = None) -> list[Log]:
    """All logs of a table: one per model and benchmark. Raises LogError when unsure."""
    mapping = check_columns(columns)
    table = load(file)
    if not len(table):
        raise LogError("{}: the log is empty", file.path, remedy=Remedy.WAS_RUN_STOPPED)
    found = _found(table, mapping)
    if "score" in found:
        return _long(table, found, named="score" in mapping)
    return _wide(table, found, mapping)


def reader(columns: Mapping[str, str] | None) -> LogReader:
    """The reader of tables; columns  what they are, where their names do not say it."""
    return LogReader(title=TITLE, fits=_fits, read=lambda file: read(file, columns))


def _fits(file: LogFile) -> bool:
    return file.form in {"lines", "list", "parquet", "table"}


def _found(table: Table, mapping: Mapping[str, str]) -> dict[str, str]:
    """Role -> column, as mapped or by the usual names."""
    for role, name in mapping.items():
        names = name.split("+") if role == "models" else [name]
        missing = [name for name in names if name and not table.has(name)]
        if missing:
            raise LogError(
                "{}: no column {!r}", table.file.path, missing[0],
                remedy=Remedy.CHOOSE_AMONG_COLUMNS(columns=Names([*table.columns, *table.nested])),
            )  # fmt: skip
    by_name = {plain(column): column for column in reversed(list(table.columns))}
    inside: dict[str, list[str]] = {}
    for path in table.nested:
        inside.setdefault(plain(path.rpartition(".")[2]), []).append(path)
    taken = set(mapping.values())
    found = {role: column for role, column in mapping.items() if column}
    for role, usual in NAMES.items():
        if role in mapping or (role == "score" and "models" in mapping):
            continue
        there = [by_name[name] for name in usual if name in by_name and by_name[name] not in taken]
        if role in _INSIDE and not there:
            there = [path for name in usual for path in inside.get(name, ()) if path not in taken]
        if role == "score":
            there = [name for name in there if _score_column(table, name)]
            if len(there) > 1:
                raise LogError(
                    "{}: the scores may be in {}", table.file.path, " or ".join(map(repr, there)),
                    remedy=Remedy.NAME_SCORE_COLUMNS,
                )  # fmt: skip
        if there:
            found[role] = there[0]
            taken.add(there[0])
    return found


def _score_column(table: Table, name: str) -> bool:
    """Whether a column holds scores; a `result` may be a word such as "timed out"."""
    return any(number_of(value) is not None for value in table.column(name))


def _long(table: Table, found: Mapping[str, str], *, named: bool) -> list[Log]:
    """A log per model and benchmark; `named` when the user said which column the scores are."""
    keys = [
        tuple(_label(table.column(found[role])[row]) if role in found else "" for role in _KEYS)
        for row in range(len(table))
    ]
    groups: dict[tuple[str, ...], list[int]] = {}
    for row, key in enumerate(keys):
        groups.setdefault(key, []).append(row)
    texts = _texts(table, found)
    logs: dict[tuple[str, ...], tuple[tuple[LoggedItem, ...], list[ScoreColumn], list[str]]] = {}
    for key, rows in groups.items():
        items, column, note = _one(table, found, rows, texts)
        if column.note and not named:
            raise LogError(
                "{}: {}", table.file.path, Public(column.note),
                remedy=Remedy.TAKE_SCORES_AS_THEY_ARE(column=found["score"]),
            )  # fmt: skip
        known = logs.setdefault(key[:3], (items, [], []))
        if [item.item_id for item in known[0]] != [item.item_id for item in items]:
            raise LogError(
                "{}: metric {!r} covers other items than the one before it", table.file.path,
                key[3], remedy=Remedy.WRITE_FILE_PER_METRIC,
            )  # fmt: skip
        known[1].append(column if not key[3] else _renamed(column, key[3]))
        known[2].extend(note)
    return [_log(table, key, *rest) for key, rest in logs.items()]


_KEYS: Final = ("model", "benchmark", "split", "metric")


def _one(
    table: Table,
    found: Mapping[str, str],
    rows: Sequence[int],
    texts: Mapping[int, LoggedItem],
) -> tuple[tuple[LoggedItem, ...], ScoreColumn, list[str]]:
    """Items and scores of one model: repeats of an item become their mean."""
    by_item: dict[str, list[int]] = {}
    for row in rows:
        by_item.setdefault(texts[row].item_id, []).append(row)
    many = [of for of in by_item.values() if len(of) > 1]
    if many:
        if "repeat" not in found:
            raise LogError(
                "{}: item {!r} stands here again", Place(table.at(many[0][1])),
                texts[many[0][0]].item_id, remedy=Remedy.ADD_REPEAT_COLUMN,
            )  # fmt: skip
        again = table.column(found["repeat"])
        for of in many:
            if len({_label(again[row]) for row in of}) < len(of):
                raise LogError(
                    "{}: the same repeat of an item stands here again", Place(table.at(of[-1])),
                    remedy=Remedy.ROWS_STAND_TWICE,
                )  # fmt: skip
    values = table.column(found["score"])
    score = np.full(len(by_item), np.nan)
    repeats = np.zeros(len(by_item), np.int32)
    for at, of in enumerate(by_item.values()):
        numbers = [
            number for row in of if (number := _checked(table, row, values[row])) is not None
        ]
        repeats[at] = len(numbers)
        score[at] = sum(numbers) / len(numbers) if numbers else np.nan
    notes = [f"up to {max(map(len, many))} repeats of an item, averaged"] if many else []
    column = mean_column(
        found["score"],
        score,
        repeats=repeats,
        higher_is_better=direction_of(table, found, rows),
    )
    return tuple(texts[of[0]] for of in by_item.values()), column, notes


def _wide(table: Table, found: Mapping[str, str], mapping: Mapping[str, str]) -> list[Log]:
    roles = {column for role, column in found.items() if role not in {"models", "model"}}
    if "models" in mapping:
        models = [name for name in mapping["models"].split("+") if name]
    else:
        reader = PartsReader()
        texts = set()
        row = {name: values[0] for name, values in table.columns.items() if name not in roles}
        if reader.read(row).question is not None:
            texts = {name for name in row if number_of(row[name]) is None}
        models = [name for name in table.columns if name not in roles | texts]
        # The gold label of a yes-or-no item looks like a score.
        odd = [
            name
            for name in models
            if plain(name) in _OF_ITEMS or not zero_to_one(table.column(name))
        ]
        if odd or not models or "id" not in found:
            raise NoScoresError(
                "{}: cannot tell which columns are scores among {}{}", table.file.path,
                Names([*table.columns]), _beyond(table, odd), remedy=Remedy.NAME_SCORE_COLUMNS,
            )  # fmt: skip
    items = _texts(table, found)
    ids = [items[row].item_id for row in range(len(table))]
    if len(set(ids)) < len(ids):
        again = next(at for at, name in enumerate(ids) if name in ids[:at])
        raise LogError(
            "{}: item {!r} stands here again", Place(table.at(again)), ids[again],
            remedy=Remedy.NAME_SCORE_COLUMNS,
        )  # fmt: skip
    shared = tuple(items[row] for row in range(len(table)))
    benchmarks = (
        {_label(v) for v in table.column(found["benchmark"])} if "benchmark" in found else {""}
    )
    if len(benchmarks) > 1:
        raise LogError(
            "{}: several benchmarks in a wide table", table.file.path, remedy=Remedy.SPLIT_FILE
        )
    logs = []
    higher = direction_of(table, found, range(len(table)))
    for model in models:
        score = _scores(table, table.column(model))
        key = (model, next(iter(benchmarks)), "")
        column = mean_column("score", score, higher_is_better=higher)
        logs.append(_log(table, key, shared, [column], []))
    return logs


def _beyond(table: Table, odd: Sequence[str]) -> str:
    """What keeps a column of numbers from being one of scores."""
    for name in odd:
        for row, value in enumerate(table.column(name)):
            number = number_of(value)
            if plain(name) in _OF_ITEMS or number is None:
                break
            if not math.isnan(number) and not 0 <= number <= 1:
                return f" ({table.at(row)}: {name!r} holds {number:.6g}, not within 0 to 1)"
    return ""


def _scores(table: Table, values: Sequence[Any]) -> NDArray[np.float64]:
    """A column as float64[n], nan where a cell is empty; a distinct cell is read once."""
    values = as_plain_list(values)
    try:
        numbers = {value: number_of(value) for value in set(values)}
    except TypeError:
        numbers = {None: None}
    if None in numbers.values():
        for row, value in enumerate(values):
            _checked(table, row, value)
    return np.array([numbers[value] for value in values], np.float64)


def _checked(table: Table, row: int, value: object) -> float | None:
    """A score, None where the cell says that there is none; LogError for anything else."""
    number = number_of(value)
    if number is None or math.isinf(number):
        raise LogError(
            "{}: {!r} is no score", Place(table.at(row)), str(value)[:40],
            remedy=Remedy.USE_KNOWN_SCORES,
        )  # fmt: skip
    return None if math.isnan(number) else number


def _texts(table: Table, found: Mapping[str, str]) -> dict[int, LoggedItem]:
    """The item of every row; equal rows of several models share one."""
    names = [
        name for name in table.columns if name not in set(found.values()) or name == found.get("id")
    ]
    roles = {role: found[role] for role in _TEXTS if role in found}
    reader = PartsReader(roles.get("question", ""), roles)
    wanted = [
        name
        for name in (*names, *roles.values())
        if any(isinstance(v, str | list | dict) for v in table.column(name)[:50])
    ]
    parts = {name: table.column(name) for name in wanted}
    rows: dict[int, LoggedItem] = {}
    known: dict[tuple[str, str | None], LoggedItem] = {}
    for row in range(len(table)):
        texts = reader.read({name: values[row] for name, values in parts.items()})
        name = _label(table.column(found["id"])[row]) if "id" in found else texts.question
        if not name:
            raise LogError(
                "{}: neither an id nor a question", Place(table.at(row)),
                remedy=Remedy.NAME_ID_COLUMN,
            )  # fmt: skip
        item = LoggedItem(
            item_id=name,
            question=texts.question,
            passage=texts.passage,
            choices=texts.choices,
            answer=texts.answer,
        )
        rows[row] = known.setdefault((name, texts.question), item)
    return rows


def _log(
    table: Table,
    key: Sequence[str],
    items: tuple[LoggedItem, ...],
    columns: list[ScoreColumn],
    notes: list[str],
) -> Log:
    model, benchmark, split = key[:3]
    naming = name_of(table.file.path)
    notes = ["a plain table: nothing to check the scores against", *notes]
    if table.open_end:
        notes.append("the last line has no line end: is the file whole?")
    return Log(
        tool=TABLE,
        path=str(table.file.path),
        digest=table.file.digest,
        model=model or naming.benchmark,
        benchmark=benchmark or (naming.benchmark if model else ""),
        split=split or None,
        items=items,
        columns=tuple(columns),
        notes=tuple(notes),
    )


def _renamed(column: ScoreColumn, metric: str) -> ScoreColumn:
    return replace(column, metric=metric)


def _label(value: object) -> str:
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "" if value is None else str(value).strip()
