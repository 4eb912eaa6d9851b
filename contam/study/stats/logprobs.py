"""Test what a model's log-probabilities say about what it was trained on.

Sharded exchangeability (Oren et al. 2024); loss, zlib, Min-K % (Shi et al. 2024), Min-K %++ (Zhang
et al. 2024), reference and lowercase scores of single texts, and how well they tell members apart.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
from scipy.special import expit, logit, ndtri, stdtr

from contam.rescore.stats.average_ranks import average_ranks

if TYPE_CHECKING:
    from contam.study.model import Bools, Floats

_NAN: Final = float("nan")
_TWO: Final = 2
_HAIR: Final = 1e-9


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Exchangeability:
    """Whether a model prefers the order in which a file was published.

    difference    float64[shards]: log-probability of a shard in its own order, less the mean of its
                  shuffled orders
    t, p          t of the mean difference with r - 1 degrees of freedom, one-sided
    t_ddof0, p_ddof0  the same with the s.d. that the authors' code takes (ddof 0), whose p is too
                  small where shards are few
    permutation_p (1 + shuffled orders that do as well) / (1 + orders), over all shards together
    """

    difference: Floats
    t: float
    p: float
    t_ddof0: float
    p_ddof0: float
    permutation_p: float


def exchangeability(canonical: Floats, shuffled: Floats) -> Exchangeability:
    """The sharded test of a file whose items could as well stand in any other order.

    canonical  float64[shards], log-probability of each shard in the published order
    shuffled   float64[shards, orders], of the same shard in random orders

    nan where all shards differ by the same; ValueError for fewer than two shards or no order.
    """
    r = len(canonical)
    if r < _TWO or shuffled.ndim != _TWO or shuffled.shape[1] == 0:
        raise ValueError("the test needs two shards and one shuffled order of each")
    difference = canonical - shuffled.mean(axis=1)
    deviation = difference.std(ddof=1)
    sure = deviation > _HAIR * np.abs(canonical).max()
    t = float(difference.mean() / deviation * np.sqrt(r)) if sure else _NAN
    t_ddof0 = t * math.sqrt(r / (r - 1))
    sums = shuffled.sum(axis=0)
    # Sums in another order round differently: a shuffled order that is the canonical one must tie.
    reached = float(canonical.sum()) - _HAIR * float(np.abs(canonical).sum())
    hits = int(np.count_nonzero(sums >= reached))
    return Exchangeability(
        difference=difference,
        t=t,
        p=float(stdtr(r - 1, -t)),
        t_ddof0=t_ddof0,
        p_ddof0=float(stdtr(r - 1, -t_ddof0)),
        permutation_p=(1 + hits) / (1 + len(sums)),
    )


def min_k(values: Floats, share: float) -> float:
    """Mean of the lowest `share` of the values: Min-K % of log-probabilities.

    int(n * share) of them, as the authors' code has it; nan where that is none.
    """
    k = int(len(values) * share)
    return float(np.sort(values)[:k].mean()) if k else _NAN


def min_k_plus(values: Floats, mu: Floats, sigma: Floats, share: float) -> float:
    """Min-K %++: Min-K % of (log-probability - mu) / sigma.

    mu, sigma  mean and s.d. of the log-probability over the vocabulary at each place
    """
    return min_k((values - mu) / sigma, share)


@dataclass(frozen=True, slots=True, kw_only=True)
class Separation:
    """How well a score tells members from others; all 0..1.

    auroc            area under the curve; auroc_low, auroc_high  95 % limits (DeLong et al. 1988)
                     on the scale of log odds, nan where the score parts all members from all others
    tpr_at_fpr_05    members found where at most 5 % of the others are
    fpr_at_tpr_95    others found where at least 95 % of the members are
    """

    auroc: float = _NAN
    auroc_low: float = _NAN
    auroc_high: float = _NAN
    tpr_at_fpr_05: float = _NAN
    fpr_at_tpr_95: float = _NAN


def separation(scores: Floats, member: Bools, level: float = 0.95) -> Separation:
    """Of scores without gaps, higher for members; ties count half in the area.

    nan without two members and two others.
    """
    inside, outside = scores[member], scores[~member]
    if len(inside) < _TWO or len(outside) < _TWO:
        return Separation()
    n, m = len(inside), len(outside)
    place = average_ranks(scores)
    # What each member and each other adds to the area: placements among the other side.
    beats = (place[member] - average_ranks(inside)) / m
    beaten = 1 - (place[~member] - average_ranks(outside)) / n
    area = float(beats.mean())
    error = float(np.sqrt(beats.var(ddof=1) / n + beaten.var(ddof=1) / m))
    low = high = _NAN
    if error > 0:
        # On the scale of log odds: limits of the area itself are too narrow near 1.
        half = float(ndtri(0.5 + level / 2)) * error / (area * (1 - area))
        low, high = (float(expit(logit(area) + side)) for side in (-half, half))
    cuts = np.unique(scores)[::-1]
    tpr = np.searchsorted(np.sort(-inside), -cuts, side="right") / n
    fpr = np.searchsorted(np.sort(-outside), -cuts, side="right") / m
    low_enough = fpr <= 1 - level + _HAIR
    return Separation(
        auroc=area,
        auroc_low=low,
        auroc_high=high,
        tpr_at_fpr_05=float(tpr[low_enough].max(initial=0.0)),
        fpr_at_tpr_95=float(fpr[tpr >= level - _HAIR].min()),
    )
