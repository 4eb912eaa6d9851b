"""Full against clean: the estimated performance gain, its tests, and the published rules.

Notation of the sources: D the flagged items, C the clean ones, f = |D| / n. Scores are float64[n],
`flagged` bool[n].
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy import stats

from contam.rescore.blocks import blocks_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]

LEAST: Final = 50
"""Items that a subset needs before a gain is estimated (Llama 3 leaves smaller ones blank)."""

_NAN: Final = float("nan")
_LLAMA2_Z: Final = 2.0
_LLAMA2_CLEAN: Final = 0.2
_LLAMA2_DIRTY: Final = 0.8


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """EPG = full - clean (Singh et al. 2024) and how surprising it is.

    z         EPG / (s.d. / sqrt(n_clean)), ConTAM's own statistic
    z_nested  EPG / (s.d. * sqrt(1 / n_clean - 1 / n)): the clean set lies inside the full one
    p         two-sided permutation p, flags shuffled over items (within strata, if given)
    note      why nothing is estimated, "" when it is
    """

    epg: float
    z: float
    z_nested: float
    p: float
    note: str


def gain(
    scores: Floats,
    flagged: Bools,
    *,
    least: int = LEAST,
    permutations: int = 10_000,
    seed: int = 0,
    strata: NDArray[np.int64] | None = None,
    cluster: NDArray[np.int64] | None = None,
) -> Gain:
    """EPG of one model on one benchmark; `not estimable` where a subset has under `least` items."""
    n = len(scores)
    n_clean = int(np.count_nonzero(~flagged))
    note = not_estimable(n - n_clean, n_clean, least)
    if note:
        return Gain(epg=_NAN, z=_NAN, z_nested=_NAN, p=_NAN, note=note)
    epg = float(scores.mean() - scores[~flagged].mean())
    z, nested = gain_z(epg, float(np.std(scores)), n, n_clean)
    p = permutation_p(
        scores, flagged, permutations=permutations, seed=seed, strata=strata, cluster=cluster
    )
    note = "no p: swapping clusters of one size changes nothing" if np.isnan(p) else ""
    return Gain(epg=epg, z=z, z_nested=nested, p=p, note=note)


def not_estimable(n_flagged: int, n_clean: int, least: int = LEAST) -> str:
    """Why subsets of these sizes say nothing, or ""."""
    if n_clean and not n_flagged:
        return "not estimable: no flagged item"
    reason = too_few(n_clean, "clean", least) or too_few(n_flagged, "flagged", least)
    return f"not estimable: {reason}" if reason else ""


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
        return _NAN, _NAN
    return (
        epg / (deviation / float(np.sqrt(n_clean))),
        epg / (deviation * float(np.sqrt(1 / n_clean - 1 / n))),
    )


def permutation_p(
    scores: Floats,
    flagged: Bools,
    *,
    permutations: int,
    seed: int,
    strata: NDArray[np.int64] | None = None,
    cluster: NDArray[np.int64] | None = None,
) -> float:
    """Two-sided p of the flagged sum when flags are dealt out anew: (1 + hits) / (1 + draws).

    cluster  items that rise and fall together: then whole clusters of one size (and stratum) swap
             their flags, and the sum is set against its mean over the draws; nan where no swap
             changes the sum

    Dealing n_d flags among n items and adding up the scores is a draw without replacement; for
    few distinct score values it is drawn from the multivariate hypergeometric law itself.
    """
    rng = np.random.default_rng(seed)
    if cluster is not None:
        return _clustered_p(scores, flagged, permutations, rng, blocks_of(cluster, strata))
    groups = [np.arange(len(scores))] if strata is None else _groups(strata)
    total = np.zeros(permutations)
    expected = 0.0
    for group in groups:
        n_flagged = int(flagged[group].sum())
        expected += n_flagged * float(scores[group].mean())
        total += _dealt_sums(scores[group], n_flagged, permutations, rng)
    observed = abs(float(scores[flagged].sum()) - expected)
    # A relative hair against sums that are equal but for rounding.
    hits = int(np.count_nonzero(np.abs(total - expected) >= observed * (1 - 1e-9) - 1e-12))
    return (1 + hits) / (1 + permutations)


def _clustered_p(
    scores: Floats,
    flagged: Bools,
    permutations: int,
    rng: np.random.Generator,
    blocks: list[NDArray[np.int64]],
) -> float:
    total = np.zeros(permutations)
    expected = 0.0
    for block in blocks:
        flags, values = flagged[block], scores[block]
        expected += float((flags.mean(axis=0) * values.sum(axis=0)).sum())
        if bool(np.all(flags == flags[:, :1])):
            # Clusters flagged whole or not at all: their sums are dealt out.
            total += _dealt_sums(values.sum(axis=1), int(flags[:, 0].sum()), permutations, rng)
            continue
        weights = flags.astype(np.float64)
        for draw in range(permutations):
            total[draw] += float((values * weights[rng.permutation(len(block))]).sum())
    if np.ptp(total) == 0:
        return _NAN
    observed = abs(float(scores[flagged].sum()) - expected)
    hits = int(np.count_nonzero(np.abs(total - expected) >= observed * (1 - 1e-9) - 1e-12))
    return (1 + hits) / (1 + permutations)


def _groups(strata: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    order = np.argsort(strata, kind="stable")
    cuts = np.flatnonzero(np.diff(strata[order])) + 1
    return list(np.split(order, cuts))


_FEW_VALUES: Final = 64


def _dealt_sums(scores: Floats, n_flagged: int, draws: int, rng: np.random.Generator) -> Floats:
    if n_flagged == 0:
        return np.zeros(draws)
    values, counts = np.unique(scores, return_counts=True)
    if len(values) <= _FEW_VALUES:
        dealt = rng.multivariate_hypergeometric(counts, n_flagged, size=draws, method="marginals")
        summed: Floats = dealt @ values
        return summed
    sums = np.empty(draws)
    for at in range(draws):
        sums[at] = rng.permutation(scores)[:n_flagged].sum()
    return sums


def bounds(scores: Floats, usable: Bools) -> tuple[float, float]:
    """The score if every item that is not usable were wrong, and if every one were right (1.4)."""
    n = len(scores)
    if n == 0:
        return _NAN, _NAN
    right = float(scores[usable].sum())
    return right / n, (right + int(np.count_nonzero(~usable))) / n


def relative_difference(full: float, clean: float) -> float:
    """GPT-3's printed relative difference, 2 (clean - full) / (clean + full).

    The plain (clean - full) / full does not reproduce two rows of the paper's table.
    """
    return 2 * (clean - full) / (clean + full) if clean + full else _NAN


def plain_relative_difference(full: float, clean: float) -> float:
    """(clean - full) / full, under its own name."""
    return (clean - full) / full if full else _NAN


@dataclass(frozen=True, slots=True, kw_only=True)
class Subset:
    """One of Llama 2's subsets: items, mean, and Z against a random subset of that size."""

    name: str
    n: int
    mean_share: float
    score: float
    z: float


