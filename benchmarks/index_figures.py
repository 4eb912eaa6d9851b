"""The figures of an index beside those of a scan, and the table they are shown in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from quality_aims import recall_rank

if TYPE_CHECKING:
    from collections.abc import Sequence

Record = dict[str, Any]

HEADER: Final = ("class", "items", "scan", "n-grams", "+ MinHash")
POLICY: Final = "contam"
NGRAMS: Final = f"{POLICY} of n-grams"
BOTH: Final = f"{POLICY} of n-grams and MinHash"
#: As floors name them, and whether sketches are asked.
ANSWERS: Final = {NGRAMS: False, BOTH: True}
#: Share of a class that an index with sketches may find less than the scan.
MOST_BEHIND: Final = 0.02


def sizes(by_file: dict[str, int]) -> dict[str, int]:
    """Bytes of the n-gram part and of windows."""
    found = {"n-grams": 0, "MinHash windows": 0}
    for name, n_bytes in by_file.items():
        found["MinHash windows" if name.startswith("minhash_") else "n-grams"] += n_bytes
    return found


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
    """The table of classes and costs: what, items, scan, n-grams, both."""
    rows = [
        [row["class"], f"{row['n']:,}", *(f"{100 * one / row['n']:.1f}" for one in row["found"])]
        for row in index["recall"]
    ]
    text, by_part = index["n_text_bytes"], index["bytes"]
    whole = sum(by_part.values())
    cost = [0, by_part["n-grams"], whole]
    rows.append(["bytes on disk", "", *(f"{one:,}" for one in cost)])
    rows.append(["for each byte of text", "", *(f"{one / text:.3f}" for one in cost)])
    read = [index["n_documents"], *index["documents_read"].values()]
    rows.append(["documents read", "", *(f"{one:,}" for one in read)])
    return rows


def behind(index: Record) -> list[str]:
    """The classes of which sketches and n-grams together find too little of what the scan finds."""
    return [
        row["class"]
        for row in index["recall"]
        if row["found"][0] - row["found"][-1] > MOST_BEHIND * row["n"]
    ]
