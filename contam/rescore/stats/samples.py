"""Part the error of scores that are means of several answers, and give pass@k."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import gammaln

from contam.rescore.stats.clusters import right_or_wrong, spread_of

if TYPE_CHECKING:
    from contam.rescore import Floats, Ints


def pass_at(k: int, right: Floats, answers: Ints) -> Floats:
    """The chance that one of k answers is right, of each item (Chen et al. 2021); float64[n].

    right    float64[n], answers that are right;  answers  int64[n], at least k
    """
    wrong = answers - right
    most = np.maximum(wrong, k)
    none = gammaln(most + 1) - gammaln(most - k + 1) - gammaln(answers + 1)
    result: Floats = np.where(wrong < k, 1.0, 1 - np.exp(none + gammaln(answers - k + 1)))
    return result


def samples_note(scores: Floats, answers: Ints, cluster: Ints | None = None) -> str:
    """The error of a mean by its sources, and pass@k with its error, in words.

    scores  float64[n], each the share of an item's answers that are right;  answers  int64[n]

    Var = (Var(x) + E[sigma_i**2] / K) / n (Miller 2024): what items differ by, and what the K
    answers of one item do. "" where an item has one answer only, or a score is no such share.
    """
    right = scores * answers
    if len(scores) <= 1 or answers.min() <= 1 or right_or_wrong(scores):
        return ""
    if scores.min() < 0 or scores.max() > 1 or np.abs(right - right.round()).max() > _ROUNDING:
        return ""
    right = right.round()
    whole = spread_of(scores, cluster).error
    sampled = float(np.sqrt((scores * (1 - scores) / (answers - 1)).sum())) / len(scores)
    between = float(np.sqrt(max(0.0, whole**2 - sampled**2)))
    k = int(answers.min())
    most = pass_at(k, right, answers)
    return (
        f"{k} answers an item: error {whole:.4f}, {between:.4f} between items and {sampled:.4f} "
        f"within; pass@{k} {most.mean():.4f}, error {spread_of(most, cluster).error:.4f}"
    )


_ROUNDING = 1e-6
