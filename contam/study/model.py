"""Define the result of a study, and write it: finding, refusals, tables, pictures, how made.

Pictures are defined apart from how they are drawn.
"""

from __future__ import annotations

import json
import math
import time
from dataclasses import asdict, dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from contam.detect.notebook import table_html
from contam.extras import require
from contam.facts import counted
from contam.rescore.folder import Tables, write_folder
from contam.rescore.summary import cell, small, table
from contam.tables import schemas

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from contam.rescore import Row
    from contam.tables.schemas import Table

    Tone = Literal["plain", "alarm", "other", "faint"]
    from pathlib import Path


STUDY_FORMAT: Final = 1


#: Of dots that stand out, or do not.
TONES: Final[Mapping[bool, Tone]] = {False: "plain", True: "alarm"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Points:
    """Dots of a chart, with names beside those that have one and bars where limits are given."""

    x: Sequence[float]
    y: Sequence[float]
    names: Sequence[str] = ()
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    tone: Tone = "plain"
    label: str = ""

    @classmethod
    def of(
        cls,
        placed: Iterable[tuple[float, Row]],
        y: str,
        *,
        limits: str = "",
        names: str = "",
        factor: float = 1,
        tone: Tone = "plain",
        label: str = "",
    ) -> Points:
        """Rows as dots, each with its x; empty cells are no dots.

        y, names  columns;  limits  how the columns of the limits begin;  factor  of all values
        """
        known = [(x, row) for x, row in placed if row[y] is not None and row[y] == row[y]]
        low, high = (
            [factor * row[f"{limits}_{end}"] for _, row in known] if limits else ()
            for end in ("low", "high")
        )
        values = [factor * row[y] for _, row in known]
        at = [x for x, _ in known]
        named = [row[names] for _, row in known] if names else ()
        return cls(x=at, y=values, names=named, low=low, high=high, tone=tone, label=label)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line through points in order."""

    x: Sequence[float]
    y: Sequence[float]
    tone: Tone = "plain"
    dashed: bool = False
    label: str = ""

    @classmethod
    def level(cls, n: int, y: float = 0.0) -> Line:
        """A faint line behind n places of the x axis."""
        return cls(x=[-0.5, max(n, 1) - 0.5], y=[y, y], tone="faint", dashed=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One pair of axes.

    x_names  what stands at 0, 1, ... of the x axis, where that is no number
    """

    title: str
    x: str
    y: str
    marks: Sequence[Points | Line]
    x_names: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A picture of panels side by side; `name` is that of its files."""

    name: str
    caption: str
    panels: Sequence[Panel]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bump:
    """A picture of how models change their ranks from one ranking to the next.

    rankings  their names, in order;  ranks  model -> its rank in each of them
    """

    name: str
    caption: str
    rankings: Sequence[str]
    ranks: Mapping[str, Sequence[float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """The answer in plain sentences: what was found, how sure it is, what would change it."""

    found: str
    sure: str
    change: str

    def __str__(self) -> str:
        return f"{self.found} {self.sure} {self.change}"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Something that is not estimated, and why."""

    what: str
    reason: str


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Study(Tables):
    """A finished study.

    name      of the study: "fresh", "preparation", ...
    refusals  what is not estimated, each with its reason
    columns   of the main table, those that a terminal and a notebook show; all where none is named
    run       JSON-able: settings, inputs by digest, notes and, with verdicts, their coverage
    """

    name: str
    finding: Finding
    refusals: Sequence[Refusal] = ()
    pictures: Sequence[Chart | Bump] = ()
    columns: Sequence[str] = ()
    run: Mapping[str, Any] = field(default_factory=dict)

    def _repr_html_(self) -> str:
        """The finding, what was refused, and the main table, for notebooks."""
        names = self.shown_columns()
        cells = ([shown(row[name], name) for name in names] for row in self.rows()[:_MOST_SHOWN])
        refused = "".join(
            f"<li>{escape(refusal.what)}: {escape(refusal.reason)}</li>"
            for refusal in self.refusals
        )
        return (
            f"<p>{escape(str(self.finding))}</p>"
            f"{f'<p>Not estimated:</p><ul>{refused}</ul>' if refused else ''}"
            f"{table_html(names, cells)}"
        )

    def made(self) -> dict[str, Any]:
        """What run.json says of how it was made."""
        return {"tool": "contam", "format": STUDY_FORMAT, "study": self.name, **self.run}

    def shown_columns(self) -> tuple[str, ...]:
        """The columns of the main table that are shown where there is little room."""
        return tuple(self.columns or self.to_arrow().column_names)


_MOST_SHOWN: Final = 30


def rows_of(columns: Mapping[str, Sequence[Any] | NDArray[Any]]) -> list[Row]:
    """Columns of one length as rows."""
    values = (np.asarray(column).tolist() for column in columns.values())
    return [dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True)]


