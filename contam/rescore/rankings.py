"""Line up the models of one ranking, rank them, and put the scores of benchmarks together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from contam.facts import counted
from contam.rescore.logs.model import words
from contam.rescore.panel import AS_LOGGED, Split
from contam.rescore.stats.clusters import SURE, error_of_mean, several, spread_of
from contam.rescore.stats.gain import LEAST, slopes, too_few
from contam.rescore.stats.permutation import most_draws
from contam.rescore.stats.ranking import (
    agreement,
    borda,
    changes,
    detectable,
    means,
    pairwise,
    random_deletion,
    rank_intervals,
    ranks,
    win_rate,
)
from contam.tables.memory import distinct

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from contam.rescore import Bools, Floats, Ints, Row
    from contam.rescore.metrics import MainMetric
    from contam.rescore.panel import Flags, RescoreSettings, Series, Units
    from contam.rescore.stats.clusters import Spread
    from contam.rescore.stats.ranking import Pairwise


LEAST_COVERED: Final = 0.9
"""Share of the items of a ranking that a run must have to be in it."""

_NAMED: Final = 5


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Matrix:
    """Models x items for one benchmark, metric and set-up.

    scores  float64[m, n], nan where a model lacks the item
    items   int64[n], places in the result's items
    units   how figures of a metric of which less is better are shown
    setup   what sets these runs apart from others of the benchmark, "" where all are alike
    short   runs over fewer items: in no ranking; why  the reason, one for each
    """

    benchmark: str
    metric: str
    models: tuple[str, ...]
    scores: Floats
    items: Ints
    notes: tuple[str, ...] = ()
    units: Units = AS_LOGGED
    higher_is_better: bool = True
    setup: str = ""
    series: tuple[Series, ...] = ()
    short: tuple[Series, ...] = ()
    why: tuple[str, ...] = ()

    @property
    def head(self) -> Row:
        """What it is a matrix of, as rows of tables begin."""
        names = ("benchmark", "metric", "higher_is_better")
        return {name: getattr(self, name) for name in names}


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
    inside, items, n_items, n_beyond = _largest(group)
    ranked = [series for series, kept in zip(group, inside, strict=True) if kept]
    short = [series for series, kept in zip(group, inside, strict=True) if not kept]
    scores = np.array(rows_at(ranked, items)).reshape(len(ranked), len(items))
    lost = int(np.isnan(scores).any(axis=0).sum())
    missing = f"{counted(lost, 'item')} not scored for every model: ranked pair by pair"
    reasons = [missing] if lost else []
    if n_beyond:
        reasons.append(f"{counted(n_beyond, 'item')} scored for fewer than half of the models")
    if short:
        sizes = n_items[~inside].tolist()
        named = zip(short[:_NAMED], sizes, strict=False)
        counts = ", ".join(f"{run.model} ({size:,} items)" for run, size in named)
        more = f" and {len(short) - _NAMED} more" if len(short) > _NAMED else ""
        reasons.append(f"not in the ranking of {len(items):,} items: {counts}{more}")
    return Matrix(
        benchmark=group[0].benchmark,
        metric=group[0].metric,
        models=tuple(run.model for run in ranked),
        scores=scores,
        items=items,
        notes=(*notes, *reasons),
        units=group[0].units,
        higher_is_better=group[0].higher_is_better,
        setup=setup,
        series=tuple(ranked),
        short=tuple(short),
        why=tuple(
            f"not ranked: {len(np.intersect1d(run.item, items)):,} of the {len(items):,} items of"
            " the ranking"
            for run in short
        ),
    )


def judged_items(series: Series) -> Ints:
    """The items of a series that are among those judged, ascending."""
    return distinct(series.item[series.item >= 0])


def _largest(group: Sequence[Series]) -> tuple[Bools, Ints, Ints, int]:
    """Which series are ranked and on which items; judged items of each, and of those left out.

    Every set of items that a run has is tried as the ranking's: the runs in it have at least
    `LEAST_COVERED` of them. The set with the most scores wins, the one with more models of two;
    one with two models or more if there is any. The items are those that half of these runs have.
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
    best = max(range(len(sets)), key=lambda at: (counts[at] > 1, value[at], counts[at], -at))
    inside = covers[best][belongs]
    held = np.concatenate([sets[at] for at in belongs[inside].tolist()])
    items, n_held = np.unique(held, return_counts=True)
    kept = items[2 * n_held >= inside.sum()]
    return inside, kept, sizes[belongs].astype(np.int64), len(items) - len(kept)