def llama2_subsets(scores: Floats, share: Floats) -> tuple[list[Subset], bool]:
    """Llama 2's four subsets by the share of contaminated tokens, and whether its rule is met.

    share  float64[n] in 0..1
    The rule calls it contamination only if |Z| > 2 in all four. sigma_n carries no correction for
    the finite population, as in the paper: it ignores that subsets lie inside the full set.
    """
    mu = float(scores.mean()) if len(scores) else _NAN
    deviation = float(np.sqrt(mu * (1 - mu))) if 0 <= mu <= 1 else _NAN
    subsets = []
    for name, mask in (
        ("clean", share < _LLAMA2_CLEAN),
        ("not clean", share >= _LLAMA2_CLEAN),
        ("not dirty", share < _LLAMA2_DIRTY),
        ("dirty", share >= _LLAMA2_DIRTY),
    ):
        n = int(np.count_nonzero(mask))
        mean = float(scores[mask].mean()) if n else _NAN
        z = (mean - mu) / (deviation / float(np.sqrt(n))) if n and deviation > 0 else _NAN
        shared = float(share[mask].mean()) if n else _NAN
        subsets.append(Subset(name=name, n=n, mean_share=shared, score=mean, z=z))
    return subsets, all(abs(one.z) > _LLAMA2_Z for one in subsets)


def two_proportions(first: tuple[float, int], second: tuple[float, int]) -> tuple[float, float]:
    """Pooled z of p1 - p2 and its one-sided p for p1 > p2; (successes, n) each."""
    (k1, n1), (k2, n2) = first, second
    if n1 == 0 or n2 == 0:
        return _NAN, _NAN
    pooled = (k1 + k2) / (n1 + n2)
    error = float(np.sqrt(pooled * (1 - pooled) * (1 / n1 + 1 / n2)))
    if error == 0:
        return _NAN, _NAN
    z = (k1 / n1 - k2 / n2) / error
    return z, float(stats.norm.sf(z))