def table_of(rows: Iterable[Mapping[str, Any]], columns: Mapping[str, type]) -> Table:
    """Rows as a table.

    columns  name -> str, int, float or bool, in order; only numbers of type float may be missing
    """
    kept = list(rows)
    return schemas.table_of(
        {name: [row[name] for row in kept] for name in columns},
        schemas.schema_of((name, kind, kind is float) for name, kind in columns.items()),
    )


def shown(value: object, column: str = "") -> str:
    """A value of a table for people; the name of its column tells a p apart."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        if column == "p" or column.startswith("p_") or column.endswith(("_p", "_holm", "_bh")):
            return small(value)
        return figure(value)
    return f"{value:,}" if isinstance(value, int) else str(value)


def figure(value: float) -> str:
    """Three digits behind the point, or three that count of what is smaller or larger."""
    if value and not _LEAST <= abs(value) < _MOST:
        return f"{value:.3g}"
    return f"{value:.3f}".replace("-0.000", "0.000")


_LEAST: Final = 1e-3
_MOST: Final = 1e5


SUMMARY: Final = "summary.md"
TABLES: Final = "study.json"
_MOST_ROWS: Final = 50


def write_study(study: Study, out: str | Path, *, overwrite: bool = False) -> Path:
    """Write tables, summary and pictures into a folder; run.json is last and has their digests.

    Raises OutputError, and MissingExtraError without matplotlib.
    """
    require("scores", "matplotlib")
    from contam.rescore.figures import save
    from contam.study.pictures import figure_of

    def write(folder: Path) -> None:
        (folder / TABLES).write_text(json.dumps(tree(study), indent=1) + "\n", "ascii")
        (folder / SUMMARY).write_text(markdown(study), encoding="utf-8")
        save(((one.name, figure_of(one)) for one in study.pictures), folder)

    others = [TABLES, SUMMARY, *(f"{one.name}.svg" for one in study.pictures)]
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    run = {**study.made(), "timings": {"written": now}}
    return write_folder(out, study, others, write, run, overwrite=overwrite)


def tree(study: Study) -> dict[str, Any]:
    """The study as JSON can say it: finding, refusals, tables as rows, how it was made."""
    return {
        "study": study.name,
        "finding": asdict(study.finding),
        "refused": [asdict(one) for one in study.refusals],
        "tables": {name: [_plain(row) for row in study.rows(name)] for name in study.tables},
        "run": study.made(),
    }


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    """JSON has no infinite number."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in row.items()
    }


def markdown(study: Study) -> str:
    """The summary: finding, refusals, pictures, the first rows of every table."""
    found = study.finding
    lines = [
        *(f"# Study: {study.name}", "", cell(found.found), ""),
        *(f"**How sure:** {cell(found.sure)}", ""),
        *(f"**What would change it:** {cell(found.change)}", ""),
    ]
    if study.refusals:
        reasons = (f"- {cell(one.what)}: {cell(one.reason)}" for one in study.refusals)
        lines += ["## Not estimated", "", *reasons, ""]
    for picture in study.pictures:
        lines += [f"![{cell(picture.caption)}]({picture.name}.svg)", ""]
    for name in study.tables:
        rows = study.rows(name)
        lines += [f"## {name}", ""]
        head = study.tables[name].column_names
        body = [[shown(value, key) for key, value in row.items()] for row in rows[:_MOST_ROWS]]
        lines += table(head, body)
        if len(rows) > _MOST_ROWS:
            lines += [f"{counted(len(rows) - _MOST_ROWS, 'more row')} in `{name}.parquet`", ""]
    if notes := study.run.get("notes"):
        lines += ["## Notes", "", *(f"- {cell(note)}" for note in notes), ""]
    return "\n".join(lines)
