"""Arrange scores and verdicts as the arrays behind every re-scoring table."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

import numpy as np

from contam.benchmark.items import ItemName
from contam.corpus.dates import year_of
from contam.detect.labels import CLEAN, FLAGGED, LABELS, NOT_CHECKABLE
from contam.errors import InternalError, LogError, OutputError, Public
from contam.rescore.logs.model import combined, find_groups
from contam.rescore.metrics import say_which
from contam.rescore.stats.clusters import are_shares
from contam.rescore.stats.gain import LEAST
from contam.tables import schemas

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from contam.detect.report import Report
    from contam.rescore import Bools, Floats, Ints, Row
    from contam.rescore.logs.model import Setup

    Int8s = NDArray[np.int8]
    from collections.abc import Iterator

    from contam.rescore.logs.model import Log, TaskGroup

ALL: Final = "all"
"""Name of the subset that holds every item, and of what it is a subset by."""

_FLAGGED_CODES: Final = tuple(LABELS.index(name) for name in FLAGGED)


@dataclass(frozen=True, slots=True, kw_only=True)
class RescoreSettings:
    """What decides the figures, apart from scores and verdicts.

    least         items a subset needs before a gain or a ranking is estimated
    permutations  of a permutation test at first; draws  of random deletions at first. More are
                  made where p is small beside the number of tests it is adjusted over
    references    models that cannot have seen the corpus, with which gains are compared
    reference_benchmarks  a benchmark and one like it that nobody can have seen, pair by pair
    metrics       METRIC or BENCHMARK=METRIC: the main metrics, where the logs do not name them
    lower_is_better, higher_is_better  metrics by name whose direction is not what the log or the
                  name says
    all_metrics   pictures and the terminal show every metric, not the main ones only
    mixed_setups  runs with other examples, prompts or versions stand in one ranking
    """

    least: int = LEAST
    permutations: int = 10_000
    draws: int = 1_000
    sweep_permutations: int = 1_000
    seed: int = 0
    references: tuple[str, ...] = ()
    reference_benchmarks: tuple[tuple[str, str], ...] = ()
    metrics: tuple[str, ...] = ()
    lower_is_better: tuple[str, ...] = ()
    higher_is_better: tuple[str, ...] = ()
    all_metrics: bool = False
    mixed_setups: bool = False


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Flags:
    """What one policy says of the N items of a result, in the order of `items.parquet`.

    label          int8[N], an index into LABELS
    contamination  float64[N], the policy's score; nan where it gave none
    groups         what items can be told apart by -> a name for each item ("" for none)
    cluster        int64[N], equal for items that stand and fall together
    documents      float64[N], in which the item was found; None where that is not known
    """

    policy: str
    label: Int8s
    contamination: Floats
    groups: Mapping[str, NDArray[np.object_]]
    cluster: Ints
    threshold: float | None = None
    documents: Floats | None = None

    @property
    def flagged(self) -> Bools:
        """bool[N]: contaminated or suspect."""
        return np.isin(self.label, _FLAGGED_CODES)


class Units(NamedTuple):
    """Gives figures of a metric of which less is better its own units again; see `oriented`.

    offset  what its scores were taken from, None for a metric as it was logged
    """

    offset: float | None = None

    def level(self, value: float) -> float:
        """A score."""
        return self._minus(self.offset, value)

    def gain(self, value: float) -> float:
        """A difference of scores, or its statistic."""
        return self._minus(None if self.offset is None else 0.0, value)

    def levels(self, low: float, high: float) -> tuple[float, float]:
        """The limits of a score."""
        return self._ends(self.level(low), self.level(high))

    def gains(self, low: float, high: float) -> tuple[float, float]:
        """The limits of a difference."""
        return self._ends(self.gain(low), self.gain(high))

    def _ends(self, low: float, high: float) -> tuple[float, float]:
        return (low, high) if self.offset is None else (high, low)

    @staticmethod
    def _minus(offset: float | None, value: float) -> float:
        # Not -0.0, which reads as if something were lost.
        return value if offset is None or math.isnan(value) else offset - value + 0.0


AS_LOGGED: Final = Units()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Series:
    """One model's scores under one metric, over the n items of its log that were scored.

    score      float64[n], the tool's own per-item value after its reduction of repeats
    item       int64[n], place in the result's items, -1 where the log's item is not among them
    aggregate  the metric over a mask of the log's items: the mean, or a corpus metric's function
    additive   whether the metric is the mean of `score`
    strata     int64[n], the tasks of a group that weighs items alike: each keeps its weight on a
               subset, so that flags in easy tasks are no gain; None for one task
    answers    int64[n], how many answers each score is the mean of; None for one
    setup      examples, prompt and version, as far as the log records them
    named_main  the metric that the log calls its main one, None where it names none
    kind       "log" for a metric of a log, "group" for a number over several benchmarks, weighed as
               `weighting` says
    units      how its figures are shown, where less is better and `score` was flipped
    family     the model that it is one of several runs of, "" where it is the only one
    """

    model: str
    benchmark: str
    metric: str
    score: Floats
    item: Ints
    aggregate: Callable[[Bools], float]
    additive: bool
    notes: tuple[str, ...] = ()
    higher_is_better: bool = True
    strata: Ints | None = None
    answers: Ints | None = None
    setup: Setup = ()
    named_main: str | None = None
    units: Units = AS_LOGGED
    kind: Literal["log", "group"] = "log"
    weighting: str = ""
    family: str = ""

    @property
    def head(self) -> Row:
        """What it is a series of, as rows of tables begin."""
        names = ("model", "benchmark", "metric", "higher_is_better")
        return {name: getattr(self, name) for name in names}

    @property
    def plain(self) -> bool:
        """Whether the metric is the mean of `score` on any subset."""
        return self.additive and self.strata is None

    @property
    def is_share(self) -> bool:
        """Whether every score lies within 0 and 1, and the metric is their mean."""
        return self.additive and are_shares(self.score)


def oriented(series: Sequence[Series]) -> tuple[Series, ...]:
    """The series with scores of which more is better, so that all statistics read one way.

    Where less is better a share s becomes 1 - s, so that it stays a share, and any other score -s;
    one offset for all models of a benchmark and metric. `units` shows figures as they were logged.
    """
    shares: dict[tuple[str, str], bool] = {}
    for run in series:
        if not run.higher_is_better:
            key = (run.benchmark, run.metric)
            shares[key] = shares.get(key, True) and run.is_share
    found = []
    for run in series:
        key = (run.benchmark, run.metric)
        if run.higher_is_better and key in shares:
            raise InternalError(f"{run.metric} of {run.benchmark} counts both ways")
        found.append(run if run.higher_is_better else _flipped(run, 1.0 if shares[key] else 0.0))
    return tuple(found)


def _flipped(series: Series, offset: float) -> Series:
    return replace(
        series,
        score=offset - series.score,
        aggregate=lambda mask: offset - series.aggregate(mask),
        units=Units(offset),
    )


def labels_at(flags: Flags, places: Ints) -> Int8s:
    """int8[n]: the labels at places in the result's items; -1 is what was not judged."""
    found = np.full(len(places), NOT_CHECKABLE, np.int8)
    known = places >= 0
    found[known] = flags.label[places[known]]
    return found


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Split:
    """Masks of the scored items of one series under one policy: bool[n] each."""

    clean: Bools
    flagged: Bools
    unchecked: Bools

    @classmethod
    def of(cls, labels: Int8s) -> Split:
        """Split by label; `suspect` counts as flagged, as everywhere."""
        return cls(
            clean=labels == CLEAN,
            flagged=np.isin(labels, _FLAGGED_CODES),
            unchecked=labels == NOT_CHECKABLE,
        )


