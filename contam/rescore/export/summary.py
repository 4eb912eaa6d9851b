"""Write the tables of a re-scoring as Markdown."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from contam.rescore.export.plots import planned
from contam.rescore.stats.gain import LEAST
from contam.tables.sql import Database

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contam.rescore.export.plots import Plot
    from contam.tables.schemas import Table

_SMALL = 0.00005

_SCORES = """
SELECT model, n, n_clean, n_flagged, n_not_checkable, "full", full_lo, full_hi, clean, clean_lo,
  clean_hi, flagged, gain, gain_low, gain_high,
  gain_p, gain_p_holm, clean_with_unchecked, bound_low,
  bound_high, note
FROM scores WHERE subset_by IN ('all', 'group') AND benchmark = $benchmark AND metric = $metric
  AND policy = $policy
ORDER BY CASE WHEN higher_is_better THEN clean ELSE -clean END DESC NULLS LAST, model
"""
_LEADS = """
SELECT first, second, n, difference_full, p_full_holm, difference_clean, p_clean_holm, lead_clean
FROM pairs WHERE benchmark = $benchmark AND metric = $metric AND policy = $policy AND lead_full
  AND setup = $setup
ORDER BY first, second
"""
_RANKS = """
SELECT model, "full", rank_full, rank_full_lo, rank_full_hi, clean, rank_clean, rank_clean_lo,
  rank_clean_hi, kendall_tau, spearman, largest_rank_change, deletion_tau_median, deletion_p, note
FROM rankings WHERE benchmark = $benchmark AND metric = $metric AND policy = $policy
  AND setup = $setup
ORDER BY rank_full NULLS LAST, model
"""
_SETUPS = """
SELECT DISTINCT setup FROM rankings WHERE benchmark = $benchmark AND metric = $metric
  AND policy = $policy ORDER BY setup
"""
_ACROSS = """
SELECT a.policy, model, n_benchmarks, mean_full, mean_clean, win_rate_full, win_rate_clean,
  borda_full, borda_clean, note, metrics
FROM aggregate a
ORDER BY a.policy, CASE WHEN higher_is_better THEN mean_clean ELSE -mean_clean END DESC NULLS LAST,
  CASE WHEN higher_is_better THEN mean_full ELSE -mean_full END DESC NULLS LAST, model
"""
_DIVERSITY = """
SELECT policy, items, n_models, n_benchmarks, diversity, mean_rank_change, cardinal_distance,
  cardinal_largest, ordinal_distance, ordinal_largest, note
FROM diversity WHERE n_benchmarks > 1 ORDER BY policy, items DESC
"""
_HOLDOUT = """
SELECT benchmark, metric, reference_benchmark, method, model, n, n_reference, score,
  score_reference, expected, gain, gain_lo, gain_hi, p, p_holm, note
FROM holdout ORDER BY benchmark, metric, reference_benchmark, method, gain DESC NULLS LAST, model
"""
_GROUPS = """
SELECT DISTINCT benchmark, metric, policy, higher_is_better FROM scores ORDER BY ALL
"""


def markdown(tables: Mapping[str, Table], least: int = LEAST) -> str:
    """The whole summary: a section for each benchmark, metric and policy, with its pictures.

    least  clean items without which nothing is drawn of a score
    """
    pictures: dict[tuple[str, ...], list[Plot]] = {}
    for plot in planned(tables, least):
        pictures.setdefault((plot.benchmark, plot.metric, plot.policy), []).append(plot)
    database = Database()
    try:
        for name, table in tables.items():
            database.add_table(name, table)
        lines = ["# Scores with and without the flagged items", ""]
        _, groups = database.ask(_GROUPS)
        for benchmark, metric, policy, higher in groups:
            lines += _section(database, benchmark, metric, policy, higher=higher)
            lines += _pictures(pictures.get((benchmark, metric, policy), ()))
        lines += _across(database)
        lines += _holdout(database)
        return "\n".join(lines).rstrip() + "\n"
    finally:
        database.close()


def _pictures(plots: Sequence[Plot]) -> list[str]:
    """Links to the pictures in the summary's folder."""
    return [line for plot in plots for line in (f"![{cell(plot.caption)}]({plot.name}.svg)", "")]


