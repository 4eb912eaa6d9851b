"""Count how much of the corpus was actually read, shard by shard."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from contam.errors import Plain, ShardError, Statement
from contam.facts import statements

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from contam.corpus.formats.base import Chunk
    from contam.corpus.shards import Shard
    from contam.errors import ContamError, Hint


@dataclass(frozen=True, slots=True)
class ShardFailure:
    """A shard that could not be read whole, and why: the facts of the error that it met.

    code  of the error;  statement  what happened;  hints  the ways out
    """

    shard: int
    name: str
    statement: Statement
    hints: tuple[Statement, ...] = ()
    code: str = ShardError.code

    @classmethod
    def of(cls, shard: int, name: str, error: ContamError) -> ShardFailure:
        """What an error says of a shard."""
        return cls(shard, name, error.statement, error.hints, error.code)

    @classmethod
    def noted(cls, shard: int, name: str, reason: str, hint: Hint = ()) -> ShardFailure:
        """What was written down of a shard earlier: a sentence, whose facts are not known."""
        return cls(shard, name, Statement("{}", Plain(reason)), statements(hint))

    @property
    def reason(self) -> str:
        """What happened, as a sentence."""
        return self.statement.tell()

    def error(self) -> ShardError:
        """The same as an error, for who needs this very shard."""
        return ShardError(self.statement, shard=self.name, hint=self.hints)


@dataclass(frozen=True, slots=True)
class ShardCoverage:
    """Counts over one shard, or over a part of it.

    units              chunks read to their end
    rows, n_bytes      documents, and bytes of their text as UTF-8
    n_null, n_empty    documents without a text, and with a text of length zero
    n_undecodable      documents holding bytes that are not UTF-8, which became U+FFFD; the number
                       of these bytes: undecodable_bytes
    n_moved            documents read from another column because theirs held no text
    n_elsewhere        documents without a text in the column the user named, with one in another
    n_blank            blank lines between documents, which are none but have a row
    columns            columns that documents with a text were read from, by name, with their number
    """

    units: int = 0
    rows: int = 0
    n_bytes: int = 0
    n_null: int = 0
    n_empty: int = 0
    n_undecodable: int = 0
    undecodable_bytes: int = 0
    n_moved: int = 0
    n_elsewhere: int = 0
    n_blank: int = 0
    columns: tuple[tuple[str, int], ...] = ()

    def __add__(self, other: ShardCoverage) -> ShardCoverage:
        columns = Counter(dict(self.columns))
        columns.update(dict(other.columns))
        counts = {name: getattr(self, name) + getattr(other, name) for name in _COUNTS}
        return ShardCoverage(**counts, columns=tuple(sorted(columns.items())))

    def to_dict(self) -> dict[str, int]:
        """Return the counts under their field names; `columns` is not among them."""
        found = {name: getattr(self, name) for name in _COUNTS}
        return found if self.n_blank else {n: v for n, v in found.items() if n != "n_blank"}

    @classmethod
    def of_counts(cls, counts: Mapping[str, int]) -> ShardCoverage:
        """Return what `to_dict` gave as counts again; the columns are not known any more.

        Another version of contam may have written them: what it did not count is 0.
        """
        known: dict[str, Any] = {name: counts.get(name, 0) for name in _COUNTS}
        return cls(**known)

    def check_decoded(self, shard: str) -> None:
        """Raise ShardError when no document could be decoded: nothing could have been found.

        Latin letters in UTF-16 are half replaced; texts with some bytes of an older encoding less.
        """
        n_texts = self.rows - self.n_null - self.n_empty
        # A replaced byte is at most three bytes of the text: U+FFFD.
        if 0 < n_texts <= self.n_undecodable and self.undecodable_bytes * 6 >= self.n_bytes:
            raise ShardError(
                "{shard}: none of its {:,} texts is UTF-8", n_texts, shard=shard,
                hint="convert the file to UTF-8",
            )  # fmt: skip


_COUNTS = tuple(one.name for one in fields(ShardCoverage) if one.name != "columns")


@dataclass(frozen=True)
class Coverage:
    """What was asked for and what was read; `merge` is associative and free of order.

    names        every shard expected, in order
    units        chunks expected of each shard
    read         counts per shard index; a shard that was not read yet has no entry
    failures     shards that could not be read, at most one entry a shard
    excluded     names of shards that were left out on purpose; they are not expected
    not_indexed  names of files in the indexed folders that the index does not have; not expected
    passed_over  folders that hold files like shards and were not entered for their names
    unread_columns  columns of text beside those that are read
    """

    names: tuple[str, ...]
    units: tuple[int, ...]
    read: Mapping[int, ShardCoverage] = field(default_factory=dict)
    failures: tuple[ShardFailure, ...] = ()
    excluded: tuple[str, ...] = ()
    not_indexed: tuple[str, ...] = ()
    passed_over: tuple[str, ...] = ()
    unread_columns: tuple[str, ...] = ()

    @classmethod
    def expect(
        cls,
        shards: Sequence[Shard],
        chunks: Iterable[Chunk],
        failures: Iterable[ShardFailure] = (),
        excluded: tuple[str, ...] = (),
        passed_over: tuple[str, ...] = (),
        unread_columns: tuple[str, ...] = (),
    ) -> Coverage:
        """Start a coverage: everything expected, nothing read, what failed in planning failed."""
        counts = [0] * len(shards)
        for chunk in chunks:
            counts[chunk.shard] += 1
        names = tuple(shard.name for shard in shards)
        failed = _first_of_each(failures)
        return cls(names, tuple(counts), {}, failed, excluded, (), passed_over, unread_columns)

    def with_failures(self, *failures: ShardFailure) -> Coverage:
        """Record shards that failed while they were read."""
        return self.merge(Coverage(self.names, self.units, {}, failures))

    def without_failure(self, shard: int) -> Coverage:
        """Forget that a shard failed: it is to be read again."""
        left = tuple(failure for failure in self.failures if failure.shard != shard)
        return replace(self, failures=left)

    def merge(self, other: Coverage) -> Coverage:
        """Add up two coverages of one plan."""
        if (self.names, self.units) != (other.names, other.units):
            raise ValueError("coverages of different plans cannot be merged")
        read = dict(self.read)
        for shard, counts in other.read.items():
            read[shard] = read[shard] + counts if shard in read else counts
        ordered = {shard: read[shard] for shard in sorted(read)}
        failures = _first_of_each((*self.failures, *other.failures))
        return replace(self, read=ordered, failures=failures)

    @cached_property
    def total(self) -> ShardCoverage:
        """Counts over everything that was read, failed shards' finished units included."""
        total = ShardCoverage()
        for counts in self.read.values():
            total += counts
        return total

    @cached_property
    def shards_read(self) -> tuple[int, ...]:
        """Indices of the shards read whole."""
        failed = {failure.shard for failure in self.failures}
        done = {shard: counts.units for shard, counts in self.read.items()}
        return tuple(
            shard
            for shard, expected in enumerate(self.units)
            if shard not in failed and done.get(shard, 0) == expected
        )

    @property
    def complete(self) -> bool:
        """Whether every expected shard was read whole."""
        return len(self.shards_read) == len(self.names)

    @cached_property
    def totals(self) -> Mapping[str, Any]:
        """The part of `to_dict` about all shards together, and which failed; computed once."""
        total = self.total.to_dict()
        del total["units"]
        return {
            "shards_expected": len(self.names),
            "shards_read": len(self.shards_read),
            "shards_failed": [
                {"shard": failure.name, "reason": failure.reason} for failure in self.failures
            ],
            "complete": self.complete,
            **({"shards_excluded": list(self.excluded)} if self.excluded else {}),
            **({"not_indexed": list(self.not_indexed)} if self.not_indexed else {}),
            **({"passed_over": list(self.passed_over)} if self.passed_over else {}),
            **({"unread_columns": list(self.unread_columns)} if self.unread_columns else {}),
            **total,
            "columns": dict(self.total.columns),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for `run.json`: totals, failures with reasons, counts by shard."""
        return {
            **self.totals,
            "by_shard": [
                {
                    "shard": self.names[shard],
                    **counts.to_dict(),
                    "columns": dict(counts.columns),
                }
                for shard, counts in sorted(self.read.items())
            ],
        }


class CoverageCounter:
    """Counts what is read chunk by chunk, in a time that does not grow with the shards.

    expected        the coverage to start from, in which nothing is read
    read, failures  what was counted since, by shard, and the shards that failed
    """

    def __init__(self, expected: Coverage) -> None:
        self._expected = expected
        self.read: dict[int, ShardCoverage] = {}
        self.failures: list[ShardFailure] = []

    def add(self, read: Mapping[int, ShardCoverage], failures: Iterable[ShardFailure] = ()) -> None:
        """Add what another process or thread read of the same plan, and what failed there."""
        for shard, counts in read.items():
            known = self.read.get(shard)
            self.read[shard] = counts if known is None else known + counts
        self.failures += failures

    def add_chunk(self, chunk: Chunk, counts: ShardCoverage) -> None:
        """Count one unit that was read to its end; `counts` is the sum over its batches."""
        self.add({chunk.shard: counts + ShardCoverage(units=1)})

    def add_failure(self, failure: ShardFailure) -> None:
        """Record a shard that failed while it was read."""
        self.failures.append(failure)

    def failed(self) -> tuple[ShardFailure, ...]:
        """The shards that failed since, one entry each, in order."""
        return _first_of_each(self.failures)

    def coverage(self) -> Coverage:
        """What was expected, with what was read since."""
        names, units = self._expected.names, self._expected.units
        return self._expected.merge(Coverage(names, units, self.read, tuple(self.failures)))


def _first_of_each(failures: Iterable[ShardFailure]) -> tuple[ShardFailure, ...]:
    # Units of one shard may fail in any order on several threads: the smallest reason is kept, so
    # that what is reported does not depend on which came first.
    first: dict[int, ShardFailure] = {}
    for failure in failures:
        known = first.setdefault(failure.shard, failure)
        if known is not failure and failure.reason < known.reason:
            first[failure.shard] = failure
    return tuple(first[shard] for shard in sorted(first))
