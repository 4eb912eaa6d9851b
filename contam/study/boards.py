"""Study a board of many tasks: who leads by which aggregate, and how easily that order moves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from contam.errors import UsageError
from contam.rescore.stats import ranking
from contam.rescore.stats.board import LEAST_RANKED, measured
from contam.study.board_input import read_rescored, read_tables
from contam.study.model import (
    Bump,
    Finding,
    Refusal,
    Study,
    rows_of,
    table_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from contam.detect.given import Source
    from contam.rescore import Floats, Ints, Row
    from contam.rescore.run import Rescore
    from contam.rescore.stats.board import Board, Change
    from contam.study.board_input import Given

ALL: Final = "all"
CLEAN: Final = "clean"
AGGREGATES: Final = ("mean", "win_rate", "borda")
_DIGITS: Final = 12
_MOST_DRAWN: Final = 40

TABLES: Final[Mapping[str, Mapping[str, type]]] = {
    "models": {
        "model": str, "n_tasks": int,
        "mean": float, "rank_mean": float, "win_rate": float, "rank_win_rate": float,
        "borda": float, "rank_borda": float,
        "mean_clean": float, "rank_mean_clean": float, "win_rate_clean": float,
        "rank_win_rate_clean": float, "borda_clean": float, "rank_borda_clean": float,
    },
    "measures": {
        "items": str, "n_models": int, "n_tasks": int, "n_complete_models": int,
        "n_missing_cells": int,
        "diversity": float, "diversity_tie_corrected": float, "diversity_published": float,
        "mean_rank_change": float, "max_rank_change": float,
        "cardinal_distance": float, "cardinal_largest": float,
        "ordinal_distance": float, "ordinal_largest": float,
        "weak_models_distance": float, "weak_models_largest": float,
        "tau_mean_win_rate": float, "tau_mean_borda": float, "tau_win_rate_borda": float,
        "tau_mean_win_rate_benchbench": float,
    },
    "tasks": {
        "task": str, "n_scores": int, "lowest": float, "highest": float, "sd": float,
        "weight": float, "weight_clean": float, "tau_clean": float,
    },
    "field": {
        "items": str, "model": str, "in_top": bool, "in_field": bool,
        "rank_among_top": float, "rank_in_whole_field": float, "rank_in_field": float,
    },
    "changes": {
        "aggregate": str, "n_models": int, "n_moved": int,
        "tau": float, "distance": float, "spearman": float, "largest_rank_change": float,
    },
}  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class _Side:
    """One table of scores, what it measures, and each aggregate of its models.

    models  int64[], those that are measured: of each family the one that wins most often
    """

    name: str
    table: Floats
    models: Ints
    board: Board
    values: Mapping[str, Floats]

    def rank(self, aggregate: str) -> Floats:
        """Ranks of the models that have the aggregate, nan for the others."""
        values = self.values[aggregate]
        known = ~np.isnan(values)
        result = np.full(len(values), np.nan)
        # One model that has it is ahead of nobody.
        if known.sum() > 1:
            result[known] = ranking.ranks(values[known])
        return result


def board(
    scores: Source | None = None,
    *,
    clean: Source | None = None,
    rescored: str | Path | Rescore | None = None,
    policy: str = "",
    tasks: Sequence[str] = (),
    lower_is_better: Sequence[str] = (),
    higher_is_better: Sequence[str] = (),
    columns: Mapping[str, str] | None = None,
    seed: int = 0,
) -> Study:
    """How a board ranks its models, and how far irrelevant changes move that order.

    scores    a table with a row for each model and a column for each task, or with the columns
              model, task and score;  clean  the same on items that are not contaminated
    rescored  instead of both, what `contam rescore` found or the folder it was written to: the main
              metric of each benchmark;  policy  the one whose flags count, where it has several
    tasks     columns of tasks in `scores`, where it has others, too
    lower_is_better, higher_is_better  tasks of `scores` on which less, or more, is better; more is
              where nothing is said, and a name that sounds otherwise is refused

    Raises LogError and UsageError for input that is no board.
    """
    if (scores is None) == (rescored is None):
        raise UsageError("a board is read from `scores` or from `rescored`: give one of them")
    if scores is not None:
        if policy:
            raise UsageError("a table of scores has no policies")
        ways = {"lower": lower_is_better, "higher": higher_is_better}
        given = read_tables(scores, clean, tasks, columns, **ways)
    elif rescored is not None:
        if clean is not None or tasks or lower_is_better or higher_is_better or columns:
            raise UsageError("tasks, columns and clean scores of a re-scoring are its own")
        given = read_rescored(rescored, policy)
    sides = [_side(ALL, given.scores, given, seed)]
    if given.clean is not None:
        sides.append(_side(CLEAN, given.clean, given, seed))
    rows = {
        "models": _model_rows(given, sides),
        "measures": [_measure_row(side, given) for side in sides],
        "tasks": _task_rows(given, sides),
        "field": [row for side in sides for row in _field_rows(side, given)],
    }
    if len(sides) > 1:
        rows["changes"] = _change_rows(sides)
    parameters = {"policy": given.policy, "tasks": list(given.tasks), "seed": seed}
    return Study(
        name="board",
        finding=_finding(given, sides, rows.get("changes", ())),
        tables={name: table_of(own, TABLES[name]) for name, own in rows.items()},
        refusals=[*given.refusals, *(one for side in sides for one in _refused(side, given))],
        pictures=_pictures(given, sides, rows["field"]),
        columns=_shown(sides),
        run={
            "parameters": {
                **parameters,
                "lower_is_better": list(lower_is_better),
                "higher_is_better": list(higher_is_better),
            },
            "inputs": list(given.sources),
            "notes": list(given.notes),
            "coverage": given.coverage,
        },
    )


def _shown(sides: Sequence[_Side]) -> tuple[str, ...]:
    """The model, and what stands for it by each aggregate that there is."""
    ends = ["", "_clean"][: len(sides)]
    names = [name for name in AGGREGATES if not np.isnan(sides[0].values[name]).all()]
    first = [f"{names[0]}{end}" for end in ends]
    return ("model", *first, *(f"rank_{name}{end}" for name in names for end in ends))


def _side(name: str, table: Floats, given: Given, seed: int) -> _Side:
    gaps = np.isnan(table).any(axis=1)
    aggregates = {
        # Equal means must tie whatever rounding left of them.
        "mean": np.where(bool(given.no_mean), np.nan, table.mean(axis=1).round(_DIGITS)),
        "win_rate": ranking.win_rate(table),
        # A task without a score adds nothing: a model with gaps would only seem worse.
        "borda": np.where(gaps, np.nan, ranking.borda(table).round(_DIGITS)),
    }
    best = np.argsort(-aggregates["win_rate"], kind="stable")
    models = np.sort(best[np.unique(given.family[best], return_index=True)[1]])
    board = measured(table, models, seed=seed, cardinal=not given.no_mean)
    return _Side(name, table, models, board, aggregates)


def _refused(side: _Side, given: Given) -> list[Refusal]:
    board, reasons = side.board, {}
    n, whole = len(side.models), len(board.whole)
    gaps = int(np.isnan(side.table).any(axis=1).sum())
    if given.no_mean:
        reasons["mean and cardinal sensitivity"] = given.no_mean
    elif board.cardinal is None:
        reasons["cardinal sensitivity"] = (
            f"two models with a score on every task are needed, and there are {whole}"
        )
    if board.diversity is None:
        reasons["diversity"] = (
            f"{whole} models with a score on every one of {len(given.tasks)} tasks;"
            f" {LEAST_RANKED} of each are needed"
        )
    if gaps:
        reasons["mean and Borda count of models with gaps"] = (
            f"{gaps} of {len(given.models)} models lack a score on some task; win rates skip the"
            " gaps"
        )
    if board.ordinal is None:
        reasons["ordinal sensitivity"] = f"{n} models; it needs 10, so that a fifth is two"
    return [Refusal(f"{what}, {side.name} items", reason) for what, reason in reasons.items()]


def _model_rows(given: Given, sides: Sequence[_Side]) -> list[Row]:
    nothing = np.full(len(given.models), np.nan)
    columns = {
        **dict.fromkeys(TABLES["models"], nothing),
        "n_tasks": (~np.isnan(given.scores)).sum(axis=1),
    }
    for side, end in zip(sides, ("", "_clean"), strict=False):
        for name in AGGREGATES:
            # Scores that all count downwards were negated; their mean is shown as it was given.
            own = -1 if name == "mean" and given.down.all() else 1
            columns[f"{name}{end}"] = own * side.values[name]
            columns[f"rank_{name}{end}"] = side.rank(name)
    rows = rows_of({**columns, "model": given.models})
    return sorted(rows, key=lambda row: (row["rank_win_rate"], row["model"]))


def _measure_row(side: _Side, given: Given) -> Row:
    values = side.values
    printed = ranking.published_win_rate(ranking.win_shares(side.table))
    return {
        "items": side.name,
        "n_models": len(given.models),
        "n_tasks": len(given.tasks),
        "n_complete_models": len(side.board.whole),
        "n_missing_cells": int(np.isnan(side.table).sum()),
        **_measures(side.board),
        "tau_mean_win_rate": _tau(values["mean"], values["win_rate"]),
        "tau_mean_borda": _tau(values["mean"], values["borda"]),
        "tau_win_rate_borda": _tau(values["win_rate"], values["borda"]),
        "tau_mean_win_rate_benchbench": _tau(values["mean"], printed),
    }


def _measures(board: Board) -> dict[str, float]:
    """Diversity and changes of the order, nan for what is not known."""
    own = board.diversity
    figures = own and (own.exact, own.tie_corrected, own.published, own.mean_change, own.max_change)
    found = dict(zip(_DIVERSITY, figures or [np.nan] * len(_DIVERSITY), strict=True))
    for name in ("cardinal", "ordinal", "weak_models"):
        change = board.changes.get(name)
        found[f"{name}_distance"] = change.distance if change else np.nan
        found[f"{name}_largest"] = change.largest if change else np.nan
    return found


_DIVERSITY: Final = (
    *("diversity", "diversity_tie_corrected", "diversity_published"),
    *("mean_rank_change", "max_rank_change"),
)


def _tau(first: Floats, second: Floats) -> float:
    """Kendall's tau-b over the models that have both."""
    both = ~np.isnan(first) & ~np.isnan(second)
    return float(ranking.kendall(first[both], second[both][None])[0]) if both.any() else np.nan


