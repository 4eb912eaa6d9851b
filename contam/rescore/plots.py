"""Plots of a re-scoring as SVG and PNG: full against clean, sweeps, moves of rank."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from contam.tables import schemas

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from contam.tables.schemas import Table

_DPI: Final = 150
_NAMED: Final = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """One figure: what it shows, and the rows it is made of.

    name  of its files, without what says their kind
    kind  "full-and-clean", "sweep" or "ranks"
    """

    name: str
    kind: str
    benchmark: str
    metric: str
    policy: str
    rows: list[dict[str, Any]]


def plot_names(tables: Mapping[str, Table], least: int) -> list[str]:
    """The files that `draw` writes, in order."""
    return [f"{one.name}.{suffix}" for one in planned(tables, least) for suffix in ("svg", "png")]


def draw(tables: Mapping[str, Table], folder: Path, least: int) -> None:
    """Write one figure for each benchmark, metric and policy and each kind of plot."""
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    # No display, and equal bytes for equal figures.
    with mpl.rc_context({"svg.hashsalt": "contam", "svg.fonttype": "none"}):
        for one in planned(tables, least):
            figure = Figure(figsize=(6.4, 4.8), layout="constrained")
            FigureCanvasAgg(figure)
            _KINDS[one.kind](figure.subplots(), one.rows)
            _save(figure, folder / one.name)


def _save(figure: Figure, path: Path) -> None:
    figure.savefig(path.with_name(f"{path.name}.svg"), metadata={"Date": None})
    figure.savefig(path.with_name(f"{path.name}.png"), dpi=_DPI, metadata={"Software": None})


def planned(tables: Mapping[str, Table], least: int) -> list[Plot]:
    """The figures for these tables: "scores", "sweep" and "rankings".

    least  clean items without which nothing is drawn of a score
    """
    scores = [row for row in schemas.rows(tables["scores"]) if row["subset_by"] == "all"]
    sources = {
        "full-and-clean": [
            row for row in scores if row["clean"] is not None and row["n_clean"] >= least
        ],
        "sweep": [row for row in schemas.rows(tables["sweep"]) if _n_clean(row) >= least],
        "ranks": [row for row in schemas.rows(tables["rankings"]) if row["rank_clean"] is not None],
    }
    found = []
    taken: set[str] = set()
    for kind, rows in sources.items():
        for key, group in _grouped(rows):
            stem = "-".join([kind, *(re.sub(r"[^A-Za-z0-9]+", "_", part) for part in key)])
            name = stem
            number = 2
            while name in taken:
                name, number = f"{stem}-{number}", number + 1
            taken.add(name)
            benchmark, metric, policy = key
            found.append(
                Plot(
                    name=name,
                    kind=kind,
                    benchmark=benchmark,
                    metric=metric,
                    policy=policy,
                    rows=group,
                )
            )
    return found


def _n_clean(row: Mapping[str, Any]) -> int:
    """Items below the threshold of a row of the sweep; every threshold flags some."""
    n_flagged, share = int(row["n_flagged"]), float(row["share_flagged"])
    return round(n_flagged / share) - n_flagged


def _grouped(
    rows: Iterable[dict[str, Any]],
) -> list[tuple[tuple[str, str, str], list[dict[str, Any]]]]:
    groups: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for row in rows:
        key = (row["benchmark"], row["metric"], row["policy"])
        groups.setdefault(key, []).append(row)
    return sorted(groups.items())


def _title(axes: Axes, rows: list[dict[str, Any]]) -> None:
    one = rows[0]
    text = f"{one['benchmark']}, {one['metric']}, by {one['policy']}"
    axes.set_title(text.replace("$", r"\$"), fontsize=10)


def _full_and_clean(axes: Axes, rows: list[dict[str, Any]]) -> None:
    """Clean against full with intervals; below the diagonal a model loses by cleaning."""
    _title(axes, rows)
    values = [value for row in rows for value in (row["full"], row["clean"])]
    low, high = min(values), max(values)
    room = 0.05 * (high - low) + 0.01
    axes.plot([low - room, high + room], [low - room, high + room], color="0.7", linewidth=1)
    for row in rows:
        axes.errorbar(
            row["full"],
            row["clean"],
            xerr=_arms(row, "full"),
            yerr=_arms(row, "clean"),
            fmt="o",
            markersize=4,
            linewidth=1,
            color="C0",
        )
        if len(rows) <= _NAMED:
            label = str(row["model"]).replace("$", r"\$")
            axes.annotate(
                label,
                (row["full"], row["clean"]),
                textcoords="offset points",
                xytext=(5, -9),
                fontsize=7,
            )
    axes.set_xlabel("score on all items")
    axes.set_ylabel("score on clean items")


def _arms(row: dict[str, Any], name: str) -> list[list[float]] | None:
    low, high = row[f"{name}_lo"], row[f"{name}_hi"]
    if low is None or high is None:
        return None
    return [[max(0.0, row[name] - low)], [max(0.0, high - row[name])]]


def _sweep(axes: Axes, rows: list[dict[str, Any]]) -> None:
    """Gain against the share flagged as the threshold moves."""
    _title(axes, rows)
    for model in sorted({row["model"] for row in rows}):
        points = sorted(
            (row["share_flagged"], row["epg"])
            for row in rows
            if row["model"] == model and row["epg"] is not None
        )
        axes.plot(
            [100 * share for share, _ in points],
            [gain for _, gain in points],
            marker=".",
            linewidth=1,
            label=str(model).replace("$", r"\$"),
        )
    axes.axhline(0, color="0.7", linewidth=1)
    axes.set_xlabel("items flagged, %")
    axes.set_ylabel("gain: full - clean")
    if len({row["model"] for row in rows}) <= _NAMED:
        axes.legend(fontsize=7)


def _ranks(axes: Axes, rows: list[dict[str, Any]]) -> None:
    """Each model's place on all items and on the clean ones."""
    _title(axes, rows)
    names: dict[float, list[str]] = {}
    for row in rows:
        moved = row["rank_full"] != row["rank_clean"]
        axes.plot(
            [0, 1],
            [row["rank_full"], row["rank_clean"]],
            marker="o",
            markersize=4,
            color="C3" if moved else "0.5",
        )
        names.setdefault(row["rank_clean"], []).append(str(row["model"]).replace("$", r"\$"))
    for rank, models in names.items():
        label = ", ".join(models)
        axes.annotate(label, (1, rank), textcoords="offset points", xytext=(8, -3), fontsize=7)
    axes.set_yticks(range(1, len(rows) + 1) if len(rows) <= _NAMED else [1, len(rows)])
    axes.set_xticks([0, 1], ["all items", "clean items"])
    axes.set_xlim(-0.2, 1.8)
    axes.invert_yaxis()
    axes.set_ylabel("rank")


_KINDS: Final = {"full-and-clean": _full_and_clean, "sweep": _sweep, "ranks": _ranks}
