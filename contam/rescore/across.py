"""Make the tables across benchmarks: means, win rates, Borda counts, sensitivity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contam.rescore.panel import Split
from contam.rescore.stats.board import measured
from contam.rescore.stats.gain import LEAST
from contam.rescore.stats.ranking import borda, win_rate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from contam.rescore.lineup import Matrix
    from contam.rescore.main_metric import MainMetric
    from contam.rescore.panel import Flags

    Row = dict[str, Any]
    Floats = NDArray[np.float64]

_NAN: Final = float("nan")
_TWO: Final = 2
_LEAST_MODELS: Final = 3
_SIDES: Final = ("full", "clean")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Across:
    """Scores of models over benchmarks under one policy, by the main metric of each.

    scores   "full" and "clean" -> float64[models, benchmarks], nan for a gap; higher is better
    offsets  float64[benchmarks], what the scores of a metric that counts downwards were taken from,
             nan where they are as logged
    metrics  which metric each benchmark is in by, in words
    note     why there is no clean side, "" when there is one;  left_out  why benchmarks are not in
    setups   which runs a benchmark is in by, where it was run under several set-ups
    """

    models: tuple[str, ...]
    benchmarks: tuple[str, ...]
    scores: dict[str, Floats]
    offsets: Floats
    metrics: str
    note: str
    left_out: tuple[str, ...]
    setups: tuple[str, ...]

    @classmethod
    def of(
        cls,
        matrices: Sequence[Matrix],
        flags: Flags,
        main: Mapping[str, MainMetric],
        offsets: Mapping[tuple[str, str], float],
        least: int = LEAST,
    ) -> Across:
        """Of the matrices of all benchmarks; one with too few clean items ends the clean side."""
        chosen, left_out = _chosen(matrices, main)
        setups = [
            f"{matrix.benchmark}: {matrix.notes[0]}" for matrix in chosen.values() if matrix.setup
        ]
        models = sorted(
            {series.model for each in matrices for series in (*each.series, *each.short)}
        )
        scores = {name: np.full((len(models), len(chosen)), _NAN) for name in _SIDES}
        short = []
        for column, matrix in enumerate(chosen.values()):
            clean = Split.of(flags.label[matrix.items]).clean
            n_clean = int(clean.sum())
            if n_clean < least:
                short.append(f"{n_clean} clean items of {matrix.benchmark}, fewer than {least}")
            for at, model in enumerate(matrix.models):
                place = models.index(model)
                scores["full"][place, column] = matrix.scores[at].mean() if len(clean) else _NAN
                scores["clean"][place, column] = (
                    matrix.scores[at, clean].mean() if n_clean else _NAN
                )
        if short:
            scores["clean"][:] = _NAN
        keys = [(matrix.benchmark, matrix.metric) for matrix in chosen.values()]
        return cls(
            models=tuple(models),
            benchmarks=tuple(chosen),
            scores=scores,
            offsets=np.array([offsets.get(key, _NAN) for key in keys], np.float64),
            metrics="; ".join(
                f"{benchmark}: {metric}{', lower is better' * ((benchmark, metric) in offsets)}"
                for benchmark, metric in keys
            ),
            note=f"not estimable: {short[0]}" if short else "",
            left_out=left_out,
            setups=tuple(setups),
        )

    @property
    def higher_is_better(self) -> bool | None:
        """Which way the mean counts, None where benchmarks count in different directions."""
        lower = ~np.isnan(self.offsets)
        return None if lower.any() and not lower.all() else not lower.any()

    def in_own_units(self, table: Floats) -> Floats:
        """Scores as they were logged."""
        lower = ~np.isnan(self.offsets)
        return np.where(lower, np.where(lower, self.offsets, 0.0) - table, table)


def _chosen(
    matrices: Sequence[Matrix], main: Mapping[str, MainMetric]
) -> tuple[dict[str, Matrix], tuple[str, ...]]:
    """The matrix of each benchmark, of its set-ups the one with most models; what is left out."""
    found: dict[str, Matrix] = {}
    left_out: dict[str, None] = {}
    for matrice in matrices:
        known = main[matrice.benchmark]
        if known.metric is None:
            left_out.setdefault(f"left out: {known.why}")
            continue
        if matrice.metric != known.metric:
            continue
        other = found.get(matrice.benchmark)
        if other is None or len(matrice.models) > len(other.models):
            found[matrice.benchmark] = matrice
    return found, tuple(left_out)


def aggregate_rows(across: Across, policy: str) -> list[Row]:
    """Mean, win rate and Borda count of each model over the benchmarks, full and clean.

    A model without a score on a benchmark has a gap there: it enters no mean over all, and its win
    rate skips the gap. There is no mean of scores that count in different directions.
    """
    if len(across.benchmarks) + len(across.left_out) < _TWO:
        return []
    rows = []
    figures = {}
    enough = len(across.benchmarks) >= _TWO
    one_way = across.higher_is_better is not None
    for name, table in across.scores.items():
        nothing = np.full(len(across.models), _NAN)
        shown = enough and (name == "full" or not across.note)
        figures[name] = (
            across.in_own_units(table).mean(axis=1) if shown and one_way else nothing,
            win_rate(table) if shown else nothing,
            borda(table) if shown else nothing,
        )
    general = [*across.left_out, *across.setups]
    if not enough:
        general.append("not estimable: one benchmark" if across.benchmarks else "not estimable")
    elif not one_way:
        general.append("benchmarks count in different directions: no mean")
    for at, model in enumerate(across.models):
        gaps = int(np.isnan(across.scores["full"][at]).sum())
        row: Row = {
            "policy": policy,
            "model": model,
            "n_benchmarks": len(across.benchmarks) - gaps,
        }
        for name, (mean, wins, points) in figures.items():
            row[f"mean_{name}"] = float(mean[at])
            row[f"win_rate_{name}"] = float(wins[at])
            row[f"borda_{name}"] = float(points[at])
        notes = [f"no score on {gaps} benchmark{'s' * (gaps > 1)}: no mean"] if gaps else []
        notes += [*([f"clean {across.note}"] if across.note else []), *general]
        row["note"] = "; ".join(notes)
        row["metrics"], row["higher_is_better"] = across.metrics, across.higher_is_better
        rows.append(row)
    return rows


def diversity_rows(across: Across, policy: str, *, seed: int = 0) -> list[Row]:
    """How differently the benchmarks rank the models, and how far that lets the order be moved.

    One row for all items and one for the clean ones, over the models with a score everywhere.
    """
    rows = []
    whole = np.flatnonzero(~np.isnan(across.scores["full"]).any(axis=1)).tolist()
    models = [across.models[at] for at in whole]
    for name, scores in across.scores.items():
        table = scores[whole]
        row: Row = {
            "policy": policy,
            "items": name,
            "n_models": len(models),
            "n_benchmarks": len(across.benchmarks),
        }
        reason = across.note if name == "clean" else ""
        if len(across.benchmarks) < _TWO:
            reason = "; ".join(["not estimable: one benchmark", *across.left_out, *across.setups])
        elif len(models) < _LEAST_MODELS:
            reason = (
                f"not estimable: {len(models)} models with a score on every benchmark, "
                f"fewer than {_LEAST_MODELS}"
            )
        rows.append(row | _diversity_row(table, models, across.benchmarks, reason, seed))
    return rows


def _diversity_row(
    table: Floats, models: Sequence[str], benchmarks: Sequence[str], reason: str, seed: int
) -> Row:
    row: Row = dict.fromkeys(
        (
            *("diversity", "diversity_tie_corrected", "diversity_published"),
            *("mean_rank_change", "max_rank_change"),
            *("cardinal_distance", "cardinal_largest", "ordinal_distance", "ordinal_largest"),
        ),
        _NAN,
    )
    row |= {"cardinal_witness": "", "ordinal_witness": "", "note": reason}
    if reason:
        return row
    board = measured(table, seed=seed)
    if (found := board.diversity) is not None:
        row["diversity"], row["diversity_tie_corrected"] = found.exact, found.tie_corrected
        row["diversity_published"] = found.published
        row["mean_rank_change"], row["max_rank_change"] = found.mean_change, found.max_change
    if board.cardinal is not None and board.cardinal.weights is not None:
        row["cardinal_distance"] = board.cardinal.change.distance
        row["cardinal_largest"] = board.cardinal.change.largest
        pairs = zip(benchmarks, board.cardinal.weights.tolist(), strict=True)
        row["cardinal_witness"] = ", ".join(f"{name} {weight!r}" for name, weight in pairs)
    if board.ordinal is None or board.ordinal.field is None:
        row["note"] = (
            f"ordinal sensitivity not estimable: a fifth of {len(models)} models is no two"
        )
        return row
    row["ordinal_distance"] = board.ordinal.change.distance
    row["ordinal_largest"] = board.ordinal.change.largest
    row["ordinal_witness"] = ", ".join(models[at] for at in board.ordinal.field.tolist())
    return row
