"""Sample documents again from their shards to check that the index holds all of it."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import numpy as np

from contam.corpus.columns import select_columns
from contam.corpus.documents import read_texts
from contam.errors import CorpusError, ShardError
from contam.index.minhash.compare import compare_sketch
from contam.index.model import NEIGHBOURS
from contam.index.segment import REST_BITS
from contam.index.writing.sampling import tokenizer_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from contam.corpus.columns import Selection
    from contam.corpus.shards import Shard
    from contam.index.model import Manifest, Recipe
    from contam.index.segment import Segment


class Resampler:
    """Compares documents with their entries in an index.

    readable  the shards that are as they were indexed, by their places
    Raises UsageError, ConfigError or IndexMismatchError when the recipe's tokenizer is not there.
    """

    def __init__(self, manifest: Manifest, readable: Mapping[int, Shard]) -> None:
        self._manifest = manifest
        self._readable = readable
        self._tokenizer = tokenizer_of(manifest.recipe)
        self._selections: dict[int, Selection] = {}

    def is_retired(self, shard: int) -> bool:
        """Whether no answer counts the shard any more."""
        return self._manifest.shards[shard].retired

    def compare(self, segment: Segment, document: int) -> str | None:
        """What is wrong with a document; None when nothing is, "" when it cannot be read."""
        shards, rows = segment.place_of([document])
        shard, row = int(shards[0]), int(rows[0])
        name = self._manifest.shards[shard].name
        if shard not in self._readable:
            return ""
        try:
            text = self._text(shard, row)
        except (ShardError, CorpusError):
            return ""
        raw = text.encode()
        expected = segment.arrays["doc_crc"].array[document]
        if zlib.crc32(raw) != expected:
            return f"{name}, row {row}: the text is not the one that was indexed"
        hashes = self._hashes(raw)
        if len(hashes) != segment.arrays["doc_tokens"].array[document]:
            return f"{name}, row {row}: has {len(hashes)} tokens, not those that were indexed"
        missing = _missing(segment, document, hashes)
        if missing is not None:
            return f"{name}, row {row}: the gram at token {missing} is not in the index"
        fact = compare_sketch(segment, document, hashes)
        return None if fact is None else f"{name}, row {row}: {fact}"

    def _text(self, shard: int, row: int) -> str:
        if shard not in self._selections:
            record = self._manifest.shards[shard]
            self._selections[shard] = select_columns(
                self._readable[shard], record.column, record.columns
            )
        return read_texts(self._readable[shard], self._selections[shard], [row])[0]

    def _hashes(self, raw: bytes) -> NDArray[np.uint64]:
        if self._tokenizer is not None:
            return self._tokenizer.encode_text(raw.decode()).hashes
        from contam.kernels.tokens import CHARS, WORDS
        from contam.text.tokenizer import tokenize_bytes

        unit = CHARS if self._manifest.recipe.unit == "char" else WORDS
        return tokenize_bytes(raw, unit=unit).hashes


def entries_of(hashes: NDArray[np.uint64], recipe: Recipe) -> list[tuple[int, int]]:
    """(key, context) of every entry of a document with these tokens, from left to right."""
    from contam.kernels.gram_table import hash_grams

    k = recipe.gram
    grams = np.empty(max(len(hashes), 1), np.uint64)
    count = hash_grams(hashes, 0, len(hashes), k, grams)
    nibbles = (hashes >> np.uint64(60)).tolist()
    found = []
    for at in range(0, count, recipe.stride):
        left = nibbles[max(0, at - NEIGHBOURS) : at][::-1]
        right = nibbles[at + k : at + k + NEIGHBOURS]
        context = sum(nibble << 4 * i for i, nibble in enumerate(left))
        context |= sum(nibble << 4 * (i + NEIGHBOURS) for i, nibble in enumerate(right))
        found.append((int(grams[at]) >> 24, context))
    return found


def _missing(segment: Segment, document: int, hashes: NDArray[np.uint64]) -> int | None:
    """The first token whose entry is not in the index, None when all are."""
    first = int(segment.arrays["doc_entries"].array[document])
    capped = segment.arrays["capped_key"].array
    for number, (key, context) in enumerate(entries_of(hashes, segment.recipe)):
        lo, hi = segment.find(key)
        words = segment.arrays["postings"].array[lo:hi].astype(np.int64)
        ordinals = words[:, 3] | (words[:, 4] << 16)
        contexts = (words[:, 1] >> (REST_BITS - 16)) | (words[:, 2] << (32 - REST_BITS))
        there = contexts == context
        if (there & (ordinals == first + number)).any():
            continue
        # Capping leaves one posting of a document's equal ones, and may leave out all.
        same = there & (segment.document_of(ordinals) == document)
        at = np.searchsorted(capped, np.uint64(key))
        is_capped = at < len(capped) and int(capped[at]) == key
        if not same.any() and not is_capped:
            return number * segment.recipe.stride
    return None
