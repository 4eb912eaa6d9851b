"""Record what was taken out of a corpus, and what proves it: clean.json."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contam.detect.finish import benchmarks_of, parameters_of, versions
from contam.detect.labels import LABELS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contam.cleaning.choice import CleanOptions
    from contam.corpus.coverage import Coverage
    from contam.detect.model import Int8s
    from contam.detect.plan import Plan
    from contam.detect.scan import Corpus

FORMAT: Final = "contam-clean-1"


@dataclass(frozen=True, eq=False, kw_only=True)
class Searched:
    """What was searched for what, and found.

    labels    int8[n, p], of every item and policy, before anything was taken out
    question  digest of all that decides the result
    spared    rows of the file of what a person found harmless, each with its `state`
    """

    plan: Plan
    corpus: Corpus
    coverage: Coverage
    options: CleanOptions
    labels: Int8s
    question: str
    spared: Sequence[Mapping[str, str]]
    notes: Sequence[str]


def facts_of(options: CleanOptions) -> dict[str, Any]:
    """The options as plain values."""
    found = {one.name: getattr(options, one.name) for one in fields(options)}
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in found.items()
    }


def record_of(
    run: Searched,
    shards: Sequence[Mapping[str, Any]],
    started: float,
    workers: int,
    *,
    done: bool,
) -> dict[str, Any]:
    """The content of clean.json; done  whether the shards were written, or only looked at."""
    plan, corpus = run.plan, run.corpus
    n_rows = run.coverage.total.rows
    # Rows are those of the file, blank lines among them.
    gone = sum(shard["rows_before"] - shard["rows_after"] for shard in shards) if done else 0
    rows_after = n_rows - gone
    action = run.options.action
    n_found = sum(shard["found"] for shard in shards)
    record: dict[str, Any] = {
        "tool": "contam",
        "format": FORMAT,
        "question": run.question,
        "options": facts_of(run.options),
        "parameters": parameters_of(plan),
        "inputs": {**corpus.inputs(), "benchmarks": benchmarks_of(plan)},
        "versions": versions(),
        "coverage": run.coverage.totals,
        **({"spared": list(run.spared)} if run.spared else {}),
        "notes": list(run.notes),
        "before": _labels(run),
        "documents": {
            "before": n_rows,
            "found": n_found,
            "share": round(n_found / n_rows, 9) if n_rows else 0.0,
            "dropped": n_rows - rows_after,
            "edited": n_found - (n_rows - rows_after) if done and action in ("mask", "cut") else 0,
            "after": rows_after,
        },
    }
    record["removed"] = _removed(run, shards)
    record["proof"] = _proof(run, shards) if done else {}
    record["shards"] = [
        {
            key: value
            for key, value in shard.items()
            if key not in ("benchmarks", "sources", "items")
        }
        for shard in shards
    ]
    # The only section that differs between equal runs.
    record["timings"] = {
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
        "seconds": round(time.time() - started, 3),
        "workers": workers,
    }
    return record


def _labels(run: Searched) -> list[dict[str, Any]]:
    """Of each policy and benchmark, the items by label, before anything was taken out."""
    names = np.array(run.plan.items.column("benchmark"))
    found = []
    for number, policy in enumerate(run.plan.policies):
        for name in sorted(set(names.tolist())):
            counts = np.bincount(run.labels[names == name, number], minlength=len(LABELS))
            found.append(
                {
                    "policy": policy.spec.id,
                    "benchmark": name,
                    **dict(zip(LABELS, counts.tolist(), strict=True)),
                }
            )
    return found


def _removed(run: Searched, shards: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Documents and items by benchmark, and documents by source."""
    documents: Counter[str] = Counter()
    sources: Counter[str] = Counter()
    items: set[int] = set()
    for shard in shards:
        documents.update(shard.get("benchmarks", {}))
        sources.update(shard.get("sources", {}))
        items.update(shard.get("items", ()))
    names = run.plan.items.column("benchmark")
    n_items = Counter(names[item] for item in items)
    return {
        "by_benchmark": [
            {"benchmark": name, "documents": n, "items": n_items[name]}
            for name, n in sorted(documents.items())
        ],
        "by_source": [
            {"source": name or None, "documents": n} for name, n in sorted(sources.items())
        ],
    }


def _proof(run: Searched, shards: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What was looked at once all was written."""
    if run.options.action == "list":
        return {}
    searched = [shard for shard in shards if shard["found"]]
    return {
        "shards_searched_again": len(searched),
        "shards_equal_by_digest": len(shards) - len(searched),
        "passes": max((shard["passes"] for shard in searched), default=0),
        "documents_left": 0,
        "rows_before": sum(shard["rows_before"] for shard in shards),
        "rows_after": sum(shard["rows_after"] for shard in shards),
        "rows_same": sum(shard.get("rows_same", shard["rows_after"]) for shard in shards),
    }
