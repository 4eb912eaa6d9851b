"""Draw the pictures of a re-scoring so that 3 or 100 models stay readable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes

    from contam.rescore import Row


MOST_ROWS: Final = 200
"""Rows in one picture; the tables have all."""

SMALL: Final = 8
"""Size of letters, in points."""

GREY, RED, BLUE, GRID = "#8a939c", "#b5442e", "#1f6aa5", "#d5dae0"

_PLOT: Final = 4.0
_LETTER: Final = 0.068
"""Inches of the plot itself, and of a letter beside it."""

_ROW: Final = 0.2
_AROUND: Final = 1.5
_LEAST_ROWS: Final = 4
_NAME: Final = 44
_GAP: Final = "\N{NO-BREAK SPACE}" * 2

_LABELLED: Final = 12
"""Curves with a name and a colour; the others stay grey."""


def forest(rows: Sequence[Row]) -> Figure:
    """The gap of each model with its interval, and how far it goes beyond the field's."""
    sign = _sign(rows)
    ordered = sorted(rows, key=lambda row: (-sign * row["gap"], row["model"]))
    kept = ordered[:MOST_ROWS]
    names, figures = [short(row["model"]) for row in kept], [_gap_text(row) for row in kept]
    figure, axes = page(len(kept), names, figures)
    axes.axvline(0, color="black", linewidth=0.8)
    beyond = any(row["adjusted"] is not None for row in kept)
    for place, row in enumerate(kept):
        for shown, colour, beside in (("gap", GREY, -0.15), ("adjusted", BLUE, 0.15)):
            if row[shown] is not None:
                own = [row[name] for name in (shown, f"{shown}_low", f"{shown}_high")]
                better = own[1] is not None and (own[1] > 0 if sign > 0 else own[2] < 0)
                strong = RED if better and shown == "adjusted" else colour
                _draw_interval(axes, place + beside * beyond, own, strong)
    write_rows(axes, names, figures)
    axes.grid(axis="x", color=GRID, linewidth=0.6)
    axes.set_xlabel(
        "gap: score on flagged items less score on clean items, 95 % interval\n"
        "(grey: as scored; blue, red: beyond the field's, red where that is a gain)"
        if beyond
        else "gap: score on flagged items less score on clean items, 95 % interval\n"
        "(no field to tell it from easier items)",
        fontsize=SMALL,
    )
    _title(axes, rows, "Gap of flagged items", len(kept))
    return figure


def _draw_interval(axes: Axes, place: float, figures: Sequence[Any], colour: str) -> None:
    """An estimate, and its limits where there are both."""
    middle, low, high = figures
    if low is not None and high is not None:
        axes.plot([low, high], [place, place], color=colour, linewidth=1.4)
    axes.plot(middle, place, "o", color=colour, markersize=4.5)


def _gap_text(row: Row) -> str:
    found = []
    for name in ("gap", "adjusted"):
        if (value := row[name]) is not None:
            low, high = row[f"{name}_low"], row[f"{name}_high"]
            limits = "" if low is None or high is None else f"  [{low:+.3f}, {high:+.3f}]"
            found.append(f"{value:+.3f}{limits}")
    return "  →  ".join(found)


def slopes(rows: Sequence[Row]) -> Figure:
    """Each model's place on all items, left, and on the clean ones, right.

    Models stand one below the other on both sides, tied ones too, so that no two names meet; the
    rank and its interval are written beside.
    """
    left = sorted(rows, key=lambda row: (row["rank_full"], row["model"]))[:MOST_ROWS]
    place = {row["model"]: at for at, row in enumerate(left)}
    right = sorted(left, key=lambda row: (row["rank_clean"], place[row["model"]]))
    names = [f"{short(row['model'])}  {text}" for row, text in _with_ranks(left, "full")]
    others = [f"{text}  {short(row['model'])}" for row, text in _with_ranks(right, "clean")]
    figure, axes = page(len(left), names, others)
    for at, row in enumerate(right):
        begin = place[row["model"]]
        fell = row["rank_clean"] - row["rank_full"]
        colour = GREY if abs(fell) < 1 else RED if fell > 0 else BLUE
        beyond = row["rank_full_lo"] is not None and not (
            row["rank_full_lo"] <= row["rank_clean"] <= row["rank_full_hi"]
        )
        width = 2.2 if beyond else 1.0
        axes.plot([0, 1], [begin, at], "-o", color=colour, linewidth=width, markersize=3.5)
    write_rows(axes, names, others)
    for side in ("left", "right"):
        axes.spines[side].set_visible(False)
    axes.set_xlim(-0.02, 1.02)
    axes.set_xticks([0, 1], ["all items", "clean items"], fontsize=SMALL + 1)
    axes.tick_params(axis="x", length=0)
    axes.set_xlabel(
        "score, rank and its 95 % interval\n"
        "(red: falls, blue: rises by a place or more, thick: beyond its interval)",
        fontsize=SMALL,
    )
    _title(axes, rows, "Ranking on all and on clean items", len(left))
    return figure


def _with_ranks(rows: Sequence[Row], side: str) -> list[tuple[Row, str]]:
    """Each row with its score, rank and rank interval, in columns."""
    ranks = [f"{row[f'rank_{side}']:g}" for row in rows]
    spans = [
        ""
        if row[f"rank_{side}_lo"] is None
        else f"[{row[f'rank_{side}_lo']:g}\N{EN DASH}{row[f'rank_{side}_hi']:g}]"
        for row in rows
    ]
    wide, wider = max(map(len, ranks)), max(map(len, spans))
    return [
        (row, f"{row[side]:.3f}  {_padded(rank, wide)} {_padded(span, wider)}")
        for row, rank, span in zip(rows, ranks, spans, strict=True)
    ]


