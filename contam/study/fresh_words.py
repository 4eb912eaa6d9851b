"""Say in plain words what a study of a fresh set found, and plan its pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from scipy.special import ndtri

from contam.study.model import Chart, Finding, Line, Panel, Points

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    Row = dict[str, Any]

_CLOSES: Final = 0.25
"""Share of the gap that may be left on an easier set where it counts as closed."""

_MOST_NAMED: Final = 6
_FIRST: Final = "all"


def finding_of(rows: Mapping[str, Sequence[Row]], *, admitted: bool) -> Finding:
    """The answer of the study.

    rows      of the tables "models", "fits", "sets" and "constat"
    admitted  whether the reference models show the two sets to be equally hard
    """
    models = [row for row in rows["models"] if row["items"] == _FIRST]
    return Finding(
        found=_found(models, rows),
        sure=_sure(rows["fits"], models),
        change=_change(rows["fits"], models, admitted=admitted),
    )


def _found(models: Sequence[Row], rows: Mapping[str, Sequence[Row]]) -> str:
    n = len(models)
    mean = sum(row["gap"] for row in models) / n
    tested = [row for row in models if not row["reference"]] or models
    lower = [row for row in tested if row["gap_p_holm"] < _SURE]
    text = (
        f"On average {_counted(n, 'model')} {'scores' if n == 1 else 'score'}"
        f" {_points(abs(mean))} {'lower' if mean >= 0 else 'higher'} on the fresh set than on the"
        f" original one; {len(lower)} of {len(tested)} by more than sampling explains (Holm)."
    )
    known = [row for row in models if row["expected"] == row["expected"]]
    if known:
        fell = sorted((row for row in models if row["falls"]), key=lambda row: row["residual"])
        if fell:
            text += (
                f" {_counted(len(fell), 'model')} {'falls' if len(fell) == 1 else 'fall'} further"
                f" than the line of the others: {_named(fell)}."
            )
        else:
            text += " No model falls further than the line of the others."
    if rows["constat"]:
        over = [row for row in rows["constat"] if row["p_holm"] < _SURE]
        text += f" ConStat: {_named(over) or 'no model'} scores more than its fresh score predicts."
    cleaned = [row for row in rows["models"] if row["items"] != _FIRST]
    if cleaned:
        clean_mean = sum(row["gap"] for row in cleaned) / len(cleaned)
        text += f" On clean items the mean gap is {_points(clean_mean)}."
    for row in rows["sets"]:
        if row["items"] != _FIRST or row["fresh_set"] == "fresh":
            continue
        closes = mean > 0 and row["mean_gap"] <= _CLOSES * mean
        text += f" On {row['fresh_set']} it is {_points(row['mean_gap'])}: " + (
            "the gap closes where people agree on the items, so harder items explain the mean gap."
            if closes
            else "the gap stays."
        )
    return text


def _sure(fits: Sequence[Row], models: Sequence[Row]) -> str:
    bound = max(row["sampling_bound"] for row in models)
    text = f"Sampling of the fresh items alone moves a score by at most {_points(bound)} (95 %)."
    own = [row for row in fits if row["items"] == _FIRST and row["fresh_set"] == "fresh"]
    by = {(row["scale"], row["models"]): row for row in own}
    first = [by[scale, "all"] for scale in ("accuracy", "probit") if (scale, "all") in by]
    if not first:
        return f"{text} There is no line over models."
    for row in first:
        text += (
            f" On the {row['scale']} scale fresh scores rise {row['slope']:.3f}"
            f" [{row['slope_low']:.3f}, {row['slope_high']:.3f}] for each point of the original."
        )
    text += f" {_reading(first)}"
    for row in first:
        other = by.get((row["scale"], "without far ones"))
        if other and other["reading"] != row["reading"]:
            text += (
                f" This depends on {other['left_out']}: without them the slope on the"
                f" {row['scale']} scale is {other['slope']:.3f}"
                f" [{other['slope_low']:.3f}, {other['slope_high']:.3f}]."
            )
    return text


def _reading(rows: Sequence[Row]) -> str:
    said = [row["reading"] for row in rows]
    if any(reading.startswith("not told") for reading in said):
        return "The models are too much alike to tell the slope from sampling noise."
    if all(reading == "below 1" for reading in said):
        return (
            "Below 1 on both scales: returns on the original set diminish, as they do when methods"
            " are fitted to it."
        )
    if any(reading.startswith("1 ") for reading in said) and "below 1" not in said:
        return "Their limits hold 1: diminishing returns are not shown, and not excluded."
    if "below 1" not in said:
        return (
            "Not below 1: nothing says that better models owe more of their score to the original"
            " set; an offset is a difference between the sets."
        )
    return "The two scales disagree, so the slope does not tell adaptivity from a harder set."


def _change(fits: Sequence[Row], models: Sequence[Row], *, admitted: bool) -> str:
    text = (
        "The reference models show the two sets to be equally hard within the margin, so gaps are"
        " inflation."
        if admitted
        else "The reference models do not show the two sets to be equally hard within the margin,"
        " so a gap alone is no proof of inflation: more items or more equal sets could show it."
        if any(row["reference"] for row in models)
        else "The sets are not shown to be equally hard, so a gap alone is no proof of inflation:"
        " scores of reference models that cannot have seen the original set could show it."
    )
    far = [
        row
        for row in fits
        if row["left_out"]
        and row["fresh_set"] == "fresh"
        and (row["items"], row["scale"]) == (_FIRST, "accuracy")
    ]
    if far:
        text += (
            f" Models that score between {far[0]['left_out']} and the others would show whether the"
            " line stays straight there."
        )
    return f"{text} More fresh items would narrow every interval."


_SURE: Final = 0.05


def _named(rows: Sequence[Row]) -> str:
    names = [str(row["model"]) for row in rows]
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _counted(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _points(share: float) -> str:
    return f"{100 * share:.2f} points"


def pictures_of(rows: Mapping[str, Sequence[Row]]) -> list[Chart]:
    """Scores on both sets with line and identity, residuals, and the gap on every fresh set."""
    models = [row for row in rows["models"] if row["items"] == _FIRST]
    pictures = [
        Chart(
            name="fresh",
            caption="Scores on the original and on the fresh set",
            panels=[_scatter(models, rows["fits"], scale) for scale in _SCALES],
        ),
        Chart(
            name="residuals",
            caption="How far models lie from the line of the others",
            panels=[_residual_panel(models)],
        ),
    ]
    sets = [row for row in rows["sets"] if row["items"] == _FIRST]
    if len(sets) > 1:
        places = range(len(sets))
        panel = Panel(
            title="Mean gap, with the least and the largest of a model",
            x="fresh set",
            y="gap: original less fresh, points",
            x_names=[row["fresh_set"] for row in sets],
            marks=[
                Line(x=[-0.4, len(sets) - 0.6], y=[0, 0], tone="faint", dashed=True),
                Points(
                    x=[*places],
                    y=[100 * row["mean_gap"] for row in sets],
                    low=[100 * row["least_gap"] for row in sets],
                    high=[100 * row["largest_gap"] for row in sets],
                ),
            ],
        )
        pictures.append(
            Chart(name="sets", caption="Does the gap close on easier items?", panels=[panel])
        )
    return pictures


def _scatter(models: Sequence[Row], fits: Sequence[Row], scale: str) -> Panel:
    shown, unit = _SCALES[scale]
    points = [
        (shown(row["original"]), shown(row["fresh"]), row)
        for row in models
        if scale == "accuracy" or (0 < row["original"] < 1 and 0 < row["fresh"] < 1)
    ]
    marks: list[Points | Line] = []
    if points:
        every = [value for x, y, _ in points for value in (x, y)]
        whole = [min(every), max(every)]
        marks.append(Line(x=whole, y=whole, tone="faint", dashed=True, label="same score on both"))
    for row in fits:
        if (row["fresh_set"], row["items"], row["scale"]) != ("fresh", _FIRST, scale):
            continue
        x = [row["region_low"], row["region_high"]]
        factor = 100 if scale == "accuracy" else 1
        far = row["models"] != "all"
        marks.append(
            Line(
                x=[factor * at for at in x],
                y=[factor * (row["intercept"] + row["slope"] * at) for at in x],
                tone="other" if far else "plain",
                dashed=far,
                label=f"line{' without far models' if far else ''}, slope {row['slope']:.3f}",
            )
        )
    for falls in (False, True):
        own = [point for point in points if point[2]["falls"] is falls]
        if own:
            marks.append(
                Points(
                    x=[x for x, _, _ in own],
                    y=[y for _, y, _ in own],
                    names=[row["model"] for _, _, row in own] if falls else (),
                    tone="alarm" if falls else "plain",
                    label="falls further than the line" if falls else "",
                )
            )
    return Panel(title=f"{scale} scale", x=f"original{unit}", y=f"fresh{unit}", marks=marks)


def _percent(share: float) -> float:
    return 100 * share


def _probit(share: float) -> float:
    return float(ndtri(share))


_SCALES: Final[dict[str, tuple[Callable[[float], float], str]]] = {
    "accuracy": (_percent, ", %"),
    "probit": (_probit, ", normal quantile"),
}


def _residual_panel(models: Sequence[Row]) -> Panel:
    known = [row for row in models if row["residual"] == row["residual"]]
    ordered = sorted(known, key=lambda row: row["residual"])
    shown = ordered[:_MOST_RESIDUALS]
    marks: list[Points | Line] = [
        Line(x=[-0.5, max(len(shown), 1) - 0.5], y=[0, 0], tone="faint", dashed=True)
    ]
    for falls in (False, True):
        own = [(at, row) for at, row in enumerate(shown) if row["falls"] is falls]
        if own:
            marks.append(
                Points(
                    x=[at for at, _ in own],
                    y=[100 * row["residual"] for _, row in own],
                    low=[100 * row["residual_low"] for _, row in own],
                    high=[100 * row["residual_high"] for _, row in own],
                    tone="alarm" if falls else "plain",
                )
            )
    more = f" (the lowest {len(shown)} of {len(known)})" if len(shown) < len(known) else ""
    return Panel(
        title=f"From the line of the others{more}" if known else "No line of the others",
        x="",
        y="fresh score less expected, points",
        x_names=[row["model"] for row in shown],
        marks=marks,
    )


_MOST_RESIDUALS: Final = 20