def _section(
    database: Database, benchmark: str, metric: str, policy: str, *, higher: bool
) -> list[str]:
    chosen = {"benchmark": benchmark, "metric": metric, "policy": policy}
    way = "" if higher else " (lower is better)"
    lines = [f"## {cell(benchmark)}, {cell(metric)}{way}, by `{cell(policy)}`", ""]
    names, rows = database.ask(_SCORES, chosen)
    records = [dict(zip(names, row, strict=True)) for row in rows]
    lines += table(
        (
            "model",
            "n",
            "clean",
            "flagged",
            "unchecked",
            "full",
            "clean score",
            "flagged score",
            "gain",
            "p",
            "p Holm",
        ),
        [
            (
                record["model"],
                record["n"],
                record["n_clean"],
                record["n_flagged"],
                record["n_not_checkable"],
                _between(record, "full"),
                _between(record, "clean"),
                figure(record["flagged"]),
                gain_of(record),
                small(record["gain_p"]),
                small(record["gain_p_holm"]),
            )
            for record in records
        ],
    )
    notes = sorted({f"{record['model']}: {record['note']}" for record in records if record["note"]})
    lines += [*(f"- {cell(note)}" for note in notes), *([""] if notes else [])]
    if any(record["n_not_checkable"] for record in records):
        lines += [
            "Counting what could not be checked as clean, the clean scores are "
            + ", ".join(
                f"{cell(record['model'])} {figure(record['clean_with_unchecked'])}"
                for record in records
            )
            + ".",
            "",
        ]
    _, setups = database.ask(_SETUPS, chosen)
    for (setup,) in setups:
        lines += _ranking(database, {**chosen, "setup": setup})
    return lines


def _ranking(database: Database, chosen: Mapping[str, str]) -> list[str]:
    """One ranking: on all items and on the clean ones, who is not in it, and its leads."""
    names, rows = database.ask(_RANKS, chosen)
    records = [dict(zip(names, row, strict=True)) for row in rows]
    if not records:
        return []
    first = records[0]
    heading = f"Ranking of runs with {cell(chosen['setup'])}: " if chosen["setup"] else "Ranking: "
    if first["rank_clean"] is None:
        return [f"{heading}{cell(first['note'])}", ""]
    lines = [f"{heading}{cell(first['note'])}", ""] if first["note"] else []
    lines += table(
        ("model", "score, all items", "rank, all items", "score, clean items", "rank, clean items"),
        [
            (
                record["model"],
                figure(record["full"]),
                _place(record, "full"),
                figure(record["clean"]),
                _place(record, "clean"),
            )
            for record in records
        ],
    )
    lines += [
        f"- {cell(record['model'])}: {cell(record['note'])}"
        for record in records
        if record["rank_full"] is None
    ]
    lines += [""] if lines[-1] else []
    agree = ", ".join(
        f"{name} {figure(first[column], 3)}"
        for name, column in (
            ("Kendall tau-b", "kendall_tau"),
            ("Spearman", "spearman"),
            ("largest change over all places", "largest_rank_change"),
        )
    )
    alone = f"median tau {figure(first['deletion_tau_median'], 3)}, p {small(first['deletion_p'])}"
    lines += [f"{agree}. Deleting as many random items: {alone}.", ""]
    _, leads = database.ask(_LEADS, chosen)
    if leads:
        lines += ["Leads that are significant on all items:", ""]
        lines += table(
            ("lead", "n", "all items", "p Holm", "clean items", "p Holm", "stands"),
            [
                (
                    f"{a} over {b}",
                    n,
                    figure(df),
                    small(pf),
                    figure(dc),
                    small(pc),
                    "yes" if stands else "no",
                )
                for a, b, n, df, pf, dc, pc, stands in leads
            ],
        )
    return lines


