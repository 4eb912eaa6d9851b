"""Read scores of items that have dates: logs, a table of dates, cutoffs, and verdicts."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contam.corpus.dates import span_of
from contam.detect.labels import CLEAN
from contam.detect.report import Report
from contam.errors import LogError, Names, Remedy, UsageError
from contam.rescore.holdouts import item_numbers
from contam.rescore.panel import labels_at
from contam.rescore.stats.difficulty import crossed
from contam.study.inputs import USUAL, Rows, columns_of, refuse_doubles, refuse_unknown_sides
from contam.study.scored import judged_logs, open_logs, series_in, sources_of
from contam.tables import schemas

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contam.detect.given import Source
    from contam.rescore.annotated import Judging
    from contam.rescore.annotations import Annotations
    from contam.rescore.judging import Verdicts
    from contam.study.model import Bools, Floats, Ints

    Days = tuple[int, int]

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


def read_dated(  # noqa: PLR0913 - what is read, all but two by name
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
    if dates is None and len(paths) != 1:
        raise UsageError("several logs need a table of the dates of their items")
    named = STRATA if strata is None else strata
    rows = Rows(
        paths[0] if dates is None else dates,
        "dates",
        usual={**_DATES, **{name: (name,) for name in named}},
        columns=columns_of(columns, "dates"),
    )
    kinds = tuple(name for name in named if strata or rows.has(name))
    own = _marked(columns, "logs")
    found = open_logs(paths, _roles(rows, own) if dates is None else own)
    numbers = item_numbers(found)
    series, turned = series_in(found, numbers, "logs", metric)
    number_of = {
        item.item_id: number
        for log, index in zip(found, numbers, strict=True)
        for item, number in zip(log.items, index.tolist(), strict=True)
    }
    n_items = 1 + max(int(index.max()) for index in numbers)
    if len(number_of) < n_items:
        raise LogError(
            "one item id stands for several questions of the logs",
            remedy=Remedy.REMOVE_ONE_OR_NAME_APART,
        )
    days, strata_of, notes = _items(rows, kinds)
    undated = [item for item in number_of if item not in days]
    if len(undated) == n_items:
        raise LogError(
            "{}: none of the items of the logs has a date", rows.path,
            remedy=Remedy.JOIN_BY_QUESTIONS,
        )  # fmt: skip
    if undated:
        more = ", ..." if len(undated) > _MOST_NAMED else ""
        notes.append(
            f"{len(undated)} of {n_items} items have no date and are left out:"
            f" {', '.join(undated[:_MOST_NAMED])}{more}"
        )
    kept = sorted(number_of.keys() & days.keys(), key=lambda item: (days[item], item))
    at = np.array([number_of[item] for item in kept], np.int64)
    score = np.full((len(series), n_items), np.nan)
    for row, one in enumerate(series):
        score[row, one.item] = one.score
    first, last = np.array([days[item] for item in kept], np.int64).T
    codes = [
        np.unique([strata_of[item][column] for item in kept], return_inverse=True)[1]
        for column in range(len(kinds))
    ]
    models = tuple(one.model for one in series)
    cutoff_days, cutoff_notes, cutoff_sources = _cutoffs(cutoffs, models, columns)
    read = Dated(
        models=models,
        score=score[:, at],
        first=first,
        last=last,
        strata=crossed(*codes) if codes else np.zeros(len(kept), np.int64),
        strata_names=kinds,
        cutoffs=cutoff_days,
        sources=({"set": "dates", **rows.source}, *sources_of("logs", found), *cutoff_sources),
        notes=(*turned, *notes, *cutoff_notes),
    )
    if verdicts is None:
        return read
    opened, judging = judged_logs(found, verdicts, policy)
    place = np.full(n_items, -1, np.int64)
    for log, index in zip(found, numbers, strict=True):
        place[index] = judging.joined[id(log)].index
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
        names = [name for name in rows.names if name not in taken.values()]
        if odd := [name for name in names if "+" in name or "," in name]:
            raise UsageError("{}: rename the column {!r}: it has a + or comma", rows.path, odd[0])
        found["models"] = "+".join(names)
    return {role: name for role, name in found.items() if name}


def _days(rows: Rows, role: str) -> list[Days | None]:
    """A column of dates, None for empty cells. Raises LogError for what is no date."""
    found = []
    for row, text in enumerate(rows.texts(role, empty=True)):
        days = days_of(text)
        if text and days is None:
            raise LogError(
                "{}: {!r} is no date such as 2024-01-31", rows.at(row), text[:40],
                remedy=Remedy.IS_FILE_WHOLE,
            )  # fmt: skip
        found.append(days)
    return found


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
            raise LogError(
                "{}: item {!r} is in another stratum in an earlier row", rows.at(row), item,
                remedy=Remedy.REMOVE_ONE_OR_NAME_APART,
            )  # fmt: skip
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
            raise UsageError(
                "no scores of the model {!r}, which has a cutoff", unknown[0],
                remedy=Remedy.CHOOSE_MODEL(known=Names(models)),
            )  # fmt: skip
        given = [{"model": model, "cutoff": str(day)} for model, day in given.items()]
    rows = Rows(given, "cutoffs", usual=_CUTOFFS, columns=_marked(columns, "cutoffs"))
    names = rows.texts("model")
    refuse_doubles(rows, names, "model")
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
