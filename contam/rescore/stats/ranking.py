"""Compare rankings: agreement, certainty of places, effect of deleting items."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import betainc, ndtri, stdtr

from contam.rescore.stats.clusters import (
    LEAST_CLUSTERS,
    blocks_of,
    freedom,
    right_or_wrong,
    shuffled,
)
from contam.rescore.stats.permutation import ENOUGH, holm, in_threads

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from contam.rescore import Bools, Floats, Ints


def average_ranks(values: NDArray[np.generic]) -> Floats:
    """Ranks from 1 for the lowest value; float64[n], as `scipy.stats.rankdata` gives them.

    Importing `scipy.stats` takes a second, in every command.
    """
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: Floats = (last - (counts - 1) / 2)[place]
    return ranks


_HAIR = 1e-12
_DIGITS = 12
_BLOCK = 32
_PART = 64
_CELLS = 1 << 18
_MANY = 300


def ranks(scores: Floats) -> Floats:
    """Average ranks, 1 for the highest score."""
    return average_ranks(-scores)


def means(scores: Floats) -> Floats:
    """Mean scores of models, float64[models, items], over the items that each has."""
    n_known = np.count_nonzero(~np.isnan(scores), axis=1)
    result = np.full(len(scores), np.nan)
    np.divide(np.nansum(scores, axis=1), n_known, out=result, where=n_known > 0)
    # Sums over another number of items round differently: equal models must tie.
    return result.round(_DIGITS)


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
    if len(first) <= 1:
        return Agreement(tau=np.nan, distance=np.nan, rho=np.nan, largest=np.nan)
    constant = np.ptp(first) == 0 or np.ptp(second) == 0
    tau = float(kendall(first, second[None, :])[0])
    rho = np.nan if constant else float(np.corrcoef(ranks(first), ranks(second))[0, 1])
    moved = np.abs(ranks(second) - ranks(first)).max() / (len(first) - 1)
    return Agreement(tau=tau, distance=(1 - tau) / 2, rho=rho, largest=float(moved))


def kendall(first: Floats, others: Floats) -> Floats:
    """Kendall's tau-b of one scoring of m models against many; nan where either ties all models.

    first   float64[m];  others  float64[n, m]
    return  float64[n], nan for a scoring with a nan in it
    """
    above = (first[:, None] > first[None, :]).ravel()
    below = (first[:, None] < first[None, :]).ravel()
    taus: Floats = np.full(len(others), np.nan)
    n_first = int(np.count_nonzero(above))
    if n_first == 0 or np.isnan(first).any():
        return taus
    if len(first) > _MANY:
        # Sorting beats comparing all pairs, once they are many. Importing it takes a second.
        from scipy.stats import kendalltau

        return np.array(in_threads(lambda other: kendalltau(first, other).statistic, others))
    step = max(1, _CELLS // len(above))
    for begin in range(0, len(others), step):
        part = others[begin : begin + step]
        # Ordered pairs: of any two models that are not tied, one place holds True.
        over = (part[:, :, None] > part[:, None, :]).reshape(len(part), -1)
        agree = np.count_nonzero(over & above, axis=1) - np.count_nonzero(over & below, axis=1)
        n_over = np.count_nonzero(over, axis=1)
        known = (n_over > 0) & ~np.isnan(part).any(axis=1)
        found = agree[known] / np.sqrt(n_first) / np.sqrt(n_over[known])
        taus[begin : begin + step][known] = np.clip(found, -1.0, 1.0)
    return taus


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairwise:
    """Every model against every other on the items that both have; float64[models, models].

    difference  score of the row minus that of the column
    error       its paired standard error; nan where all items share one cluster
    p           two-sided, at least that of as many equal signs as there are clusters (or items that
                stand alone); nan without an error, and where fewer than 10 differ by the same
    adjusted    p after Holm over all pairs
    """

    difference: Floats
    error: Floats
    p: Floats
    adjusted: Floats


def pairwise(scores: Floats, cluster: Ints | None = None) -> Pairwise:
    """Paired comparisons of all models, float64[models, items], nan where a model lacks the item.

    0/1 scores of items that all stand alone have McNemar's exact test, others the t test by whole
    clusters.
    """
    return _by_pairs(scores, lambda own, at: _paired(own, None if cluster is None else cluster[at]))


def changes(scores: Floats, flagged: Bools, clean: Bools, cluster: Ints | None = None) -> Pairwise:
    """How far every lead, row less column, is larger on flagged items than on clean ones.

    scores  float64[models, items], nan where a model lacks the item; flagged, clean  bool[items]

    The same items for both models, so paired, with Welch's two errors; by whole clusters, which may
    lie on both sides. Degrees of freedom of the side that has fewer. It is the test of the
    difference of two models' gains as well, which is the share flagged times this.
    """

    def tested(own: Floats, at: Bools | slice) -> _Tested:
        code = None if cluster is None else cluster[at]
        return _changed(own, (flagged[at], clean[at]), code)

    return _by_pairs(scores, tested)


_Tested = tuple["Floats", "Floats", "Floats"]


def _by_pairs(scores: Floats, tested: Callable[[Floats, Bools | slice], _Tested]) -> Pairwise:
    """All pairs, each compared on the items that both models have."""
    there = ~np.isnan(scores)
    if there.all():
        return _pairwise(*tested(scores, slice(None)))
    m = len(scores)
    found = np.full((3, m, m), np.nan)
    pairs = [(a, b) for a in range(m) for b in range(a)]

    def of(pair: tuple[int, int]) -> _Tested:
        both = there[pair[0]] & there[pair[1]]
        if np.count_nonzero(both) <= 1:
            return (np.full((2, 2), np.nan),) * 3
        return tested(scores[list(pair)][:, both], both)

    for (a, b), own in zip(pairs, in_threads(of, pairs), strict=True):
        found[:, a, b] = [figures[0, 1] for figures in own]
        found[:, b, a] = [figures[1, 0] for figures in own]
    for figures, of_itself in zip(found, (0.0, 0.0, 1.0), strict=True):
        np.fill_diagonal(figures, of_itself)
    return _pairwise(*found)


def _pairwise(difference: Floats, error: Floats, p: Floats) -> Pairwise:
    """With Holm over all pairs, those without a p among them; 1 on the diagonal."""
    upper = np.triu_indices(len(p), 1)
    adjusted = np.ones(p.shape)
    adjusted[upper] = holm(np.nan_to_num(p[upper], nan=1.0))
    return Pairwise(
        difference=difference, error=error, p=p, adjusted=np.minimum(adjusted, adjusted.T)
    )


def _paired(scores: Floats, cluster: Ints | None) -> _Tested:
    m, n = scores.shape
    mean = scores.mean(axis=1)
    difference = mean[:, None] - mean[None, :]
    rest = scores - mean[:, None]
    alone = _squared(rest) / (n * (n - 1))
    n_clusters = n
    if cluster is None:
        squared, df = alone, np.full((m, m), n - 1.0)
    else:
        code, sizes = np.unique(cluster, return_inverse=True, return_counts=True)[1:]
        n_clusters = len(sizes)
        sums = np.array([np.bincount(code, weights=row) for row in rest])
        if n_clusters == 1:
            squared = np.full((m, m), np.nan)
        else:
            squared = _squared(sums / n / np.sqrt(1 - sizes / n))
        effect = np.divide(squared, alone, out=np.full((m, m), np.nan), where=alone > 0)
        df = freedom(sizes.astype(np.int64), effect)
    if right_or_wrong(scores) and n_clusters == n:
        return difference, np.sqrt(squared), _mcnemar(scores)
    return difference, np.sqrt(squared), _t_test(difference, np.sqrt(squared), df, n_clusters)


def _changed(scores: Floats, sides: tuple[Bools, Bools], cluster: Ints | None) -> _Tested:
    m, n = scores.shape
    code = np.arange(n) if cluster is None else np.unique(cluster, return_inverse=True)[1]
    parts = np.zeros((m, int(code.max(initial=-1)) + 1))
    level, df, fewest = np.zeros(m), np.inf, n
    for sign, side in zip((1, -1), sides, strict=True):
        at, own = code[side], scores[:, side]
        sizes = np.bincount(at, minlength=parts.shape[1])
        there = sizes[sizes > 0]
        if len(there) <= 1:
            return (np.full((m, m), np.nan),) * 3
        mean = own.mean(axis=1)
        level += sign * mean
        scale = sign / len(at) / np.sqrt(1 - sizes / len(at))
        for model, rest in enumerate(own - mean[:, None]):
            parts[model] += scale * np.bincount(at, weights=rest, minlength=len(sizes))
        df = min(df, float(freedom(there, np.array(np.nan))))
        fewest = min(fewest, len(there))
    change, error = level[:, None] - level[None, :], np.sqrt(_squared(parts))
    return change, error, _t_test(change, error, np.full((m, m), df), fewest)


#: An error below this share of the difference is what rounding leaves.
_ROUNDING = 1e-6


def _t_test(difference: Floats, error: Floats, df: Floats, n_clusters: int) -> Floats:
    known = error > _ROUNDING * np.abs(difference)
    t = np.divide(difference, error, out=np.zeros_like(error), where=known)
    # Sums of few clusters are often nearly equal by chance: no p is below that of equal signs.
    signs = 2.0 ** (1 - min(n_clusters, 1_000))
    p: Floats = np.where(known, 2 * stdtr(np.maximum(df, _HAIR), -np.abs(t)), np.nan)
    p = np.maximum(p, signs)
    none = ~known & ~np.isnan(error)
    if n_clusters >= LEAST_CLUSTERS:
        p[none] = signs
    p[none & (np.abs(difference) <= _HAIR)] = 1.0
    return p


def _squared(rest: Floats) -> Floats:
    """float64[models, models]: sums of squares of the differences of two rows."""
    product = rest @ rest.T
    own = np.diag(product)
    both = own[:, None] + own[None, :]
    squared: Floats = np.maximum(both - 2 * product, 0)
    # What rounding leaves of two equal models is no spread.
    squared[squared < _HAIR * both] = 0
    return squared


def _mcnemar(scores: Floats) -> Floats:
    only_row = scores @ (1 - scores).T
    both = only_row + only_row.T
    fewer = np.minimum(only_row, only_row.T)
    # The binomial distribution of chance 1/2, up to the rarer of the two outcomes.
    result: Floats = np.minimum(1.0, 2 * betainc(both - fewer, fewer + 1, 0.5))
    result[both == 0] = 1.0
    return result


def detectable(n: int, variance: float, alpha: float = 0.05, power: float = 0.8) -> float:
    """The smallest difference of two means that n items show: the minimum detectable effect.

    variance  of one item's difference, its noise included (Miller 2024)
    """
    if not n:
        return np.nan
    return float((ndtri(1 - alpha / 2) + ndtri(power)) * np.sqrt(variance / n))


def rank_intervals(pairs: Pairwise, level: float = 0.95, *, joint: bool = False) -> Ints:
    """First and last place each model may have, int64[models, 2].

    1 + the models significantly better, and m - those significantly worse, by paired tests (Mogstad
    et al. 2024): with Holm over each model's own pairs, an interval for one model that somebody
    asks about; `joint`: over all pairs, so that all intervals hold at once.
    """
    m = len(pairs.difference)
    adjusted = pairs.adjusted
    if not joint:
        adjusted = np.nan_to_num(pairs.p, nan=1.0)
        for own, others in zip(adjusted, ~np.eye(m, dtype=np.bool_), strict=True):
            own[others] = holm(own[others])
    apart = adjusted < 1 - level
    better = (apart & (pairs.difference < 0)).sum(axis=1)
    worse = (apart & (pairs.difference > 0)).sum(axis=1)
    return np.stack([1 + better, m - worse], axis=1).astype(np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """What dropping as many random items does.

    tau       of full against clean, as observed
    tau_median  over random deletions
    p         share of deletions whose ranking agrees no better, with the +1 correction
    moved     float64[models], s.d. of a model's score over random deletions
    """

    tau: float
    tau_median: float
    p: float
    moved: Floats


def random_deletion(
    scores: Floats,
    flagged: Bools,
    *,
    draws: int = 1_000,
    most: int = 0,
    seed: int = 0,
    cluster: Ints | None = None,
) -> Deletion:
    """Compare full against clean with full against the rest after deleting random items.

    scores   float64[models, items], nan where a model lacks the item
    most     draws that may be made where few of the first ones agree no better
    cluster  int64[items], items that rise and fall together: then clusters of one size swap what
             is deleted of them; no p where none can
    """
    m, n = scores.shape
    n_flagged = int(flagged.sum())
    full = means(scores)
    nothing = Deletion(tau=np.nan, tau_median=np.nan, p=np.nan, moved=np.full(m, np.nan))
    if m <= 1 or n_flagged in (0, n):
        return nothing
    observed = agreement(full, means(scores[:, ~flagged])).tau
    blocks = None if cluster is None else blocks_of(cluster)
    still = blocks and all((flagged[block] == flagged[block[:1]]).all() for block in blocks)
    if np.isnan(observed) or still:
        return replace(nothing, tau=observed)
    draw = _deleting(scores, flagged, blocks)
    seeds = np.random.SeedSequence(seed)
    kept, taus = np.empty((0, m)), np.empty(0)
    step = draws
    while step > 0:
        more = draw(step, seeds)
        kept = np.concatenate([kept, more])
        taus = np.append(taus, kendall(full, more))
        worse = int(np.count_nonzero(taus <= observed + 1e-12))
        if worse >= ENOUGH:
            break
        step = min(len(taus), most - len(taus))
    known = taus[~np.isnan(taus)]
    if not len(known):
        return replace(nothing, tau=observed)
    return Deletion(
        tau=observed,
        tau_median=float(np.median(known)),
        p=(1 + worse) / (1 + len(known)),
        moved=kept.std(axis=0, ddof=1),
    )


def _deleting(
    scores: Floats, flagged: Bools, blocks: list[Ints] | None
) -> Callable[[int, np.random.SeedSequence], Floats]:
    """What makes so many random deletions: float64[draws, models], the means of what is left."""
    m, n = scores.shape
    n_flagged = int(flagged.sum())
    there = ~np.isnan(scores)
    whole = bool(there.all())
    known = np.nan_to_num(scores)
    # Scores, and behind them how many there are where some lack.
    rows = known if whole else np.concatenate([known, there])
    # Products too small for a linear algebra library to start threads of its own below ours: on a
    # busy machine those wait for one another longer than they compute.
    n_parts = -(-n // _PART)
    parts = np.zeros((n_parts * _PART, len(rows)))
    parts[:n] = rows.T
    parts = parts.reshape(n_parts, _PART, len(rows))

    def drop(task: tuple[int, np.random.SeedSequence]) -> Floats:
        number, own = task
        rng = np.random.default_rng(own)
        masks = np.zeros((number, n_parts * _PART))
        for mask in masks:
            if blocks is None:
                mask[np.argpartition(rng.random(n), n_flagged)[:n_flagged]] = 1
            else:
                mask[:n] = flagged[shuffled(blocks, n, rng)]
        by_part = masks.reshape(len(masks), n_parts, _PART).transpose(1, 0, 2)
        summed: Floats = (by_part @ parts).sum(axis=0)
        return summed

    def draw(draws: int, seeds: np.random.SeedSequence) -> Floats:
        sizes = [min(_BLOCK, draws - begin) for begin in range(0, draws, _BLOCK)]
        # A generator for each block: the draws are the same for any number of threads.
        own = seeds.spawn(len(sizes))
        gone = np.concatenate(in_threads(drop, list(zip(sizes, own, strict=True))))
        # Sums in another order round differently; equal scores must tie in every draw.
        left = rows.sum(axis=1) - gone
        n_left = n - n_flagged if whole else left[:, m:]
        kept: Floats = (left[:, :m] / n_left).round(_DIGITS)
        return kept

    return draw


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
        points[known] += m - ranks(column[known])
    return points
