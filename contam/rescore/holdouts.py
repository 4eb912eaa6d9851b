"""Make the table of second test sets: each model's gain beside an unseen benchmark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contam.errors import LogError, Place, Public, Remedy, UsageError
from contam.rescore.lineup import matrices
from contam.rescore.stats.clusters import several
from contam.rescore.stats.holdout import MARGIN, constat, equivalent, inflation
from contam.rescore.stats.multiple import holm

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from contam.rescore.lineup import Matrix
    from contam.rescore.logs.model import Log
    from contam.rescore.panel import Series

    Row = dict[str, Any]
    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

_NAN: Final = float("nan")
_SURE: Final = 0.05


def item_numbers(logs: Sequence[Log]) -> list[NDArray[np.int64]]:
    """For each log of one reference benchmark: int64[n], equal where logs mean the same item.

    By id and question. Raises LogError for an item that occurs twice in a log.
    """
    known: dict[tuple[str, str | None], int] = {}
    found = []
    for log in logs:
        keys = [(item.item_id, item.question or item.prompt) for item in log.items]
        if len(set(keys)) < len(keys):
            raise LogError(
                "{}: an item of the reference benchmark {} occurs twice", Place(log.path),
                Public(log.benchmark), remedy=Remedy.GIVE_ITEM_ONCE,
            )  # fmt: skip
        numbers = [known.setdefault(key, len(known)) for key in keys]
        found.append(np.array(numbers, np.int64))
    return found


def holdout_rows(
    series: Sequence[Series],
    second: Sequence[Series],
    pairs: Mapping[str, str],
    references: Sequence[str],
    cluster: Ints,
    *,
    least: int,
    seed: int = 0,
) -> list[Row]:
    """Rows for each benchmark, model tested and method, of benchmarks with a reference benchmark.

    second      scores on the reference benchmarks; references  models that saw neither
    pairs       benchmark -> its reference benchmark
    cluster     int64[N], of the items judged: those that rise and fall together
    """
    rows: list[Row] = []
    first_matrices, second_matrices = (matrices(own, mixed_setups=True) for own in (series, second))
    for benchmark, other in pairs.items():
        ours = [matrice for matrice in first_matrices if matrice.benchmark == benchmark]
        theirs = [matrice for matrice in second_matrices if matrice.benchmark == other]
        for name, found, kind in ((benchmark, ours, "benchmark"), (other, theirs, "reference")):
            if not found:
                raise UsageError(
                    "no log with item scores of {} {}", Public(kind), name,
                    remedy=Remedy.NAME_REFERENCE_BENCHMARK,
                )  # fmt: skip
        for matrix in ours:
            counterpart = _counterpart(matrix, ours, theirs)
            own = several(cluster[matrix.items])
            rows += _rows_of(matrix, counterpart, references, own, least=least, seed=seed)
    for key in {(row["benchmark"], row["metric"], row["method"]) for row in rows}:
        family = [row for row in rows if (row["benchmark"], row["metric"], row["method"]) == key]
        adjusted = holm(np.array([row["p"] for row in family]))
        for row, value in zip(family, adjusted, strict=True):
            row["p_holm"] = float(value)
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
    return None, f"not estimable: no {matrix.metric} of {theirs[0].benchmark}"


def _rows_of(
    matrix: Matrix,
    counterpart: tuple[Matrix | None, str],
    references: Sequence[str],
    cluster: Ints | None,
    *,
    least: int,
    seed: int,
) -> Iterator[Row]:
    other, note = counterpart
    models = [name for name in matrix.models if name not in references]
    for series, why in zip(matrix.short, matrix.why, strict=True):
        for method in ("ConStat", "retro-holdout"):
            yield _empty(matrix, other, series.model, method, f"not estimable: {why}")
    if other is not None:
        note = _refusal(matrix, other, least) or note
    if other is None or note.startswith("not estimable"):
        for model in models:
            for method in ("ConStat", "retro-holdout"):
                yield _empty(matrix, other, model, method, note)
        return
    tested = [name for name in models if name in other.models]
    known = [name for name in references if name in matrix.models and name in other.models]
    for model in models:
        if model not in tested:
            missing = f"not estimable: no score on {other.benchmark}"
            for method in ("ConStat", "retro-holdout"):
                yield _empty(matrix, other, model, method, missing)
    if not tested:
        return
    scores, references_ = _of(matrix, other, tested), _of(matrix, other, known)
    expected = constat(scores, references_, seed=seed, cluster=cluster)
    for model, found in zip(tested, expected, strict=True):
        yield _empty(
            matrix, other, model, "ConStat", "; ".join(filter(None, [note, found.note]))
        ) | {
            "score": found.score,
            "score_reference": float(other.scores[other.models.index(model)].mean()),
            "expected": found.expected,
            "gain": found.delta,
            "gain_lo": found.low,
            "p": found.p,
        }
    yield from _retro(matrix, other, tested, scores, references_, note, cluster)


def _retro(
    matrix: Matrix,
    other: Matrix,
    tested: Sequence[str],
    scores: tuple[Floats, Floats],
    references: tuple[Floats, Floats],
    note: str,
    cluster: Ints | None,
) -> Iterator[Row]:
    """Public - retro of each model, if models that saw neither score alike on both."""
    apart = _NAN
    if len(references[0]):
        apart = equivalent(references[0].mean(axis=0), references[1].mean(axis=0), cluster=cluster)
    if np.isnan(apart):
        reason = "not estimable: no reference model that shows both sets to be equally hard"
    elif apart >= _SURE:
        reason = (
            f"not estimable: reference models are not shown to score alike on both sets, within "
            f"{MARGIN:g} (TOST p {apart:.2g})"
        )
    else:
        reason = ""
    checked = (
        f"equally hard for {len(references[0])} reference models within {MARGIN:g} (TOST p "
        f"{apart:.2g}); that embeddings, a classifier and people cannot tell the sets apart was "
        f"not checked"
    )
    for model, public, retro in zip(tested, *scores, strict=True):
        row = _empty(matrix, other, model, "retro-holdout", note)
        row |= {
            "score": float(public.mean()),
            "score_reference": float(retro.mean()),
        }
        if reason:
            yield row | {"note": "; ".join(filter(None, [note, reason]))}
            continue
        found = inflation(public, retro, cluster)
        yield row | {
            "expected": float(retro.mean()),
            "gain": found.difference,
            "gain_lo": found.low,
            "gain_hi": found.high,
            "p": found.p,
            "note": "; ".join(filter(None, [note, checked])),
        }


def _of(matrix: Matrix, other: Matrix, models: Sequence[str]) -> tuple[Floats, Floats]:
    """Scores of these models on both sets."""
    at, at_other = ([side.models.index(name) for name in models] for side in (matrix, other))
    return matrix.scores[at], other.scores[at_other]


def _refusal(matrix: Matrix, other: Matrix, least: int) -> str:
    for side in (matrix, other):
        if len(side.items) < least or not side.scores.size:
            return (
                f"not estimable: {len(side.items)} items of {side.benchmark} that all models were "
                f"scored on, fewer than {least}"
            )
        if side.sign < 0 or side.scores.min() < 0 or side.scores.max() > 1:
            return f"not estimable: {side.metric} of {side.benchmark} is no share of right answers"
    return ""


def _empty(matrix: Matrix, other: Matrix | None, model: str, method: str, note: str) -> Row:
    figures = ("score", "score_reference", "expected", "gain", "gain_lo", "gain_hi", "p", "p_holm")
    return {
        "model": model,
        "benchmark": matrix.benchmark,
        "metric": matrix.metric,
        "reference_benchmark": other.benchmark if other else "",
        "method": method,
        "n": len(matrix.items),
        "n_reference": len(other.items) if other else 0,
        **dict.fromkeys(figures, _NAN),
        "note": note,
    }
