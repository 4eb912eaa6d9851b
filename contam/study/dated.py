"""Read dated scores, and test whether they fall at a day."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contam.benchmark import catalogue
from contam.corpus.dates import span_of
from contam.detect.labels import CLEAN
from contam.detect.report import Report
from contam.errors import LogError, Names, Statement, UsageError
from contam.rescore.holdouts import item_numbers
from contam.rescore.panel import labels_at
from contam.rescore.stats.clusters import Estimate, difference_of
from contam.rescore.stats.permutation import drawn_p
from contam.study.by_name import RELEASED
from contam.study.inputs import (
    USUAL,
    Rows,
    columns_of,
    judged_logs,
    open_logs,
    refuse_unknown_sides,
    series_in,
    sources_of,
)
from contam.tables import schemas

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contam.detect.given import Source
    from contam.rescore import Bools, Floats, Ints
    from contam.rescore.annotations import Annotations, Judging
    from contam.rescore.judging import Verdicts
    from contam.rescore.logs.model import Log

    Days = tuple[int, int]

_REMOVE_ONE_OR_NAME_APART: Final = "remove one of the two, or name them apart"


STRATA: Final = ("platform", "difficulty")
"""Columns of the dates that are strata unless others are named."""

_MOST_NAMED: Final = 5
_DATES: Final[Mapping[str, Sequence[str]]] = {
    "item": ("item", "item_id", "id", "question_id", "problem_id", "task_id"),
    "date": ("date", "release_date", "released", "published", "created", "contest_date"),
    "model": USUAL["model"],
}
_CUTOFFS: Final[Mapping[str, Sequence[str]]] = {
    "model": USUAL["model"],
    "cutoff": ("cutoff", "cutoff_date", "data_cutoff", "knowledge_cutoff", "training_cutoff"),
}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Dated:
    """Scores of m models on n items with dates, the items in the order of their days.

    score       float64[m, n], nan where a model has none; a higher one is better
    first, last  int64[n], days as proleptic ordinals between which an item came out
    strata      int64[n], 0 for all where there are none; strata_names  columns they are made of
    cutoffs     model -> first and last day that its data may end on
    clean       bool[n] by the verdicts, None without them
    documents   for each item that is flagged, the dates of the documents that match it; None
                without a scan
    """

    models: tuple[str, ...]
    score: Floats
    first: Ints
    last: Ints
    strata: Ints
    strata_names: tuple[str, ...]
    cutoffs: Mapping[str, Days]
    clean: Bools | None = None
    documents: Mapping[int, tuple[str | None, ...]] | None = None
    policy: str = ""
    sources: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[str, ...] = ()
    coverage: Mapping[str, Any] = field(default_factory=dict)


def read_dated(
    logs: str | Path | Sequence[str | Path],
    dates: Source | None,
    *,
    cutoffs: Mapping[str, str] | Source | None,
    strata: Sequence[str] | None,
    verdicts: Verdicts | None,
    policy: str,
    metric: str,
    columns: Mapping[str, str] | None,
) -> Dated:
    """See `contam.study.dates.time`."""
    refuse_unknown_sides(columns, ("logs", "dates", "cutoffs"))
    paths = [Path(path) for path in ([logs] if isinstance(logs, str | Path) else logs)]
    if dates is None and (len(paths) != 1 or paths[0].is_dir()):
        raise UsageError(
            "several logs need a table of the dates of their items",
            hint="or --dates released: the months in which their benchmarks came out",
        )
    named = STRATA if strata is None else strata
    usual = {**_DATES, **{name: (name,) for name in named}}
    own = _marked(columns, "logs")
    named_so = isinstance(dates, str | Path) and str(dates) == RELEASED
    by_release = named_so and not Path(RELEASED).exists()
    if by_release:
        found = open_logs(paths, own)
        numbers = item_numbers(found)
        rows = Rows(_released(found, numbers), RELEASED, usual=usual)
        names = [[str(number) for number in index.tolist()] for index in numbers]
    else:
        given = paths[0] if dates is None else dates
        rows = Rows(given, "dates", usual=usual, columns=columns_of(columns, "dates"))
        found = open_logs(paths, _roles(rows, own) if dates is None else own)
        numbers = item_numbers(found)
        names = [[item.item_id for item in log.items] for log in found]
    kinds = tuple(name for name in named if strata or rows.has(name))
    series, turned = series_in(found, numbers, "logs", metric, several=by_release)
    number_of = {
        item: number
        for some, index in zip(names, numbers, strict=True)
        for item, number in zip(some, index.tolist(), strict=True)
    }
    n_items = 1 + max(int(index.max()) for index in numbers)
    if len(number_of) < n_items:
        said = "one item id stands for several questions of the logs"
        raise LogError(said, hint=_REMOVE_ONE_OR_NAME_APART)
    days, strata_of, notes = _items(rows, kinds)
    undated = [item for item in number_of if item not in days]
    if len(undated) == n_items:
        hint = "are its ids those of the logs? questions join better than ids"
        raise rows.fault("none of the items of the logs has a date", hint=hint)
    if undated:
        more = ", ..." if len(undated) > _MOST_NAMED else ""
        notes.append(
            f"{len(undated)} of {n_items} items have no date and are left out:"
            f" {', '.join(undated[:_MOST_NAMED])}{more}"
        )
    kept = sorted(number_of.keys() & days.keys(), key=lambda item: (days[item], item))
    at = np.array([number_of[item] for item in kept], np.int64)
    models = tuple(dict.fromkeys(one.model for one in series))
    score = np.full((len(models), n_items), np.nan)
    for one in series:
        score[models.index(one.model), one.item] = one.score
    first, last = np.array([days[item] for item in kept], np.int64).T
    codes = [
        np.unique([strata_of[item][column] for item in kept], return_inverse=True)[1]
        for column in range(len(kinds))
    ]
    cutoff_days, cutoff_notes, cutoff_sources = _cutoffs(cutoffs, models, columns)
    read = Dated(
        models=models,
        score=score[:, at],
        first=first,
        last=last,
        strata=_crossed(*codes) if codes else np.zeros(len(kept), np.int64),
        strata_names=kinds,
        cutoffs=cutoff_days,
        sources=({"set": "dates", **rows.source}, *sources_of("logs", found), *cutoff_sources),
        notes=(*turned, *notes, *cutoff_notes),
    )
    if verdicts is None:
        return read
    opened, judging = judged_logs(found, verdicts, policy)
    place = np.full(n_items, -1, np.int64)
    for index, joined in zip(numbers, judging.joined, strict=True):
        place[index] = joined.index
    return _judged(read, place[at], opened, judging)


def _judged(read: Dated, place: Ints, opened: Report | Annotations, judging: Judging) -> Dated:
    """What verdicts say of the items; place  int64[n], row of each item there, -1 for none."""
    (flags,) = judging.flags
    documents = None
    if isinstance(opened, Report):
        matched = _documents(opened)
        flagged = np.flatnonzero((place >= 0) & flags.flagged[place]).tolist()
        documents = {at: matched.get(int(place[at]), ()) for at in flagged}
    return replace(
        read,
        clean=labels_at(flags, place) == CLEAN,
        documents=documents,
        policy=flags.policy,
        sources=(*read.sources, {"set": "verdicts", **judging.source}),
        notes=(*judging.notes, *read.notes),
        coverage=judging.coverage,
    )


def days_of(text: str) -> Days | None:
    """First and last day that a date may mean, as proleptic ordinals; None for what is none."""
    span = span_of(text)
    return None if span is None else (span[0].toordinal(), span[1].toordinal())


def iso(day: int) -> str:
    """A proleptic ordinal as 2021-06-30."""
    return dt.date.fromordinal(day).isoformat()


def _marked(columns: Mapping[str, str] | None, side: str) -> dict[str, str]:
    """Columns of one input: its roles are not those of the dates, so each must name it."""
    given = {role: name for role, name in (columns or {}).items() if "." in role}
    return columns_of(given, side)


def _roles(rows: Rows, own: Mapping[str, str]) -> dict[str, str]:
    """How the reader of logs is to take a table that has the dates, too."""
    taken = rows.source["columns"]
    found = {"id": taken.get("item", ""), **own}
    if not rows.has("model") and "models" not in own:
        names = [name for name in rows.columns if name not in taken.values()]
        if odd := [name for name in names if "+" in name or "," in name]:
            raise UsageError(
                "{}: rename the column {!r}: it has a + or comma", rows.file.path, odd[0]
            )
        found["models"] = "+".join(names)
    return {role: name for role, name in found.items() if name}


def _days(rows: Rows, role: str) -> list[Days | None]:
    """A column of dates, None for empty cells. Raises LogError for what is no date."""
    found = []
    for row, text in enumerate(rows.texts(role, empty=True)):
        days = days_of(text)
        if text and days is None:
            said, hint = "{!r} is no date such as 2024-01-31", "is the file whole?"
            raise rows.fault(said, text[:40], row=row, hint=hint)
        found.append(days)
    return found


def _released(logs: Sequence[Log], numbers: Sequence[Ints]) -> list[dict[str, str]]:
    """A table of dates: the month in which the benchmark of each log came out.

    Raises UsageError for a log of a benchmark that the catalogue does not know, or not the month.
    """
    months: dict[str, str] = {}
    for name in {log.benchmark for log in logs}:
        entry = catalogue.of_task(name)
        months[name] = entry.released if entry else ""
    if unknown := sorted(name for name, month in months.items() if not month):
        raise UsageError(
            "no release month is known for {}", Names(unknown),
            hint="give a table of dates, or leave their logs out; `contam benchmarks` lists months",
        )  # fmt: skip
    return [
        {"item": str(number), "date": months[log.benchmark]}
        for log, index in zip(logs, numbers, strict=True)
        for number in index.tolist()
    ]


def _items(
    rows: Rows, kinds: Sequence[str]
) -> tuple[dict[str, Days], dict[str, tuple[str, ...]], list[str]]:
    """Days and strata of the items; an item with several dates came out between them."""
    items, strata = rows.texts("item"), [rows.texts(name) for name in kinds]
    found: dict[str, Days] = {}
    strata_of: dict[str, tuple[str, ...]] = {}
    several = set()
    for row, (item, days) in enumerate(zip(items, _days(rows, "date"), strict=True)):
        kind = tuple(own[row] for own in strata)
        if strata_of.setdefault(item, kind) != kind:
            said = "item {!r} is in another stratum in an earlier row"
            raise rows.fault(said, item, row=row, hint=_REMOVE_ONE_OR_NAME_APART)
        if days is not None and (known := found.setdefault(item, days)) != days:
            several.add(item)
            found[item] = (min(known[0], days[0]), max(known[1], days[1]))
    note = f"{len(several)} items have several dates and came out between them"
    return found, strata_of, [note] if several else []


def _cutoffs(
    given: Mapping[str, str] | Source | None,
    models: Sequence[str],
    columns: Mapping[str, str] | None,
) -> tuple[dict[str, Days], list[str], list[Mapping[str, Any]]]:
    """Model -> the days on which its data may end, with notes and what run.json says of them."""
    if given is None or (isinstance(given, dict) and not given):
        return {}, [], []
    if isinstance(given, dict):
        if unknown := sorted(set(given) - set(models)):
            hint = Statement("models: {}", Names(models))
            said = "no scores of the model {!r}, which has a cutoff"
            raise UsageError(said, unknown[0], hint=hint)
        given = [{"model": model, "cutoff": str(day)} for model, day in given.items()]
    rows = Rows(given, "cutoffs", usual=_CUTOFFS, columns=_marked(columns, "cutoffs"))
    names = rows.texts("model")
    rows.refuse_doubles(names, "model")
    ends = zip(names, _days(rows, "cutoff"), strict=True)
    found = {model: days for model, days in ends if days is not None and model in models}
    without = [model for model in models if model not in found]
    notes = [f"no cutoff is given for {', '.join(without)}"] if without else []
    return found, notes, [{"set": "cutoffs", **rows.source}]


def _documents(report: Report) -> dict[int, tuple[str | None, ...]]:
    """Row of the items table -> dates of the documents in its evidence, each document once."""
    keys = ("benchmark", "split", "item_id")
    items = zip(*(schemas.column(report.items, name) for name in keys), strict=True)
    row_of = {key: at for at, key in enumerate(items)}
    found: dict[int, dict[tuple[str, int], str | None]] = {}
    for row in schemas.rows(report.evidence.select([*keys, "shard", "row", "date"])):
        documents = found.setdefault(row_of[tuple(row[name] for name in keys)], {})
        documents[row["shard"], row["row"]] = row["date"]
    return {at: tuple(own.values()) for at, own in found.items()}


_HAIR: Final = 1e-9
_BLOCK_CELLS: Final = 1 << 21


def drop(before: Floats, after: Floats) -> Estimate:
    """Mean before a cutoff less mean after it, with Welch's standard error.

    Raises ValueError for fewer than two items on a side.
    """
    if min(len(before), len(after)) <= 1:
        raise ValueError("a drop needs two items before and two after the cutoff")
    return difference_of(before, after)


def stratified_drop(
    before: Floats, after: Floats, strata: tuple[Ints, Ints]
) -> tuple[Estimate, float]:
    """The drop within strata, each weighed by its items, and the share of the items in these.

    strata  of the items before and after, numbered alike; those with two items on either side count

    nan where no stratum has.
    """
    sides = [
        (before[strata[0] == kind], after[strata[1] == kind]) for kind in np.intersect1d(*strata)
    ]
    sides = [pair for pair in sides if min(map(len, pair)) > 1]
    n = np.array([len(first) + len(second) for first, second in sides], np.float64)
    if not sides:
        return Estimate(np.nan, np.nan, 0.0), 0.0
    parts = [drop(*pair) for pair in sides]
    weights = n / n.sum()
    squares = (weights * np.array([part.error for part in parts])) ** 2
    # A stratum whose scores are all equal has no error to add.
    varies = squares > 0
    total = float(squares[varies].sum())
    df = np.array([part.df for part in parts])[varies]
    estimate = Estimate(
        value=float(weights @ np.array([part.value for part in parts])),
        error=float(np.sqrt(total)) if total else np.nan,
        # Welch and Satterthwaite's, over all strata.
        df=total**2 / float((squares[varies] ** 2 / df).sum()) if total else 0.0,
    )
    return estimate, float(n.sum()) / (len(before) + len(after))


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """The cutoff at which scores fall or rise most.

    day     the last day before it, as a proleptic ordinal
    z       standardised drop there, below 0 for a rise;  n_cutoffs  how many cutoffs were tried
    p       (1 + permutations with a cutoff as sharp) / (1 + permutations): the search is paid for
    """

    day: int
    z: float
    p: float
    n_cutoffs: int


def scan(
    scores: Floats,
    day: Ints,
    *,
    strata: Ints | None = None,
    least: int = 20,
    permutations: int = 2_000,
    most: int = 0,
    seed: int = 0,
) -> Scan | None:
    """Try every cutoff that leaves `least` items on either side; None where there is none.

    permutations  draws at first; most  draws where p is small beside a family of tests

    The statistic is the difference of means over its error if dates meant nothing, of scores less
    the mean of their stratum; p by dealing the dates out anew within strata.
    """
    n = len(scores)
    order = np.argsort(day, kind="stable")
    days = day[order]
    kind = np.zeros(n, np.int64) if strata is None else np.unique(strata, return_inverse=True)[1]
    kind = kind[order]
    sizes = np.bincount(kind)
    rest = scores[order] - (np.bincount(kind, weights=scores[order]) / sizes)[kind]
    cuts = np.flatnonzero(np.diff(days) > 0) + 1
    cuts = cuts[(cuts >= least) & (cuts <= n - least)]
    deviation = float(np.sqrt((rest @ rest) / max(1, n - len(sizes))))
    if not len(cuts) or deviation <= _HAIR:
        return None
    # The residuals add up to 0: the sum before a cutoff says what the sum after it is.
    scale = (1 / cuts + 1 / (n - cuts)) / (deviation * np.sqrt(1 / cuts + 1 / (n - cuts)))
    z = np.cumsum(rest)[cuts - 1] * scale
    best = int(np.abs(z).argmax())
    reached = abs(float(z[best])) * (1 - _HAIR)
    rng = np.random.default_rng(seed)
    places = [np.flatnonzero(kind == stratum) for stratum in range(len(sizes))]

    def hits_in(draws: int) -> int:
        hits, step = 0, max(1, _BLOCK_CELLS // n)
        for begin in range(0, draws, step):
            dealt = np.tile(rest, (min(step, draws - begin), 1))
            for own in places:
                dealt[:, own] = rng.permuted(dealt[:, own], axis=1)
            sums = np.cumsum(dealt, axis=1)[:, cuts - 1]
            hits += int(np.count_nonzero(np.abs(sums * scale).max(axis=1) >= reached))
        return hits

    return Scan(
        day=int(days[cuts[best] - 1]),
        z=float(z[best]),
        p=drawn_p(hits_in, permutations, most).p,
        n_cutoffs=len(cuts),
    )


def _crossed(*labels: Ints) -> Ints:
    """One stratum number for every combination that occurs."""
    code = np.zeros(len(labels[0]), np.int64)
    for label in labels:
        code = code * (int(label.max(initial=0)) + 1) + label
        code = np.unique(code, return_inverse=True)[1].astype(np.int64)
    return code
