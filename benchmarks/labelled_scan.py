"""One real scan of a labelled pack, and every verdict, piece of evidence and pair as a table."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import duckdb
import numpy as np
import pyarrow as pa

from contam.detect.finish import finish
from contam.detect.indexed.guarantee import refuse_unanswerable
from contam.detect.indexed.indexes import IndexSet
from contam.detect.indexed.search import search
from contam.detect.labels import CONTAMINATED, LABELS
from contam.detect.model import PASSAGE, QUESTION, Pairs, Totals
from contam.detect.plan import Plan, ScanParameters, make_plan
from contam.detect.policies.policy import get_policy
from contam.detect.policies.standing import EXPOSURES, KINDS, exposures, kinds
from contam.detect.query import describe, guard, sources_of
from contam.detect.scan import Corpus, scan_units

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contam.detect.match.collect import Collection
    from contam.detect.match.lane import Lane
    from contam.detect.model import Int8s
    from contam.detect.policies.policy import Policy
    from contam.detect.result import ScanResult

_EVERY_PAIR: Final = 1 << 40


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelledScan:
    """What one scan said, as Arrow tables.

    verdicts  a row per item and policy, as `contam.scan` gives it
    evidence  a row per run of an item part in a document, as `contam.scan` gives it
    pairs     a row per item, document with anything of it, and policy: score, and the label,
              exposure and kind the item would have if this document were the whole corpus
    items     a row per item: item_id, n_words (tokens of passage and question)
    run       the record of the run; seconds of its phases
    """

    verdicts: pa.Table
    evidence: pa.Table
    pairs: pa.Table
    items: pa.Table
    run: dict[str, Any]
    seconds: dict[str, float]


def scan_pack(data: Path, policies: Sequence[str], *, workers: int) -> LabelledScan:
    """Scan `data`/corpus for `data`/items; raises ContamError where a scan would.

    The same steps as `contam.scan`, taken one by one: a label may speak of a document that is not
    among the best of its item, so every pair is kept until it is written down. Verdicts and
    evidence are those of a scan with the usual bound.
    """
    started = time.time()
    corpus = Corpus.open([data / "corpus"], None)
    plan = make_plan([data / "items"], ScanParameters(policies=tuple(policies)))
    usual = plan.parameters.max_evidence
    unbounded = replace(plan, parameters=replace(plan.parameters, max_evidence=_EVERY_PAIR))
    planned = time.time()
    partial = scan_units(unbounded, corpus, workers=workers)
    scanned = time.time()
    names = [shard.name for shard in corpus.shards]
    ids = _document_ids(data / "corpus")
    pairs = _pair_table(plan, names, partial.collections, ids)
    strict = [one for one in policies if not get_policy(one).traits.sees_variants]
    if strict and len(strict) < len(policies):
        # Where a reading was folded into a pair, it is no longer what those policies saw.
        asked = replace(plan.parameters, policies=tuple(strict), max_evidence=_EVERY_PAIR)
        other = make_plan([data / "items"], asked)
        found = scan_units(other, corpus, workers=workers).collections
        pairs = pa.concat_tables([pairs, _pair_table(other, names, found, ids)])
    for collection in partial.collections:
        collection.shared.kept.keep_only(usual)
    sources = corpus.sources(partial.coverage)
    result = finish(plan, sources, partial.collections, started=started, workers=workers)
    return _labelled(plan, result, pairs, (started, planned, scanned))


def query_pack(
    data: Path, index: Path, policies: Sequence[str], *, workers: int, near: bool
) -> LabelledScan:
    """Ask an index of `data`/corpus for `data`/items; raises ContamError where a query would.

    near  whether sketches propose documents, too
    """
    started = time.time()
    opened = IndexSet.open(index)
    parameters = ScanParameters(policies=tuple(policies), unit=opened.unit)
    refuse_unanswerable([get_policy(one) for one in policies], opened.recipe)
    plan = make_plan([data / "items"], parameters)
    usual = plan.parameters.max_evidence
    unbounded = replace(plan, parameters=replace(plan.parameters, max_evidence=_EVERY_PAIR))
    planned = time.time()
    answer = search(opened, unbounded, workers=workers, near=near)
    guarded = guard(plan, answer)
    scanned = time.time()
    ids = _document_ids(data / "corpus")
    pairs = _pair_table(plan, opened.names, [answer.collection], ids)
    answer.collection.shared.kept.keep_only(usual)
    sources = sources_of(opened, answer)
    result = finish(guarded, sources, [answer.collection], started=started, workers=workers)
    result.run["index"] = describe(opened, guarded, answer)
    return _labelled(plan, result, pairs, (started, planned, scanned))


def _labelled(
    plan: Plan, result: ScanResult, pairs: pa.Table, times: tuple[float, float, float]
) -> LabelledScan:
    """The tables of a result; times: when the run began, was planned and had searched it all."""
    started, planned, scanned = times
    return LabelledScan(
        verdicts=result.verdicts,
        evidence=result.evidence,
        pairs=pairs,
        items=_item_table(plan),
        run=result.run,
        seconds={
            "plan": round(planned - started, 2),
            "scan": round(scanned - planned, 2),
            "tables": round(time.time() - scanned, 2),
        },
    )


def _item_table(plan: Plan) -> pa.Table:
    words = plan.lanes[0].items.n_tokens[:, [PASSAGE, QUESTION]].sum(axis=1)
    return pa.table(
        {
            "item_id": [item.item_id for item in plan.items],
            "benchmark": [item.benchmark for item in plan.items],
            "n_words": words.astype(np.int32),
        }
    )


def _document_ids(corpus: Path) -> dict[tuple[str, int], str]:
    """(shard, row) -> document id, read without contam."""
    rows = duckdb.execute(
        "select filename, file_row_number, id from read_parquet($files, union_by_name = true,"
        " filename = true, file_row_number = true)",
        {"files": str(corpus / "**" / "*.parquet")},
    ).fetchall()
    return {(Path(name).relative_to(corpus).as_posix(), row): one for name, row, one in rows}


def _pair_table(
    plan: Plan,
    names: Sequence[str],
    collections: Sequence[Collection],
    ids: dict[tuple[str, int], str],
) -> pa.Table:
    tables = []
    for policy, at in zip(plan.policies, plan.lane_of, strict=True):
        collection = collections[at]
        if plan.lanes[at].glued is not None and not policy.traits.sees_variants:
            continue
        pairs, _ = collection.evidence()
        label = label_pairs(policy, pairs, plan.lanes[at], collection)
        exposure = exposures(pairs)
        kind = kinds(pairs, exposure, plan.lanes[at].items.n_tokens[pairs.item])
        shards = [names[shard] for shard in pairs.shard.tolist()]
        tables.append(
            pa.table(
                {
                    "policy": pa.array([policy.spec.id] * len(pairs), pa.string()),
                    "item_id": pa.array(
                        [plan.items[i].item_id for i in pairs.item.tolist()], pa.string()
                    ),
                    "document_id": pa.array(
                        [ids.get(key) for key in zip(shards, pairs.row.tolist(), strict=True)],
                        pa.string(),
                    ),
                    "score": policy.score_pairs(pairs, plan.lanes[at].items),
                    "label": pa.array([LABELS[one] for one in label.tolist()], pa.string()),
                    "exposure": pa.array(
                        [EXPOSURES[one] for one in exposure.tolist()], pa.string()
                    ),
                    "kind": pa.array(
                        [KINDS[one] if one >= 0 else None for one in kind.tolist()],
                        pa.string(),
                    ),
                    "longest_question": pairs.longest[:, QUESTION].copy(),
                    "coverage_question": pairs.coverage[:, QUESTION].copy(),
                }
            )
        )
    return pa.concat_tables(tables)


def label_pairs(policy: Policy, pairs: Pairs, lane: Lane, collection: Collection) -> Int8s:
    """What the policy would call each pair's item if there were no other document.

    pairs   m rows, by item; returns int8[m], indices into LABELS
    """
    items = lane.items
    hits = policy.hits(pairs, items)
    if policy.spec.scope != "one document":
        return np.where(hits, CONTAMINATED, 0).astype(np.int8)
    score = policy.score_pairs(pairs, items)
    first = np.flatnonzero(np.concatenate([[True], pairs.item[1:] != pairs.item[:-1]]))
    place = np.arange(len(pairs)) - np.repeat(first, np.diff(np.append(first, len(pairs))))
    label = np.zeros(len(pairs), np.int8)
    # A policy judges items, so the pairs are handed to it one document an item at a time.
    for turn in range(int(place.max(initial=-1)) + 1):
        rows = np.flatnonzero(place == turn)
        label[rows] = policy.judge(
            items, _only(pairs.take(rows), score[rows], hits[rows], collection)
        ).label[pairs.item[rows]]
    return label


def _only(pairs: Pairs, score: Any, hits: Any, collection: Collection) -> Totals:  # noqa: ANN401
    """The totals of a corpus that holds of each item one document, or none."""
    n = collection.lane.items.n_items
    at = pairs.item
    best = Pairs.zeros(n)
    for name in best.__dataclass_fields__:
        getattr(best, name)[at] = getattr(pairs, name)
    n_documents = np.zeros(n, np.int64)
    n_documents[at] = hits
    best_score = np.zeros(n, np.float64)
    best_score[at] = score
    return Totals(
        longest_at=collection.longest_at,
        n_documents=n_documents,
        n_occurrences=n_documents.copy(),
        best_score=best_score,
        best_shard=best.shard,
        best_row=best.row,
        best_pair=best,
    )
