"""Read the scores of models on one set of items: a table of totals, or logs with verdicts."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contam.benchmark.field_names import QUESTION, plain
from contam.benchmark.paths import expanded
from contam.detect.given import is_table
from contam.errors import LogError, Names, Public, Statement, UsageError
from contam.rescore.annotations import ROLES
from contam.rescore.complete import refuse_partial, whole_logs
from contam.rescore.holdouts import item_numbers
from contam.rescore.judging import join_logs, one_policy, open_verdicts
from contam.rescore.logs.log_files import GIVE_ROWS, LogFile
from contam.rescore.logs.tools.plain_tables import load
from contam.rescore.metrics import directed, main_metrics
from contam.rescore.panel import Split, labels_at, oriented
from contam.rescore.run import refuse_two_logs, series_of
from contam.rescore.stats.clusters import right_or_wrong
from contam.study.inputs import GIVE_SHARES, USUAL, Rows, columns_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contam.detect.given import Source
    from contam.detect.report import Report
    from contam.rescore.annotated import Judging
    from contam.rescore.annotations import Annotations
    from contam.rescore.arrays import Floats, Ints
    from contam.rescore.judging import Verdicts
    from contam.rescore.logs.model import Log
    from contam.rescore.panel import Series

_WHOLE: Final = 1e-6


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Scores:
    """Scores of m models on one set of items; a higher one is better.

    name    of the set, as messages and tables call it
    score   float64[m], means within 0 and 1;  n  int64[m], items behind each
    items   by model, what each item scored; empty where only totals are given
    same_items  whether all models have the same items, in one order; for totals it is taken so
    more    further columns of a table of totals, float64[m] by name, nan where empty
    clean   the same on the items that verdicts call clean; None without verdicts
    sources, notes, coverage  what run.json says of the inputs
    """

    name: str
    models: tuple[str, ...]
    score: Floats
    n: Ints
    items: Mapping[str, Floats] = field(default_factory=dict)
    same_items: bool = True
    more: Mapping[str, Floats] = field(default_factory=dict)
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
            more={name: values[at] for name, values in self.more.items()},
            clean=None,
        )


def read_scores(
    given: Source,
    name: str,
    *,
    columns: Mapping[str, str] | None = None,
    more: Mapping[str, Sequence[str]] | None = None,
    verdicts: Verdicts | None = None,
    policy: str = "",
    metric: str = "",
) -> Scores:
    """Scores on one set: a table with `model`, `n` and `correct` or `score`, or else logs.

    columns   role -> column, or NAME.role for the set of this name
    more      further roles of a table of totals -> their usual names
    verdicts  of the items in logs; a table of totals cannot be split by them
    metric    of the logs, where they have several

    Raises LogError for anything that is not such a table or log, UsageError for verdicts of totals.
    """
    columns = columns_of(columns, name)
    if _is_totals(given, columns):
        if verdicts is not None:
            said = "{}: a table of totals cannot be split into clean and flagged items"
            raise UsageError(said, Public(name), hint=GIVE_ROWS)
        return _totals(given, name, columns, more or {})
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


def _totals(
    given: Source,
    name: str,
    columns: Mapping[str, str] | None,
    more: Mapping[str, Sequence[str]],
) -> Scores:
    source = given[0] if isinstance(given, list | tuple) and _path(given[0]) else given
    rows = Rows(source, name, usual={**USUAL, **more}, columns=columns)
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
        more={role: rows.numbers(role, empty=True) for role in more if rows.has(role)},
        sources=({"set": name, **rows.source},),
    )


def open_logs(paths: Sequence[str | Path], columns: Mapping[str, str] | None) -> Sequence[Log]:
    """The logs at some paths, one a model. Raises LogError."""
    logs = directed(whole_logs(paths, columns or None, skip_damaged=False)[0])
    refuse_two_logs(logs)
    return logs


def series_in(
    logs: Sequence[Log], numbers: Sequence[Ints], name: str, metric: str
) -> tuple[list[Series], tuple[str, ...]]:
    """The main metric of every log, a higher score being better, and a note where it was turned.

    numbers  of each log's items

    Raises LogError for logs of two benchmarks, and for scores that are no shares; UsageError where
    the metric is to be chosen.
    """
    pairs = zip(logs, numbers, strict=True)
    found = oriented([own for log, index in pairs for own in series_of(log, index)])
    main = main_metrics(found, [metric] if metric else ())
    if len(main) != 1:
        hint = Statement("known: {}", Names(sorted(main)))
        raise LogError("{} has logs of {} benchmarks", Public(name), len(main), hint=hint)
    ((benchmark, chosen),) = main.items()
    if chosen.metric is None:
        known = sorted({own.metric for own in found})
        hint = Statement("metrics: {}", ", ".join(known))
        raise UsageError("{}: {} has several metrics", Public(name), benchmark, hint=hint)
    kept = [own for own in found if own.metric == chosen.metric]
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
