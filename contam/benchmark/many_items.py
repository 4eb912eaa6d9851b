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


class First(NamedTuple):
    """Where an item stands whose name was given again, and whether it says the same."""

    source: str
    line: int
    same: bool


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
        # By the hash of the name, which takes a fifth of the memory of the name.
        self._places: dict[int, int] = {}
        self._contents = bytearray()
        # Of every name, and of the next one that will be entered.
        self._n_same = array("I", [0])
        for item in items:
            self.add(item)
        for name, n in n_same.items():
            self._n_same[self._find(ItemName(*name))[1]] = n

    def __len__(self) -> int:
        return len(self._places)

    def count(self, name: ItemName) -> int:
        """How many items without an id had this name made of their content, this one included.

        An item of a new name is to be added next.
        """
        place = self._find(name)[1]
        self._n_same[place] += 1
        return self._n_same[place]

    def add(self, item: BenchItem) -> First | None:
        """Take an item, unless there is one of its name, which is returned."""
        number, place = self._find(ItemName.of(item))
        content = _digest(item)
        if place < len(self):
            _, source, line = self._origin(place)
            begin = _DIGEST_BYTES * place
            return First(source, line, self._contents[begin : begin + _DIGEST_BYTES] == content)
        self._places[number] = place
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
        self._places, self._contents, self._n_same = {}, bytearray(), array("I")
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
        return found

    def _find(self, name: ItemName) -> tuple[int, int]:
        """The number of a name, and the place of its item; the next place for a new one."""
        number = hash(name)
        while (place := self._places.get(number)) is not None and self._origin(place)[0] != name:
            number += 1  # another name has this hash
        return number, len(self._places) if place is None else place

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
