"""Read plain tables of scores: CSV, TSV, JSON or Parquet.

A row per model and item, a row per item and a column per model, or a row per model and a column
per item. A column is what its name and all its cells say; what stays open is an error that asks.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contam.benchmark.mapping import (
    ANSWER,
    ANSWER_INDEX,
    CHOICE_LISTS,
    PASSAGE,
    QUESTION,
    plain,
)
from contam.benchmark.paths import folder_name, name_of, stem_of
from contam.errors import LogError, Names, Public, Statement, UsageError
from contam.rescore.logs.log_files import GIVE_ROWS, LogReader, NoScoresError, PartsReader
from contam.rescore.logs.model import TABLE, Log, LoggedItem, ScoreColumn, mean_column
from contam.rescore.logs.plain_tables import (
    DIRECTIONS,
    Table,
    direction_of,
    load,
    mostly_scores,
    number_of,
    numbers_of,
    rows_inside,
    text_of,
    zero_to_one,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from contam.rescore import Ints
    from contam.rescore.logs.log_files import LogFile, Texts
    from contam.rescore.logs.plain_tables import Table


_ID: Final = (
    *("item_id", "instance_id", "question_id", "sample_id", "example_id", "doc_id", "task_id"),
    *("problem_id", "qid", "uid", "id", "idx", "index", "", "unnamed:_0"),
)
_SCORE: Final = (
    *("score", "correct", "is_correct", "passed", "is_passed", "pass", "pass@1", "solved"),
    *("is_solved", "success", "is_success", "resolved", "is_resolved", "reward", "acc", "accuracy"),
    *("exact_match", "em", "f1", "result", "preference"),
)
_NAMES: Final[dict[str, tuple[str, ...]]] = {
    "model": ("model", "model_name", "model_id", "system", "subject_id"),
    "benchmark": ("benchmark", "task", "dataset", "eval", "eval_name"),
    "split": ("split",),
    "metric": ("metric", "metric_name"),
    "repeat": ("repeat", "epoch", "seed", "trial", "run", "run_id", "attempt", "sample_index"),
    "cluster": ("cluster", "cluster_id", "passage_id", "story_id", "context_id", "template_id"),
    "date": ("date", "created", "created_at", "release_date", "contest_date", "timestamp"),
    **{name: (name,) for name in DIRECTIONS},
}
"""What a column is -> the names it usually has; the first that is there counts."""

MAPPABLE: Final = (
    *("id", "score", "models", *_NAMES, "covariate", "question", "passage", "choices", "gold"),
)
_COVARIATES: Final = frozenset(
    {
        *("difficulty", "level", "average", "mean", "median", "human", "length", "tokens", "cost"),
        *("time", "latency", "duration", "seconds", "weight", "rank", "confidence", "error"),
        *("incorrect", "wrong", "refusal", "refused", "hallucinated", "hallucination", "valid"),
        *("invalid", "max_score", "min_score"),
    }
)
"""What is known of items or answers, and is no model's score."""
_ABOUT: Final = (
    *("human_", "mean_", "average_", "avg_", "num_", "n_", "max_", "min_", "time_", "price_"),
    "cost_",
)
_OF_ITEMS: Final = frozenset({*ANSWER, *ANSWER_INDEX, *PASSAGE, *QUESTION, *CHOICE_LISTS})
_GOLD: Final = tuple(
    name
    for name in (*ANSWER, *ANSWER_INDEX)
    if name not in {"output", "completion", "code", "correct"}
)
_PREDICTED: Final = ("pred", "prediction", "predicted", "model_answer", "response", "model_output")

_NO_SCORES: Final = _OF_ITEMS | {*_ID, *_PREDICTED}

_TEXTS: Final = {**{part: part for part in ("question", "passage", "choices")}, "gold": "answer"}
SHOWN: Final = 6


def check_columns(columns: Mapping[str, str] | None) -> dict[str, str]:
    """A user's own word on the columns; UsageError for a part that is none."""
    for name in columns or {}:
        if name not in MAPPABLE:
            hint = Statement("known: {}", Public(", ".join(MAPPABLE)))
            raise UsageError("a log has no {!r}", name, hint=hint)
    return dict(columns or {})


