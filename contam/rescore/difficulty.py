"""Flagged items may be easier without any leak: strata, reference models, Mantel and Haenszel."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import stats

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]

_NAN = float("nan")
_TWO = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjusted:
    """A gap between flagged and clean items, and what is left when reference models share it.

    raw            flagged - clean of the model under test; reference  of the reference models
    difference     raw - reference (difference in differences), its error and two-sided p
    logit          coefficient of the flag beside the references' pass rate, its error and p; nan
                   for scores other than 0/1 or where the fit does not converge
    """

    raw: float
    reference: float
    difference: float
    error: float
    p: float
    logit: float
    logit_error: float
    logit_p: float


def against_references(scores: Floats, references: Floats, flagged: Bools) -> Adjusted:
    """Difference in differences against models that cannot have seen the corpus (1.6 a, b).

    scores  float64[n]; references  float64[models, n]
    """
    pass_rate = references.mean(axis=0)
    rest = scores - pass_rate
    dirty, clean = rest[flagged], rest[~flagged]
    if len(dirty) < _TWO or len(clean) < _TWO:
        raise ValueError("a difference needs two flagged and two clean items")
    difference = float(dirty.mean() - clean.mean())
    error = float(np.sqrt(dirty.var(ddof=1) / len(dirty) + clean.var(ddof=1) / len(clean)))
    logit, logit_error, logit_p = _flag_logit(scores, references, flagged)
    return Adjusted(
        raw=float(scores[flagged].mean() - scores[~flagged].mean()),
        reference=float(pass_rate[flagged].mean() - pass_rate[~flagged].mean()),
        difference=difference,
        error=error,
        p=float(2 * stats.norm.sf(abs(difference) / error)) if error > 0 else _NAN,
        logit=logit,
        logit_error=logit_error,
        logit_p=logit_p,
    )


def _flag_logit(scores: Floats, references: Floats, flagged: Bools) -> tuple[float, float, float]:
    """Logit P(right) = a + b * x + d * flagged, x the logit of (k + .5) / (R + 1)."""
    from statsmodels.discrete.discrete_model import Logit
    from statsmodels.tools.sm_exceptions import (
        ConvergenceWarning,
        HessianInversionWarning,
        PerfectSeparationError,
        PerfectSeparationWarning,
    )

    if not bool(np.all((scores == 0) | (scores == 1))):
        return _NAN, _NAN, _NAN
    rate = (references.sum(axis=0) + 0.5) / (len(references) + 1)
    design = np.stack([np.ones(len(scores)), np.log(rate / (1 - rate)), flagged], axis=1)
    try:
        with warnings.catch_warnings():
            for kind in (ConvergenceWarning, HessianInversionWarning, PerfectSeparationWarning):
                warnings.simplefilter("error", kind)
            fit = Logit(scores, design.astype(np.float64)).fit(disp=False, maxiter=200)
    except (
        ConvergenceWarning,
        HessianInversionWarning,
        PerfectSeparationWarning,
        PerfectSeparationError,
        np.linalg.LinAlgError,
    ):
        return _NAN, _NAN, _NAN
    return float(fit.params[2]), float(fit.bse[2]), float(fit.pvalues[2])


@dataclass(frozen=True, slots=True, kw_only=True)
class Stratified:
    """The clean score weighted back to the make-up of the full benchmark (1.6 c).

    lost  share of the full benchmark in strata without a clean item: left out, never hidden
    odds  Mantel and Haenszel's common odds ratio of a right answer, flagged against clean, with the
          continuity-corrected test; nan for scores other than 0/1
    """

    clean: float
    error: float
    lost: float
    odds: float
    chi2: float
    p: float


def stratified(scores: Floats, flagged: Bools, strata: Ints) -> Stratified:
    """Post-stratified clean score and Mantel-Haenszel test over strata int64[n]."""
    n = len(scores)
    weight_kept = total = variance = 0.0
    numerator = denominator = deviation = spread = 0.0
    for stratum in np.unique(strata):
        inside = strata == stratum
        clean, dirty = scores[inside & ~flagged], scores[inside & flagged]
        size = int(inside.sum())
        if len(clean):
            weight_kept += size / n
            total += size / n * float(clean.mean())
            variance += (size / n) ** 2 * (
                float(clean.var(ddof=1)) / len(clean) if len(clean) > 1 else 0.0
            )
        if len(clean) and len(dirty) and size > 1:
            right_dirty, right_clean = float(dirty.sum()), float(clean.sum())
            right = right_dirty + right_clean
            numerator += right_dirty * (len(clean) - right_clean) / size
            denominator += (len(dirty) - right_dirty) * right_clean / size
            deviation += right_dirty - len(dirty) * right / size
            spread += len(dirty) * len(clean) * right * (size - right) / (size * size * (size - 1))
    binary = bool(np.all((scores == 0) | (scores == 1)))
    tested = binary and spread > 0
    chi2 = max(0.0, abs(deviation) - 0.5) ** 2 / spread if tested else _NAN
    return Stratified(
        clean=total / weight_kept if weight_kept else _NAN,
        error=float(np.sqrt(variance)) / weight_kept if weight_kept else _NAN,
        lost=1 - weight_kept,
        odds=numerator / denominator if binary and denominator > 0 else _NAN,
        chi2=chi2,
        p=float(stats.chi2.sf(chi2, 1)) if tested else _NAN,
    )


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
