"""Collect items of many files into benchmarks: unique ids, duplicates, skipped rows."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import replace
from sys import intern
from typing import TYPE_CHECKING

from contam.benchmark.items import BenchItem, Benchmark, ItemName, SkippedRow, SourceFile
from contam.errors import BenchmarkError, Place, Plain, Remedy

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from contam.benchmark.rows import Parts


class Collector:
    """Takes items in reading order. Not for use from several threads."""

    def __init__(self) -> None:
        self._items: defaultdict[str, list[BenchItem]] = defaultdict(list)
        self._skipped: defaultdict[str, list[SkippedRow]] = defaultdict(list)
        self._sources: defaultdict[str, list[SourceFile]] = defaultdict(list)
        self._by_id: dict[tuple[str, str, str], BenchItem] = {}
        self._n_same: defaultdict[tuple[str, str, str], int] = defaultdict(int)

    def add(
        self, benchmark: str, split: str, item_id: str, parts: Parts, source: str, line: int
    ) -> None:
        """Take an item; without an id it gets one from its content, with `#2` for a twin."""
        item = BenchItem(
            benchmark=intern(benchmark),
            split=intern(split),
            item_id=item_id or content_id(parts),
            passage=parts.passage,
            question=parts.question,
            choices=parts.choices,
            answer=parts.answer,
            answer_index=parts.answer_index,
            source=source,
            line=line,
        )
        if item_id:
            self.add_item(item)
            return
        key = (benchmark, split, item.item_id)
        self._n_same[key] += 1
        if self._n_same[key] > 1:
            item = replace(item, item_id=f"{item.item_id}#{self._n_same[key]}")
        self.add_item(item)

    def add_item(self, item: BenchItem) -> None:
        """Take an item with an id; skip an exact repeat, raise BenchmarkError for another item."""
        key = ItemName.of(item)
        first = self._by_id.setdefault(key, item)
        if first is item:
            self._items[item.benchmark].append(item)
        elif _content(first) == _content(item):
            reason = f"repeats item {item.item_id!r} of {first.source}:{first.line}"
            self.skip(item.benchmark, SkippedRow(item.source, item.line, reason, "repeated item"))
        else:
            raise BenchmarkError(
                "{}:{}: id {!r} was given to another item at {}:{}", Place(item.source), item.line,
                item.item_id, Place(first.source), first.line, remedy=Remedy.MAP_ID,
            )  # fmt: skip

    def skip(self, benchmark: str, row: SkippedRow) -> None:
        """Record a row that was not taken."""
        self._skipped[benchmark].append(row)

    def add_source(self, benchmarks: Iterable[str], source: SourceFile) -> None:
        """Record a file that gave rows to these benchmarks."""
        for benchmark in benchmarks:
            self._sources[benchmark].append(source)

    def finish(self, skipped_files: Sequence[SkippedRow]) -> tuple[Benchmark, ...]:
        """Benchmarks by name. Raises BenchmarkError when one, or all together, came out empty.

        Skipped files are listed with the first benchmark.
        """
        for name, rows in self._skipped.items():
            if not self._items[name]:
                first = rows[0]
                at = f"{first.source}:{first.line}" if first.line else first.source
                raise BenchmarkError(
                    "benchmark {!r} has no items: everything in it was skipped ({}: {})", name,
                    Place(at), Plain(first.reason), remedy=Remedy.MAP_FIELDS,
                )  # fmt: skip
        if not self._items:
            passed = skipped_files[:3]
            template = "; ".join(["{}: {}"] * len(passed))
            facts = [fact for row in passed for fact in (Place(row.source), Plain(row.reason))]
            raise BenchmarkError(
                "the benchmark has no items" + (f" ({template})" if passed else ""),
                *facts,
                remedy=Remedy.CHECK_FILES_COMPLETE,
            )
        names = sorted(self._items)
        self._skipped[names[0]].extend(skipped_files)
        return tuple(self._benchmark(name) for name in names)

    def _benchmark(self, name: str) -> Benchmark:
        items = tuple(self._items[name])
        from contam.benchmark.key_table import KeyTable  # which loads NumPy: a client makes no keys

        keys = KeyTable.of(items)
        return Benchmark(
            name=name,
            items=items,
            skipped=tuple(self._skipped[name]),
            sources=tuple(self._sources[name]),
            duplicates=tuple(tuple(group.tolist()) for group in keys.equal("item_key")),
            keys=keys,
        )


def content_id(parts: Parts) -> str:
    """Id of an item whose source gives none: 16 hex digits over its unchanged texts."""
    texts = (parts.passage or "", parts.question, "\x1e".join(parts.choices), parts.answer or "")
    return hashlib.sha256("\x1d".join(texts).encode()).hexdigest()[:16]


def _content(item: BenchItem) -> tuple[object, ...]:
    return (item.passage, item.question, item.choices, item.answer, item.answer_index)
