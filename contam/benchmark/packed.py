"""Hold many items as one text and some arrays, a third as large as an object for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, overload

import numpy as np

from contam.benchmark.items import PARTS, BenchItem, ItemName
from contam.tables.packing import pack, unpack

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

N_PARTS: Final = len(PARTS)
"""Texts of an item."""
_PASSAGE, _QUESTION, _CHOICES, _ANSWER = range(N_PARTS)
#: In place of the right choice's number.
_NONE: Final = np.iinfo(np.int32).min
NAMED: Final = ("benchmark", "split", "source", "incomplete")
"""Texts that many items share, each kept once."""
AT_ONCE: Final = 1 << 12
"""Items that are packed together."""
#: Items that are made at a time where they do not lie in the order in which they are asked for.
_MADE_AT_ONCE: Final = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class PackedIds(Sequence[str]):
    """Ids behind each other, in a quarter of the memory that they take one by one.

    As objects they would also lie between what is let go when items are packed, and no memory
    would go back.

    data    UTF-8;  starts  int64[n + 1], where each begins
    """

    data: bytes
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, ids: Iterable[str]) -> PackedIds:
        """Pack these ids."""
        data = bytearray()
        ends = [0]
        for name in ids:
            data += name.encode()
            ends.append(len(data))
        return cls(bytes(data), np.array(ends, np.int64))

    def __len__(self) -> int:
        return len(self.starts) - 1

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return [self[at] for at in range(*place.indices(len(self)))]
        return self.data[self.starts.item(place) : self.starts.item(place + 1)].decode()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Store:
    """The items themselves, n of them, in chunks of `AT_ONCE`.

    data          the texts of all parts of each chunk, as `BenchItem.part_texts` has them, packed
    starts        int64[4 * n + 1], where each text begins in the texts of all chunks
    absent        bool[n, 4], which parts are None
    choice_bytes  int32[choices], bytes of each choice of all items
    first_choice  int64[n + 1], where the choices of each item begin in that
    answer_index, line  int32[n]
    benchmark, split, source, incomplete  int32[n], index into `names`
    names         different texts of these
    last          the texts of the chunk last asked for, by its number
    """

    data: tuple[NDArray[np.uint8], ...]
    starts: NDArray[np.int64]
    absent: NDArray[np.bool_]
    choice_bytes: NDArray[np.int32]
    first_choice: NDArray[np.int64]
    answer_index: NDArray[np.int32]
    line: NDArray[np.int32]
    benchmark: NDArray[np.int32]
    split: NDArray[np.int32]
    source: NDArray[np.int32]
    incomplete: NDArray[np.int32]
    names: list[str]
    ids: PackedIds
    last: list[tuple[int, bytes]] = field(default_factory=list)

    @classmethod
    def of(cls, items: Sequence[BenchItem]) -> Store:
        """Pack these items, in their order."""
        names: dict[str, int] = {}
        data: list[NDArray[np.uint8]] = []
        n = len(items)
        lengths = np.empty((n, N_PARTS), np.int64)
        absent = np.zeros((n, N_PARTS), np.bool_)
        choice_bytes: list[NDArray[np.int32]] = []
        right, line = np.empty(n, np.int32), np.empty(n, np.int32)
        named = {name: np.empty(n, np.int32) for name in NAMED}
        n_choices, id_bytes = np.empty(n, np.int64), np.empty(n, np.int64)
        ids = []
        for begin in range(0, n, AT_ONCE):
            some = items[begin : begin + AT_ONCE]
            here = slice(begin, begin + len(some))
            encoded = [text.encode() for item in some for text in item.part_texts()]
            lengths[here] = np.fromiter(map(len, encoded), np.int64).reshape(-1, N_PARTS)
            data.append(pack(b"".join(encoded)))
            absent[here, _PASSAGE] = [item.passage is None for item in some]
            absent[here, _ANSWER] = [item.answer is None for item in some]
            n_choices[here] = [len(item.choices) for item in some]
            sizes = (len(choice.encode()) for item in some for choice in item.choices)
            choice_bytes.append(np.fromiter(sizes, np.int32))
            right[here] = [
                _NONE if item.answer_index is None else item.answer_index for item in some
            ]
            line[here] = [item.line for item in some]
            for name, numbers in named.items():
                numbers[here] = [names.setdefault(getattr(item, name), len(names)) for item in some]
            found = [item.item_id.encode() for item in some]
            id_bytes[here] = list(map(len, found))
            ids.append(b"".join(found))
        return cls(
            data=tuple(data),
            starts=np.concatenate([[0], np.cumsum(lengths.reshape(-1))]),
            absent=absent,
            choice_bytes=np.concatenate([np.empty(0, np.int32), *choice_bytes]),
            first_choice=np.concatenate([[0], np.cumsum(n_choices)]),
            names=list(names),
            ids=PackedIds(b"".join(ids), np.concatenate([[0], np.cumsum(id_bytes)])),
            answer_index=right,
            line=line,
            benchmark=named["benchmark"],
            split=named["split"],
            source=named["source"],
            incomplete=named["incomplete"],
        )

    def texts(self, chunk: int) -> bytes:
        """The texts of one chunk."""
        last = self.last[:1]
        if last and last[0][0] == chunk:
            return last[0][1]
        begin = int(self.starts[N_PARTS * AT_ONCE * chunk])
        end = int(self.starts[min(N_PARTS * AT_ONCE * (chunk + 1), len(self.starts) - 1)])
        found = unpack(self.data[chunk], end - begin)
        # One assignment, so no thread sees a half.
        self.last[:] = [(chunk, found)]
        return found

    def part_bytes(self, first: int, after: int) -> bytes:
        """The texts of the items from `first` to before `after`, behind each other."""
        begin, end = self.starts[[N_PARTS * first, N_PARTS * after]].tolist()
        chunks = range(first // AT_ONCE, (after - 1) // AT_ONCE + 1)
        base = int(self.starts[N_PARTS * AT_ONCE * chunks[0]])
        return b"".join([self.texts(chunk) for chunk in chunks])[begin - base : end - base]

    def bytes_of(self, item: int, part: int) -> bytes:
        """The text of one part, UTF-8."""
        chunk = item // AT_ONCE
        base = self.starts.item(N_PARTS * AT_ONCE * chunk)
        at = N_PARTS * item + part
        return self.texts(chunk)[self.starts.item(at) - base : self.starts.item(at + 1) - base]

    def text(self, item: int, part: int) -> str:
        """The text of one part, "" where it is absent."""
        return self.bytes_of(item, part).decode()

    def optional(self, item: int, part: int) -> str | None:
        """The text of one part, None where it is absent."""
        return None if self.absent[item, part] else self.text(item, part)

    def choices(self, item: int) -> tuple[str, ...]:
        """The choices of one item."""
        first, after = self.first_choice.item(item), self.first_choice.item(item + 1)
        if first == after:
            return ()
        text = self.bytes_of(item, _CHOICES)
        begin = 0
        found = []
        for size in self.choice_bytes[first:after].tolist():
            found.append(text[begin : begin + size].decode())
            begin += size + 1  # and the line feed between them
        return tuple(found)

    def origin(self, item: int) -> tuple[ItemName, str, int]:
        """The name of one item, and its source and line there."""
        benchmark, split, source = (
            self.names[column[item]] for column in (self.benchmark, self.split, self.source)
        )
        return ItemName(benchmark, split, self.ids[item]), source, int(self.line[item])

    def item(self, item: int) -> BenchItem:
        """One item, whole."""
        right = int(self.answer_index[item])
        return BenchItem(
            benchmark=self.names[self.benchmark[item]],
            split=self.names[self.split[item]],
            item_id=self.ids[item],
            question=self.text(item, _QUESTION),
            passage=self.optional(item, _PASSAGE),
            choices=self.choices(item),
            answer=self.optional(item, _ANSWER),
            answer_index=None if right == _NONE else right,
            source=self.names[self.source[item]],
            line=int(self.line[item]),
            incomplete=self.names[self.incomplete[item]],
        )


@dataclass(frozen=True, slots=True, eq=False)
class PackedItems(Sequence[BenchItem]):
    """Items of which an object is made whenever somebody asks for one.

    rows  int64[n], which of the stored ones
    """

    store: Store
    rows: NDArray[np.int64]

    @classmethod
    def of(cls, items: Sequence[BenchItem]) -> PackedItems:
        """Pack these items, in their order."""
        return cls(Store.of(items), np.arange(len(items)))

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, place: int) -> BenchItem: ...
    @overload
    def __getitem__(self, place: slice) -> PackedItems: ...
    def __getitem__(self, place: int | slice) -> BenchItem | PackedItems:
        if isinstance(place, slice):
            return self.take(place)
        return self.store.item(int(self.rows[place]))

    def is_whole(self) -> bool:
        """Whether these are all items, as they were packed."""
        return bool(np.array_equal(self.rows, np.arange(len(self.store.ids))))

    def __iter__(self) -> Iterator[BenchItem]:
        if (np.diff(self.rows) >= 0).all():
            yield from map(self.store.item, self.rows.tolist())
            return
        # Each chunk is unpacked once for many items, not once for each.
        for begin in range(0, len(self), _MADE_AT_ONCE):
            rows = self.rows[begin : begin + _MADE_AT_ONCE]
            made = {row: self.store.item(row) for row in np.sort(rows).tolist()}
            yield from map(made.__getitem__, rows.tolist())

    def take(self, places: slice | NDArray[np.int64]) -> PackedItems:
        """The items at these places."""
        return PackedItems(self.store, self.rows[places])

    def column(self, name: str) -> Iterator[Any]:
        """One field of every item, without the others."""
        store = self.store
        rows = self.rows.tolist()
        if name == "item_id":
            return map(store.ids.__getitem__, rows)
        if name in NAMED:
            return map(store.names.__getitem__, getattr(store, name)[self.rows].tolist())
        if name == "choices":
            return map(store.choices, rows)
        part = PARTS.index(name)
        return (store.optional(row, part) for row in rows)

    def give_reason(self, places: Sequence[int], why: str) -> None:
        """Say of the items at these places why they are incomplete, where nothing says so yet."""
        rows = self.rows[list(places)]
        without = [not self.store.names[at] for at in self.store.incomplete[rows].tolist()]
        self.store.incomplete[rows[without]] = len(self.store.names)
        self.store.names.append(why)

    def right_choices(self) -> list[int | None]:
        """The number of each item's right choice; None where there is none of that number."""
        right = self.store.answer_index[self.rows]
        n_choices = np.diff(self.store.first_choice)[self.rows]
        known = (right >= 0) & (right < n_choices)
        return [at if there else None for at, there in zip(right.tolist(), known, strict=True)]

    def blocks(self, n_bytes: int) -> Iterator[PackedItems]:
        """The items in their order, about so many bytes of text at a time; at least one block."""
        if not len(self):
            yield self
        ends = np.cumsum(np.diff(self.store.starts[::N_PARTS])[self.rows])
        begin = 0
        while begin < len(self):
            known = ends[begin - 1] if begin else 0
            end = int(np.searchsorted(ends, known + n_bytes, side="right")) + 1
            yield self[begin:end]
            begin = end

    def part_bytes(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]] | None:
        """The texts of all parts and one byte more, and where each begins: int64[4 * n + 1].

        None where the items do not follow each other as they are stored.
        """
        rows = self.rows
        if not len(rows) or (np.diff(rows) != 1).any():
            return None
        first, after = int(rows[0]), int(rows[-1]) + 1
        starts = self.store.starts[N_PARTS * first : N_PARTS * after + 1]
        data = self.store.part_bytes(first, after) + b"\0"
        return np.frombuffer(data, np.uint8), starts - starts[0]


