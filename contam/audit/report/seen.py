"""Find which flagged items a model can have seen: in its corpora, before its cutoff."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

from contam.audit.facts import ModelFacts
from contam.corpus.dates import span_of
from contam.errors import ConfigError, Public, Remedy
from contam.tables.sql import Database

if TYPE_CHECKING:
    import datetime as dt
    from collections.abc import Iterable, Mapping

    from contam.audit.spec import AuditSpec, ModelSpec
    from contam.detect.report import Report

BEFORE: Final = "before"
UNKNOWN: Final = "unknown"
AFTER: Final = "after"
_BEST_FIRST: Final = (BEFORE, UNKNOWN, AFTER)
"""What one document is enough for comes first."""

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
                remedy=Remedy.CHOOSE_MODEL_OF_LOGS(known=", ".join(known) or "none"),
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
    database = Database()
    try:
        database.add_table("verdicts", report.verdicts)
        database.add_table("evidence", report.evidence)
        rows = database.ask(_FLAGGED)[1]
    finally:
        database.close()
    found: Dates = {}
    for benchmark, policy, split, item, date in rows:
        found.setdefault((benchmark, policy), {}).setdefault((split, item), set()).add(date)
    return found


def _facts(
    name: str, model_spec: ModelSpec, group: Group, dates: Mapping[str, Dates]
) -> ModelFacts:
    own = model_spec.corpora or tuple(dates)
    best: dict[tuple[str, str], str] = {}
    elsewhere: set[tuple[str, str]] = set()
    for corpus, found in dates.items():
        for item, days in found.get(group, {}).items():
            if corpus not in own:
                elsewhere.add(item)
                continue
            kinds = [_when(day, model_spec.cutoff) for day in days]
            if item in best:
                kinds.append(best[item])
            best[item] = min(kinds, key=_BEST_FIRST.index)
    count = Counter(best.values())
    return ModelFacts(
        model=name,
        benchmark=group[0],
        policy=group[1],
        cutoff=model_spec.cutoff.isoformat() if model_spec.cutoff else None,
        corpora=own,
        before=count[BEFORE],
        unknown=count[UNKNOWN],
        after=count[AFTER],
        elsewhere=len(elsewhere - set(best)),
    )


def _when(date: str | None, cutoff: dt.date | None) -> str:
    """Whether a document was there before a model's data ended; one that may be either: unknown."""
    when = span_of(date)
    if when is None or cutoff is None:
        return UNKNOWN
    if when[1] <= cutoff:
        return BEFORE
    return AFTER if when[0] > cutoff else UNKNOWN
