"""Test whether a model gains more on flagged items than all models find them easier.

Popular items are easier and leak more, so that honest models, too, do better on flagged items. How
hard the items are is read off the other models, the field, by one Rasch model of them all: logit of
a right answer = ability - difficulty. Difficulties are normal, with a mean of their own for flagged
items, and integrated out (marginal maximum likelihood), so that the noise of a small field does not
hide what they explain. The model under test may be shifted on flagged items by `delta` logits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.special import expit, ndtri, stdtr, stdtrit

from contam.facts import counted
from contam.rescore.panel import Split
from contam.rescore.rankings import rows_at
from contam.rescore.stats.clusters import LEAST_CLUSTERS, SURE, right_or_wrong, several
from contam.rescore.stats.permutation import in_threads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contam.rescore import Bools, Floats, Ints, Row
    from contam.rescore.panel import Flags, Series

    Key = tuple[str, str, str, str]


LEAST_FIELD: Final = 2
"""Other models without which a gain cannot be told from easier items."""


#: More models say no more about the items, and cost as much each: some of all abilities are taken.
_MOST_FIELD: Final = 40

#: Gauss and Hermite's nodes of a standard normal, and the logs of their weights.
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(15)
_LOG_WEIGHTS: Final = np.log(_WEIGHTS / _WEIGHTS.sum())
#: Honest models differ by more than sampling, since items discriminate differently: the least that
#: is assumed, in logits, where the others are few, and from `_MANY` of them on.
_MANY: Final = 8
_SPREAD_OF_FEW, _SPREAD_OF_MANY = 0.12, 0.08
_NORMAL: Final = 1e9
#: The variance of a shift for one item, and the share of right answers that a shift of one logit is
#: worth, where difficulties differ by a logit and easier items are flagged.
_NOISE, _WORTH = 7.0, 0.18
#: A model with a p below has a gain of its own: the others are fitted anew without it.
_OWN_GAIN: Final = 0.005
#: Standard deviations of weak priors of abilities, means and shifts, in logits, and of the log of
#: the spread of difficulties: none is infinite.
_PRIOR, _PRIOR_OF_SPREAD = 5.0, 2.0
#: Where a fit ends, in standard errors of a value.
_GRADIENT, _MOST_STEPS = 1e-6, 500
#: Likelihood ratios below say what the curvature says.
_CLEAR_RATIO: Final = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class BeyondField:
    """What a model gains on flagged items beyond what the others find them easier.

    points, low, high  as a share of its flagged items, with limits of 95 %
    p                  one-sided, of no more gain than the field's
    n_field            other models that say how hard the items are; n_left_out  those that do not,
                       since they have a gain of their own
    gap                the field's mean score on flagged items less that on clean ones
    easier             how much more of the flagged items the whole field would have to have right
                       for p to be .05: what no difficulty read off it shows (a bound after
                       Rosenbaum 2002); 0 where p is above
    """

    points: float
    low: float
    high: float
    p: float
    n_field: int
    n_left_out: int
    gap: float
    easier: float


def beyond_field(
    scores: Floats,
    flagged: Bools,
    cluster: Ints | None = None,
    references: Sequence[int] | None = None,
    family: Ints | None = None,
) -> list[BeyondField | None]:
    """Test each model against the others; None for one with fewer than two others.

    scores      float64[models, items], 0 or 1, nan where a model lacks the item; every model has
                flagged and clean ones
    flagged     bool[items]
    cluster     int64[items], at least `LEAST_CLUSTERS`; None where every item stands alone
    references  the models that make the field, all when None; of more than 40, 40 of all abilities
    family      int64[models], equal for runs of one model, which say one thing of the items: the
                first is in the field, and none in that of another; None where all are apart
    """
    of = np.arange(len(scores)) if family is None else family
    named = range(len(scores)) if references is None else references
    first = {int(of[at]): at for at in reversed(named)}
    field = _thinned(scores, sorted(first.values()))
    kept = field
    while True:
        shifts = _shifts(scores, flagged, cluster, kept, of)
        tests = [_tested(shifts, model, kept, of) for model in range(len(scores))]
        honest = [at for at in kept if not ((own := tests[at]) and own.p < _OWN_GAIN)]
        if len(honest) == len(kept) or len(honest) <= LEAST_FIELD:
            break
        kept = honest
    result: list[BeyondField | None] = []
    for model, test in enumerate(tests):
        rest = [other for other in kept if of[other] != of[model]]
        gone = [other for other in field if other not in kept and of[other] != of[model]]
        if test is None:
            result.append(None)
            continue
        # Settled to what is the same whichever way a processor computes an exponential.
        points, low, high, p, easier, gap = (
            float(f"{value:.4g}") for value in (*test, _gap(scores[rest], flagged))
        )
        result.append(BeyondField(points=points, low=low, high=high, p=p, n_field=len(rest),
                                  n_left_out=len(gone), gap=gap, easier=easier))  # fmt: skip
    return result


def smallest_beyond(n_flagged: int, n_clean: int) -> float | None:
    """What `beyond_field` finds in about 80 % of cases beside ten models, about half right.

    A share of the flagged items; None without items of one side. Simulated, as `_WORTH` is.
    """
    if not (n_flagged and n_clean):
        return None
    error = np.sqrt(_NOISE / n_flagged + _NOISE / n_clean + _SPREAD_OF_FEW**2)
    return float(min(1.0, _WORTH * (ndtri(1 - SURE) + ndtri(0.8)) * error))


def _thinned(scores: Floats, field: list[int]) -> list[int]:
    """At most so many models of a field, evenly over their mean scores; in their order."""
    if len(field) <= _MOST_FIELD:
        return field
    order = np.argsort(np.nanmean(scores[field], axis=1), kind="stable")
    places = np.linspace(0, len(field) - 1, _MOST_FIELD).round().astype(np.int64)
    return sorted(field[at] for at in order[places])


def _gap(scores: Floats, flagged: Bools) -> float:
    return float(np.nanmean(scores[:, flagged]) - np.nanmean(scores[:, ~flagged]))


class _Tested(NamedTuple):
    points: float
    low: float
    high: float
    p: float
    easier: float


def _tested(
    shifts: Sequence[_Shift | None], model: int, field: Sequence[int], family: Ints
) -> _Tested | None:
    """A model's shift beside those of the field, which differ by more than their errors."""
    own = shifts[model]
    if own is None:
        return None
    others = [shift for at in field if family[at] != family[model] and (shift := shifts[at])]
    many = len(others) >= _MANY
    freedom = len(others) - 1.0 if many else _NORMAL
    least = _SPREAD_OF_MANY if many else _SPREAD_OF_FEW
    error = float(np.hypot(own.error, max(least, _spread(others))))
    half = error * float(stdtrit(freedom, 0.975))
    points, low, high = (own.points(own.delta + far) for far in (0.0, -half, half))
    beyond = max(own.delta - error * float(stdtrit(freedom, 1 - SURE)), 0.0)
    easier = float(np.mean([other.points(beyond) for other in others or [own]]))
    return _Tested(points, low, high, float(stdtr(freedom, -own.delta / error)), easier)


