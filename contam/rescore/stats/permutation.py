"""Test by permutation how often chance alone sets the flagged items so far apart.

Without a leak the flags say nothing about the scores, so every way to deal as many of them out is
equally likely. Compared is the difference of means over its own standard error (the studentised
permutation test of Janssen 1997, Chung and Romano 2013): exact where flags fall at random, and the
differences it does not reject are an interval of the true one. Below that p is adjusted over a
family of tests, and independent ones run at once.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import numpy as np
from scipy.special import ndtri

from contam.memory import usable_cores
from contam.rescore.stats.clusters import SURE, are_shares, blocks_of, right_or_wrong

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from contam.rescore import Bools, Floats, Ints


EXACT: Final = "exact"
ENOUGH: Final = 100
"""Draws as far out as the observed one after which no more are made: p is known to 10 %."""

_HITS_AT_THRESHOLD: Final = 20
_MOST_DRAWS: Final = 1_000_000
_MOST_WORK: Final = 500_000_000
_DRAWS_AT_ONCE: Final = 20_000
_CELLS: Final = 1_000_000
_FEW_VALUES: Final = 64
_HAIR: Final = 1e-9
_NORMAL: Final = float(ndtri(1 - SURE / 2))
#: What is less likely is not told apart from it.
_TINY: Final = float(np.finfo(np.float64).tiny)


class Drawn(NamedTuple):
    """A p by draws, and how many were made: "10000 draws"."""

    p: float
    how: str


@dataclass(frozen=True, slots=True)
class PermutationTest:
    """Mean of the flagged items less that of the others, and the test of whether it is 0.

    low, high  95 % limits; nan where no difference could be significant
    p          two-sided; below 0.05 if and only if the limits leave 0 out
    how        how p was made: "exact", "10000 draws", or "" without one
    """

    gap: float
    low: float
    high: float
    p: float
    how: str


def most_draws(family: int) -> int:
    """Draws that show p beside the smallest threshold of a family of tests: 20 hits at 0.05 / m."""
    return min(_MOST_DRAWS, int(np.ceil(_HITS_AT_THRESHOLD * max(1, family) / SURE)))


def drawn_p(hits_in: Callable[[int], int], first: int, most: int) -> Drawn:
    """Draw until enough draws reach what was observed: (1 + hits) / (1 + draws).

    hits_in  makes so many draws and says how many of them reach it
    first    draws made in any case; most  draws after which p is given as it stands, at most which
             it then is

    Draws double until `ENOUGH` of them are hits (after Besag and Clifford 1991), so a large p costs
    little and a small one is resolved.
    """
    draws = hits = 0
    step = first
    while step > 0:
        hits += hits_in(step)
        draws += step
        if hits >= ENOUGH:
            break
        step = min(draws, most - draws)
    return Drawn((1 + hits) / (1 + draws), f"{draws} draws")


def permutation_test(
    scores: Floats,
    flagged: Bools,
    *,
    permutations: int,
    seed: int,
    family: int = 1,
    cluster: Ints | None = None,
) -> PermutationTest:
    """Mean score of the flagged items, of float64[n], less that of the others, and its test.

    flagged       bool[n], some of each
    permutations  draws at first, where p is not exact; family  how many tests p is adjusted over
    cluster       int64[n], items that rise and fall together: then whole clusters of one size swap
                  their flags; p is nan where none can

    Exact for 0/1 scores of items that stand alone.
    """
    if cluster is None and right_or_wrong(scores):
        return _exact(scores, flagged)
    gap = float(scores[flagged].mean() - scores[~flagged].mean())
    scale = float(np.abs(scores).max())
    ways = _Ways(scores / (scale or 1.0), flagged, cluster)
    if not ways.moving:
        return PermutationTest(gap, np.nan, np.nan, np.nan, "")
    if np.ptp(scores) == 0:
        return PermutationTest(gap, np.nan, np.nan, 1.0, EXACT)
    rng = np.random.default_rng(seed)
    seen: list[Floats] = []

    def hits_in(draws: int) -> int:
        sizes = [min(_DRAWS_AT_ONCE, draws - done) for done in range(0, draws, _DRAWS_AT_ONCE)]
        drawn = np.concatenate([ways.draw(size, rng) for size in sizes])
        seen.append(drawn)
        return int(np.count_nonzero(drawn >= ways.observed * (1 - _HAIR)))

    p, how = drawn_p(hits_in, permutations, min(most_draws(family), _MOST_WORK // ways.work))
    every = np.sort(np.concatenate(seen))
    # The draw furthest out with a p of at least 0.05.
    quantile = float(every[len(every) + 1 - int(np.ceil(SURE * (1 + len(every))))])
    if quantile >= every[-1] * (1 - _HAIR):
        return PermutationTest(gap, np.nan, np.nan, p, how)
    half = scale * ways.error * quantile
    most = 1.0 if are_shares(scores) else np.inf
    return PermutationTest(gap, *_limits(gap, half, p, most), p, how)


def _limits(gap: float, half: float, p: float, most: float = 1.0) -> tuple[float, float]:
    """The interval, which rounding does not part from p; within -most and most."""
    low, high = max(-most, gap - half), min(most, gap + half)
    return (min(0.0, low), max(0.0, high)) if p >= SURE else (low, high)


def _exact(scores: Floats, flagged: Bools) -> PermutationTest:
    """Of 0/1 scores: right answers among the flagged items are hypergeometric."""
    n, k, right = len(scores), int(flagged.sum()), int(scores.sum())
    own = int(scores[flagged].sum())
    chances = _hypergeometric(n, right, k)
    taken = np.arange(k + 1)
    gaps = taken / k - (right - taken) / (n - k)
    errors = np.zeros(k + 1)
    for among, of in ((taken, k), (right - taken, n - k)):
        # With one right and one wrong answer more neither side is certain (Agresti and Caffo 2000).
        share = np.clip((among + 1) / (of + 2), 0, 1)
        errors += share * (1 - share) / (of + 2)
    errors = np.sqrt(np.maximum(errors, _TINY))
    apart = np.where(chances > 0, np.abs(gaps) / errors, -1.0)
    order = np.argsort(-apart, kind="stable")
    falling = apart[order]
    last = np.searchsorted(-falling, -falling * (1 - _HAIR), side="right") - 1
    tails = np.cumsum(chances[order])[last]
    p = float(tails[order == own][0])
    p = min(1.0, max(p, _TINY))
    quantile = float(falling[tails >= SURE].max())
    if quantile >= falling[0]:
        quantile = max(quantile, _NORMAL)
    gap = float(gaps[own])
    return PermutationTest(gap, *_limits(gap, quantile * float(errors[own]), p), p, EXACT)


class _Ways:
    """The ways to deal the flags out among clusters of one size, and the statistic of each.

    A cluster adds A to the difference of means, and A - B * (mean of the flagged) + C * (mean of
    the others) to its error, squared; B and C are its shares of both sides. Of a draw the sums of
    A, A**2, A * B and A * C are needed; those of B and C alone are the same in all.
    """

    def __init__(self, scores: Floats, flagged: Bools, cluster: Ints | None) -> None:
        n, k = len(scores), int(flagged.sum())
        self._ratio, self._level = k / (n - k), float(scores.sum()) / (n - k)
        code = np.arange(n) if cluster is None else cluster
        blocks = [_Block.of(scores[at], flagged[at], k, n - k) for at in blocks_of(code)]
        self.moving = [block for block in blocks if block.counts.size > 1]
        still = [block for block in blocks if block.counts.size <= 1]
        self._fixed = sum((block.observed for block in still), np.zeros(4))
        self._same = sum((block.same for block in blocks), np.zeros(3))
        self._least = 0.0
        self._n_clusters = sum(len(block.kind) for block in blocks)
        self.work = max(1, sum(block.worth.size for block in self.moving))
        self.observed = self.error = np.nan

    def draw(self, draws: int, rng: np.random.Generator) -> Floats:
        """The statistic of so many ways; float64[draws]."""
        sums = self._fixed + sum(block.draw(draws, rng) for block in self.moving)
        if np.isnan(self.error):
            # Not 0, even where no cluster differs from its side's mean.
            self._least = float(np.var(sums[:, 0])) / self._n_clusters
            own = self._fixed + sum(block.observed for block in self.moving)
            self.error = float(self._errors(own[None])[0])
            self.observed = abs(float(own[0])) / self.error
        result: Floats = np.abs(sums[:, 0]) / self._errors(sums)
        return result

    def _errors(self, sums: Floats) -> Floats:
        gap, square, with_b, with_c = sums.T
        first = (gap + self._level) / (1 + self._ratio)
        second = first - gap
        b, c, both = self._same
        squared = square + first * (first * b - 2 * with_b) + second * (second * c + 2 * with_c)
        result: Floats = np.sqrt(
            np.maximum(squared - 2 * first * second * both, 0) + self._least + _TINY
        )
        return result


@dataclass(frozen=True, slots=True, eq=False)
class _Block:
    """Clusters of one size, which may swap their flags.

    worth     float64[clusters, patterns of flags, 4], the sums of `_Ways` by cluster
    kind      int64[clusters], which pattern each has; counts  int64[patterns]
    observed  float64[4]; same  float64[3], sums of B**2, C**2 and B * C
    """

    worth: Floats
    kind: Ints
    counts: Ints
    observed: Floats
    same: Floats

    @classmethod
    def of(cls, values: Floats, flags: Bools, n_flagged: int, n_others: int) -> _Block:
        patterns, kind = np.unique(flags, axis=0, return_inverse=True)
        kind, counts = kind.reshape(-1), np.bincount(kind.reshape(-1))
        inside = values @ patterns.T.astype(np.float64)
        a = inside / n_flagged - (values.sum(axis=1)[:, None] - inside) / n_others
        b, c = patterns.sum(axis=1) / n_flagged, (~patterns).sum(axis=1) / n_others
        worth = np.stack([a, a * a, a * b, a * c], axis=2)
        return cls(
            worth,
            kind.astype(np.int64),
            counts.astype(np.int64),
            worth[np.arange(len(kind)), kind].sum(axis=0),
            np.array([counts @ (b * b), counts @ (c * c), counts @ (b * c)]),
        )

    def draw(self, draws: int, rng: np.random.Generator) -> Floats:
        """The sums of so many ways to deal the patterns out; float64[draws, 4]."""
        if len(self.counts) == 2:  # noqa: PLR2004 - flagged or not
            return self._draw_two(draws, rng)
        sums = np.empty((draws, 4))
        n = len(self.kind)
        step = max(1, _CELLS // n)
        for begin in range(0, draws, step):
            end = min(draws, begin + step)
            dealt = rng.permuted(np.broadcast_to(self.kind, (end - begin, n)), axis=1)
            sums[begin:end] = self.worth[np.arange(n), dealt].sum(axis=1)
        return sums

    def _draw_two(self, draws: int, rng: np.random.Generator) -> Floats:
        distinct, first, number = np.unique(
            self.worth[:, 0, 0], return_index=True, return_counts=True
        )
        if len(distinct) <= _FEW_VALUES:
            dealt = rng.multivariate_hypergeometric(
                number, int(self.counts[1]), size=draws, method="marginals"
            )
            own = self.worth[first]
            few: Floats = dealt @ own[:, 1] + (number - dealt) @ own[:, 0]
            return few
        fewer, n = int(np.argmin(self.counts)), len(self.kind)
        apart = self.worth[:, fewer] - self.worth[:, 1 - fewer]
        sums = np.empty((draws, 4))
        for at in range(draws):
            taken = rng.choice(n, int(self.counts[fewer]), replace=False, shuffle=False)
            sums[at] = apart[taken].sum(axis=0)
        sums += self.worth[:, 1 - fewer].sum(axis=0)
        return sums


def _hypergeometric(n: int, ones: int, k: int) -> Floats:
    """The chance of 0, ..., k ones among k of n values of which so many are one.

    Products of the ratios of neighbours, from the likeliest outwards: the far tails keep their
    digits. float64[k + 1]
    """
    first, last = max(0, k - (n - ones)), min(k, ones)
    at = np.arange(first, last, dtype=np.float64)
    ratios = (ones - at) * (k - at) / ((at + 1) * (n - ones - k + at + 1))
    top = int(np.searchsorted(-ratios, -1.0))
    chances = np.zeros(k + 1)
    own = chances[first : last + 1]
    own[top] = 1.0
    own[top + 1 :] = np.cumprod(ratios[top:])
    own[:top] = np.cumprod(1 / ratios[:top][::-1])[::-1]
    result: Floats = chances / chances.sum()
    return result


def holm(p: Floats) -> Floats:
    """Holm's adjusted p, for "is any of these real"; entries that are not a number stay so."""
    # The smallest is multiplied by all tests, the next by one less; none falls below one before it.
    return _stepwise(p, lambda left: left, np.maximum)


