"""Study preparation for the test: what a group of models scores more at equal compute, and why.

After Dominguez-Olmedo, Dorner and Hardt 2025 (training on the test task), and the same group's
train-before-test: rankings agree once every model had the same task data.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING, Final

import numpy as np

from contam.errors import Statement, UsageError
from contam.extras import require
from contam.rescore.stats.permutation import adjust
from contam.rescore.stats.ranking import kendall, ranks
from contam.study.inputs import FAMILY, GIVE_SHARES, Rows
from contam.study.lines import hinge, segmented
from contam.study.model import (
    TONES,
    Chart,
    Finding,
    Line,
    Panel,
    Points,
    Refusal,
    Study,
    rows_of,
    table_of,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from contam.detect.given import Source
    from contam.rescore import Bools, Floats, Ints, Row
    from contam.study.lines import Effect

PREPARATION: Final = "preparation"
USUAL: Final[Mapping[str, tuple[str, ...]]] = {
    "model": ("model", "model_name", "name"),
    "task": ("task", "benchmark", "dataset"),
    "score": ("score", "accuracy", "acc", "direct", "base"),
    "tuned": ("tuned", "tuned_score", "tbt", "fine_tuned"),
    "group": ("group", "prepared", "suspect", "trained_after"),
    "flops": ("flops", "compute", "training_flops"),
    "params": ("params", "parameters", "n_params"),
    "tokens": ("tokens", "training_tokens", "n_tokens"),
    "covariate": ("covariate", "capability"),
    **FAMILY,
}
EFFECTS: Final = {
    "task": str, "outcome": str, "fit": str, "n": int, "n_group": int,
    "theta": float, "error": float, "low": float, "high": float,
    "p": float, "p_holm": float, "p_bh": float,
    "knot": float, "slope": float, "slope_error": float, "r2": float, "chance": float,
}  # fmt: skip
SHOWN: Final = ("task", "outcome", "fit", "n", "theta", "error", "low", "high", "p_holm", "r2")
MODELS: Final = {
    "task": str, "model": str, "group": bool, "compute": float, "score": float, "tuned": float,
    "post": float, "adjusted": float, "rank": float, "rank_adjusted": float, "rank_post": float,
}  # fmt: skip
PAIRS: Final = {
    "first": str, "second": str, "kind": str, "n": int,
    "tau_direct": float, "tau_tuned": float, "rise": bool,
}  # fmt: skip
AGREEMENT: Final = {
    "kind": str, "n_pairs": int, "n_models": int,
    "tau_direct": float, "tau_tuned": float, "share_rising": float,
}  # fmt: skip
TABLES: Final = {"effects": EFFECTS, "models": MODELS, "agreement": AGREEMENT, "pairs": PAIRS}

LEAST_IN_GROUP: Final = 5
"""Models that each side of a group needs: fewer make no effect of a group."""

LEAST_FLOPS: Final = 1e12
"""Below it a number of operations is more likely a logarithm, or in billions."""

_OPERATIONS: Final = 6
_LEAST_RANKED: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparationSettings:
    """What a study of preparation was asked for; run.json has it.

    chance  score of a guess, or by task; "" is for all others
    knots   where the segments of compute meet, in powers of ten of operations
    lower_is_better  tasks whose scores count downwards; such are not bound to 0 and 1
    """

    chance: float | Mapping[str, float] = 0.0
    knots: tuple[float, float] = (22.0, 23.0)
    lower_is_better: tuple[str, ...] = ()
    draws: int = 2_000
    seed: int = 0

    @property
    def chances(self) -> Mapping[str, float]:
        """The score of a guess by task, as it was given."""
        return {"": self.chance} if isinstance(self.chance, int | float) else self.chance

    def chance_of(self, task: str) -> float:
        """The score of a guess."""
        return self.chances.get(task, self.chances.get("", 0.0))


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class _Task:
    """One task: arrays of n models; tuned, group and compute are nan where they are not given.

    family  object[n], the base that each is made of, "" where not given
    """

    name: str
    models: NDArray[np.object_]
    score: Floats
    tuned: Floats
    group: Floats
    compute: Floats
    family: NDArray[np.object_]
    lower: bool = False

    @property
    def post(self) -> Floats:
        """The better of both scores: tuning is there to bring out what a model can."""
        return np.maximum(self.score, self.tuned)

    def of(self, kept: Bools | Ints) -> _Task:
        """The models of a mask, or at these places."""
        columns = ("models", "score", "tuned", "group", "compute", "family")
        return replace(self, **{name: getattr(self, name)[kept] for name in columns})

    def families(self) -> _Task:
        """One model, with their means, for those of one base on the same side of the group."""
        names = [
            f"{family} of {group}" if family else f"model {at}"
            for at, (family, group) in enumerate(zip(self.family, self.group, strict=True))
        ]
        _, first, code = np.unique(names, return_index=True, return_inverse=True)
        order = np.argsort(first)
        sizes = np.bincount(code)

        def mean(values: Floats) -> Floats:
            return (np.bincount(code, weights=values) / sizes)[order]

        score, tuned, compute = map(mean, (self.score, self.tuned, self.compute))
        return replace(self.of(first[order]), score=score, tuned=tuned, compute=compute)


def preparation(
    scores: Source,
    *,
    columns: Mapping[str, str] | None = None,
    settings: PreparationSettings | None = None,
) -> Study:
    """Ask what of a group's lead is preparation for the test.

    scores   a table with a row for each model, or each model and task: `model`, `score`, and as far
             as they are known `task`, `tuned` (the score after the same fine-tuning of every
             model), `group` (0 or 1: suspected of preparation) and compute: `flops`, or `params`
             and `tokens` (6 params tokens), or another `covariate` that is taken as it is; models
             of one base, which have one name in `family`, count as one in each group
    columns  role -> column where the usual names do not fit

    Raises LogError or UsageError for a table that is none, and MissingExtraError without
    statsmodels; what its columns do not allow is refused by name.
    """
    require("scores", "statsmodels")
    asked = settings or PreparationSettings()
    _check(asked)
    rows = Rows(scores, "scores", usual=USUAL, columns=columns)
    tasks = _tasks(rows, asked)
    refusals: list[Refusal] = []
    notes: list[str] = []
    effects: list[Row] = []
    models: list[Row] = []
    for task in tasks:
        if task.lower:
            continue
        own, fitted = _effects(task, asked, refusals, notes)
        effects += own
        # The first row is the hinge of the scores as they are.
        models += _model_rows(fitted, own[0]["theta"] if own else float("nan"))
    adjust(effects, ["p"], lambda row: (row["outcome"], row["fit"]))
    pairs = _pairs(tasks, refusals)
    means = _means(pairs, max(len(task.models) for task in tasks))
    found = {"effects": effects, "models": models, "agreement": means, "pairs": pairs}
    tables = {name: table_of(rows, TABLES[name]) for name, rows in found.items()}
    main = "effects" if effects else "agreement"
    return Study(
        name=PREPARATION,
        finding=_finding_of(found),
        tables={main: tables[main], **tables},
        refusals=list(dict.fromkeys(refusals)),
        pictures=_pictures_of(found),
        columns=SHOWN if effects else tuple(AGREEMENT),
        run={
            "parameters": {**asdict(asked), "columns": dict(columns) if columns else None},
            "inputs": [rows.source],
            "notes": list(dict.fromkeys(notes)),
        },
    )


def _check(asked: PreparationSettings) -> None:
    if not asked.knots[0] < asked.knots[1]:
        raise UsageError("the second knot is not above the first")
    if not all(0 <= chance < 1 for chance in asked.chances.values()):
        raise UsageError("chance is a share from 0 to below 1", hint=GIVE_SHARES)


def _tasks(rows: Rows, asked: PreparationSettings) -> list[_Task]:
    """The tasks of the table in its order. Raises LogError for doubles and cells that are wrong."""
    models = rows.texts("model")
    names = rows.texts("task") if rows.has("task") else ["score"] * len(models)
    rows.refuse_doubles(list(zip(names, models, strict=True)), "task and model")
    known = dict.fromkeys(names)
    for name in (*asked.lower_is_better, *filter(None, asked.chances)):
        if name not in known:
            hint = Statement("known: {}", ", ".join(known))
            raise UsageError("no scores of a task {!r}", name, hint=hint)
    lower = np.array([name in asked.lower_is_better for name in names])
    score = rows.numbers("score", empty=True)
    tuned, group = rows.known("tuned"), rows.known("group")
    for values, role in ((score, "score"), (tuned, "tuned")):
        # Below 0 may be a correlation, which ranks models well; a percent is refused.
        rows.refuse_outside(np.abs(np.where(lower, np.nan, values)), role)
    rows.refuse(
        ~np.isnan(group) & (group != 0) & (group != 1),
        "a model is in the group (1) or not (0), not {}",
        group,
        hint="write true or false",
    )
    sign = np.where(lower, -1.0, 1.0)
    whole = _Task(
        name="", models=np.array(models, object), score=sign * score, tuned=sign * tuned,
        group=group, compute=_compute(rows),
        family=np.array(rows.texts_or_none("family"), object),
    )  # fmt: skip
    own = {name: np.array([one == name for one in names]) for name in known}
    return [
        replace(whole.of(kept), name=name, lower=bool(lower[kept][0])) for name, kept in own.items()
    ]


def _compute(rows: Rows) -> Floats:
    """float64[rows]: powers of ten of training operations, or the covariate as it is."""
    if rows.has("covariate"):
        return rows.known("covariate")
    flops = rows.known("flops")
    if not rows.has("flops"):
        flops = _OPERATIONS * rows.known("params") * rows.known("tokens")
    rows.refuse(
        flops < LEAST_FLOPS,
        "{} operations of training are too few: give operations, or parameters and tokens,"
        " neither billions nor logarithms, which may be a `covariate`",
        flops,
        hint=rows.there,
    )
    return np.log10(flops)


def _effects(
    task: _Task, asked: PreparationSettings, refusals: list[Refusal], notes: list[str]
) -> tuple[list[Row], _Task]:
    """The lead of the group on the score, after tuning and on the difference; the models fitted."""
    what = f"the lead of the group on {task.name}"
    known = ~np.isnan(task.score) & ~np.isnan(task.group) & ~np.isnan(task.compute)
    tuned = bool((~np.isnan(task.tuned)).any())
    if tuned:
        known &= ~np.isnan(task.tuned)
    kept = task.of(known)
    fitted = kept.families()
    if reason := _refusal(task, fitted):
        refusals.append(Refusal(what, reason))
        return [], task.of(~np.isnan(task.score))
    if absent := task.models[~known].tolist():
        notes.append(f"{task.name}: left out for an empty cell: {', '.join(absent)}")
    outcomes = {"score": fitted.score}
    if tuned:
        outcomes |= {"post": fitted.post, "score - post": fitted.score - fitted.post}
    else:
        reason = "no scores after the same fine-tuning of all models"
        refusals.append(Refusal(f"{what} after tuning", reason))
    chance, draws, seed = asked.chance_of(task.name), asked.draws, asked.seed
    found: list[Row] = []
    for name, outcome in outcomes.items():
        given = outcome, fitted.compute, fitted.group
        fits: dict[str, Effect] = {}
        if name != "score - post":
            fits["hinge"] = hinge(*given, chance, draws=draws, seed=seed)
        try:
            fits["segmented"] = segmented(*given, asked.knots, draws, seed)
        except ValueError as error:
            refusals.append(Refusal(f"{what}, by segments", str(error)))
        for fit, effect in fits.items():
            row = {"task": task.name, "outcome": name, "fit": fit, "chance": chance}
            found.append({**row, "n_group": int(fitted.group.sum()), **asdict(effect)})
    return found, kept


def _refusal(task: _Task, kept: _Task) -> str:
    """Why there is no lead of a group, "" where there is one."""
    for role, values in (("group", task.group), ("compute", task.compute)):
        if np.isnan(values).all():
            names = "`flops`, `params` and `tokens`, or `covariate`" if role == "compute" else role
            return f"the table has no column of {names}"
    n_group = int(kept.group.sum())
    least = min(n_group, len(kept.models) - n_group)
    if least < LEAST_IN_GROUP:
        return (
            f"{n_group} models in the group and {len(kept.models) - n_group} outside with all"
            f" figures; each needs {LEAST_IN_GROUP}"
        )
    inside, outside = kept.compute[kept.group == 1], kept.compute[kept.group == 0]
    reasons = {
        "scores below 0 are no shares": bool((kept.score < 0).any() or (kept.tuned < 0).any()),
        "all models have one score": np.ptp(kept.score) == 0,
        "all models have the same compute": np.ptp(kept.compute) == 0,
        "no compute is common to models in the group and outside: nothing is comparable": (
            inside.min() > outside.max() or inside.max() < outside.min()
        ),
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def _model_rows(task: _Task, theta: float) -> list[Row]:
    adjusted = task.score - theta * np.nan_to_num(task.group)
    return rows_of(
        {
            "task": [task.name] * len(task.models),
            "model": task.models,
            "group": task.group == 1,
            "compute": task.compute,
            "score": task.score,
            "tuned": task.tuned,
            "post": task.post,
            "adjusted": adjusted,
            "rank": _places(task.score),
            "rank_adjusted": _places(adjusted),
            "rank_post": _places(task.post),
        }
    )


def _places(values: Floats) -> Floats:
    """Ranks, nan where one of the values is."""
    return np.full(len(values), np.nan) if np.isnan(values).any() else ranks(values)


def _pairs(tasks: Sequence[_Task], refusals: list[Refusal]) -> list[Row]:
    """Kendall's tau of every two tasks over the models that both have, before and after tuning."""
    what = "agreement of rankings before and after tuning"
    if len(tasks) <= 1:
        refusals.append(Refusal(what, f"{len(tasks)} task; rankings of two are compared"))
        return []
    if all(np.isnan(task.tuned).all() for task in tasks):
        refusals.append(Refusal(what, "no scores after the same fine-tuning of all models"))
        return []
    found = []
    for first, second in combinations(tasks, 2):
        _, a, b = np.intersect1d(first.models, second.models, return_indices=True)
        values = np.stack([first.score[a], second.score[b], first.tuned[a], second.tuned[b]])
        values = values[:, ~np.isnan(values).any(axis=0)]
        if values.shape[1] < _LEAST_RANKED:
            continue
        direct, tuned = (float(kendall(own[0], own[1:])[0]) for own in (values[:2], values[2:]))
        kinds = sorted("lower is better" if task.lower else "tasks" for task in (first, second))
        found.append(
            {
                "first": first.name,
                "second": second.name,
                "kind": "tasks" if kinds[0] == "tasks" else " and ".join(kinds),
                "n": values.shape[1],
                "tau_direct": direct,
                "tau_tuned": tuned,
                "rise": tuned > direct,
            }
        )
    if not found:
        refusals.append(Refusal(what, f"no two tasks have {_LEAST_RANKED} models in common"))
    return found


