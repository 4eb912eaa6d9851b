"""Count the documents read, and those with items, by the source that the corpus names for them."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contam.tables.memory import distinct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from contam.detect.model import Bools, Int32s, Int64s, Matches
    from contam.detect.plan import Plan

#: Of more sources, longer names, or more items in all sources together nothing is counted.
MOST_SOURCES: Final = 10_000
_MOST_CHARS: Final = 4 << 20
_MOST_ITEMS: Final = 1 << 22
#: Stands for all benchmarks together.
ALL: Final = -1


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class BySource:
    """What was counted, as plain values. A source is a place in `names`, which are in order.

    names      None for documents without a source;  rows  int64[n], documents read of each
    documents  int64[d, 4]: policy, source, benchmark or ALL, documents that the policy counts
    items      int64[k], `packed` of policy, source, and item in a document that the policy counts
    n_unread   documents whose source could not be read: they count as without one
    too_many   nothing was counted: there are too many sources
    """

    names: tuple[str | None, ...] = ()
    rows: Int64s
    documents: NDArray[np.int64]
    items: Int64s
    n_unread: int = 0
    too_many: bool = False


def packed(policy: Int64s | int, source: Int64s | Int32s, item: Int64s | Int32s) -> Int64s:
    """A policy, a source and an item as one number; they are in order as these are."""
    return (np.int64(policy) << 46) | (source.astype(np.int64) << 31) | item


def unpacked(items: Int64s) -> tuple[Int64s, Int64s, Int64s]:
    """The policies, sources and items that were packed."""
    return items >> 46, (items >> 31) & 0x7FFF, items & 0x7FFFFFFF


class SourceCounts:
    """Counts of one search, which its threads share; what is added in any order gives the same."""

    def __init__(self, benchmark: Int32s) -> None:
        """Nothing yet; benchmark  int32[n], the number of each item's benchmark."""
        self._benchmark = benchmark
        self._lock = threading.RLock()
        self._begin()

    def _begin(self, *, too_many: bool = False) -> None:
        self.too_many = too_many
        self._codes: dict[str | None, int] = {}
        self._n_chars = self._n_unread = 0
        self._rows = np.zeros(0, np.int64)
        self._documents: Counter[tuple[int, int, int]] = Counter()
        self._items: list[Int64s] = [np.empty(0, np.int64)]
        self._n_items = 0

    def codes(self, names: Sequence[str | None], n_unread: int = 0) -> Int32s | None:
        """Numbers of these sources; None when there are too many by now."""
        with self._lock:
            for name in () if self.too_many else dict.fromkeys(names):
                if name not in self._codes:
                    self._codes[name] = len(self._codes)
                    self._n_chars += len(name or "")
            if len(self._codes) > MOST_SOURCES or self._n_chars > _MOST_CHARS:
                self._begin(too_many=True)
            if self.too_many:
                return None
            self._n_unread += n_unread
            self._rows = np.pad(self._rows, (0, len(self._codes) - len(self._rows)))
            return np.fromiter(map(self._codes.__getitem__, names), np.int32, len(names))

    def add_rows(self, codes: Int32s) -> None:
        """Count documents that were read, by their sources."""
        with self._lock:
            if not self.too_many:
                self._rows += np.bincount(codes, minlength=len(self._rows))

    def add_found(self, policy: int, place: Int64s, codes: Int32s, items: Int32s) -> None:
        """Count matches that a policy counts, all those of their documents.

        place  names the document of each match
        """
        places, document = np.unique(place, return_inverse=True)
        source = np.zeros(len(places), np.int64)
        source[document] = codes
        n_benchmarks = int(self._benchmark.max(initial=0)) + 1
        pairs = distinct(document * n_benchmarks + self._benchmark[items])
        found: Counter[tuple[int, int, int]] = Counter()
        for code, n in enumerate(np.bincount(source).tolist()):
            if n:
                found[policy, code, ALL] = n
        found.update(
            (policy, code, benchmark)
            for code, benchmark in zip(
                source[pairs // n_benchmarks].tolist(), (pairs % n_benchmarks).tolist(), strict=True
            )
        )
        with self._lock:
            self._add(found, distinct(packed(policy, codes, items)))

    def _add(self, found: Counter[tuple[int, int, int]], items: Int64s) -> None:
        if self.too_many:
            return
        self._documents.update(found)
        self._items.append(items)
        if sum(map(len, self._items)) > 2 * self._n_items + _MOST_ITEMS // 16:
            self._settle()

    def _settle(self) -> None:
        """Keep each item of a source once."""
        self._items = [distinct(np.concatenate(self._items))]
        self._n_items = len(self._items[0])
        if self._n_items > _MOST_ITEMS:
            self._begin(too_many=True)

    def take(self, other: BySource) -> None:
        """Add what was counted elsewhere for the same items and policies."""
        codes = self.codes(other.names, other.n_unread)
        with self._lock:
            if other.too_many:
                self._begin(too_many=True)
            if codes is None or self.too_many:
                return
            self._rows[codes] += other.rows
            found = {(p, int(codes[c]), b): n for p, c, b, n in other.documents.tolist()}
            policy, source, item = unpacked(other.items)
            self._add(Counter(found), packed(policy, codes[source], item))

    def held(self) -> BySource:
        """All that was counted: the same whoever counted what."""
        self._settle()
        names = sorted(self._codes, key=lambda name: (name is None, name or ""))
        order = np.array([self._codes[name] for name in names], np.int64)
        place = np.argsort(order)
        documents = sorted(
            (policy, int(place[code]), benchmark, n)
            for (policy, code, benchmark), n in self._documents.items()
        )
        policy, source, item = unpacked(self._items[0])
        return BySource(
            names=tuple(names),
            rows=self._rows[order],
            documents=np.array(documents, np.int64).reshape(-1, 4),
            items=np.sort(packed(policy, place[source], item)),
            n_unread=self._n_unread,
            too_many=self.too_many,
        )


class FoundSources:
    """The sources of the documents in which matches wait to be judged; of one thread.

    counts    what all threads add to;  policies  the numbers of the collection's policies
    """

    def __init__(self, counts: SourceCounts, policies: Sequence[int]) -> None:
        self.counts, self.policies = counts, tuple(policies)
        self.batch: tuple[int, Int32s] | None = None
        self._waiting: list[tuple[Int64s, Int32s]] = []

    def empty_sibling(self) -> FoundSources:
        """The same for another thread."""
        return FoundSources(self.counts, self.policies)

    def note(self, matches: Matches) -> None:
        """Matches in documents of the batch, which are told by its first row and their sources."""
        if self.batch is not None:
            first, codes = self.batch
            self._waiting.append((_place(matches), codes[matches.row - first]))

    def flush(self, judged: Sequence[tuple[Matches, Bools]]) -> None:
        """Count the matches noted; judged  of each policy these, and which of them it counts."""
        waiting, self._waiting = self._waiting, []
        if not waiting or self.counts.too_many:
            return
        places, codes = (np.concatenate(column) for column in zip(*waiting, strict=True))
        order = np.argsort(places, kind="stable")
        places, codes = places[order], codes[order]
        for policy, (matches, hit) in zip(self.policies, judged, strict=True):
            counted = np.flatnonzero(hit)
            if len(counted):
                place = _place(matches)[counted]
                at = np.searchsorted(places, place)
                self.counts.add_found(policy, place, codes[at], matches.item[counted])


def _place(matches: Matches) -> Int64s:
    # A shard has fewer rows than 2**41.
    return (matches.shard.astype(np.int64) << 41) | matches.row


#: Rows that run.json has at most: those of the worst sources of each policy.
_MOST_ROWS: Final = 10_000


def sources_section(plan: Plan, counted: BySource, columns: Sequence[str]) -> dict[str, Any]:
    """The section `sources` of run.json: the worst sources of each policy first.

    columns  those that name the sources
    """
    from contam.detect.intervals import wilson  # which loads SciPy

    section: dict[str, Any] = {"columns": list(columns)}
    if counted.too_many:
        return {**section, "too_many": MOST_SOURCES}
    benchmarks = plan.items.column("benchmark")
    numbers = plan.views[0].items.benchmark
    name_of = dict(zip(numbers.tolist(), benchmarks, strict=True))
    items: Counter[tuple[int, int, int]] = Counter()
    for policy, source, item in zip(*(x.tolist() for x in unpacked(counted.items)), strict=True):
        items[policy, source, int(numbers[item])] += 1
        items[policy, source, ALL] += 1
    found = {(p, s, b): n for p, s, b, n in counted.documents.tolist()}
    by_source: dict[tuple[int, int], list[int]] = {}
    for policy, source, benchmark in sorted(found):
        by_source.setdefault((policy, source), []).append(benchmark)
    rows: list[dict[str, Any]] = []
    for policy, asked in enumerate(plan.policies):
        own = []
        for source, n_rows in enumerate(counted.rows.tolist()):
            for benchmark in by_source.get((policy, source), [ALL]):
                key = policy, source, benchmark
                n = found.get(key, 0)
                low, high = wilson(n, n_rows) if n_rows else (0.0, 1.0)
                row = {
                    "policy": asked.spec.id,
                    "source": counted.names[source],
                    "benchmark": name_of.get(benchmark),
                    "rows": n_rows,
                    "documents": n,
                    "items": items[key],
                    "share": round(n / n_rows, 9) if n_rows else 0.0,
                    "low": round(low, 9),
                    "high": round(high, 9),
                }
                own.append(row)
        worst = {row["source"]: -row["low"] for row in own if row["benchmark"] is None}
        own.sort(key=lambda row: worst[row["source"]])
        rows += own[: _MOST_ROWS // len(plan.policies)]
    n_sources = len(counted.names)
    unread = {"n_unread": counted.n_unread} if counted.n_unread else {}
    return {**section, "n_sources": n_sources, **unread, "rows": rows}
