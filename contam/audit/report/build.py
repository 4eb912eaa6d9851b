"""Build the facts of a report from the results of all stages."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from contam.audit.calibration import with_chance
from contam.audit.combine import merged_coverage
from contam.audit.facts import (
    MOST_SOURCES,
    BenchmarkFacts,
    CorpusFacts,
    Facts,
    Headline,
    ModelFacts,
    Number,
    ask,
    tally,
)
from contam.audit.rates import with_precision
from contam.audit.spec import TOGETHER
from contam.corpus.dates import span_of
from contam.detect.report import RUN_FILE
from contam.errors import ConfigError, Public, Statement
from contam.rescore.stats.gain import not_estimable
from contam.rescore.summary import is_gain
from contam.tables import schemas, score_schemas

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from contam.audit.checks import Items
    from contam.audit.spec import AuditSpec, CorpusSpec, ModelSpec
    from contam.detect.report import Report

    Row = dict[str, Any]


LIMITS: Final = (
    "A clean item is clean in the corpora named here, under the policy named beside it.",
    "A copy in other words may be missed: the labelled figures of contam say how often.",
    "Text that was filtered out before training, or is in no corpus named here, was not looked at.",
    "A flag says that the text is there; it does not say that a model learned from it.",
    "The gain is a difference between sets of items: clean items may be harder for other reasons.",
)
"""What no audit of this kind can say."""


def headline(
    benchmarks: Sequence[BenchmarkFacts],
    coverage: Mapping[str, Any],
    policy: str,
    scores: Sequence[Row],
    *,
    ours: Sequence[str] = (),
    n_left_out: int = 0,
    least: int = 0,
) -> Headline:
    """The status and the sentence, by the first policy of the audit.

    ours   the models that scores are told of; all where none are named
    least  items without which nothing is said of a score
    """
    found = [
        (result, bench.name)
        for bench in benchmarks
        for result in bench.policies
        if (result.policy, result.corpus) == (policy, TOGETHER)
    ]
    suspect = sum(result.suspect for result, _ in found)
    flagged = suspect + sum(result.contaminated for result, _ in found)
    items = sum(result.n_items for result, _ in found)
    unchecked = sum(result.not_checkable for result, _ in found)
    read, expected = coverage["shards_read"], coverage["shards_expected"]
    sentences = [
        f"{policy} flags {flagged:,} of {items:,} items ({_percent(flagged, items)}): the corpora "
        "contain them, or part of them."
        if flagged
        else f"None of {items:,} items was found in the corpora, by {policy}."
    ]
    most = ""
    if flagged and len(benchmarks) > 1:
        worst, name = max(found, key=lambda pair: pair[0].flagged_share)
        most = f"Most in {name}: {_percent(worst.contaminated + worst.suspect, worst.n_items)}."
        sentences.append(most)
    if unchecked:
        sentences.append(f"{unchecked:,} could not be checked.")
    best = _largest_change(scores, policy, ours, least)
    sentences += _largest_gain(best, scores, policy, ours)
    if n_left_out:
        logs = "log is" if n_left_out == 1 else "logs are"
        sentences.append(f"{n_left_out:,} {logs} damaged and left out.")
    third = Number(value=f"{read:,} of {expected:,}", of="shards of the corpora were read.")
    to_do = []
    if not coverage["complete"]:
        sentences.insert(0, f"Not all of the corpora was read: {read:,} of {expected:,} shards.")
        to_do.append(
            "Have the missing shards read, and run the audit again: they may hold more items."
        )
    elif best:
        third = Number(
            value=f"{best['full']:.3f} \N{RIGHTWARDS ARROW} {best['clean']:.3f}",
            of=f"{best['model']} on {best['benchmark']} ({best['metric']}), without the flagged "
            f"items: the largest change. {' '.join(_beyond(best))}".strip(),
        )
    if n_left_out:
        to_do.append("Mend the damaged logs, or say beside the scores that they are left out.")
    if best:
        to_do.append("Report the scores on clean items beside those on all items.")
    elif scores:
        to_do.append(
            "No clean score is estimated: the notes of each benchmark say what is missing."
        )
    elif flagged:
        to_do.append("Score the models on the clean items, too: name their logs in AUDIT.toml.")
    if suspect:
        to_do.append(f"Read the suspect items beside their documents: {suspect:,} by {policy}.")
    if unchecked:
        to_do.append("Say of how many items nothing is known: they are in no clean score.")
    return Headline(
        status="incomplete" if not coverage["complete"] else "flagged" if flagged else "clear",
        text=" ".join(sentences),
        sentence=sentences[0],
        numbers=(
            Number(
                value=_percent(flagged, items),
                of=f"of the items are flagged, as contaminated or suspect. {most}".strip(),
            ),
            Number(
                value=f"{unchecked:,}",
                of=f"item{'s' * (unchecked != 1)} could not be checked: not known to be clean.",
            ),
            third,
        ),
        to_do=tuple(to_do) or ("Nothing: keep this folder, and approve its digest.",),
    )


def scores_of(ours: Sequence[str], scores: Sequence[Row]) -> Sequence[Row]:
    """Those of our models; all, where the audit does not say which are ours."""
    return [row for row in scores if not ours or row["model"] in ours]


def estimated(row: Row, least: int) -> bool:
    """Whether a score has enough flagged and enough clean items for a gain."""
    return row["gain"] is not None and not not_estimable(row["n_flagged"], row["n_clean"], least)


def _largest_change(
    scores: Sequence[Row], policy: str, ours: Sequence[str], least: int
) -> Row | None:
    own = (row for row in scores_of(ours, scores) if row["policy"] == policy)
    known = (row for row in own if estimated(row, least))
    # Of metrics that say the same the more careful p.
    return max(
        known,
        key=lambda row: (abs(float(row["gain"])), row["adjusted_p_holm"] or 0.0),
        default=None,
    )


def _largest_gain(
    best: Row | None, scores: Sequence[Row], policy: str, ours: Sequence[str]
) -> list[str]:
    if best is None:
        unsure = f"No score on clean items could be estimated of {', '.join(ours)}."
        own = [row for row in scores_of(ours, scores) if row["policy"] == policy]
        return [unsure] if own and ours else []
    whose = "our " if ours else ""
    text = f"Without the flagged items {whose}{best['model']} scores {best['clean']:.3f} on "
    measure = f"{best['benchmark']} ({best['metric']})"
    return [f"{text}{measure} instead of {best['full']:.3f}, the largest change.", *_beyond(best)]


def _beyond(row: Row) -> list[str]:
    """Whether a gain is more than easier items explain."""
    if not is_gain(row):
        return []
    p = row["adjusted_p_holm"]
    if p is None:
        return [f"Easier items may explain it ({row['adjusted_by']})."]
    gained = f"{row['adjusted']:+.3f} on the flagged items beyond what the field gains on them"
    if p < _SURE:
        return [f"It gains {gained} (p {p:.2g})."]
    return [f"Easier items may explain it: {gained} is not significant (p {p:.2g})."]


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.1f} %" if whole else "none"


_SURE: Final = 0.05

_BEST_FIRST: Final = ("before", "unknown", "after")
"""When a document was there, by a model's data; what one document is enough for comes first."""