def _means(pairs: Sequence[Row], n_models: int) -> list[Row]:
    """Mean agreement over pairs of tasks of one kind."""
    by_kind: dict[str, list[tuple[float, float]]] = {}
    for row in pairs:
        if not np.isnan([row["tau_direct"], row["tau_tuned"]]).any():
            by_kind.setdefault(row["kind"], []).append((row["tau_direct"], row["tau_tuned"]))
    return [
        {
            "kind": kind,
            "n_pairs": len(taus),
            "n_models": n_models,
            "tau_direct": float(np.mean([direct for direct, _ in taus])),
            "tau_tuned": float(np.mean([tuned for _, tuned in taus])),
            "share_rising": float(np.mean([tuned > direct for direct, tuned in taus])),
        }
        for kind, taus in by_kind.items()
    ]


_SURE: Final = 0.05
_MOST_PANELS: Final = 4


def _finding_of(rows: Mapping[str, Sequence[Row]]) -> Finding:
    """The answer of the study; rows of the tables "effects" and "agreement"."""
    leads, after = (_of(rows["effects"], outcome) for outcome in ("score", "post"))
    gone = _of(rows["effects"], "score - post", "segmented")
    segmented = _of(rows["effects"], "score", "segmented")
    found = [_lead(row, after.get(task), gone.get(task)) for task, row in leads.items()]
    found += [
        f"Rankings of two tasks agree with a Kendall tau of {row['tau_direct']:.3f} on"
        f" average, and of {row['tau_tuned']:.3f} after the same tuning of all models;"
        f" {100 * row['share_rising']:.1f} % of {row['n_pairs']} pairs agree more."
        for row in rows["agreement"]
        if row["kind"] == "tasks"
    ]
    sure = ["There is no lead of a group to be sure of."]
    if leads:
        first = next(iter(leads.values()))
        sure = [f"{first['n_group']} of {first['n']} models are in the group. {_LIMITS}"]
    lacking = [
        task for task, row in leads.items() if _shown(segmented.get(task, row)) != _shown(row)
    ]
    if lacking:
        sure.append(f"With fixed segments of compute the lead on {', '.join(lacking)} differs.")
    return Finding(
        found=" ".join(found) or "Nothing could be estimated.",
        sure=" ".join(sure),
        change=_TUNED if after else _NOT_TUNED,
    )


