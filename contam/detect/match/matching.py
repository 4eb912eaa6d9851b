"""Match batches of documents against one token view with the kernels."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import numpy as np

from contam.detect.match.collect import as_halves
from contam.detect.match.pieces import Pieces
from contam.detect.match.workers import DeadlinePassed
from contam.detect.model import FIGURES_READ, N_PARTS, Matches
from contam.kernels import match_rows as columns
from contam.kernels.align import new_scratch
from contam.kernels.document import new_buffers, scan_batch
from contam.kernels.match_facts import (
    find_competing_items,
    first_pieces,
    renumbered_shares,
    scattered_shares,
    told_answers,
)
from contam.kernels.match_rows import NO_LIMIT, Search
from contam.text.tokenizer import char_tables

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from contam.corpus.batches import DocBatch
    from contam.detect.match.collect import Collection
    from contam.detect.match.token_view import SearchView
    from contam.detect.model import Float32s, Int32s, Int64s
    from contam.kernels.document import DocBuffers
    from contam.kernels.match_rows import MatchRows

#: In place of the tokens of a batch that the kernels make themselves.
_NONE_GIVEN = np.empty(0, np.uint64), np.empty((0, 2), np.int32), np.empty(0, np.int64)

#: Documents up to this length are read with buffers of their thread: to take some anew for each
#: question costs a service as much as a short answer takes in all.
_FIRST_CAPACITY = 1 << 16
_NEXT_CAPACITY = 1 << 20
#: Buffers for a document longer than this are let go behind it: few are, and all of it was used.
_MOST_CAPACITY = 1 << 22


class _Shared(threading.local):
    """The buffers of a thread, by unit."""

    def __init__(self) -> None:
        self.buffers: dict[int, DocBuffers] = {}


_shared = _Shared()


class DocumentMatcher(Protocol):
    """What matches documents against one view, for one worker."""

    def match(self, batch: DocBatch, into: Collection) -> Int64s:
        """Match every document of a batch and add what is found to the collection.

        Returns the rows of the documents in which something was found, some more than once.
        """


def matcher_of(view: SearchView) -> DocumentMatcher:
    """What matches documents against a view; its buffers are one worker's."""
    if view.rephrasings is None:
        return Matcher(view)
    from contam.detect.meaning.matching import RephraseMatcher  # needs what is rarely loaded

    return RephraseMatcher(view)


