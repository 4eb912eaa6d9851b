"""Draw the shares of flagged items; lay out pictures that have a line of text for each row."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Final

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from contam.detect.labels import FLAGGED, SHOWN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from matplotlib.axes import Axes

MOST_ROWS: Final = 200
"""Rows in one picture; the tables have all."""

SMALL: Final = 8
"""Size of letters, in points."""

GREY, RED, BLUE, GRID = "#8a939c", "#b5442e", "#1f6aa5", "#d5dae0"

_COLOURS: Final = {"contaminated": RED, "suspect": "#e0a458", "not_checkable": "#c3c9cf"}
_PLOT: Final = 4.0
_LETTER: Final = 0.068
"""Inches of the plot itself, and of a letter beside it."""

_ROW: Final = 0.2
_AROUND: Final = 1.5
_LEAST_ROWS: Final = 4
_NAME: Final = 44
_GAP: Final = "\N{NO-BREAK SPACE}" * 2


class Picture(Figure):
    """A figure that notebooks show, also where nobody has set up a backend of pyplot."""

    def _repr_png_(self) -> bytes:
        drawn = io.BytesIO()
        self.savefig(drawn, format="png")
        return drawn.getvalue()


def shares(counts: Mapping[str, Mapping[str, Mapping[str, int]]]) -> Figure:
    """The share of items flagged, a bar for each benchmark and policy.

    counts  benchmark -> policy -> label -> items

    What could not be judged is drawn, too: an item without a verdict is not a clean one.
    """
    rows = [
        (benchmark, policy, labels)
        for benchmark, policies in counts.items()
        for policy, labels in policies.items()
    ]
    kept = rows[:MOST_ROWS]
    names = [f"{short(benchmark)}  {short(policy)}" for benchmark, policy, _ in kept]
    figures = [_share_text(labels) for _, _, labels in kept]
    figure, (axes,) = page([len(kept)], names, figures)
    for place, (_, _, labels) in enumerate(kept):
        begin, n = 0.0, sum(labels.values())
        for label in (label for label in SHOWN if label in _COLOURS):
            width = 100 * labels.get(label, 0) / n if n else 0.0
            axes.barh(place, width, left=begin, height=0.7, color=_COLOURS[label])
            begin += width
    write_rows(axes, names, figures)
    axes.set_xlim(left=0)
    axes.grid(axis="x", color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.set_xlabel("items, %", fontsize=SMALL)
    shown = [label for label in SHOWN if any(labels.get(label) for _, _, labels in kept)]
    figure.legend(
        handles=[
            Patch(color=_COLOURS[label], label=label.replace("_", " "))
            for label in shown
            if label in _COLOURS
        ],
        loc="outside lower left", ncols=len(_COLOURS), fontsize=SMALL, frameon=False,
    )  # fmt: skip
    more = f" (the first {len(kept)} of {len(rows)})" if len(kept) < len(rows) else ""
    axes.set_title(f"Items flagged, by benchmark and policy{more}", fontsize=10, loc="left")
    return figure


def _share_text(labels: Mapping[str, int]) -> str:
    n, n_flagged = sum(labels.values()), sum(labels.get(label, 0) for label in FLAGGED)
    share = f"{100 * n_flagged / n:.1f} %" if n else "none"
    return f"{share}  {n_flagged:,} of {n:,}"


def page(
    n_rows: Sequence[int], left: Sequence[str], right: Sequence[str]
) -> tuple[Figure, list[Axes]]:
    """A figure of plots one below the other, each with room for a line of text for each row.

    n_rows  of each plot;  left, right  the texts of all rows, by which it is as wide as it must be
    """
    beside = sum(max(map(len, texts), default=0) for texts in (left, right))
    heights = [max(_LEAST_ROWS, n) for n in n_rows]
    around = _AROUND * len(heights)
    figure = Picture(
        figsize=(_PLOT + _LETTER * beside, around + _ROW * sum(heights)), layout="constrained"
    )
    FigureCanvasAgg(figure)
    plots = figure.subplots(len(heights), 1, squeeze=False, height_ratios=heights)
    for axes in plots[:, 0]:
        axes.spines["top"].set_visible(False)
        axes.spines["right"].set_visible(False)
    return figure, list(plots[:, 0])


def write_rows(axes: Axes, left: Sequence[str], right: Sequence[str]) -> None:
    """Write a line of text on both sides of each row."""
    places = range(len(left))
    # An SVG makes one of several plain spaces.
    left, right = ([text.replace("  ", _GAP) for text in texts] for texts in (left, right))
    axes.set_yticks(places, left, fontsize=SMALL)
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", labelsize=SMALL)
    axes.set_ylim(len(left) - 0.4, -0.6)
    other = axes.secondary_yaxis("right")
    other.set_yticks(places, right, fontsize=SMALL)
    other.tick_params(length=0)
    other.spines["right"].set_visible(False)


def short(name: str) -> str:
    """A name in one line; of a long one both ends."""
    text = "".join(c if c.isprintable() else " " for c in str(name))
    if len(text) > _NAME:
        text = f"{text[: _NAME // 2 - 1]}…{text[-_NAME // 2 :]}"
    return plain(text)


def plain(text: str) -> str:
    """A dollar sign is no formula."""
    return text.replace("$", r"\$")
