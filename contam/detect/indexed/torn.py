"""Find documents of an index whose words are torn and that hold letters of the items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from contam.benchmark.items import PARTS
from contam.detect.match.item_tokens import in_blocks
from contam.index.segment import documents_of_letters
from contam.kernels.letters import letter_keys, new_letter_scratch
from contam.tables.distinct import distinct
from contam.text.tokenizer import char_tables

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from contam.benchmark.item_table import ItemTable
    from contam.detect.indexed.candidates import PlacedSegment
    from contam.detect.model import Bools, Int64s, Uint64s
    from contam.index.segment import Segment

_DOCUMENT = np.uint64(0xFFFFFFFF)
_HEAD_SHIFT: Final = 40


def torn_documents(items: ItemTable, parts: Iterable[PlacedSegment]) -> dict[Path, Int64s]:
    """Documents that a scan may put right by the items' letters, by the folder of their segment.

    Every document is among them of which a scan puts a word right: see contam.kernels.letters.
    """
    segments = [part.segment for part in parts if len(part.segment.arrays["letters"])]
    if not segments:
        return {}
    keys = _keys(items, _heads(segments) if _is_many(items, segments) else None)
    return {segment.folder: _documents(segment, keys) for segment in segments}


def items_of(items: ItemTable, places: Iterable[tuple[Segment, Int64s]]) -> Bools:
    """Which items have letters that are in some of these torn documents."""
    held = []
    for segment, documents in places:
        letters = segment.arrays["letters"].array
        held.append(letters[np.isin(documents_of_letters(letters), documents)] & ~_DOCUMENT)
    known = distinct(np.concatenate([np.empty(0, np.uint64), *held]))
    one_by_one = (_keys(items[at : at + 1]) for at in range(len(items)))
    return np.array([np.isin(keys, known).any() for keys in one_by_one], np.bool_)


def _is_many(items: ItemTable, segments: Iterable[Segment]) -> bool:
    """Whether the items have more keys than all segments, about."""
    n_bytes = int(items.records.n_bytes(PARTS).sum())
    return n_bytes > sum(len(segment.arrays["letters"]) for segment in segments)


def _heads(segments: Iterable[Segment]) -> Bools:
    """Whether any key of the segments has these highest bits: bool[2**24]."""
    heads = np.zeros(1 << (64 - _HEAD_SHIFT), np.bool_)
    for segment in segments:
        file = segment.arrays["letters"]
        file.check_all()
        heads[file.array >> np.uint64(_HEAD_SHIFT)] = True
    return heads


def _keys(items: ItemTable, heads: Bools | None = None) -> Uint64s:
    """The keys of the items' letters; given `heads`, those that may be in a segment."""
    found = []
    for data, offsets in (some.part_texts() for some in in_blocks(items)):
        scratch = new_letter_scratch(int(np.diff(offsets).max(initial=0)))
        keys = letter_keys(data, offsets, scratch, char_tables())
        found.append(keys if heads is None else keys[heads[keys >> np.uint64(_HEAD_SHIFT)]])
    return distinct(np.concatenate(found))


def _documents(segment: Segment, keys: Uint64s) -> Int64s:
    file = segment.arrays["letters"]
    file.check_all()
    begin = np.searchsorted(file.array, keys)
    end = np.searchsorted(file.array, keys | _DOCUMENT, side="right")
    lengths = end - begin
    row = np.repeat(begin - np.cumsum(lengths) + lengths, lengths) + np.arange(lengths.sum())
    return distinct(documents_of_letters(file.array[row]))
