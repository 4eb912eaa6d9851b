"""Study a board of many tasks: who leads by which aggregate, and how easily that order moves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contam.errors import InternalError
from contam.rescore.stats.board import measured
from contam.rescore.stats.ranking import (
    agreement,
    borda,
    kendall,
    published_win_rate,
    ranks,
    win_rate,
    win_shares,
)
from contam.rescore.stats.sensitivity import in_field, reweighed
from contam.study.board_input import read_board
from contam.study.model import Bump, Chart, Finding, Panel, Points, Refusal, Study, table_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from contam.detect.given import Source
    from contam.rescore.run import Rescore
    from contam.rescore.stats.board import Board
    from contam.study.board_input import Given

    Row = dict[str, Any]
    Floats = NDArray[np.float64]

ALL: Final = "all"
CLEAN: Final = "clean"
AGGREGATES: Final = ("mean", "win_rate", "borda")
PUBLISHED: Final[Mapping[str, Mapping[str, tuple[float, float]]]] = {
    "cardinal": {
        "GLUE": (0.1585, 0.121),
        "SuperGLUE": (0.1339, 0.111),
        "OpenLLM": (0.8161, 0.462),
        "MMLU": (0.5330, 0.343),
        "BIG-Bench Hard": (0.3229, 0.245),
    },
    "ordinal": {
        "HELM accuracy": (0.2670, 0.321),
        "HELM calibration": (0.7601, 0.590),
        "HELM fairness": (0.3032, 0.179),
        "HELM summarization": (0.8548, 0.348),
    },
}
"""Diversity and sensitivity that BenchBench finds on public boards (Zhang and Hardt 2024)."""

_NAN: Final = float("nan")
_DIGITS: Final = 12
_MOST_DRAWN: Final = 40

_MODELS: Final[Mapping[str, type]] = {
    "model": str,
    "n_tasks": int,
    **{
        f"{prefix}{name}{side}": float
        for side in ("", "_clean")
        for name in AGGREGATES
        for prefix in ("", "rank_")
    },
}
_MEASURES: Final[Mapping[str, type]] = {
    "items": str,
    **dict.fromkeys(("n_models", "n_tasks", "n_complete_models", "n_missing_cells"), int),
    **dict.fromkeys(
        (
            *("diversity_exact", "diversity_tie_corrected", "diversity_benchbench"),
            *("mean_largest_rank_change", "largest_rank_change"),
            *("cardinal_distance", "cardinal_largest", "ordinal_distance", "ordinal_largest"),
            *("weak_models_distance", "weak_models_largest"),
            *("tau_mean_win_rate", "tau_mean_borda", "tau_win_rate_borda"),
            "tau_mean_win_rate_benchbench",
        ),
        float,
    ),
}
_TASKS: Final[Mapping[str, type]] = {
    "task": str,
    "n_scores": int,
    **dict.fromkeys(("lowest", "highest", "sd", "weight", "weight_clean", "tau_clean"), float),
}
_FIELD: Final[Mapping[str, type]] = {
    "items": str,
    "model": str,
    "in_top": bool,
    "in_field": bool,
    **dict.fromkeys(("rank_among_top", "rank_in_whole_field", "rank_in_field"), float),
}
_CHANGES: Final[Mapping[str, type]] = {
    "aggregate": str,
    "n_models": int,
    "n_moved": int,
    **dict.fromkeys(("tau", "distance", "spearman", "largest_rank_change"), float),
}


@dataclass(frozen=True, slots=True, eq=False)
class _Side:
    """One table of scores, what it measures, and each aggregate of its models."""

    name: str
    table: Floats
    board: Board
    values: Mapping[str, Floats]

    def rank(self, aggregate: str) -> Floats:
        """Ranks of the models that have the aggregate, nan for the others."""
        values = self.values[aggregate]
        known = ~np.isnan(values)
        result = np.full(len(values), _NAN)
        # One model that has it is ahead of nobody.
        if known.sum() > 1:
            result[known] = ranks(values[known])
        return result


def board(  # noqa: PLR0913 - the options of a study, all but one by name
    scores: Source | None = None,
    *,
    clean: Source | None = None,
    rescored: str | Path | Rescore | None = None,
    policy: str = "",
    tasks: Sequence[str] = (),
    lower_is_better: Sequence[str] = (),
    columns: Mapping[str, str] | None = None,
    seed: int = 0,
) -> Study:
    """How a board ranks its models, and how far irrelevant changes move that order.

    scores    a table with a row for each model and a column for each task, or with the columns
              model, task and score;  clean  the same on items that are not contaminated
    rescored  instead of both, what `contam rescore` found or the folder it was written to: the main
              metric of each benchmark;  policy  the one whose flags count, where it has several
    tasks     columns of tasks in `scores`, where it has others, too
    lower_is_better  tasks of `scores` on which less is better

    Raises LogError and UsageError for input that is no board.
    """
    given = read_board(
        scores,
        clean=clean,
        rescored=rescored,
        policy=policy,
        tasks=tasks,
        lower_is_better=lower_is_better,
        columns=columns,
    )
    refusals = list(given.refusals)
    sides = [_side(ALL, given.scores, given, seed)]
    if given.clean is not None:
        sides.append(_side(CLEAN, given.clean, given, seed))
    for side in sides:
        refusals += _refused(side, given)
    tables = {
        "models": table_of(_model_rows(given, sides), _MODELS),
        "measures": table_of((_measure_row(side, given) for side in sides), _MEASURES),
        "tasks": table_of(_task_rows(given, sides), _TASKS),
        "field": table_of((row for side in sides for row in _field_rows(side, given)), _FIELD),
    }
    changes = _change_rows(sides)
    if changes:
        tables["changes"] = table_of(changes, _CHANGES)
    return Study(
        name="board",
        finding=_finding(given, sides, changes),
        tables=tables,
        refusals=refusals,
        pictures=_pictures(given, sides),
        columns=_shown(sides),
        run={
            "parameters": {
                "policy": given.policy,
                "tasks": list(given.tasks),
                "lower_is_better": list(lower_is_better),
                "seed": seed,
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
    board = measured(table, seed=seed, cardinal=not given.no_mean)
    nothing = np.full(len(table), _NAN)
    side = _Side(
        name,
        table,
        board,
        {
            # Equal means must tie whatever rounding left of them.
            "mean": nothing if given.no_mean else table.mean(axis=1).round(_DIGITS),
            "win_rate": win_rate(table),
            # A task without a score adds nothing: a model with gaps would only seem worse.
            "borda": np.where(np.isnan(table).any(axis=1), _NAN, borda(table).round(_DIGITS)),
        },
    )
    _check_again(side)
    return side


def _check_again(side: _Side) -> None:
    """Apply the witnesses as written: a search that misreports one would be a wrong figure."""
    board = side.board
    if board.cardinal is not None and board.cardinal.weights is not None:
        again = reweighed(side.table[board.whole], np.array(board.cardinal.weights.tolist()))
        if again != board.cardinal.change:
            raise InternalError("the weights found do not move the order as they did")
    if board.ordinal is not None and board.ordinal.field is not None:
        again = in_field(win_shares(side.table), board.top, board.ordinal.field)
        if again != board.ordinal.change:
            raise InternalError("the field found does not move the order as it did")


def _refused(side: _Side, given: Given) -> list[Refusal]:
    found = []
    board = side.board
    n, whole = len(given.models), len(board.whole)
    if given.no_mean:
        found.append(Refusal(f"mean and cardinal sensitivity, {side.name} items", given.no_mean))
    elif board.cardinal is None:
        reason = f"two models with a score on every task are needed, and there are {whole}"
        found.append(Refusal(f"diversity and cardinal sensitivity, {side.name} items", reason))
    if whole < n:
        reason = f"{n - whole} of {n} models lack a score on some task; win rates skip the gaps"
        found.append(
            Refusal(f"mean and Borda count of models with gaps, {side.name} items", reason)
        )
    if board.ordinal is None:
        reason = f"a fifth of {n} models is no two"
        found.append(Refusal(f"ordinal sensitivity, {side.name} items", reason))
    return found


def _model_rows(given: Given, sides: Sequence[_Side]) -> list[Row]:
    rows = []
    places = [{name: side.rank(name) for name in AGGREGATES} for side in sides]
    for at, model in enumerate(given.models):
        row: Row = dict.fromkeys(_MODELS, _NAN)
        row["model"] = model
        row["n_tasks"] = int(np.count_nonzero(~np.isnan(given.scores[at])))
        for side, place in zip(sides, places, strict=True):
            end = "" if side.name == ALL else "_clean"
            for name in AGGREGATES:
                # Scores that all count downwards were negated; their mean is shown as it was given.
                own = -1 if name == "mean" and given.down.all() else 1
                row[f"{name}{end}"] = own * float(side.values[name][at])
                row[f"rank_{name}{end}"] = float(place[name][at])
        rows.append(row)
    return sorted(rows, key=lambda row: (row["rank_win_rate"], row["model"]))


def _measure_row(side: _Side, given: Given) -> Row:
    board, values = side.board, side.values
    row: Row = dict.fromkeys(_MEASURES, _NAN)
    row |= {
        "items": side.name,
        "n_models": len(given.models),
        "n_tasks": len(given.tasks),
        "n_complete_models": len(board.whole),
        "n_missing_cells": int(np.isnan(side.table).sum()),
    }
    if (found := board.diversity) is not None:
        row["diversity_exact"] = found.exact
        row["diversity_tie_corrected"] = found.tie_corrected
        row["diversity_benchbench"] = found.published
        row["mean_largest_rank_change"] = found.mean_change
        row["largest_rank_change"] = found.max_change
    for name, change in (
        ("cardinal", None if board.cardinal is None else board.cardinal.change),
        ("ordinal", None if board.ordinal is None else board.ordinal.change),
        ("weak_models", board.weak_models),
    ):
        if change is not None:
            row[f"{name}_distance"], row[f"{name}_largest"] = change.distance, change.largest
    printed = {**values, "win_rate_benchbench": published_win_rate(win_shares(side.table))}
    for first, second in (
        ("mean", "win_rate"),
        ("mean", "borda"),
        ("win_rate", "borda"),
        ("mean", "win_rate_benchbench"),
    ):
        row[f"tau_{first}_{second}"] = _tau(printed[first], printed[second])
    return row


def _tau(first: Floats, second: Floats) -> float:
    """Kendall's tau-b over the models that have both."""
    both = ~np.isnan(first) & ~np.isnan(second)
    return float(kendall(first[both], second[both][None])[0]) if both.any() else _NAN


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
            "sd": float(known.std(ddof=1)) if len(known) > 1 else _NAN,
            "weight": _weight(sides[0], at),
            "weight_clean": _weight(sides[1], at) if len(sides) > 1 else _NAN,
            "tau_clean": _tau(*(side.table[:, at] for side in sides)) if len(sides) > 1 else _NAN,
        }
        rows.append(row)
    return rows


