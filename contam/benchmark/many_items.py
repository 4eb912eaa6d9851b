"""Take many items as they are read, and pack them on the way, so that few are there as objects.

At the end they are put in the order of their names, a stretch of their texts at a time.
"""

from __future__ import annotations

import hashlib
from array import array
from dataclasses import fields
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import numpy as np
import orjson

from contam.benchmark import packed
from contam.benchmark.collector import content_of
from contam.benchmark.items import BenchItem, ItemName
from contam.benchmark.key_table import KeyTable
from contam.benchmark.packed import N_PARTS, PackedIds, PackedItems, Store
from contam.files.natural_order import natural_key
from contam.memory import trim
from contam.tables.packing import pack, unpack

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.typing import NDArray

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


_Value = TypeVar("_Value", np.int32, np.uint8)

#: Texts that lie unpacked at the same time, in bytes.
_STRETCH_BYTES: Final = 32 << 20
#: Texts of a stretch that are packed together while the others are still to come, in bytes.
_PIECE_BYTES: Final = 128 << 10
#: Chunks after which what was let go is given back.
_TRIM_EVERY: Final = 16
#: Rows that are gathered at a time.
_ROWS: Final = 1 << 16


def in_order(stores: list[Store]) -> tuple[Store, NDArray[np.int64]]:
    """All items of some stores, which have `AT_ONCE` each but the last, by their names.

    The list is emptied. Also returns int64[n], for each place which of the items it has.
    """
    columns = {
        column.name: [getattr(store, column.name) for store in stores] for column in fields(Store)
    }
    stores.clear()

    # Each is let go when it is there as a whole.
    def whole(name: str) -> NDArray[Any]:
        return np.concatenate(columns.pop(name))

    def sizes(starts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
        return np.concatenate([np.diff(some) for some in starts])

    names, here = _names(columns.pop("names"))
    numbers = {
        name: np.concatenate(
            [at[column] for at, column in zip(here, columns.pop(name), strict=True)]
        )
        for name in packed.NAMED
    }
    ids = PackedIds(
        b"".join([some.data for some in columns["ids"]]),
        _starts(sizes([some.starts for some in columns.pop("ids")])),
    )
    order = _by_name(numbers["benchmark"], numbers["split"], names, ids)
    ordered_ids = PackedIds(
        _gathered(np.frombuffer(ids.data, np.uint8), ids.starts, order).tobytes(),
        _starts(np.diff(ids.starts)[order]),
    )
    del ids
    lengths = sizes(columns.pop("starts")).reshape(-1, N_PARTS)
    data = _texts([chunk for (chunk,) in columns.pop("data")], lengths.sum(axis=1), order)
    first_choice = _starts(sizes(columns.pop("first_choice")))
    return Store(
        data=data,
        starts=_starts(lengths[order].reshape(-1)),
        absent=whole("absent")[order],
        choice_bytes=_gathered(whole("choice_bytes"), first_choice, order),
        first_choice=_starts(np.diff(first_choice)[order]),
        answer_index=whole("answer_index")[order],
        line=whole("line")[order],
        benchmark=numbers["benchmark"][order],
        split=numbers["split"][order],
        source=numbers["source"][order],
        incomplete=numbers["incomplete"][order],
        names=names,
        ids=ordered_ids,
    ), order


def _names(of_stores: list[list[str]]) -> tuple[list[str], list[NDArray[np.int32]]]:
    """All names, and for each store int32[names], where its own are among them."""
    known: dict[str, int] = {}
    here = [[known.setdefault(name, len(known)) for name in names] for names in of_stores]
    return list(known), [np.array(some, np.int32) for some in here]


def _starts(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    starts = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts


def _by_name(
    benchmark: NDArray[np.int32], split: NDArray[np.int32], names: list[str], ids: PackedIds
) -> NDArray[np.int64]:
    """The canonical order of results; ids of one split at a time, for the memory they take."""
    rank = np.empty(len(names), np.int64)
    rank[sorted(range(len(names)), key=lambda at: natural_key(names[at]))] = np.arange(len(names))
    groups = rank[benchmark] * len(names) + rank[split]
    order = np.argsort(groups, kind="stable")
    edges = np.flatnonzero(np.diff(groups[order], prepend=-1, append=-1))
    for lo, hi in pairwise(edges.tolist()):
        some = order[lo:hi]
        keys = [natural_key(ids[at]) for at in some.tolist()]
        order[lo:hi] = some[sorted(range(hi - lo), key=keys.__getitem__)]
    return order


def _gathered(
    values: NDArray[_Value], starts: NDArray[np.int64], order: NDArray[np.int64]
) -> NDArray[_Value]:
    """The values of all rows, of row i from `starts[i]` on, with the rows in this order."""
    found = np.empty_like(values)
    ends = np.cumsum(np.diff(starts)[order])
    done = 0
    for begin in range(0, len(order), _ROWS):
        rows = order[begin : begin + _ROWS]
        end = ends.item(begin + len(rows) - 1)
        sizes = starts[rows + 1] - starts[rows]
        shift = starts[rows] - (ends[begin : begin + _ROWS] - sizes)
        found[done:end] = values[np.repeat(shift, sizes) + np.arange(done, end)]
        done = end
    return found


class _Piece(NamedTuple):
    packed: NDArray[np.uint8]
    size: int


class _Stretch:
    """Texts on their way to a stretch of places, in the order in which they were read."""

    def __init__(self) -> None:
        self._packed: list[_Piece] = []
        self._loose: list[bytes] = []
        self._n_loose = 0

    def add(self, text: bytes) -> None:
        self._loose.append(text)
        self._n_loose += len(text)
        if self._n_loose >= _PIECE_BYTES:
            self._packed.append(_Piece(pack(b"".join(self._loose)), self._n_loose))
            self._loose, self._n_loose = [], 0

    def take(self) -> bytes:
        """All of them, unpacked, which are no longer held."""
        found = b"".join([*(unpack(*piece) for piece in self._packed), *self._loose])
        self._packed, self._loose = [], []
        trim()
        return found


def _texts(
    chunks: list[NDArray[np.uint8]], sizes: NDArray[np.int64], order: NDArray[np.int64]
) -> tuple[NDArray[np.uint8], ...]:
    """The packed texts of items of these sizes in this order; the list is emptied."""
    if (np.diff(order) > 0).all():
        return tuple(chunks)
    at_once = packed.AT_ONCE
    begins = _starts(sizes[order])[:-1]
    stretch_of_chunk = begins[::at_once] // _STRETCH_BYTES
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    _, stretch_of_chunk = np.unique(stretch_of_chunk, return_inverse=True)
    stretches = [_Stretch() for _ in range(int(stretch_of_chunk[-1]) + 1)]
    _hand_out(chunks, sizes, stretch_of_chunk[place // at_once], stretches)
    edges = [*np.flatnonzero(np.diff(stretch_of_chunk, prepend=-1)), len(stretch_of_chunk)]
    return tuple(
        pack(text)
        for stretch, (lo, hi) in zip(stretches, pairwise(edges), strict=True)
        for text in _permuted(stretch.take(), sizes, order[lo * at_once : hi * at_once])
    )


def _hand_out(
    chunks: list[NDArray[np.uint8]],
    sizes: NDArray[np.int64],
    stretch_of: NDArray[np.int64],
    stretches: list[_Stretch],
) -> None:
    """Give each text to the stretch it belongs to; the list's texts are let go."""
    at_once = packed.AT_ONCE
    for number, chunk in enumerate(chunks):
        chunks[number] = np.empty(0, np.uint8)
        if number % _TRIM_EVERY == 0:
            trim()
        here = slice(number * at_once, (number + 1) * at_once)
        starts = _starts(sizes[here])
        by_stretch = np.argsort(stretch_of[here], kind="stable")
        texts = _slices(unpack(chunk, starts.item(-1)), starts, by_stretch)
        belongs = stretch_of[here][by_stretch]
        for lo, hi in pairwise(np.flatnonzero(np.diff(belongs, prepend=-1, append=-1)).tolist()):
            stretches[belongs.item(lo)].add(b"".join(texts[lo:hi]))


def _permuted(text: bytes, sizes: NDArray[np.int64], order: NDArray[np.int64]) -> Iterator[bytes]:
    """The texts of these items, of which `text` has them as they were read, chunk by chunk."""
    as_read = np.sort(order)
    starts = _starts(sizes[as_read])
    at = np.searchsorted(as_read, order)
    for begin in range(0, len(order), packed.AT_ONCE):
        yield b"".join(_slices(text, starts, at[begin : begin + packed.AT_ONCE]))


def _slices(text: bytes, starts: NDArray[np.int64], order: NDArray[np.int64]) -> list[bytes]:
    edges = zip(starts[order].tolist(), starts[order + 1].tolist(), strict=True)
    return [text[begin:end] for begin, end in edges]
