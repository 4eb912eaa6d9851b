"""Open one segment of an index: mapped arrays and a table of documents."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contam.corpus.documents import DocumentMeta
from contam.index.array_files import CheckedArray, CheckedFile, damaged, reading
from contam.index.manifest import SEGMENTS
from contam.index.model import BUCKET_BITS, KEY_BITS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from numpy.typing import ArrayLike, NDArray

    from contam.index.model import Recipe, SegmentRecord
    from contam.tables.documents import DocumentTable

REST_BITS: Final = KEY_BITS - BUCKET_BITS
"""Bits of a key that a posting stores; the others are its bucket."""

POSTING_WORDS: Final = 5
"""Words of 16 bits in a posting: three of key and context, two of ordinal."""

SKETCH_ENTRY_BYTES: Final = 5
"""Bytes of an entry of the MinHash part."""

DOCUMENTS: Final = "documents.parquet"

_REST: Final = (1 << REST_BITS) - 1
_META: Final = ("document_id", "url", "date", "source", "language")
_TYPES: Final = {
    "starts": ("<i8", ()),
    "postings": ("<u2", (POSTING_WORDS,)),
    "doc_entries": ("<u4", ()),
    "doc_tokens": ("<u4", ()),
    "doc_crc": ("<u4", ()),
    "capped_key": ("<u8", ()),
    "capped_count": ("<i8", ()),
    "letters": ("<u8", ()),
}
_SKETCH_TYPES: Final = {
    "minhash_starts": ("<i8", ()),
    "minhash_entries": ("|u1", (SKETCH_ENTRY_BYTES,)),
    "minhash_windows": ("<u4", ()),
    "minhash_capped": ("<u4", ()),
}


def documents_of_letters(letters: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The numbers of the documents that have these keys of letters."""
    return (letters & np.uint64(0xFFFFFFFF)).astype(np.int64)


class Segment:
    """A segment, mapped: what is asked of it is checked before it is answered.

    record  its entry in the manifest;  recipe  how it was made;  folder  its path
    arrays  its array files by their names without suffix
    Errors are IndexDamageErrors that name the file. Several threads may use one.
    """

    def __init__(self, index: Path, record: SegmentRecord, recipe: Recipe) -> None:
        self.record = record
        self.recipe = recipe
        self.folder = index / SEGMENTS / record.id
        files = {file.name: file for file in record.files}
        self._types: dict[str, tuple[str, tuple[int, ...]]] = {**_TYPES}
        if recipe.minhash is not None:
            self._types |= _SKETCH_TYPES
        for name in (DOCUMENTS, *(f"{name}.npy" for name in self._types)):
            if name not in files:
                raise damaged(self.folder / name, "not listed in the manifest")
        arrays = {
            name.removesuffix(".npy"): CheckedArray(self.folder, file)
            for name, file in files.items()
            if name.endswith(".npy")
        }
        self.arrays: Mapping[str, CheckedArray] = MappingProxyType(arrays)
        self._documents_file = CheckedFile(self.folder, files[DOCUMENTS])
        self._documents: DocumentTable | None = None
        spans = np.array([(s.shard, s.first_row, s.n_rows) for s in record.spans], np.int64)
        self._spans = spans.reshape(-1, 3)
        self._span_ends = np.cumsum(self._spans[:, 2])
        self._check_shapes()

    @classmethod
    def open(cls, index: Path, record: SegmentRecord, recipe: Recipe) -> Segment:
        """Open a segment of the index in folder `index`: see the class."""
        return cls(index, record, recipe)

    @property
    def n_documents(self) -> int:
        """Documents, null and empty ones included."""
        return self.record.n_documents

    def document_of(self, ordinals: ArrayLike) -> NDArray[np.int64]:
        """The numbers of the documents that hold these entries; `ordinals` are integers [m]."""
        entries = self.arrays["doc_entries"]
        entries.check_all()
        # The ordinals take the type of the file: otherwise all of it would be converted.
        wanted = np.asarray(ordinals).astype(entries.array.dtype, copy=False)
        return np.searchsorted(entries.array, wanted, side="right") - 1

    def place_of(self, documents: ArrayLike) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Shard (its place in the manifest) and row of documents given by their numbers [m]."""
        wanted = np.asarray(documents, np.int64)
        span = np.searchsorted(self._span_ends, wanted, side="right")
        chosen = self._spans[span]
        inside = wanted - (self._span_ends[span] - chosen[:, 2])
        return chosen[:, 0].astype(np.int32), chosen[:, 1] + inside

    def documents(self, documents: Iterable[int]) -> list[DocumentMeta]:
        """Metadata of the documents, in the order asked, as the corpus had it when indexed."""
        rows = self._rows(documents, _META)
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

    def find(self, key: int) -> tuple[int, int]:
        """The range of postings of a 40-bit key, empty when it has none. For single keys only."""
        starts, postings = self.arrays["starts"], self.arrays["postings"]
        bucket = key >> REST_BITS
        starts.check(bucket, bucket + 2)
        lo, hi = (int(at) for at in starts.array[bucket : bucket + 2])
        if not 0 <= lo <= hi <= len(postings):
            raise damaged(starts.path, f"bucket {bucket} is out of range")
        postings.check(lo, hi)
        words = postings.array[lo:hi]
        rest = words[:, 0].astype(np.int64) | ((words[:, 1].astype(np.int64) << 16) & _REST)
        first, stop = np.searchsorted(rest, [key & _REST, (key & _REST) + 1])
        return lo + int(first), lo + int(stop)

    def _rows(self, documents: Iterable[int], names: tuple[str, ...]) -> list[tuple[Any, ...]]:
        table = self.document_table()
        with reading(self.folder / DOCUMENTS):
            return table.rows([int(number) for number in documents], names)

    def _check_shapes(self) -> None:
        """The arrays belong together: types, lengths, and first and last values that are known."""
        n_documents, n_capped = self.n_documents, len(self.arrays["capped_key"])
        lengths = {
            "starts": (1 << BUCKET_BITS) + 1,
            "postings": len(self.arrays["postings"]),
            "doc_entries": n_documents + 1,
            "doc_tokens": n_documents,
            "doc_crc": n_documents,
            "capped_key": n_capped,
            "capped_count": n_capped,
            "letters": len(self.arrays["letters"]),
        }
        ends = {"starts": lengths["postings"], "doc_entries": self.record.n_entries}
        if self.recipe.minhash is not None:
            lengths |= {
                "minhash_starts": (1 << BUCKET_BITS) + 1,
                "minhash_entries": len(self.arrays["minhash_entries"]),
                "minhash_windows": n_documents + 1,
                "minhash_capped": len(self.arrays["minhash_capped"]),
            }
            ends["minhash_starts"] = lengths["minhash_entries"]
        for name, (code, tail) in self._types.items():
            file = self.arrays[name]
            if file.array.dtype != np.dtype(code) or file.array.shape != (lengths[name], *tail):
                found = f"{file.array.dtype} {file.array.shape}"
                raise damaged(file.path, f"holds {found} for {n_documents} documents")
        for name, end in ends.items():
            file = self.arrays[name]
            last = len(file) - 1
            file.check(0, 1)
            file.check(last, last + 1)
            if int(file.array[0]) != 0 or int(file.array[last]) != end:
                raise damaged(file.path, f"does not run from 0 to {end}")
