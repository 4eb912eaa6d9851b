"""The published search for a field of models that moves the leaders: what its figures rest on."""

import numpy as np

from contam.rescore.stats import board

LEAST_WEIGHT = 0.01
STEPS = 1_000
RATE = 0.01
HAIR = 1e-8


def draw_field(table, top, *, seed=0):
    """The published search: each other model stays with a chance of its own, learned by draws.

    1,000 draws; straight-through gradients of a hinge on the win rates, Adam with steps of 0.01;
    the best field drawn is kept. Its draws are ours, so it finds what the paper finds only nearly;
    `search_field` finds more.
    """
    shares = board.win_shares(table)
    m = len(table)
    among = board.near_ranks(board.published_win_rate(shares[np.ix_(top, top)]))
    before = among[:, None] < among[None, :]
    best = board.Witness(change=board.Change(distance=0.0, largest=0.0), field=np.sort(top))
    rng = np.random.default_rng(seed)
    logits, mean, square = np.zeros(m), np.zeros(m), np.zeros(m)
    for step in range(1, STEPS + 1):
        stays = (rng.random(m) < 1 / (1 + np.exp(-logits))).astype(np.float64)
        stays[top] = 1.0
        beaten = shares @ stays
        wins = stays * beaten / stays.sum()
        lead = wins[top][:, None] - wins[top][None, :]
        active = before & (lead >= -LEAST_WEIGHT)
        by_wins = np.zeros(m)
        by_wins[top] = active.sum(axis=1) - active.sum(axis=0)
        slope = by_wins * beaten + (by_wins * stays) @ shares - float(by_wins @ wins)
        slope /= stays.sum()
        mean = 0.9 * mean + 0.1 * slope
        square = 0.999 * square + 0.001 * slope**2
        scale = np.sqrt(square / (1 - 0.999**step)) + HAIR
        logits -= RATE * mean / (1 - 0.9**step) / scale
        field = np.flatnonzero(stays).astype(np.int64)
        change = board.in_field(shares, top, field)
        if change.distance > best.change.distance:
            best = board.Witness(change=change, field=field)
    return best
