"""Choose the models of one ranking: same set-up, on items they all have.

A short run must not take the items away from all others: it is left out by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from contam.errors import InternalError
from contam.rescore.logs.setup import words
from contam.tables.distinct import distinct

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from contam.rescore.panel import Series

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]

LEAST_COVERED: Final = 0.9
"""Share of the items of a ranking that a run must have to be in it."""

_NAMED: Final = 5
_TWO: Final = 2


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Matrix:
    """Models x items that all of them were scored on, for one benchmark, metric and set-up.

    scores  float64[m, n]; items  int64[n], places in the result's items
    sign    1 where a higher score is better, -1 where a lower one is
    setup   what sets these runs apart from others of the benchmark, "" where all are alike
    short   runs over fewer items: in no ranking; why  the reason, one for each
    """

    benchmark: str
    metric: str
    models: tuple[str, ...]
    scores: Floats
    items: Ints
    notes: tuple[str, ...] = ()
    sign: int = 1
    setup: str = ""
    series: tuple[Series, ...] = ()
    short: tuple[Series, ...] = ()
    why: tuple[str, ...] = ()


def matrices(series: Sequence[Series], *, mixed_setups: bool = False) -> list[Matrix]:
    """Line up the additive series of each benchmark, metric and set-up.

    mixed_setups  runs of all set-ups in one matrix; a note says so
    """
    found: dict[tuple[str, str], list[Series]] = {}
    for run in series:
        if run.additive:
            found.setdefault((run.benchmark, run.metric), []).append(run)
    result = []
    for _, group in sorted(found.items()):
        group.sort(key=lambda run: run.model)
        for setup, own, notes in _by_setup(group, mixed=mixed_setups):
            result.append(_matrix(own, setup, notes))
    return result


def _by_setup(
    group: Sequence[Series], *, mixed: bool
) -> Iterator[tuple[str, list[Series], tuple[str, ...]]]:
    """(name, series, notes) of each set-up; what is not recorded differs from nothing."""
    differing = _differing(group)
    if not differing:
        yield "", list(group), ()
        return
    parts: dict[str, list[Series]] = {}
    unknown = []
    for series in group:
        known = tuple((name, value) for name, value in series.setup if name in differing)
        if known:
            parts.setdefault(words(known), []).append(series)
        else:
            unknown.append(series)
    if mixed:
        reasons = "; ".join(f"{name}: {_names(own)}" for name, own in parts.items())
        yield "", list(group), (f"runs of different set-ups in one ranking: {reasons}",)
        return
    largest = max(parts, key=lambda name: len(parts[name]))
    for name, own in sorted(parts.items()):
        others = [f"{_names(rest)} ({other})" for other, rest in parts.items() if other != name]
        notes = [f"only runs with {name}, not {', '.join(others)}"]
        if name == largest and unknown:
            notes.append(f"set-up not recorded: {_names(unknown)}")
        added = unknown if name == largest else []
        yield name, sorted([*own, *added], key=lambda run: run.model), tuple(notes)


def _differing(group: Sequence[Series]) -> set[str]:
    """What the runs record differently."""
    values: dict[str, set[str]] = {}
    for series in group:
        for name, value in series.setup:
            values.setdefault(name, set()).add(value)
    return {name for name, own in values.items() if len(own) > 1}


def _names(series: Sequence[Series]) -> str:
    names = [run.model for run in series]
    if len(names) > _NAMED:
        return f"{', '.join(names[:_NAMED])} and {len(names) - _NAMED} more"
    return ", ".join(names)


def _matrix(group: Sequence[Series], setup: str, notes: tuple[str, ...]) -> Matrix:
    inside, common, n_items = _largest(group)
    ranked = [series for series, kept in zip(group, inside, strict=True) if kept]
    short = [series for series, kept in zip(group, inside, strict=True) if not kept]
    lost = int(n_items[inside].max()) - len(common)
    reasons = [f"{lost} items are not scored for every model"] if lost else []
    if short:
        sizes = n_items[~inside].tolist()
        named = zip(short[:_NAMED], sizes, strict=False)
        counts = ", ".join(f"{run.model} ({size:,} items)" for run, size in named)
        more = f" and {len(short) - _NAMED} more" if len(short) > _NAMED else ""
        reasons.append(f"not in the ranking of {len(common):,} items: {counts}{more}")
    return Matrix(
        benchmark=group[0].benchmark,
        metric=group[0].metric,
        models=tuple(run.model for run in ranked),
        scores=np.array(rows_at(ranked, common)).reshape(len(ranked), len(common)),
        items=common,
        notes=(*notes, *reasons),
        sign=1 if group[0].higher_is_better else -1,
        setup=setup,
        series=tuple(ranked),
        short=tuple(short),
        why=tuple(
            f"not ranked: {_shared(run, common):,} of the {len(common):,} items of the ranking"
            for run in short
        ),
    )


def _shared(series: Series, items: Ints) -> int:
    return len(np.intersect1d(series.item, items))


def judged_items(series: Series) -> Ints:
    """The items of a series that are among those judged, ascending."""
    return distinct(series.item[series.item >= 0])


def _largest(group: Sequence[Series]) -> tuple[Bools, Ints, Ints]:
    """Which series are ranked, their common items, and how many judged items each series has.

    Every set of items that a run has is tried as the ranking's: the runs in it have at least
    `LEAST_COVERED` of them. The set with the most scores wins, the one with more models of two;
    one with two models or more if there is any.
    """
    sets: list[Ints] = []
    of = []
    last: Ints | None = None
    for series in group:
        # Logs of many models mostly hold the same items in one order.
        if last is None or not np.array_equal(series.item, last):
            own = judged_items(series)
            known = [at for at, other in enumerate(sets) if np.array_equal(own, other)]
            place = known[0] if known else len(sets)
            if not known:
                sets.append(own)
        of.append(place)
        last = series.item
    belongs = np.array(of)
    overlap = _overlap(sets)
    sizes = np.diag(overlap)
    covers = overlap >= LEAST_COVERED * sizes[:, None]
    counts = np.array([int(covers[base][belongs].sum()) for base in range(len(sets))])
    value = counts * sizes
    best = max(range(len(sets)), key=lambda at: (counts[at] >= _TWO, value[at], counts[at], -at))
    inside = covers[best][belongs]
    common = sets[best]
    for at in np.unique(belongs[inside]).tolist():
        common = np.intersect1d(common, sets[at])
    return inside, common, sizes[belongs].astype(np.int64)


def _overlap(sets: Sequence[Ints]) -> Floats:
    """float64[sets, sets]: how many items each two sets share."""
    every = np.unique(np.concatenate(sets))
    there = np.zeros((len(sets), len(every)), np.float32)
    for row, own in zip(there, sets, strict=True):
        row[np.searchsorted(every, own)] = 1
    result: Floats = (there @ there.T).astype(np.float64)
    return result


def rows_at(group: Sequence[Series], items: Ints) -> list[Floats]:
    """The scores of each series at these items; of an item listed twice, the first."""
    rows: list[Floats] = []
    at, last = np.empty(0, np.int64), None
    for series in group:
        if last is None or not np.array_equal(series.item, last):
            order = np.argsort(series.item, kind="stable")
            found = np.searchsorted(series.item[order], items)
            if len(items) and (series.item[order][found] != items).any():
                raise InternalError("an item is common to all models and yet missing in one")
            at, last = order[found], series.item
        rows.append(series.score[at])
    return rows