def _spread(shifts: Sequence[_Shift]) -> float:
    """How far models differ beyond their errors, in logits (Paule and Mandel 1982)."""
    delta = np.array([shift.delta for shift in shifts])
    error = np.array([shift.error for shift in shifts])

    def excess(variance: float) -> float:
        weights = 1 / (error**2 + variance)
        middle = (weights * delta).sum() / weights.sum()
        return float((weights * (delta - middle) ** 2).sum()) - (len(shifts) - 1)

    if len(shifts) < LEAST_FIELD or excess(0.0) <= 0:
        return 0.0
    return float(np.sqrt(brentq(excess, 0.0, float(np.ptp(delta)) ** 2)))


class _Shift(NamedTuple):
    """How much better a model is on flagged items than its ability and their difficulty say.

    delta, error  logits
    ability       of the model; difficulty  float64[nodes]; weight  float64[nodes], the share of
                  the flagged items that have it
    """

    delta: float
    error: float
    ability: float
    difficulty: Floats
    weight: Floats

    def points(self, delta: float) -> float:
        """What a shift of so many logits is worth, as a share of the items."""
        usual = expit(self.ability - self.difficulty)
        return float((self.weight * (expit(self.ability + delta - self.difficulty) - usual)).sum())


def _shifts(
    scores: Floats, flagged: Bools, cluster: Ints | None, field: Sequence[int], family: Ints
) -> list[_Shift | None]:
    """Each model's shift against the field without it."""
    result: list[_Shift | None] = [None] * len(scores)
    if len(field) < LEAST_FIELD:
        return result
    known = _fit(_Answers(scores[field], flagged), np.zeros(len(field) + 2)).values
    for model in range(len(scores)):
        rest = [at for at, other in enumerate(field) if family[other] != family[model]]
        if len(rest) >= LEAST_FIELD:
            answers = _Answers(scores[[*(field[at] for at in rest), model]], flagged)
            result[model] = _shift_of_last(answers, np.r_[known[rest], 0.0, known[-2:]], cluster)
    return result