def flags_in(report: Report) -> dict[str, Flags]:
    """`flags_of` a folder of results. Raises OutputError when it contradicts itself."""
    try:
        thresholds = {
            name: float(min(definition["thresholds"].values()))
            for name, definition in report.run["parameters"]["policy_definitions"].items()
        }
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        said, hint = "{} does not say how its policies judge", "give the folder as contam wrote it"
        raise OutputError(said, report.folder, hint=hint) from error
    return flags_of(report.verdicts, report.items, report.evidence, thresholds)


def flags_of(
    verdicts: schemas.Table,
    items: schemas.Table,
    evidence: schemas.Table,
    thresholds: Mapping[str, float],
) -> dict[str, Flags]:
    """The verdicts of each policy as arrays over the rows of the items table.

    Raises OutputError for verdicts that are not one of each policy of items that are there.
    """
    places = zip(*(schemas.column(evidence, n) for n in ("shard", "row", "source")), strict=True)
    source = {(shard, row): name for shard, row, name in places}
    keys = list(zip(*(schemas.column(items, n) for n in ItemName._fields), strict=True))
    place = {key: at for at, key in enumerate(keys)}
    columns = {name: schemas.column(verdicts, name) for name in verdicts.schema.names}
    named = zip(*(columns[n] for n in ItemName._fields), strict=True)
    rows = np.array([place.get(key, -1) for key in named], np.int64)
    known = set(columns["policy"]) <= thresholds.keys() and set(columns["label"]) <= set(LABELS)
    if not known or len(place) < len(keys) or np.any(rows < 0):
        raise _contradiction()
    cluster = _clusters(items)
    # What an item id says before its last part: `anatomy/12` is of the subject anatomy.
    subjects = [name.rpartition("/")[0] for name in schemas.column(items, "item_id")]
    best = zip(columns["best_shard"], columns["best_row"], strict=True)
    names = {
        "exposure": columns["exposure"],
        "kind": [kind or "" for kind in columns["kind"]],
        "source": [source.get(place) or "" for place in best],
        "year": [*map(year_of, columns["best_date"])],
    }
    about = {by: np.array(values, object) for by, values in names.items()}
    labels = np.array([LABELS.index(label) for label in columns["label"]], np.int8)
    scores, documents = (np.array(columns[n], np.float64) for n in ("score", "n_documents"))
    policy = np.array(columns["policy"], object)
    result = {}
    for name in sorted(set(columns["policy"])):
        chosen = np.flatnonzero(policy == name)
        at = rows[chosen]
        if len(np.unique(at)) < len(at):
            raise _contradiction()
        groups = {by: _placed(values[chosen], at, subjects, "") for by, values in about.items()}
        result[name] = Flags(
            policy=name,
            label=_placed(labels[chosen], at, subjects, NOT_CHECKABLE),
            contamination=_placed(scores[chosen], at, subjects, np.nan),
            groups={**groups, "subject": np.array(subjects, object)},
            cluster=cluster,
            threshold=thresholds.get(name),
            documents=_placed(documents[chosen], at, subjects, 0),
        )
    return result


