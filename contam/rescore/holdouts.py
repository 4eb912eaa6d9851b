"""Set a benchmark beside one that nobody can have seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.special import stdtr

from contam.errors import Public, UsageError
from contam.rescore.rankings import matrices
from contam.rescore.stats.clusters import (
    LEAST_CLUSTERS,
    SURE,
    Estimate,
    difference_of,
    newcombe,
    right_or_wrong,
    several,
)
from contam.rescore.stats.gain import two_proportions
from contam.rescore.stats.permutation import ENOUGH, adjust, most_draws

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from contam.rescore import Floats, Ints, Row
    from contam.rescore.logs.model import Log
    from contam.rescore.panel import RescoreSettings, Series
    from contam.rescore.rankings import Matrix


def item_numbers(logs: Sequence[Log]) -> list[Ints]:
    """For each log of one reference benchmark: int64[n], equal where logs mean the same item.

    By id and question. Raises LogError for an item that occurs twice in a log.
    """
    known: dict[tuple[str, str | None], int] = {}
    found = []
    for log in logs:
        keys = [(item.item_id, item.question or item.prompt) for item in log.items]
        if len(set(keys)) < len(keys):
            said = "an item of the reference benchmark {} occurs twice"
            raise log.fault(said, Public(log.benchmark), hint="give each item once")
        numbers = [known.setdefault(key, len(known)) for key in keys]
        found.append(np.array(numbers, np.int64))
    return found


def holdout_rows(
    series: Sequence[Series],
    second: Sequence[Series],
    settings: RescoreSettings,
    cluster: Ints,
) -> list[Row]:
    """Rows for each benchmark, model tested and method, of benchmarks with a reference benchmark.

    second   scores on the reference benchmarks of `settings`
    cluster  int64[N], of the items judged: those that rise and fall together
    """
    rows: list[Row] = []
    first_matrices, second_matrices = (matrices(own, mixed_setups=True) for own in (series, second))
    for benchmark, other in settings.reference_benchmarks:
        ours = [matrix for matrix in first_matrices if matrix.benchmark == benchmark]
        theirs = [matrix for matrix in second_matrices if matrix.benchmark == other]
        for name, found, kind in ((benchmark, ours, "benchmark"), (other, theirs, "reference")):
            if not found:
                hint = "--reference-benchmark takes BENCHMARK=REFERENCE, as contam logs names them"
                raise UsageError("no log with item scores of {} {}", Public(kind), name, hint=hint)
        for matrix in ours:
            counterpart = _counterpart(matrix, ours, theirs)
            own = several(cluster[matrix.items])
            rows += _rows_of(matrix, counterpart, settings, own)
    adjust(rows, ("p",), lambda row: (row["benchmark"], row["metric"], row["method"]), by=("holm",))
    return rows


def _counterpart(
    matrix: Matrix, ours: Sequence[Matrix], theirs: Sequence[Matrix]
) -> tuple[Matrix | None, str]:
    """The same metric of the reference benchmark, or its only one."""
    same = [their for their in theirs if their.metric == matrix.metric]
    if same:
        return same[0], ""
    if len(ours) == len(theirs) == 1:
        return theirs[0], f"set against {theirs[0].metric}"
    return None, f"no {matrix.metric} of {theirs[0].benchmark}"


def _rows_of(
    matrix: Matrix,
    counterpart: tuple[Matrix | None, str],
    settings: RescoreSettings,
    cluster: Ints | None,
) -> Iterator[Row]:
    other, note = counterpart
    references = settings.references
    models = [name for name in matrix.models if name not in references]
    without = {run.model: why for run, why in zip(matrix.short, matrix.why, strict=True)}
    if other is None:
        without |= dict.fromkeys(models, note)
    elif reason := _refusal(matrix, other, settings.least):
        without |= dict.fromkeys(models, reason)
    else:
        absent = [name for name in models if name not in other.models]
        without |= dict.fromkeys(absent, f"no score on {other.benchmark}")
    for model, why in without.items():
        for method in ("ConStat", "retro-holdout"):
            yield _head(matrix, other, model, method, f"not estimable: {why}")
    tested = [name for name in models if name not in without]
    if other is None or not tested:
        return
    known = [name for name in references if name in matrix.models and name in other.models]
    public, retro = _of(matrix, other, tested)
    beside = _of(matrix, other, known)
    expected = constat(
        (public, retro), beside, family=len(tested), seed=settings.seed, cluster=cluster
    )
    for model, found, own in zip(tested, expected, retro, strict=True):
        notes = "; ".join(filter(None, [note, found.note]))
        yield _head(matrix, other, model, "ConStat", notes) | {
            "score": found.score,
            "score_reference": float(own.mean()),
            "expected": found.expected,
            "gain": found.delta,
            "gain_lo": found.low,
            "p": found.p,
        }
    reason, checked = _equally_hard(beside, cluster)
    for model, first, second in zip(tested, public, retro, strict=True):
        notes = "; ".join(filter(None, [note, reason or checked]))
        row = _head(matrix, other, model, "retro-holdout", notes)
        row |= {"score": float(first.mean()), "score_reference": float(second.mean())}
        if not reason:
            gained = inflation(first, second, cluster)
            row |= {"expected": row["score_reference"], "gain": gained.difference, "p": gained.p}
            row |= {"gain_lo": gained.low, "gain_hi": gained.high}
        yield row


def _equally_hard(beside: tuple[Floats, Floats], cluster: Ints | None) -> tuple[str, str]:
    """Why models that saw neither set do not show that both are equally hard, or how they do."""
    public, retro = beside
    apart = (
        equivalent(public.mean(axis=0), retro.mean(axis=0), cluster=cluster)
        if len(public)
        else np.nan
    )
    if np.isnan(apart):
        return "not estimable: no reference model that shows both sets to be equally hard", ""
    if apart >= SURE:
        return (
            f"not estimable: reference models are not shown to score alike on both sets, within "
            f"{MARGIN:g} (TOST p {apart:.2g})"
        ), ""
    return "", (
        f"equally hard for {len(public)} reference models within {MARGIN:g} (TOST p "
        f"{apart:.2g}); that embeddings, a classifier and people cannot tell the sets apart was "
        f"not checked"
    )


def _of(matrix: Matrix, other: Matrix, models: Sequence[str]) -> tuple[Floats, Floats]:
    """Scores of these models on both sets."""
    at, at_other = ([side.models.index(name) for name in models] for side in (matrix, other))
    return matrix.scores[at], other.scores[at_other]


def _refusal(matrix: Matrix, other: Matrix, least: int) -> str:
    for side in (matrix, other):
        if len(side.items) < least or not side.scores.size:
            return (
                f"{len(side.items)} items of {side.benchmark} that all models were scored on, "
                f"fewer than {least}"
            )
        if not side.higher_is_better or side.scores.min() < 0 or side.scores.max() > 1:
            return f"{side.metric} of {side.benchmark} is no share of right answers"
    return ""


def _head(matrix: Matrix, other: Matrix | None, model: str, method: str, note: str) -> Row:
    return {
        "model": model,
        "benchmark": matrix.benchmark,
        "metric": matrix.metric,
        "reference_benchmark": other.benchmark if other else "",
        "method": method,
        "n": len(matrix.items),
        "n_reference": len(other.items) if other else 0,
        "note": note,
    }


LEAST_REFERENCES: Final = 5
"""Models a spline needs: with fewer, nothing is estimated."""

MARGIN: Final = 0.05
"""How far apart two test sets may be and still be the same test, unless told otherwise."""

_DRAWS: Final = 400
_LEVEL: Final = 0.95
_TRIES: Final = 20
_DIGITS: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a model scores beside what its score on the second set leads to expect.

    delta     score - expected, mean over draws; error  its s.d. over draws
    low       basic bootstrap limit that delta is above with 95 %
    p         one-sided, of no gain; note  why nothing is estimated, "" when it is
    """

    score: float
    expected: float = np.nan
    delta: float = np.nan
    error: float = np.nan
    low: float = np.nan
    p: float = np.nan
    note: str = ""