def _task_rows(given: Given, sides: Sequence[_Side]) -> list[Row]:
    rows = []
    for at, task in enumerate(given.tasks):
        scores = given.scores[:, at] * (-1 if given.down[at] else 1)
        known = scores[~np.isnan(scores)]
        row: Row = {
            "task": task,
            "n_scores": len(known),
            "lowest": float(known.min()),
            "highest": float(known.max()),
            "sd": float(known.std(ddof=1)) if len(known) > 1 else np.nan,
            "weight_clean": np.nan,
            "tau_clean": _tau(*(side.table[:, at] for side in sides)) if len(sides) > 1 else np.nan,
        }
        for side, end in zip(sides, ("", "_clean"), strict=False):
            found = side.board.cardinal
            weights = None if found is None else found.weights
            row[f"weight{end}"] = np.nan if weights is None else float(weights[at])
        rows.append(row)
    return rows


def _field_rows(side: _Side, given: Given) -> list[Row]:
    """The ordinal witness: who is in the field, and how it ranks the top."""
    board, everyone = side.board, np.arange(len(given.models))
    if board.ordinal is None or board.ordinal.field is None:
        return []
    shares, top = ranking.win_shares(side.table), board.top
    places: dict[str, Floats] = {}
    fields = (top, side.models, board.ordinal.field)
    for name, field in zip(_RANKS_OF_TOP, fields, strict=True):
        rates, places[name] = np.full((2, len(everyone)), np.nan)
        rates[field] = ranking.published_win_rate(shares[np.ix_(field, field)])
        places[name][top] = ranking.ranks(rates[top].round(_DIGITS))
    return rows_of(
        {
            "items": [side.name] * len(everyone),
            "model": given.models,
            "in_top": np.isin(everyone, top),
            "in_field": np.isin(everyone, board.ordinal.field),
            **places,
        }
    )


