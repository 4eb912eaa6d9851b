"""Measure a board: diversity of its rankings, and what moves them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from contam.rescore.stats.ranking import average_ranks, kendall, published_win_rate, win_shares

if TYPE_CHECKING:
    from contam.rescore import Bools, Floats, Ints


_HAIR: Final = 1e-8


@dataclass(frozen=True, slots=True, kw_only=True)
class Diversity:
    """One minus Kendall's W of T tasks that rank m models: 0 when all agree, 1 when none do.

    exact          of average ranks; tie_corrected  what ties take from the largest W given back
    published      with the ranks cut to whole numbers first, as BenchBench's code has it
    mean_change    mean over pairs of tasks of the largest change of rank over m - 1, which
                   BenchBench calls max_MRC; max_change  the largest over pairs
    """

    exact: float
    tie_corrected: float
    published: float
    mean_change: float
    max_change: float


def near_ranks(scores: Floats) -> Floats:
    """Average ranks, 1 for the highest; neighbours closer than 1e-8 tie, whatever rounding did."""
    order = np.argsort(-scores, kind="stable")
    fresh = np.append(True, np.diff(-scores[order]) > _HAIR)
    group = np.empty(len(scores), np.int64)
    group[order] = np.cumsum(fresh)
    return average_ranks(group)


def diversity(table: Floats) -> Diversity:
    """Of a table without gaps, of two models and two tasks at least.

    tie_corrected is nan where every task ties all models.
    """
    m, n_tasks = table.shape
    ranks = np.array([near_ranks(task) for task in table.T])
    ties = 0.0
    for own in ranks:
        sizes = np.unique(own, return_counts=True)[1].astype(np.float64)
        ties += float((sizes**3 - sizes).sum())
    most = n_tasks**2 * (m**3 - m)
    left = most - n_tasks * ties
    spread = _spread(ranks)
    changes = [
        float(np.abs(ranks[a] - ranks[b]).max()) / (m - 1) for a in range(n_tasks) for b in range(a)
    ]
    return Diversity(
        exact=1 - spread / most,
        tie_corrected=1 - spread / left if left > 0 else np.nan,
        published=1 - _spread(np.floor(ranks)) / most,
        mean_change=float(np.mean(changes)),
        max_change=max(changes),
    )


def _spread(ranks: Floats) -> float:
    """12 S, S the squared deviations of the models' rank sums from their mean."""
    sums = ranks.sum(axis=0)
    return 12 * float(((sums - sums.mean()) ** 2).sum())


_LEAST_WEIGHT: Final = 0.01
_STEPS: Final = 1_000
_STILL: Final = 1e-5
_STARTS: Final = 20
_DIGITS: Final = 9
#: Of moves and pairs of leaders that are compared at once: some 100 MB.
_MOST_CELLS: Final = 4_000_000
#: The same over a whole search, after which no field is climbed from: some 20 s.
_MOST_WORK: Final = 200_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """How far two rankings of the same m models are apart.

    distance  (1 - Kendall's tau-b) / 2; nan where one of them ties all models
    largest   the largest change of rank over m - 1
    """

    distance: float
    largest: float


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Witness:
    """What a search found: the change, and the weights or the models that bring it about."""

    change: Change
    weights: Floats | None = None
    field: Ints | None = None


def change_of(new: Floats, old: Floats) -> Change:
    """Between two rankings, average ranks of the same models."""
    if len(new) <= 1 or float(np.abs(new - old).sum()) <= _HAIR:
        return Change(distance=0.0, largest=0.0)
    tau = float(kendall(new, old[None, :])[0])
    largest = float(np.abs(new - old).max()) / (len(new) - 1)
    return Change(distance=(1 - tau) / 2, largest=largest)


def reweighed(table: Floats, weights: Floats) -> Change:
    """The order by weighted means against that by plain means.

    weights  float64[tasks], or one for each task that tells any two models apart
    """
    if len(weights) != table.shape[1]:
        table = table[:, _informative(table)]
    new = near_ranks((table * weights).mean(axis=1))
    return change_of(new, near_ranks(table.mean(axis=1)))


