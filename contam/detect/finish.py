"""Merged evidence -> verdicts, evidence rows and the record of the run."""

from __future__ import annotations

import platform
import resource
import time
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

import numpy as np

from contam.benchmark.keys import KEY_VERSION, content_keys, text_key
from contam.corpus.documents import DocumentMeta
from contam.detect.model import (
    ANSWER,
    CHOICES,
    CLEAN,
    LABELS,
    NOT_CHECKABLE,
    PARTS,
    PASSAGE,
    QUESTION,
    Judgements,
    Pairs,
)
from contam.detect.result import ScanResult
from contam.errors import ShardError
from contam.text.tables import NORMALISER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from contam.detect.collect import Collection
    from contam.detect.lane import Lane
    from contam.detect.plan import Plan
    from contam.detect.sources import Sources

    Metadata = dict[tuple[int, int], DocumentMeta]

_PACKAGES = ("contam", "numpy", "numba", "pyarrow", "tokenizers")
#: A part counts as standing in a document from this weight share on.
STANDS = 0.5
#: So does one with a run of this many tokens, as long as it may be.
LONG_RUN = 13
NEAR = 0.75
#: A copy has this share of the tokens themselves.
MOST = 0.7


def finish(
    plan: Plan,
    sources: Sources,
    collections: Sequence[Collection],
    *,
    started: float,
    workers: int,
) -> ScanResult:
    """Judge every item under every policy and describe the documents kept as evidence.

    sources      the documents that were searched; collections  what was found, one a lane
    started      when the run began, seconds since 1970; workers  threads it had
    """
    notes = list(sources.notes)
    metadata = _metadata(sources, collections, notes)
    verdicts = _verdicts(plan, sources, collections, metadata)
    evidence = _evidence(plan, sources, collections, metadata)
    for benchmark in plan.benchmarks:
        notes += [
            f"{benchmark.name}: skipped {row.source}:{row.line}: {row.reason}"
            for row in benchmark.skipped
        ]
    run = {
        "parameters": _parameters(plan),
        "inputs": {**sources.inputs(), "benchmarks": _benchmarks(plan)},
        "versions": _versions(),
        "coverage": sources.coverage.to_dict(),
        "notes": notes,
        "timings": {
            "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(started)),
            "seconds": round(time.time() - started, 3),
            "workers": workers,
            "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        },
    }
    return ScanResult(
        verdict_columns=verdicts,
        evidence_columns=evidence,
        item_columns=_item_columns(plan),
        run=run,
        items_in_order=plan.items,
        sorted_by_item=len(plan.lanes) == 1,
    )


def _metadata(sources: Sources, collections: Sequence[Collection], notes: list[str]) -> Metadata:
    """Who the documents in the answer are; a shard gone meanwhile leaves its place only."""
    rows: dict[int, set[int]] = {}
    for collection in collections:
        pairs, _ = collection.evidence()
        tables = [pairs, *(count.best for count in collection.counts)]
        for table in tables:
            for shard, row in zip(table.shard.tolist(), table.row.tolist(), strict=True):
                if shard >= 0:
                    rows.setdefault(shard, set()).add(row)
    found: Metadata = {}
    for shard, wanted in sorted(rows.items()):
        ordered = sorted(wanted)
        try:
            metas = sources.metadata(shard, ordered)
        except ShardError as error:
            name = sources.names[shard]
            notes.append(f"{name}: evidence without url and date: {error.message}")
            metas = [DocumentMeta("", None, None, None, None) for _ in ordered]
        for row, meta in zip(ordered, metas, strict=True):
            found[shard, row] = meta
    return found


def _document_id(sources: Sources, metadata: Metadata, shard: int, row: int) -> str:
    return metadata[shard, row].document_id or f"{sources.names[shard]}:{row}"


def exposure_of(pairs: Pairs, i: int) -> str:
    """What of the item stands in the document of row i."""
    if pairs.item[i] < 0:
        return "none"
    coverage = pairs.coverage[i]
    stands = [
        bool(coverage[part] >= STANDS or pairs.exact[i, part] or pairs.longest[i, part] >= LONG_RUN)
        for part in range(len(PARTS))
    ]
    if stands[QUESTION]:
        return "question+answer" if pairs.answer_near[i] else "question"
    if stands[PASSAGE]:
        return "passage_only"
    if stands[ANSWER] or stands[CHOICES]:
        return "answer_only"
    return "question" if pairs.longest[i, QUESTION] > 0 or coverage[QUESTION] > 0 else "none"


def kind_of(pairs: Pairs, i: int, exposure: str, n_tokens: NDArray[np.int32]) -> str | None:
    """How what stands there compares with the item: exact, near or partial.

    n_tokens  int32[4], tokens of the item's parts
    """
    if exposure == "none":
        return None
    if exposure.startswith("question"):
        part = QUESTION
    elif exposure == "passage_only":
        part = PASSAGE
    else:
        part = ANSWER if pairs.coverage[i, ANSWER] >= pairs.coverage[i, CHOICES] else CHOICES
    if pairs.exact[i, part]:
        return "exact"
    whole = pairs.coverage[i, part] >= NEAR and pairs.aligned[i, part] >= MOST * n_tokens[part]
    return "near" if whole and not (part == QUESTION and pairs.split[i]) else "partial"


def _verdicts(
    plan: Plan, sources: Sources, collections: Sequence[Collection], metadata: Metadata
) -> dict[str, list[Any]]:
    names = [
        "benchmark",
        "split",
        "item_id",
        "policy",
        "label",
        "score",
        "exposure",
        "kind",
        "n_documents",
        "n_occurrences",
        "best_document_id",
        "best_shard",
        "best_row",
        "best_url",
        "best_date",
        "reason",
    ]
    columns: dict[str, list[Any]] = {name: [] for name in names}
    coverage = sources.coverage
    unread = len(coverage.names) - len(coverage.shards_read)
    gap = f"{unread} of {len(coverage.names)} shards unread"
    hide = unread > 0 and not plan.parameters.allow_missing
    seen = [0] * len(plan.lanes)
    for number, policy in enumerate(plan.policies):
        at = plan.lane_of[number]
        collection = collections[at]
        totals = collection.totals(seen[at])
        seen[at] += 1
        items = plan.lanes[at].items
        judged = policy.judge(items, totals)
        judged = Judgements(label=judged.label.copy(), score=judged.score)
        gone = (judged.label == CLEAN) & hide
        best = totals.best_pair
        for i, item in enumerate(plan.items):
            label = int(judged.label[i])
            if gone[i]:
                label, reason = NOT_CHECKABLE, gap
            elif label == CLEAN and best.item[i] < 0:
                reason = "no document shares enough of its wording to be looked at"
            else:
                reason = policy.reason(items, totals, judged, i)
            if unread and label == CLEAN:
                reason += f"; {gap}, which was allowed"
            exposure = exposure_of(best, i)
            if label == CLEAN and exposure.startswith("question"):
                exposure = "none"
            shard, row = int(best.shard[i]), int(best.row[i])
            meta = metadata.get((shard, row))
            values = (
                item.benchmark,
                item.split,
                item.item_id,
                policy.spec.id,
                LABELS[label],
                None if label == NOT_CHECKABLE else float(judged.score[i]),
                exposure,
                kind_of(best, i, exposure, items.n_tokens[i]),
                int(totals.n_documents[i]),
                int(totals.n_occurrences[i]),
                _document_id(sources, metadata, shard, row) if meta else None,
                sources.names[shard] if meta else None,
                row,
                meta.url if meta else None,
                meta.date if meta else None,
                reason,
            )
            for name, value in zip(names, values, strict=True):
                columns[name].append(value)
    return columns


def _evidence(
    plan: Plan, sources: Sources, collections: Sequence[Collection], metadata: Metadata
) -> dict[str, Any]:
    parts: list[dict[str, Any]] = []
    for lane, collection in zip(plan.lanes, collections, strict=True):
        parts.append(_lane_evidence(plan, sources, lane, collection, metadata))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _lane_evidence(
    plan: Plan, sources: Sources, lane: Lane, collection: Collection, metadata: Metadata
) -> dict[str, Any]:
    pairs, pieces = collection.evidence()
    owner = pieces.pair
    item = pairs.item[owner]
    first = lane.items.token_start[item, pieces.part] + pieces.item_token
    last = first + pieces.length - 1
    keys = list(zip(pairs.shard.tolist(), pairs.row.tolist(), strict=True))
    metas = [metadata[key] for key in keys]
    per_pair = {
        "document_id": [_document_id(sources, metadata, *key) for key in keys],
        "shard": [sources.names[shard] for shard, _ in keys],
        "url": [meta.url for meta in metas],
        "date": [meta.date for meta in metas],
        "source": [meta.source for meta in metas],
    }
    per_item = {
        "benchmark": [one.benchmark for one in plan.items],
        "split": [one.split for one in plan.items],
        "item_id": [one.item_id for one in plan.items],
    }
    return {
        **{name: _objects(values)[item] for name, values in per_item.items()},
        **{name: _objects(values)[owner] for name, values in per_pair.items()},
        "part": _objects(PARTS)[pieces.part],
        "row": pairs.row[owner],
        "alignment": pieces.alignment,
        "item_start": lane.item_span[first, 0].astype(np.int64),
        "item_end": lane.item_span[last, 1].astype(np.int64),
        "document_start": pieces.start.astype(np.int64),
        "document_end": pieces.end.astype(np.int64),
        "n_tokens": pieces.length,
        "verified": sources.verified(pairs)[owner],
    }


def _objects(values: Sequence[str | None]) -> NDArray[np.object_]:
    """Texts as an array that can be indexed; rows that share a text share the object."""
    array = np.empty(len(values), np.object_)
    array[:] = values
    return array


def _item_columns(plan: Plan) -> dict[str, Any]:
    keys = [content_keys(item) for item in plan.items]
    tokens = plan.lanes[0].items.n_tokens
    columns: dict[str, Any] = {
        "benchmark": [item.benchmark for item in plan.items],
        "split": [item.split for item in plan.items],
        "item_id": [item.item_id for item in plan.items],
        "key_version": [KEY_VERSION] * len(plan.items),
        "passage_key": [text_key(item.passage) if item.passage else None for item in plan.items],
        "question_key": [key.text_key for key in keys],
        "choices_key": [
            text_key("\n".join(sorted(item.choices))) if item.choices else None
            for item in plan.items
        ],
        "answer_key": [text_key(item.answer) if item.answer else None for item in plan.items],
        "item_key": [key.item_key for key in keys],
        "full_key": [key.full_key for key in keys],
    }
    for at, part in enumerate(PARTS):
        columns[f"{part}_tokens"] = tokens[:, at].tolist()
    if plan.parameters.keep_text:
        columns["passage"] = [item.passage for item in plan.items]
        columns["question"] = [item.question for item in plan.items]
        columns["choices"] = [list(item.choices) if item.choices else None for item in plan.items]
        columns["answer"] = [item.answer for item in plan.items]
    return columns


def _parameters(plan: Plan) -> dict[str, Any]:
    parameters = asdict(plan.parameters)
    parameters["policies"] = [policy.spec.id for policy in plan.policies]
    parameters["policy_definitions"] = {
        policy.spec.id: {**policy.spec.to_dict(), "fingerprint": policy.spec.fingerprint()}
        for policy in plan.policies
    }
    parameters["lanes"] = [
        {
            "seed": lane.spec.seed,
            "min_run": lane.spec.min_run,
            "unit": lane.unit,
            **(lane.tokenizer.fingerprint if lane.tokenizer else {}),
        }
        for lane in plan.lanes
    ]
    parameters["normaliser"] = NORMALISER
    return parameters


def _benchmarks(plan: Plan) -> list[dict[str, Any]]:
    return [
        {
            "name": one.name,
            "n_items": len(one.items),
            "n_skipped": len(one.skipped),
            "duplicates": [[one.items[i].item_id for i in group] for group in one.duplicates],
            "sources": [asdict(source) for source in one.sources],
        }
        for one in plan.benchmarks
    ]


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found
