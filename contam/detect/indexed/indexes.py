"""Treat one or several indexes as one corpus, with shards in the order of a scan."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from contam.corpus.coverage import Coverage, ShardCoverage, ShardFailure
from contam.corpus.rowcache import TEXT_BYTES, IndexedShard, RowCache
from contam.corpus.shards import Shard
from contam.detect.given import as_list
from contam.detect.indexed.candidates import PlacedSegment, Windows
from contam.errors import IndexMismatchError, Public, ShardError, UsageError
from contam.files.listed import may_pass
from contam.files.natural_order import natural_key
from contam.files.stores import real
from contam.index.open import Index
from contam.index.shards import by_digest, not_indexed, placed
from contam.index.states import change_since, state_for
from contam.kernels.candidates import SHUT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contam.detect.model import Int32s, Int64s
    from contam.index.model import Recipe, ShardRecord

PathLike = str | Path

#: How long a shard whose store did not answer is not asked for again, in seconds.
LOOK_AGAIN_S: Final = 10.0
_AGREE: Final = ("unit", "gram", "stride", "cap", "normaliser", "minhash")


@dataclass(frozen=True, slots=True)
class _Known:
    """A shard of one of the indexes, by its place there; the record is None while it is pending."""

    name: str
    index: int
    place: int
    record: ShardRecord | None


@dataclass(eq=False)
class IndexSet:
    """Indexes that answer as one.

    indexes   in the order given;  recipe  what they agree on
    names     the shards that count, in the order in which a scan numbers them
    records   what is known of each, None while it is pending
    parts     the segments of all indexes
    rows      reads documents back
    coverage  what the indexes answer for; shards that are gone or changed are failures
    lock      whoever changes the states of documents for a moment holds it
    failing   whoever adds or removes a failure holds it: of two at once none may be lost
    waiting   failures of shards whose store did not answer: they are looked at again
    look_at   when, in seconds of `time.monotonic`
    """

    indexes: tuple[Index, ...]
    recipe: Recipe
    names: tuple[str, ...]
    records: tuple[ShardRecord | None, ...]
    parts: tuple[PlacedSegment, ...]
    rows: RowCache
    coverage: Coverage
    sources: tuple[IndexedShard | None, ...]
    lock: threading.Lock = field(default_factory=threading.Lock)
    failing: threading.Lock = field(default_factory=threading.Lock)
    waiting: frozenset[int] = frozenset()
    look_at: float = 0.0

    @classmethod
    def open(
        cls,
        index: PathLike | Sequence[PathLike],
        *,
        corpus: PathLike | Sequence[PathLike] | None = None,
        home: PathLike | None = None,
        text_bytes: int = TEXT_BYTES,
    ) -> IndexSet:
        """Open indexes, and look whether their shards are still what was indexed.

        corpus       where the shards are now, if they were moved; found there by their digests
        text_bytes   text of the corpus that `rows` may keep in memory

        Raises UsageError, IndexMismatchError, IndexDamageError or CorpusError.
        """
        indexes = tuple(Index.open(path, home=home) for path in split_paths(index))
        if not indexes:
            raise UsageError("no index was named", hint="give --index DIR")
        if len({real(each.folder) for each in indexes}) != len(indexes):
            raise UsageError("an index is named twice", hint="name each index once")
        _check_recipes(indexes)
        known, numbers = _numbering(indexes)
        moved = {} if corpus is None else by_digest(as_list(corpus))
        sources = tuple(
            _source(indexes[shard.index], shard.record, moved) if shard.record else None
            for shard in known
        )
        opened = cls(
            indexes=indexes,
            recipe=indexes[0].recipe,
            names=tuple(shard.name for shard in known),
            records=tuple(shard.record for shard in known),
            parts=tuple(_parts(indexes, numbers)),
            rows=RowCache([source or _NOWHERE for source in sources], capacity=text_bytes),
            coverage=_coverage(indexes, known, moved),
            sources=sources,
        )
        opened.check_shards()
        return opened

    @property
    def guarantee(self) -> int:
        """Tokens of the shortest run that is always found."""
        return self.recipe.guarantee

    @property
    def unit(self) -> str:
        """The unit as a scan takes it: "word", "char" or the path of a tokenizer file."""
        if self.recipe.tokenizer is None:
            return self.recipe.unit
        return self.recipe.tokenizer["path"]

    def check_shards(self) -> None:
        """Look at every shard that answers; those gone or changed become failures."""
        failed = {failure.shard for failure in self.coverage.failures}
        for number, source in enumerate(self.sources):
            if source is None or number in failed:
                continue
            try:
                self.rows.check(number)
            except ShardError as error:
                self.fail(number, error)

    def fail(self, number: int, error: ShardError) -> None:
        """A shard cannot be read, or is not what was indexed: nothing is called clean over it."""
        failure = ShardFailure.of(number, self.names[number], error)
        with self.failing:
            if may_pass(error):
                self.waiting = self.waiting | {number}
                self.look_at = time.monotonic() + LOOK_AGAIN_S
            self.coverage = self.coverage.with_failures(failure)

    def look_again(self) -> None:
        """Look at the shards whose store did not answer; those that can be read answer again.

        An answer that began before is made anew, as the coverage is another.
        """
        with self.failing:
            if not self.waiting or time.monotonic() < self.look_at:
                return
            self.look_at = time.monotonic() + LOOK_AGAIN_S
            waiting = self.waiting
        for number in sorted(waiting):
            failures: list[ShardFailure] = []
            try:
                self.rows.check(number)
            except ShardError as error:
                if may_pass(error):
                    continue
                failures = [ShardFailure.of(number, self.names[number], error)]
            with self.failing:
                self.waiting = self.waiting - {number}
                self.coverage = self.coverage.without_failure(number).with_failures(*failures)

    @cached_property
    def windows(self) -> tuple[Windows, ...]:
        """The windows of each of the parts; only where the recipe has them."""
        return tuple(Windows.of(part.segment, part.state == SHUT) for part in self.parts)

    def place_of(self, part: PlacedSegment, documents: Int64s) -> tuple[Int32s, Int64s]:
        """Shard (its place in `names`) and row of documents of a segment."""
        shard, row = part.segment.place_of(documents)
        return part.number[shard], row


def split_paths(index: PathLike | Sequence[PathLike]) -> list[PathLike]:
    """One path, several, or several in one text with commas between."""
    if isinstance(index, os.PathLike):
        return [index]
    if isinstance(index, str):
        return [index] if Path(index).exists() else [path for path in index.split(",") if path]
    return [path for each in index for path in split_paths(each)]


_NOWHERE: Final = IndexedShard(
    shard=Shard(uri="", name="", format="parquet", size_bytes=0), digest=None, column=None
)


def _check_recipes(indexes: Sequence[Index]) -> None:
    first = indexes[0]
    for other in indexes[1:]:
        for (name, mine), theirs in zip(
            _agreed(first).items(), _agreed(other).values(), strict=True
        ):
            if mine != theirs:
                raise IndexMismatchError(
                    "{} and {} cannot answer as one: {} is {} in one and {} in the other",
                    first.folder, other.folder, name, Public(mine), Public(theirs),
                    hint="ask them one after the other, or build them with one recipe",
                )  # fmt: skip


def _agreed(index: Index) -> dict[str, object]:
    """What indexes that answer as one have in common."""
    recipe = index.recipe
    tokenizer = None if recipe.tokenizer is None else recipe.tokenizer["sha256"]
    return {**{name: getattr(recipe, name) for name in _AGREE}, "tokenizer": tokenizer}


def _numbering(indexes: Sequence[Index]) -> tuple[list[_Known], list[Int32s]]:
    """The shards of all indexes in one order, and each manifest shard's place in it.

    A file that two indexes hold counts once, and twice where each of them has retired a document
    of it that the other has not. Equal names of different files are told apart by the index's name.
    """
    every: list[_Known] = []
    files: dict[tuple[str, str], list[tuple[_Known, frozenset[int]]]] = {}
    for number, index in enumerate(indexes):
        for place, (name, record) in enumerate(zip(index.names, index.records, strict=True)):
            known = _Known(name, number, place, record)
            if record is None or record.failure is not None or name in index.manifest.pending:
                every.append(known)
            else:
                copy = (known, _retired_rows(index, place))
                files.setdefault((record.uri, record.sha256), []).append(copy)
    for same in files.values():
        # A document counts unless all indexes that hold it have retired it.
        kept: list[frozenset[int]] = []
        for known, retired in sorted(same, key=lambda copy: len(copy[1])):
            if not any(retired >= other for other in kept):
                kept.append(retired)
                every.append(known)
    count = Counter(known.name for known in every)
    every = [
        replace(known, name=f"{indexes[known.index].folder.name}/{known.name}")
        if count[known.name] > 1
        else known
        for known in every
    ]
    every.sort(key=lambda known: (natural_key(known.name), known.index))
    local = [np.full(len(index.names), -1, np.int32) for index in indexes]
    for place, known in enumerate(every):
        local[known.index][known.place] = place
    numbers = []
    for index, mine in zip(indexes, local, strict=True):
        at = index.number_of
        numbers.append(np.where(at >= 0, mine[at], -1).astype(np.int32) if len(mine) else at)
    return every, numbers


def _retired_rows(index: Index, place: int) -> frozenset[int]:
    """Rows of one of the index's shards that no answer of it counts."""
    pairs = index.retired.pairs
    if not len(pairs):
        return frozenset()
    return frozenset(pairs[index.number_of[pairs[:, 0]] == place, 1].tolist())