def _weight(side: _Side, at: int) -> float:
    found = side.board.cardinal
    return _NAN if found is None or found.weights is None else float(found.weights[at])


def _field_rows(side: _Side, given: Given) -> list[Row]:
    """The ordinal witness: who is in the field, and how it ranks the top."""
    board = side.board
    if board.ordinal is None or board.ordinal.field is None:
        return []
    shares, top = win_shares(side.table), board.top
    fields = {
        "rank_among_top": top,
        "rank_in_whole_field": np.arange(len(given.models)),
        "rank_in_field": board.ordinal.field,
    }
    places: dict[str, dict[int, float]] = {}
    for name, field in fields.items():
        rates = dict(
            zip(field.tolist(), published_win_rate(shares[np.ix_(field, field)]), strict=True)
        )
        order = ranks(np.array([rates[model] for model in top.tolist()]).round(_DIGITS))
        places[name] = dict(zip(top.tolist(), order.tolist(), strict=True))
    inside = set(board.ordinal.field.tolist())
    return [
        {
            "items": side.name,
            "model": model,
            "in_top": at in places["rank_among_top"],
            "in_field": at in inside,
            **{name: own.get(at, _NAN) for name, own in places.items()},
        }
        for at, model in enumerate(given.models)
    ]


def _change_rows(sides: Sequence[_Side]) -> list[Row]:
    """What each aggregate's order loses when the flagged items go."""
    if len(sides) == 1:
        return []
    rows = []
    for name in AGGREGATES:
        first, second = (side.values[name] for side in sides)
        both = ~np.isnan(first) & ~np.isnan(second)
        found = agreement(first[both], second[both])
        moved = np.abs(ranks(first[both]) - ranks(second[both])) >= 1
        rows.append(
            {
                "aggregate": name,
                "n_models": int(both.sum()),
                "n_moved": int(moved.sum()),
                "tau": found.tau,
                "distance": found.distance,
                "spearman": found.rho,
                "largest_rank_change": found.largest,
            }
        )
    return rows


