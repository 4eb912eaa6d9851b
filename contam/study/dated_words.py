"""Say and draw what a study of dates found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contam.study.model import Chart, Finding, Line, Panel, Points

if TYPE_CHECKING:
    from collections.abc import Sequence

    Row = dict[str, Any]

_SURE: Final = 0.05
_MOST_CHARTS: Final = 2


def finding(
    drops: Sequence[Row], scans: Sequence[Row], cohorts: Sequence[Row], *, references: bool
) -> Finding:
    """What was found, how sure it is, what would change it."""
    kind = "against_references" if references else "drop"
    known = [row for row in drops if not np.isnan(row[f"{kind}_p"])]
    fallen = [row for row in known if row[f"{kind}_p_holm"] < _SURE and row[kind] > 0]
    than = ", more than the reference models do" if references else ""
    parts = []
    if fallen:
        worst = max(fallen, key=lambda row: float(row[kind]))
        parts.append(
            f"{worst['model']} falls by {100 * worst[kind]:.1f} points at its cutoff{than}"
            f" (95 % {100 * worst[f'{kind}_low']:.1f} to {100 * worst[f'{kind}_high']:.1f});"
            f" {len(fallen)} of {len(known)} models fall after Holm's correction."
        )
    elif known:
        parts.append(
            f"None of {len(known)} models is shown to fall at its cutoff, after Holm's correction."
        )
    else:
        parts.append("No drop at a known cutoff could be estimated.")
    sharp = [row for row in scans if row["p_holm"] < _SURE and row["z"] > 0]
    if sharp:
        best = min(sharp, key=lambda row: (row["p"], -row["z"]))
        parts.append(
            f"The sharpest fall without a cutoff given is that of {best['model']} after"
            f" {best['last_day_before']} (p {best['p']:.2g}, paid for the search)."
        )
    if out := [row for row in cohorts if row["out"]]:
        parts.append(f"{len(out)} of {len(cohorts)} monthly cohorts lie outside of their limits.")
    return Finding(
        found=" ".join(parts),
        sure=(
            "Drops come with Welch's error; items that became harder with time also make scores"
            " fall, which only strata and reference models tell apart."
            if not references
            else "What falls for the references, too, such as easier items, is taken off; a"
            " reference that saw the items hides a drop."
        ),
        change=(
            "Reference models of another cutoff, more items near it, or the day on which the data"
            " really end. A fall is no proof that items were seen."
        ),
    )


def pictures(drops: Sequence[Row], cohorts: Sequence[Row]) -> list[Chart]:
    """The drops at the cutoffs, and the control charts with most cohorts outside."""
    charts = []
    known = [row for row in drops if not np.isnan(row["drop"])]
    if known:
        known.sort(key=lambda row: -row["drop"])
        marks: list[Points | Line] = [
            Line(x=[-0.5, len(known) - 0.5], y=[0, 0], tone="faint", dashed=True)
        ]
        kinds = [("drop", "plain", "drop"), ("against_references", "alarm", "less references")]
        for shift, (kind, tone, label) in enumerate(kinds):
            own = [(at, row) for at, row in enumerate(known) if not np.isnan(row[f"{kind}_low"])]
            if own:
                marks.append(
                    Points(
                        x=[at + 0.18 * shift for at, _ in own],
                        y=[row[kind] for _, row in own],
                        low=[row[f"{kind}_low"] for _, row in own],
                        high=[row[f"{kind}_high"] for _, row in own],
                        tone="plain" if tone == "plain" else "alarm",
                        label=label,
                    )
                )
        panel = Panel(
            title="Mean before the cutoff less mean after it",
            x="",
            y="drop",
            marks=marks,
            x_names=[row["model"] for row in known],
        )
        charts.append(Chart(name="drops", caption="Drop at each model's cutoff", panels=[panel]))
    models = list(dict.fromkeys(row["model"] for row in cohorts))
    most_out = sorted(
        models, key=lambda name: -sum(r["out"] for r in cohorts if r["model"] == name)
    )[:_MOST_CHARTS]
    if most_out:
        panels = [_control(name, [r for r in cohorts if r["model"] == name]) for name in most_out]
        more = f", {len(panels)} of {len(models)} models" if len(models) > len(panels) else ""
        caption = f"Control chart by month, {cohorts[0]['scores']}, limits of 3 sigma{more}"
        charts.append(Chart(name="control", caption=caption, panels=panels))
    return charts


def _control(model: str, rows: Sequence[Row]) -> Panel:
    at = list(range(len(rows)))
    marks: list[Points | Line] = [
        Line(
            x=at,
            y=[row["centre"] for row in rows],
            low=[row["low"] for row in rows],
            high=[row["high"] for row in rows],
            tone="faint",
        )
    ]
    for out, tone in ((False, "plain"), (True, "alarm")):
        own = [(place, row) for place, row in zip(at, rows, strict=True) if row["out"] is out]
        if own:
            marks.append(
                Points(
                    x=[place for place, _ in own],
                    y=[row["value"] for _, row in own],
                    tone="alarm" if tone == "alarm" else "plain",
                    label="outside" if out else "",
                )
            )
    return Panel(title=model, x="", y="score", marks=marks, x_names=[row["month"] for row in rows])