class Roles:
    """What the columns of a table are: as mapped, or by the usual names and all cells.

    one     role -> its column; models: the columns of a wide table
    items   the columns of a table with a row per model, () for any other
    """

    def __init__(self, table: Table, mapping: Mapping[str, str]) -> None:
        self.table = table
        self.mapping = mapping
        self.one = {role: name for role, name in mapping.items() if name and role != "models"}
        self.models = [name for name in mapping.get("models", "").split("+") if name]
        self.items: tuple[str, ...] = ()
        for name in (*self.one.values(), *self.models):
            if not table.has_column(name):
                said = Statement("{}: no column {!r}", table.file.path, name)
                raise NoScoresError(said, hint=table.there)
        for role, usual in _NAMES.items():
            self._take(role, self._named(usual)[:1])
        if "repeat" not in mapping and "repeat" in self.one and not self._repeats():
            del self.one["repeat"]
        if not self.models and "score" not in mapping:
            self._find_scores()
        self._take("gold", self._named(_GOLD)[:1])
        if "id" not in mapping and not self.items:
            self._take("id", self._find_id())

    def _take(self, role: str, found: Sequence[str]) -> None:
        if role not in self.mapping and found:
            self.one[role] = found[0]

    def _free(self) -> list[str]:
        """Columns that are nothing yet."""
        taken = {*self.one.values(), *self.models, *self.mapping.values()}
        return [name for name in self.table.columns if name not in taken]

    def _named(self, usual: Iterable[str]) -> list[str]:
        by_name = {plain(name): name for name in reversed(self._free())}
        return [by_name[name] for name in usual if name in by_name]

    def _nested(self, usual: Iterable[str]) -> list[str]:
        """Fields of records under these names, in the order of the names."""
        taken = set(self.one.values())
        return [
            path
            for name in usual
            for path in self.table.nested
            if plain(path.rpartition(".")[2]) == name and path not in taken
        ]

    @cached_property
    def covariates(self) -> list[str]:
        """Columns that say something of an item or an answer, and are no model's score."""
        return [
            name
            for name in self._free()
            if plain(name) in _COVARIATES or plain(name).startswith(_ABOUT)
        ]

    def _find_scores(self) -> None:
        """The one column of scores, or the models whose columns hold them; LogError when unsure."""
        table = self.table
        named = self._filled(self._named(_SCORE)) or self._filled(self._nested(_SCORE))
        numbers = [name for name in self._numbers() if name not in named]
        rivals = [name for name in numbers if zero_to_one(table.column(name))]
        odd = [name for name in numbers if name not in rivals]
        model = self.one.get("model")
        if model and not named and not self._named(_ID):
            self._find_items(model, rivals, odd)
        elif len(named) == 1 and (model or not rivals or named[0] not in table.columns):
            self.one["score"] = named[0]
        elif not named and rivals and not model:
            self._find_models(rivals, odd)
        elif named or rivals:
            raise self._unsure([*named, *rivals])
        else:
            raise self._no_scores(odd)

    def _filled(self, names: Sequence[str]) -> list[str]:
        """Columns with a number, or with nothing: a `result` may be a word as "timed out"."""
        known = {name: [*map(number_of, self.table.column(name))] for name in names}
        return [
            name
            for name, numbers in known.items()
            if None not in numbers or any(n is not None and not math.isnan(n) for n in numbers)
        ]

    def _numbers(self) -> list[str]:
        """Columns of numbers, or of scores and some words, that no name says what they are."""
        return [
            name
            for name in self._free()
            if name not in self.covariates
            and plain(name) not in _NO_SCORES
            and (numbers_of(cells := self.table.column(name)) is not None or mostly_scores(cells))
        ]

    def _find_models(self, columns: Sequence[str], odd: Sequence[str]) -> None:
        """The models of a table with a row per item; LogError where rows may be the models."""
        if odd:
            raise self._unsure([*columns, *odd], _beyond(self.table, odd[0]))
        if len(columns) > len(self.table) > 1 and "id" not in self.mapping:
            column = next(iter(self._named(_ID)), next(iter(self.table.columns)))
            hint = Statement(
                "a row per model: --columns model={}; a row per item: --columns id={}",
                *(column, column),
            )
            said = "{} columns of scores and {} rows: is a row a model or an item?"
            raise self.table.fault(said, len(columns), len(self.table), hint=hint)
        self.models = [*columns]

    def _find_items(self, model: str, columns: Sequence[str], odd: Sequence[str]) -> None:
        """The items of a table with a row per model; NoScoresError for means."""
        table = self.table
        columns = columns or [name for name in table.nested if zero_to_one(table.column(name))]
        if not columns:
            raise self._no_scores(odd)
        # An item with a word among its scores is one all the same: the word is an error later.
        columns = [*columns, *(name for name in odd if numbers_of(table.column(name)) is None)]
        whole = all({*(numbers_of(table.column(name)) or ())} <= {0, 1} for name in columns)
        names = [text_of(name) for name in table.column(model)]
        if len(columns) < 2 or not whole or len(set(names)) < len(names):  # noqa: PLR2004 - items
            raise _means(table)
        self.items = tuple(columns)

    def _unsure(self, found: Sequence[str], why: str = "") -> LogError:
        leaves = {name.rpartition(".")[2] for name in found}
        several = len(leaves) == 1 or all(name in self.table.columns for name in found)
        rest = [name for name in found if plain(name) not in _SCORE] or found
        hint = Statement(
            "one model: --columns score={}; a column per model: --columns models={}",
            *(found[0], "+".join(rest[:SHOWN]) if several else "A+B"),
        )
        named = " or ".join(map(repr, found[:SHOWN])), Public(more(found)), why
        return self.table.fault("the scores may be in {}{}{}", *named, hint=hint)

    def _no_scores(self, odd: Sequence[str]) -> NoScoresError:
        table = self.table
        predicted, gold = self._named(_PREDICTED)[:1], self._named((*_GOLD, "correct"))[:1]
        if predicted and gold:
            said = "{}: predictions ({!r}) and right answers ({!r}), no scores"
            hint = "add a column `score` of 0 and 1: how an answer counts is the tool's to say"
            return NoScoresError(said, table.file.path, predicted[0], gold[0], hint=hint)
        usual = [*self._named(_SCORE), *odd]
        why = next((said for name in usual if (said := _beyond(table, name))), "")
        if self.covariates:
            why += f" ({', '.join(sorted(self.covariates)[:SHOWN])}: not a score by its name)"
        names = [*table.columns]
        said = "{}: cannot tell which columns are scores among {}{}{}"
        facts = table.file.path, Names(names[:SHOWN]), Public(more(names)), why
        hint = "name it: --columns score=COLUMN,id=COLUMN (or models=A+B for a column per model)"
        return NoScoresError(said, *facts, hint=hint)

    def cells(self, role: str) -> Sequence[Any]:
        """The cells of a role, None in all rows where no column has it."""
        return self.table.column(self.one[role]) if role in self.one else [None] * len(self.table)

    def _repeats(self) -> bool:
        """Whether a column numbers repeats, and not rows: one of its values comes back."""
        counts = Counter(zip(self.keys, map(text_of, self.cells("repeat")), strict=True))
        return max(counts.values()) > 1 or len(self.table) == 1

    @cached_property
    def keys(self) -> list[tuple[str, ...]]:
        """Model, benchmark, split and metric of every row."""
        return [tuple(map(text_of, key)) for key in zip(*map(self.cells, _KEYS), strict=True)]

    @cached_property
    def texts(self) -> list[Texts]:
        """The texts of every row."""
        given = {p: self.mapping[role] for role, p in _TEXTS.items() if self.mapping.get(role)}
        # The gold label of an item is one of its texts; the other roles say something else.
        taken = {name for role, name in self.one.items() if role not in {"gold", "id"}}
        names = [name for name in self.table.columns if name not in {*taken, *self.models}]
        every = {name: self.table.column(name) for name in (*names, *given.values())}
        wanted = {
            name: cells
            for name, cells in every.items()
            if any(isinstance(cell, str | list | dict) for cell in cells)
        }
        reader = PartsReader(given.get("question", ""), given)
        return [
            reader.read({name: column[row] for name, column in wanted.items()})
            for row in range(len(self.table))
        ]

    def _find_id(self) -> list[str]:
        """The first column that tells the items of a model and run apart, [] for the question.

        Rows with other questions are other items: a column that gives them one name is no id.
        """
        keys = list(zip(self.keys, map(text_of, self.cells("repeat")), strict=True))
        found = [*self._named(_ID), *self._nested(_ID)]
        for name in found:
            labels = [text_of(cell) for cell in self.table.column(name)]
            apart = len(set(zip(keys, labels, strict=True))) == len(labels)
            pairs = {(name, texts.question) for name, texts in zip(labels, self.texts, strict=True)}
            if apart and all(labels) and len({name for name, _ in pairs}) == len(pairs):
                return [name]
        if all(texts.question for texts in self.texts):
            return []
        if not found and "model" in self.one:
            raise _means(self.table)
        return found

    def told(self) -> tuple[tuple[str, str], ...]:
        """Role -> columns, as a user reads and writes them."""
        about = [name for name in self.covariates if name in self._free()]
        several = {"models": self.models, "covariate": about}
        lists = {role: "+".join(names) for role, names in several.items() if names}
        return tuple({**self.one, **lists}.items())


_KEYS: Final = ("model", "benchmark", "split", "metric")


def _means(table: Table) -> NoScoresError:
    return NoScoresError("{}: means per model, no scores of items", table.file.path, hint=GIVE_ROWS)


def more(names: Sequence[str]) -> str:
    """How many names stay unsaid."""
    return f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""


def _beyond(table: Table, name: str) -> str:
    """What keeps a column of numbers from being one of scores."""
    for row, value in enumerate(table.column(name)):
        number = number_of(value)
        if number is None:
            return f" ({table.at(row)}: {name!r} holds {str(value)[:40]!r}, no number)"
        if not math.isnan(number) and not 0 <= number <= 1:
            return f" ({table.at(row)}: {name!r} holds {number:.6g}, not within 0 to 1)"
    return ""


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
        turn = (name, text_of(repeats[row]))
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
        item_id = text_of(name) or texts.question
        if not item_id:
            hint = "name one: --columns id=COLUMN"
            raise table.fault("neither an id nor a question", row=row, hint=hint)
        parts = texts._asdict() | ({} if texts.question else {"answer": text_of(gold) or None})
        found.append(LoggedItem(item_id=item_id, cluster=text_of(cluster) or None, **parts))
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
