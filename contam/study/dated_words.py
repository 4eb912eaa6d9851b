"""Say and draw what a study of dates found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contam.study.charts import TONES, Chart, Line, Panel, Points
from contam.study.model import Finding

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contam.rescore.arrays import Row


_SURE: Final = 0.05
_MOST_CHARTS: Final = 2
#: How far to the right of a drop that against the references stands.
_BESIDE: Final = 0.18


def finding(
    drops: Sequence[Row], scans: Sequence[Row], cohorts: Sequence[Row], *, references: bool
) -> Finding:
    """What was found, how sure it is, what would change it."""
    kind = "against_references" if references else "drop"
    known = [row for row in drops if not np.isnan(row[f"{kind}_p"])]
    fallen = [row for row in known if row[f"{kind}_p_holm"] < _SURE and row[kind] > 0]
    fall = "No drop at a known cutoff could be estimated."
    if known:
        fall = (
            f"None of {len(known)} models is shown to fall at its cutoff, after Holm's correction."
        )
    if fallen:
        worst = max(fallen, key=lambda row: float(row[kind]))
        drop, low, high = (100 * worst[f"{kind}{end}"] for end in ("", "_low", "_high"))
        than = ", more than the reference models do" if references else ""
        fall = (
            f"{worst['model']} falls by {drop:.1f} points at its cutoff{than}"
            f" (95 % {low:.1f} to {high:.1f});"
            f" {len(fallen)} of {len(known)} models fall after Holm's correction."
        )
    parts = [fall]
    if sharp := [row for row in scans if row["p_holm"] < _SURE and row["z"] > 0]:
        best = min(sharp, key=lambda row: (row["p"], -row["z"]))
        parts.append(
            f"The sharpest fall without a cutoff given is that of {best['model']} after"
            f" {best['last_day_before']} (p = {best['p']:.2g}, adjusted for the search)."
        )
    if out := [row for row in cohorts if row["out"]]:
        parts.append(f"{len(out)} of {len(cohorts)} monthly cohorts lie outside of their limits.")
    return Finding(found=" ".join(parts), sure=_SURENESS[references], change=_CHANGE)


_SURENESS: Final = {
    False: "Drops come with Welch's error; items that became harder with time also make scores"
    " fall, which only strata and reference models tell apart.",
    True: "What falls for the references, too, such as easier items, is taken off; a reference that"
    " saw the items hides a drop.",
}
_CHANGE: Final = (
    "Reference models of another cutoff, more items near it, or the day on which the data really"
    " end. A fall is no proof that items were seen."
)


def pictures(drops: Sequence[Row], cohorts: Sequence[Row]) -> list[Chart]:
    """The drops at the cutoffs, and the control charts with most cohorts outside."""
    charts = []
    known = [row for row in drops if not np.isnan(row["drop"])]
    if known:
        known.sort(key=lambda row: -row["drop"])
        beside = [(at + _BESIDE, row) for at, row in enumerate(known)]
        less = "against_references"
        panel = Panel(
            title="Mean before the cutoff less mean after it",
            x="",
            y="drop",
            marks=[
                Line.level(len(known)),
                Points.of(enumerate(known), "drop", limits="drop", label="drop"),
                Points.of(beside, less, limits=less, tone="alarm", label="less references"),
            ],
            x_names=[row["model"] for row in known],
        )
        charts.append(Chart(name="drops", caption="Drop at each model's cutoff", panels=[panel]))
    models: dict[str, list[Row]] = {}
    for row in cohorts:
        models.setdefault(row["model"], []).append(row)
    most_out = sorted(models, key=lambda name: -sum(row["out"] for row in models[name]))
    if panels := [_control(name, models[name]) for name in most_out[:_MOST_CHARTS]]:
        more = f", {len(panels)} of {len(models)} models" if len(models) > len(panels) else ""
        caption = f"Control chart by month, {cohorts[0]['scores']}, limits of 3 sigma{more}"
        charts.append(Chart(name="control", caption=caption, panels=panels))
    return charts


def _control(model: str, rows: Sequence[Row]) -> Panel:
    centre, low, high = ([row[name] for row in rows] for name in ("centre", "low", "high"))
    marks: list[Points | Line] = [
        Line(x=range(len(rows)), y=centre, low=low, high=high, tone="faint")
    ]
    for out, tone in TONES.items():
        own = [(at, row) for at, row in enumerate(rows) if row["out"] is out]
        marks.append(Points.of(own, "value", tone=tone, label="outside" if out else ""))
    return Panel(title=model, x="", y="score", marks=marks, x_names=[row["month"] for row in rows])
