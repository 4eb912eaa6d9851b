"""One real scan of a labelled pack, and every verdict, piece of evidence and match as a table."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import duckdb
import numpy as np
import pyarrow as pa

from contam.detect.chunk_scan import scan_chunks
from contam.detect.corpus import Corpus
from contam.detect.finish import finish
from contam.detect.indexed.indexes import IndexSet
from contam.detect.indexed.search import search
from contam.detect.labels import CONTAMINATED, LABELS
from contam.detect.match.collect import TopDocuments
from contam.detect.model import PASSAGE, QUESTION, Matches, Totals
from contam.detect.plan import Plan, ScanParameters, make_plan
from contam.detect.policies.common import EXPOSURES, KINDS, exposures, kinds
from contam.detect.policies.policy import get_policy
from contam.detect.query import missed_by, refuse_unanswerable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contam.detect.match.collect import Collection
    from contam.detect.match.token_view import TokenView
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
    among the best of its item, so every match is kept until it is written down. Verdicts and
    evidence are those of a scan with the usual bound.
    """
    started = time.time()
    corpus = Corpus.open([data / "corpus"], None)
    plan = make_plan([data / "items"], ScanParameters(policies=tuple(policies)))
    usual = plan.parameters.max_evidence
    unbounded = replace(plan, parameters=replace(plan.parameters, max_evidence=_EVERY_PAIR))
    planned = time.time()
    partial = scan_chunks(unbounded, corpus, workers=workers)
    scanned = time.time()
    names = [shard.name for shard in corpus.shards]
    ids = _document_ids(data / "corpus")
    matches = _pair_table(plan, names, partial.collections, ids)
    strict = [policy for policy in policies if not get_policy(policy).traits.sees_variants]
    if strict and len(strict) < len(policies):
        # Where a reading was folded into a match, it is no longer what those policies saw.
        asked = replace(plan.parameters, policies=tuple(strict), max_evidence=_EVERY_PAIR)
        other = make_plan([data / "items"], asked)
        found = scan_chunks(other, corpus, workers=workers).collections
        matches = pa.concat_tables([matches, _pair_table(other, names, found, ids)])
    for collection in partial.collections:
        _keep_top(collection, usual)
    sources = replace(corpus, coverage=partial.coverage)
    result = finish(plan, sources, partial.collections, started=started, workers=workers)
    return _labelled(plan, result, matches, (started, planned, scanned))


def query_pack(data: Path, index: Path, policies: Sequence[str], *, workers: int) -> LabelledScan:
    """Ask an index of `data`/corpus for `data`/items; raises ContamError where a query would."""
    started = time.time()
    opened = IndexSet.open(index)
    parameters = ScanParameters(policies=tuple(policies), unit=opened.unit)
    refuse_unanswerable([get_policy(policy) for policy in policies], opened.recipe)
    plan = make_plan([data / "items"], parameters)
    usual = plan.parameters.max_evidence
    unbounded = replace(plan, parameters=replace(plan.parameters, max_evidence=_EVERY_PAIR))
    planned = time.time()
    answer = search(opened, unbounded, workers=workers)
    missed = missed_by(plan, answer)
    scanned = time.time()
    ids = _document_ids(data / "corpus")
    matches = _pair_table(plan, opened.names, [answer.collection], ids)
    _keep_top(answer.collection, usual)
    result = finish(
        plan, answer, [answer.collection], started=started, workers=workers, missed=missed
    )
    result.run["index"] = answer.about_index()
    return _labelled(plan, result, matches, (started, planned, scanned))


def _keep_top(collection: Collection, most: int) -> None:
    """Keep no more than so many documents of an item as evidence."""
    n_items = collection.view.items.n_items
    top_documents = TopDocuments.of(most, n_items)
    top_documents.add(*collection.shared.top_documents.ranked())
    collection.shared = replace(collection.shared, top_documents=top_documents)


