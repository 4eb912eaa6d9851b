"""Combine several corpora: an item is clean only if it is clean in every one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contam.benchmark.items import ItemName
from contam.detect.labels import WORST_FIRST
from contam.detect.result import VERDICTS, ScanResult
from contam.errors import InternalError
from contam.tables import schemas

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contam.detect.report import Report
    from contam.tables.schemas import Columns, Table

    Row = dict[str, Any]

_KEY: Final = (*ItemName._fields, "policy")


def combine(reports: Mapping[str, Report]) -> ScanResult:
    """The answer of all corpora, by name, that were asked the same items and policies.

    Of each item and policy the worst label counts; documents and occurrences add up; the best
    document is that of the corpus whose label counts, of the highest score among equals. Shards
    get the corpus's name before theirs.
    """
    first = next(iter(reports.values()))
    verdicts = [schemas.rows(report.verdicts) for report in reports.values()]
    if len({len(rows) for rows in verdicts}) != 1:
        raise InternalError("corpora of one audit were asked different items")
    names = tuple(reports)
    joined = [_worst(rows, names) for rows in zip(*verdicts, strict=True)]
    return ScanResult(
        verdict_columns=_columns(joined, VERDICTS.names),
        evidence_columns=_evidence(reports, first.items),
        item_columns=_columns(schemas.rows(first.items), schemas.ITEMS.names),
        run=_run(reports),
    )


def _evidence(reports: Mapping[str, Report], items: Table) -> Columns:
    """The evidence of all corpora: in the order of the items, then of the corpora."""
    whole = schemas.stacked({name: report.evidence for name, report in reports.items()}, "shard")
    known, named = (
        zip(*(schemas.column(table, name) for name in ItemName._fields), strict=True)
        for table in (items, whole)
    )
    place = {name: at for at, name in enumerate(known)}
    order = np.argsort([place[name] for name in named], kind="stable")
    whole = schemas.take(whole, order.astype(np.int64))
    return {name: whole.column(name) for name in whole.column_names}


def merged_coverage(coverages: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """What was read of all corpora: sums, failures with the corpus's name, complete if all are."""
    total: dict[str, Any] = {
        "shards_expected": 0,
        "shards_read": 0,
        "shards_failed": [],
        "complete": all(coverage["complete"] for coverage in coverages.values()),
    }
    for name, coverage in coverages.items():
        total["shards_failed"] += [
            {**failure, "shard": f"{name}/{failure['shard']}"}
            for failure in coverage["shards_failed"]
        ]
        for kind in ("shards_excluded", "not_indexed", "passed_over", "unread_columns"):
            if shards := coverage.get(kind):
                total.setdefault(kind, []).extend(f"{name}/{shard}" for shard in shards)
        for key, value in coverage.items():
            if isinstance(value, int) and not isinstance(value, bool):
                total[key] = total.get(key, 0) + value
    return {**total, "by_corpus": dict(coverages)}


def _worst(rows: Sequence[Row], names: Sequence[str]) -> Row:
    keys = {tuple(row[name] for name in _KEY) for row in rows}
    if len(keys) != 1:
        raise InternalError("corpora of one audit were asked in different orders")
    at = min(
        range(len(rows)),
        key=lambda at: (WORST_FIRST.index(rows[at]["label"]), -(rows[at]["score"] or 0.0)),
    )
    worst = rows[at]
    shard = worst["best_shard"]
    where = f"clean in {', '.join(names)}" if worst["label"] == "clean" else names[at]
    return {
        **worst,
        "score": max((row["score"] for row in rows if row["score"] is not None), default=None),
        "n_documents": sum(row["n_documents"] for row in rows),
        "n_occurrences": sum(row["n_occurrences"] for row in rows),
        "best_shard": None if shard is None else f"{names[at]}/{shard}",
        "reason": f"{where}: {worst['reason']}",
    }


def _columns(rows: Sequence[Row], names: Sequence[str]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in names}


def _run(reports: Mapping[str, Report]) -> dict[str, Any]:
    first = next(iter(reports.values())).run
    every = [report.run for report in reports.values()]
    same = [run["parameters"]["policy_definitions"] for run in every]
    if any(definitions != same[0] for definitions in same[1:]):
        raise InternalError("corpora of one audit were judged by different policies")
    shards = [
        # A scan says once which column it read; an index says it of each shard.
        {
            "column": report.run["parameters"]["text"],
            **({"columns": told} if (told := report.run["parameters"].get("columns")) else {}),
            **shard,
            "name": f"{name}/{shard['name']}",
        }
        for name, report in reports.items()
        for shard in report.run["inputs"]["shards"]
    ]
    skipped = [file for run in every for file in run["inputs"].get("skipped_files", ())]
    return {
        "parameters": {
            # Each shard says which columns were read of it, the coverage what was left out.
            **{
                name: value
                for name, value in first["parameters"].items()
                if name not in {"columns", "exclude"}
            },
            "allow_missing": any(run["parameters"]["allow_missing"] for run in every),
            "text": None,
            "corpora": list(reports),
        },
        "inputs": {
            "shards": shards,
            "benchmarks": first["inputs"]["benchmarks"],
            **({"skipped_files": skipped} if skipped else {}),
        },
        "versions": first["versions"],
        "coverage": merged_coverage({n: report.run["coverage"] for n, report in reports.items()}),
        "notes": [f"{name}: {note}" for name, r in reports.items() for note in r.run["notes"]],
    }