def benjamini_hochberg(p: Floats) -> Floats:
    """Benjamini and Hochberg's adjusted p, for screening; entries that are not a number stay so."""
    # The largest stays as it is, the j-th smallest of m is multiplied by m / j; none exceeds the
    # one after it.
    return _stepwise(p, lambda left: len(left) / left, np.minimum)


def _stepwise(p: Floats, factors: Callable[[Ints], Floats | Ints], running: np.ufunc) -> Floats:
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    if running is np.minimum:
        order = order[::-1]
    result = np.full(len(p), np.nan)
    raised = p[order] * factors(np.arange(len(order), 0, -1))
    result[order] = np.minimum(running.accumulate(raised), 1.0)
    return result


def adjust(
    rows: Sequence[dict[str, Any]],
    columns: Sequence[str],
    family: Callable[[dict[str, Any]], Hashable],
    by: Sequence[str] = ("holm", "bh"),
) -> None:
    """Put Holm's and Benjamini and Hochberg's p beside each raw one: NAME_holm and NAME_bh.

    family  what is equal for rows that are tested together; a row may lack a p
    """
    together: dict[Hashable, list[dict[str, Any]]] = {}
    for row in rows:
        together.setdefault(family(row), []).append(row)
    for own in together.values():
        for name in columns:
            p = np.array([row.get(name, np.nan) for row in own], np.float64)
            for way in by:
                adjusted = (holm if way == "holm" else benjamini_hochberg)(p)
                for row, value in zip(own, adjusted.tolist(), strict=True):
                    row[f"{name}_{way}"] = value


T = TypeVar("T")
R = TypeVar("R")


def in_threads(work: Callable[[T], R], tasks: Iterable[T]) -> list[R]:
    """The results in the order of the tasks, the same for any number of processors.

    `work` must not draw from a generator that another task draws from.
    """
    workers = usable_cores()
    if workers == 1:
        return [work(task) for task in tasks]
    with ThreadPoolExecutor(workers) as pool:
        return list(pool.map(work, tasks))
