"""Adjust for easier flagged items: strata and reference models."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from contam.rescore.stats.clusters import Estimate, difference_of, right_or_wrong

if TYPE_CHECKING:
    from contam.rescore import Bools, Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjusted:
    """A gap between flagged and clean items, and what is left when reference models share it.

    raw            flagged - clean of the model under test; reference  of the reference models
    difference     raw - reference (difference in differences), with its error, limits of 95 % and
                   two-sided p: Welch's t test, by whole clusters
    logit          coefficient of the flag beside the references' pass rate, its error and p; nan
                   for scores other than 0/1 or where the fit does not converge
    """

    raw: float
    reference: float
    difference: float
    error: float
    low: float
    high: float
    p: float
    logit: float
    logit_error: float
    logit_p: float


def against_references(
    scores: Floats, references: Floats, flagged: Bools, cluster: Ints | None = None
) -> Adjusted:
    """Difference in differences against models that cannot have seen the corpus (1.6 a, b).

    scores  float64[n]; references  float64[models, n]; cluster  int64[n], None where every item
    stands alone
    """
    pass_rate = references.mean(axis=0)
    rest = scores - pass_rate
    dirty, clean = rest[flagged], rest[~flagged]
    if len(dirty) <= 1 or len(clean) <= 1:
        raise ValueError("a difference needs two flagged and two clean items")
    sides = None if cluster is None else (cluster[flagged], cluster[~flagged])
    found = difference_of(dirty, clean, sides)
    low, high = found.limits()
    logit, logit_error, logit_p = _flag_logit(scores, references, flagged, cluster)
    return Adjusted(
        raw=float(scores[flagged].mean() - scores[~flagged].mean()),
        reference=float(pass_rate[flagged].mean() - pass_rate[~flagged].mean()),
        difference=found.value,
        error=found.error,
        low=low,
        high=high,
        p=found.p,
        logit=logit,
        logit_error=logit_error,
        logit_p=logit_p,
    )


def _flag_logit(
    scores: Floats, references: Floats, flagged: Bools, cluster: Ints | None
) -> tuple[float, float, float]:
    """Logit P(right) = a + b * x + d * flagged, x the logit of (k + .5) / (R + 1).

    With clusters the error is the sandwich over them, and p of the t of one less than there are.
    """
    from statsmodels.discrete.discrete_model import Logit
    from statsmodels.tools.sm_exceptions import (
        ConvergenceWarning,
        HessianInversionWarning,
        PerfectSeparationError,
        PerfectSeparationWarning,
    )

    if not right_or_wrong(scores):
        return np.nan, np.nan, np.nan
    rate = (references.sum(axis=0) + 0.5) / (len(references) + 1)
    sandwich: dict[str, Any] = {}
    if cluster is not None:
        sandwich = {"cov_type": "cluster", "cov_kwds": {"groups": cluster}}
    design = np.stack([np.ones(len(scores)), np.log(rate / (1 - rate)), flagged], axis=1)
    try:
        # On its way to a perfect separation a fit may run to infinity; that is known at its end.
        with warnings.catch_warnings(), np.errstate(over="ignore", divide="ignore"):
            for kind in (ConvergenceWarning, HessianInversionWarning, PerfectSeparationWarning):
                warnings.simplefilter("error", kind)
            fit = Logit(scores, design.astype(np.float64)).fit(
                disp=False,
                maxiter=200,
                **sandwich,
            )
    except (
        ConvergenceWarning,
        HessianInversionWarning,
        PerfectSeparationWarning,
        PerfectSeparationError,
        np.linalg.LinAlgError,
    ):
        return np.nan, np.nan, np.nan
    value, error = float(fit.params[2]), float(fit.bse[2])
    if cluster is None:
        return value, error, float(fit.pvalues[2])
    return value, error, Estimate(value, error, len(np.unique(cluster)) - 1.0).p


@dataclass(frozen=True, slots=True, kw_only=True)
class Stratified:
    """The gain that is left between flagged and clean items of one kind (1.6 c).

    Strata without a flagged or without a clean item say nothing of that and are left out.

    gain          share of items flagged * mean over flagged items of (score - clean mean of the
                  stratum), with its error, limits of 95 % and p; full - clean, weighted, where no
                  stratum is left out; nan where all are
    lost          share of all items in strata without a clean one; flagged_lost  of flagged items
    """

    gain: float
    error: float
    low: float
    high: float
    p: float
    lost: float
    flagged_lost: float


def stratified(
    scores: Floats, flagged: Bools, strata: Ints, cluster: Ints | None = None
) -> Stratified:
    """Adjusted gain over strata int64[n]; cluster as elsewhere."""
    kind = np.unique(strata, return_inverse=True)[1]
    sizes = np.bincount(kind)
    n_dirty = np.bincount(kind, weights=flagged)
    held = sizes > n_dirty
    n_held = int(sizes[held].sum())
    both = held & (n_dirty > 0)
    found = _matched(scores, flagged, kind, both, cluster)
    low, high = found.limits()
    n_flagged = int(n_dirty.sum())
    return Stratified(
        gain=found.value,
        error=found.error,
        low=low,
        high=high,
        p=found.p,
        lost=1 - n_held / len(scores),
        flagged_lost=float(n_dirty[~both].sum()) / n_flagged if n_flagged else 0.0,
    )


def _matched(
    scores: Floats, flagged: Bools, kind: Ints, both: Bools, cluster: Ints | None
) -> Estimate:
    """The weighted gap within strata times the share flagged, its error from sums over clusters.

    The weights of flagged items add up to that share, those of the clean ones to minus as much in
    every stratum. Each item's part of the error is its weight times what sets it apart from its
    stratum, scaled for the mean that was taken from it: without a leak the squares of independent
    parts add up to the variance, however few items a stratum holds.
    """
    kept = both[kind]
    if not kept.any():
        return Estimate(np.nan, np.nan, 0.0)
    share = float(flagged.mean())
    scores, flagged, own = (
        scores[kept],
        flagged[kept],
        np.unique(kind[kept], return_inverse=True)[1],
    )
    sizes = np.bincount(own)
    n_dirty = np.bincount(own, weights=flagged)
    of_clean = -n_dirty / (sizes - n_dirty)
    weights = np.where(flagged, 1.0, of_clean[own]) * share / float(n_dirty.sum())
    # Sums rather than products: those start threads of a linear algebra library below ours.
    value = float((weights * scores).sum())
    middle = np.bincount(own, weights=scores) / sizes
    rest = (scores - middle[own]) / np.sqrt(1 - 1 / sizes[own])
    group = (
        np.arange(len(scores))
        if cluster is None
        else np.unique(cluster[kept], return_inverse=True)[1]
    )
    parts = np.bincount(group, weights=weights * rest)
    worth = np.bincount(group, weights=weights * weights)
    n_groups = len(parts)
    if n_groups <= 1:
        return Estimate(value, np.nan, 0.0)
    scale = 1.0 if cluster is None else n_groups / (n_groups - 1)
    df = float(worth.sum()) ** 2 / float((worth * worth).sum()) - 1
    return Estimate(value, float(np.sqrt(scale * float((parts * parts).sum()))), df)


def bins(values: Floats, count: int) -> Ints:
    """Which quantile bin each value falls in, 0..count - 1; equal values share a bin."""
    edges = np.quantile(values, np.linspace(0, 1, count + 1)[1:-1]) if len(values) else np.empty(0)
    return np.searchsorted(np.unique(edges), values, side="right").astype(np.int64)


def crossed(*labels: Ints) -> Ints:
    """One stratum number for every combination that occurs."""
    code = np.zeros(len(labels[0]), np.int64)
    for label in labels:
        code = code * (int(label.max(initial=0)) + 1) + label
        code = np.unique(code, return_inverse=True)[1].astype(np.int64)
    return code