_LIMITS: Final = (
    "Limits come from resampling models with the knot fitted anew; p is Student's, adjusted over"
    " tasks (Holm)."
)
_TUNED: Final = (
    "Models in the group may differ in more than preparation: better data or methods of the same"
    " time count as preparation here, unless the lead ends once all are tuned alike."
)
_NOT_TUNED: Final = (
    "Scores after the same fine-tuning of every model would show whether preparation for the test"
    " is the reason."
)


def _of(effects: Sequence[Row], outcome: str, fit: str = "hinge") -> dict[str, Row]:
    """The rows of an outcome and a fit, by task."""
    return {row["task"]: row for row in effects if (row["outcome"], row["fit"]) == (outcome, fit)}


def _shown(row: Row) -> bool:
    return bool(row["p_holm"] < _SURE)


def _lead(row: Row, after: Row | None, gone: Row | None) -> str:
    text = (
        f"At equal compute the group scores {_points(row['theta'])} more on {row['task']}"
        f" ({_limits_of(row)}, p {row['p_holm']:.2g})"
    )
    if not _shown(row):
        return f"{text}: no lead is shown."
    if after is None:
        return f"{text}."
    left = (
        f"{text}; after the same tuning of all models {_points(after['theta'])}"
        f" ({_limits_of(after)}) are left, which"
    )
    if _shown(after):
        return f"{left} preparation does not explain."
    # That no lead is shown any more is no sign of less: the change itself has to be shown.
    shrinks = gone is not None and gone["theta"] > 0 and _shown(gone)
    end = ": the lead goes with preparation." if shrinks else ", nor to be less than before."
    return f"{left} is not shown to differ from none{end}"


