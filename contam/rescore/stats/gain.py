"""Compare full and clean scores: the gain, its tests, its thresholds and the published rules.

Notation of the sources: D the flagged items, C the clean ones, f = |D| / n. Scores are float64[n],
`flagged` bool[n].
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from scipy.special import ndtr, stdtr, stdtrit

from contam.rescore.stats.clusters import blocks_of, right_or_wrong, shuffled, spread_of
from contam.rescore.stats.permutation import drawn_p, most_draws, permutation_test
from contam.rescore.stats.ranking import detectable

if TYPE_CHECKING:
    from contam.rescore import Bools, Floats, Ints


LEAST: Final = 50
"""Items that a subset needs before a gain is estimated (Llama 3 leaves smaller ones blank)."""

_LLAMA2_Z: Final = 2.0
_LLAMA2_CLEAN: Final = 0.2
_LLAMA2_DIRTY: Final = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """EPG = full - clean over the items that could be checked (Singh et al. 2024), and its test.

    epg        the share of flagged items times (their mean - the clean mean)
    low, high  its 95 % limits; p  two-sided: below 0.05 if and only if the limits leave 0 out
    z          EPG / (s.d. / sqrt(n_clean)), ConTAM's own statistic
    z_nested   EPG / (s.d. * sqrt(1 / n_clean - 1 / n)): the clean set lies inside the full one
    how        how p was made: "exact" or "10000 draws", "" without one
    note       why nothing is estimated, "" when it is

    Both z are the published ones, of items that all stand alone: they know no clusters.
    """

    epg: float
    low: float = np.nan
    high: float = np.nan
    z: float = np.nan
    z_nested: float = np.nan
    p: float = np.nan
    how: str = ""
    note: str = ""

    @property
    def estimable(self) -> bool:
        """Whether both subsets have as many items as an estimate needs."""
        return not self.note.startswith("not estimable")


def gain(
    scores: Floats,
    flagged: Bools,
    *,
    least: int = LEAST,
    permutations: int = 10_000,
    seed: int = 0,
    family: int = 1,
    cluster: Ints | None = None,
) -> Gain:
    """EPG of one model on one benchmark; no p where a subset has under `least` items."""
    n = len(scores)
    n_clean = int(np.count_nonzero(~flagged))
    note = not_estimable(n - n_clean, n_clean, least)
    if n_clean in (0, n):
        nothing = 0.0 if n_clean else np.nan
        return Gain(epg=nothing, low=nothing, high=nothing, note=note)
    found = permutation_test(
        scores, flagged, permutations=permutations, seed=seed, family=family, cluster=cluster
    )
    share = (n - n_clean) / n
    epg = float(scores.mean() - scores[~flagged].mean())
    made = partial(Gain, epg=epg, low=share * found.low, high=share * found.high)
    if note:
        return made(note=note)
    z, nested = gain_z(epg, float(np.std(scores)), n, n_clean)
    note = "no p: swapping clusters of one size changes nothing" if np.isnan(found.p) else ""
    return made(z=z, z_nested=nested, p=found.p, how=found.how, note=note)


def not_estimable(n_flagged: int, n_clean: int, least: int = LEAST) -> str:
    """Why subsets of these sizes say nothing, or ""."""
    if n_clean and not n_flagged:
        return "not estimable: no flagged item"
    reason = too_few(n_clean, "clean", least) or too_few(n_flagged, "flagged", least)
    return f"not estimable: {reason}" if reason else ""


def smallest_gap(n_flagged: int, n_clean: int) -> float | None:
    """The gap that a two-sided test of .05 finds in 80 % of cases where half of answers are right.

    None without items of one side. At other rates of right answers it is smaller (Miller 2024).
    """
    if not (n_flagged and n_clean):
        return None
    return min(1.0, detectable(1, 0.25 / n_flagged + 0.25 / n_clean))


def too_few(number: int, name: str, least: int) -> str:
    """Why so many items of one side say nothing, or ""."""
    if number == 0:
        return f"no {name} item"
    if number >= least:
        return ""
    return f"{number:,} {name} item{'s' if number > 1 else ''}, and {least:,} are needed"


def gain_z(epg: float, deviation: float, n: int, n_clean: int) -> tuple[float, float]:
    """ConTAM's z and the nested z of a gain.

    deviation  s.d. of the scores on the full benchmark (ddof 0, the Bernoulli form for 0/1)
    """
    if deviation == 0 or n_clean in (0, n):
        return np.nan, np.nan
    return (
        epg / (deviation / float(np.sqrt(n_clean))),
        epg / (deviation * float(np.sqrt(1 / n_clean - 1 / n))),
    )


def bounds(scores: Floats, usable: Bools) -> tuple[float, float]:
    """The score if every item that is not usable were wrong, and if every one were right (1.4)."""
    n = len(scores)
    if n == 0:
        return np.nan, np.nan
    right = float(scores[usable].sum())
    return right / n, (right + int(np.count_nonzero(~usable))) / n


def relative_difference(full: float, clean: float) -> float:
    """GPT-3's printed relative difference, 2 (clean - full) / (clean + full).

    The plain (clean - full) / full does not reproduce two rows of the paper's table.
    """
    return 2 * (clean - full) / (clean + full) if clean + full else np.nan


def plain_relative_difference(full: float, clean: float) -> float:
    """(clean - full) / full, under its own name."""
    return (clean - full) / full if full else np.nan


@dataclass(frozen=True, slots=True, kw_only=True)
class Subset:
    """One of Llama 2's subsets: items, mean, and Z against a random subset of that size."""

    name: str
    n: int
    score: float
    z: float


