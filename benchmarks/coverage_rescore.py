"""What intervals cover and tests reject, by simulation: more shapes and rounds than the tests make.

python benchmarks/coverage_rescore.py [--rounds 4000]

Intervals claim 95 %, tests 5 %. Answers are beta-binomial: right with probability p, correlation r
within a cluster. Flags mean nothing in every row of the second table.
"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Final

import numpy as np

from contam.rescore.stats.clusters import interval_of
from contam.rescore.stats.permutation import permutation_test
from contam.rescore.stats.ranking import pairwise

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]
    Bools = NDArray[np.bool_]

SEED: Final = 11
FLAGGED: Final = 0.4
SURE: Final = 0.05
SHAPES: Final = {
    "100 items, one pair": [1] * 98 + [2],
    "three passages of 10": [10] * 3,
    "five passages of 10": [10] * 5,
    "ten passages of 5": [5] * 10,
    "30 passages of 1 to 8": [1, 2, 3, 5, 8] * 6,
    "one of 30, 30 alone": [30] + [1] * 30,
    "100 passages of 4": [4] * 100,
}


def answers(rng: np.random.Generator, sizes: Ints, p: float, within: float) -> Floats:
    """0/1 scores of every item, cluster by cluster."""
    skill = np.full(len(sizes), p)
    if within:
        scale = (1 - within) / within
        skill = rng.beta(p * scale, (1 - p) * scale, len(sizes))
    return (rng.random(int(sizes.sum())) < np.repeat(skill, sizes)).astype(np.float64)


def flags(rng: np.random.Generator, sizes: Ints, *, whole: bool) -> Bools:
    """Whole clusters, or items by themselves; never none and never all."""
    while True:
        if whole:
            found = np.repeat(rng.random(len(sizes)) < FLAGGED, sizes)
        else:
            found = rng.random(int(sizes.sum())) < FLAGGED
        if found.any() and not found.all():
            return found


def coverage(sizes: Ints, p: float, within: float, rounds: int) -> tuple[float, float, float]:
    """Of the score, and of the gain with whole clusters and with single items flagged."""
    rng = np.random.default_rng(SEED)
    cluster = np.repeat(np.arange(len(sizes)), sizes)
    held = np.zeros(3)
    for _ in range(rounds):
        scores = answers(rng, sizes, p, within)
        score = interval_of(scores, cluster)
        held[0] += score.low <= p <= score.high
        for at, whole in enumerate((True, False)):
            flagged = flags(rng, sizes, whole=whole)
            gained = permutation_test(scores, flagged, permutations=199, seed=0, cluster=cluster)
            # Without limits nothing is claimed.
            held[1 + at] += not gained.low > 0 and not gained.high < 0
    return tuple(held / rounds)


def alarms(sizes: Ints, within: float, rounds: int, *, whole: bool) -> tuple[float, ...]:
    """Share of rounds rejected: flags dealt, matches."""
    rng = np.random.default_rng(SEED)
    cluster = np.repeat(np.arange(len(sizes)), sizes)
    rejected = np.zeros(2)
    for at in range(rounds):
        flagged = flags(rng, sizes, whole=whole)
        scores, other = (answers(rng, sizes, 0.5, within) for _ in range(2))
        rejected += np.array(
            [
                permutation_test(scores, flagged, permutations=199, seed=at, cluster=cluster).p
                <= SURE,
                pairwise(np.stack([scores, other]), cluster).p[0, 1] <= SURE,
            ]
        )
    return tuple(rejected / rounds)


def main() -> None:
    """Print two tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=4_000)
    rounds = parser.parse_args().rounds
    write = sys.stdout.write
    write("coverage of 95 % intervals: score, gain (clusters flagged), gain (items flagged)\n")
    for name, shape in SHAPES.items():
        for p, within in ((0.5, 0.0), (0.5, 0.3), (0.9, 0.3), (0.05, 0.0)):
            found = coverage(np.array(shape), p, within, rounds)
            write(f"{name:24} p {p:4} r {within:3}  " + "  ".join(f"{one:.3f}" for one in found))
            write("\n")
    write("false alarms at 5 %: flags dealt, pairs\n")
    for name, shape in SHAPES.items():
        for whole in (True, False):
            shares = alarms(np.array(shape), 0.3, rounds // 4, whole=whole)
            what = "clusters" if whole else "items"
            write(f"{name:24} {what:8}  " + "  ".join(f"{share:.3f}" for share in shares) + "\n")


if __name__ == "__main__":
    main()
