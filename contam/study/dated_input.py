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
from contam.rescore.direction import directed
from contam.rescore.holdouts import item_numbers
from contam.rescore.run import refuse_two_logs, series_of
from contam.rescore.stats.difficulty import crossed
from contam.rescore.turn import turned
from contam.rescore.whole import whole_logs
from contam.study.inputs import USUAL, Rows, columns_of, refuse_doubles, refuse_unknown_sides
from contam.study.scored import judged_logs, main_series
from contam.tables import schemas

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from contam.detect.given import Source
    from contam.rescore.judging import Verdicts
    from contam.rescore.logs.model import Log

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]
    Days = tuple[int, int]

NEVER: Final = -1
"""The day of an item without a date."""

STRATA: Final = ("platform", "difficulty")
"""Columns of the dates that are strata unless others are named."""

_TWO: Final = 2
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
    items: tuple[str, ...]
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
    paths = [Path(logs)] if isinstance(logs, str | Path) else [Path(path) for path in logs]
    if dates is None and len(paths) != 1:
        raise UsageError("several logs need a table of the dates of their items")
    rows = Rows(
        paths[0] if dates is None else dates,
        "dates",
        usual={**_DATES, **{name: (name,) for name in (STRATA if strata is None else strata)}},
        columns=columns_of(columns, "dates"),
    )
    kinds = tuple(
        name for name in (STRATA if strata is None else strata) if strata or rows.has(name)
    )
    own = _marked(columns, "logs")
    if dates is None:
        own = _roles(rows, kinds, own)
    spans, strata_of, notes = _items(rows, kinds)
    found, _ = whole_logs(paths, own or None, skip_damaged=False)
    read = _scores(directed(found), metric, verdicts, policy)
    places = {item: at for at, item in enumerate(read.items)}
    undated = [item for item in places if spans.get(item, (NEVER, NEVER))[0] == NEVER]
    if len(undated) == len(places):
        raise LogError(
            "{}: none of the items of the logs has a date", rows.path,
            remedy=Remedy.JOIN_BY_QUESTIONS,
        )  # fmt: skip
    if undated:
        notes.append(
            f"{len(undated)} of {len(places)} items have no date and are left out:"
            f" {', '.join(undated[:5])}{', ...' if len(undated) > 5 else ''}"  # noqa: PLR2004 - as shown
        )
    kept = sorted(
        (item for item in places if item not in set(undated)), key=lambda i: (spans[i], i)
    )
    at = np.array([places[item] for item in kept], np.int64)
    new = {int(old): place for place, old in enumerate(at)}
    cutoff_days, cutoff_notes, cutoff_sources = _cutoffs(cutoffs, read.models, columns)
    codes = [
        np.unique([strata_of[item][column] for item in kept], return_inverse=True)[1]
        for column in range(len(kinds))
    ]
    documents = read.documents
    return replace(
        read,
        items=tuple(kept),
        score=read.score[:, at],
        first=np.array([spans[item][0] for item in kept], np.int64),
        last=np.array([spans[item][1] for item in kept], np.int64),
        strata=crossed(*codes) if codes else np.zeros(len(kept), np.int64),
        strata_names=kinds,
        cutoffs=cutoff_days,
        clean=None if read.clean is None else read.clean[at],
        documents=documents and {new[old]: own for old, own in documents.items() if old in new},
        sources=({"set": "dates", **rows.source}, *read.sources, *cutoff_sources),
        notes=(*read.notes, *notes, *cutoff_notes),
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


def _roles(rows: Rows, kinds: Sequence[str], own: Mapping[str, str]) -> dict[str, str]:
    """How the reader of logs is to take a table that has the dates, too."""
    given = dict(own)
    taken = rows.source["columns"]
    given.setdefault("id", taken.get("item", ""))
    if not rows.has("model") and "models" not in given:
        others = {taken.get("item"), taken.get("date"), *(taken.get(name) for name in kinds)}
        names = [name for name in rows.names if name not in others]
        if odd := [name for name in names if "+" in name or "," in name]:
            raise UsageError("{}: rename the column {!r}: it has a + or comma", rows.path, odd[0])
        given["models"] = "+".join(names)
    return {role: name for role, name in given.items() if name}


def _items(
    rows: Rows, kinds: Sequence[str]
) -> tuple[dict[str, Days], dict[str, tuple[str, ...]], list[str]]:
    """Days and strata of the items; an item with several dates came out between them."""
    items = rows.texts("item")
    strata = [rows.texts(name) for name in kinds]
    spans: dict[str, Days] = {}
    strata_of: dict[str, tuple[str, ...]] = {}
    several = set()
    for row, (item, text) in enumerate(zip(items, rows.texts("date", empty=True), strict=True)):
        days = days_of(text)
        if text and days is None:
            raise LogError(
                "{}: {!r} is no date such as 2024-01-31", rows.at(row), text[:40],
                remedy=Remedy.IS_FILE_WHOLE,
            )  # fmt: skip
        kind = tuple(own[row] for own in strata)
        if strata_of.setdefault(item, kind) != kind:
            raise LogError(
                "{}: item {!r} is in another stratum in an earlier row", rows.at(row), item,
                remedy=Remedy.REMOVE_ONE_OR_NAME_APART,
            )  # fmt: skip
        known = spans.get(item, (NEVER, NEVER))
        if days is None or known == days:
            spans.setdefault(item, known)
            continue
        if known[0] != NEVER:
            several.add(item)
            days = (min(known[0], days[0]), max(known[1], days[1]))
        spans[item] = days
    note = f"{len(several)} items have several dates and came out between them"
    return spans, strata_of, [note] if several else []


def _cutoffs(
    given: Mapping[str, str] | Source | None,
    models: Sequence[str],
    columns: Mapping[str, str] | None,
) -> tuple[dict[str, Days], list[str], list[Mapping[str, Any]]]:
    sources: list[Mapping[str, Any]] = []
    if given is None:
        return {}, [], sources
    if isinstance(given, dict):
        pairs = list(given.items())
        if unknown := sorted(set(given) - set(models)):
            raise UsageError(
                "no scores of the model {!r}, which has a cutoff", unknown[0],
                remedy=Remedy.CHOOSE_MODEL(known=Names(models)),
            )  # fmt: skip
        where = ["the cutoff"] * len(pairs)
    else:
        rows = Rows(given, "cutoffs", usual=_CUTOFFS, columns=_marked(columns, "cutoffs"))
        names = rows.texts("model")
        refuse_doubles(rows, names, "model")
        pairs = list(zip(names, rows.texts("cutoff", empty=True), strict=True))
        where = [str(rows.at(row)) for row in range(len(rows))]
        sources = [{"set": "cutoffs", **rows.source}]
    found: dict[str, Days] = {}
    for place, (model, text) in zip(where, pairs, strict=True):
        days = days_of(str(text))
        if days is None and str(text).strip():
            raise LogError("{}: {!r} is no date such as 2024-01-31", place, str(text)[:40])
        if days is not None and model in models:
            found[model] = days
    without = [model for model in models if model not in found]
    notes = [f"no cutoff is given for {', '.join(without)}"] if without else []
    return found, notes, sources


def _scores(logs: Sequence[Log], metric: str, verdicts: Verdicts | None, policy: str) -> Dated:
    """Scores of one benchmark over all its items, and what verdicts say of these; no dates yet."""
    refuse_two_logs([(log, log.model) for log in logs])
    numbers = item_numbers(logs)
    found = turned(
        [
            own
            for log, index in zip(logs, numbers, strict=True)
            for own in series_of(log, log.model, index)
        ]
    )
    kept = main_series(found.series, "logs", metric)
    names: dict[int, str] = {}
    for log, index in zip(logs, numbers, strict=True):
        names.update(zip(index.tolist(), (item.item_id for item in log.items), strict=True))
    if len(set(names.values())) < len(names):
        raise LogError(
            "one item id stands for several questions of the logs",
            remedy=Remedy.REMOVE_ONE_OR_NAME_APART,
        )
    score = np.full((len(kept), len(names)), np.nan)
    for row, series in enumerate(kept):
        score[row, series.item] = series.score
    nothing = np.empty(0, np.int64)
    base = Dated(
        models=tuple(series.model for series in kept),
        items=tuple(names[at] for at in range(len(names))),
        score=score,
        first=nothing,
        last=nothing,
        strata=nothing,
        strata_names=(),
        cutoffs={},
        sources=tuple(
            {"set": "logs", "path": log.path, "sha256": log.digest, "model": log.model}
            for log in logs
        ),
        notes=tuple(f"less is better, so scores are 1 - {kept[0].metric}" for _ in found.offsets),
    )
    return base if verdicts is None else _judged(base, logs, numbers, verdicts, policy)


def _judged(
    base: Dated, logs: Sequence[Log], numbers: Sequence[Ints], verdicts: Verdicts, policy: str
) -> Dated:
    opened, judging = judged_logs(logs, verdicts, policy)
    place = np.full(len(base.items), -1, np.int64)
    for log, index in zip(logs, numbers, strict=True):
        place[index] = judging.joined[id(log)].index
    (flags,) = judging.flags
    known = place >= 0
    clean = np.zeros(len(place), np.bool_)
    clean[known] = flags.label[place[known]] == CLEAN
    flagged = np.zeros(len(place), np.bool_)
    flagged[known] = flags.flagged[place[known]]
    documents = None
    if isinstance(opened, Report):
        matched = _documents(opened)
        documents = {at: matched.get(int(place[at]), ()) for at in np.flatnonzero(flagged).tolist()}
    return replace(
        base,
        clean=clean,
        documents=documents,
        policy=flags.policy,
        sources=(*base.sources, {"set": "verdicts", **judging.source}),
        notes=(*base.notes, *judging.notes),
        coverage=judging.coverage,
    )


def _documents(report: Report) -> dict[int, tuple[str | None, ...]]:
    """Row of the items table -> dates of the documents in its evidence, each document once."""
    keys = ("benchmark", "split", "item_id")
    items = zip(*(schemas.column(report.items, name) for name in keys), strict=True)
    row_of = {key: at for at, key in enumerate(items)}
    found: dict[int, dict[tuple[str, int], str | None]] = {}
    columns = (*keys, "shard", "row", "date")
    for *key, shard, row, date in zip(
        *(schemas.column(report.evidence, name) for name in columns), strict=True
    ):
        found.setdefault(row_of[tuple(key)], {})[shard, row] = date
    return {at: tuple(own.values()) for at, own in found.items()}