def _parts(indexes: Sequence[Index], numbers: Sequence[Int32s]) -> list[PlacedSegment]:
    parts = []
    for index, number in zip(indexes, numbers, strict=True):
        pairs = index.retired.pairs
        for segment in index.segments:
            state = np.zeros(segment.n_documents, np.uint8)
            begin = 0
            for span in segment.record.spans:
                end = begin + span.n_rows
                if number[span.shard] < 0:
                    state[begin:end] = SHUT
                rows = pairs[pairs[:, 0] == span.shard, 1] - span.first_row
                state[begin + rows[(rows >= 0) & (rows < span.n_rows)]] = SHUT
                begin = end
            parts.append(PlacedSegment(segment, number, state))
    return parts


def _coverage(
    indexes: Sequence[Index], known: Sequence[_Known], moved: Mapping[str, Shard]
) -> Coverage:
    own = [index.coverage() for index in indexes]
    units: list[int] = []
    read: dict[int, ShardCoverage] = {}
    failures: list[ShardFailure] = []
    for place, shard in enumerate(known):
        coverage = own[shard.index]
        units.append(coverage.units[shard.place])
        if shard.place in coverage.read:
            read[place] = coverage.read[shard.place]
        failures += [
            replace(failure, shard=place, name=shard.name)
            for failure in coverage.failures
            if failure.shard == shard.place
        ]
    names = tuple(shard.name for shard in known)
    # What one index excludes another may have.
    excluded = {name for one in own for name in one.excluded}.difference(names)
    return Coverage(
        names,
        tuple(units),
        read,
        tuple(failures),
        tuple(sorted(excluded, key=natural_key)),
        not_indexed([each.manifest for each in indexes], moved),
        tuple(sorted({name for one in own for name in one.passed_over}, key=natural_key)),
        tuple(sorted({name for one in own for name in one.unread_columns})),
    )


def _source(index: Index, record: ShardRecord, moved: dict[str, Shard]) -> IndexedShard:
    shard = placed(record, moved)
    state = state_for(index.states, shard.uri, record.sha256)
    if state is None:
        state = state_for(index.states, record.uri, record.sha256)
    return IndexedShard(
        shard=shard,
        digest=record.digest,
        column=record.column,
        columns=record.columns,
        change_since=None if state is None else partial(change_since, state),
    )
