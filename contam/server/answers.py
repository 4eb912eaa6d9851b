"""A result as the plain values of an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contam.detect.deadline import REASON as DEADLINE
from contam.detect.quote import quote
from contam.detect.result import item_ranks
from contam.detect.verdict import Verdict
from contam.tables import schemas

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contam.detect.result import ScanResult
    from contam.server.holder import Lease
    from contam.server.schemas.check import Options

Row = dict[str, Any]

_ITEM: Final = ("benchmark", "split", "item_id")
_MOST_FAILURES: Final = 20


def answer_of(result: ScanResult, lease: Lease, options: Options) -> Row:
    """The answer to a check: see `contam.server.schemas.check.CheckAnswer`."""
    verdicts = schemas.records(result.verdict_columns, schemas.VERDICTS)
    if options.evidence:
        by_item = _evidence(result, lease, options)
        for row in verdicts:
            row["evidence"] = by_item.get(tuple(row[name] for name in _ITEM), [])
    # Not by `run`: it tells of every shard, and there may be thousands.
    covered = lease.opened.coverage if result.covered is None else result.covered
    return {
        "verdicts": verdicts,
        **_about(lease),
        "coverage": summary(covered.totals),
        "capped": result.about_index()["capped"],
    }


def late_answer(
    names: Sequence[tuple[str, str, str]], policies: Sequence[str], lease: Lease
) -> Row:
    """The answer when the time is over: nothing is known of any item (benchmark, split, id)."""
    verdicts = [
        Verdict(
            benchmark=benchmark,
            split=split,
            item_id=item_id,
            policy=policy,
            label="not_checkable",
            score=None,
            exposure="none",
            kind=None,
            n_documents=0,
            n_occurrences=0,
            best_document_id=None,
            best_shard=None,
            best_row=None,
            best_url=None,
            best_date=None,
            reason=DEADLINE,
        ).to_dict()
        for benchmark, split, item_id in (names[i] for i in np.argsort(item_ranks(names)).tolist())
        for policy in policies
    ]
    return {
        "verdicts": [{**verdict, "evidence": []} for verdict in verdicts],
        **_about(lease),
        "coverage": summary(lease.opened.coverage.totals),
        "capped": {"cap": lease.opened.recipe.cap, "grams": 0, "items": 0, "first_items": []},
    }


def summary(coverage: Mapping[str, Any]) -> Row:
    """A coverage without its shards one by one: of those that failed, the first are named."""
    short = {name: value for name, value in coverage.items() if name != "by_shard"}
    short["n_failed"] = len(short["shards_failed"])
    short["shards_failed"] = short["shards_failed"][:_MOST_FAILURES]
    return short


def _about(lease: Lease) -> Row:
    return {
        "index": list(lease.names),
        "states": list(lease.states),
        "guarantee_tokens": lease.reader.guarantee_tokens,
    }


def _evidence(
    result: ScanResult, lease: Lease, options: Options
) -> dict[tuple[str, ...], list[Row]]:
    rows = result.evidence_rows()
    items = {(one.benchmark, one.split, one.item_id): one for one in result.items_in_order}
    texts = quote(lease.opened, {(row["shard"], row["row"]) for row in rows if row["verified"]})
    found: dict[tuple[str, ...], list[Row]] = {}
    for row in rows:
        benchmark, split, item_id = (row.pop(name) for name in _ITEM)
        item = items[benchmark, split, item_id]
        own = item.part_text(row["part"])[row["item_start"] : row["item_end"]]
        row["item_text"] = own or None
        text = texts.get((row["shard"], row["row"])) if row["verified"] else None
        row["document_text"] = row["before"] = row["after"] = None
        if text is not None:
            start, end = row["document_start"], row["document_end"]
            row["document_text"] = text[start:end]
            if options.context:
                row["before"] = text[max(start - options.context, 0) : start]
                row["after"] = text[end : end + options.context]
        found.setdefault((benchmark, split, item_id), []).append(row)
    return found