_RANKS_OF_TOP: Final = ("rank_among_top", "rank_in_whole_field", "rank_in_field")


def _change_rows(sides: Sequence[_Side]) -> list[Row]:
    """What each aggregate's order loses when the flagged items go."""
    rows = []
    for name in AGGREGATES:
        both = ~np.isnan([side.values[name] for side in sides]).any(axis=0)
        first, second = (side.values[name][both] for side in sides)
        found = ranking.agreement(first, second)
        rows.append(
            {
                "aggregate": name,
                "n_models": len(first),
                "n_moved": int((np.abs(ranking.ranks(first) - ranking.ranks(second)) >= 1).sum()),
                "tau": found.tau,
                "distance": found.distance,
                "spearman": found.rho,
                "largest_rank_change": found.largest,
            }
        )
    return rows


def _finding(given: Given, sides: Sequence[_Side], changes: Sequence[Row]) -> Finding:
    side = sides[0]
    board, n, changes_of = side.board, len(side.models), side.board.changes
    by = "win_rate" if np.isnan(side.values["mean"]).any() else "mean"
    values = side.values[by]
    leaders = [given.models[at] for at in np.flatnonzero(values == values.max())]
    lead = (
        f"{leaders[0]} leads" if len(leaders) == 1 else f"{len(leaders)} models share the lead of"
    )
    parts = [
        f"{lead} {len(given.models)} models on {len(given.tasks)} tasks by {by.replace('_', ' ')}."
    ]
    if board.diversity is not None:
        share = board.diversity.exact
        parts.append(f"The tasks' diversity is {share:.2f} (0: all rank alike, 1: none do).")
    if "cardinal" in changes_of:
        moved = _places(changes_of["cardinal"], len(board.whole))
        parts.append(f"Task weights that should not matter move a model by up to {moved}.")
    if "weak_models" in changes_of:
        n_top = len(board.top)
        moved = _places(changes_of["weak_models"], n_top)
        parts.append(
            f"The {n - n_top} models below the top {n_top} move one of these by up to {moved}."
        )
    parts += [
        f"On clean items {row['n_moved']} of {row['n_models']} models change their rank by"
        f" {by.replace('_', ' ')} (Kendall's tau {row['tau']:.2f})."
        for row in changes
        if row["aggregate"] == by and not np.isnan(row["tau"])
    ]
    return Finding(
        found=" ".join(parts),
        sure=(
            "Ranks, diversity and the effect of weak models are exact for these scores. The"
            " sensitivities are what a search found, checked again: lower bounds. The"
            " uncertainty of each score is not counted."
        ),
        change="Other tasks, other models in the field, or scores with standard errors.",
    )


