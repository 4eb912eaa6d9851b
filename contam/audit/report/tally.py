"""Count verdicts and evidence by benchmark and policy."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, Final

from contam.audit.facts import Counted, PolicyFacts, SourceFacts
from contam.corpus.dates import CLASSES, class_of, month_of
from contam.detect.labels import FLAGGED
from contam.detect.result import label_counts
from contam.detect.show.choose import source_of
from contam.tables.sql import Database

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from contam.detect.report import Report


MOST_SOURCES: Final = 20
MOST_REASONS: Final = 10

_STANDING = """
SELECT benchmark, policy, label, exposure, coalesce(kind, ''), reason, count(*)
FROM verdicts WHERE label <> 'clean' GROUP BY ALL ORDER BY ALL
"""
_DOCUMENTS = """
SELECT v.benchmark, v.policy, v.split, v.item_id, e.shard, e.row, any_value(e.date),
  any_value(e.source), any_value(e.url)
FROM verdicts v JOIN evidence e USING (benchmark, split, item_id)
WHERE v.label IN ('contaminated', 'suspect') GROUP BY ALL ORDER BY ALL
"""

Key = tuple[str, str]


def tally(
    report: Report,
    corpus: str,
    released: Mapping[str, str],
    *,
    most_sources: int | None = MOST_SOURCES,
) -> dict[Key, PolicyFacts]:
    """Facts of every (benchmark, policy) of one result.

    released  day on which a benchmark came out, by name
    """
    database = Database()
    try:
        database.add_table("verdicts", report.verdicts)
        database.add_table("evidence", report.evidence)
        standing = database.ask(_STANDING)[1]
        documents = database.ask(_DOCUMENTS)[1]
    finally:
        database.close()
    exposures: defaultdict[Key, Counter[str]] = defaultdict(Counter)
    kinds: defaultdict[Key, Counter[str]] = defaultdict(Counter)
    reasons: defaultdict[Key, Counter[str]] = defaultdict(Counter)
    for benchmark, policy, label, exposure, kind, reason, n in standing:
        key = (benchmark, policy)
        if label in FLAGGED:
            exposures[key][exposure] += n
            kinds[key][kind or "none"] += n
        else:
            reasons[key][reason] += n
    dates, sources, months = _provenance(documents, released)
    found = {}
    for benchmark, policies in label_counts(report.verdicts).items():
        for policy, labels in policies.items():
            key = (benchmark, policy)
            n = sum(labels.values())
            flagged = sum(labels[label] for label in FLAGGED)
            undated = flagged - sum(dates[key].values())
            dates[key]["unknown"] += undated
            found[key] = PolicyFacts(
                policy=policy,
                corpus=corpus,
                n_items=n,
                **labels,
                flagged_share=flagged / n,
                exposures=_most(exposures[key]),
                kinds=_most(kinds[key]),
                dates=tuple(Counted(name=name, n=dates[key][name]) for name in CLASSES),
                sources=sources.get(key, ())[:most_sources],
                not_checkable_reasons=_most(reasons[key])[:MOST_REASONS],
                months=months.get(key, ()),
            )
    return found


def _provenance(
    documents: Iterable[tuple[Any, ...]], released: Mapping[str, str]
) -> tuple[
    defaultdict[Key, Counter[str]],
    dict[Key, tuple[SourceFacts, ...]],
    dict[Key, tuple[Counted, ...]],
]:
    """Flagged items by date class (the worst of each item), by source and by month."""
    classes: dict[tuple[Key, str, str], str] = {}
    items: defaultdict[Key, defaultdict[str, set[tuple[str, str]]]] = defaultdict(
        lambda: defaultdict(set)
    )
    places: defaultdict[Key, defaultdict[str, set[tuple[str, int]]]] = defaultdict(
        lambda: defaultdict(set)
    )
    by_month: defaultdict[Key, defaultdict[str, set[tuple[str, str]]]] = defaultdict(
        lambda: defaultdict(set)
    )
    for benchmark, policy, split, item, shard, row, date, source, url in documents:
        key = (benchmark, policy)
        kind = class_of(date, released.get(benchmark))
        before = classes.get((key, split, item), CLASSES[-1])
        classes[key, split, item] = min(before, kind, key=CLASSES.index)
        name = source_of(source, url)
        items[key][name].add((split, item))
        places[key][name].add((shard, row))
        by_month[key][month_of(date)].add((split, item))
    dates: defaultdict[Key, Counter[str]] = defaultdict(Counter)
    for (key, _, _), kind in classes.items():
        dates[key][kind] += 1
    sources = {}
    for key, by_name in items.items():
        order = sorted(by_name, key=lambda name: (-len(by_name[name]), name))
        sources[key] = tuple(
            SourceFacts(source=name, n_items=len(by_name[name]), n_documents=len(places[key][name]))
            for name in order
        )
    months = {
        key: tuple(Counted(name=name, n=len(found[name])) for name in sorted(found))
        for key, found in by_month.items()
    }
    return dates, sources, months


def _most(counts: Counter[str]) -> tuple[Counted, ...]:
    order = sorted(counts, key=lambda name: (-counts[name], name))
    return tuple(Counted(name=name, n=counts[name]) for name in order)
