"""Open one segment of an index: mapped arrays and a table of documents."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import numpy as np

from contam.corpus.documents import DocumentMeta
from contam.index.array_files import CheckedArray, CheckedFile, damaged, reading
from contam.index.blocks import opened_at_once
from contam.index.manifest import SEGMENTS
from contam.index.model import BUCKET_BITS
from contam.index.pairs import PAIR_ARRAYS, PairTable, array_lengths

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from numpy.typing import ArrayLike, NDArray

    from contam.index.model import FileRecord, Recipe, SegmentRecord
    from contam.tables.documents import DocumentTable

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

    @classmethod
    def open(cls, index: Path, record: SegmentRecord, recipe: Recipe) -> Segment:
        """Open a segment of the index in folder `index`: see the class."""
        return cls(index, record, recipe)

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