def _shift_of_last(answers: _Answers, start: Floats, cluster: Ints | None) -> _Shift:
    """The shift of the last model; its error by the likelihood ratio, right near a ceiling too."""
    equal = _fit(answers, start)
    free = _fit(answers, np.append(equal.values, 0.0))
    delta = float(free.values[-1])
    held = _held(answers.n_models, len(free.values))
    last = np.linalg.inv(_information(free.parts, held))[-1]
    error, ratio = float(np.sqrt(last[-1])), 2 * (free.likelihood - equal.likelihood)
    if ratio > _CLEAR_RATIO:
        error = abs(delta) / float(np.sqrt(ratio))
    if cluster is not None:
        # What whole clusters add to the estimate, beside what their items would add alone.
        parts = free.parts @ last
        sums = np.bincount(np.unique(cluster, return_inverse=True)[1], weights=parts)
        scale = len(sums) / (len(sums) - 1)
        error *= float(np.sqrt(scale * (sums @ sums) / (parts @ parts)))
    # Of the flagged items that the model answered.
    weight = free.posterior[answers.flagged.answered[-1] > 0].mean(axis=0)
    return _Shift(delta, error, float(free.values[answers.n_models - 1]), free.difficulty, weight)


class _Side(NamedTuple):
    """The answers to the flagged items, or to the clean ones.

    items            int64[items], their numbers
    right, answered  float64[models, items], 1 or 0; right[i] is 0 where answered[i] is
    """

    items: Ints
    right: Floats
    answered: Floats

    @classmethod
    def of(cls, scores: Floats, items: Ints) -> _Side:
        own = scores[:, items]
        return cls(items, np.nan_to_num(own), (~np.isnan(own)).astype(np.float64))


class _Answers:
    """Scores of models, the last of them under test, on the items of each side."""

    def __init__(self, scores: Floats, flags: Bools) -> None:
        self.n_models, self.n_items = scores.shape
        self.clean, self.flagged = (
            _Side.of(scores, np.flatnonzero(own)) for own in (~flags, flags)
        )


class _Point(NamedTuple):
    """Values, and the marginal likelihood there.

    values       abilities of the models, mean difficulty of flagged items, log of the spread of
                 difficulties, and the shift of the last model where it is free
    parts        float64[items, values], what each item adds to the gradient
    posterior    float64[flagged items, nodes]; difficulty  float64[nodes], theirs
    """

    values: Floats
    likelihood: float
    parts: Floats
    posterior: Floats
    difficulty: Floats