def _overlap(sets: Sequence[Ints]) -> Floats:
    """float64[sets, sets]: how many items each two sets share."""
    every = np.unique(np.concatenate(sets))
    there = np.zeros((len(sets), len(every)), np.float32)
    for row, own in zip(there, sets, strict=True):
        row[np.searchsorted(every, own)] = 1
    result: Floats = (there @ there.T).astype(np.float64)
    return result


def rows_at(group: Sequence[Series], items: Ints) -> list[Floats]:
    """The scores of each series at these items; nan for none, the first of an item listed twice."""
    rows: list[Floats] = []
    at, there, last = np.empty(0, np.int64), np.empty(0, np.bool_), None
    for series in group:
        if last is None or not np.array_equal(series.item, last):
            order = np.argsort(series.item, kind="stable")
            place = np.searchsorted(series.item[order], items)
            at, last = order[np.minimum(place, len(order) - 1)], series.item
            there = series.item[at] == items
        rows.append(np.where(there, series.score[at], np.nan))
    return rows


_LEAST_MODELS: Final = 2
_DIGITS: Final = 12
_SIDES: Final = ("full", "clean")
_ACROSS_MODELS: Final = (
    *("kendall_tau", "spearman", "largest_rank_change"),
    *("deletion_tau_median", "deletion_p"),
)


def ranking_rows(
    matrix: Matrix, flags: Flags, settings: RescoreSettings, family: int
) -> tuple[list[Row], list[Row]]:
    """One row per model, and one per pair of models, of one matrix under one policy.

    A higher score is better. Short runs have a row without a rank.

    family  how many benchmarks are tested together
    """
    split = Split.of(flags.label[matrix.items])
    there = ~np.isnan(matrix.scores)
    n_clean = there[:, split.clean].sum(axis=1)
    m = len(matrix.models)
    note = "; ".join(matrix.notes)
    head = {**matrix.head, "setup": matrix.setup, "policy": flags.policy}
    full, clean = means(matrix.scores), means(matrix.scores[:, split.clean])
    reason = _refusal(m, int(n_clean.min()), settings.least)
    if reason:
        note = f"{note}; {reason}" if note else reason
    tests = None if reason else _tests(matrix, flags, split)
    rows: list[Row] = []
    together: Row = {}
    deletion = None
    worth = (full, clean)
    if tests:
        worth = tests.worth(full, clean)
        both = agreement(*worth)
        deletion = random_deletion(
            matrix.scores,
            ~split.clean,
            draws=settings.draws,
            most=most_draws(family),
            seed=settings.seed,
            cluster=several(flags.cluster[matrix.items]),
        )
        if np.isnan(deletion.p) and not np.isnan(deletion.tau):
            unmoved = "no deletion p: swapping clusters of one size changes nothing"
            note = f"{note}; {unmoved}" if note else unmoved
        figures = (both.tau, both.rho, both.largest, deletion.tau_median, deletion.p)
        together = dict(zip(_ACROSS_MODELS, figures, strict=True))
    places = [ranks(worth[0]), ranks(worth[1]) if n_clean.all() else np.full(m, np.nan)]
    for at, model in enumerate(matrix.models):
        row: Row = {
            **head,
            "model": model,
            "n": int(there[at].sum()),
            "n_clean": int(n_clean[at]),
            "full": matrix.units.level(full[at]),
            "clean": matrix.units.level(clean[at]),
            "rank_full": places[0][at],
            "rank_clean": np.nan if reason else places[1][at],
        }
        for name, test in zip(_SIDES, tests.sides if tests else (), strict=False):
            for joint, kind in ((False, ""), (True, "_joint")):
                low, high = rank_intervals(test, joint=joint)[at].tolist()
                row[f"rank_{name}{kind}_lo"], row[f"rank_{name}{kind}_hi"] = low, high
        if deletion:
            row["deletion_sd"] = float(deletion.moved[at])
        rows.append(row | together | {"note": note})
    for series, why in zip(matrix.short, matrix.why, strict=True):
        rows.append({**head, **_unranked(series, flags), "note": why})
    return rows, _pair_rows(head, matrix, tests, worth, note) if tests else []


def _refusal(m: int, n_clean: int, least: int) -> str:
    if m < _LEAST_MODELS:
        return "not estimable: one model has no ranking"
    reason = too_few(n_clean, "clean", least)
    return f"not estimable: {reason}" if reason else ""


def _unranked(series: Series, flags: Flags) -> Row:
    """A short run by itself: its scores on its own items."""
    items = judged_items(series)
    (scores,) = rows_at([series], items)
    clean = Split.of(flags.label[items]).clean
    return {
        "model": series.model,
        "n": len(items),
        "n_clean": int(clean.sum()),
        "full": series.units.level(means(scores[None])[0]),
        "clean": series.units.level(means(scores[None, clean])[0]),
    }


