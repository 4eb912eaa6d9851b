"""Decide what goes of a searched corpus, have its shards written, and publish them on record."""

from __future__ import annotations

import json
import time
from collections import Counter
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contam.cleaning.work_folder import CORPUS, RECORD, REMOVED, digest_of
from contam.cleaning.writer import Writer
from contam.detect.finish import benchmarks_of, parameters_of, versions
from contam.detect.labels import LABELS
from contam.files.disk import output_errors
from contam.files.publish import publish_made

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from contam.cleaning.choice import CleanOptions
    from contam.cleaning.findings import Findings
    from contam.cleaning.work_folder import WorkFolder
    from contam.detect.corpus import Corpus

FORMAT: Final = "contam-clean-1"
NAMES: Final = (CORPUS, REMOVED, RECORD)


@dataclass(frozen=True, eq=False, kw_only=True)
class Cleaned:
    """What was done, or would be where too much would go.

    record     the content of clean.json
    folder     where the result is; None where nothing was published
    too_many   more documents would go than was allowed, so nothing was published
    kept       the folder with what was searched then, which the same call takes; it may be removed
    """

    record: dict[str, Any]
    folder: Path | None
    too_many: bool = False
    kept: Path | None = None

    @property
    def not_kept(self) -> list[str]:
        """What some files that were written do not have of the old ones, one sentence each."""
        said = (what for shard in self.record["shards"] for what in shard.get("not_kept", ()))
        return sorted(set(said))


@dataclass(frozen=True, eq=False, kw_only=True)
class Run:
    """A run, once its corpus was searched.

    question  digest of all that decides the result
    workers   threads, and `started` the time of its begin: both only for the record
    """

    corpus: Corpus
    findings: Findings
    question: str
    workers: int
    started: float

    @property
    def options(self) -> CleanOptions:
        """What is done with what was found."""
        return self.findings.cleaning.options

    @property
    def written(self) -> str:
        """Digest of what decides every byte of a shard: labels are of all bytes searched."""
        return digest_of(self.question, sorted(self.findings.sha256.items()))

    def refused(self, kept: Path | None = None) -> Cleaned | None:
        """What would go, where that is too much; else None. kept  see `Cleaned`."""
        found = self.findings
        if found.n_found <= self.options.most_documents(found.coverage.total.rows):
            return None
        record = record_of(self, found.touched, done=False)
        return Cleaned(record=record, folder=None, too_many=True, kept=kept)

    def writer(self, work: WorkFolder) -> Writer:
        """What writes the shards."""
        found = self.findings
        return Writer(
            work=work,
            written=self.written,
            cleaning=found.cleaning,
            corpus=self.corpus,
            names=found.cleaning.plan.items.names().__getitem__,
            rows={number: read.rows + read.n_blank for number, read in found.coverage.read.items()},
            touched=frozenset(found.touched),
            sha256=found.sha256,
            hits=found.hits.of_shard,
        )

    def published(
        self, writer: Writer, noted: Mapping[int, dict[str, Any]], out: Path, *, overwrite: bool
    ) -> Cleaned:
        """Publish all shards; noted  what is to be said of each."""
        record = record_of(self, noted, done=True)
        made = writer.work.result
        writer.work.keep_only(
            {
                path
                for number, facts in noted.items()
                for kind, path in writer.files(number).items()
                if facts[kind] is not None
            }
        )
        with output_errors(out):
            for kind in (CORPUS, REMOVED):
                if kind == REMOVED or self.options.action != "list":
                    (made / kind).mkdir(exist_ok=True)
            (made / RECORD).write_text(json.dumps(record, indent=1) + "\n", "ascii")
        names = [name for name in NAMES if (made / name).exists()]
        publish_made(made, out, names=names, last=RECORD, overwrite=overwrite)
        return Cleaned(record=record, folder=out)


def facts_of(options: CleanOptions) -> dict[str, Any]:
    """The options as plain values."""
    found = {one.name: getattr(options, one.name) for one in fields(options)}
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in found.items()
    }


def record_of(run: Run, noted: Mapping[int, dict[str, Any]], *, done: bool) -> dict[str, Any]:
    """The content of clean.json.

    noted  what is to be said of shards;  done  whether they were written, or only looked at
    """
    found, corpus = run.findings, run.corpus
    plan, spared = found.cleaning.plan, found.spared
    shards = [noted[number] for number in sorted(noted)]
    n_rows = found.coverage.total.rows
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
        "coverage": found.coverage.totals,
        **({"spared": list(spared.rows)} if spared.rows else {}),
        "notes": [*corpus.notes, *spared.notes()],
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
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(run.started)),
        "seconds": round(time.time() - run.started, 3),
        "workers": run.workers,
    }
    return record


def _labels(run: Run) -> list[dict[str, Any]]:
    """Of each policy and benchmark, the items by label, before anything was taken out."""
    plan, labels = run.findings.cleaning.plan, run.findings.labels
    names = np.array(plan.items.column("benchmark"))
    found = []
    for number, policy in enumerate(plan.policies):
        for name in sorted(set(names.tolist())):
            counts = np.bincount(labels[names == name, number], minlength=len(LABELS))
            found.append(
                {
                    "policy": policy.spec.id,
                    "benchmark": name,
                    **dict(zip(LABELS, counts.tolist(), strict=True)),
                }
            )
    return found


def _removed(run: Run, shards: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Documents and items by benchmark, and documents by source."""
    documents: Counter[str] = Counter()
    sources: Counter[str] = Counter()
    items: set[int] = set()
    for shard in shards:
        documents.update(shard.get("benchmarks", {}))
        sources.update(shard.get("sources", {}))
        items.update(shard.get("items", ()))
    names = run.findings.cleaning.plan.items.column("benchmark")
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


def _proof(run: Run, shards: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
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