def _across(database: Database) -> list[str]:
    """What all benchmarks say together; nothing for one benchmark."""
    _, rows = database.ask(_ACROSS)
    if not rows:
        return []
    lines = ["## Across benchmarks", "", f"By {cell(rows[0][10])}.", ""]
    lines += table(
        ("policy", "model", "benchmarks", "mean", "clean", "win rate", "clean", "Borda", "clean"),
        [(*row[:3], *(figure(value) for value in row[3:9])) for row in rows],
    )
    notes = sorted({f"{row[1]}: {row[9]}" for row in rows if row[9]})
    _, spread = database.ask(_DIVERSITY)
    if spread:
        lines += table(
            (
                *("policy", "items", "models", "benchmarks", "diversity", "mean rank change"),
                *("by weights: distance", "largest", "by field: distance", "largest"),
            ),
            [(*row[:4], *(figure(value, 3) for value in row[4:10])) for row in spread],
        )
    notes += [f"{row[1]} items: {row[10]}" for row in spread if row[10]]
    lines += [f"- {cell(note)}" for note in dict.fromkeys(notes)]
    return [*lines, ""]


def _holdout(database: Database) -> list[str]:
    """Benchmarks beside one that nobody can have seen; nothing where none was named."""
    names, rows = database.ask(_HOLDOUT)
    if not rows:
        return []
    records = [dict(zip(names, row, strict=True)) for row in rows]
    lines = ["## Beside a benchmark that no model can have seen", ""]
    lines += table(
        (
            *("benchmark", "metric", "n", "reference", "n", "method", "model", "score"),
            *("on the reference", "expected", "gain", "p", "p Holm"),
        ),
        [
            (
                record["benchmark"],
                record["metric"],
                record["n"],
                record["reference_benchmark"] or "-",
                record["n_reference"],
                record["method"],
                record["model"],
                figure(record["score"]),
                figure(record["score_reference"]),
                figure(record["expected"]),
                _between(record, "gain"),
                small(record["p"]),
                small(record["p_holm"]),
            )
            for record in records
        ],
    )
    notes = {
        f"{record['benchmark']}, {record['method']}: {record['note']}"
        for record in records
        if record["note"]
    }
    lines += [f"- {cell(note)}" for note in sorted(notes)]
    return [*lines, ""]


def figure(value: float | None, digits: int = 4) -> str:
    """A number as the summary prints it; a dash where there is none."""
    if value is None or math.isnan(value):
        return "-"
    return f"{value:.{digits}f}"


def small(p: float | None) -> str:
    """A p-value with four places, or as a power of ten where those would all be 0."""
    if p is None or math.isnan(p):
        return "-"
    return f"{p:.4f}" if p >= _SMALL else f"{p:.0e}"


def _between(row: Mapping[str, Any], name: str) -> str:
    return _with_limits(row[name], row[f"{name}_lo"], row[f"{name}_hi"])


def _with_limits(middle: float | None, low: float | None, high: float | None) -> str:
    shown = figure(middle)
    return shown if low is None else f"{shown} {limits(low, high)}"


def limits(low: float | None, high: float | None) -> str:
    """An interval as tables print it."""
    return f"[{figure(low, 3)}, {figure(high, 3)}]"


def gain_of(row: Mapping[str, Any]) -> str:
    """The gain of a row of scores with its limits."""
    return _with_limits(row["gain"], row["gain_low"], row["gain_high"])


def _place(row: Mapping[str, Any], name: str) -> str:
    rank, low, high = (row[f"rank_{name}{end}"] for end in ("", "_lo", "_hi"))
    if rank is None:
        return "-"
    shown = f"{rank:g}"
    return shown if low is None else f"{shown} [{low:g}, {high:g}]"


def table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Lines of a Markdown table, and an empty one behind it."""
    lines = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    lines += ["| " + " | ".join(cell(str(value)) for value in row) + " |" for row in rows]
    return [*lines, ""]


def cell(text: str) -> str:
    """Text that cannot break out of its cell."""
    kept = "".join(c if c.isprintable() else " " for c in text)
    for mark in "\\|<>`*_[]":
        kept = kept.replace(mark, "\\" + mark)
    return kept
