"""Take many items as they are read, and pack them on the way, so that few are there as objects."""

from __future__ import annotations

import hashlib
from array import array
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import orjson

from contam.benchmark import packed
from contam.benchmark.collector import content_of
from contam.benchmark.items import BenchItem, ItemName
from contam.benchmark.key_table import KeyTable
from contam.benchmark.packed import PackedItems, Store
from contam.benchmark.put_in_order import in_order
from contam.memory import trim

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

#: Bytes that are kept of the SHA-256 of what an item says.
_DIGEST_BYTES: Final = 16
#: In place of a place.
_FREE: Final = -1


class First(NamedTuple):
    """Where an item stands whose name was given again, and whether it says the same."""

    source: str
    line: int
    same: bool


class _Places:
    """Places by hashes, in a sixth of the memory that a dictionary takes."""

    def __init__(self) -> None:
        self.hashes = array("q")
        # A place or _FREE; what finds its slot taken has the next that is free.
        self._slots = array("i", [_FREE, _FREE])

    def of(self, number: int) -> list[int]:
        """The places of a hash."""
        slots, hashes = self._slots, self.hashes
        found = []
        at = number % len(slots)
        while (place := slots[at]) != _FREE:
            if hashes[place] == number:
                found.append(place)
            at = (at + 1) % len(slots)
        return found

    def enter(self, number: int) -> None:
        """Give the next place to a hash."""
        slots = self._slots
        at = number % len(slots)
        while slots[at] != _FREE:
            at = (at + 1) % len(slots)
        slots[at] = len(self.hashes)
        self.hashes.append(number)
        if 2 * len(self.hashes) >= len(slots):
            self._grow()

    def _grow(self) -> None:
        hashes = np.array(self.hashes, np.int64)
        slots = np.full(2 * len(self._slots), _FREE, np.int32)
        places = np.arange(len(hashes), dtype=np.int32)
        at = hashes % len(slots)
        while len(places):
            free = slots[at] == _FREE
            slots[at[free]] = places[free]  # of several for one slot, one stays
            left = slots[at] != places
            places, at = places[left], (at[left] + 1) % len(slots)
        self._slots = array("i", slots.tobytes())


class ManyItems:
    """Items of different names in reading order, of all benchmarks. Not for several threads."""

    def __init__(
        self, items: Iterable[BenchItem], n_same: Mapping[tuple[str, str, str], int]
    ) -> None:
        """Start with items of different names.

        n_same  how many of no id got which name: see `count`
        """
        self._pending: list[BenchItem] = []
        self._stores: list[Store] = []
        self._digests, self._absent = bytearray(), bytearray()
        self._names = _Places()
        self._contents = bytearray()
        # Of every name, and of the next one that will be entered.
        self._n_same = array("I", [0])
        for item in items:
            self.add(item)
        for name, n in n_same.items():
            self._n_same[self._find(ItemName(*name))] = n

    def __len__(self) -> int:
        return len(self._names.hashes)

    def count(self, name: ItemName) -> int:
        """How many items without an id had this name made of their content, this one included.

        An item of a new name is to be added next.
        """
        place = self._find(name)
        self._n_same[place] += 1
        return self._n_same[place]

    def add(self, item: BenchItem) -> First | None:
        """Take an item, unless there is one of its name, which is returned."""
        name = ItemName.of(item)
        place = self._find(name)
        content = _digest(item)
        if place < len(self):
            _, source, line = self._origin(place)
            begin = _DIGEST_BYTES * place
            return First(source, line, self._contents[begin : begin + _DIGEST_BYTES] == content)
        self._names.enter(hash(name))
        self._contents += content
        self._n_same.append(0)
        self._pending.append(item)
        if len(self._pending) == packed.AT_ONCE:
            self._pack()
        return None

    def finish(self) -> dict[str, tuple[PackedItems, KeyTable]]:
        """The items of each benchmark and their keys, in reading order; none is left here.

        They are packed as one, by name.
        """
        self._pack()
        self._names, self._contents, self._n_same = _Places(), bytearray(), array("I")
        trim()
        store, order = in_order(self._stores)
        keys = KeyTable.of_bytes(self._digests, self._absent)
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        found = {}
        for number in np.unique(store.benchmark).tolist():
            as_read = np.sort(order[store.benchmark == number])
            items = PackedItems(store, place[as_read])
            found[store.names[number]] = items, keys.sharing(as_read)
        trim()
        return found

    def _find(self, name: ItemName) -> int:
        """The place of the item of a name; the next place for a new one."""
        for place in self._names.of(hash(name)):
            if self._origin(place)[0] == name:
                return place
        return len(self)

    def _origin(self, place: int) -> tuple[ItemName, str, int]:
        """Name, source and line of an item."""
        chunk, at = divmod(place, packed.AT_ONCE)
        if chunk < len(self._stores):
            return self._stores[chunk].origin(at)
        item = self._pending[at]
        return ItemName.of(item), item.source, item.line

    def _pack(self) -> None:
        if self._pending:
            keys = KeyTable.of(self._pending)
            self._digests += keys.digests.tobytes()
            self._absent += keys.absent.tobytes()
            self._stores.append(Store.of(self._pending))
            self._pending = []


def _digest(item: BenchItem) -> bytes:
    """What tells items of one name apart."""
    content = orjson.dumps(content_of(item))
    return hashlib.sha256(content).digest()[:_DIGEST_BYTES]
