"""Lay out a benchmark's chapter of a report: scores, ranks and plots beside its verdicts."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final

from contam.audit.spec import TOGETHER
from contam.rescore.export.plots import planned
from contam.rescore.stats.gain import too_few
from contam.tables import schemas, score_schemas

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from contam.audit.facts import CleanedFacts, Facts

    Tree = dict[str, Any]
    Row = dict[str, Any]


def chapters(facts: Tree, scores: Path) -> tuple[list[Tree], list[Tree]]:
    """(a chapter for each benchmark of the audit, those for other names that logs have for theirs).

    facts   `contam.audit.facts.Facts` as a tree
    scores  folder of the re-scoring; it need not exist

    A chapter has `name`, `scores`, `rankings`, what is to be said of them (`notes`), runs that are
    in no ranking (`unranked`) and `plots`; logs may name one benchmark otherwise,
    or its parts, so that scores do not always stand under a name that was checked.
    """
    plots = _plots(scores, facts["least"])
    shown = scores_shown(facts["scores"], facts["least"])
    rankings = [row for row in facts["rankings"] if row["rank_clean"] is not None]

    def chapter(name: str) -> Tree:
        own = sorted(
            (row for row in rankings if row["benchmark"] == name),
            key=lambda row: (row["policy"], row["metric"], row["setup"], row["rank_full"]),
        )
        return {
            "name": name,
            "scores": [row for row in shown if row["benchmark"] == name],
            "rankings": own,
            "notes": list(dict.fromkeys(row["note"] for row in own if row["note"])),
            "unranked": [
                row
                for row in facts["rankings"]
                if row["benchmark"] == name and row["rank_full"] is None
            ],
            "plots": [plot for plot in plots if plot["benchmark"] == name],
        }

    names = [bench["name"] for bench in facts["benchmarks"]]
    others = sorted({row["benchmark"] for row in facts["scores"]} - set(names))
    return [chapter(name) for name in names], [chapter(name) for name in others]


def before_and_after(facts: Facts, cleaned: CleanedFacts) -> list[Row]:
    """Of a cleaned corpus, the items flagged before and here; None: not asked here."""
    corpus = cleaned.corpus if len(facts.corpora) > 1 else TOGETHER
    here = {
        (bench.name, policy.policy): policy.contaminated + policy.suspect
        for bench in facts.benchmarks
        for policy in bench.policies
        if policy.corpus == corpus
    }
    return [
        {
            "benchmark": row["benchmark"],
            "policy": row["policy"],
            "before": row["n"],
            "here": here.get((row["benchmark"], row["policy"])),
        }
        for row in cleaned.flagged_before
    ]


def largest_changes(facts: Tree) -> list[Tree]:
    """Of each benchmark and metric the score that changes most, by the first policy."""
    first = next(iter(facts["policies"]), "")
    found: dict[tuple[str, str], Tree] = {}
    for row in facts["scores"]:
        key = (row["benchmark"], row["metric"])
        if row["policy"] != first or row["epg"] is None:
            continue
        if key not in found or abs(row["gain"]) > abs(found[key]["gain"]):
            found[key] = row
    return list(found.values())


def _plots(folder: Path, least: int) -> list[Tree]:
    """Plots as images: what is drawn in an image runs nothing."""
    if not folder.is_dir():
        return []
    kinds = {
        "scores": score_schemas.SCORES,
        "sweep": score_schemas.SWEEP,
        "rankings": score_schemas.RANKINGS,
    }
    tables = {
        name: schemas.read_parquet(folder / f"{name}.parquet", kind) for name, kind in kinds.items()
    }
    return [
        {
            "benchmark": plot.benchmark,
            "caption": plot.caption,
            "data": base64.b64encode((folder / f"{plot.name}.svg").read_bytes()).decode(),
        }
        for plot in planned(tables, least)
    ]


def study_chapters(facts: Tree, folder: Path) -> list[Tree]:
    """The studies of an audit with their pictures; folder  of all studies in the pack."""
    return [
        {
            **study,
            "pictures": [
                base64.b64encode((folder / study["name"] / f"{name}.svg").read_bytes()).decode()
                for name in study["pictures"]
            ],
        }
        for study in facts["studies"]
    ]


_SIDES: Final = ("clean", "flagged")


def scores_shown(rows: Iterable[Mapping[str, Any]], least: int) -> list[Row]:
    """Rows of scores without the figures over fewer than `least` items; the note says why."""
    return [_shown(dict(row), least) for row in rows]


def clean_missing(row: Mapping[str, Any], least: int) -> str:
    """Why a row has no clean score to show, "" where it has one."""
    return too_few(row["n_clean"], "clean", least)


def _shown(row: Row, least: int) -> Row:
    for side in _SIDES:
        reason = too_few(row[f"n_{side}"], side, least)
        if not reason:
            continue
        row |= dict.fromkeys((side, f"{side}_lo", f"{side}_hi"))
        if side == "clean":
            row |= dict.fromkeys(("clean_with_unchecked", "gain", "gain_low", "gain_high"))
            if reason not in row["note"]:
                row["note"] = "; ".join(filter(None, (row["note"], reason)))
    return row
