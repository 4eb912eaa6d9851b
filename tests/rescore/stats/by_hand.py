"""A twin of `ranking.pairwise` for two models, which tests one pair at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

from contam.rescore.stats import board
from contam.rescore.stats.clusters import Estimate, spread_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

_NAN = float("nan")
_MANY_CLUSTERS = 10
_LEAST_CLUSTERS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Mean difference first - second over common items, its paired error, z and two-sided p.

    z  difference / error
    p  McNemar's exact one for 0/1 scores of items that stand alone, else of the paired t test, by
       whole clusters where there are any
    """

    difference: float
    error: float
    z: float
    p: float


def compare(first: Floats, second: Floats, cluster: Ints | None = None) -> Comparison:
    """Compare two models by their scores on the same n items (Miller 2024)."""
    d = first - second
    difference = float(d.mean()) if len(d) else _NAN
    spread = spread_of(d, cluster)
    found = Estimate(difference, spread.error, spread.df)
    if not spread.error > 1e-6 * abs(difference):
        # Equal on every item, apart by the same amount on every one, or all in one cluster.
        equal = spread.n_clusters >= _LEAST_CLUSTERS and difference == 0
        signs = 2.0 ** (1 - spread.n_clusters) if spread.n_clusters >= _MANY_CLUSTERS else _NAN
        z, p = (0.0, 1.0) if equal else (_NAN, signs)
    else:
        z, p = difference / spread.error, max(found.p, 2.0 ** (1 - spread.n_clusters))
    binary = bool(np.all((first == 0) | (first == 1)) and np.all((second == 0) | (second == 1)))
    if binary and spread.n_clusters == len(d):
        p = mcnemar(first, second)
    return Comparison(difference=difference, error=spread.error, z=z, p=p)


def mcnemar(first: Floats, second: Floats) -> float:
    """Exact two-sided McNemar p: binomial(min(n10, n01), n10 + n01, 1/2); 1 if none differ."""
    only_first = int(np.count_nonzero(first > second))
    only_second = int(np.count_nonzero(second > first))
    n = only_first + only_second
    return float(stats.binomtest(min(only_first, only_second), n, 0.5).pvalue) if n else 1.0


def filled(table, neighbours=5):
    """The table with each gap filled by the mean of the nearest models that have the task.

    Near by Euclidean distance over the tasks both have, scaled up to all tasks; the task's own mean
    where no model shares a task. The published diversity of tables with gaps is that of this one.
    """
    gaps = np.isnan(table)
    zero = np.where(gaps, 0.0, table)
    known = (~gaps).astype(np.float64)
    both = known @ known.T
    squares = (zero * zero) @ known.T
    apart = np.maximum(squares + squares.T - 2 * zero @ zero.T, 0)
    distance = np.full(apart.shape, np.inf)
    np.divide(apart * table.shape[1], both, out=distance, where=both > 0)
    result = table.copy()
    for model, task in np.argwhere(gaps):
        donors = np.flatnonzero(~gaps[:, task])
        near = donors[np.argsort(distance[model, donors], kind="stable")[:neighbours]]
        near = near[np.isfinite(distance[model, near])]
        chosen = near if len(near) else donors
        result[model, task] = table[chosen, task].mean() if len(chosen) else np.nan
    return result


LEAST_WEIGHT = 0.01
STEPS = 1_000
RATE = 0.01
HAIR = 1e-8


def draw_field(table, top, *, seed=0):
    """The published search: each other model stays with a chance of its own, learned by draws.

    1,000 draws; straight-through gradients of a hinge on the win rates, Adam with steps of 0.01;
    the best field drawn is kept. Its draws are ours, so it finds what the paper finds only nearly;
    `search_field` finds more.
    """
    shares = board.win_shares(table)
    m = len(table)
    among = board.near_ranks(board.published_win_rate(shares[np.ix_(top, top)]))
    before = among[:, None] < among[None, :]
    best = board.Witness(change=board.Change(distance=0.0, largest=0.0), field=np.sort(top))
    rng = np.random.default_rng(seed)
    logits, mean, square = np.zeros(m), np.zeros(m), np.zeros(m)
    for step in range(1, STEPS + 1):
        stays = (rng.random(m) < 1 / (1 + np.exp(-logits))).astype(np.float64)
        stays[top] = 1.0
        beaten = shares @ stays
        wins = stays * beaten / stays.sum()
        lead = wins[top][:, None] - wins[top][None, :]
        active = before & (lead >= -LEAST_WEIGHT)
        by_wins = np.zeros(m)
        by_wins[top] = active.sum(axis=1) - active.sum(axis=0)
        slope = by_wins * beaten + (by_wins * stays) @ shares - float(by_wins @ wins)
        slope /= stays.sum()
        mean = 0.9 * mean + 0.1 * slope
        square = 0.999 * square + 0.001 * slope**2
        scale = np.sqrt(square / (1 - 0.999**step)) + HAIR
        logits -= RATE * mean / (1 - 0.9**step) / scale
        field = np.flatnonzero(stays).astype(np.int64)
        change = board.in_field(shares, top, field)
        if change.distance > best.change.distance:
            best = board.Witness(change=change, field=field)
    return best
