"""Draw the pictures of a study, and write them as SVG."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from contam.rescore.figures import BLUE, GREY, GRID, RED, SMALL, plain, short
from contam.study.model import Bump, Points

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes

    from contam.study.model import Chart, Panel, Tone

_COLOURS: Final[Mapping[Tone, str]] = {
    "plain": BLUE,
    "alarm": RED,
    "other": "#2c7a4b",
    "faint": GREY,
}
_PANEL: Final = (5.2, 4.4)
"""Inches of one panel."""

_MOST_NAMES: Final = 14
_MOST_LETTERS: Final = 60
"""Of all names below an x axis, beyond which they are turned."""

_LETTER: Final = 0.07
_ROW: Final = 0.2


def figure_of(picture: Chart | Bump) -> Figure:
    """The picture as a figure."""
    return _bump(picture) if isinstance(picture, Bump) else _chart(picture)


def _chart(chart: Chart) -> Figure:
    n = len(chart.panels)
    figure = Figure(figsize=(_PANEL[0] * n, _PANEL[1] + 0.4), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, panel in zip(figure.subplots(1, n, squeeze=False)[0], chart.panels, strict=True):
        _draw(axes, panel)
    figure.suptitle(plain(chart.caption), fontsize=10, x=0.01, ha="left")
    return figure


def _draw(axes: Axes, panel: Panel) -> None:
    drawn = [mark for mark in panel.marks if len(mark.x)]
    for mark in drawn:
        colour, label = _COLOURS[mark.tone], plain(mark.label) or None
        if isinstance(mark, Points):
            _draw_points(axes, mark, colour, label)
        else:
            style = "--" if mark.dashed else "-"
            axes.plot(mark.x, mark.y, style, color=colour, linewidth=1.2, label=label)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_title(plain(panel.title), fontsize=9, loc="left")
    axes.set_xlabel(plain(panel.x), fontsize=SMALL)
    axes.set_ylabel(plain(panel.y), fontsize=SMALL)
    axes.tick_params(labelsize=SMALL)
    if all(float(x).is_integer() for mark in drawn for x in mark.x):
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if panel.x_names:
        turned = sum(map(len, panel.x_names)) > _MOST_LETTERS
        axes.set_xticks(
            range(len(panel.x_names)),
            [short(name) for name in panel.x_names],
            rotation=60 if turned else 0,
            ha="right" if turned else "center",
            fontsize=SMALL,
        )
    if any(mark.label for mark in drawn):
        axes.legend(fontsize=SMALL, frameon=False, loc="best")


def _draw_points(axes: Axes, mark: Points, colour: str, label: str | None) -> None:
    x, y = np.asarray(mark.x, np.float64), np.asarray(mark.y, np.float64)
    bars = np.abs(np.array([mark.low, mark.high]) - y) if len(mark.low) else None
    axes.errorbar(x, y, bars, fmt="o", color=colour, markersize=4, elinewidth=0.8, label=label)
    named = [at for at, name in enumerate(mark.names) if name][:_MOST_NAMES]
    for at in named:
        axes.annotate(
            short(mark.names[at]),
            (x[at], y[at]),
            xytext=(5, -8),
            textcoords="offset points",
            fontsize=SMALL - 1,
            color=colour,
        )


def _bump(picture: Bump) -> Figure:
    """Ranks from left to right, 1 on top; those that move by a place or more have a colour."""
    models = list(picture.ranks)
    longest = max((len(short(name)) for name in models), default=0) + 4
    width = 2 * _LETTER * longest + 1.6 * len(picture.rankings)
    height = 1.6 + _ROW * max(4, len(models))
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    last = len(picture.rankings) - 1
    # Models stand one below the other, tied ones too, so that no two names meet.
    orders = [
        sorted(models, key=lambda model: (picture.ranks[model][at], model))
        for at in range(last + 1)
    ]
    for model, ranks in picture.ranks.items():
        fell = ranks[-1] - ranks[0]
        tone: Tone = "faint" if abs(fell) < 1 else "alarm" if fell > 0 else "plain"
        places = [order.index(model) for order in orders]
        axes.plot(
            range(last + 1), places, "-o", color=_COLOURS[tone], linewidth=1.2, markersize=3.5
        )
    axes.set_ylim(len(models) - 0.4, -0.6)
    for axis, at in ((axes, 0), (axes.secondary_yaxis("right"), -1)):
        names = [f"{short(name)}  {picture.ranks[name][at]:g}" for name in orders[at]]
        axis.set_yticks(range(len(models)), names, fontsize=SMALL)
        axis.tick_params(axis="y", length=0)
        axis.spines["right" if at else "left"].set_visible(False)
    axes.spines[["left", "right", "top"]].set_visible(False)
    axes.set_xticks(range(last + 1), [plain(name) for name in picture.rankings], fontsize=SMALL)
    axes.set_xlim(-0.05, last + 0.05)
    title = f"{plain(picture.caption)}\n(red: falls, blue: rises by a place or more)"
    axes.set_title(title, fontsize=9, loc="left")
    return figure
