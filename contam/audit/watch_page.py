"""Show the history of a watch: control charts, cohorts by month, what changed, the gate."""

from __future__ import annotations

import base64
from html import escape
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contam.audit.spec import TOGETHER
from contam.detect.notebook import table_html
from contam.study.model import (
    STUDY_FORMAT,
    Chart,
    Finding,
    Line,
    Panel,
    Points,
    Refusal,
    Study,
    table_of,
)
from contam.study.write import shown

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from contam.audit.diff import Difference
    from contam.audit.facts import Facts
    from contam.audit.gate.decide import GateVerdict

    Row = dict[str, Any]

LEAST_RUNS: Final = 8
"""Runs before the newest that limits need."""

_WIDTH: Final = 2.66
"""Three sigma over the mean moving range of two: 3 / 1.128 (Shewhart; individuals chart)."""

_MOST_CHARTS: Final = 6
_MOST_ROWS: Final = 60
CHARTS: Final = {
    "figure": str, "benchmark": str, "policy": str, "model": str, "metric": str, "runs": int,
    "value": float, "before": float, "centre": float, "low": float, "high": float, "out": bool,
}  # fmt: skip
HISTORY: Final = {
    "run": int, "at": str, "status": str, "changed": bool, "complete": bool, "gate": str,
    "searched": int, "kept": int, "said": str,
}  # fmt: skip
COHORTS: Final = {"benchmark": str, "policy": str, "month": str, "flagged": int, "share": float}
CHANGES: Final = {"what": str, "of": str, "before": str, "after": str}
RULES: Final = {"rule": str, "status": str, "said": str}
_KEY: Final = ("figure", "benchmark", "policy", "model", "metric")


def study_of(
    runs: Sequence[Row],
    figures: Sequence[Row],
    facts: Facts,
    difference: Difference | None,
    gate: GateVerdict | None,
) -> Study:
    """The history as a study: what the newest run found, beside all runs before it."""
    charts, pictures = _charts(figures)
    cohorts = list(_cohorts(facts))
    outside = [row for row in charts if row["out"]]
    newest = runs[-1]
    found = f"Run {newest['run']}: {newest['said']}. {facts.headline.text}"
    if outside:
        found += f" Outside of the limits of the runs before: {_named(outside)}."
    refused = []
    if short := [row for row in charts if np.isnan(row["low"])]:
        refused.append(
            Refusal(
                f"control limits of {len(short)} figures",
                f"they have fewer than {LEAST_RUNS} changed runs before the newest",
            )
        )
    if gate is not None:
        failed = [one.rule for one in gate.outcomes if one.status != "pass"]
        found += " The gate passes." if gate.passed else f" The gate fails: {'; '.join(failed)}."
    sure = (
        "Limits are three sigma of the moving range over the runs before. With 8 runs one figure in"
        " 32 lies outside by chance, with 25 one in 127: of many figures some do."
    )
    if not newest["complete"]:
        sure = f"Part of the corpora was not read, so clean is not certain. {sure}"
    return Study(
        name="watch",
        finding=Finding(
            found=found,
            sure=sure,
            change="A new shard, a new version of a benchmark or new logs: the next run audits"
            " those, and keeps the rest.",
        ),
        tables={
            "history": table_of(
                [{name: row[name] for name in HISTORY} for row in reversed(runs)], HISTORY
            ),
            "charts": table_of(charts, CHARTS),
            "cohorts": table_of(cohorts, COHORTS),
            "changes": table_of(_changes(difference), CHANGES),
            "rules": table_of(
                [
                    {"rule": one.rule, "status": one.status, "said": one.said}
                    for one in (gate.outcomes if gate else ())
                ],
                RULES,
            ),
        },
        refusals=refused,
        pictures=[*pictures, *_cohort_pictures(cohorts)],
        columns=tuple(HISTORY),
        run={
            "tool": "contam",
            "format": STUDY_FORMAT,
            "study": "watch",
            "pack": newest["digest"],
            "notes": [],
        },
    )


def limits(values: Sequence[float]) -> tuple[float, float, float]:
    """Centre and limits of an individuals chart over runs; nan for fewer than `LEAST_RUNS`."""
    if len(values) < LEAST_RUNS:
        return (float("nan"),) * 3
    points = np.asarray(values, np.float64)
    centre = float(points.mean())
    half = _WIDTH * float(np.abs(np.diff(points)).mean())
    return centre, centre - half, centre + half


def _charts(figures: Sequence[Row]) -> tuple[list[Row], list[Chart]]:
    """A row for each figure of the newest run that changed, and pictures of those that matter."""
    series: dict[tuple[str, ...], list[Row]] = {}
    for row in figures:
        if row["value"] is not None:
            series.setdefault(tuple(row[name] for name in _KEY), []).append(row)
    newest = max((row["run"] for row in figures), default=0)
    rows: list[Row] = []
    drawn = []
    for key, own in series.items():
        if own[-1]["run"] != newest:
            continue
        values = [float(row["value"]) for row in own]
        centre, low, high = limits(values[:-1])
        out = not np.isnan(low) and not low - _HAIR <= values[-1] <= high + _HAIR
        row = {
            **dict(zip(_KEY, key, strict=True)),
            "runs": len(own),
            "value": values[-1],
            "before": values[-2] if len(values) > 1 else None,
            "centre": centre,
            "low": low,
            "high": high,
            "out": bool(out),
        }
        rows.append(row)
        drawn.append((row, own))
    rows.sort(key=lambda row: not row["out"])
    drawn.sort(key=lambda pair: (not pair[0]["out"], pair[0]["figure"] != "flagged"))
    panels = [_panel(row, own) for row, own in drawn[:_MOST_CHARTS] if len(own) > 1]
    chosen = [panels[at : at + 2] for at in range(0, len(panels), 2)]
    return rows, [
        Chart(name=f"runs-{number}", caption="Figures over the runs of this watch", panels=pair)
        for number, pair in enumerate(chosen, 1)
    ]