def llama2_subsets(scores: Floats, share: Floats) -> tuple[list[Subset], bool]:
    """Llama 2's four subsets by the share of contaminated tokens, and whether its rule is met.

    share  float64[n] in 0..1
    The rule calls it contamination only if |Z| > 2 in all four. sigma_n carries no correction for
    the finite population, as in the paper: it ignores that subsets lie inside the full set.
    """
    mu = float(scores.mean()) if len(scores) else np.nan
    deviation = float(np.sqrt(mu * (1 - mu))) if 0 <= mu <= 1 else np.nan
    subsets = []
    for name, mask in (
        ("clean", share < _LLAMA2_CLEAN),
        ("not clean", share >= _LLAMA2_CLEAN),
        ("not dirty", share < _LLAMA2_DIRTY),
        ("dirty", share >= _LLAMA2_DIRTY),
    ):
        n = int(np.count_nonzero(mask))
        mean = float(scores[mask].mean()) if n else np.nan
        z = (mean - mu) / (deviation / float(np.sqrt(n))) if n and deviation > 0 else np.nan
        subsets.append(Subset(name=name, n=n, score=mean, z=z))
    return subsets, all(abs(subset.z) > _LLAMA2_Z for subset in subsets)


def two_proportions(first: tuple[float, int], second: tuple[float, int]) -> tuple[float, float]:
    """Pooled z of p1 - p2 and its one-sided p for p1 > p2; (successes, n) each."""
    (k1, n1), (k2, n2) = first, second
    if n1 == 0 or n2 == 0:
        return np.nan, np.nan
    pooled = (k1 + k2) / (n1 + n2)
    error = float(np.sqrt(pooled * (1 - pooled) * (1 / n1 + 1 / n2)))
    if error == 0:
        return np.nan, np.nan
    z = (k1 / n1 - k2 / n2) / error
    return z, float(ndtr(-z))


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


LEAST_OTHERS: Final = 4
"""Other models without which nobody knows how far honest slopes differ."""


class Slope(NamedTuple):
    """How much more a model's score rises with exposure than that of the others.

    value, low, high  score per unit of exposure, limits of 95 %;  p  one-sided, of no more
    """

    value: float
    low: float
    high: float
    p: float


def slopes(scores: Floats, exposure: Floats, cluster: Ints) -> list[Slope] | None:
    """Of each model beside all others; None with fewer than four of these, or equal exposures.

    scores  float64[models, items], of which more is better;  exposure  float64[items];  cluster
    int64[items]

    Items have intercepts of their own, which cancel: where all models have the same items it is
    the difference of slopes. Its error is that of one more model among the others, whose slopes
    differ by chance and by what items ask of them, and at least the model's own by whole clusters.
    """
    m = len(scores)
    if m <= LEAST_OTHERS or not len(exposure):
        return None
    ahead = exposure - exposure.mean()
    square = float(ahead @ ahead)
    if not square > 0:
        return None
    raw = scores @ ahead / square
    found = []
    for at in range(m):
        others = np.delete(raw, at)
        value = float(raw[at] - others.mean())
        apart = scores[at] - np.delete(scores, at, axis=0).mean(axis=0)
        rest = apart - apart.mean() - value * ahead
        own = spread_of(len(ahead) * ahead * rest / square, cluster).error
        error = max(float(np.std(others, ddof=1)) * float(np.sqrt(m / (m - 1))), own)
        half = error * float(stdtrit(m - 2, 0.975))
        found.append(Slope(value, value - half, value + half, float(stdtr(m - 2, -value / error))))
    return found
