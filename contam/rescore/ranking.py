"""Rankings of models: how far two agree, how sure a place is, what deleting items alone does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

from contam.rescore.multiple import holm
from contam.rescore.threads import in_threads

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]

_NAN = float("nan")
_TWO = 2
_HAIR = 1e-12
_DIGITS = 12
_BLOCK = 32
_PART = 64


def ranks(scores: Floats) -> Floats:
    """Average ranks, 1 for the highest score."""
    result: Floats = stats.rankdata(-scores)
    return result


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """Two rankings of the same m models.

    tau      Kendall's tau-b; distance  (1 - tau) / 2
    rho      Spearman's correlation of average ranks
    largest  the largest change of rank over m - 1
    """

    tau: float
    distance: float
    rho: float
    largest: float


def agreement(first: Floats, second: Floats) -> Agreement:
    """How far two scorings of the same models rank them alike; nan for fewer than two models."""
    if len(first) < _TWO:
        return Agreement(tau=_NAN, distance=_NAN, rho=_NAN, largest=_NAN)
    constant = np.ptp(first) == 0 or np.ptp(second) == 0
    tau = _tau(first, second)
    rho = _NAN if constant else float(stats.spearmanr(first, second).statistic)
    moved = np.abs(ranks(second) - ranks(first)).max() / (len(first) - 1)
    return Agreement(tau=tau, distance=(1 - tau) / 2, rho=rho, largest=float(moved))


def _tau(first: Floats, second: Floats) -> float:
    constant = np.ptp(first) == 0 or np.ptp(second) == 0
    return _NAN if constant else float(stats.kendalltau(first, second).statistic)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairwise:
    """Every model against every other on the same items; float64[models, models].

    difference  score of the row minus that of the column; error  its paired standard error
    p           two-sided normal p; nan where all differences are equal and not 0
    mcnemar_p   exact, for 0/1 scores; nan for others
    adjusted    p after Holm over all pairs; a constant difference counts as p = 0
    """

    difference: Floats
    error: Floats
    p: Floats
    mcnemar_p: Floats
    adjusted: Floats


def pairwise(scores: Floats, cluster: Ints | None = None) -> Pairwise:
    """Paired comparisons of all models, float64[models, items], two items or more."""
    m, n = scores.shape
    mean = scores.mean(axis=1)
    difference = mean[:, None] - mean[None, :]
    rest = scores - mean[:, None]
    if cluster is None:
        scale = n * (n - 1)
    else:
        code = np.unique(cluster, return_inverse=True)[1]
        sums = np.zeros((m, int(code.max()) + 1))
        for at in range(m):
            sums[at] = np.bincount(code, weights=rest[at])
        rest, scale = sums, n * n
    product = rest @ rest.T
    own = np.diag(product)
    squared = np.maximum(own[:, None] + own[None, :] - 2 * product, 0) / scale
    # What rounding leaves of two equal models is no spread.
    squared[squared < _HAIR * (own[:, None] + own[None, :]) / scale] = 0
    error = np.sqrt(squared)
    z = np.divide(difference, error, out=np.zeros((m, m)), where=error > 0)
    p = 2 * stats.norm.sf(np.abs(z))
    constant = (error == 0) & (np.abs(difference) > 0)
    p[constant] = np.nan
    upper = np.triu_indices(m, 1)
    adjusted = np.ones((m, m))
    adjusted[upper] = holm(np.where(constant, 0.0, p)[upper])
    adjusted = np.minimum(adjusted, adjusted.T)
    return Pairwise(
        difference=difference,
        error=error,
        p=p,
        mcnemar_p=_mcnemar(scores),
        adjusted=adjusted,
    )


def _mcnemar(scores: Floats) -> Floats:
    if not bool(np.all((scores == 0) | (scores == 1))):
        return np.full((len(scores), len(scores)), np.nan)
    only_row = scores @ (1 - scores).T
    both = only_row + only_row.T
    fewer = np.minimum(only_row, only_row.T)
    result: Floats = np.minimum(1.0, 2 * stats.binom.cdf(fewer, np.maximum(both, 1), 0.5))
    result[both == 0] = 1.0
    return result


def rank_intervals(pairs: Pairwise, level: float = 0.95) -> Ints:
    """Simultaneous rank intervals, int64[models, 2]: first and last place a model may have.

    1 + the models significantly better, and m - those significantly worse, by paired tests with
    Holm over all pairs (in the style of Mogstad et al.).
    """
    m = len(pairs.difference)
    apart = pairs.adjusted < 1 - level
    better = (apart & (pairs.difference < 0)).sum(axis=1)
    worse = (apart & (pairs.difference > 0)).sum(axis=1)
    return np.stack([1 + better, m - worse], axis=1).astype(np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """What dropping as many random items does.

    tau       of full against clean, as observed
    tau_low   5th percentile of tau over random deletions; tau_median  their median
    p         share of deletions whose ranking agrees no better, with the +1 correction
    moved     float64[models], s.d. of a model's score over random deletions
    """

    tau: float
    tau_low: float
    tau_median: float
    p: float
    moved: Floats


def random_deletion(
    scores: Floats, flagged: Bools, *, draws: int = 1_000, seed: int = 0
) -> Deletion:
    """Compare full against clean with full against the rest after deleting random items.

    scores  float64[models, items]
    """
    m, n = scores.shape
    n_flagged = int(flagged.sum())
    full = scores.mean(axis=1).round(_DIGITS)
    nothing = np.full(m, _NAN)
    if m < _TWO or n_flagged in (0, n):
        return Deletion(tau=_NAN, tau_low=_NAN, tau_median=_NAN, p=_NAN, moved=nothing)
    observed = agreement(full, scores[:, ~flagged].mean(axis=1).round(_DIGITS)).tau
    # Products too small for a linear algebra library to start threads of its own below ours: on a
    # busy machine those wait for one another longer than they compute.
    n_parts = -(-n // _PART)
    parts = np.zeros((n_parts * _PART, m))
    parts[:n] = scores.T
    parts = parts.reshape(n_parts, _PART, m)
    begins = range(0, draws, _BLOCK)
    # A generator for each block: the draws are the same for any number of threads.
    seeds = np.random.SeedSequence(seed).spawn(len(begins))

    def drop(task: tuple[int, np.random.SeedSequence]) -> Floats:
        begin, own = task
        rng = np.random.default_rng(own)
        masks = np.zeros((min(_BLOCK, draws - begin), n_parts * _PART))
        for mask in masks:
            mask[np.argpartition(rng.random(n), n_flagged)[:n_flagged]] = 1
        by_part = masks.reshape(len(masks), n_parts, _PART).transpose(1, 0, 2)
        summed: Floats = (by_part @ parts).sum(axis=0)
        return summed

    gone = np.concatenate(in_threads(drop, list(zip(begins, seeds, strict=True))))
    kept = (scores.sum(axis=1) - gone) / (n - n_flagged)
    # Sums in another order round differently; equal scores must tie in every draw.
    kept = kept.round(_DIGITS)
    taus = np.array(in_threads(lambda one: _tau(full, one), list(kept)))
    known = taus[~np.isnan(taus)]
    if np.isnan(observed) or not len(known):
        return Deletion(tau=observed, tau_low=_NAN, tau_median=_NAN, p=_NAN, moved=nothing)
    worse = int(np.count_nonzero(known <= observed + 1e-12))
    return Deletion(
        tau=observed,
        tau_low=float(np.percentile(known, 5)),
        tau_median=float(np.median(known)),
        p=(1 + worse) / (1 + len(known)),
        moved=kept.std(axis=0, ddof=1),
    )


def win_shares(table: Floats) -> Floats:
    """Share of the tasks both have on which the row's model strictly beats the column's.

    table   float64[models, tasks], nan where a model has no score
    return  float64[models, models], 0 on the diagonal and where two share no task
    """
    m = len(table)
    shares = np.zeros((m, m))
    for a in range(m):
        both = ~np.isnan(table[a]) & ~np.isnan(table)
        n_both = both.sum(axis=1)
        beaten = ((table[a] > table) & both).sum(axis=1)
        np.divide(beaten, n_both, out=shares[a], where=n_both > 0)
        shares[a, a] = 0.0
    return shares


def win_rate(table: Floats) -> Floats:
    """Share of tasks on which a model strictly beats another, over all models.

    table   float64[models, tasks], nan where a model has no score
    return  float64[models]; a model counts once in the m it is divided by, ties lose for both and
            missing cells are skipped (BenchBench's convention)
    """
    # Sums of thirds and the like: models that win equally often must tie.
    wins: Floats = (win_shares(table).sum(axis=1) / len(table)).round(_DIGITS)
    return wins


def published_win_rate(shares: Floats) -> Floats:
    """The same of `win_shares`, added up one by one as BenchBench's arrays are, nothing rounded.

    Models that win equally often then differ by what rounding leaves, and rankings made from it
    break those ties by nothing else: printed figures need this, a report does not.
    """
    result: Floats = np.cumsum(shares, axis=1)[:, -1] / len(shares)
    return result


def borda(table: Floats) -> Floats:
    """Sum over tasks of the models beaten: m - rank; tasks without a score add nothing."""
    m = len(table)
    points = np.zeros(m)
    for column in table.T:
        known = ~np.isnan(column)
        points[known] += m - stats.rankdata(-column[known])
    return points
