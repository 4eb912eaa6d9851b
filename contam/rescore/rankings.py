"""Make the tables across models of one benchmark: ranks and pairs, full and clean."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contam.rescore.lineup import judged_items, rows_at
from contam.rescore.panel import Split
from contam.rescore.stats.clusters import several
from contam.rescore.stats.dealing import most_draws
from contam.rescore.stats.gain import LEAST, too_few
from contam.rescore.stats.ranking import (
    agreement,
    detectable,
    pairwise,
    random_deletion,
    rank_intervals,
    ranks,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from contam.rescore.lineup import Matrix
    from contam.rescore.panel import Flags, Series
    from contam.rescore.stats.ranking import Pairwise

    Row = dict[str, Any]

_NAN: Final = float("nan")
_LEAST_MODELS: Final = 2
_SURE: Final = 0.05
_DIGITS: Final = 12
_SIDES: Final = ("full", "clean")
_ACROSS_MODELS: Final = (
    *("kendall_tau", "spearman", "largest_rank_change"),
    *("deletion_tau_median", "deletion_p"),
)


def ranking_rows(
    matrix: Matrix,
    flags: Flags,
    *,
    least: int = LEAST,
    draws: int = 1_000,
    family: int = 1,
    seed: int = 0,
) -> tuple[list[Row], list[Row]]:
    """One row per model, and one per pair of models, of one matrix under one policy.

    A higher score is better. Short runs have a row without a rank.

    draws  of random deletions at first; family  how many benchmarks are tested together
    """
    split = Split.of(flags.label[matrix.items])
    n_clean = int(split.clean.sum())
    m = len(matrix.models)
    note = "; ".join(matrix.notes)
    head = {
        "benchmark": matrix.benchmark,
        "metric": matrix.metric,
        "setup": matrix.setup,
        "policy": flags.policy,
    }
    full = _means(matrix.scores)
    clean = _means(matrix.scores[:, split.clean])
    reason = _refusal(m, n_clean, least)
    if reason:
        note = f"{note}; {reason}" if note else reason
    tests = None if reason else _tests(matrix, flags, split)
    rows: list[Row] = []
    both = agreement(full, clean) if not reason else None
    deletion = (
        random_deletion(
            matrix.scores,
            ~split.clean,
            draws=draws,
            most=most_draws(family),
            seed=seed,
            cluster=several(flags.cluster[matrix.items]),
        )
        if tests
        else None
    )
    if deletion and np.isnan(deletion.p) and not np.isnan(deletion.tau):
        unmoved = "no deletion p: swapping clusters of one size changes nothing"
        note = f"{note}; {unmoved}" if note else unmoved
    places = [ranks(full), ranks(clean) if n_clean else np.full(m, _NAN)]
    spans = [rank_intervals(test) for test in tests] if tests else None
    for at, model in enumerate(matrix.models):
        row: Row = {
            **head,
            "model": model,
            "n": len(matrix.items),
            "n_clean": n_clean,
            "full": full[at],
            "clean": clean[at],
            "rank_full": places[0][at],
            "rank_clean": _NAN if reason else places[1][at],
        }
        for side, name in enumerate(_SIDES):
            low, high = spans[side][at] if spans else (_NAN, _NAN)
            row[f"rank_{name}_lo"], row[f"rank_{name}_hi"] = float(low), float(high)
        row["deletion_sd"] = float(deletion.moved[at]) if deletion else _NAN
        row["kendall_tau"] = both.tau if both else _NAN
        row["spearman"] = both.rho if both else _NAN
        row["largest_rank_change"] = both.largest if both else _NAN
        row["deletion_tau_median"] = deletion.tau_median if deletion else _NAN
        row["deletion_p"] = deletion.p if deletion else _NAN
        row["note"] = note
        rows.append(row)
    for series, why in zip(matrix.short, matrix.why, strict=True):
        rows.append({**head, **_unranked(series, flags), "note": why})
    return rows, _pair_rows(head, matrix, tests, split, note) if tests else []


def _means(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    if scores.shape[1] == 0:
        return np.full(len(scores), _NAN)
    # Sums over another number of items round differently: equal models must tie.
    result: NDArray[np.float64] = scores.mean(axis=1).round(_DIGITS)
    return result


def _refusal(m: int, n_clean: int, least: int) -> str:
    if m < _LEAST_MODELS:
        return "not estimable: one model has no ranking"
    reason = too_few(n_clean, "clean", least)
    return f"not estimable: {reason}" if reason else ""


def _unranked(series: Series, flags: Flags) -> Row:
    """A short run by itself: its scores on its own items."""
    items = judged_items(series)
    (scores,) = rows_at([series], items)
    clean = Split.of(flags.label[items]).clean
    spans = (f"rank_{side}{end}" for side in _SIDES for end in ("", "_lo", "_hi"))
    return {
        "model": series.model,
        "n": len(items),
        "n_clean": int(clean.sum()),
        "full": _means(scores[None])[0],
        "clean": _means(scores[None, clean])[0],
        **dict.fromkeys((*spans, "deletion_sd", *_ACROSS_MODELS), _NAN),
    }


def _tests(matrix: Matrix, flags: Flags, split: Split) -> tuple[Pairwise, Pairwise]:
    cluster = flags.cluster[matrix.items]

    def over(mask: NDArray[np.bool_]) -> Pairwise:
        return pairwise(matrix.scores[:, mask], several(cluster[mask]))

    return over(np.ones(len(cluster), np.bool_)), over(split.clean)


def _pair_rows(
    head: Row, matrix: Matrix, tests: tuple[Pairwise, Pairwise], split: Split, note: str
) -> list[Row]:
    """A row for each pair, the better model on all items first."""
    rows = []
    n_clean = int(split.clean.sum())
    order = np.argsort(-_means(matrix.scores), kind="stable")
    for place, a in enumerate(order.tolist()):
        for b in order[place + 1 :].tolist():
            row: Row = {
                **head,
                "first": matrix.models[a],
                "second": matrix.models[b],
                "n": len(matrix.items),
                "n_clean": n_clean,
            }
            for name, test in zip(_SIDES, tests, strict=True):
                row[f"difference_{name}"] = float(test.difference[a, b])
                row[f"error_{name}"] = float(test.error[a, b])
                row[f"p_{name}"] = float(test.p[a, b])
                row[f"p_{name}_holm"] = float(test.adjusted[a, b])
                row[f"mcnemar_{name}"] = float(test.mcnemar_p[a, b])
                row[f"mcnemar_{name}_holm"] = float(test.mcnemar_adjusted[a, b])
                leads = row[f"p_{name}_holm"] < _SURE and row[f"difference_{name}"] > 0
                row[f"lead_{name}"] = bool(leads)
            # The variance of one item that gives the clustered error of all of them.
            spread = n_clean * float(tests[1].error[a, b]) ** 2
            row["detectable_clean"] = detectable(n_clean, spread)
            row["note"] = note
            rows.append(row)
    return rows
