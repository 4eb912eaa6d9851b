"""report.md: the tables of an audit for a reader of plain text; every figure is from the facts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contam.audit.spec import TOGETHER
from contam.rescore.summary import cell, figure

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contam.audit.facts import Facts


def markdown(facts: Facts) -> str:
    """The report as Markdown. Text of items and documents is not in it."""
    lines = [
        f"# {cell(facts.title)}",
        "",
        f"**{facts.headline.status}**: {facts.headline.text}",
        "",
    ]
    lines += ["## Verdicts", "", *_verdicts(facts)]
    if facts.scores:
        lines += ["## Scores with and without the flagged items", "", *_scores(facts)]
    lines += ["## Corpora", "", *_corpora(facts)]
    if facts.waivers:
        lines += ["## Waivers", "", *_waivers(facts)]
    lines += ["## Limits", "", *(f"- {one}" for one in facts.limits), ""]
    return "\n".join(lines)


def _verdicts(facts: Facts) -> list[str]:
    heads = (
        "benchmark", "policy", "corpus", "items", "contaminated", "suspect", "clean",
        "not checkable", "flagged", "waived",
    )  # fmt: skip
    return _table(
        heads,
        [
            (
                bench.name,
                one.policy,
                one.corpus,
                one.n_items,
                one.contaminated,
                one.suspect,
                one.clean,
                one.not_checkable,
                f"{100 * one.flagged_share:.1f} %",
                one.waived,
            )
            for bench in facts.benchmarks
            for one in bench.policies
        ],
    )


def _scores(facts: Facts) -> list[str]:
    return _table(
        ("benchmark", "model", "policy", "n", "clean", "full", "clean score", "gain", "p Holm"),
        [
            (
                row["benchmark"],
                row["model"],
                row["policy"],
                row["n"],
                row["n_clean"],
                figure(row["full"]),
                figure(row["clean"]),
                figure(row["epg"]),
                figure(row["epg_p_holm"]),
            )
            for row in facts.scores
        ],
    )


def _corpora(facts: Facts) -> list[str]:
    lines = _table(
        ("corpus", "stage", "searched by", "shards read", "shards expected", "rows"),
        [
            (
                one.name,
                one.stage,
                one.how,
                one.coverage["shards_read"],
                one.coverage["shards_expected"],
                one.coverage["rows"],
            )
            for one in facts.corpora
        ],
    )
    failed = [
        f"- {cell(failure['shard'])}: {cell(failure['reason'])}"
        for failure in facts.coverage["shards_failed"]
    ]
    reasons = [
        f"- {cell(bench.name)} by {cell(one.policy)}: {reason.n} not checkable: {cell(reason.name)}"
        for bench in facts.benchmarks
        for one in bench.policies
        if one.corpus == TOGETHER
        for reason in one.not_checkable_reasons
    ]
    return [*lines, *failed, *reasons, ""]


def _waivers(facts: Facts) -> list[str]:
    names = ("benchmark", "item", "kind", "reason", "reviewer", "expires")
    return _table(names, [[one.get(name, "") for name in names] for one in facts.waivers])


def _table(heads: Sequence[str], rows: Sequence[Sequence[Any]]) -> list[str]:
    lines = ["| " + " | ".join(heads) + " |", "|" + " --- |" * len(heads)]
    lines += ["| " + " | ".join(cell(str(value)) for value in row) + " |" for row in rows]
    return [*lines, ""]