def constat(
    scores: tuple[Floats, Floats],
    references: tuple[Floats, Floats],
    *,
    chance: tuple[float, float] = (0.0, 0.0),
    draws: int = _DRAWS,
    family: int = 1,
    seed: int = 0,
    cluster: Ints | None = None,
) -> list[Expected]:
    """ConStat (Dekoninck et al. 2024) for several models against the same references.

    scores      of the models tested, on the benchmark and on the second set: float64[models, n]
                and float64[models, k]
    references  of models that saw neither, the same way; five or more
    chance      scores of a model that guesses, which is one more point of the fit
    draws       at first; more where p is small beside the `family` of tests it is adjusted over
    cluster     int64[n], items of the benchmark that rise and fall together, drawn as one

    Both margins are sorted, so only the curve is assumed, no pairing; items and models are drawn
    with replacement.
    """
    tested, tested_second = scores
    first, second = references
    m = len(first)
    plain = tested.mean(axis=1)
    if m < LEAST_REFERENCES:
        note = f"not estimable: {m} reference models, fewer than {LEAST_REFERENCES}"
        return [Expected(score=float(score), note=note) for score in plain]
    if cluster is not None and len(np.unique(cluster)) < LEAST_CLUSTERS:
        note = f"not estimable: items of fewer than {LEAST_CLUSTERS} passages"
        return [Expected(score=float(score), note=note) for score in plain]
    rng = np.random.default_rng(seed)
    whole = None if cluster is None else _by_cluster(cluster)

    def drawn() -> tuple[Floats, Floats]:
        """What was expected of each model in one draw, nan where no curve is to be had; scores."""
        for _ in range(_TRIES):
            if whole is None:
                at = _drawn(first.shape[1], rng)
            else:
                at = np.concatenate([whole[one] for one in _drawn(len(whole), rng).tolist()])
            at_second = _drawn(second.shape[1], rng)
            models = _drawn_models(m, rng)
            y = np.append(_guess(chance[0], len(at), rng), _means(first, at)[models])
            x = np.append(_guess(chance[1], len(at_second), rng), _means(second, at_second)[models])
            curve = _curve(np.sort(x), np.sort(y))
            if curve is not None:
                expected = np.clip(curve(_means(tested_second, at_second)), 0, 1)
                return expected, _means(tested, at)
        nothing = np.full(len(tested), np.nan)
        return nothing, nothing

    # More draws where a p is small beside the number of tests that it is adjusted over; a quarter
    # of those of cheaper tests, five hits at the threshold.
    pairs: list[tuple[Floats, Floats]] = []
    most, step = most_draws(family) // 4, draws
    while step > 0:
        pairs += [drawn() for _ in range(step)]
        estimate, actual = np.array(pairs).transpose(1, 0, 2)
        if np.isnan(estimate).any():
            note = "not estimable: too few different scores of the reference models"
            return [Expected(score=float(score), note=note) for score in plain]
        found = [
            _expected(float(score), estimate[:, at], actual[:, at])
            for at, score in enumerate(plain)
        ]
        if all(one.p * (1 + len(pairs)) > ENOUGH // 4 for one in found):
            break
        step = min(len(pairs), most - len(pairs))
    return found


def _drawn_models(m: int, rng: np.random.Generator) -> Ints:
    """Models with replacement, five different ones at least; five cannot be drawn so."""
    if m == LEAST_REFERENCES:
        return np.arange(m)
    while True:
        models = _drawn(m, rng)
        if len(np.unique(models)) >= LEAST_REFERENCES:
            return models


def _drawn(n: int, rng: np.random.Generator) -> Ints:
    return np.asarray(rng.integers(0, n, size=n), np.int64)


def _means(scores: Floats, drawn: Ints) -> Floats:
    """float64[models]: means over drawn items; equal ones stay equal, so that ties are seen."""
    share = np.bincount(drawn, minlength=scores.shape[1]) / len(drawn)
    return np.round(scores @ share, _DIGITS)


def _by_cluster(cluster: Ints) -> list[Ints]:
    """The items of each cluster."""
    order = np.argsort(cluster, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(cluster[order])) + 1)