def _labelled(
    plan: Plan, result: ScanResult, matches: pa.Table, times: tuple[float, float, float]
) -> LabelledScan:
    """The tables of a result; times: when the run began, was planned and had searched it all."""
    started, planned, scanned = times
    return LabelledScan(
        verdicts=result.verdicts,
        evidence=result.evidence,
        pairs=matches,
        items=_item_table(plan),
        run=result.run,
        seconds={
            "plan": round(planned - started, 2),
            "scan": round(scanned - planned, 2),
            "tables": round(time.time() - scanned, 2),
        },
    )


def _item_table(plan: Plan) -> pa.Table:
    words = plan.views[0].items.n_tokens[:, [PASSAGE, QUESTION]].sum(axis=1)
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
    for policy, at in zip(plan.policies, plan.view_of, strict=True):
        collection = collections[at]
        if plan.views[at].variants is not None and not policy.traits.sees_variants:
            continue
        matches, _ = collection.evidence()
        label = label_pairs(policy, matches, plan.views[at], collection)
        exposure = exposures(matches)
        kind = kinds(matches, exposure, plan.views[at].items.n_tokens[matches.item])
        shards = [names[shard] for shard in matches.shard.tolist()]
        tables.append(
            pa.table(
                {
                    "policy": pa.array([policy.spec.id] * len(matches), pa.string()),
                    "item_id": pa.array(
                        [plan.items[i].item_id for i in matches.item.tolist()], pa.string()
                    ),
                    "document_id": pa.array(
                        [ids.get(key) for key in zip(shards, matches.row.tolist(), strict=True)],
                        pa.string(),
                    ),
                    "score": policy.score_matches(matches, plan.views[at].items),
                    "label": pa.array([LABELS[one] for one in label.tolist()], pa.string()),
                    "exposure": pa.array(
                        [EXPOSURES[one] for one in exposure.tolist()], pa.string()
                    ),
                    "kind": pa.array(
                        [KINDS[one] if one >= 0 else None for one in kind.tolist()],
                        pa.string(),
                    ),
                    "longest_question": matches.longest[:, QUESTION].copy(),
                    "coverage_question": matches.coverage[:, QUESTION].copy(),
                }
            )
        )
    return pa.concat_tables(tables)


def label_pairs(policy: Policy, matches: Matches, view: TokenView, collection: Collection) -> Int8s:
    """What the policy would call each match's item if there were no other document.

    matches  m rows, by item; returns int8[m], indices into LABELS
    """
    items = view.items
    score = policy.score_matches(matches, items)
    hits = policy.hits(matches, items, score)
    if policy.spec.scope != "one document":
        return np.where(hits, CONTAMINATED, 0).astype(np.int8)
    first = np.flatnonzero(np.concatenate([[True], matches.item[1:] != matches.item[:-1]]))
    place = np.arange(len(matches)) - np.repeat(first, np.diff(np.append(first, len(matches))))
    label = np.zeros(len(matches), np.int8)
    # A policy judges items, so the matches are handed to it one document an item at a time.
    for turn in range(int(place.max(initial=-1)) + 1):
        rows = np.flatnonzero(place == turn)
        label[rows] = policy.judge(
            items, _only(matches.take(rows), score[rows], hits[rows], collection)
        ).label[matches.item[rows]]
    return label


def _only(matches: Matches, score: Any, hits: Any, collection: Collection) -> Totals:  # noqa: ANN401
    """The totals of a corpus that holds of each item one document, or none."""
    n = collection.view.items.n_items
    at = matches.item
    best = Matches.zeros(n)
    for name in best.__dataclass_fields__:
        getattr(best, name)[at] = getattr(matches, name)
    n_documents = np.zeros(n, np.int64)
    n_documents[at] = hits
    best_score = np.zeros(n, np.float64)
    best_score[at] = score
    return Totals(
        longest_at=collection.longest_at,
        n_documents=n_documents,
        n_occurrences=n_documents.copy(),
        best_score=best_score,
        best_match=best,
    )
