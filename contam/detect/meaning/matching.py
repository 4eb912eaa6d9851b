"""Match batches of documents against the rare words of a view's items."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from contam.benchmark.items import BenchItem
from contam.corpus.batches import DocBatch
from contam.detect.match.collect import Collection
from contam.detect.match.pieces import MOST_PIECES, Pieces
from contam.detect.match.token_view import build_view
from contam.detect.meaning.rare_words import (
    NEXT_BEST,
    NUMBERS,
    SIMILARITY,
    WORDS,
    RareWords,
    words_of,
)
from contam.detect.meaning.vectors import TextVectors, load_embedder
from contam.detect.meaning.windows import DocumentWindows, WordByWord
from contam.detect.model import QUESTION, Matches
from contam.detect.policies.meaning import CONTAM_MEANING, Meaning
from contam.errors import InternalError
from contam.index.warm import TEXT
from contam.kernels.rare_windows import ROW_DOC, find_windows
from contam.kernels.rare_words import new_rare_scratch
from contam.text.tokenizer import char_tables, tokenize_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contam.detect.match.token_view import SearchView
    from contam.detect.meaning.vectors import Embedder
    from contam.detect.meaning.windows import Rephrasing
    from contam.detect.model import Float32s, Int32s, Int64s


#: Tokens and marks of a document may be so many times its bytes.
_TOKENS_A_BYTE = 2
_FIRST_CAPACITY = 1 << 20
_MOST_CAPACITY = 1 << 22


class RephraseMatcher:
    """One worker's buffers for one view with rare words. Not shared between threads."""

    def __init__(self, view: SearchView, embedder: Embedder | None = None) -> None:
        """Without an embedder, load the one the policy names: raises ContamError without it."""
        if view.rephrasings is None:
            raise InternalError("a view without rare words")
        self._view, self._known = view, view.rephrasings
        spec = self._known.spec
        self._vectors = TextVectors(load_embedder(spec) if embedder is None else embedder)
        self._word_by_word = WordByWord(self._known, self._vectors)
        self._set_capacity(_FIRST_CAPACITY)

    def match(self, batch: DocBatch, into: Collection) -> Int64s:
        """Add what the documents of a batch have in other words to the collection.

        Returns the rows of the documents that have something.
        """
        longest = int(np.diff(batch.offsets).max(initial=0))
        if longest > self._capacity:
            self._set_capacity(longest)
        rows, n_rows, n_tokens = find_windows(
            batch.data,
            batch.offsets,
            self._known.table,
            self._scratch,
            self._hashes,
            self._spans,
            char_tables(),
        )
        into.n_tokens += n_tokens
        # Stretches beside each other may end in the same window.
        rows = np.unique(rows[:n_rows], axis=0)
        starts = np.flatnonzero(np.diff(rows[:, ROW_DOC], prepend=-1))
        found = [self._add(batch, mine, into) for mine in np.split(rows, starts)[1:]]
        if self._capacity > _MOST_CAPACITY:
            self._set_capacity(_FIRST_CAPACITY)
        return np.concatenate([np.empty(0, np.int64), *found])

    def _add(self, batch: DocBatch, rows: Int32s, into: Collection) -> Int64s:
        """Add what one document has; the row of each match.

        rows  the windows of that document
        """
        number = int(rows[0, ROW_DOC])
        begin, end = batch.offsets[number : number + 2].tolist()
        raw = batch.data[begin:end].tobytes()
        found = DocumentWindows(
            raw, rows, self._known, self._vectors, self._word_by_word
        ).rephrasings()
        if not found:
            return np.empty(0, np.int64)
        matches = Matches.zeros(len(found), 1)
        matches.item[:] = [one.item for one in found]
        matches.shard[:] = batch.shard if batch.shards is None else batch.shards[number]
        matches.row[:] = batch.first_row + number if batch.rows is None else batch.rows[number]
        matches.coverage[:, QUESTION] = [one.share for one in found]
        matches.n_places[:] = [one.n_places for one in found]
        matches.competing_item[:] = [one.other for one in found]
        matches.read[:, 0, SIMILARITY] = [one.similarity for one in found]
        matches.read[:, 0, WORDS] = [one.n_words for one in found]
        matches.read[:, 0, NUMBERS] = [one.n_numbers for one in found]
        matches.read[:, 0, NEXT_BEST] = [one.other_similarity for one in found]
        into.add(matches, self._pieces(raw, found))
        return matches.row

    def _pieces(self, raw: bytes, found: list[Rephrasing]) -> Pieces:
        """A piece for each rare word and number that item and window share."""
        columns: list[tuple[int, int, int, int]] = []
        items = self._view.items
        for match, one in enumerate(found):
            text = raw[one.first : one.end]
            tokens = tokenize_bytes(text)
            begin = items.token_start[one.item, QUESTION]
            own = items.token_hash[begin : begin + items.n_tokens[one.item, QUESTION]]
            rare = set(words_of(self._known, one.item).tolist())
            places: dict[int, list[int]] = {}
            for at, value in enumerate(own.tolist()):
                places.setdefault(value, []).append(at)
            # The code points before each byte of the window, and before the window.
            lead = (np.frombuffer(text + b" ", np.uint8) & np.uint8(0xC0)) != np.uint8(0x80)
            before = np.cumsum(lead) - 1 + len(raw[: one.first].decode())
            mine = []
            for value, (first, end) in zip(
                tokens.hashes.tolist(), tokens.spans.tolist(), strict=True
            ):
                is_number = text[first:end].isdigit()
                if (value in rare or is_number) and places.get(value):
                    place = places[value].pop(0)
                    mine.append((match, place, int(before[first]), int(before[end])))
            columns += sorted(mine)[:MOST_PIECES]
        table = np.array(columns, np.int64).reshape(-1, 4)
        n = len(table)
        return Pieces(
            match=table[:, 0].copy(),
            part=np.full(n, QUESTION, np.int8),
            alignment=np.zeros(n, np.int32),
            item_token=table[:, 1].astype(np.int32),
            length=np.ones(n, np.int32),
            start=table[:, 2].astype(np.int32),
            end=table[:, 3].astype(np.int32),
        )

    def _set_capacity(self, n_bytes: int) -> None:
        """Buffers for a document of so many bytes."""
        self._capacity = n_bytes
        room = _TOKENS_A_BYTE * n_bytes + 16
        self._hashes = np.empty(room, np.uint64)
        self._spans = np.empty((room, 2), np.int32)
        self._scratch = new_rare_scratch(self._known.table, room)


