"""Hold items as columns, and make an object of one whenever somebody asks for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, overload

import numpy as np

from contam.benchmark.items import PARTS, BenchItem, ItemName
from contam.benchmark.keys import KEY_LENGTH, KEYS, key_digests
from contam.tables.records import Kind, Records

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

COLUMNS: Final[dict[str, Kind]] = {
    "benchmark": "name",
    "split": "name",
    "item_id": "text",
    "question": "text",
    "passage": "text",
    "choices": "texts",
    "answer": "text",
    "answer_index": "number",
    "source": "name",
    "line": "number",
    "incomplete": "name",
}
"""The fields of an item, in their order."""
FIELDS: Final = tuple(COLUMNS)
values_of: Final = attrgetter(*FIELDS)
"""The values of an item, in the order of `FIELDS`."""
#: Items of which objects, or digests, are made at a time.
_AT_ONCE: Final = 1 << 12
#: In place of the number of a right choice.
_NONE: Final = -1


@dataclass(frozen=True, slots=True, eq=False)
class ItemTable(Sequence[BenchItem]):
    """Items in some order; tables of what was read together share its texts.

    records  the items that were read together
    rows     int64[n], which of them; None for all
    digests  uint8[records, 6, 16], their keys: see `key_digests`; None where nobody has made them
    """

    records: Records
    rows: NDArray[np.int64] | None = None
    digests: NDArray[np.uint8] | None = None

    @classmethod
    def of(cls, items: Sequence[BenchItem]) -> ItemTable:
        """The table of these items, which may be one."""
        if isinstance(items, ItemTable):
            return items
        return cls(Records.of([values_of(item) for item in items], COLUMNS))

    @classmethod
    def joined(cls, tables: Sequence[ItemTable]) -> ItemTable:
        """The items of all tables, at least one, behind each other."""
        first = tables[0]
        if all(table.records is first.records for table in tables):
            places = [np.arange(len(t.records)) if t.rows is None else t.rows for t in tables]
            return cls(first.records, np.concatenate(places), first.digests)
        known = [table.key_digests() for table in tables if table.digests is not None]
        return cls(
            Records.joined([table.part(slice(None)) for table in tables]),
            digests=np.concatenate(known) if len(known) == len(tables) else None,
        )

    def __len__(self) -> int:
        return len(self.records if self.rows is None else self.rows)

    @overload
    def __getitem__(self, place: int) -> BenchItem: ...
    @overload
    def __getitem__(self, place: slice) -> ItemTable: ...
    def __getitem__(self, place: int | slice) -> BenchItem | ItemTable:
        if isinstance(place, slice):
            return self.take(np.arange(*place.indices(len(self))))
        begin = range(len(self))[place]
        (item,) = _items(self.part(slice(begin, begin + 1)))
        return item

    def __iter__(self) -> Iterator[BenchItem]:
        for begin in range(0, len(self), _AT_ONCE):
            yield from _items(self.part(slice(begin, begin + _AT_ONCE)))

    def take(self, places: NDArray[np.int64]) -> ItemTable:
        """The items at these places, without a copy of their texts."""
        rows = places if self.rows is None else self.rows[places]
        return ItemTable(self.records, rows, self.digests)

    def in_order(self) -> ItemTable:
        """The items by their names, in the canonical order of results."""
        if len(self) == 1:
            return self
        return self.take(self.part(slice(None), *ItemName._fields).natural_order(ItemName._fields))

    def column(self, name: str) -> list[Any]:
        """One field of every item."""
        values = self.part(slice(None), name).values(name)
        return [tuple(some) for some in values] if COLUMNS[name] == "texts" else values

    def names(self) -> list[ItemName]:
        """The name of every item."""
        return list(map(ItemName, *(self.column(name) for name in ItemName._fields)))

    def codes(self, name: str) -> tuple[list[str], NDArray[np.int32]]:
        """The different values of a field that many items share; int32[n], which each has."""
        names, codes = self.records.codes(name)
        return names, codes[self._places]

    def lazy(self, name: str) -> ItemColumn:
        """One field of every item, of which values are made when a stretch is asked for."""
        return ItemColumn(ItemTable(self.records.select(name), self.rows), name)

    def right_choices(self) -> NDArray[np.int64]:
        """The number of each item's right choice; -1 where there is none of that number."""
        right = self.records.numbers("answer_index", _NONE)
        known = (right >= 0) & (right < self.records.counts("choices"))
        return np.where(known, right, _NONE)[self._places]

    def part_texts(self) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """The texts of all parts in UTF-8, item by item, and one byte more.

        Also returns where each begins, int64[4 * n + 1]; see `BenchItem.part_texts`.
        """
        return self.part(slice(None), *PARTS).texts(PARTS)

    def texts(self, part: str) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        """The same of one part alone."""
        return self.part(slice(None), part).texts((part,))

    def blocks(self, n_bytes: int) -> Iterator[ItemTable]:
        """The items in their order, about so many bytes of text at a time; at least one block."""
        if len(self) < 2:  # noqa: PLR2004 - one item, or none
            yield self
            return
        begin, ends = 0, np.cumsum(self.records.n_bytes(PARTS)[self._places])
        while begin < len(self):
            known = ends[begin - 1] if begin else 0
            end = int(np.searchsorted(ends, known + n_bytes, side="right")) + 1
            yield self[begin:end]
            begin = end

    def key_digests(self) -> NDArray[np.uint8]:
        """The keys of every item: uint8[n, 6, 16], see `contam.benchmark.keys.key_digests`."""
        if self.digests is not None:
            return self.digests[self._places]
        found = [np.empty((0, len(KEYS), KEY_LENGTH // 2), np.uint8)]
        for begin in range(0, len(self), _AT_ONCE):
            part = self.part(slice(begin, begin + _AT_ONCE))
            names = ("question", "passage", "choices", "answer")
            found.append(key_digests(*(part.values(name) for name in names)))
        return np.concatenate(found)

    def with_keys(self) -> ItemTable:
        """The same with the digests of its keys, of all that were read together."""
        whole = ItemTable(self.records)
        return ItemTable(self.records, self.rows, whole.key_digests())

    def with_reasons(self, reasons: Mapping[int, str]) -> ItemTable:
        """All that were read together, where these rows have another `incomplete`."""
        return ItemTable(self.records.with_names("incomplete", reasons), self.rows, self.digests)

    @property
    def _places(self) -> NDArray[np.int64] | slice:
        return slice(None) if self.rows is None else self.rows

    def part(self, places: slice, *names: str) -> Records:
        """The records at these places, of these columns alone if there are names."""
        records = self.records.select(*names) if names else self.records
        if self.rows is None and places.indices(len(records)) == (0, len(records), 1):
            return records
        return records.take(places if self.rows is None else self.rows[places])


@dataclass(frozen=True, slots=True, eq=False)
class ItemColumn(Sequence[Any]):
    """One field of every item, None for no choices."""

    items: ItemTable
    name: str

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, place: int | slice) -> Any:  # noqa: ANN401 - a text, or a list of them
        if isinstance(place, slice):
            values = self.items[place].column(self.name)
            return [value or None for value in values] if self.name == "choices" else values
        at = range(len(self))[place]
        return self[at : at + 1][0]


def _items(records: Records) -> Iterator[BenchItem]:
    columns = {name: records.values(name) for name in FIELDS}
    columns["choices"] = list(map(tuple, columns["choices"]))
    for row in zip(*columns.values(), strict=True):
        yield BenchItem(**dict(zip(FIELDS, row, strict=True)))