def search_weights(table: Floats) -> Witness:
    """Weights in (0, 1] of the tasks that move the order of the means most, as far as found.

    Two descents along a hinge of the wrongly ordered pairs, plain and weighed by how many ranks
    are between; weights are relative to a task's s.d. and none is under 1 % of their sum before
    that. What does not change is a table of one telling task.
    """
    informative = _informative(table)
    scores = table[:, informative]
    if scores.shape[1] == 0:
        return Witness(change=Change(distance=0.0, largest=0.0), weights=np.ones(table.shape[1]))
    found = []
    for weighted in (True, False):
        weights = np.ones(table.shape[1])
        weights[informative] = _descend(scores, weighted=weighted)
        found.append(Witness(change=reweighed(table, weights), weights=weights))
    # Weights that tie all models have no distance; with equal ones nothing moves.
    known = [witness for witness in found if not np.isnan(witness.change.distance)]
    still = Change(distance=0.0, largest=0.0)
    known.append(Witness(change=still, weights=np.ones(table.shape[1])))
    return max(known, key=lambda witness: (witness.change.distance, witness.change.largest))


def _informative(table: Floats) -> Bools:
    return np.asarray(table.std(axis=0) > _HAIR)


def _descend(scores: Floats, *, weighted: bool) -> Floats:
    """Gradient descent, steps of 1, on softmax weights with a floor."""
    deviation = scores.std(axis=0, ddof=1)
    standard = (scores - scores.mean(axis=0)) / deviation
    old = near_ranks(scores.mean(axis=1))
    gap = old[:, None] - old[None, :]
    # [i, j]: what it is worth that j, now before i, comes after it.
    worth = np.where(gap > 0, gap if weighted else 1.0, 0.0)
    logits = np.ones(scores.shape[1])
    last = np.inf
    for _ in range(_STEPS):
        soft, weights, total = _floored(logits)
        means = (standard * weights).mean(axis=1)
        lead = means[None, :] - means[:, None]
        active = worth * (lead >= 0)
        loss = float((active * lead).sum())
        if loss <= _HAIR:
            break
        by_mean = active.sum(axis=0) - active.sum(axis=1)
        by_weight = standard.T @ by_mean / scores.shape[1]
        by_floored = (by_weight - float(by_weight @ weights)) / total
        logits = logits - soft * (by_floored - float(by_floored @ soft))
        if abs(loss - last) < _STILL:
            break
        last = loss
    weights = _floored(logits)[1] / deviation
    result: Floats = weights / weights.max()
    return result


def _floored(logits: Floats) -> tuple[Floats, Floats, float]:
    """Softmax, the same with every weight raised by a floor and scaled to 1, and the scale."""
    raised = np.exp(logits - logits.max())
    soft = raised / raised.sum()
    floored = soft + _LEAST_WEIGHT / (1 - _LEAST_WEIGHT)
    total = float(floored.sum())
    return soft, floored / total, total


