"""Quote documents of open indexes, after checking that their text is what was indexed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contam.errors import ShardError
from contam.kernels.candidates import SHUT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contam.detect.indexed.candidates import PlacedSegment
    from contam.detect.indexed.indexes import IndexSet

    Place = tuple[str, int]


def quote(opened: IndexSet, places: Iterable[Place]) -> dict[Place, str]:
    """The texts of the documents at these places (shard name, row).

    One whose shard is gone or changed is not among them, nor one that no answer counts; that of a
    failed read is in the coverage from then on. Raises IndexDamageError.
    """
    rows_of: dict[str, set[int]] = {}
    for name, row in places:
        rows_of.setdefault(name, set()).add(row)
    failed = {failure.shard for failure in opened.coverage.failures}
    found: dict[Place, str] = {}
    for name, rows in sorted(rows_of.items()):
        if name not in opened.names:
            continue
        number = opened.names.index(name)
        crc_of = _crcs(opened, number, rows)
        if number in failed or not crc_of:
            continue
        order = sorted(crc_of)
        crcs = np.array([crc_of[row] for row in order], np.uint32)
        try:
            texts = opened.rows.texts(number, np.array(order, np.int64), crcs)
        except ShardError as error:
            opened.fail(number, error)
            continue
        for row, text in zip(order, texts, strict=True):
            found[name, row] = text.decode()
    return found


def _crcs(opened: IndexSet, number: int, rows: set[int]) -> dict[int, int]:
    """Row -> checksum of its text, of those rows of a shard that the indexes hold."""
    found: dict[int, int] = {}
    for part in opened.parts:
        wanted = sorted(rows - found.keys())
        documents = _documents(part, number, wanted)
        if documents:
            at = np.array(list(documents.values()))
            crcs = part.segment.arrays["doc_crc"].check_many(at, at + 1)
            found |= {row: int(crcs[document]) for row, document in documents.items()}
    return found


def _documents(part: PlacedSegment, number: int, rows: list[int]) -> dict[int, int]:
    """Row -> document of a segment, of those that answers count."""
    begin = 0
    found: dict[int, int] = {}
    for span in part.segment.record.spans:
        if part.number[span.shard] == number:
            for row in rows:
                if span.first_row <= row < span.first_row + span.n_rows:
                    found[row] = begin + row - span.first_row
        begin += span.n_rows
    return {row: document for row, document in found.items() if part.state[document] != SHUT}
