"""Compute the gain over all thresholds of a policy, and test the best one honestly."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from contam.rescore.stats.clusters import blocks_of, right_or_wrong, shuffled
from contam.rescore.stats.dealing import drawn_p, most_draws
from contam.rescore.stats.gain import LEAST, gain_z

if TYPE_CHECKING:
    from contam.rescore.arrays import Floats, Ints


_MOST: Final = 200
_AT_ONCE: Final = 5_000
_MOST_WORK: Final = 200_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """One row per threshold, falling: an item is flagged from it on.

    z, z_nested  nan where a subset has fewer items than `least`
    best         the row with the largest z, -1 without one
    p            of that largest z, when the search over thresholds is counted in
    """

    threshold: Floats
    flagged: Ints
    epg: Floats
    z: Floats
    z_nested: Floats
    best: int
    p: float


def sweep(
    scores: Floats,
    contamination: Floats,
    *,
    least: int = LEAST,
    permutations: int = 1_000,
    seed: int = 0,
    family: int = 1,
    cluster: Ints | None = None,
) -> Sweep:
    """Move the threshold over every value of contamination (float64[n]; nan is never flagged).

    cluster  items that rise and fall together: then whole clusters of one size are permuted

    permutations  draws at first; family  how many tests p is adjusted over

    p permutes the contamination scores over items, takes the largest z over thresholds each time,
    and counts how often it reaches the observed one: (1 + hits) / (1 + draws). The largest z over
    thresholds is not normal, so its own tail would overstate.
    """
    n = len(scores)
    value = np.where(np.isnan(contamination), -np.inf, contamination)
    thresholds = np.unique(value[np.isfinite(value)])
    if len(thresholds) > _MOST:
        at = np.linspace(0, len(thresholds) - 1, _MOST).round().astype(np.int64)
        thresholds = thresholds[at]
    order = np.argsort(-value, kind="stable")
    thresholds = thresholds[::-1]
    flagged = np.searchsorted(-value[order], -thresholds, side="right").astype(np.int64)
    deviation = float(np.std(scores)) if n else 0.0
    total = float(scores.sum())

    def gains(ordered: Floats) -> Floats:
        return gains_of(np.concatenate([[0.0], np.cumsum(ordered)])[flagged])

    def gains_of(dirty: Floats) -> Floats:
        clean = np.full(dirty.shape, np.nan)
        np.divide(total - dirty, n - flagged, out=clean, where=n > flagged)
        result: Floats = total / n - clean
        return result

    epg = gains(scores[order])
    usable = (flagged >= least) & (n - flagged >= least)
    pairs = [gain_z(g, deviation, n, n - int(d)) for g, d in zip(epg, flagged, strict=True)]
    z = np.array([pair[0] for pair in pairs]).reshape(-1)
    nested = np.array([pair[1] for pair in pairs]).reshape(-1)
    z[~usable] = np.nan
    nested[~usable] = np.nan
    made = partial(Sweep, threshold=thresholds, flagged=flagged, epg=epg, z=z, z_nested=nested)
    if not usable.any() or deviation == 0:
        return made(best=-1, p=float("nan"))
    scale = np.sqrt(n - flagged[usable]) / deviation
    best = int(np.nanargmax(z))
    rng = np.random.default_rng(seed)
    reached = z[best] - 1e-12
    binary = right_or_wrong(scores)
    blocks = None if cluster is None else blocks_of(cluster)
    # Right answers dealt out among the stretches between thresholds: the same law, and cheaper.
    sizes = np.diff(np.append(np.insert(flagged, 0, 0), n))

    def hits_in(draws: int) -> int:
        hits = 0
        if blocks is None and binary:
            for begin in range(0, draws, _AT_ONCE):
                number = min(_AT_ONCE, draws - begin)
                dealt = rng.multivariate_hypergeometric(
                    sizes, int(total), size=number, method="marginals"
                )
                dirty = np.cumsum(dealt[:, :-1], axis=1).astype(np.float64)
                largest = (gains_of(dirty)[:, usable] * scale).max(axis=1)
                hits += int(np.count_nonzero(largest >= reached))
            return hits
        for _ in range(draws):
            moved = rng.permutation(scores) if blocks is None else scores[shuffled(blocks, n, rng)]
            hits += bool((gains(moved[order])[usable] * scale).max() >= reached)
        return hits

    work = len(thresholds) if blocks is None and binary else n
    found = drawn_p(hits_in, permutations, min(most_draws(family), _MOST_WORK // work))
    return made(best=best, p=found.p)