_FLAGGED = """
SELECT DISTINCT v.benchmark, v.policy, v.split, v.item_id, e.date
FROM verdicts v LEFT JOIN evidence e USING (benchmark, split, item_id)
WHERE v.label IN ('contaminated', 'suspect')
"""

Group = tuple[str, str]
Dates = dict[Group, dict[tuple[str, str], set[str | None]]]
"""(benchmark, policy) -> (split, item id) -> dates of the documents that hold the item."""


def refuse_unknown(spec: AuditSpec, scored: Iterable[str]) -> None:
    """Raise ConfigError for a model that AUDIT.toml names and no log has.

    scored  the models of the logs
    """
    known = sorted(set(scored))
    for where, names in (("ours", spec.logs.ours), ("[model]", tuple(spec.models))):
        if unknown := sorted(set(names) - set(known)):
            raise ConfigError(
                "{} names {}, and no log is of that model",
                Public(where),
                unknown[0],
                hint=Statement("models of the logs: {}", ", ".join(known) or "none"),
            )


def seen_by_models(
    spec: AuditSpec, reports: Mapping[str, Report], groups: Iterable[Group]
) -> tuple[ModelFacts, ...]:
    """Which flagged items each model of AUDIT.toml can have seen.

    reports  the result of each corpus, by name
    groups   (benchmark, policy) in the order of the report
    """
    if not spec.models:
        return ()
    dates = {name: _flagged(report) for name, report in reports.items()}
    order = list(groups)
    return tuple(
        _facts(name, model_spec, group, dates)
        for name, model_spec in sorted(spec.models.items())
        for group in order
    )


def _flagged(report: Report) -> Dates:
    found: Dates = {}
    for benchmark, policy, split, item, date in ask(report, _FLAGGED):
        found.setdefault((benchmark, policy), {}).setdefault((split, item), set()).add(date)
    return found


def _facts(
    name: str, model_spec: ModelSpec, group: Group, dates: Mapping[str, Dates]
) -> ModelFacts:
    own = model_spec.corpora or tuple(dates)
    seen: dict[tuple[str, str], list[str]] = {}
    elsewhere: set[tuple[str, str]] = set()
    for corpus, found in dates.items():
        for item, days in found.get(group, {}).items():
            if corpus in own:
                seen.setdefault(item, []).extend(_when(day, model_spec.cutoff) for day in days)
            else:
                elsewhere.add(item)
    count = Counter(min(kinds, key=_BEST_FIRST.index) for kinds in seen.values())
    return ModelFacts(
        model=name,
        benchmark=group[0],
        policy=group[1],
        cutoff=model_spec.cutoff.isoformat() if model_spec.cutoff else None,
        corpora=own,
        elsewhere=len(elsewhere - set(seen)),
        **{kind: count[kind] for kind in _BEST_FIRST},
    )