def top_fifth(table: Floats) -> Ints:
    """The fifth of the models that wins most often, best first."""
    wins = win_shares(table).sum(axis=1).round(_DIGITS)
    return np.argsort(-wins, kind="stable")[: len(table) // 5].astype(np.int64)


def in_field(shares: Floats, top: Ints, field: Ints) -> Change:
    """The order of `top` by win rate in a field that holds them, against that among themselves.

    shares  `win_shares` of the table
    """
    place = {int(model): at for at, model in enumerate(field)}
    wide = published_win_rate(shares[np.ix_(field, field)])
    among = published_win_rate(shares[np.ix_(top, top)])
    return change_of(near_ranks(wide[[place[int(model)] for model in top]]), near_ranks(among))


def search_field(table: Floats, top: Ints, *, seed: int = 0) -> Witness:
    """Which other models must be in the field for the order of `top` to change most, as found.

    Climbs from random fields, one or two models in or out at a time; one alone where so many are
    there that pairs take too much memory, and not at all where even these do.
    """
    shares = win_shares(table)
    others = np.setdiff1d(np.arange(len(table)), top)
    pairs = np.triu_indices(len(top), 1)
    among = shares[np.ix_(top, top)]
    old = near_ranks(published_win_rate(among))
    before = np.sign(old[pairs[1]] - old[pairs[0]])
    base = among.sum(axis=1)
    added = shares[np.ix_(top, others)].T
    best = Witness(change=Change(distance=0.0, largest=0.0), field=np.sort(top))
    if not before.any() or not len(others):
        return best
    n_before = float(np.count_nonzero(before))

    def distance(sums: Floats) -> Floats:
        lead = np.sign((sums[..., pairs[0]] - sums[..., pairs[1]]).round(_DIGITS))
        scale = np.sqrt(np.count_nonzero(lead, axis=-1) * n_before)
        tau = np.divide(
            (lead * before).sum(axis=-1), scale, out=np.ones(scale.shape), where=scale > 0
        )
        result: Floats = (1 - tau) / 2
        return result

    moves = _moves(len(others), _MOST_CELLS // len(pairs[0]))
    rng = np.random.default_rng(seed)
    work = 0
    for start in range(_STARTS):
        chosen = rng.random(len(others)) < (rng.random() if start > 1 else start)
        while work < _MOST_WORK:
            now = float(distance(base + chosen @ added))
            for move in moves:
                work += len(move) * len(pairs[0])
                step = move * np.where(chosen, -1.0, 1.0)
                moved = distance(base + chosen @ added + step @ added)
                at = int(moved.argmax())
                if moved[at] > now + _HAIR:
                    chosen ^= move[at] > 0
                    break
            else:
                break
        field = np.sort(np.concatenate([top, others[chosen]])).astype(np.int64)
        change = in_field(shares, top, field)
        if (change.distance, change.largest) > (best.change.distance, best.change.largest):
            best = Witness(change=change, field=field)
    return best


def _moves(n: int, most: int) -> list[Floats]:
    """Float64[moves, n], 1 for a model that enters or leaves: each alone, and every two.

    most  moves of a kind; kinds with more of them are left out
    """
    if n > most:
        return []
    single = np.eye(n)
    if n * (n - 1) // 2 > most:
        return [single]
    a, b = np.triu_indices(n, 1)
    return [single, single[a] + single[b]]


LEAST_RANKED: Final = 5
"""Models and tasks without which a diversity of rankings says little."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Board:
    """What a table of scores, float64[models, tasks], says of itself.

    whole      int64[], the models with a score on every task: diversity and cardinal are of these
    diversity  None where fewer than five of them are left, or below five tasks
    cardinal   None where fewer than two of them are left
    top        int64[], the fifth that wins most often, best first
    ordinal    which field moves the order of the top most; weak_models  what the whole field does
               to it. Both None where a fifth of the models is no two
    """

    whole: Ints
    diversity: Diversity | None
    cardinal: Witness | None
    top: Ints
    ordinal: Witness | None
    weak_models: Change | None

    @property
    def changes(self) -> dict[str, Change]:
        """What moves the order, and how far."""
        witnesses = {"cardinal": self.cardinal, "ordinal": self.ordinal}
        found = {name: one.change for name, one in witnesses.items() if one is not None}
        return found if self.weak_models is None else {**found, "weak_models": self.weak_models}


def measured(table: Floats, models: Ints, *, seed: int = 0, cardinal: bool = True) -> Board:
    """Measure some models of a table of two tasks or more, nan for a gap; a higher score is better.

    cardinal  whether a mean over tasks means anything, and weights of them are searched for
    """
    table = table[models]
    whole = np.flatnonzero(~np.isnan(table).any(axis=1)).astype(np.int64)
    enough = len(whole) > 1
    diverse = min(len(whole), table.shape[1]) >= LEAST_RANKED
    top = top_fifth(table)
    ranked = len(top) > 1
    ordinal = search_field(table, top, seed=seed) if ranked else None
    if ordinal is not None and ordinal.field is not None:
        ordinal = replace(ordinal, field=models[ordinal.field])
    return Board(
        whole=models[whole],
        diversity=diversity(table[whole]) if diverse else None,
        cardinal=search_weights(table[whole]) if enough and cardinal else None,
        top=models[top],
        ordinal=ordinal,
        weak_models=in_field(win_shares(table), top, np.arange(len(table))) if ranked else None,
    )
