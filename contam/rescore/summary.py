"""Write the tables of a re-scoring as Markdown."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from statistics import NormalDist, fmean, stdev
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from contam.rescore.field import REFERENCE
from contam.rescore.stats.ranking import detectable
from contam.tables import schemas

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from contam.rescore import Row
    from contam.tables.schemas import Table


_SMALL: Final = 0.00005
_SURE: Final = 0.05
_OF: Final = ("benchmark", "metric", "policy")


def markdown(
    tables: Mapping[str, Table],
    plots: Iterable[Plot] = (),
    runs: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> str:
    """The whole summary: a section for each benchmark, metric and policy, with its pictures.

    runs  see `run_words`
    """
    pictures: dict[tuple[str, ...], list[str]] = {}
    for plot in plots:
        link = [f"![{cell(plot.caption)}]({plot.name}.svg)", ""]
        pictures.setdefault((plot.benchmark, plot.metric, plot.policy), []).extend(link)
    rows = {name: schemas.rows(table) for name, table in tables.items()}
    rankings, pairs = (grouped(rows[name], *_OF, "setup") for name in ("rankings", "pairs"))
    lines = ["# Scores with and without the flagged items", ""]
    for key, scores in grouped(rows["scores"], *_OF).items():
        whole = [row for row in scores if row["subset_by"] in ("all", "group")]
        lines += _section(whole, runs)
        for ranked, own in rankings.items():
            if ranked[:-1] == key:
                lines += _ranking(own, pairs.get(ranked, ()))
        lines += _dose([row for row in rows["dose"] if tuple(row[name] for name in _OF) == key])
        lines += pictures.get(key, ())
    lines += _across(rows["aggregate"])
    lines += _holdout(rows["holdout"])
    return "\n".join(lines).rstrip() + "\n"


def _section(scores: Sequence[Row], runs: Mapping[str, Sequence[str]]) -> list[str]:
    rows = sorted(scores, key=lambda row: (_best_first(row, "clean"), row["model"]))
    benchmark, metric, policy = (cell(rows[0][name]) for name in _OF)
    way = "" if rows[0]["higher_is_better"] else " (lower is better)"
    lines = [f"## {benchmark}, {metric}{way}, by `{policy}`", ""]
    lines += table(
        (
            *("model", "n", "clean", "flagged", "unchecked", "full", "clean score"),
            *("flagged score", "gain", "gap", "p", "p Holm"),
        ),
        [
            (
                *(row[name] for name in ("model", "n", "n_clean", "n_flagged", "n_not_checkable")),
                _between(row, "full"),
                _between(row, "clean"),
                figure(row["flagged"]),
                figure(row["gain"]),
                gap_of(row),
                small(row["gap_p"]),
                small(row["gap_p_holm"]),
            )
            for row in rows
        ],
    )
    said = [*beyond_words(rows), *smallest_words(rows), *run_words(rows, runs)]
    lines[1:1] = ["", *(f"- {cell(one)}" for one in said)]
    if cells := beyond_rows(rows):
        lines += table(BEYOND, cells)
    notes = sorted({f"{row['model']}: {row['note']}" for row in rows if row["note"]})
    lines += [*(f"- {cell(note)}" for note in notes), *([""] if notes else [])]
    if any(row["n_not_checkable"] for row in rows):
        scored = (f"{cell(row['model'])} {figure(row['clean_with_unchecked'])}" for row in rows)
        lines.append(
            "Counting what could not be checked as clean, the clean scores are "
            f"{', '.join(scored)}."
        )
        lines.append("")
    return lines


def left_out(reasons: Sequence[str]) -> str:
    """The section of a summary that names files and metrics left out, "" where there is none."""
    lines = "".join(f"- `{' '.join(reason.split())}`\n" for reason in reasons)
    return f"\n## Left out\n\n{lines}" if lines else ""


def beyond_words(rows: Sequence[Row]) -> Iterator[str]:
    """Whose gain is more than easier items explain, and whose is not, of some rows of scores.

    What references gain on the same items comes first.
    """
    known: dict[str, list[str]] = {}
    for row in rows:
        if row["adjusted_by"].endswith(REFERENCE) and row["gap"] is not None:
            known.setdefault(row["policy"], []).append(f"{row['model']} {row['gap']:+.3f}")
    for policy, gaps in known.items():
        yield f"References on the same items, flagged less clean ({policy}): {', '.join(gaps)}."
    several = len({row["policy"] for row in rows}) > 1
    for row in rows:
        if row["adjusted_by"].endswith(REFERENCE):
            continue
        who = f"By {row['policy']}, {row['model']}" if several else row["model"]
        p, by = row["adjusted_p_holm"], row["adjusted_by"]
        raw = row["gap_p_holm"] is not None and row["gap_p_holm"] < _SURE and is_gain(row)
        if p is not None and p < _SURE:
            though = "" if raw else "; the gap itself is not significant"
            yield (
                f"{who} gains {row['adjusted']:+.3f} on flagged items beyond what the "
                f"field gains on them (p Holm {small(p)}){though}. Field: {by}."
            )
        elif raw and p is not None:
            yield (
                f"{who}: easier items may explain the gap of {row['gap']:+.3f}, which is "
                f"not significantly beyond the field's (p Holm {small(p)}). Field: {by}."
            )
        elif raw:
            gap = "gain" if row["gap"] is None else f"gap of {row['gap']:+.3f}"
            yield f"{who}: easier items may explain the {gap} ({by})."


def smallest_words(rows: Sequence[Row]) -> Iterator[str]:
    """How large gaps must be to be found, of some rows of scores, by policy."""
    widths: dict[str, list[float]] = {}
    for row in rows:
        if row["gap_p_holm"] is not None and row["gap_low"] is not None:
            widths.setdefault(row["policy"], []).append(row["gap_high"] - row["gap_low"])
    for policy, own in widths.items():
        least, most = (figure(_SEEN * width, 3) for width in (min(own), max(own)))
        size = least if least == most else f"{least} to {most}"
        yield f"By {policy}, a gap of {size} would be found in 80 % of cases (before Holm)."


def run_words(rows: Sequence[Row], runs: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """How far the runs of a model lie apart, of some rows of scores of one benchmark and metric.

    runs  model -> its runs, as they stand in the rows
    """
    for policy in dict.fromkeys(row["policy"] for row in rows):
        own = {row["model"]: row for row in rows if row["policy"] == policy}
        for model, names in runs.items():
            there = [own[name] for name in names if name in own]
            sides = {
                side: [row[side] for row in there if row[side] is not None]
                for side in ("full", "clean")
            }
            told = [
                f"{side} {figure(fmean(scores), 3)}, standard deviation {figure(stdev(scores), 3)}"
                for side, scores in sides.items()
                if len(scores) > 1
            ]
            if told:
                yield f"{model}, {len(there)} runs ({policy}): {'; '.join(told)} between runs."


#: A gap that a test of .05 finds with a power of .8, in widths of its interval of 95 %.
_SEEN: Final = detectable(1, 1.0) / (2 * NormalDist().inv_cdf(0.975))


def is_gain(row: Row) -> bool:
    """Whether the score on all items is better than that on clean ones."""
    return bool(row["gain"]) and (row["gain"] > 0) == row["higher_is_better"]


def beyond_rows(rows: Sequence[Row]) -> list[tuple[str, ...]]:
    """Model, policy, and what of the gap goes beyond the field, with limits and p."""
    return [
        (
            *(row["model"], row["policy"]),
            *(figure(row["adjusted"]), limits(row["adjusted_low"], row["adjusted_high"])),
            small(row["adjusted_p_holm"]),
        )
        for row in rows
        if row["adjusted"] is not None
    ]


BEYOND: Final = ("model", "policy", "beyond field", "interval", "p Holm")
"""Heads of `beyond_rows`: flagged less clean."""


def _ranking(rows: Sequence[Row], pairs: Sequence[Row]) -> list[str]:
    """One ranking: on all items and on the clean ones, who is not in it, and its leads."""
    rows = sorted(rows, key=lambda row: (_or_last(row["rank_full"]), row["model"]))
    first, setup = rows[0], cell(rows[0]["setup"])
    heading = f"Ranking of runs with {setup}: " if setup else "Ranking: "
    lines = [f"{heading}{cell(first['note'])}", ""] if first["note"] else []
    if first["rank_clean"] is None:
        return lines or [heading, ""]
    lines += table(
        ("model", "score, all items", "rank, all items", "score, clean items", "rank, clean items"),
        [
            (
                row["model"],
                *(figure(row["full"]), _place(row, "full")),
                *(figure(row["clean"]), _place(row, "clean")),
            )
            for row in rows
        ],
    )
    short = [row for row in rows if row["rank_full"] is None]
    lines += [f"- {cell(row['model'])}: {cell(row['note'])}" for row in short]
    lines += [""] if short else []
    lines.append(
        f"Kendall tau-b {figure(first['kendall_tau'], 3)}, Spearman {figure(first['spearman'], 3)},"
        f" largest change over all places {figure(first['largest_rank_change'], 3)}."
        f" Deleting as many random items: median tau {figure(first['deletion_tau_median'], 3)},"
        f" p {small(first['deletion_p'])}."
    )
    lines.append("")
    if leads := [row for row in pairs if row["lead_full"]]:
        lines += ["Leads that are significant on all items:", ""]
        lines += table(
            (
                *("lead", "n", "all items", "p Holm", "clean items", "p Holm"),
                *("flagged less clean", "p Holm", "stands"),
            ),
            [
                (
                    f"{row['first']} over {row['second']}",
                    row["n"],
                    *(figure(row["difference_full"]), small(row["p_full_holm"])),
                    *(figure(row["difference_clean"]), small(row["p_clean_holm"])),
                    *(figure(row["change"]), small(row["change_p_holm"])),
                    stands(row),
                )
                for row in sorted(leads, key=lambda row: (row["first"], row["second"]))
            ],
        )
    return lines


def stands(row: Row) -> str:
    """Whether a lead on all items is there on clean ones, and whether flags change it."""
    if row["lead_falls"]:
        return "yes, but smaller" if row["lead_clean"] else "no"
    if row["lead_clean"]:
        return "yes"
    least, change = (figure(row[f"detectable_{name}"], 3) for name in ("clean", "change"))
    return f"not shown: a lead of {least} could be seen, a change of {change}"


def _dose(rows: Sequence[Row]) -> list[str]:
    """Whose score rises with exposure by more than the others', in one line."""
    if not rows:
        return []
    sure = [row for row in rows if row["p_holm"] is not None and row["p_holm"] < _SURE]
    told = [
        f"{cell(row['model'])} by {row['exposure']} {row['slope']:+.3f} "
        f"{limits(row['slope_low'], row['slope_high'])}, p Holm {small(row['p_holm'])}"
        for row in sure
    ]
    who = "; ".join(told) or "no model"
    return [f"Score rises with exposure more than that of the other models: {who}.", ""]


