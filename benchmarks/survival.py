"""How much of an item's own question is left in a plant that holds a part of the item."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import duckdb
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

#: Plants that may hold little or nothing of the question: of an item with a passage they can be
#: passage alone.
CUT: Final = ("trunc_first60", "trunc_last60", "split_two", "sent_shuffle")
_GRAM = 3
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_]+")

# Not contam's own tokeniser: what it is measured by must not change with it.
_PLANTS = """
with item as (select id, any_value(question) as question
              from read_json($items, format = 'newline_delimited', union_by_name = true,
                             columns = {id: 'varchar', question: 'varchar'}) group by id)
select l.label_id, item.question, l.shard, l.doc_id, l.char_start, l.char_end,
    l.char_start2, l.char_end2
from read_parquet($labels) l join item on item.id = l.item_id
where l.transformation in $cut and l.tier <> 'grey'
"""


def words(text: str) -> list[str]:
    """Lower-case words; one a character in Han and Kana."""
    return _WORD.findall(text.lower())


def surviving_share(question: Sequence[str], left: Sequence[str]) -> float:
    """Share of the question's words that stand in a gram of the question found in what is left."""
    n = min(_GRAM, len(question))
    if n == 0:
        return 0.0
    grams = {tuple(left[i : i + n]) for i in range(len(left) - n + 1)}
    kept: set[int] = set()
    for i in range(len(question) - n + 1):
        if tuple(question[i : i + n]) in grams:
            kept.update(range(i, i + n))
    return len(kept) / len(question)


def question_survival(data: Path) -> pa.Table:
    """label_id and `survives`, the share of the question left, for the cut plants of a pack."""
    db = duckdb.connect()
    plants = db.execute(
        _PLANTS,
        {
            "items": str(data / "items" / "*.jsonl"),
            "labels": str(data / "labels.parquet"),
            "cut": CUT,
        },
    ).fetchall()
    by_shard: dict[str, set[str]] = {}
    for _, _, shard, document, *_ in plants:
        by_shard.setdefault(shard, set()).add(document)
    texts: dict[str, str] = {}
    for shard, documents in by_shard.items():
        texts |= dict(
            db.execute(
                "select id, text from read_parquet($file) where list_contains($ids, id)",
                {"file": str(data / "corpus" / shard), "ids": sorted(documents)},
            ).fetchall()
        )
    labels, shares = [], []
    for label, question, _, document, start, end, start2, end2 in plants:
        text = texts[document]
        left = words(text[start:end])
        if start2 is not None:
            left += words(text[start2:end2])
        labels.append(label)
        shares.append(surviving_share(words(question), left))
    return pa.table({"label_id": labels, "survives": pa.array(shares, pa.float64())})