def _expected(score: float, estimate: Floats, actual: Floats) -> Expected:
    gains = actual - estimate
    mean = float(gains.mean())
    # The basic bootstrap turns the draws round their mean.
    beyond = int(np.count_nonzero(2 * mean - gains < 0))
    return Expected(
        score=score,
        expected=float(estimate.mean()),
        delta=mean,
        error=float(gains.std()),
        low=2 * mean - float(np.quantile(gains, _LEVEL)),
        p=(1 + beyond) / (1 + len(gains)),
    )


def _guess(chance: float, n: int, rng: np.random.Generator) -> float:
    """The score of a guessing model on n items; 0 stays 0."""
    return chance + float(rng.normal(0, np.sqrt(chance * (1 - chance) / n)))


def _curve(x: Floats, y: Floats) -> Callable[[Floats], Floats] | None:
    """Smoothing spline through sorted margins, straight beyond its ends; None below 5 points."""
    last_of_ties = np.append(np.diff(x) > 0, True)
    x, y = x[last_of_ties], y[last_of_ties]
    if len(x) < LEAST_REFERENCES:
        return None
    # Imported here: it takes as long as all else of re-scoring, and few ask for it.
    from scipy.interpolate import make_smoothing_spline

    spline = make_smoothing_spline(x, y)
    slope = spline.derivative()

    def curve(at: Floats) -> Floats:
        inside = np.clip(at, x[0], x[-1])
        result: Floats = spline(inside) + slope(inside) * (at - inside)
        return result

    return curve


