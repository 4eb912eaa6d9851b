"""Write report.md: the tables of an audit as plain text, every figure from the facts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from contam.audit.report.chapters import before_and_after, clean_missing, scores_shown
from contam.audit.spec import TOGETHER
from contam.rescore.export.summary import cell, figure, gain_of, small, table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from contam.audit.facts import Facts


_SEEN: Final = ("flagged, before", "date unknown", "later", "other corpora")


def markdown(facts: Facts) -> str:
    """The report as Markdown. Text of items and documents is not in it."""
    lines = [
        f"# {cell(facts.title)}",
        "",
        f"**{facts.headline.status}**: {cell(facts.headline.text)}",
        "",
    ]
    lines += ["## Verdicts", "", *_verdicts(facts)]
    if facts.scores:
        lines += ["## Scores with and without the flagged items", "", *_scores(facts)]
    if facts.studies:
        lines += ["## Studies", "", *_studies(facts)]
    if facts.calibration:
        lines += ["## Chance", "", *_chance(facts.calibration)]
    if facts.review:
        lines += ["## Review", "", *_judges(facts.review), *_review(facts.review)]
    if facts.models:
        lines += ["## What models can have seen", "", *_seen(facts)]
    lines += ["## Corpora", "", *_corpora(facts)]
    if facts.cleaned:
        lines += ["## Cleaning", "", *_cleaned(facts)]
    if facts.waivers:
        lines += ["## Waivers", "", *_waivers(facts)]
    lines += ["## Limits", "", *(f"- {limit}" for limit in facts.limits), ""]
    return "\n".join(lines)


def _verdicts(facts: Facts) -> list[str]:
    heads = (
        "benchmark", "policy", "corpus", "items", "contaminated", "suspect", "clean",
        "not checkable", "flagged", "waived",
    )  # fmt: skip
    return table(
        heads,
        [
            (
                bench.name,
                policy.policy,
                policy.corpus,
                policy.n_items,
                policy.contaminated,
                policy.suspect,
                policy.clean,
                policy.not_checkable,
                f"{100 * policy.flagged_share:.1f} %",
                policy.waived,
            )
            for bench in facts.benchmarks
            for policy in bench.policies
        ],
    )


def _scores(facts: Facts) -> list[str]:
    return table(
        ("benchmark", "model", "policy", "n", "clean", "full", "clean score", "gain", "p Holm"),
        [
            (
                row["benchmark"],
                row["model"],
                row["policy"],
                row["n"],
                row["n_clean"],
                figure(row["full"]),
                clean_missing(row, facts.least) or figure(row["clean"]),
                gain_of(row),
                small(row["gain_p_holm"]),
            )
            for row in scores_shown(facts.scores, facts.least)
        ],
    )


def _studies(facts: Facts) -> list[str]:
    """The findings of the studies; their tables are in the pack."""
    lines = []
    for study in facts.studies:
        lines += [f"### {study['name']}", "", cell(study["finding"]["found"]), ""]
        lines += [f"- How sure: {cell(study['finding']['sure'])}"]
        lines += [f"- What would change it: {cell(study['finding']['change'])}"]
        lines += [
            f"- Not estimated: {cell(one['what'])}: {cell(one['reason'])}"
            for one in study["refused"]
        ]
        lines += ["", f"Tables: `studies/{study['name']}`", ""]
    return lines


def _chance(calibration: Mapping[str, Any]) -> list[str]:
    heads = ("flagged", "decoys", "decoys found", "flags by chance", "at most", "check", "reason")
    return table(
        ("benchmark", "policy", *heads),
        [
            (
                row["benchmark"],
                row["policy"],
                row["n_flagged"],
                row["n_decoys"] if row["decoys"] == "made" else row["n_natural"],
                row["n_decoys_flagged"] if row["decoys"] == "made" else row["n_natural_flagged"],
                figure(row["n_chance"]),
                figure(row["fdr"]),
                _check(row["check"]),
                row["reason"],
            )
            for row in calibration["policies"]
        ],
    )


def _check(check: Mapping[str, Any] | None) -> str:
    if check is None or check["holds"] is None:
        return "none"
    return f"{check['kind']}: {'holds' if check['holds'] else 'fails'}"


def _judges(review: Mapping[str, Any]) -> list[str]:
    """What judges were asked; the saving says how much labels can gain by them at the most."""
    if not review.get("judges"):
        return []
    lines = [
        f"- {judge['model']} (prompt {judge['prompt'][:12]}) was asked, too:"
        f" {judge['n_yes']:,} yes, {judge['n_no']:,} no, {judge['n_no_answer']:,} no answer"
        for judge in review["judges"]
    ]
    for row in review["policies"]:
        if row["n_judged"] and row["estimable"]:
            most = row["saving_most"]
            saved = "no limit is seen" if most is None else f"at most {most:.2f} times fewer"
            lines.append(f"- {row['benchmark']}, {row['policy']}: labels saved by it: {saved}")
    return [*lines, ""]


def _review(review: Mapping[str, Any]) -> list[str]:
    names = ("n_read_flagged", "n_read_clean")
    figures = ("precision", "precision_lo", "precision_hi", "recall_lo", "rate", "rate_lo")
    return table(
        ("benchmark", "policy", *names, *figures, "rate_hi", "reason"),
        [
            (
                row["benchmark"],
                row["policy"],
                *(row[name] for name in names),
                *(figure(row[name]) for name in (*figures, "rate_hi")),
                row["reason"] and f"not estimable: {row['reason']}",
            )
            for row in review["policies"]
        ],
    )


def _seen(facts: Facts) -> list[str]:
    return table(
        ("model", "data until", "corpora", "benchmark", "policy", *_SEEN),
        [
            (
                model.model,
                model.cutoff or "not said",
                ", ".join(model.corpora),
                model.benchmark,
                model.policy,
                *(model.before, model.unknown, model.after, model.elsewhere),
            )
            for model in facts.models
        ],
    )


def _corpora(facts: Facts) -> list[str]:
    lines = table(
        ("corpus", "stage", "searched by", "shards read", "shards expected", "rows"),
        [
            (
                corpus.name,
                corpus.stage,
                corpus.how,
                corpus.coverage["shards_read"],
                corpus.coverage["shards_expected"],
                corpus.coverage["rows"],
            )
            for corpus in facts.corpora
        ],
    )
    failed = [
        f"- {cell(failure['shard'])}: {cell(failure['reason'])}"
        for failure in facts.coverage["shards_failed"]
    ]
    excluded = [
        f"- {cell(name)}: excluded on purpose, not searched"
        for name in facts.coverage.get("shards_excluded", ())
    ]
    excluded += [
        f"- {cell(name)}: not in the index, not searched"
        for name in facts.coverage.get("not_indexed", ())
    ]
    reasons = [
        f"- {cell(bench.name)} by {cell(result.policy)}: "
        f"{reason.n} not checkable: {cell(reason.name)}"
        for bench in facts.benchmarks
        for result in bench.policies
        if result.corpus == TOGETHER
        for reason in result.not_checkable_reasons
    ]
    left_out = [
        f"- log left out: {cell(log['path'])}: {cell(log['reason'])}" for log in facts.logs_left_out
    ]
    return [*lines, *failed, *excluded, *reasons, *left_out, ""]


def _cleaned(facts: Facts) -> list[str]:
    lines = []
    for corpus in facts.cleaned:
        told = (
            f"{cell(corpus.corpus)}: benchmark items were found in {corpus.found:,} of "
            f"{corpus.before:,} documents before, of which {corpus.dropped:,} were dropped and "
            f"{corpus.edited:,} edited ({corpus.action}); {corpus.after:,} are left. "
            f"SHA-256 of clean.json: {corpus.record}."
        )
        lines += [
            told,
            "",
            *table(
                ("benchmark", "policy", "flagged before", "flagged here"),
                [
                    (
                        row["benchmark"],
                        row["policy"],
                        row["before"],
                        "not asked" if row["here"] is None else row["here"],
                    )
                    for row in before_and_after(facts, corpus)
                ],
            ),
            *table(
                ("benchmark", "documents found", "items in them"),
                [(row["benchmark"], row["documents"], row["items"]) for row in corpus.by_benchmark],
            ),
            *table(
                ("source", "documents found"),
                [(row["source"] or "not said", row["documents"]) for row in corpus.by_source],
            ),
            *(f"- not kept: {cell(what)}" for what in corpus.not_kept),
            "",
        ]
    return lines


def _waivers(facts: Facts) -> list[str]:
    names = ("benchmark", "item", "kind", "reason", "reviewer", "expires")
    return table(names, [[waiver.get(name, "") for name in names] for waiver in facts.waivers])
