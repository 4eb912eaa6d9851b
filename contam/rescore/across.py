"""Put the scores of models over several benchmarks together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from contam.rescore.panel import Split
from contam.rescore.stats.board import figures, measured
from contam.rescore.stats.gain import LEAST
from contam.rescore.stats.ranking import borda, win_rate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contam.rescore import Floats, Row
    from contam.rescore.metrics import MainMetric
    from contam.rescore.panel import Flags
    from contam.rescore.rankings import Matrix


_LEAST: Final = 5
"""Models and benchmarks without which nothing is said of how differently these rank."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Across:
    """Scores of models over benchmarks under one policy, by the main metric of each.

    scores   "full" and "clean" -> float64[models, benchmarks], nan for a gap; higher is better
    note     why there is no clean side, "" when there is one;  left_out  why benchmarks are not in
    """

    models: tuple[str, ...]
    matrices: tuple[Matrix, ...]
    scores: dict[str, Floats]
    note: str
    left_out: tuple[str, ...]

    @classmethod
    def of(
        cls,
        matrices: Sequence[Matrix],
        flags: Flags,
        main: Mapping[str, MainMetric],
        least: int = LEAST,
    ) -> Across:
        """Of the matrices of all benchmarks; one with too few clean items ends the clean side."""
        chosen, left_out = _chosen(matrices, main)
        models = sorted(
            {series.model for each in matrices for series in (*each.series, *each.short)}
        )
        scores = {name: np.full((len(models), len(chosen)), np.nan) for name in ("full", "clean")}
        short = []
        for column, matrix in enumerate(chosen):
            clean = Split.of(flags.label[matrix.items]).clean
            n_clean = int(clean.sum())
            if n_clean < least:
                short.append(f"{n_clean} clean items of {matrix.benchmark}, fewer than {least}")
            for own, model in zip(matrix.scores, matrix.models, strict=True):
                place = models.index(model), column
                scores["full"][place] = own.mean() if len(clean) else np.nan
                scores["clean"][place] = own[clean].mean() if n_clean else np.nan
        if short:
            scores["clean"][:] = np.nan
        return cls(
            models=tuple(models),
            matrices=chosen,
            scores=scores,
            note=f"not estimable: {short[0]}" if short else "",
            left_out=left_out,
        )

    @property
    def setups(self) -> list[str]:
        """Which runs a benchmark is in by, where it was run under several set-ups."""
        return [f"{one.benchmark}: {one.notes[0]}" for one in self.matrices if one.setup]

    @property
    def metrics(self) -> str:
        """Which metric each benchmark is in by."""
        return "; ".join(
            f"{one.benchmark}: {one.metric}{'' if one.higher_is_better else ', lower is better'}"
            for one in self.matrices
        )

    @property
    def higher_is_better(self) -> bool | None:
        """Which way the mean counts, None where benchmarks count in different directions."""
        ways = {one.higher_is_better for one in self.matrices}
        return None if len(ways) > 1 else ways != {False}

    def in_own_units(self, table: Floats) -> Floats:
        """Scores as they were logged."""
        columns = (
            column if one.units.offset is None else one.units.offset - column
            for one, column in zip(self.matrices, table.T, strict=True)
        )
        return np.column_stack([*columns])


def _chosen(
    matrices: Sequence[Matrix], main: Mapping[str, MainMetric]
) -> tuple[tuple[Matrix, ...], tuple[str, ...]]:
    """The matrix of each benchmark, of its set-ups the one with most models; what is left out."""
    found: dict[str, Matrix] = {}
    left_out: dict[str, None] = {}
    for matrix in matrices:
        known = main[matrix.benchmark]
        if known.metric is None:
            left_out.setdefault(f"left out: {known.why}")
        elif matrix.metric == known.metric:
            other = found.setdefault(matrix.benchmark, matrix)
            if len(matrix.models) > len(other.models):
                found[matrix.benchmark] = matrix
    return tuple(found.values()), tuple(left_out)


def aggregate_rows(across: Across, policy: str) -> list[Row]:
    """Mean, win rate and Borda count of each model over the benchmarks, full and clean.

    A model without a score on a benchmark has a gap there: it enters no mean over all, and its win
    rate skips the gap. There is no mean of scores that count in different directions.
    """
    n = len(across.matrices)
    if n + len(across.left_out) <= 1:
        return []
    one_way = across.higher_is_better is not None
    general = [*across.left_out, *across.setups]
    if n <= 1:
        general.append("not estimable: one benchmark" if n else "not estimable")
    elif not one_way:
        general.append("benchmarks count in different directions: no mean")
    if across.note:
        general.insert(0, f"clean {across.note}")
    columns: dict[str, Floats] = {}
    for name, table in across.scores.items():
        nothing = np.full(len(across.models), np.nan)
        shown = n > 1 and (name == "full" or not across.note)
        means = across.in_own_units(table).mean(axis=1) if shown and one_way else nothing
        columns[f"mean_{name}"] = means
        columns[f"win_rate_{name}"] = win_rate(table) if shown else nothing
        columns[f"borda_{name}"] = borda(table) if shown else nothing
    rows = []
    for at, model in enumerate(across.models):
        gaps = int(np.isnan(across.scores["full"][at]).sum())
        without = [f"no score on {gaps} benchmark{'s' * (gaps > 1)}: no mean"] if gaps else []
        rows.append(
            {
                "policy": policy,
                "model": model,
                "n_benchmarks": n - gaps,
                **{name: float(values[at]) for name, values in columns.items()},
                "note": "; ".join([*without, *general]),
                "metrics": across.metrics,
                "higher_is_better": across.higher_is_better,
            }
        )
    return rows


def diversity_rows(across: Across, policy: str, *, seed: int = 0) -> list[Row]:
    """How differently the benchmarks rank the models, and how far that lets the order be moved.

    One row for all items and one for the clean ones, over the models with a score everywhere;
    none below five of these and five benchmarks.
    """
    rows: list[Row] = []
    whole = np.flatnonzero(~np.isnan(across.scores["full"]).any(axis=1)).tolist()
    models = [across.models[at] for at in whole]
    names = [matrix.benchmark for matrix in across.matrices]
    if min(len(names), len(models)) < _LEAST:
        return rows
    for name, scores in across.scores.items():
        note = across.note if name == "clean" else ""
        board = None if note else measured(scores[whole], seed=seed)
        weights, field = [], []
        if board and board.cardinal and board.cardinal.weights is not None:
            pairs = zip(names, board.cardinal.weights.tolist(), strict=True)
            weights = [f"{benchmark} {weight!r}" for benchmark, weight in pairs]
        if board and board.ordinal and board.ordinal.field is not None:
            field = [models[at] for at in board.ordinal.field.tolist()]
        elif board:
            note = f"ordinal sensitivity not estimable: a fifth of {len(models)} models is no two"
        rows.append(
            {
                "policy": policy,
                "items": name,
                "n_models": len(models),
                "n_benchmarks": len(names),
                **figures(board, "cardinal", "ordinal"),
                "cardinal_witness": ", ".join(weights),
                "ordinal_witness": ", ".join(field),
                "note": note,
            }
        )
    return rows