def _across(rows: Sequence[Row]) -> list[str]:
    """What all benchmarks say together; nothing for one benchmark."""
    if not rows:
        return []
    order = ("mean_clean", "mean_full")
    rows = sorted(
        rows,
        key=lambda row: (row["policy"], *(_best_first(row, name) for name in order), row["model"]),
    )
    lines = ["## Across benchmarks", "", f"By {cell(rows[0]['metrics'])}.", ""]
    sums = [f"{name}_{side}" for name in ("win_rate", "borda") for side in ("full", "clean")]
    both_sides = (
        head for name in ("mean (error)", "win rate", "Borda") for head in (name, "clean")
    )
    lines += table(
        ("policy", "model", "benchmarks", *both_sides),
        [
            (
                row["policy"],
                row["model"],
                row["n_benchmarks"],
                *(
                    f"{figure(row[f'mean_{side}'])} ({figure(row[f'mean_{side}_error'])})"
                    for side in ("full", "clean")
                ),
                *(figure(row[name]) for name in sums),
            )
            for row in rows
        ],
    )
    notes = sorted({f"{row['model']}: {row['note']}" for row in rows if row["note"]})
    lines += [f"- {cell(note)}" for note in dict.fromkeys(notes)]
    return [*lines, ""]


def _holdout(rows: Sequence[Row]) -> list[str]:
    """Benchmarks beside one that nobody can have seen; nothing where none was named."""
    if not rows:
        return []
    by = ("benchmark", "metric", "reference_benchmark", "method")
    rows = sorted(
        rows,
        key=lambda row: (*(row[name] for name in by), _or_last(row["gain"], -1), row["model"]),
    )
    lines = ["## Beside a benchmark that no model can have seen", ""]
    lines += table(
        (
            *("benchmark", "metric", "n", "reference", "n", "method", "model", "score"),
            *("on the reference", "expected", "gain", "p", "p Holm"),
        ),
        [
            (
                *(row["benchmark"], row["metric"], row["n"]),
                *(row["reference_benchmark"] or "-", row["n_reference"]),
                *(row["method"], row["model"]),
                *(figure(row[name]) for name in ("score", "score_reference", "expected")),
                _between(row, "gain"),
                *(small(row["p"]), small(row["p_holm"])),
            )
            for row in rows
        ],
    )
    notes = {f"{row['benchmark']}, {row['method']}: {row['note']}" for row in rows if row["note"]}
    lines += [f"- {cell(note)}" for note in sorted(notes)]
    return [*lines, ""]


