"""Set each model's gain beside what all models find the flagged items easier."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contam.facts import counted
from contam.rescore.panel import Split
from contam.rescore.stats.clusters import LEAST_CLUSTERS, right_or_wrong, several
from contam.rescore.stats.dealing import in_threads
from contam.rescore.stats.field import LEAST_FIELD, beyond_field

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contam.rescore import Bools, Floats, Row
    from contam.rescore.panel import Flags, Series
    from contam.rescore.stats.field import BeyondField

    Key = tuple[str, str, str, str]


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
    every = np.array([_by_item([run], len(flags.label)) for run in runs])
    others = _others(runs, ~np.isnan(every).all(axis=0), given)
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
            found.append(np.where(items, _by_item(chosen, len(items)), np.nan))
    return found


def _by_item(runs: Sequence[Series], n_items: int) -> Floats:
    """float64[n_items]: a model's scores, nan for none; of an item listed twice, the first."""
    scores = np.full(n_items, np.nan)
    for run in reversed(runs):
        known = np.flatnonzero(run.item >= 0)[::-1]
        scores[run.item[known]] = run.score[known]
    return scores


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