class _Tests(NamedTuple):
    """Of all pairs: on all items, on the clean ones, and flagged less clean.

    n, n_clean  int64[models, models], the items that both have
    """

    full: Pairwise
    clean: Pairwise
    change: Pairwise
    n: Ints
    n_clean: Ints

    @property
    def sides(self) -> tuple[Pairwise, Pairwise]:
        return self.full, self.clean

    def worth(self, full: Floats, clean: Floats) -> tuple[Floats, Floats]:
        """What models are ranked by: their means, or their mean leads where items are missing."""
        if np.ptp(self.n) == 0:
            return full, clean
        first, second = (test.difference.mean(axis=1).round(_DIGITS) for test in self.sides)
        return first, second


def _tests(matrix: Matrix, flags: Flags, split: Split) -> _Tests:
    cluster, scores = flags.cluster[matrix.items], matrix.scores
    there = (~np.isnan(scores)).astype(np.float64)
    own = there[:, split.clean]
    return _Tests(
        pairwise(scores, several(cluster)),
        pairwise(scores[:, split.clean], several(cluster[split.clean])),
        changes(scores, split.flagged, split.clean, several(cluster)),
        (there @ there.T).astype(np.int64),
        (own @ own.T).astype(np.int64),
    )


def _pair_rows(
    head: Row, matrix: Matrix, tests: _Tests, worth: tuple[Floats, Floats], note: str
) -> list[Row]:
    """A row for each pair, the better model on all items first."""
    rows = []
    order = np.argsort(-worth[0], kind="stable")
    units, change = matrix.units, tests.change
    # The first step of Holm over all pairs.
    level = SURE / max(1, len(order) * (len(order) - 1) // 2)
    for place, a in enumerate(order.tolist()):
        for b in order[place + 1 :].tolist():
            n_clean = int(tests.n_clean[a, b])
            row: Row = {
                **head,
                "first": matrix.models[a],
                "second": matrix.models[b],
                "n": int(tests.n[a, b]),
                "n_clean": n_clean,
            }
            for name, test in zip(_SIDES, tests.sides, strict=True):
                difference = float(test.difference[a, b])
                row[f"difference_{name}"] = units.gain(difference)
                row[f"error_{name}"] = float(test.error[a, b])
                row[f"p_{name}"] = float(test.p[a, b])
                row[f"p_{name}_holm"] = float(test.adjusted[a, b])
                leads = row[f"p_{name}_holm"] < SURE and difference > 0
                row[f"lead_{name}"] = bool(leads)
            changed, adjusted = float(change.difference[a, b]), float(change.adjusted[a, b])
            row |= {
                "detectable_clean": detectable(1, float(tests.clean.error[a, b]) ** 2, level),
                "change": units.gain(changed),
                "change_p": float(change.p[a, b]),
                "change_p_holm": adjusted,
                "detectable_change": detectable(1, float(change.error[a, b]) ** 2, level),
                "lead_falls": row["lead_full"] and changed > 0 and adjusted < SURE,
                "note": note,
            }
            rows.append(row)
    return rows


def aggregate_rows(
    lined_up: Sequence[Matrix], flags: Flags, main: Mapping[str, MainMetric], least: int = LEAST
) -> list[Row]:
    """Mean, win rate and Borda count of each model over the benchmarks, full and clean.

    By the main metric of each. A model without a score on a benchmark has a gap there: it enters no
    mean over all, and its win rate skips the gap. There is no mean of scores that count in
    different directions, and no clean side where a benchmark has fewer than `least` clean items.
    """
    chosen, left_out = _chosen(lined_up, main)
    n = len(chosen)
    if n + len(left_out) <= 1:
        return []
    models = sorted({series.model for each in lined_up for series in (*each.series, *each.short)})
    scores, errors, short = _both_sides(models, chosen, flags, least)
    ways = {one.higher_is_better for one in chosen}
    one_way = len(ways) <= 1
    general = [*left_out, *(f"{one.benchmark}: {one.notes[0]}" for one in chosen if one.setup)]
    if n <= 1:
        general.append("not estimable: one benchmark" if n else "not estimable")
    elif not one_way:
        general.append("benchmarks count in different directions: no mean")
    if short:
        general.insert(0, f"clean not estimable: {short}")
    columns: dict[str, Floats] = {}
    for name, table in scores.items():
        nothing = np.full(len(models), np.nan)
        shown = n > 1 and (name == "full" or not short)
        mean = nothing
        if shown and one_way:
            logged = (
                column if one.units.offset is None else one.units.offset - column
                for one, column in zip(chosen, table.T, strict=True)
            )
            mean = np.column_stack([*logged]).mean(axis=1)
        columns[f"mean_{name}"] = mean
        columns[f"mean_{name}_error"] = np.where(np.isnan(mean), np.nan, errors[name])
        columns[f"win_rate_{name}"] = win_rate(table) if shown else nothing
        columns[f"borda_{name}"] = borda(table) if shown else nothing
    metrics = "; ".join(
        f"{one.benchmark}: {one.metric}{'' if one.higher_is_better else ', lower is better'}"
        for one in chosen
    )
    rows = []
    for at, model in enumerate(models):
        gaps = int(np.isnan(scores["full"][at]).sum())
        without = [f"no score on {counted(gaps, 'benchmark')}: no mean"] if gaps else []
        rows.append(
            {
                "policy": flags.policy,
                "model": model,
                "n_benchmarks": n - gaps,
                **{name: float(values[at]) for name, values in columns.items()},
                "note": "; ".join([*without, *general]),
                "metrics": metrics,
                "higher_is_better": ways != {False} if one_way else None,
            }
        )
    return rows


def _both_sides(
    models: Sequence[str], chosen: Sequence[Matrix], flags: Flags, least: int
) -> tuple[dict[str, Floats], dict[str, Floats], str]:
    """Scores, their errors, and why there is no clean side, "" when there is one.

    "full" and "clean" -> float64[models, benchmarks], nan for a gap; higher is better
    "full" and "clean" -> float64[models], of the mean over benchmarks, by whole clusters
    """
    scores = {name: np.full((len(models), len(chosen)), np.nan) for name in _SIDES}
    short = ""
    spreads: dict[tuple[str, int], list[Spread]] = {}
    for column, matrix in enumerate(chosen):
        cluster = flags.cluster[matrix.items]
        clean = Split.of(flags.label[matrix.items]).clean
        if (n_clean := int(clean.sum())) < least and not short:
            short = f"{n_clean} clean items of {matrix.benchmark}, fewer than {least}"
        for own, model in zip(matrix.scores, matrix.models, strict=True):
            row = models.index(model)
            for name, mask in zip(_SIDES, (np.ones_like(clean), clean), strict=True):
                known = mask & ~np.isnan(own)
                scores[name][row, column] = means(own[None, known])[0]
                spread = spread_of(own[known], cluster[known])
                spreads.setdefault((name, row), []).append(spread)
    if short:
        scores["clean"][:] = np.nan
    errors = {name: np.full(len(models), np.nan) for name in _SIDES}
    for (name, row), own in spreads.items():
        errors[name][row] = error_of_mean(own)
    return scores, errors, short


def _chosen(
    matrices: Sequence[Matrix], main: Mapping[str, MainMetric]
) -> tuple[tuple[Matrix, ...], tuple[str, ...]]:
    """The matrix of each benchmark, of its set-ups the one with most models; what is left out."""
    found: dict[str, Matrix] = {}
    left_out: dict[str, None] = {}
    for matrix in matrices:
        known = main[matrix.benchmark]
        if known.metric is None:
            left_out.setdefault(f"left out: {known.why}")
        elif matrix.metric == known.metric:
            other = found.setdefault(matrix.benchmark, matrix)
            if len(matrix.models) > len(other.models):
                found[matrix.benchmark] = matrix
    return tuple(found.values()), tuple(left_out)


def dose_rows(matrix: Matrix, flags: Flags) -> list[Row]:
    """How much more each model's score rises with exposure than the others', item by item."""
    items = matrix.items
    kept = ~np.isnan(matrix.scores).any(axis=0) & ~Split.of(flags.label[items]).unchecked
    items, rows = items[kept], []
    share = np.nan_to_num(flags.contamination[items])
    doses = {"share found": share} if share.max(initial=0) <= 1 else {}
    if "exposure" in flags.groups:
        doses["with its answer"] = (flags.groups["exposure"][items] == _ANSWERED).astype(np.float64)
    if flags.documents is not None:
        doses["documents, doubled"] = np.log2(1 + flags.documents[items])
    for exposure, dose in doses.items():
        found = slopes(matrix.scores[:, kept], dose, flags.cluster[items])
        for model, slope in zip(matrix.models, found or (), strict=False):
            low, high = matrix.units.gains(slope.low, slope.high)
            rows.append(
                {
                    **matrix.head,
                    "model": model,
                    "policy": flags.policy,
                    "exposure": exposure,
                    "n": len(items),
                    "slope": matrix.units.gain(slope.value),
                    "slope_low": low,
                    "slope_high": high,
                    "p": slope.p,
                }
            )
    return rows


_ANSWERED: Final = "question+answer"