def _places(change: Change, n: int) -> str:
    """The largest change of rank of n models."""
    return f"{round(change.largest * (n - 1))} of {n - 1} places"


def _pictures(given: Given, sides: Sequence[_Side], field: Sequence[Row]) -> list[Bump]:
    rankings = {
        f"{name.replace('_', ' ')}{'' if side.name == ALL else ', clean'}": side.rank(name)
        for name in AGGREGATES
        for side in sides
    }
    order = np.argsort(rankings["win rate"], kind="stable")[:_MOST_DRAWN].tolist()
    shown = {name: place for name, place in rankings.items() if not np.isnan(place[order]).any()}
    more = len(given.models) - len(order)
    pictures = [
        Bump(
            name="ranks",
            caption="Rank by each aggregate" + (f", the first {len(order)}" if more else ""),
            rankings=list(shown),
            ranks={given.models[at]: [float(own[at]) for own in shown.values()] for at in order},
        )
    ]
    if rows := [row for row in field if row["in_top"] and row["items"] == ALL][:_MOST_DRAWN]:
        pictures.append(
            Bump(
                name="weak-models",
                caption=f"The order of the top {len(rows)} by win rate, in three fields",
                rankings=["among themselves", "all models", "field found"],
                ranks={row["model"]: [row[name] for name in _RANKS_OF_TOP] for row in rows},
            )
        )
    return pictures