class Matcher:
    """One worker's buffers for one view. Not shared between threads."""

    def __init__(self, view: SearchView, most_steps: int = NO_LIMIT) -> None:
        """Of a batch that would take more than `most_steps` matching raises DeadlinePassed."""
        self._view = view
        self._spec = view.spec._replace(most_steps=most_steps)
        self._set_capacity(_FIRST_CAPACITY)
        self._scratch = new_scratch(view.longest)
        self._last_run = np.zeros(len(view.gram_table.part_start) - 1, np.int32)

    def match(self, batch: DocBatch, into: Collection) -> Int64s:
        """Match every document of a batch and add what is found to the collection.

        Returns the rows of the documents in which something was found, some more than once.
        Raises DeadlinePassed when that takes too many steps; the collection then lacks the batch.
        """
        view = self._view
        tokens, starts = _NONE_GIVEN, batch.offsets
        if view.tokenizer is not None:
            made = view.tokenizer.encode(batch.data, batch.offsets)
            tokens, starts = (made.hashes, made.spans, made.starts), made.starts
        self._ensure_capacity(int(np.diff(starts).max(initial=0)))
        search = Search(
            *(self._spec, view.gram_table, view.facts, self._scratch, self._last_run),
            as_halves(into.longest_at),
        )
        found = scan_batch(batch.data, batch.offsets, tokens, search, self._buffers)
        rows = self._add(batch, found, into)
        if self._capacity > _MOST_CAPACITY:
            self._set_capacity(_FIRST_CAPACITY)
        return rows

    def _add(
        self, batch: DocBatch, found: tuple[MatchRows, NDArray[np.int32], int], into: Collection
    ) -> Int64s:
        rows, where, n_tokens = found
        if rows.used[2] & columns.TOO_LONG:
            raise DeadlinePassed
        into.n_tokens += n_tokens
        shard = batch.shard if batch.shards is None else batch.shards
        matches = matches_from_rows(rows, self._view, shard, batch.first_row, batch.rows)
        if self._view.readers:
            document = rows.matches[: len(matches), columns.MATCH_DOC]
            matches = replace(matches, read=self._read(batch, matches, document))
        into.add(matches, Pieces.from_rows(rows, where))
        return matches.row

    def _read(self, batch: DocBatch, matches: Matches, document: Int32s) -> Float32s:
        """What the readers of the view find in the documents of these matches: float32[m, p, 4].

        document  int32[m], its number in the batch
        """
        readers = self._view.readers
        found = np.zeros((len(matches), len(readers), FIGURES_READ), np.float32)
        # The variants of an item are numbered from n_items on: readers know only the items.
        wanted = np.flatnonzero(matches.item < self._view.items.n_items)
        order = wanted[np.argsort(document[wanted], kind="stable")]
        start = np.flatnonzero(np.diff(document[order], prepend=-1, append=-1))
        edges = batch.offsets.tolist()
        texts = [
            batch.data[edges[at] : edges[at + 1]].tobytes()
            for at in document[order[start[:-1]]].tolist()
        ]
        items = matches.item[order].astype(np.int64)
        for number, reader in enumerate(readers):
            found[order, number] = reader.read(texts, items, start)
        return found

    def _ensure_capacity(self, longest: int) -> None:
        """Buffers for a document of that many bytes, or of that many given tokens."""
        if longest > self._capacity:
            self._set_capacity(max(longest, _NEXT_CAPACITY))

    def _set_capacity(self, longest: int) -> None:
        unit, kept = self._spec.unit, _shared.buffers
        self._capacity = longest
        if longest > _FIRST_CAPACITY:
            self._buffers = new_buffers(longest, unit, char_tables())
            return
        if unit not in kept:
            kept[unit] = new_buffers(longest, unit, char_tables())
        self._buffers = kept[unit]


def matches_from_rows(
    rows: MatchRows,
    view: SearchView,
    shard: int | Int32s,
    first_row: int,
    numbers: Int64s | None = None,
) -> Matches:
    """The matches a kernel wrote for one batch, as the columns policies read.

    view       what they were matched with
    shard      of all documents of the batch, or of each of them
    numbers    row of each document of the batch; None when they count up from `first_row`
    """
    n = int(rows.used[0])
    raw, real = rows.matches[:n], rows.reals[:n]
    document = raw[:, columns.MATCH_DOC].astype(np.int64)
    first_piece = first_pieces(rows)

    def ints(first: int) -> NDArray[np.int32]:
        return raw[:, first : first + N_PARTS].copy()

    return Matches(
        item=raw[:, columns.MATCH_ITEM].copy(),
        shard=np.full(n, shard, np.int32) if isinstance(shard, int) else shard[document],
        row=document + first_row if numbers is None else numbers[document],
        longest=ints(columns.MATCH_LONGEST),
        covered=ints(columns.MATCH_COVERED),
        n_runs=ints(columns.MATCH_RUNS),
        coverage=real[:, columns.REAL_COVERAGE : columns.REAL_COVERAGE + N_PARTS].copy(),
        aligned=ints(columns.MATCH_ALIGNED),
        n_places=raw[:, columns.MATCH_PLACES].copy(),
        answer_near=raw[:, columns.MATCH_ANSWER] != 0,
        exact=ints(columns.MATCH_EXACT) != 0,
        split=raw[:, columns.MATCH_SPLIT] != 0,
        scattered=scattered_shares(rows, first_piece),
        renumbered=renumbered_shares(rows, first_piece, view.gram_table.part_start, view.is_number),
        competing_item=find_competing_items(rows, first_piece, view.benchmark),
        told=told_answers(rows, first_piece, view.spec.unit, view.spec.min_run, view.gram_table),
        variant_words=np.zeros(n, np.int32),
        read=np.zeros((n, 0, FIGURES_READ), np.float32),
    )