def _when(date: str | None, cutoff: dt.date | None) -> str:
    """Whether a document was there before a model's data ended; one that may be either: unknown."""
    when = span_of(date)
    if when is not None and cutoff is not None:
        if when[1] <= cutoff:
            return "before"
        if when[0] > cutoff:
            return "after"
    return "unknown"


def make_facts(
    spec: AuditSpec,
    items: Items,
    reports: Mapping[str, Report],
    together: Report,
    *,
    verdicts: str,
    scores: Path | None,
    calibration: Row | None,
    review: Row | None,
) -> Facts:
    """What the reports of an audit say of its verdicts and scores.

    reports      the result of each corpus;  together  the one whose verdicts count
    verdicts     where that one lies in the pack;  scores  folder of the re-scoring
    calibration  what decoys say of chance;  review  what readers said of single items
    """
    own = tally(together, TOGETHER, items.released)
    tallies = {TOGETHER: with_chance(own, calibration)}
    if len(reports) > 1:
        tallies |= {name: tally(report, name, items.released) for name, report in reports.items()}
    definitions = together.run["parameters"]["policy_definitions"]
    policies = together.run["parameters"]["policies"]
    benchmarks = tuple(
        BenchmarkFacts(
            name=benchmark.name,
            n_items=len(benchmark.items),
            n_skipped=len(benchmark.skipped),
            released=items.released.get(benchmark.name),
            policies=tuple(
                found[benchmark.name, policy] for policy in policies for found in tallies.values()
            ),
        )
        for benchmark in items.benchmarks
    )
    coverage = merged_coverage({name: report.run["coverage"] for name, report in reports.items()})
    del coverage["by_corpus"]
    tables, rescored = _rescored(scores)
    if scores is not None:
        refuse_unknown(spec, (row["model"] for row in tables["scores"]))
    left_out = tuple(rescored["damaged"])
    held: defaultdict[str, set[str]] = defaultdict(set)
    for log in rescored["logs"]:
        held[log["benchmark"]].update(log["items_of"])
    logged = {name: tuple(sorted(held[name])) for name in sorted(held)}
    whole = [
        with_precision(row, _rates_of(row, review, logged))
        for row in tables["scores"]
        if row["subset_by"] == "all"
    ]
    return Facts(
        title=spec.title,
        tool={**together.run["versions"], "normaliser": together.run["parameters"]["normaliser"]},
        headline=headline(
            benchmarks,
            coverage,
            policies[0],
            whole,
            ours=spec.logs.ours,
            n_left_out=len(left_out),
            least=spec.least,
        ),
        verdicts=verdicts,
        corpora=tuple(_corpus(corpus, reports[corpus.name]) for corpus in spec.corpora),
        benchmarks=benchmarks,
        scores=tuple(whole),
        rankings=tuple(tables["rankings"]),
        leads=tuple(row for row in tables["pairs"] if row["lead_full"]),
        ours=spec.logs.ours,
        calibration=calibration,
        review=review,
        accepted=(),
        coverage=coverage,
        policies=definitions,
        limits=LIMITS,
        least=spec.least,
        logs_left_out=left_out,
        logged=logged,
        models=seen_by_models(
            spec, reports, ((bench.name, policy) for bench in benchmarks for policy in policies)
        ),
    )


def _corpus(spec: CorpusSpec, report: Report) -> CorpusFacts:
    run = report.run
    index = run.get("index")
    return CorpusFacts(
        name=spec.name,
        stage=spec.stage,
        how="index" if spec.index else "scan",
        guarantee_tokens=index["guarantee_tokens"]
        if index
        else min(lane["min_run"] for lane in run["parameters"]["lanes"]),
        coverage={key: value for key, value in run["coverage"].items() if key != "by_shard"},
        notes=tuple(run["notes"]),
        sources=tuple(_worst(run)),
    )


def _worst(run: Row) -> Iterator[Row]:
    """The worst sources by each policy, of all benchmarks together."""
    rows = [row for row in run.get("sources", {}).get("rows", ()) if row["benchmark"] is None]
    for policy in run["parameters"]["policies"]:
        own = (row for row in rows if row["policy"] == policy and row["documents"])
        yield from islice(own, MOST_SOURCES)


def _rescored(scores: Path | None) -> tuple[dict[str, list[Row]], Row]:
    """The tables of the re-scoring; and the logs that it read, and skipped as damaged."""
    kinds = {
        "scores": score_schemas.SCORES,
        "rankings": score_schemas.RANKINGS,
        "pairs": score_schemas.PAIRS,
    }
    if scores is None:
        return {name: [] for name in kinds}, {"logs": [], "damaged": []}
    tables = {
        name: schemas.rows(schemas.read_parquet(scores / f"{name}.parquet", kind))
        for name, kind in kinds.items()
    }
    return tables, json.loads((scores / RUN_FILE).read_bytes())["inputs"]


def _rates_of(
    row: Row, review: Mapping[str, Any] | None, logged: Mapping[str, Sequence[str]]
) -> list[Row]:
    """What readers said of the flags of a row of scores."""
    names = logged.get(row["benchmark"], ())
    return [
        rate
        for rate in (review or {}).get("policies", ())
        if rate["benchmark"] in names and rate["policy"] == row["policy"]
    ]