def _best_first(row: Row, name: str) -> tuple[bool, float]:
    """Sorts by a score, the best one first, and none last."""
    return _or_last(row[name], -1 if row["higher_is_better"] else 1)


def _or_last(value: float | None, sign: int = 1) -> tuple[bool, float]:
    return (value is None, 0.0 if value is None else sign * value)


def figure(value: float | None, digits: int = 4) -> str:
    """A number as the summary prints it; a dash where there is none."""
    if value is None or math.isnan(value):
        return "-"
    # Not -0.000, which reads as if something were lost.
    return f"{round(value, digits) + 0.0:.{digits}f}"


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


def gap_of(row: Mapping[str, Any]) -> str:
    """The gap of a row of scores with its limits."""
    return _with_limits(row["gap"], row["gap_low"], row["gap_high"])


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


GAIN, RANKS, SWEEP = "gain", "ranks", "sweep"
SHOWS: Final = {
    GAIN: "Gap of each model, flagged less clean, as scored and beyond the field",
    RANKS: "Rank on all and on clean items",
    SWEEP: "Gain as the threshold of the policy moves",
}
"""What each kind of picture shows, in the order they are shown in."""

_PLOT_OF: Final = ("benchmark", "metric", "policy", "setup")


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
        for key, group in grouped(rows, *_PLOT_OF).items():
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
