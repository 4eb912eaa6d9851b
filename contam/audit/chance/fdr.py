"""Estimate false discovery rates by target-decoy competition, with q-values per item.

Decoys are items that look like the benchmark's to the detector and cannot be in the corpus. A
decoy's score says what chance overlap gives. Here a false discovery is a flag of an overlap that
came by chance; it is not a flag of an item that helped no model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Calibration:
    """What the decoys say of each target, in the order in which the targets were given.

    fdr  float64[n], share of chance among targets that score at least this, capped at 1
    q    float64[n], the least `fdr` of any threshold that accepts the target
    p    float64[n], (1 + decoys that score at least this) / (1 + decoys)
    """

    fdr: Floats
    q: Floats
    p: Floats


def calibrate(
    targets: Floats,
    decoys: Floats,
    *,
    cautious: bool = True,
    null_share: float = 1.0,
    n_decoys: int | None = None,
) -> Calibration:
    """FDR(t) = min(1, pi0 (D(t) + 1) (n_T / n_D) / T(t)); q is its running minimum from below.

    targets, decoys  scores, higher for more overlap
    cautious         counts one decoy more than was seen: without it no claim holds in small sets
    null_share       pi0, the share of targets that are not in the corpus; 1 assumes nothing
    n_decoys         how many decoys the scores speak for (see `compete`); None: one each

    Raises ValueError without targets or decoys, and for a share outside 0..1.
    """
    n_decoys = len(decoys) if n_decoys is None else n_decoys
    if not len(targets) or not n_decoys:
        raise ValueError("calibration needs targets and decoys")
    if not 0 < null_share <= 1:
        raise ValueError(f"{null_share} is no share of targets")
    above = _at_least(targets, decoys)
    accepted = _at_least(targets, targets)
    scale = null_share * len(targets) / n_decoys
    fdr = np.minimum(1.0, (above + int(cautious)) * scale / accepted)
    order = np.argsort(targets, kind="stable")
    # Equal scores are accepted together, so they must share one value before the minimum runs.
    q = np.empty_like(fdr)
    q[order] = np.minimum.accumulate(fdr[order])
    _, first = np.unique(targets[order], return_index=True)
    last = np.append(first[1:], len(order)) - 1
    q[order] = np.repeat(q[order][last], last - first + 1)
    return Calibration(fdr, q, np.minimum(1.0, (1 + above) / (1 + n_decoys)))


def compete(items: Floats, clones: Floats, closer: Floats, second: Floats) -> Floats:
    """The scores that chance gives, of items beside their own clones: float64[any].

    A clone of an item that is in the corpus is found there, too, and not by chance. So only a
    clone that beats its item counts, and it stands for both: its own score and its item's. Where an
    item is not in the corpus either wins as often as the other, so that this gives one score for
    each clone on average; an item that is there wins. A clone of two items must beat both, and
    stands for three. A draw gives one.

    items   score of the item, or of the better one of two;  second  of the other; NaN without one
    clones  score of the clone
    closer  which stands closer to the corpus where scores are equal: above 0 the item, below 0 the
            clone
    """
    sign = np.where(items == clones, np.sign(closer), np.sign(items - clones))
    lesser = second[sign < 0]
    return np.concatenate([clones[sign <= 0], items[sign < 0], lesser[~np.isnan(lesser)]])


def smallest_claim(n_accepted: int, n_targets: int, n_decoys: int) -> float:
    """The least q that so many accepted targets can get with no decoy among them."""
    if n_accepted < 1 or n_decoys < 1:
        raise ValueError("a claim needs an accepted target and decoys")
    return min(1.0, n_targets / n_decoys / n_accepted)


@dataclass(frozen=True, slots=True)
class Entrapment:
    """Held-out decoys among what a claimed q accepts: the check of the claim.

    expected  the most held-out decoys that the claim allows among the accepted
    holds     whether what was seen is no more than the claim, at the level of the test
    p         chance of as many or more if the claim were true
    """

    claimed: float
    n_accepted: int
    n_held_out: int
    expected: float
    p: float
    holds: bool


def entrap(
    targets: Floats,
    decoys: Floats,
    held_out: Floats,
    *,
    claimed: float,
    level: float = 0.05,
    n_decoys: int | None = None,
) -> Entrapment:
    """Put held-out decoys among the targets, calibrate on the others, and count who gets in.

    The number that gets in is compared with a Poisson count of mean claimed x accepted.
    """
    from scipy.special import pdtrc

    mixed = np.concatenate([targets, held_out])
    accepted = calibrate(mixed, decoys, n_decoys=n_decoys).q <= claimed
    inside = int(accepted[len(targets) :].sum())
    n = int(accepted.sum())
    expected = claimed * n
    p = float(pdtrc(inside - 1, expected)) if inside else 1.0
    return Entrapment(claimed, n, inside, expected, p, p >= level)


def _at_least(scores: Floats, among: Floats) -> NDArray[np.int64]:
    ordered = np.sort(among)
    return (len(among) - np.searchsorted(ordered, scores, side="left")).astype(np.int64)
