"""Write sampled documents as the files of one segment."""

from __future__ import annotations

import hashlib
import itertools
import json
import shutil
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contam.corpus.columns import METADATA_NAMES
from contam.index.array_files import record_file, sync, write_array, writing
from contam.index.json_values import to_plain
from contam.index.manifest import SEGMENTS
from contam.index.model import RowSpan, SegmentRecord
from contam.kernels.postings import (
    BUCKETS,
    POSTING_WORDS,
    cap_grams,
    count_buckets,
    hash_documents,
    place_entries,
    sort_buckets,
)
from contam.tables.distinct import distinct
from contam.tables.documents import write_documents

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from contam.corpus.columns import MetadataField
    from contam.index.minhash.arrays import MinHashSketcher
    from contam.index.model import FileRecord, Recipe, ShardRecord
    from contam.index.writing.sampling import Sampled

DOCUMENTS: Final = "documents.parquet"

_COLUMN: Final[dict[str, str]] = {"id": "document_id"}


def document_seed(digest: str) -> np.uint64:
    """What the hashes of a shard's documents start from: see `hash_documents`."""
    return np.uint64(int.from_bytes(hashlib.sha256(digest.encode()).digest()[:8], "little"))


def document_hashes(spans: Sequence[RowSpan], shards: Sequence[ShardRecord]) -> NDArray[np.uint64]:
    """Hash of each document of the spans, uint64[docs], by which capped grams select postings."""
    found = np.empty(sum(span.n_rows for span in spans), np.uint64)
    at = 0
    for span in spans:
        seed = document_seed(shards[span.shard].digest)
        hash_documents(seed, span.first_row, found[at : at + span.n_rows])
        at += span.n_rows
    return found


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
            *to_plain(span).values(),
        ]
        for span in spans
    ]
    whole = json.dumps([to_plain(recipe), rows, dropped], sort_keys=True)
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
    *,
    sketcher: MinHashSketcher | None,
    workers: int,
) -> SegmentRecord:
    """Write the segment of these documents and make sure that it is on disk.

    parts  consecutive documents of one or more shards; emptied on the way, to save memory
    Raises OutputError. The manifest does not speak of the segment yet.
    """
    spans = joined(
        RowSpan(shard=part.shard, first_row=part.first_row, n_rows=part.n_docs) for part in parts
    )
    folder = new_folder(index, segment_id(recipe, spans, shards))
    doc_entries = first_ordinals([part.doc_entries for part in parts])
    tokens = np.concatenate([part.doc_tokens for part in parts])
    n_bytes = np.concatenate([part.doc_bytes for part in parts])
    crc = np.concatenate([part.doc_crc for part in parts])
    metadata = {name: [part.metadata[name] for part in parts] for name in METADATA_NAMES}
    firsts = np.cumsum([0, *(part.n_docs for part in parts)])
    letters = [part.letters + np.uint64(first) for part, first in zip(parts, firsts, strict=False)]
    others: dict[str, NDArray[Any]] = {
        "doc_tokens": tokens,
        "doc_crc": crc,
        "letters": distinct(np.concatenate(letters)),
    }
    del letters
    if sketcher is not None:
        others.update(sketcher.arrays([part.sketch for part in parts if part.sketch]))
    entries = deque(part.entries for part in parts)
    parts.clear()
    files = [write_document_table(folder, spans, metadata, tokens, n_bytes)]
    del metadata
    files += [write_array(folder, name, array) for name, array in sorted(others.items())]
    del others
    starts, postings = sorted_postings(entries, int(doc_entries[-1]), workers)
    hashes = document_hashes(spans, shards)
    more = write_postings(folder, recipe.cap, starts, postings, doc_entries, hashes)
    sync(folder)
    sync(folder.parent)
    return SegmentRecord(
        id=folder.name,
        spans=spans,
        n_documents=len(tokens),
        n_tokens=int(tokens.sum(dtype=np.int64)),
        n_entries=int(doc_entries[-1]),
        n_bytes=int(n_bytes.sum()),
        files=tuple(sorted([*files, *more], key=lambda file: file.name)),
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


def first_ordinals(counts: Sequence[NDArray[np.uint32]]) -> NDArray[np.uint32]:
    """Number of the first entry of each document, and of all behind the last: uint32[docs + 1]."""
    ends = np.cumsum(np.concatenate(counts), dtype=np.int64)
    return np.concatenate([[0], ends]).astype(np.uint32)


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


def sorted_postings(
    entries: deque[NDArray[np.uint64]], n_entries: int, workers: int
) -> tuple[NDArray[np.int64], NDArray[np.uint16]]:
    """(starts int64[BUCKETS + 1], postings uint16[n, 5]) of all entries; `entries` is emptied."""
    counts = np.zeros(BUCKETS, np.int64)
    for some in entries:
        count_buckets(some, counts)
    starts = np.zeros(BUCKETS + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    free = starts[:-1].copy()
    postings = np.empty((n_entries, POSTING_WORDS), np.uint16)
    first = 0
    while entries:
        some = entries.popleft()
        place_entries(some, first, free, postings)
        first += len(some)
    sort_all(postings, starts, workers)
    return starts, postings


def sort_all(postings: NDArray[np.uint16], starts: NDArray[np.int64], workers: int) -> None:
    """Sort every bucket, on several threads: the order does not depend on how many."""
    edges = np.linspace(0, BUCKETS, 4 * workers + 1).astype(np.int64).tolist()
    with ThreadPoolExecutor(max_workers=workers, thread_name_prefix="contam-sort") as pool:
        jobs = [
            pool.submit(sort_buckets, postings, starts, lo, hi)
            for lo, hi in itertools.pairwise(edges)
        ]
        for job in jobs:
            job.result()


def write_postings(
    folder: Path,
    cap: int,
    starts: NDArray[np.int64],
    postings: NDArray[np.uint16],
    doc_entries: NDArray[np.uint32],
    doc_hash: NDArray[np.uint64],
) -> list[FileRecord]:
    """Cap and write sorted postings."""
    kept, capped_key, capped_count = cap_grams(postings, starts, doc_entries, doc_hash, cap)
    postings = postings[:kept]
    arrays: dict[str, NDArray[Any]] = {
        "starts": starts,
        "postings": postings,
        "doc_entries": doc_entries,
        "capped_key": capped_key,
        "capped_count": capped_count,
    }
    return [write_array(folder, name, array) for name, array in arrays.items()]