def _fit(answers: _Answers, start: Floats) -> _Point:
    """Maximise the marginal likelihood; the last model's shift is free where `start` has one."""
    held = _held(answers.n_models, len(start))
    # In units of the errors at the start, in which all directions are alike steep.
    lower = np.linalg.cholesky(_information(_at(answers, start).parts, held))
    given = [answers]

    def lost(moved: Floats) -> tuple[float, Floats]:
        values = start + np.linalg.solve(lower.T, moved)
        here = _at(given[0], values)
        gradient = here.parts.sum(axis=0) - held * values
        likelihood = here.likelihood - 0.5 * float((held * values * values).sum())
        return -likelihood, -np.linalg.solve(lower, gradient)

    options = {"gtol": _GRADIENT, "ftol": 0.0, "maxiter": _MOST_STEPS}
    found = minimize(lost, np.zeros(len(start)), jac=True, method="L-BFGS-B", options=options)
    given.clear()  # SciPy keeps the function alive until rings of objects are collected
    return _at(answers, start + np.linalg.solve(lower.T, found.x))


def _product(one: Floats, other: Floats) -> Floats:
    """Of matrices, without the threads of a linear algebra library, which lie below ours."""
    result: Floats = np.einsum("ij,jk->ik", one, other)
    return result


def _held(n_models: int, n_values: int) -> Floats:
    """The share of the priors in the information, for each value."""
    held = np.full(n_values, _PRIOR**-2)
    held[n_models + 1] = _PRIOR_OF_SPREAD**-2
    return held


def _information(parts: Floats, held: Floats) -> Floats:
    """By products of gradients (Berndt, Hall, Hall and Hausman 1974); symmetric."""
    result: Floats = _product(parts.T, parts) + np.diag(held)
    return result


def _at(answers: _Answers, values: Floats) -> _Point:
    """The likelihood at some values, and what each item adds to its gradient."""
    n = answers.n_models
    mean, spread = float(values[n]), float(np.exp(values[n + 1]))
    parts = np.zeros((answers.n_items, len(values)))
    likelihood = 0.0
    for flagged, (items, right, answered) in enumerate((answers.clean, answers.flagged)):
        ability = values[:n].copy()
        if flagged and len(values) > n + 2:
            ability[-1] += values[-1]
        difficulty = flagged * mean + spread * _NODES
        ahead = ability[:, None] - difficulty
        expected = expit(ahead)
        n_right = right.sum(axis=0)[:, None]
        log_likely = (
            _product(right.T, ability[:, None])
            - n_right * difficulty
            - _product(answered.T, np.logaddexp(0, ahead))
            + _LOG_WEIGHTS
        )
        most = log_likely.max(axis=1, keepdims=True)
        posterior = np.exp(log_likely - most)
        total = posterior.sum(axis=1, keepdims=True)
        posterior /= total
        likelihood += float((most + np.log(total)).sum())
        parts[items, :n] = (right - answered * _product(expected, posterior.T)).T
        easier = posterior * (_product(answered.T, expected) - n_right)
        parts[items, n] = flagged * easier.sum(axis=1)
        parts[items, n + 1] = spread * (easier * _NODES).sum(axis=1)
        if flagged and len(values) > n + 2:
            parts[items, -1] = parts[items, n - 1]
    return _Point(values, likelihood, parts, posterior, difficulty)


REFERENCE: Final = "a reference model"
"""Why a model that makes the field is not adjusted."""


def adjusted_figures(
    series: Sequence[Series],
    flags: Sequence[Flags],
    references: Sequence[str],
    least: int,
    field: Sequence[Series] = (),
) -> dict[Key, Row]:
    """The columns `adjusted...` of the scores by model, benchmark, metric and policy.

    series  of logs, with scores of which more is better; references  models that make the field,
    all when empty; least  flagged and clean items that a model needs; field  series of models that
    make the field and have no rows, of whatever benchmark: items join them
    """
    groups: dict[tuple[str, str], list[Series]] = {}
    for run in series:
        if run.additive:
            groups.setdefault((run.benchmark, run.metric), []).append(run)
    tasks = [(runs, policy) for runs in groups.values() for policy in flags]
    found: dict[Key, Row] = {}
    for (runs, policy), rows in zip(
        tasks, in_threads(lambda task: _rows(*task, references, least, field), tasks), strict=True
    ):
        for run, row in zip(runs, rows, strict=True):
            found[run.model, run.benchmark, run.metric, policy.policy] = row
    return found


