"""Test by permutation how often chance alone sets the flagged items so far apart.

Without a leak the flags say nothing about the scores, so every way to deal as many of them out is
equally likely. Whole-numbered scores have that law worked out; others are drawn from it. Below that
p is adjusted over a family of tests, and independent ones run at once.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from contam.memory import usable_cores
from contam.rescore.stats.clusters import blocks_of

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from contam.rescore import Bools, Floats, Ints


EXACT: Final = "exact"
ENOUGH: Final = 100
"""Draws as far out as the observed one after which no more are made: p is known to 10 %."""

_SURE: Final = 0.05
_HITS_AT_THRESHOLD: Final = 20
_MOST_DRAWS: Final = 1_000_000
_MOST_WORK: Final = 500_000_000
_DRAWS_AT_ONCE: Final = 20_000
_EXACT_WORK: Final = 30_000_000
_FEW_VALUES: Final = 64
_MOST_COUNTED: Final = 2.0**40
_HAIR: Final = 1e-9
#: Two sums are as likely as one another if nothing but rounding sets them apart.
_EQUAL: Final = 1e-7
#: What is less likely is not told apart from it.
_TINY: Final = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True, slots=True)
class Dealt:
    """A two-sided p, and how it was made: "exact", "10000 draws", or "" without one."""

    p: float
    how: str


@dataclass(frozen=True, slots=True, eq=False)
class _Block:
    """Clusters that may swap their flags: values and flags, float64 and bool[clusters, size]."""

    values: Floats
    flags: Bools

    @property
    def whole(self) -> bool:
        """Whether every cluster is flagged whole or not at all."""
        return bool(np.all(self.flags == self.flags[:, :1]))

    @property
    def moves(self) -> bool:
        """Whether another way to deal the flags exists."""
        return bool(np.any(self.flags != self.flags[:1]))

    @property
    def expected(self) -> float:
        """The flagged sum, on average over all ways to deal."""
        return float(self.flags.mean(axis=0) @ self.values.sum(axis=0))


def most_draws(family: int) -> int:
    """Draws that show p beside the smallest threshold of a family of tests: 20 hits at 0.05 / m."""
    return min(_MOST_DRAWS, int(np.ceil(_HITS_AT_THRESHOLD * max(1, family) / _SURE)))


def drawn_p(hits_in: Callable[[int], int], first: int, most: int) -> Dealt:
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
    return Dealt((1 + hits) / (1 + draws), f"{draws} draws")


def deal(
    scores: Floats,
    flagged: Bools,
    *,
    permutations: int,
    seed: int,
    family: int = 1,
    strata: Ints | None = None,
    cluster: Ints | None = None,
) -> Dealt:
    """Two-sided p of the flagged sum of scores, float64[n], when flags are dealt out anew.

    permutations  draws at first, where p is not exact; family  how many tests p is adjusted over
    strata        int64[n]: flags stay within a stratum
    cluster       int64[n], items that rise and fall together: then whole clusters of one size (and
                  stratum) swap their flags; nan where none can

    Exact for whole-numbered scores whose clusters are flagged whole or not at all: Fisher's
    conditional test, the sum of the probabilities of all sums that are no likelier than the
    observed one. Else by draws, over sums at least as far from their mean.
    """
    code = np.arange(len(scores)) if cluster is None else cluster
    blocks = [_Block(scores[at], flagged[at]) for at in blocks_of(code, strata)]
    moving = [block for block in blocks if block.moves]
    if not moving:
        return Dealt(np.nan, "")
    law = _law(moving)
    observed = sum(float(block.values[block.flags].sum()) for block in moving)
    if law is not None:
        least, chances = law
        own = chances[round(observed) - least]
        p = float(chances[chances <= own * (1 + _EQUAL)].sum())
        return Dealt(min(1.0, max(p, _TINY)), EXACT)
    rng = np.random.default_rng(seed)
    expected = sum(block.expected for block in moving)
    # A relative hair against sums that are equal but for rounding.
    reached = abs(observed - expected) * (1 - _HAIR) - 1e-12

    def hits_in(draws: int) -> int:
        hits = 0
        for begin in range(0, draws, _DRAWS_AT_ONCE):
            number = min(_DRAWS_AT_ONCE, draws - begin)
            sums = np.zeros(number)
            for block in moving:
                sums += _draw(block, number, rng)
            hits += int(np.count_nonzero(np.abs(sums - expected) >= reached))
        return hits

    affordable = _MOST_WORK // max(1, sum(block.values.size for block in moving))
    return drawn_p(hits_in, permutations, min(most_draws(family), affordable))


def _law(blocks: Sequence[_Block]) -> tuple[int, Floats] | None:
    """The smallest sum and the probability of each from it on; None where it takes too long."""
    least, chances = 0, np.ones(1)
    for block in blocks:
        sums = block.values.sum(axis=1)
        if not block.whole or not _counts(block.values):
            return None
        own = _subset_sums(sums.astype(np.int64), int(block.flags[:, 0].sum()))
        if own is None or len(chances) * len(own[1]) > _EXACT_WORK:
            return None
        least += own[0]
        chances = np.convolve(chances, own[1])
    return least, chances


def _counts(values: Floats) -> bool:
    """Whether these are whole numbers of which int64 holds any sum."""
    return bool(np.all((values == np.round(values)) & (np.abs(values) < _MOST_COUNTED)))


def _subset_sums(values: Ints, k: int) -> tuple[int, Floats] | None:
    """The law of the sum of k of the values, each k as likely: its least sum, and chances from it.

    None where it takes too long.
    """
    n, low = len(values), int(values.min())
    rest = values - low
    if int(rest.max()) <= 1:
        return k * low, _hypergeometric(n, int(rest.sum()), k)
    width = int(np.sort(rest)[-k:].sum()) + 1
    if n * k * width > _EXACT_WORK:
        return None
    # table[j, s]: j of the values met so far were taken, and make s.
    table = np.zeros((k + 1, width))
    table[0, 0] = 1.0
    for met, value in enumerate(rest.tolist()):
        taken = np.arange(k + 1)[:, None]
        takes = table * (np.clip(k - taken, 0, n - met) / (n - met))
        table = table - takes
        table[1:, value:] += takes[:-1, : width - value]
    return k * low, table[k]


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


def _draw(block: _Block, draws: int, rng: np.random.Generator) -> Floats:
    """Flagged sums of so many ways to deal the flags of a block; float64[draws]."""
    if block.whole:
        return _dealt_sums(block.values.sum(axis=1), int(block.flags[:, 0].sum()), draws, rng)
    patterns, kind = np.unique(block.flags, axis=0, return_inverse=True)
    worth = block.values @ patterns.T.astype(np.float64)
    n = len(kind)
    sums = np.empty(draws)
    step = max(1, _EXACT_WORK // 10 // n)
    for begin in range(0, draws, step):
        end = min(draws, begin + step)
        dealt = rng.permuted(np.broadcast_to(kind.reshape(-1), (end - begin, n)), axis=1)
        sums[begin:end] = worth[np.arange(n), dealt].sum(axis=1)
    return sums


def _dealt_sums(values: Floats, k: int, draws: int, rng: np.random.Generator) -> Floats:
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) <= _FEW_VALUES:
        dealt = rng.multivariate_hypergeometric(counts, k, size=draws, method="marginals")
        summed: Floats = dealt @ distinct
        return summed
    sums = np.empty(draws)
    for at in range(draws):
        sums[at] = rng.permutation(values)[:k].sum()
    return sums


def holm(p: Floats) -> Floats:
    """Holm's adjusted p, for "is any of these real"; entries that are not a number stay so."""
    return _of_known(p, _holm)


def benjamini_hochberg(p: Floats) -> Floats:
    """Benjamini and Hochberg's adjusted p, for screening; entries that are not a number stay so."""
    return _of_known(p, _benjamini_hochberg)


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


def _of_known(p: Floats, adjusted: Callable[[Floats], Floats]) -> Floats:
    result = np.full(len(p), np.nan)
    known = ~np.isnan(p)
    if known.any():
        result[known] = adjusted(p[known])
    return result


def _holm(p: Floats) -> Floats:
    order = np.argsort(p, kind="stable")
    # The smallest is multiplied by all tests, the next by one less; none falls below one before it.
    raised = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    result = np.empty(len(p))
    result[order] = np.minimum(raised, 1.0)
    return result


def _benjamini_hochberg(p: Floats) -> Floats:
    order = np.argsort(p, kind="stable")[::-1]
    # The largest stays as it is, the j-th smallest of m is multiplied by m / j; none exceeds the
    # one after it.
    raised = np.minimum.accumulate(p[order] * (len(p) / np.arange(len(p), 0, -1)))
    result = np.empty(len(p))
    result[order] = np.minimum(raised, 1.0)
    return result


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
