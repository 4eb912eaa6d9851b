"""Read what a study is given: tables by what their columns are, and scores on one set of items."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contam.benchmark.mapping import QUESTION, plain
from contam.benchmark.paths import BenchmarkFile, expanded
from contam.detect.given import given_benchmark, is_table
from contam.errors import LogError, Names, Public, Statement, UsageError
from contam.rescore.annotations import ROLES
from contam.rescore.holdouts import item_numbers
from contam.rescore.join import refuse_partial
from contam.rescore.judging import join_logs, one_policy, open_verdicts
from contam.rescore.logs.log_files import GIVE_ROWS, LogFile
from contam.rescore.logs.plain_tables import Table, direction_of, load, number_of, text_of
from contam.rescore.logs.read import whole_logs
from contam.rescore.metrics import directed, main_metrics
from contam.rescore.panel import Split, labels_at, oriented
from contam.rescore.run import refuse_two_logs, series_of
from contam.rescore.stats.clusters import right_or_wrong

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contam.detect.given import Source
    from contam.detect.report import Report
    from contam.errors import Hint
    from contam.rescore import Bools, Floats, Ints
    from contam.rescore.annotations import Annotations, Judging
    from contam.rescore.judging import Verdicts
    from contam.rescore.logs.model import Log
    from contam.rescore.panel import Series


USUAL: Final[Mapping[str, tuple[str, ...]]] = {
    "model": ("model", "model_name", "name", "system"),
    "correct": ("correct", "n_correct", "right", "n_right", "hits", "passed"),
    "score": ("score", "accuracy", "acc", "mean", "value"),
    "n": ("n", "n_items", "items", "total", "size", "count"),
}
"""What a column is -> the names it usually has; the first that is there counts."""

FAMILY: Final[Mapping[str, tuple[str, ...]]] = {"family": ("family", "base_model")}
"""The column that says which models are made of one base: they are no independent ones."""

GIVE_SHARES: Final = "give shares from 0 to 1, or counts; a percent is a hundredth"


class Rows(Table):
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
        table = _loaded(given, called)
        super().__init__(table.file, table.columns, table.places, table.unit)
        if not len(self):
            raise self.fault("the file has no rows", hint="is it the right file, and whole?")
        for role in columns or {}:
            if role not in usual:
                known = Statement("known: {}", Public(", ".join(usual)))
                raise UsageError("{} is no kind of column of this table", role, hint=known)
        self._found = self.roles(usual, columns or {})

    @property
    def source(self) -> dict[str, Any]:
        """What run.json says of it."""
        return {
            "path": str(self.file.path),
            "sha256": self.file.digest,
            "rows": len(self),
            "columns": dict(self._found),
        }

    def has(self, role: str) -> bool:
        """Whether there is a column of this kind."""
        return role in self._found

    def texts(self, role: str, *, empty: bool = False) -> list[str]:
        """A column as texts. Raises LogError for an empty cell unless those are fine."""
        found = [text_of(value) for value in self.column(self._name(role))]
        if not empty and "" in found:
            row, hint = found.index(""), "is the file whole?"
            raise self.fault("{} is empty", Public(role), row=row, hint=hint)
        return found

    def numbers(self, role: str, *, empty: bool = False) -> Floats:
        """float64[rows]: a column as finite numbers, nan for an empty cell where those are fine."""
        return self.numbers_in(self._name(role), empty=empty)

    def numbers_in(self, name: str, *, empty: bool = False) -> Floats:
        """float64[rows]: a column by its own name, as above. Raises LogError with the row."""
        found = np.empty(len(self))
        for row, value in enumerate(self.column(name)):
            number = _number(value)
            if number is None or math.isinf(number):
                said = "{!r} in {!r} is no number"
                raise self.fault(said, str(value)[:40], name, row=row, hint="scores are numbers")
            if math.isnan(number) and not empty:
                raise self.fault("{!r} is empty", name, row=row, hint="is the file whole?")
            found[row] = number
        return found

    def texts_or_none(self, role: str) -> list[str]:
        """The same, "" for an empty cell, and everywhere where no column is of this kind."""
        return self.texts(role, empty=True) if self.has(role) else [""] * len(self)

    def known(self, role: str) -> Floats:
        """The same, nan for an empty cell, and everywhere where no column is of this kind."""
        return self.numbers(role, empty=True) if self.has(role) else np.full(len(self), math.nan)

    def shares(self, role: str) -> Floats:
        """The same within 0 and 1. Raises LogError for percents and anything else outside."""
        found = self.numbers(role)
        self.refuse_outside(found, self._name(role))
        return found

    def direction(self, rows: Sequence[int]) -> bool | None:
        """Whether more is better in these rows, by a column of the table; None without one."""
        return direction_of(self, self._found, rows)

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
                said, place = "{} {!r} has a row in {}, too", self.at(first)
                raise self.fault(said, Public(what), name, place, row=row, hint="rename one")

    def _name(self, role: str) -> str:
        if role not in self._found:
            said = "{}: no column is called {} or the like: name it under `columns`"
            raise UsageError(said, self.file.path, Public(role), hint=self.there)
        return self._found[role]


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


def _number(value: object) -> float | None:
    """A cell as a number, nan for an empty one, None for anything else."""
    found = number_of(value)
    # The score of an item may be "yes"; a count or a mean is none.
    is_word = isinstance(value, str) and found in {0, 1} and value.strip().isalpha()
    return None if is_word else found


_WHOLE: Final = 1e-6


def families(names: Sequence[str]) -> Ints:
    """int64[models]: equal for models of one family; "" is that of a model alone."""
    own = [f"family {name}" if name else str(at) for at, name in enumerate(names)]
    return np.unique(own, return_inverse=True)[1].astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Scores:
    """Scores of m models on one set of items; a higher one is better.

    name    of the set, as messages and tables call it
    score   float64[m], means within 0 and 1;  n  int64[m], items behind each
    items   by model, what each item scored; empty where only totals are given
    same_items  whether all models have the same items, in one order; for totals it is taken so
    family  the base that each model is made of, "" where not given; empty without such a column
    clean   the same on the items that verdicts call clean; None without verdicts
    sources, notes, coverage  what run.json says of the inputs
    """

    name: str
    models: tuple[str, ...]
    score: Floats
    n: Ints
    items: Mapping[str, Floats] = field(default_factory=dict)
    same_items: bool = True
    family: tuple[str, ...] = ()
    clean: Scores | None = None
    sources: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[str, ...] = ()
    coverage: Mapping[str, Any] = field(default_factory=dict)

    def count(self, at: int) -> tuple[float, int]:
        """Right answers and items of a model; a mean of shares counts as that many right."""
        return float(self.score[at]) * int(self.n[at]), int(self.n[at])

    def binary(self, at: int) -> bool:
        """Whether the items of a model are right or wrong, as far as is known."""
        items = self.items.get(self.models[at])
        if items is not None:
            return right_or_wrong(items)
        right = self.count(at)[0]
        return abs(right - round(right)) < _WHOLE * max(1.0, right)

    def only(self, models: Sequence[str]) -> Scores:
        """The same for these models alone, in this order."""
        place = {name: at for at, name in enumerate(self.models)}
        at = np.array([place[name] for name in models], np.int64)
        return replace(
            self,
            models=tuple(models),
            score=self.score[at],
            n=self.n[at],
            family=tuple(self.family[one] for one in at.tolist()) if self.family else (),
            clean=None,
        )


def read_scores(
    given: Source,
    name: str,
    *,
    columns: Mapping[str, str] | None = None,
    verdicts: Verdicts | None = None,
    policy: str = "",
    metric: str = "",
) -> Scores:
    """Scores on one set: a table with `model`, `n` and `correct` or `score`, or else logs.

    columns   role -> column, or NAME.role for the set of this name
    verdicts  of the items in logs; a table of totals cannot be split by them
    metric    of the logs, where they have several

    Raises LogError for anything that is not such a table or log, UsageError for verdicts of totals.
    """
    columns = columns_of(columns, name)
    if _is_totals(given, columns):
        if verdicts is not None:
            said = "{}: a table of totals cannot be split into clean and flagged items"
            raise UsageError(said, Public(name), hint=GIVE_ROWS)
        return _totals(given, name, columns)
    paths = [given] if _path(given) else list(given)
    # Whoever gave a table is not told of logs alone where it is missing.
    logs = open_logs(list(expanded(paths, f"table or log of the {name} set", LogError)), columns)
    if verdicts is None:
        series, notes = series_in(logs, item_numbers(logs), name, metric)
        return replace(_scores(series, name), sources=sources_of(name, logs), notes=notes)
    _, judging = judged_logs(logs, verdicts, policy)
    (flags,) = judging.flags
    numbers = [joined.index for joined in judging.joined]
    series, notes = series_in(logs, numbers, name, metric)
    masks = [Split.of(labels_at(flags, own.item)).clean for own in series]
    clean = [
        replace(own, score=own.score[mask], item=own.item[mask])
        for own, mask in zip(series, masks, strict=True)
    ]
    return replace(
        _scores(series, name),
        clean=_scores(clean, name) if all(mask.any() for mask in masks) else None,
        sources=sources_of(name, logs, verdicts=judging.source, policy=flags.policy),
        notes=(*judging.notes, *notes),
        coverage=judging.coverage,
    )


def _is_totals(given: Source, columns: Mapping[str, str] | None) -> bool:
    """Whether it is one table of models and scores, none of whose columns tells items."""
    if is_table(given) or (isinstance(given, list | tuple) and given and not _path(given[0])):
        return True
    paths = [given] if _path(given) else list(given)
    if len(paths) != 1 or not Path(paths[0]).is_file():
        return False
    file = LogFile(Path(paths[0]))
    if file.form not in ("table", "parquet", "lines", "list"):
        return False
    names = {plain(column) for column in load(file).columns}
    if names & _usual(*ROLES["id"]):
        # A row is an item, whatever else is counted beside it.
        return False
    if "n" in (columns or {}):
        return True
    # Scores of models, whose numbers of items were forgotten, are told so as totals.
    scored = names & _usual(*USUAL["correct"], *USUAL["score"]) and not names & _usual(*QUESTION)
    return bool(names & _usual(*USUAL["model"]) and (names & _usual(*USUAL["n"]) or scored))


def _usual(*columns: str) -> set[str]:
    return {plain(column) for column in columns}


def _path(given: object) -> bool:
    return isinstance(given, str | Path)


def _totals(given: Source, name: str, columns: Mapping[str, str] | None) -> Scores:
    source = given[0] if isinstance(given, list | tuple) and _path(given[0]) else given
    rows = Rows(source, name, usual={**USUAL, **FAMILY}, columns=columns)
    models = rows.texts("model")
    rows.refuse_doubles(models, "model")
    n = rows.numbers("n")
    wrong, hint = (n < 1) | (n != n.round()), "repair the row, or leave the file out"
    rows.refuse(wrong, "{} is no number of items", n, hint=hint)
    if rows.has("correct"):
        correct = rows.numbers("correct")
        wrong = (correct < 0) | (correct > n)
        rows.refuse(wrong, "{} is no number of right ones", correct, hint=GIVE_SHARES)
        score = correct / n
    else:
        score = rows.shares("score")
    return Scores(
        name=name,
        models=tuple(models),
        score=score,
        n=n.astype(np.int64),
        family=tuple(rows.texts("family", empty=True)) if rows.has("family") else (),
        sources=({"set": name, **rows.source},),
    )


def open_logs(paths: Sequence[str | Path], columns: Mapping[str, str] | None) -> Sequence[Log]:
    """The logs at some paths, one a model. Raises LogError."""
    logs = directed(whole_logs(paths, columns or None, skip_damaged=False).logs)
    refuse_two_logs(logs)
    return logs


def series_in(
    logs: Sequence[Log], numbers: Sequence[Ints], name: str, metric: str, *, several: bool = False
) -> tuple[list[Series], tuple[str, ...]]:
    """The main metric of every log, a higher score being better, and a note where it was turned.

    numbers  of each log's items;  several  whether logs may be of several benchmarks

    Raises LogError for logs of two benchmarks, and for scores that are no shares; UsageError where
    the metric is to be chosen.
    """
    pairs = zip(logs, numbers, strict=True)
    found = oriented([own for log, index in pairs for own in series_of(log, index)])
    main = main_metrics(found, [metric] if metric else ())
    if len(main) != 1 and not several:
        hint = Statement("known: {}", Names(sorted(main)))
        raise LogError("{} has logs of {} benchmarks", Public(name), len(main), hint=hint)
    for benchmark, chosen in main.items():
        if chosen.metric is None:
            known = sorted({own.metric for own in found if own.benchmark == benchmark})
            hint = Statement("metrics: {}", ", ".join(known))
            raise UsageError("{}: {} has several metrics", Public(name), benchmark, hint=hint)
    kept = [own for own in found if own.metric == main[own.benchmark].metric]
    for own in kept:
        if not own.is_share:
            said = "{}: {} of {} is no mean of shares between 0 and 1"
            raise LogError(said, Public(name), own.metric, own.model, hint=GIVE_SHARES)
    note = f"{name}: less is better, so scores are 1 - {kept[0].metric}"
    return kept, () if all(own.higher_is_better for own in found) else (note,)


def sources_of(name: str, logs: Sequence[Log], **more: object) -> tuple[Mapping[str, Any], ...]:
    """What run.json says of logs."""
    return tuple(
        {"set": name, "path": log.path, "sha256": log.digest, "model": log.model, **more}
        for log in logs
    )


def judged_logs(
    logs: Sequence[Log], verdicts: Verdicts, policy: str
) -> tuple[Report | Annotations, Judging]:
    """The verdicts, and what one policy of them says of the items of logs.

    Raises UsageError for another number of policies, LogError for logs of other items.
    """
    opened = open_verdicts(verdicts)
    judging = join_logs(opened, logs, [one_policy(opened, policy)])
    for log, joined in zip(logs, judging.joined, strict=True):
        refuse_partial(log, joined.index, judging.judged)
    return opened, judging


def _scores(series: Sequence[Series], name: str) -> Scores:
    order = [np.argsort(own.item, kind="stable") for own in series]
    items = [own.item[by] for own, by in zip(series, order, strict=True)]
    return Scores(
        name=name,
        models=tuple(own.model for own in series),
        score=np.array([own.score.mean() for own in series]),
        n=np.array([len(own.score) for own in series], np.int64),
        items={own.model: own.score[by] for own, by in zip(series, order, strict=True)},
        same_items=all(np.array_equal(one, items[0]) for one in items),
    )