_LETTERS: Final = "abcdefghijklmnopqrstuvwxyz"


class _Letters:
    """Vectors that count letters: no model has to be there."""

    n_dimensions = len(_LETTERS)

    def word_vectors(self, words: Sequence[str]) -> Float32s:
        """How often each letter stands in each word, so that every word is a rare one."""
        rare = CONTAM_MEANING.number("rare_from")
        counts = [[rare * word.count(letter) for letter in _LETTERS] for word in words]
        return np.array(counts, np.float32).reshape(-1, self.n_dimensions)


def look_for_rephrasings_a_little() -> None:
    """Match the text against itself in memory, and word by word."""
    items = [BenchItem(benchmark="warm", split="", item_id="1", question=TEXT)]
    policy, letters = Meaning(CONTAM_MEANING), _Letters()
    rare = RareWords.of(items, CONTAM_MEANING, letters)
    view = build_view(items, unit="word", seed=5, min_run=8, with_grams=False)
    known = replace(view.items, read=(policy.known(rare),))
    view = replace(view, rephrasings=rare, items=known)
    data = np.frombuffer(TEXT.encode(), np.uint8)
    batch = DocBatch(0, 0, data, np.array([0, len(data)], np.int64))
    RephraseMatcher(view, letters).match(batch, Collection.start(view, [policy], policy, 1))
    WordByWord(rare, TextVectors(letters)).beside(0, TEXT.encode())
