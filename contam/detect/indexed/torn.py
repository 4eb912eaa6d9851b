"""Find documents of an index whose words are torn and that hold letters of the items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contam.benchmark.items import PARTS
from contam.detect.match.item_tokens import in_blocks
from contam.kernels.letters import LETTER_BITS, letter_keys, new_letter_scratch
from contam.kernels.pairs import DOCUMENT_BITS
from contam.tables.distinct import distinct
from contam.text.tokenizer import char_tables

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from contam.benchmark.item_table import ItemTable
    from contam.detect.indexed.candidates import PlacedSegment
    from contam.detect.model import Bools, Int64s, Uint64s
    from contam.index.segment import Segment

#: Of a key, the highest bits by which most that no index has are left out.
_HEAD_BITS: Final = 24
_KEY: Final = np.uint64(64 - LETTER_BITS)
_HEAD: Final = np.uint64(LETTER_BITS - _HEAD_BITS)


def torn_documents(items: ItemTable, parts: Iterable[PlacedSegment]) -> dict[Path, Int64s]:
    """Documents that a scan may put right by the items' letters, by the folder of their segment.

    Every document is among them of which a scan puts a word right: see contam.kernels.letters.
    """
    segments = [part.segment for part in parts if part.segment.letters.n_pairs]
    if not segments:
        return {}
    keys = _keys(items, _heads(segments) if _is_many(items, segments) else None)
    return {segment.folder: _documents(segment, keys) for segment in segments}


def items_torn(items: ItemTable, segment: Segment, documents: Int64s) -> Bools:
    """Which items have letters that are in some of these torn documents: bool[items]."""
    if not len(documents):
        return np.zeros(len(items), np.bool_)
    pairs, _ = segment.letters.unpacked()
    numbers = (pairs & np.uint64((1 << DOCUMENT_BITS) - 1)).astype(np.int64)
    known = distinct(pairs[np.isin(numbers, documents)] >> np.uint64(DOCUMENT_BITS))
    one_by_one = (_keys(items[at : at + 1]) for at in range(len(items)))
    return np.array([np.isin(keys, known).any() for keys in one_by_one], np.bool_)


def _is_many(items: ItemTable, segments: Iterable[Segment]) -> bool:
    """Whether the items have more keys than all segments, about."""
    if len(items) == 1:
        return False
    n_bytes = int(items.records.n_bytes(PARTS).sum())
    return n_bytes > sum(segment.letters.n_pairs for segment in segments)


def _heads(segments: Iterable[Segment]) -> Bools:
    """Whether any key of the segments has these highest bits: bool[2**24]."""
    heads = np.zeros(1 << _HEAD_BITS, np.bool_)
    for segment in segments:
        pairs, _ = segment.letters.unpacked()
        heads[pairs >> (np.uint64(DOCUMENT_BITS) + _HEAD)] = True
    return heads


def _keys(items: ItemTable, heads: Bools | None = None) -> Uint64s:
    """The keys of the items' letters; given `heads`, those that may be in a segment."""
    found = []
    for data, offsets in (some.part_texts() for some in in_blocks(items)):
        scratch = new_letter_scratch(int(np.diff(offsets).max(initial=0)))
        keys = letter_keys(data, offsets, scratch, char_tables()) >> _KEY
        found.append(keys if heads is None else keys[heads[keys >> _HEAD]])
    return distinct(np.concatenate(found))


def _documents(segment: Segment, keys: Uint64s) -> Int64s:
    return distinct(segment.letters.documents(*segment.letters.find(keys)))