def _rows(
    runs: Sequence[Series],
    flags: Flags,
    references: Sequence[str],
    least: int,
    given: Sequence[Series],
) -> list[Row]:
    """One for each run over one benchmark by one metric; given  the series of `field`."""
    split = Split.of(flags.label)
    every = np.array(rows_at(runs, np.arange(len(flags.label))))
    others = _others(runs, np.asarray(~np.isnan(every).all(axis=0)), given)
    scores = np.vstack([every, *others])
    scores[:, split.unchecked] = np.nan
    there = ~np.isnan(scores)
    numbers = [right_or_wrong(row[own]) for row, own in zip(scores, there, strict=True)]
    enough = np.minimum(there[:, split.flagged].sum(axis=1), there[:, split.clean].sum(axis=1))
    tested = np.flatnonzero(np.array(numbers) & (enough >= least)).tolist()
    items = np.flatnonzero(there[tested].any(axis=0))
    makes_field = [
        at >= len(runs) or runs[at].model in references or not (references or given)
        for at in tested
    ]
    field = np.flatnonzero(makes_field).tolist()
    names = [*(run.family or run.model for run in runs), *range(len(others))]
    codes = {name: code for code, name in enumerate(dict.fromkeys(names))}
    family = np.array([codes[names[at]] for at in tested], np.int64)
    cluster = several(flags.cluster[items])
    few_clusters = cluster is not None and len(np.unique(cluster)) < LEAST_CLUSTERS
    results = (
        [None] * len(tested)
        if few_clusters
        else beyond_field(scores[tested][:, items], split.flagged[items], cluster, field, family)
    )
    by_run = dict(zip(tested, results, strict=True))
    rows = []
    for at, run in enumerate(runs):
        result = by_run.get(at)
        if result and run.model not in references:
            rows.append(_row(run, result))
            continue
        if at not in by_run:
            why = "too few items" if numbers[at] else "scores are not 0 and 1"
        elif run.model in references:
            why = REFERENCE
        elif few_clusters:
            why = f"items of fewer than {LEAST_CLUSTERS} passages"
        else:
            n_others = len({*family[field]} - {family[tested.index(at)]})
            why = f"{counted(n_others, 'other model')} to compare with"
            why += f", at least {LEAST_FIELD} needed: give logs of public models as `field`"
        rows.append({"adjusted_by": f"not adjusted: {why}"})
    return rows


def _others(runs: Sequence[Series], items: Bools, given: Sequence[Series]) -> list[Floats]:
    """The scores float64[items] of models of the field that answered some of these items.

    By the metric of the runs, or by the only one of a model; a model that is under test is left out
    """
    by_model: dict[str, list[Series]] = {}
    for run in given:
        known = run.item[run.item >= 0]
        if run.additive and items[known].any():
            by_model.setdefault(run.family or run.model, []).append(run)
    found = []
    for model in sorted(by_model.keys() - {run.family or run.model for run in runs}):
        own = by_model[model]
        alike = [run for run in own if run.metric == runs[0].metric]
        if alike or len({run.metric for run in own}) == 1:
            # Of two benchmarks or runs that hold an item, the one of the same name, or the first.
            chosen = sorted(alike or own, key=lambda run: run.benchmark != runs[0].benchmark)
            scores = np.full(len(items), np.nan)
            for row in rows_at(chosen, np.arange(len(items))):
                scores = np.where(np.isnan(scores), row, scores)
            found.append(np.where(items, scores, np.nan))
    return found


def _row(run: Series, result: BeyondField) -> Row:
    low, high = run.units.gains(result.low, result.high)
    gap = run.units.gain(result.gap)
    by = f"{counted(result.n_field, 'other model')}, gap {gap:+.3f}"
    if result.n_left_out:
        by += f", {result.n_left_out} left out for a gain of their own"
    if result.easier:
        by += (
            f"; to explain it, flagged items would have to be {result.easier:.3f} easier for the"
            " whole field than they are"
        )
    return {
        "adjusted": run.units.gain(result.points),
        "adjusted_low": low,
        "adjusted_high": high,
        "adjusted_p": result.p,
        "adjusted_by": by,
    }
