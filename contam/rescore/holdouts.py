"""Set a benchmark beside one that nobody can have seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contam.errors import Public, UsageError
from contam.rescore.rankings import matrices
from contam.rescore.stats.clusters import several
from contam.rescore.stats.dealing import adjust
from contam.rescore.stats.holdout import MARGIN, constat, equivalent, inflation

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from contam.rescore import Floats, Ints, Row
    from contam.rescore.logs.model import Log
    from contam.rescore.panel import RescoreSettings, Series
    from contam.rescore.rankings import Matrix


_SURE: Final = 0.05


def item_numbers(logs: Sequence[Log]) -> list[Ints]:
    """For each log of one reference benchmark: int64[n], equal where logs mean the same item.

    By id and question. Raises LogError for an item that occurs twice in a log.
    """
    known: dict[tuple[str, str | None], int] = {}
    found = []
    for log in logs:
        keys = [(item.item_id, item.question or item.prompt) for item in log.items]
        if len(set(keys)) < len(keys):
            said = "an item of the reference benchmark {} occurs twice"
            raise log.fault(said, Public(log.benchmark), hint="give each item once")
        numbers = [known.setdefault(key, len(known)) for key in keys]
        found.append(np.array(numbers, np.int64))
    return found


def holdout_rows(
    series: Sequence[Series],
    second: Sequence[Series],
    settings: RescoreSettings,
    cluster: Ints,
) -> list[Row]:
    """Rows for each benchmark, model tested and method, of benchmarks with a reference benchmark.

    second   scores on the reference benchmarks of `settings`
    cluster  int64[N], of the items judged: those that rise and fall together
    """
    rows: list[Row] = []
    first_matrices, second_matrices = (matrices(own, mixed_setups=True) for own in (series, second))
    for benchmark, other in settings.reference_benchmarks:
        ours = [matrix for matrix in first_matrices if matrix.benchmark == benchmark]
        theirs = [matrix for matrix in second_matrices if matrix.benchmark == other]
        for name, found, kind in ((benchmark, ours, "benchmark"), (other, theirs, "reference")):
            if not found:
                hint = "--reference-benchmark takes BENCHMARK=REFERENCE, as contam logs names them"
                raise UsageError("no log with item scores of {} {}", Public(kind), name, hint=hint)
        for matrix in ours:
            counterpart = _counterpart(matrix, ours, theirs)
            own = several(cluster[matrix.items])
            rows += _rows_of(matrix, counterpart, settings, own)
    adjust(rows, ("p",), lambda row: (row["benchmark"], row["metric"], row["method"]), by=("holm",))
    return rows


def _counterpart(
    matrix: Matrix, ours: Sequence[Matrix], theirs: Sequence[Matrix]
) -> tuple[Matrix | None, str]:
    """The same metric of the reference benchmark, or its only one."""
    same = [their for their in theirs if their.metric == matrix.metric]
    if same:
        return same[0], ""
    if len(ours) == len(theirs) == 1:
        return theirs[0], f"set against {theirs[0].metric}"
    return None, f"no {matrix.metric} of {theirs[0].benchmark}"


def _rows_of(
    matrix: Matrix,
    counterpart: tuple[Matrix | None, str],
    settings: RescoreSettings,
    cluster: Ints | None,
) -> Iterator[Row]:
    other, note = counterpart
    references = settings.references
    models = [name for name in matrix.models if name not in references]
    without = {run.model: why for run, why in zip(matrix.short, matrix.why, strict=True)}
    if other is None:
        without |= dict.fromkeys(models, note)
    elif reason := _refusal(matrix, other, settings.least):
        without |= dict.fromkeys(models, reason)
    else:
        absent = [name for name in models if name not in other.models]
        without |= dict.fromkeys(absent, f"no score on {other.benchmark}")
    for model, why in without.items():
        for method in ("ConStat", "retro-holdout"):
            yield _head(matrix, other, model, method, f"not estimable: {why}")
    tested = [name for name in models if name not in without]
    if other is None or not tested:
        return
    known = [name for name in references if name in matrix.models and name in other.models]
    public, retro = _of(matrix, other, tested)
    beside = _of(matrix, other, known)
    expected = constat(
        (public, retro), beside, family=len(tested), seed=settings.seed, cluster=cluster
    )
    for model, found, own in zip(tested, expected, retro, strict=True):
        notes = "; ".join(filter(None, [note, found.note]))
        yield _head(matrix, other, model, "ConStat", notes) | {
            "score": found.score,
            "score_reference": float(own.mean()),
            "expected": found.expected,
            "gain": found.delta,
            "gain_lo": found.low,
            "p": found.p,
        }
    reason, checked = _equally_hard(beside, cluster)
    for model, first, second in zip(tested, public, retro, strict=True):
        notes = "; ".join(filter(None, [note, reason or checked]))
        row = _head(matrix, other, model, "retro-holdout", notes)
        row |= {"score": float(first.mean()), "score_reference": float(second.mean())}
        if not reason:
            gained = inflation(first, second, cluster)
            row |= {"expected": row["score_reference"], "gain": gained.difference, "p": gained.p}
            row |= {"gain_lo": gained.low, "gain_hi": gained.high}
        yield row


def _equally_hard(beside: tuple[Floats, Floats], cluster: Ints | None) -> tuple[str, str]:
    """Why models that saw neither set do not show that both are equally hard, or how they do."""
    public, retro = beside
    apart = (
        equivalent(public.mean(axis=0), retro.mean(axis=0), cluster=cluster)
        if len(public)
        else np.nan
    )
    if np.isnan(apart):
        return "not estimable: no reference model that shows both sets to be equally hard", ""
    if apart >= _SURE:
        return (
            f"not estimable: reference models are not shown to score alike on both sets, within "
            f"{MARGIN:g} (TOST p {apart:.2g})"
        ), ""
    return "", (
        f"equally hard for {len(public)} reference models within {MARGIN:g} (TOST p "
        f"{apart:.2g}); that embeddings, a classifier and people cannot tell the sets apart was "
        f"not checked"
    )


def _of(matrix: Matrix, other: Matrix, models: Sequence[str]) -> tuple[Floats, Floats]:
    """Scores of these models on both sets."""
    at, at_other = ([side.models.index(name) for name in models] for side in (matrix, other))
    return matrix.scores[at], other.scores[at_other]


def _refusal(matrix: Matrix, other: Matrix, least: int) -> str:
    for side in (matrix, other):
        if len(side.items) < least or not side.scores.size:
            return (
                f"{len(side.items)} items of {side.benchmark} that all models were scored on, "
                f"fewer than {least}"
            )
        if not side.higher_is_better or side.scores.min() < 0 or side.scores.max() > 1:
            return f"{side.metric} of {side.benchmark} is no share of right answers"
    return ""


def _head(matrix: Matrix, other: Matrix | None, model: str, method: str, note: str) -> Row:
    return {
        "model": model,
        "benchmark": matrix.benchmark,
        "metric": matrix.metric,
        "reference_benchmark": other.benchmark if other else "",
        "method": method,
        "n": len(matrix.items),
        "n_reference": len(other.items) if other else 0,
        "note": note,
    }
