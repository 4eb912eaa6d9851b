"""Read a table of pairs: which documents of a segment hold which keys."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from contam.index.model import MARK

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from contam.index.array_files import CheckedArray

_WORD: Final = 64
#: Keys for which checking all blocks costs less than finding out which are needed.
_MANY: Final = 1 << 12
#: Numbers of pairs and keys, bits of a rest and of a document.
_SIZES: Final = 4

PAIR_ARRAYS: Final = {
    "sizes": "<i8",
    "heads": "<u8",
    "head_marks": "<i8",
    "rests": "<u8",
    "ends": "<u8",
    "end_marks": "<i8",
    "documents": "<u8",
    "capped": "<u8",
}
"""The arrays of a table and their types; in a segment each has the table's name before it."""


def words_of(n_bits: int) -> int:
    """Words for so many bits, and one more."""
    return -(-n_bits // _WORD) + 1


def array_lengths(sizes: NDArray[np.int64], key_bits: int) -> dict[str, int]:
    """How long the arrays of a table with these `sizes` are, all but `capped`."""
    if sizes.shape != (_SIZES,) or sizes.min() < 0 or sizes[2] > key_bits:
        return {}
    n_pairs, n_keys, rest, width = sizes.tolist()
    n_heads = 1 << (key_bits - rest)
    bits = {
        "heads": n_keys + n_heads,
        "rests": n_keys * rest,
        "ends": n_pairs,
        "documents": n_pairs * width,
    }
    return {
        "sizes": _SIZES,
        **{name: words_of(n) for name, n in bits.items()},
        "head_marks": -(-n_heads // MARK),
        "end_marks": -(-n_keys // MARK),
    }


@dataclass(frozen=True, slots=True, eq=False)
class PairTable:
    """A table of a segment, mapped: what is asked of it is checked before it is answered.

    n_pairs, n_keys  how many there are;  rest, width  bits of a key's rest, and of a document
    """

    n_pairs: int
    n_keys: int
    rest: int
    width: int
    _files: Mapping[str, CheckedArray]

    @classmethod
    def of(cls, arrays: Mapping[str, CheckedArray], name: str) -> PairTable:
        """The table of this name among the arrays of a segment. Raises IndexDamageError."""
        files = {key: arrays[f"{name}_{key}"] for key in PAIR_ARRAYS}
        files["sizes"].check_all()
        n_pairs, n_keys, rest, width = files["sizes"].array.tolist()
        return cls(n_pairs, n_keys, rest, width, files)

    def find(self, keys: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The pairs of each key: (first int64[m], the one behind the last int64[m]).

        Raises IndexDamageError when a block that is read is not as it was written.
        """
        from contam.kernels.pairs import find_heads, find_keys, find_lists

        first, stop = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
        head = (keys >> np.uint64(self.rest)).astype(np.int64)
        heads, marks = self._marked("heads", "head_marks", head)
        find_heads(heads, marks, keys, self.rest, first, stop)
        rests = self._bits("rests", first, stop, self.rest)
        find_keys(rests, keys, self.rest, first, stop)
        number = first.copy()
        ends, marks = self._marked("ends", "end_marks", number)
        find_lists(ends, marks, number, first, stop)
        return first, stop

    def documents(self, first: NDArray[np.int64], stop: NDArray[np.int64]) -> NDArray[np.int64]:
        """The documents of these pairs, int64[their number], one list behind the other."""
        from contam.kernels.pairs import read_documents

        out = np.empty(int((stop - first).sum()), np.int64)
        read_documents(self.packed(first, stop), self.width, first, stop, out)
        return out

    def packed(self, first: NDArray[np.int64], stop: NDArray[np.int64]) -> NDArray[np.uint64]:
        """The words of the documents, those of these pairs as they were written."""
        return self._bits("documents", first, stop, self.width)

    def capped(self, keys: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Of which of the keys only some documents are kept: bool[m]."""
        known = self.capped_keys()
        if not len(known):
            return np.zeros(len(keys), np.bool_)
        at = np.minimum(np.searchsorted(known, keys), len(known) - 1)
        found: NDArray[np.bool_] = known[at] == keys
        return found

    def capped_keys(self) -> NDArray[np.uint64]:
        """The keys in too many documents, of which only some are kept, ascending."""
        file = self._files["capped"]
        file.check_all()
        return file.array

    def unpacked(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """All pairs, and the keys that are capped: (uint64[n], uint64[c])."""
        from contam.kernels.pairs import unpack_pairs

        for file in self._files.values():
            file.check_all()
        out = np.empty(self.n_pairs, np.uint64)
        heads, rests, ends, documents = (
            self._files[name].array for name in ("heads", "rests", "ends", "documents")
        )
        unpack_pairs((heads, rests, ends, documents), (self.rest, self.width), out)
        return out, self._files["capped"].array

    def _marked(
        self, name: str, marks_name: str, number: NDArray[np.int64]
    ) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """A row of bits and its marks, checked around the ones with these numbers."""
        bits, marks = self._files[name], self._files[marks_name]
        marks.check_all()
        if len(number) > _MANY:
            bits.check_all()
        elif len(marks):
            before, behind = np.maximum(number - 1, 0) // MARK, number // MARK + 1
            end = marks.array[np.minimum(behind, len(marks) - 1)]
            end = np.where(behind < len(marks), end, (len(bits) - 1) * _WORD)
            bits.check_many(marks.array[before] // _WORD, end // _WORD + 1)
        return bits.array, marks.array

    def _bits(
        self, name: str, first: NDArray[np.int64], stop: NDArray[np.int64], width: int
    ) -> NDArray[np.uint64]:
        """Words of numbers of so many bits, checked where those first up to stop lie."""
        file = self._files[name]
        if len(first) > _MANY:
            file.check_all()
        else:
            begin = first * width // _WORD
            file.check_many(begin, np.where(stop > first, stop * width // _WORD + 1, begin))
        return file.array
