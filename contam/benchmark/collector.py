"""Collect items of many files into benchmarks: unique ids, duplicates, skipped rows."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import replace
from sys import intern
from typing import TYPE_CHECKING, Final

from contam.benchmark.items import BenchItem, Benchmark, ItemName, SkippedRow, SourceFile
from contam.errors import BenchmarkError, Place, Plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from contam.benchmark.key_table import KeyTable
    from contam.benchmark.many_items import ManyItems
    from contam.benchmark.rows import Parts

#: More are packed while they are read: 3.2 million took 4 GB as objects.
_MANY_ITEMS: Final = 200_000
#: Fewer may well be alike.
_FEW: Final = 4


class Collector:
    """Takes items in reading order. Not for use from several threads."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._items: defaultdict[str, list[BenchItem]] = defaultdict(list)
        self._skipped: defaultdict[str, list[SkippedRow]] = defaultdict(list)
        self._sources: defaultdict[str, list[SourceFile]] = defaultdict(list)
        self._by_id: dict[tuple[str, str, str], BenchItem] = {}
        self._n_same: defaultdict[tuple[str, str, str], int] = defaultdict(int)
        # All of them, when there are many; then the others are empty.
        self._many: ManyItems | None = None

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
            incomplete=intern(parts.incomplete),
        )
        if item_id:
            self.add_item(item)
            return
        key = ItemName.of(item)
        if self._many is None:
            self._n_same[key] += 1
            n_same = self._n_same[key]
        else:
            n_same = self._many.count(key)
        if n_same > 1:
            item = replace(item, item_id=f"{item.item_id}#{n_same}")
        self.add_item(item)

    def add_item(self, item: BenchItem) -> None:
        """Take an item with an id; skip an exact repeat, raise BenchmarkError for another item."""
        if self._many is None:
            known = self._by_id.setdefault(ItemName.of(item), item)
            if known is item:
                self._names.add(item.benchmark)
                self._items[item.benchmark].append(item)
                if len(self._by_id) > _MANY_ITEMS:
                    self._pack()
                return
            source, line, same = known.source, known.line, content_of(known) == content_of(item)
        elif (first := self._many.add(item)) is None:
            self._names.add(item.benchmark)
            return
        else:
            source, line, same = first
        if same:
            reason = f"repeats item {item.item_id!r} of {source}:{line}"
            self.skip(item.benchmark, SkippedRow(item.source, item.line, reason, "repeated item"))
        else:
            raise BenchmarkError(
                "{}:{}: id {!r} was given to another item at {}:{}",
                Place(item.source),
                item.line,
                item.item_id,
                Place(source),
                line,
                hint=(
                    "--map id=FIELD names another id field, --map id= makes ids from the content"
                ),
            )

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
            if name not in self._names:
                first = rows[0]
                at = f"{first.source}:{first.line}" if first.line else first.source
                raise BenchmarkError(
                    "benchmark {!r} has no items: everything in it was skipped ({}: {})",
                    name,
                    Place(at),
                    Plain(first.reason),
                    hint="look at the first of them, or map the fields with --map",
                )
        if not self._names:
            passed = skipped_files[:3]
            template = "; ".join(["{}: {}"] * len(passed))
            facts = [fact for row in passed for fact in (Place(row.source), Plain(row.reason))]
            raise BenchmarkError(
                "the benchmark has no items" + (f" ({template})" if passed else ""),
                *facts,
                hint="formats: JSONL, JSON, CSV, TSV, Parquet, Arrow, saved datasets folders",
            )
        names = sorted(self._names)
        self._skipped[names[0]].extend(skipped_files)
        if self._many is not None:
            packed = self._many.finish()
            return tuple(self._benchmark(name, *packed[name]) for name in names)
        from contam.benchmark.key_table import KeyTable  # which loads NumPy: a client makes no keys

        found = [tuple(self._items[name]) for name in names]
        return tuple(
            self._benchmark(name, items, KeyTable.of(items))
            for name, items in zip(names, found, strict=True)
        )

    def _pack(self) -> None:
        from contam.benchmark.many_items import ManyItems  # which loads NumPy

        self._many = ManyItems(self._by_id.values(), self._n_same)
        self._by_id, self._items = {}, defaultdict(list)
        self._n_same = defaultdict(int)

    def _benchmark(self, name: str, items: Sequence[BenchItem], keys: KeyTable) -> Benchmark:
        duplicates = tuple(tuple(group.tolist()) for group in keys.equal("item_key"))
        alike = _alike(items, keys, duplicates, self._sources[name])
        if alike:
            why = (
                f"{len(alike)} of {len(items)} items differ in no text that is read"
                " (--map question=FIELD+FIELD names what tells them apart)"
            )
            items = _with_reason(items, alike, why)
        return Benchmark(
            name=name,
            items=items,
            skipped=tuple(self._skipped[name]),
            sources=tuple(self._sources[name]),
            duplicates=duplicates,
            keys=keys,
        )


def _alike(
    items: Sequence[BenchItem],
    keys: KeyTable,
    groups: Sequence[Sequence[int]],
    sources: Sequence[SourceFile],
) -> list[int]:
    """Items that are a template and nothing else, where that is most of a benchmark.

    Copies of one item are no template: they are few, or have one answer and no other text.
    """
    inside = [at for group in groups for at in group]
    if len(items) < _FEW or 2 * len(inside) <= len(items):
        return []
    answers, _ = keys.column("answer_key")
    differ = any((answers[group[0]] != answers[list(group)]).any() for group in groups)
    most = 2 * max(map(len, groups)) > len(items)
    left_out = any(source.left_out or source.unread for source in sources)
    many = len(inside) >= _FEW * len(groups)
    return inside if most or (many and (differ or left_out)) else []


def _with_reason(
    items: Sequence[BenchItem], places: Sequence[int], why: str
) -> Sequence[BenchItem]:
    """The items, of which those at these places are incomplete for this reason."""
    if isinstance(items, tuple):
        chosen = set(places)
        return tuple(
            replace(item, incomplete=item.incomplete or why) if at in chosen else item
            for at, item in enumerate(items)
        )
    from contam.benchmark.packed import PackedItems  # which loads NumPy

    if isinstance(items, PackedItems):
        items.give_reason(places, why)
    return items


def content_id(parts: Parts) -> str:
    """Id of an item whose source gives none: 16 hex digits over its unchanged texts."""
    texts = (parts.passage or "", parts.question, "\x1e".join(parts.choices), parts.answer or "")
    return hashlib.sha256("\x1d".join(texts).encode()).hexdigest()[:16]


def content_of(item: BenchItem) -> tuple[object, ...]:
    """What two items of one name must have in common."""
    return (item.passage, item.question, item.choices, item.answer, item.answer_index)
