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

    from contam.rescore import Row
    from contam.rescore.panel import Flags, Series
    from contam.rescore.stats.field import BeyondField

    Key = tuple[str, str, str, str]


REFERENCE: Final = "a reference model"
"""Why a model that makes the field is not adjusted."""


def adjusted_figures(
    series: Sequence[Series], flags: Sequence[Flags], references: Sequence[str], least: int
) -> dict[Key, Row]:
    """The columns `adjusted...` of the scores by model, benchmark, metric and policy.

    series  of logs, with scores of which more is better; references  models that make the field,
    all when empty; least  flagged and clean items that a model needs
    """
    groups: dict[tuple[str, str], list[Series]] = {}
    for run in series:
        if run.additive:
            groups.setdefault((run.benchmark, run.metric), []).append(run)
    tasks = [(runs, policy) for runs in groups.values() for policy in flags]
    found: dict[Key, Row] = {}
    for (runs, policy), rows in zip(
        tasks, in_threads(lambda task: _rows(*task, references, least), tasks), strict=True
    ):
        for run, row in zip(runs, rows, strict=True):
            found[run.model, run.benchmark, run.metric, policy.policy] = row
    return found


def _rows(runs: Sequence[Series], flags: Flags, references: Sequence[str], least: int) -> list[Row]:
    """One for each run over one benchmark by one metric."""
    split = Split.of(flags.label)
    scores = np.full((len(runs), len(flags.label)), np.nan)
    for row, run in zip(scores, runs, strict=True):
        # Of an item listed twice, the first.
        known = np.flatnonzero(run.item >= 0)[::-1]
        row[run.item[known]] = run.score[known]
    scores[:, split.unchecked] = np.nan
    there = ~np.isnan(scores)
    numbers = [right_or_wrong(row[own]) for row, own in zip(scores, there, strict=True)]
    enough = np.minimum(there[:, split.flagged].sum(axis=1), there[:, split.clean].sum(axis=1))
    tested = np.flatnonzero(np.array(numbers) & (enough >= least)).tolist()
    items = np.flatnonzero(there[tested].any(axis=0))
    field = [at for at, run in enumerate(tested) if runs[run].model in references]
    cluster = several(flags.cluster[items])
    few_clusters = cluster is not None and len(np.unique(cluster)) < LEAST_CLUSTERS
    results = (
        [None] * len(tested)
        if few_clusters
        else beyond_field(
            scores[tested][:, items],
            split.flagged[items],
            cluster,
            field if references else None,
        )
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
            others = len(field) if references else len(tested) - 1
            why = f"{counted(others, 'other model')} to compare with, at least {LEAST_FIELD} needed"
        rows.append({"adjusted_by": f"not adjusted: {why}"})
    return rows


def _row(run: Series, result: BeyondField) -> Row:
    low, high = run.units.gains(result.low, result.high)
    gap = run.units.gain(result.gap)
    by = f"{counted(result.n_field, 'other model')}, gap {gap:+.3f}"
    if result.n_left_out:
        by += f", {result.n_left_out} left out for a gain of their own"
    return {
        "adjusted": run.units.gain(result.points),
        "adjusted_low": low,
        "adjusted_high": high,
        "adjusted_p": result.p,
        "adjusted_by": by,
    }
