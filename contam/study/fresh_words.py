"""Say in plain words what a study of a fresh set found, and plan its pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scipy.special import ndtri

from contam.study.model import Chart, Finding, Line, Panel, Points

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contam.rescore import Row


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
    mean = _mean_gap(models)
    tested = [row for row in models if not row["reference"]] or models
    lower, higher = (sum(row[f"{way}_p_holm"] < _SURE for row in tested) for way in ("gap", "rise"))
    parts = [
        f"On average {_counted(models, 'scores', 'score')} {_points(abs(mean))} "
        + ("lower" if mean >= 0 else "higher")
        + " on the fresh set than on the original one.",
        (
            f"By more than sampling explains, {lower} of {len(tested)} score lower and {higher}"
            " higher (Holm)."
        ),
    ]
    fell = sorted((row for row in models if row["falls"]), key=lambda row: row["residual"])
    if fell:
        parts.append(
            f"{_counted(fell, 'falls', 'fall')} further than the line of the others:"
            f" {_named(fell)}."
        )
    elif any(row["expected"] == row["expected"] for row in models):
        parts.append("No model is below the line fitted to the other models.")
    if rows["constat"]:
        over = [row for row in rows["constat"] if row["p_holm"] < _SURE]
        named = _named(over) or "no model"
        parts.append(f"ConStat: {named} scores more than its fresh score predicts.")
    if cleaned := [row for row in rows["models"] if row["items"] != _FIRST]:
        parts.append(f"On clean items the mean gap is {_points(_mean_gap(cleaned))}.")
    for row in rows["sets"]:
        if row["items"] == _FIRST and row["fresh_set"] != "fresh":
            closes = mean > 0 and row["mean_gap"] <= _CLOSES * mean
            parts.append(
                f"On {row['fresh_set']} it is {_points(row['mean_gap'])}: {_EASIER[closes]}"
            )
    return " ".join(parts)


_EASIER: Final = {
    True: "the gap closes where people agree on the items, so harder items explain the mean gap.",
    False: "the gap stays.",
}


def _sure(fits: Sequence[Row], models: Sequence[Row]) -> str:
    bound = max(row["sampling_bound"] for row in models)
    parts = [f"Sampling of the fresh items alone moves a score by at most {_points(bound)} (95 %)."]
    by = {(row["scale"], row["models"]): row for row in _main(fits)}
    whole = [row for (_, kept), row in by.items() if kept == "all"]
    if not whole:
        return f"{parts[0]} There is no line over models."
    parts += [
        f"On the {row['scale']} scale fresh scores rise {_slope(row)} for each point of the"
        " original."
        for row in whole
    ]
    parts.append(_reading({row["reading"] for row in whole}))
    for row in whole:
        other = by.get((row["scale"], "without far ones"), row)
        if other["reading"] != row["reading"]:
            parts.append(
                f"This depends on {other['left_out']}: without them the slope on the"
                f" {row['scale']} scale is {_slope(other)}."
            )
    return " ".join(parts)


def _reading(said: set[str]) -> str:
    """What the readings of both scales say together."""
    if unknown := [reading for reading in sorted(said) if reading.startswith("unknown")]:
        return f"Whether returns diminish is {unknown[0]}."
    if said == {"below 1"}:
        return (
            "Below 1 on both scales: returns on the original set diminish, as they do when methods"
            " are fitted to it."
        )
    if "below 1" in said:
        return "The two scales disagree, so the slope does not tell adaptivity from a harder set."
    if said == {"above 1"}:
        return (
            "Not below 1: nothing says that better models owe more of their score to the original"
            " set; an offset is a difference between the sets."
        )
    return "Their limits hold 1: diminishing returns are not shown, and not excluded."


def _change(fits: Sequence[Row], models: Sequence[Row], *, admitted: bool) -> str:
    named = any(row["reference"] for row in models)
    parts = [_HARDNESS["shown" if admitted else "not shown" if named else "no references"]]
    parts += [
        f"Models that score between {row['left_out']} and the others would show whether the line"
        " stays straight there."
        for row in _main(fits)
        if row["left_out"] and row["scale"] == "accuracy"
    ]
    return " ".join([*parts, "More fresh items would narrow every interval."])


_HARDNESS: Final = {
    "shown": "The reference models show the two sets to be equally hard within the margin, so gaps"
    " are inflation.",
    "not shown": "The reference models do not show the two sets to be equally hard within the"
    " margin, so a gap alone is no proof of inflation: more items or more equal sets could show"
    " it.",
    "no references": "The sets are not shown to be equally hard, so a gap alone is no proof of"
    " inflation: scores of reference models that cannot have seen the original set could show it.",
}


def _main(fits: Sequence[Row]) -> list[Row]:
    """The lines of the fresh set itself, over all items."""
    return [row for row in fits if (row["fresh_set"], row["items"]) == ("fresh", _FIRST)]


def _mean_gap(models: Sequence[Row]) -> float:
    return float(sum(row["gap"] for row in models) / len(models))


def _slope(row: Row) -> str:
    return f"{row['slope']:.3f} [{row['slope_low']:.3f}, {row['slope_high']:.3f}]"


_SURE: Final = 0.05


def _named(rows: Sequence[Row]) -> str:
    names = [str(row["model"]) for row in rows]
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _counted(models: Sequence[Row], does: str, do: str) -> str:
    return f"1 model {does}" if len(models) == 1 else f"{len(models)} models {do}"


def _points(share: float) -> str:
    return f"{100 * share:.2f} points"


def pictures_of(rows: Mapping[str, Sequence[Row]]) -> list[Chart]:
    """Scores on both sets, with the line and the identity, on both scales."""
    models = [row for row in rows["models"] if row["items"] == _FIRST]
    panels = [_scatter(models, rows["fits"], scale) for scale in _SCALES]
    caption = "Scores on the original and on the fresh set"
    return [Chart(name="fresh", caption=caption, panels=panels)]


_SCALES: Final = {"accuracy": ", %", "probit": ", normal quantile"}


def _scatter(models: Sequence[Row], fits: Sequence[Row], scale: str) -> Panel:
    percent = scale == "accuracy"
    shown: list[tuple[float, Row]] = []
    for row in models:
        x, y = row["original"], row["fresh"]
        if percent:
            shown.append((100 * x, {**row, "y": 100 * y}))
        elif 0 < x < 1 and 0 < y < 1:
            shown.append((float(ndtri(x)), {**row, "y": float(ndtri(y))}))
    every = [value for x, row in shown for value in (x, row["y"])]
    whole = [min(every, default=0), max(every, default=0)]
    marks: list[Points | Line] = [
        Line(x=whole, y=whole, tone="faint", dashed=True, label="same score on both")
    ]
    factor = 100 if percent else 1
    for row in _main(fits):
        if row["scale"] == scale:
            far = row["models"] != "all"
            ends = row["region_low"], row["region_high"]
            marks.append(
                Line(
                    x=[factor * at for at in ends],
                    y=[factor * (row["intercept"] + row["slope"] * at) for at in ends],
                    tone="other" if far else "plain",
                    dashed=far,
                    label=f"line{' without far models' if far else ''}, slope {row['slope']:.3f}",
                )
            )
    lower = [(x, row) for x, row in shown if row["falls"]]
    label = "falls further than the line"
    marks += [
        Points.of(((x, row) for x, row in shown if not row["falls"]), "y"),
        Points.of(lower, "y", names="model", tone="alarm", label=label if lower else ""),
    ]
    unit = _SCALES[scale]
    return Panel(title=f"{scale} scale", x=f"original{unit}", y=f"fresh{unit}", marks=marks)