@dataclass(frozen=True, slots=True, kw_only=True)
class Inflation:
    """Score on the public set - score on the retro-holdout, of one model.

    low, high  95 % limits (Newcombe for 0/1 scores of items that stand alone, else Welch's t)
    p          one-sided, of no inflation
    """

    difference: float
    low: float
    high: float
    p: float


def inflation(public: Floats, retro: Floats, cluster: Ints | None = None) -> Inflation:
    """Compare item scores on two sets of other items, float64[n] and float64[k].

    cluster  int64[n], items of the public set that rise and fall together
    """
    binary = all(map(right_or_wrong, (public, retro)))
    if binary and cluster is None:
        sizes = [(float(values.sum()), len(values)) for values in (public, retro)]
        low, high = newcombe(sizes[0], sizes[1])
        p = two_proportions(sizes[0], sizes[1])[1]
        difference = float(public.mean() - retro.mean())
        return Inflation(difference=difference, low=low, high=high, p=p)
    found = _apart(public, retro, cluster)
    low, high = found.limits(_LEVEL)
    p = _above(found.value, found)
    return Inflation(difference=found.value, low=low, high=high, p=p)


def equivalent(
    first: Floats, second: Floats, margin: float = MARGIN, cluster: Ints | None = None
) -> float:
    """TOST: the p of "the two means are apart by `margin` or more"; a small one shows equality.

    cluster  int64[n], items of the first set that rise and fall together

    A test that finds no difference shows nothing. nan where the errors are.
    """
    found = _apart(first, second, cluster)
    if found.error == 0:
        return float(abs(found.value) >= margin)
    return _above(min(margin - found.value, margin + found.value), found)


def _apart(first: Floats, second: Floats, cluster: Ints | None) -> Estimate:
    """Mean of the first less mean of the second, whose items are all independent."""
    n_clusters = len(first) if cluster is None else len(np.unique(cluster))
    few = cluster is not None and n_clusters < LEAST_CLUSTERS
    if few or min(n_clusters, len(second)) <= 1:
        return Estimate(float(first.mean() - second.mean()), np.nan, 0.0)
    if not (np.ptp(first) > 0 or np.ptp(second) > 0):
        return Estimate(float(first.mean() - second.mean()), 0.0, 0.0)
    if cluster is None:
        return difference_of(first, second)
    alone = int(cluster.max()) + 1 + np.arange(len(second))
    return difference_of(first, second, (cluster, alone))


def _above(distance: float, found: Estimate) -> float:
    """One-sided p of a distance whose error is that of an estimate."""
    if not found.is_sure:
        return np.nan
    return float(stdtr(found.df, -distance / found.error))