def _points(share: float) -> str:
    return f"{100 * share:.1f} points"


def _limits_of(row: Row) -> str:
    if row["low"] is None or row["low"] != row["low"]:
        return "no limits"
    return f"95 % {100 * row['low']:.1f} to {100 * row['high']:.1f}"


def _pictures_of(rows: Mapping[str, Sequence[Row]]) -> list[Chart]:
    """Scores against compute with the fitted hinge, and the agreement of pairs."""
    pictures: list[Chart] = []
    leads, after = (_of(rows["effects"], outcome) for outcome in ("score", "post"))
    for at, task in enumerate(list(leads)[:_MOST_PANELS], 1):
        own = [row for row in rows["models"] if row["task"] == task]
        panels = [_panel(own, leads[task], "score", "as they are")]
        if task in after:
            panels.append(_panel(own, after[task], "post", "after the same tuning"))
        name = f"compute-{at}-{_file(task)}"
        pictures.append(Chart(name=name, caption=f"Scores on {task} and compute", panels=panels))
    if pairs := rows["pairs"]:
        low = min(0.0, *(row[tau] for row in pairs for tau in ("tau_direct", "tau_tuned")))
        same = Line(x=[low, 1], y=[low, 1], tone="faint", dashed=True, label="same agreement")
        panel = Panel(
            title="Kendall tau of two tasks",
            x="scores as they are",
            y="after the same tuning of all models",
            marks=[same, Points.of(((row["tau_direct"], row) for row in pairs), "tau_tuned")],
        )
        caption = "Do tasks rank models alike?"
        pictures.append(Chart(name="agreement", caption=caption, panels=[panel]))
    return pictures


def _file(task: str) -> str:
    return "".join(c if c.isascii() and c.isalnum() else "_" for c in task)


def _panel(models: Sequence[Row], effect: Row, column: str, when: str) -> Panel:
    least = min(row["compute"] for row in models)
    computes = sorted({row["compute"] for row in models} | {max(effect["knot"], least)})
    marks: list[Points | Line] = []
    for group, tone in TONES.items():
        own = [(row["compute"], row) for row in models if row["group"] is group]
        base = effect["chance"] + effect["theta"] * group
        curve = [base + effect["slope"] * max(0, at - effect["knot"]) for at in computes]
        label = "group" if group else "others"
        marks += [
            Line(x=computes, y=[100 * share for share in curve], tone=tone),
            Points.of(own, column, factor=100, tone=tone, label=label),
        ]
    return Panel(
        title=f"{when}: lead {_points(effect['theta'])} ({_limits_of(effect)})",
        x="compute (log10 of operations)",
        y="score, %",
        marks=marks,
    )
