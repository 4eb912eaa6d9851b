"""The figures of an index beside those of a scan, and the table they are shown in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from quality_aims import recall_rank

if TYPE_CHECKING:
    from collections.abc import Sequence

Record = dict[str, Any]

HEADER: Final = ("class", "items", "scan", "index")
POLICY: Final = "contam"
INDEXED: Final = f"{POLICY} of an index"
"""As floors name its answer."""

#: Share of the items that may be left open by an index where a scan is sure.
MOST_OPEN: Final = 0.001


def side_by_side(measured: Sequence[Record]) -> list[Record]:
    """Items of each class, core and hard together, and how many of them each answer found."""
    sums: dict[str, Record] = {}
    for at, record in enumerate(measured):
        for row in record["recall"]:
            empty = {"class": row["class"], "n": 0, "found": [0] * len(measured)}
            entry = sums.setdefault(row["class"], empty)
            entry["found"][at] += row["found"]
            entry["n"] += row["n"] if at == 0 else 0
    rows = sorted(sums.values(), key=lambda row: recall_rank(row["class"]))
    return [row for row in rows if row["n"]]


def index_rows(index: Record) -> list[list[str]]:
    """The table of classes and costs: what, items, scan, index."""
    rows = [
        [row["class"], f"{row['n']:,}", *(f"{100 * one / row['n']:.1f}" for one in row["found"])]
        for row in index["recall"]
    ]
    n_bytes, text = index["n_index_bytes"], index["n_text_bytes"]
    rows.append(["bytes on disk", "", "0", f"{n_bytes:,}"])
    rows.append(["for each byte of text", "", "0.000", f"{n_bytes / text:.3f}"])
    rows.append(["documents read", "", f"{index['n_documents']:,}", f"{index['documents_read']:,}"])
    return rows
