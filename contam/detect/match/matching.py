"""Batches of documents against one lane: the kernels with their buffers, and given tokens."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from contam.detect.match.deadline import DeadlinePassed
from contam.detect.match.pieces import Pieces, pairs_from_rows
from contam.detect.match.readers import read_documents
from contam.errors import PolicyError, Remedy
from contam.kernels.align import new_scratch
from contam.kernels.document import new_buffers, scan_batch
from contam.kernels.judge import NO_LIMIT
from contam.kernels.pairs import PAIR_DOC, TOO_LONG
from contam.kernels.pretokenized import scan_tokens
from contam.text.tokenizer import char_tables

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from contam.corpus.batches import DocBatch
    from contam.detect.match.collect import Collection
    from contam.detect.match.lane import Lane
    from contam.kernels.pairs import Rows

    Tokens = tuple[NDArray[np.uint64], NDArray[np.int32], NDArray[np.int64]]

_FIRST_ROOM = 1 << 20
#: Buffers for a document longer than this are let go behind it: few are, and all of it was used.
_MOST_ROOM = 1 << 22


class Matcher:
    """One worker's buffers for one lane. Not shared between threads."""

    def __init__(self, lane: Lane, most_steps: int = NO_LIMIT) -> None:
        """Of a batch that would take more than `most_steps` matching raises DeadlinePassed."""
        self._lane = lane
        self._spec = lane.spec._replace(most_steps=most_steps)
        self._set_room(_FIRST_ROOM)
        self._scratch = new_scratch(lane.longest)
        self._last_run = np.zeros(len(lane.plan.part_start) - 1, np.int32)

    def match(self, batch: DocBatch, into: Collection) -> None:
        """Match every document of a batch and add what is found to the collection.

        Raises DeadlinePassed when that takes too many steps; the collection then lacks the batch.
        """
        lane = self._lane
        if lane.tokenizer is not None:
            tokens = lane.tokenizer.encode(batch.data, batch.offsets)
            self._scan_tokens(batch, (tokens.hashes, tokens.spans, tokens.starts), into)
            return
        self._make_room(int(np.diff(batch.offsets).max(initial=0)))
        found = scan_batch(
            batch.data,
            batch.offsets,
            self._spec,
            lane.plan,
            lane.facts,
            char_tables(),
            self._buffers,
            self._scratch,
            (self._last_run, into.longest_at),
        )
        self._add(batch, found, into)
        self._let_go()

    def match_tokens(self, batch: DocBatch, tokens: Tokens, into: Collection) -> None:
        """The same for documents of which only tokens are left: hashes, spans and starts.

        Raises PolicyError where a policy would have to read their text.
        """
        if self._lane.readers:
            names = ", ".join(reader.known.policy_id for reader in self._lane.readers)
            raise PolicyError(
                "a policy that reads documents was asked for, and of some only the hashes are left"
                " in the index: their shard is gone",
                remedy=Remedy.LEAVE_POLICIES_OUT(policies=names),
            )
        self._scan_tokens(batch, tokens, into)

    def _scan_tokens(self, batch: DocBatch, tokens: Tokens, into: Collection) -> None:
        lane = self._lane
        self._make_room(int(np.diff(tokens[2]).max(initial=0)))
        found = scan_tokens(
            batch.data,
            batch.offsets,
            tokens,
            self._spec,
            lane.plan,
            lane.facts,
            self._buffers,
            self._scratch,
            (self._last_run, into.longest_at),
        )
        self._add(batch, found, into)
        self._let_go()

    def _add(
        self, batch: DocBatch, found: tuple[Rows, NDArray[np.int32], int], into: Collection
    ) -> None:
        rows, where, n_tokens = found
        if rows.used[2] & TOO_LONG:
            raise DeadlinePassed
        into.n_tokens += n_tokens
        shard = batch.shard if batch.shards is None else batch.shards
        pairs = pairs_from_rows(rows, self._lane, shard, batch.first_row, batch.rows)
        if self._lane.readers:
            document = rows.pairs[: len(pairs), PAIR_DOC]
            pairs = replace(pairs, read=read_documents(self._lane, batch, pairs, document))
        into.add(pairs, Pieces.from_rows(rows, where))

    def _make_room(self, longest: int) -> None:
        """Buffers for a document of that many bytes, or of that many given tokens."""
        if longest > self._room:
            self._set_room(longest)

    def _set_room(self, longest: int) -> None:
        self._room = longest
        self._buffers = new_buffers(longest, self._spec.unit)

    def _let_go(self) -> None:
        if self._room > _MOST_ROOM:
            self._set_room(_FIRST_ROOM)