_HAIR: Final = 1e-12


def _panel(row: Row, own: Sequence[Row]) -> Panel:
    x = [float(one["run"]) for one in own]
    marks: list[Points | Line] = []
    if not np.isnan(row["low"]):
        ends = [x[0], x[-1]]
        marks.append(
            Line(
                x=ends, y=[row["centre"]] * 2, low=[row["low"]] * 2, high=[row["high"]] * 2,
                tone="faint", dashed=True, label="limits of the runs before",
            )
        )  # fmt: skip
    marks.append(Line(x=x, y=[one["value"] for one in own], tone="faint"))
    marks.append(Points(x=x[:-1], y=[one["value"] for one in own[:-1]]))
    tone: Any = "alarm" if row["out"] else "plain"
    marks.append(Points(x=x[-1:], y=[own[-1]["value"]], tone=tone))
    return Panel(title=_name(row), x="run", y="share or score", marks=marks)


def _name(row: Row) -> str:
    parts = (row["figure"], row["model"], row["benchmark"], row["policy"])
    return ", ".join(part for part in parts if part)


def _named(rows: Sequence[Row]) -> str:
    return "; ".join(
        f"{_name(row)} {row['value']:.3f} ({row['low']:.3f} to {row['high']:.3f})"
        for row in rows[:_MOST_CHARTS]
    )


def _cohorts(facts: Facts) -> Iterator[Row]:
    """Flagged items by the month of the documents that hold them."""
    for bench in facts.benchmarks:
        for policy in bench.policies:
            if policy.corpus == TOGETHER:
                for month in policy.months:
                    yield {
                        "benchmark": bench.name,
                        "policy": policy.policy,
                        "month": month.name,
                        "flagged": month.n,
                        "share": month.n / bench.n_items if bench.n_items else None,
                    }


def _cohort_pictures(cohorts: Sequence[Row]) -> list[Chart]:
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in cohorts:
        groups.setdefault((row["benchmark"], row["policy"]), []).append(row)
    panels = [
        Panel(
            title=f"{benchmark}, {policy}",
            x="month of the documents",
            y="flagged items",
            x_names=[row["month"] for row in own],
            marks=[Points(x=range(len(own)), y=[row["flagged"] for row in own])],
        )
        for (benchmark, policy), own in list(groups.items())[:2]
    ]
    if not panels:
        return []
    return [Chart(name="cohorts", caption="Flagged items by month", panels=panels)]


def _changes(difference: Difference | None) -> list[Row]:
    """What changed since the run before: items, scores, ranks and coverage."""
    if difference is None:
        return []
    rows = [
        {
            "what": item.change.replace("_", " "),
            "of": f"{item.benchmark}/{item.item_id} by {item.policy}",
            "before": item.before or "",
            "after": item.after or "",
        }
        for item in difference.items
    ]
    for kind in ("scores", "ranks", "coverage", "corpora", "policies", "waivers"):
        rows += [
            {
                "what": f"{kind}: {change.what}",
                "of": change.of,
                "before": shown(change.before),
                "after": shown(change.after),
            }
            for change in getattr(difference, kind)
        ]
    return rows


def page(study: Study, folder: Path) -> str:
    """One HTML file that opens offline, with the pictures in it; folder  of the written study."""
    pictures = "".join(
        f'<figure><img alt="{escape(one.caption)}" src="data:image/svg+xml;base64,'
        f'{base64.b64encode((folder / f"{one.name}.svg").read_bytes()).decode()}"></figure>'
        for one in study.pictures
    )
    refused = "".join(
        f"<li>{escape(one.what)}: {escape(one.reason)}</li>" for one in study.refusals
    )
    tables = "".join(_table(study, name) for name in study.tables if study.rows(name))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\';'
        " style-src 'unsafe-inline'; img-src data:\"><title>Watch</title>"
        f"<style>{_STYLE}</style></head><body><h1>Watch</h1>"
        f"<p><strong>{escape(study.finding.found)}</strong></p>"
        f"<p>{escape(study.finding.sure)}</p><p>{escape(study.finding.change)}</p>"
        f"{f'<h2>Not estimated</h2><ul>{refused}</ul>' if refused else ''}"
        f"{pictures}{tables}</body></html>\n"
    )


def _table(study: Study, name: str) -> str:
    columns = study.tables[name].column_names
    rows = study.rows(name)
    cells = ([shown(row[one], one) for one in columns] for row in rows[:_MOST_ROWS])
    more = len(rows) - _MOST_ROWS
    return (
        f"<h2>{escape(name.capitalize())}</h2><div>{table_html(columns, cells)}</div>"
        f"{f'<p>{more:,} more rows in report/{escape(name)}.parquet</p>' if more > 0 else ''}"
    )


_STYLE: Final = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:70rem;margin:2rem auto;padding:0 1rem;"
    "color-scheme:light}div{overflow-x:auto}table{border-collapse:collapse;font-size:.85rem}"
    "th,td{text-align:left;padding:.2rem .6rem;border-bottom:1px solid #d5dae0}"
    "figure{margin:1rem 0}img{max-width:100%}"
)