def _finding(given: Given, sides: Sequence[_Side], changes: Sequence[Row]) -> Finding:
    side = sides[0]
    board, n = side.board, len(given.models)
    by = "win_rate" if np.isnan(side.values["mean"]).any() else "mean"
    values = side.values[by]
    leaders = [given.models[at] for at in np.flatnonzero(values == values.max())]
    lead = (
        f"{leaders[0]} leads" if len(leaders) == 1 else f"{len(leaders)} models share the lead of"
    )
    parts = [f"{lead} {n} models on {len(given.tasks)} tasks by {by.replace('_', ' ')}."]
    if board.diversity is not None:
        share = board.diversity.exact
        parts.append(f"The tasks' diversity is {share:.2f} (0: all rank alike, 1: none do).")
    if board.cardinal is not None:
        moved = round(board.cardinal.change.largest * (len(board.whole) - 1))
        parts.append(
            "Task weights that should not matter move a model by up to"
            f" {moved} of {len(board.whole) - 1} places."
        )
    if board.weak_models is not None:
        moved = round(board.weak_models.largest * (len(board.top) - 1))
        parts.append(
            f"The {n - len(board.top)} models below the top {len(board.top)} move one of these by"
            f" up to {moved} of {len(board.top) - 1} places."
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


def _pictures(given: Given, sides: Sequence[_Side]) -> list[Chart | Bump]:
    pictures: list[Chart | Bump] = []
    rankings = {
        f"{name.replace('_', ' ')}{'' if side.name == ALL else ', clean'}": side.rank(name)
        for name in AGGREGATES
        for side in sides
    }
    order = np.argsort(rankings["win rate"], kind="stable")[:_MOST_DRAWN].tolist()
    shown = {name: place for name, place in rankings.items() if not np.isnan(place[order]).any()}
    more = len(given.models) - len(order)
    pictures.append(
        Bump(
            name="ranks",
            caption="Rank by each aggregate" + (f", the first {len(order)}" if more else ""),
            rankings=list(shown),
            ranks={given.models[at]: [float(own[at]) for own in shown.values()] for at in order},
        )
    )
    rows = [row for row in _field_rows(sides[0], given) if row["in_top"]][:_MOST_DRAWN]
    if rows:
        columns = ("rank_among_top", "rank_in_whole_field", "rank_in_field")
        pictures.append(
            Bump(
                name="weak-models",
                caption=f"The order of the top {len(rows)} by win rate, in three fields",
                rankings=["among themselves", "all models", "field found"],
                ranks={row["model"]: [row[name] for name in columns] for row in rows},
            )
        )
    if panels := [panel for kind in PUBLISHED if (panel := _plane(kind, sides))]:
        caption = "Diversity and sensitivity, beside public boards as BenchBench finds them"
        pictures.append(Chart(name="plane", caption=caption, panels=panels))
    return pictures


def _plane(kind: str, sides: Sequence[_Side]) -> Panel | None:
    """Diversity against the sensitivity of one kind, where it is known."""
    own: dict[str, tuple[float, float]] = {}
    for side in sides:
        found = side.board.cardinal if kind == "cardinal" else side.board.ordinal
        if found is not None and side.board.diversity is not None:
            own[f"{side.name} items"] = (side.board.diversity.published, found.change.distance)
    if not own:
        return None
    public = PUBLISHED[kind]
    return Panel(
        title=f"{kind} sensitivity",
        x="diversity, 1 - W as BenchBench computes it",
        y="sensitivity, Kendall distance",
        marks=[
            Points(
                x=[x for x, _ in public.values()],
                y=[y for _, y in public.values()],
                names=list(public),
                tone="faint",
            ),
            Points(
                x=[x for x, _ in own.values()],
                y=[y for _, y in own.values()],
                names=list(own),
                tone="alarm",
            ),
        ],
    )