def _placed(
    values: NDArray[Any], at: Ints, items: Sequence[object], nothing: object
) -> NDArray[Any]:
    """An array over all items with values at some places."""
    found = np.full(len(items), nothing, values.dtype)
    found[at] = values
    return found


def _clusters(items: schemas.Table) -> Ints:
    """Items that share a passage or their content are one cluster."""
    passages = schemas.column(items, "passage_key")
    contents = schemas.column(items, "item_key")
    names = [passage or content for passage, content in zip(passages, contents, strict=True)]
    return np.unique(np.array(names, object).astype(str), return_inverse=True)[1].astype(np.int64)


def _contradiction() -> OutputError:
    return OutputError(
        "the verdicts and their items contradict each other",
        hint="give the folder as contam wrote it",
    )


GROUP: Final = "group"
"""What a row of a group's scores is a subset by; the subset is the weighting."""


def group_series(indices: Mapping[Log, Ints]) -> Iterator[Series]:
    """The series of each reported group number whose weighting is known.

    indices  log -> int64[n], places of its items in the result
    """
    taken = {log.benchmark for log in indices}
    for group in find_groups(indices):
        if group.weighting == "unknown":
            continue
        name = f"{group.name} (group)" if group.name in taken else group.name
        masks = [log.column(group.metric).scored for log in group.logs]
        pairs = list(zip(group.logs, masks, strict=True))
        alike = "item" if group.weighting == "micro" else "task"
        notes = (f"{len(group.logs)} tasks, every {alike} alike", *filter(None, [group.note]))
        micro = group.weighting == "micro"
        score = np.concatenate([log.column(group.metric).score[m] for log, m in pairs])
        strata = np.repeat(np.arange(len(masks)), [int(mask.sum()) for mask in masks])
        yield Series(
            model=group.model,
            benchmark=name,
            metric=group.metric,
            score=score,
            item=np.concatenate([indices[log][m] for log, m in pairs]),
            aggregate=partial(_within_tasks, score, strata)
            if micro
            else partial(_aggregate, group, masks),
            additive=micro,
            notes=notes,
            strata=strata if micro else None,
            higher_is_better=_higher(group),
            setup=combined([log.setup for log in group.logs]),
            kind="group",
            weighting=group.weighting,
        )


def _higher(group: TaskGroup) -> bool:
    """Which way a group's metric counts: that of its tasks, which must agree."""
    found = {log.column(group.metric).higher_is_better is not False for log in group.logs}
    if len(found) > 1:
        said = "the tasks of {} do not agree whether a higher {} is better"
        raise LogError(said, group.name, Public(group.metric), hint=say_which(group.metric))
    return found.pop()


def _within_tasks(score: Floats, strata: Ints, chosen: Bools) -> float:
    """The mean over a mask of items, with the weights that the tasks have among all items.

    A task without an item left has none.
    """
    weight = np.bincount(strata).astype(np.float64)
    n_left = np.bincount(strata[chosen], minlength=len(weight))
    sums = np.bincount(strata[chosen], weights=score[chosen], minlength=len(weight))
    left = n_left > 0
    return float((weight[left] * sums[left] / n_left[left]).sum() / weight[left].sum())


def _aggregate(group: TaskGroup, masks: Sequence[Bools], chosen: Bools) -> float:
    """The group's number over a mask of its scored items, the tasks one after the other."""
    cuts = np.cumsum([int(mask.sum()) for mask in masks])[:-1]
    whole = [np.zeros(len(mask), np.bool_) for mask in masks]
    for kept, mask, part in zip(whole, masks, np.split(chosen, cuts), strict=True):
        kept[np.flatnonzero(mask)[part]] = True
    return group.aggregate(whole)