def _padded(text: str, width: int) -> str:
    """Text filled up at its left with spaces as wide as a digit."""
    return "\N{FIGURE SPACE}" * (width - len(text)) + text


def curves(rows: Sequence[Row]) -> Figure:
    """Gain against the share flagged as the threshold moves, the policy's own threshold marked."""
    sign = _sign(rows)
    by_model: dict[str, list[Row]] = {}
    for row in sorted(rows, key=lambda row: (row["model"], row["share_flagged"])):
        by_model.setdefault(row["model"], []).append(row)
    marks = {model: _at_threshold(own) for model, own in by_model.items()}
    order = sorted(
        by_model, key=lambda model: (-sign * (marks[model] or by_model[model][-1])["epg"], model)
    )
    named = order[:_LABELLED]
    figure, axes = page(16, [" " * 20], [short(model) for model in named])
    axes.axhline(0, color="black", linewidth=0.8, zorder=2.5)
    for model in reversed(order):
        own = by_model[model]
        colour = f"C{named.index(model) % 10}" if model in named else GRID
        x, y = [100 * row["share_flagged"] for row in own], [row["epg"] for row in own]
        label, width = (short(model), 1.3) if model in named else (None, 0.7)
        axes.plot(x, y, "-", color=colour, linewidth=width, label=label)
        mark = marks[model]
        if mark and model in named:
            axes.plot(100 * mark["share_flagged"], mark["epg"], "o", color=colour, markersize=4.5)
        for best in (row for row in own if row["best"] and model in named):
            axes.plot(100 * best["share_flagged"], best["epg"], "*", color=colour, markersize=10)
    _chosen_line(axes, [mark for mark in marks.values() if mark])
    axes.grid(color=GRID, linewidth=0.6)
    axes.set_xlabel(
        "items flagged, %\n(dot: the policy's threshold, star: the threshold with the largest z)",
        fontsize=SMALL,
    )
    axes.set_ylabel("gain: full less clean", fontsize=SMALL)
    axes.tick_params(labelsize=SMALL)
    axes.legend(
        loc="upper left", bbox_to_anchor=(1, 1), frameon=False, fontsize=SMALL, reverse=True
    )
    left = len(order) - len(named)
    _title(axes, rows, "Gain as the threshold moves", len(order))
    if left:
        axes.text(
            0.01, 0.01, f"grey: {left} other models", transform=axes.transAxes, fontsize=SMALL
        )
    return figure


def _at_threshold(rows: Sequence[Row]) -> Row | None:
    """What the policy's threshold flags: the lowest threshold of the sweep that is not below it."""
    chosen = rows[0]["policy_threshold"]
    if chosen is None:
        return None
    above = [row for row in rows if row["threshold"] >= chosen]
    return max(above, key=lambda row: float(row["share_flagged"])) if above else None


def _chosen_line(axes: Axes, marks: Sequence[Row]) -> None:
    if not marks:
        return
    shares = [round(100 * row["share_flagged"], 6) for row in marks]
    usual = max(sorted(set(shares)), key=shares.count)
    axes.axvline(usual, color="black", linewidth=0.9, linestyle="--")
    left, right = axes.get_xlim()
    before = usual > (left + right) / 2
    axes.annotate(
        f"threshold {marks[0]['policy_threshold']:g}: {usual:.1f} % flagged",
        (usual, 1),
        xycoords=("data", "axes fraction"),
        xytext=(-4 if before else 4, -10),
        textcoords="offset points",
        ha="right" if before else "left",
        fontsize=SMALL,
    )


def _title(axes: Axes, rows: Sequence[Row], what: str, n_shown: int) -> None:
    first = rows[0]
    way = "" if first["higher_is_better"] else " (lower is better)"
    runs = f", {first['setup']}" if first.get("setup") else ""
    n_models = len({row["model"] for row in rows})
    part = f", {n_shown} of {n_models} models" if n_shown < n_models else ""
    text = f"{what}\n{first['benchmark']}, {first['metric']}{way}, by {first['policy']}{runs}{part}"
    axes.set_title(plain(text), fontsize=10, loc="left")


def _sign(rows: Sequence[Row]) -> int:
    return 1 if rows[0]["higher_is_better"] else -1


DRAWN: Final[dict[str, Callable[[Sequence[Row]], Figure]]] = {
    "gain": forest,
    "ranks": slopes,
    "sweep": curves,
}
"""How each kind of picture is drawn."""


def save(figures: Iterable[tuple[str, Figure]], folder: Path) -> None:
    """Write figures, made as they are asked for, as NAME.svg; equal ones give equal bytes."""
    with rc_context(
        {
            "svg.hashsalt": "contam",
            "svg.fonttype": "none",
            "figure.autolayout": False,
            "figure.constrained_layout.use": False,
        }
    ):
        for name, figure in figures:
            # As long as an engine is set, saving a file draws it twice.
            if (engine := figure.get_layout_engine()) is not None:
                engine.execute(figure)
            figure.set_layout_engine(None)
            figure.savefig(folder / f"{name}.svg", metadata={"Date": None})


def page(n_rows: int, left: Sequence[str], right: Sequence[str]) -> tuple[Figure, Axes]:
    """A figure of one plot, with room for a line of text on both sides of each row.

    left, right  the texts of all rows, by which it is as wide as it must be
    """
    beside = sum(max(map(len, texts), default=0) for texts in (left, right))
    height = _AROUND + _ROW * max(_LEAST_ROWS, n_rows)
    figure = Figure(figsize=(_PLOT + _LETTER * beside, height), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    axes.spines["top"].set_visible(False)
    axes.spines["right"].set_visible(False)
    return figure, axes


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
