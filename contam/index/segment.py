"""Open one segment of an index: mapped arrays, a table of documents, and which hold which keys."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np

from contam.corpus.documents import DocumentMeta
from contam.index.array_files import CheckedArray, CheckedFile, damaged, fetch_rows, reading
from contam.index.blocks import opened_at_once
from contam.index.manifest import SEGMENTS
from contam.index.model import BUCKET_BITS, MARK

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from numpy.typing import ArrayLike, NDArray

    from contam.index.array_files import Rows
    from contam.index.model import FileRecord, Recipe, SegmentRecord
    from contam.tables.documents import DocumentTable

_WORD: Final = 64
#: Keys for which checking all blocks costs less than finding out which are needed.
_MANY: Final = 1 << 12
#: Numbers of pairs and keys, bits of a rest and of a document.
_SIZES: Final = 4
_MARKS: Final = {"heads": "head_marks", "ends": "end_marks"}

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
        n_pairs, n_keys, rest, width = files["sizes"].check_all().tolist()
        return cls(n_pairs, n_keys, rest, width, files)

    def find(self, keys: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The pairs of each key: (first int64[m], the one behind the last int64[m]).

        Raises IndexDamageError when a block that is read is not as it was written.
        """
        from contam.kernels.pairs import find_lists

        number = self._numbers(keys)
        first, stop = np.empty_like(number), np.empty_like(number)
        ends = self._around("ends", number[number >= 0])
        find_lists(ends, self._files["end_marks"].check_all(), number, first, stop)
        return first, stop

    def _numbers(self, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        """The number of each key in the table, -1 for one that is not there: int64[m]."""
        from contam.kernels.pairs import find_heads, find_keys

        first, stop = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
        heads = self._around("heads", self._heads(keys))
        find_heads(heads, self._files["head_marks"].check_all(), keys, self.rest, first, stop)
        find_keys(self._bits("rests", first, stop, self.rest), keys, self.rest, first, stop)
        return first

    def _heads(self, keys: NDArray[np.uint64]) -> NDArray[np.int64]:
        return (keys >> np.uint64(self.rest)).astype(np.int64)

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
        return self._files["capped"].check_all()

    def unpacked(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """All pairs, and the keys that are capped: (uint64[n], uint64[c])."""
        from contam.kernels.pairs import unpack_pairs

        arrays = {name: file.check_all() for name, file in self._files.items()}
        out = np.empty(self.n_pairs, np.uint64)
        rows = (arrays["heads"], arrays["rests"], arrays["ends"], arrays["documents"])
        unpack_pairs(rows, (self.rest, self.width), out)
        return out, arrays["capped"]

    @property
    def is_remote(self) -> bool:
        """Whether blocks of the table have to be fetched."""
        return any(file.is_remote for file in self._files.values())

    def key_rows(self, keys: NDArray[np.uint64]) -> Iterator[Rows]:
        """Where what `find` reads of heads and rests may be, as the marks have it."""
        begin, end, before, behind = self._marked("heads", self._heads(keys))
        yield self._files["heads"], begin // _WORD, end // _WORD + 1
        yield self._of_bits(
            "rests", begin - before, np.minimum(end - behind, self.n_keys), self.rest
        )

    def list_rows(self, keys: NDArray[np.uint64]) -> Iterator[Rows]:
        """The same of ends and documents; heads and rests are read."""
        number = self._numbers(keys)
        begin, end, _, _ = self._marked("ends", number[number >= 0])
        yield self._files["ends"], begin // _WORD, end // _WORD + 1
        yield self._of_bits("documents", begin, np.minimum(end + 1, self.n_pairs), self.width)

    def _marked(self, name: str, number: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
        """Bits between which the ones with these numbers, and those before them, stand.

        return  int64[m] each: the first and the last bit, and how many ones there are before each
        """
        marks = self._files[_MARKS[name]].check_all()
        before = np.maximum(number - 1, 0) // MARK
        behind = number // MARK + 1
        begin = np.where(number > 0, marks[before], 0)
        known = behind < len(marks)
        end = np.full(len(number), (len(self._files[name]) - 1) * _WORD)
        end[known] = marks[behind[known]]
        return begin, end, before * MARK, np.where(known, behind * MARK, 0)

    def _around(self, name: str, number: NDArray[np.int64]) -> NDArray[np.uint64]:
        """A row of bits, checked around the ones with these numbers and those before them."""
        file = self._files[name]
        if len(number) > _MANY and not file.is_remote:
            return file.check_all()
        begin, end, _, _ = self._marked(name, number)
        return file.check_many(begin // _WORD, end // _WORD + 1)

    def _bits(
        self, name: str, first: NDArray[np.int64], stop: NDArray[np.int64], width: int
    ) -> NDArray[np.uint64]:
        """Words of numbers of so many bits, checked where those first up to stop lie."""
        file = self._files[name]
        if len(first) > _MANY and not file.is_remote:
            return file.check_all()
        return file.check_many(*self._of_bits(name, first, stop, width)[1:])

    def _of_bits(
        self, name: str, first: NDArray[np.int64], stop: NDArray[np.int64], width: int
    ) -> Rows:
        begin = first * width // _WORD
        return self._files[name], begin, np.where(stop > first, stop * width // _WORD + 1, begin)


def fetch_lists(asked: Iterable[tuple[PairTable, NDArray[np.uint64]]]) -> None:
    """Fetch what finding these keys and reading their documents takes, where it lies in stores.

    Of all tables at the same time, in two rounds: what is asked of them afterwards is there.
    """
    remote = [(table, keys) for table, keys in asked if table.is_remote and len(keys)]
    fetch_rows(rows for table, keys in remote for rows in table.key_rows(keys))
    fetch_rows(rows for table, keys in remote for rows in table.list_rows(keys))


SKETCH_ENTRY_BYTES: Final = 5
"""Bytes of an entry of the MinHash part."""

DOCUMENTS: Final = "documents.parquet"
TABLES: Final = ("grams", "letters")
"""The tables of pairs of a segment."""

#: What every question reads of all arrays: of one in a store it is fetched at once.
_RESIDENT: Final = ("_marks", "_capped", "minhash_starts", "minhash_windows")
_META: Final = ("document_id", "url", "date", "source", "language")
_TYPES: Final[dict[str, tuple[str, tuple[int, ...]]]] = {
    "doc_tokens": ("<u4", ()),
    "doc_crc": ("<u4", ()),
    **{f"{table}_{name}": (code, ()) for table in TABLES for name, code in PAIR_ARRAYS.items()},
}
_SKETCH_TYPES: Final[dict[str, tuple[str, tuple[int, ...]]]] = {
    "minhash_starts": ("<i8", ()),
    "minhash_entries": ("|u1", (SKETCH_ENTRY_BYTES,)),
    "minhash_windows": ("<u4", ()),
    "minhash_capped": ("<u4", ()),
}


class Segment:
    """A segment, mapped: what is asked of it is checked before it is answered.

    record  its entry in the manifest;  recipe  how it was made;  folder  its path
    arrays  its array files by their names without suffix
    grams, letters  which documents have which keys
    Errors are IndexDamageErrors that name the file. Several threads may use one.
    """

    def __init__(self, index: Path, record: SegmentRecord, recipe: Recipe) -> None:
        self.record = record
        self.recipe = recipe
        self.folder = index / SEGMENTS / record.id
        files = {file.name: file for file in record.files}
        self._types: dict[str, tuple[str, tuple[int, ...]]] = {**_TYPES}
        if recipe.minhash:
            self._types |= _SKETCH_TYPES
        for name in (DOCUMENTS, *(f"{name}.npy" for name in self._types)):
            if name not in files:
                raise damaged(self.folder / name, "not listed in the manifest")
        self._documents: DocumentTable | None = None
        arrays = opened_at_once(index, self._opened, files.values())
        self.arrays: Mapping[str, CheckedArray] = MappingProxyType(dict(filter(None, arrays)))
        spans = np.array([(s.shard, s.first_row, s.n_rows) for s in record.spans], np.int64)
        self._spans = spans.reshape(-1, 3)
        self._span_ends = np.cumsum(self._spans[:, 2])
        self._check_shapes()
        self.grams, self.letters = (PairTable.of(self.arrays, name) for name in TABLES)

    def _opened(self, file: FileRecord) -> tuple[str, CheckedArray] | None:
        """Open a file; of one in a store, fetch what every question needs."""
        name, _, kind = file.name.partition(".")
        if kind == "npy":
            array = CheckedArray(self.folder, file)
            if array.is_remote and name.endswith(_RESIDENT):
                array.check_all()
            return name, array
        if file.name == DOCUMENTS:
            self._documents_file = CheckedFile(self.folder, file)
            if self._documents_file.is_remote:
                self.document_table()
        return None

    def keys_of(self, hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """The keys of grams or letters, given by their whole hashes, in the same order."""
        return hashes >> np.uint64(64 - self.recipe.key_bits)

    @property
    def n_documents(self) -> int:
        """Documents, null and empty ones included."""
        return self.record.n_documents

    def place_of(self, documents: ArrayLike) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Shard (its place in the manifest) and row of documents given by their numbers [m]."""
        wanted = np.asarray(documents, np.int64)
        span = np.searchsorted(self._span_ends, wanted, side="right")
        chosen = self._spans[span]
        inside = wanted - (self._span_ends[span] - chosen[:, 2])
        return chosen[:, 0].astype(np.int32), chosen[:, 1] + inside

    def documents(self, documents: Iterable[int]) -> list[DocumentMeta]:
        """Metadata of the documents, in the order asked, as the corpus had it when indexed."""
        table = self.document_table()
        with reading(self.folder / DOCUMENTS):
            rows = table.rows([int(number) for number in documents], _META)
        return [DocumentMeta(row[0] or "", *row[1:]) for row in rows]

    def document_table(self) -> DocumentTable:
        """The table of all documents; of its file, blocks are compared when they are read."""
        if self._documents is None:
            from contam.tables.documents import DocumentTable

            path = self.folder / DOCUMENTS
            with reading(path):
                table = DocumentTable(self._documents_file.read, self._documents_file.n_bytes)
            if len(table) != self.n_documents:
                raise damaged(path, f"has {len(table)} rows for {self.n_documents} documents")
            self._documents = table
        return self._documents

    def _check_shapes(self) -> None:
        """The arrays belong together: types, lengths, and first and last values that are known."""
        n_documents = self.n_documents
        lengths = {"doc_tokens": n_documents, "doc_crc": n_documents}
        ends: dict[str, int] = {}
        for table in TABLES:
            sizes = self.arrays[f"{table}_sizes"].check_all()
            known = array_lengths(sizes, self.recipe.key_bits)
            capped = f"{table}_capped"
            lengths |= {f"{table}_{name}": length for name, length in known.items()}
            lengths[capped] = len(self.arrays[capped])
        if self.recipe.minhash:
            lengths |= {
                "minhash_starts": (1 << BUCKET_BITS) + 1,
                "minhash_entries": len(self.arrays["minhash_entries"]),
                "minhash_windows": n_documents + 1,
                "minhash_capped": len(self.arrays["minhash_capped"]),
            }
            ends["minhash_starts"] = lengths["minhash_entries"]
        for name, (code, tail) in self._types.items():
            file = self.arrays[name]
            if file.dtype != np.dtype(code) or file.shape != (lengths.get(name), *tail):
                found = f"{file.dtype} {file.shape}"
                raise damaged(file.path, f"holds {found} for {n_documents} documents")
        for name, end in ends.items():
            file = self.arrays[name]
            last = len(file) - 1
            if int(file.check(0, 1)[0]) != 0 or int(file.check(last, last + 1)[last]) != end:
                raise damaged(file.path, f"does not run from 0 to {end}")
