"""Write the pictures of a re-scoring as SVG."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from contam.tables import schemas

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

    from matplotlib.figure import Figure

    from contam.rescore import Row
    from contam.tables.schemas import Table


GAIN, RANKS, SWEEP = "gain", "ranks", "sweep"
SHOWS: Final = {
    GAIN: "Gap of each model, flagged less clean, as scored and beyond the field",
    RANKS: "Rank on all and on clean items",
    SWEEP: "Gain as the threshold of the policy moves",
}
"""What each kind of picture shows, in the order they are shown in."""

_OF: Final = ("benchmark", "metric", "policy", "setup")


@dataclass(frozen=True, slots=True)
class Plot:
    """One picture: what it shows, and the rows it is made of.

    name  of its files, without what says their kind
    kind  one of `SHOWS`; setup  which runs it is of, "" for all
    """

    name: str
    kind: str
    rows: list[Row]
    benchmark: str
    metric: str
    policy: str
    setup: str

    @property
    def caption(self) -> str:
        """What it shows, of what."""
        runs = f", runs with {self.setup}" if self.setup else ""
        return f"{SHOWS[self.kind]}: {self.benchmark}, {self.metric}, by {self.policy}{runs}"


def is_shown(row: Mapping[str, Any], run: Mapping[str, Any]) -> bool:
    """Whether pictures and the terminal show a row of this benchmark and metric, by run.json."""
    every, own = run["parameters"]["all_metrics"], run["metrics"]
    return bool(every or own[row["benchmark"]]["shown"] == row["metric"])


def draw(plots: Iterable[Plot], folder: Path) -> None:
    """Write one figure for each benchmark, metric and policy and each kind of plot."""
    from contam.rescore.export.figures import DRAWN

    with steady():
        for plot in plots:
            save_figure(DRAWN[plot.kind](plot.rows), folder / plot.name)


def steady() -> AbstractContextManager[None]:
    """Settings of matplotlib under which equal figures give equal bytes, with no display."""
    import matplotlib as mpl

    return mpl.rc_context(
        {
            "svg.hashsalt": "contam",
            "svg.fonttype": "none",
            "figure.autolayout": False,
            "figure.constrained_layout.use": False,
        }
    )


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure as PATH.svg, under `steady`."""
    # As long as an engine is set, saving a file draws it twice.
    if (engine := figure.get_layout_engine()) is not None:
        engine.execute(figure)
    figure.set_layout_engine(None)
    figure.savefig(path.with_name(f"{path.name}.svg"), metadata={"Date": None})


def planned(tables: Mapping[str, Table], run: Mapping[str, Any]) -> list[Plot]:
    """The figures for these tables "scores", "rankings" and "sweep", of the metrics shown.

    run  the content of run.json; without its `least` clean items nothing is drawn of a score
    """
    least = run["parameters"]["least"]
    scores = [row for row in schemas.rows(tables["scores"]) if row["subset_by"] in ("all", "group")]
    sources = {
        GAIN: [row for row in scores if row["gap"] is not None and row["n_clean"] >= least],
        RANKS: [row for row in schemas.rows(tables["rankings"]) if row["rank_clean"] is not None],
        SWEEP: [
            row
            for row in schemas.rows(tables["sweep"])
            if _n_clean(row) >= least and row["epg"] is not None
        ],
    }
    found = []
    taken: set[str] = set()
    for kind, rows in sources.items():
        for key, group in grouped(rows, *_OF).items():
            if not is_shown(group[0], run):
                continue
            parts = [kind, *(re.sub(r"[^A-Za-z0-9]+", "_", part) for part in key if part)]
            stem = name = "-".join(parts)
            number = 2
            while name in taken:
                name, number = f"{stem}-{number}", number + 1
            taken.add(name)
            found.append(Plot(name, kind, group, *key))
    return found


def _n_clean(row: Mapping[str, Any]) -> int:
    """Items below the threshold of a row of the sweep; every threshold flags some."""
    n_flagged, share = int(row["n_flagged"]), float(row["share_flagged"])
    return round(n_flagged / share) - n_flagged


def grouped(rows: Iterable[Row], *names: str) -> dict[tuple[str, ...], list[Row]]:
    """Rows by the values of some columns, "" for one that is not there; ascending."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row.get(name, "") for name in names), []).append(row)
    return dict(sorted(groups.items()))
