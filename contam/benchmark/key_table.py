"""Hold the content keys of many items in little memory, and compute them for all at once."""

from __future__ import annotations

import string
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

import numpy as np

from contam.benchmark.keys import KEY_LENGTH, ContentKeys, key_digests, normalise

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from contam.benchmark.items import BenchItem

COLUMNS: Final = ("text_key", "item_key", "full_key", "passage_key", "choices_key", "answer_key")
"""The keys of an item, in the order of the table."""

_KEY_BYTES: Final = KEY_LENGTH // 2
#: In place of the SHA-256 of what is not there.
_NOTHING: Final = bytes(32)
#: Items whose texts are normalised together.
_AT_ONCE: Final = 256

_SPACE: Final = 0x20
_BETWEEN: Final = 0
_LOWER: Final = string.ascii_lowercase
#: Of ASCII, white space is a space, a capital a small letter, and a backtick a quote.
_PLAIN: Final = bytes.maketrans(
    b"\t\n\v\f\r\x1c\x1d\x1e\x1f`" + _LOWER.upper().encode(),
    b" " * 9 + b"'" + _LOWER.encode(),
)


@dataclass(frozen=True, slots=True, eq=False)
class KeyTable:
    """The content keys of n items.

    digests  uint8[m, 6, 16], the bytes of each key, in the order of `COLUMNS`
    absent   bool[m, 6], which keys an item does not have
    rows     int64[n], which of these: tables of many items share them; None for all
    """

    digests: NDArray[np.uint8]
    absent: NDArray[np.bool_]
    rows: NDArray[np.int64] | None = None

    @classmethod
    def of(cls, items: Sequence[BenchItem]) -> Self:
        """The keys of these items, as `content_keys` gives them one by one."""
        rows: list[bytes] = []
        for begin in range(0, len(items), _AT_ONCE):
            _add_keys(items[begin : begin + _AT_ONCE], rows)
        absent = np.zeros((len(items), len(COLUMNS)), np.bool_)
        has = ((bool(item.passage), bool(item.choices), bool(item.answer)) for item in items)
        absent[:, 3:] = np.logical_not(np.fromiter(has, np.dtype((np.bool_, 3)), len(items)))
        return cls.of_bytes(b"".join(rows), absent.tobytes())

    @classmethod
    def of_bytes(cls, digests: bytes | bytearray, absent: bytes | bytearray) -> Self:
        """The keys whose arrays have these bytes, which are not copied."""
        return cls(
            np.frombuffer(digests, np.uint8).reshape(-1, len(COLUMNS), _KEY_BYTES),
            np.frombuffer(absent, np.bool_).reshape(-1, len(COLUMNS)),
        )

    @classmethod
    def joined(cls, tables: Sequence[KeyTable]) -> Self:
        """The keys of several tables, one after the other; at least one table."""
        first = tables[0]
        shared = [table.rows for table in tables if table.digests is first.digests]
        rows = [some for some in shared if some is not None]
        if len(rows) == len(tables):
            return cls(first.digests, first.absent, np.concatenate(rows))
        return cls(
            np.concatenate([table.digests[table.places] for table in tables]),
            np.concatenate([table.absent[table.places] for table in tables]),
        )

    @property
    def places(self) -> NDArray[np.int64] | slice:
        """Where the keys are in the arrays."""
        return slice(None) if self.rows is None else self.rows

    def __len__(self) -> int:
        return len(self.digests if self.rows is None else self.rows)

    def take(self, order: NDArray[np.int64]) -> KeyTable:
        """The keys of the items at these places."""
        if self.rows is None:
            return KeyTable(self.digests[order], self.absent[order])
        return self.sharing(self.rows[order])

    def sharing(self, rows: NDArray[np.int64]) -> KeyTable:
        """The keys in these rows of the arrays, without a copy of them."""
        return KeyTable(self.digests, self.absent, rows)

    def one(self, place: int) -> ContentKeys:
        """The keys of one item."""
        at = place if self.rows is None else self.rows.item(place)
        return ContentKeys(
            *(
                None if absent else digest.tobytes().hex()
                for digest, absent in zip(self.digests[at], self.absent[at].tolist(), strict=True)
            )  # type: ignore[arg-type]  # the first three are never absent
        )

    def column(self, name: str) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
        """One of `COLUMNS`: uint8[n, 16], and bool[n], which items have none."""
        at = COLUMNS.index(name)
        return np.ascontiguousarray(self.digests[self.places, at]), self.absent[self.places, at]

    def equal(self, name: str) -> list[NDArray[np.int64]]:
        """Places of the items that share a key, two or more in each group, by their first place."""
        halves = self.column(name)[0].view(np.uint64)
        order = np.lexsort((halves[:, 1], halves[:, 0]))
        ordered = halves[order]
        fresh = np.flatnonzero((ordered[1:] != ordered[:-1]).any(axis=1)) + 1
        groups = [group for group in _apart(order, fresh) if len(group) > 1]
        return sorted(groups, key=lambda group: int(group[0]))


def _apart(order: NDArray[np.int64], fresh: NDArray[np.int64]) -> Iterable[NDArray[np.int64]]:
    """The order cut at these places; what is alone is left out without being looked at."""
    edges = np.concatenate([[0], fresh, [len(order)]])
    several = np.flatnonzero(np.diff(edges) > 1)
    for lo, hi in zip(edges[several].tolist(), edges[several + 1].tolist(), strict=True):
        yield order[lo:hi]


def _add_keys(items: Sequence[BenchItem], rows: list[bytes]) -> None:
    """Append the keys of these items, those that one does not have as zeros."""
    texts: list[str] = []
    for item in items:
        texts += (item.question, item.passage or "", item.answer or "", *item.choices)
    found = normalised(texts)
    digests: list[bytes] = []
    begin = 0
    for item in items:
        question, passage, answer = found[begin : begin + 3]
        end = begin + 3 + len(item.choices)
        own = key_digests(item, question, found[begin + 3 : end], passage, answer)
        digests += [digest or _NOTHING for digest in own]
        begin = end
    whole = np.frombuffer(b"".join(digests), np.uint8).reshape(-1, len(_NOTHING))
    rows.append(whole[:, :_KEY_BYTES].tobytes())


def normalised(texts: Sequence[str]) -> list[bytes]:
    """What `normalise` gives for each text, in UTF-8; of ASCII for all texts together."""
    foreign = [place for place, text in enumerate(texts) if not text.isascii()]
    plain = list(texts)
    for place in foreign:
        plain[place] = ""
    data = "\0".join(plain).encode().translate(_PLAIN)
    found = data.split(b"\0")
    if len(found) != len(texts):  # a text has a null character, or there is no text
        return [normalise(text).encode() for text in texts]
    for place in _untidy(np.frombuffer(data, np.uint8)):
        found[place] = b" ".join(found[place].split())
    for place in foreign:
        found[place] = normalise(texts[place]).encode()
    return found


def _untidy(data: NDArray[np.uint8]) -> list[int]:
    """Which texts begin or end with a space, or have two in a row; 0 is between texts."""
    space, between = data == _SPACE, data == _BETWEEN
    blank = space | between
    # An empty text has no space, so that of two in a row one must be a space.
    untidy = np.flatnonzero(blank[1:] & blank[:-1] & (space[1:] | space[:-1]))
    texts = np.searchsorted(np.flatnonzero(between), untidy + between[untidy], side="left")
    ends = [0] if len(space) and space[0] else []
    ends += [int(between.sum())] if len(space) and space[-1] else []
    return sorted({*texts.tolist(), *ends})
