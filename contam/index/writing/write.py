"""Write sampled documents as the files of one segment, and merge segments into one."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import asdict, astuple, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contam.corpus.columns import METADATA_NAMES
from contam.errors import InternalError
from contam.index.array_files import record_file, sync, write_array, writing
from contam.index.manifest import SEGMENTS
from contam.index.minhash import merged_sketches, sketch_arrays
from contam.index.model import CAPPED_DOCUMENTS, RowSpan, SegmentRecord
from contam.index.segment import DOCUMENTS, words_of
from contam.kernels.pairs import (
    DOCUMENT_BITS,
    MARK,
    cap_pairs,
    drop_repeated,
    mark_ones,
    pack_pairs,
)
from contam.tables.documents import join_documents, write_documents
from contam.tables.memory import distinct

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from contam.corpus.columns import MetadataField
    from contam.index.model import FileRecord, Recipe, ShardRecord
    from contam.index.segment import PairTable, Segment
    from contam.index.writing.sampling import Sampled


def make_table(
    pairs: NDArray[np.uint64],
    key_bits: int,
    n_documents: int,
    cap: int,
    known: NDArray[np.uint64] | None = None,
) -> dict[str, NDArray[Any]]:
    """The arrays of a table of these pairs, which are sorted and moved on the way.

    pairs  uint64[n], see contam.kernels.pairs;  key_bits  of their keys
    cap    documents kept of a key; known  keys of which some are left out already, ascending
    """
    pairs.sort()
    pairs = pairs[: drop_repeated(pairs)]
    known = np.empty(0, np.uint64) if known is None else known
    n_pairs, n_keys, capped = cap_pairs(pairs, cap, known)
    pairs = pairs[:n_pairs]
    head_bits = min(key_bits, max(0, n_keys.bit_length() - 1))
    rest, width = key_bits - head_bits, max(1, (n_documents - 1).bit_length())
    n_heads = 1 << head_bits
    heads = _words(n_keys + n_heads)
    rests, ends, documents = _words(n_keys * rest), _words(n_pairs), _words(n_pairs * width)
    pack_pairs(pairs, (rest, width), heads, rests, ends, documents)
    last = int(pairs[-1] >> np.uint64(DOCUMENT_BITS + rest)) if n_pairs else 0
    # Behind the last key, an end for its head and each that follows.
    _set_ones(heads, n_keys + last, n_keys + n_heads)
    head_marks, end_marks = (np.empty(-(-n // MARK), np.int64) for n in (n_heads, n_keys))
    mark_ones(heads, head_marks)
    mark_ones(ends, end_marks)
    return {
        "sizes": np.array([n_pairs, n_keys, rest, width], np.int64),
        "heads": heads,
        "head_marks": head_marks,
        "rests": rests,
        "ends": ends,
        "end_marks": end_marks,
        "documents": documents,
        "capped": np.union1d(known, capped).astype(np.uint64),
    }


def _words(n_bits: int) -> NDArray[np.uint64]:
    return np.zeros(words_of(n_bits), np.uint64)


def _set_ones(words: NDArray[np.uint64], first: int, stop: int) -> None:
    raw = words.view(np.uint8)
    bits = np.unpackbits(raw[first // 8 : -(-stop // 8)], bitorder="little")
    bits[first % 8 : first % 8 + stop - first] = 1
    raw[first // 8 : -(-stop // 8)] = np.packbits(bits, bitorder="little")


_COLUMN: Final[dict[str, str]] = {"id": "document_id"}


def segment_id(
    recipe: Recipe, spans: Sequence[RowSpan], shards: Sequence[ShardRecord], dropped: str = ""
) -> str:
    """Name of the segment of these rows: 32 hexadecimal digits.

    dropped  what compaction left out of it
    """
    rows = [
        [
            shards[span.shard].digest,
            shards[span.shard].column,
            *([shards[span.shard].columns] if shards[span.shard].columns else []),
            *astuple(span),
        ]
        for span in spans
    ]
    whole = json.dumps([asdict(recipe), rows, dropped], sort_keys=True)
    return hashlib.sha256(whole.encode()).hexdigest()[:32]


def joined(spans: Iterable[RowSpan]) -> tuple[RowSpan, ...]:
    """The same rows, neighbouring spans of one shard as one; empty ones are left out."""
    found: list[RowSpan] = []
    for span in spans:
        last = found[-1] if found else None
        if last and (last.shard, last.first_row + last.n_rows) == (span.shard, span.first_row):
            found[-1] = replace(last, n_rows=last.n_rows + span.n_rows)
        elif span.n_rows:
            found.append(span)
    return tuple(found)


def write_segment(
    index: Path,
    recipe: Recipe,
    parts: list[Sampled],
    shards: Sequence[ShardRecord],
) -> SegmentRecord:
    """Write the segment of these documents and make sure that it is on disk.

    parts  consecutive documents of one or more shards; emptied on the way, to save memory
    Raises OutputError. The manifest does not speak of the segment yet.
    """
    spans = joined(
        RowSpan(shard=part.shard, first_row=part.first_row, n_rows=part.n_docs) for part in parts
    )
    folder = new_folder(index, segment_id(recipe, spans, shards))
    tokens = np.concatenate([part.doc_tokens for part in parts])
    if len(tokens) > 1 << DOCUMENT_BITS:
        raise InternalError(f"a segment of {len(tokens)} documents")
    n_bytes = np.concatenate([part.doc_bytes for part in parts])
    crc = np.concatenate([part.doc_crc for part in parts])
    metadata = {name: [part.metadata[name] for part in parts] for name in METADATA_NAMES}
    firsts = np.cumsum([0, *(part.n_docs for part in parts)])[:-1].tolist()
    letters = _numbered([part.letters for part in parts], firsts)
    others: dict[str, NDArray[Any]] = {"doc_tokens": tokens, "doc_crc": crc}
    if recipe.minhash:
        others.update(sketch_arrays([part.sketch for part in parts if part.sketch]))
    entries = _numbered([part.entries for part in parts], firsts)
    parts.clear()
    files = [write_document_table(folder, spans, metadata, tokens, n_bytes)]
    del metadata
    files += write_arrays(folder, others)
    del others
    n_entries = len(entries)
    files += write_tables(folder, recipe, entries, letters, len(tokens))
    return _recorded(folder, spans, files, (tokens, n_entries, int(n_bytes.sum())))


def _recorded(
    folder: Path,
    spans: tuple[RowSpan, ...],
    files: list[FileRecord],
    counts: tuple[NDArray[np.uint32], int, int],
) -> SegmentRecord:
    """The record of a segment whose files are written, which are on disk then.

    counts  tokens of each document, entries, and bytes of text
    """
    sync(folder)
    sync(folder.parent)
    tokens, n_entries, n_bytes = counts
    return SegmentRecord(
        id=folder.name,
        spans=spans,
        n_documents=len(tokens),
        n_tokens=int(tokens.sum(dtype=np.int64)),
        n_entries=n_entries,
        n_bytes=n_bytes,
        files=tuple(sorted(files, key=lambda file: file.name)),
    )


def new_folder(index: Path, name: str) -> Path:
    """An empty folder for a segment; what a killed build left in its place is removed."""
    folder = index / SEGMENTS / name
    with writing(folder):
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
    sync(index)
    return folder


def _numbered(parts: list[NDArray[np.uint64]], firsts: Sequence[int]) -> NDArray[np.uint64]:
    """All pairs of the parts, whose documents begin with these numbers; `parts` is emptied."""
    pairs = np.empty(sum(map(len, parts)), np.uint64)
    at = 0
    for first in firsts:
        some = parts.pop(0)
        np.add(some, np.uint64(first), out=pairs[at : at + len(some)])
        at += len(some)
    return pairs


def most_documents(recipe: Recipe, n_documents: int) -> int:
    """How many documents of a gram are kept in a segment of so many: see `Recipe.cap`."""
    return recipe.cap * max(1, n_documents // CAPPED_DOCUMENTS)


def write_tables(
    folder: Path,
    recipe: Recipe,
    entries: NDArray[np.uint64],
    letters: NDArray[np.uint64],
    n_documents: int,
    known: NDArray[np.uint64] | None = None,
) -> list[FileRecord]:
    """Write the tables of grams and of letters; both are sorted on the way.

    known  keys of grams that are capped already, ascending
    """
    cap = most_documents(recipe, n_documents)
    grams = make_table(entries, recipe.key_bits, n_documents, cap, known)
    files = write_arrays(folder, {f"grams_{name}": array for name, array in grams.items()})
    del grams
    words = make_table(letters, recipe.key_bits, n_documents, n_documents)
    return files + write_arrays(folder, {f"letters_{name}": some for name, some in words.items()})


def write_arrays(folder: Path, arrays: Mapping[str, NDArray[Any]]) -> list[FileRecord]:
    """Write arrays by their names."""
    return [write_array(folder, name, array) for name, array in sorted(arrays.items())]


def write_document_table(
    folder: Path,
    spans: Sequence[RowSpan],
    metadata: Mapping[MetadataField, list[list[str | None]]],
    tokens: NDArray[np.uint32],
    n_bytes: NDArray[np.int64],
) -> FileRecord:
    """Write documents.parquet; `metadata` has the texts of each field, part by part."""
    shard = np.repeat(
        np.array([span.shard for span in spans], np.int32), [span.n_rows for span in spans]
    )
    row = np.concatenate([span.first_row + np.arange(span.n_rows) for span in spans])
    path = folder / DOCUMENTS
    columns: dict[str, Any] = {"shard": shard, "row": row, "n_tokens": tokens, "n_bytes": n_bytes}
    for name, texts in metadata.items():
        columns[_COLUMN.get(name, name)] = [text for some in texts for text in some]
    with writing(path):
        write_documents(path, columns)
    return record_file(path)


def merged_id(
    recipe: Recipe,
    segments: Sequence[Segment],
    shards: Sequence[ShardRecord],
    kept: Sequence[NDArray[np.bool_]],
) -> str:
    """What the segment is called that `merge_segments` makes of these."""
    mask = np.concatenate(kept)
    dropped = "" if mask.all() else hashlib.sha256(np.packbits(mask).tobytes()).hexdigest()
    return segment_id(recipe, _spans(segments), shards, dropped)


def merge_segments(
    index: Path,
    recipe: Recipe,
    segments: Sequence[Segment],
    shards: Sequence[ShardRecord],
    kept: Sequence[NDArray[np.bool_]],
) -> SegmentRecord:
    """Write one segment of the documents of several, and make sure that it is on disk.

    kept  bool[docs] for each segment: other documents keep their number, but no gram
    Raises IndexDamageError and OutputError. The manifest does not speak of the segment yet.
    """
    for segment in segments:
        for array in segment.arrays.values():
            array.check_all()
    folder = new_folder(index, merged_id(recipe, segments, shards, kept))
    arrays: dict[str, NDArray[Any]] = {
        name: np.concatenate([_array(segment, name) for segment in segments])
        for name in ("doc_tokens", "doc_crc")
    }
    n_documents = len(arrays["doc_tokens"])
    if recipe.minhash:
        sketches = [
            {name: _array(segment, name) for name in segment.arrays if name.startswith("minhash_")}
            for segment in segments
        ]
        counts = [segment.n_documents for segment in segments]
        arrays.update(merged_sketches(sketches, counts, np.concatenate(kept)))
    files = write_arrays(folder, arrays)
    entries, capped = _merged([segment.grams for segment in segments], kept)
    letters, _ = _merged([segment.letters for segment in segments], kept)
    files += write_tables(folder, recipe, entries, letters, n_documents, capped)
    with writing(folder):
        join_documents(folder / DOCUMENTS, [segment.document_table() for segment in segments])
    files.append(record_file(folder / DOCUMENTS))
    n_entries = sum(segment.record.n_entries for segment in segments)
    n_bytes = sum(segment.record.n_bytes for segment in segments)
    return _recorded(folder, _spans(segments), files, (arrays["doc_tokens"], n_entries, n_bytes))


def _array(segment: Segment, name: str) -> NDArray[Any]:
    return segment.arrays[name].array


def _spans(segments: Sequence[Segment]) -> tuple[RowSpan, ...]:
    return joined(span for segment in segments for span in segment.record.spans)


def _merged(
    tables: Sequence[PairTable], kept: Sequence[NDArray[np.bool_]]
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """The pairs of kept documents, which are numbered anew, and the keys capped in any table."""
    pairs, capped, first = [], [np.empty(0, np.uint64)], 0
    for table, mask in zip(tables, kept, strict=True):
        own, keys = table.unpacked()
        own = own[mask[(own & np.uint64((1 << DOCUMENT_BITS) - 1)).astype(np.int64)]]
        pairs.append(own + np.uint64(first))
        capped.append(keys)
        first += len(mask)
    return np.concatenate(pairs), distinct(np.concatenate(capped))
