"""Say in plain words what a study of preparation found, and plan its pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from contam.study.charts import TONES, Bump, Chart, Line, Panel, Points
from contam.study.model import Finding

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contam.rescore.arrays import Row


_SURE: Final = 0.05
_MOST_PANELS: Final = 4
_MOST_RANKED: Final = 60


def finding_of(rows: Mapping[str, Sequence[Row]]) -> Finding:
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
        f" ({_limits(row)}, p {row['p_holm']:.2g})"
    )
    if not _shown(row):
        return f"{text}: no lead is shown."
    if after is None:
        return f"{text}."
    left = (
        f"{text}; after the same tuning of all models {_points(after['theta'])}"
        f" ({_limits(after)}) are left, which"
    )
    if _shown(after):
        return f"{left} preparation does not explain."
    # That no lead is shown any more is no sign of less: the change itself has to be shown.
    shrinks = gone is not None and gone["theta"] > 0 and _shown(gone)
    end = ": the lead goes with preparation." if shrinks else ", nor to be less than before."
    return f"{left} is not shown to differ from none{end}"


def _points(share: float) -> str:
    return f"{100 * share:.1f} points"


def _limits(row: Row) -> str:
    if row["low"] is None or row["low"] != row["low"]:
        return "no limits"
    return f"95 % {100 * row['low']:.1f} to {100 * row['high']:.1f}"


def pictures_of(rows: Mapping[str, Sequence[Row]]) -> list[Chart | Bump]:
    """Scores against compute with the fitted hinge, ranks, and the agreement of pairs."""
    pictures: list[Chart | Bump] = []
    leads, after = (_of(rows["effects"], outcome) for outcome in ("score", "post"))
    for at, task in enumerate(list(leads)[:_MOST_PANELS], 1):
        own = [row for row in rows["models"] if row["task"] == task]
        panels = [_panel(own, leads[task], "score", "as they are")]
        if task in after:
            panels.append(_panel(own, after[task], "post", "after the same tuning"))
        name = f"compute-{at}-{_file(task)}"
        pictures.append(Chart(name=name, caption=f"Scores on {task} and compute", panels=panels))
        if len(own) <= _MOST_RANKED:
            rankings = {"rank": "score", "rank_adjusted": "at equal compute"}
            if own[0]["rank_post"] == own[0]["rank_post"]:
                rankings["rank_post"] = "tuned alike"
            ranks = {row["model"]: [row[column] for column in rankings] for row in own}
            pictures.append(
                Bump(
                    name=f"ranks-{at}-{_file(task)}",
                    caption=f"Ranks on {task}",
                    rankings=list(rankings.values()),
                    ranks=ranks,
                )
            )
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
        title=f"{when}: lead {_points(effect['theta'])} ({_limits(effect)})",
        x="compute (log10 of operations)",
        y="score, %",
        marks=marks,
    )