def packed_together(groups: Sequence[Sequence[BenchItem]]) -> PackedItems | None:
    """The items of all groups where they were packed as one, else None."""
    packed = [group for group in groups if isinstance(group, PackedItems)]
    if not packed or len(packed) < len(groups):
        return None
    store = packed[0].store
    if any(group.store is not store for group in packed):
        return None
    return PackedItems(store, np.concatenate([group.rows for group in packed]))


def column_of(items: Sequence[BenchItem], name: str) -> Iterable[Any]:
    """One field of every item: of packed ones without making the others."""
    if isinstance(items, PackedItems):
        return items.column(name)
    return (getattr(item, name) for item in items)


def ids_of(items: Sequence[BenchItem]) -> Sequence[str]:
    """The ids of all items; those of packed ones stay packed."""
    if not isinstance(items, PackedItems):
        return tuple(column_of(items, "item_id"))
    return items.store.ids if items.is_whole() else PackedIds.of(items.column("item_id"))


def right_choices(items: Sequence[BenchItem]) -> list[int | None]:
    """The number of each item's right choice; None where there is none of that number."""
    if isinstance(items, PackedItems):
        return items.right_choices()
    return [
        at if (at := item.answer_index) is not None and 0 <= at < len(item.choices) else None
        for item in items
    ]


def text_column(items: Sequence[BenchItem], part: str) -> Sequence[Any]:
    """The texts of one of `PARTS` of every item, None for no choices."""
    if isinstance(items, PackedItems):
        return _TextColumn(items, part)
    return _or_none(part, column_of(items, part))


def _or_none(part: str, values: Iterable[Any]) -> list[Any]:
    return [value or None for value in values] if part == "choices" else list(values)


@dataclass(frozen=True, slots=True, eq=False)
class _TextColumn(Sequence[Any]):
    """One part of every item, made when a stretch of it is asked for."""

    items: PackedItems
    part: str

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, place: int | slice) -> Any:  # noqa: ANN401 - a text, or a list of them
        if isinstance(place, slice):
            return _or_none(self.part, self.items[place].column(self.part))
        return self[place : place + 1][0]
