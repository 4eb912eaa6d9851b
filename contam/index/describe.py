"""Describe an index in figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from contam.corpus.dates import span_of
from contam.index.recipe import to_dict
from contam.index.shards import not_indexed

if TYPE_CHECKING:
    from contam.corpus.dates import Span
    from contam.index.open import Index

#: Of these the first characters are the day, and there are few days: millions of times are not
#: parsed one by one.
_WITH_DAY: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}[T ]"
_DAY_LENGTH: Final = 10


def describe(index: Index) -> dict[str, Any]:
    """Recipe, guarantee, coverage, sizes, capped grams and dates of an index, as plain values.

    n_text_bytes   raw text of the segments, as UTF-8; n_index_bytes  all their files
    not_indexed    names of files in the corpus that the index does not have
    capped_grams   grams of too many documents, of which some segment keeps only some
    dates          first and last day of all dates that can be read, as ISO 8601; None without one
    n_unreadable_dates  documents with a date that cannot be read
    Raises IndexDamageError.
    """
    segments = [segment.record for segment in index.segments]
    dates, n_unreadable = _dates_of(index)
    sizes: dict[str, int] = {}
    for record in segments:
        for file in record.files:
            sizes[file.name] = sizes.get(file.name, 0) + file.n_bytes
    capped = {key for segment in index.segments for key in segment.grams.capped_keys().tolist()}
    return {
        "index": str(index.folder),
        "index_id": index.id,
        "recipe": to_dict(index.recipe),
        "guarantee_tokens": index.guarantee,
        "corpus": list(index.manifest.paths),
        "coverage": index.coverage().to_dict(),
        "pending": list(index.manifest.pending),
        "not_indexed": list(not_indexed([index.manifest], {})),
        "retired_shards": sum(shard.retired for shard in index.manifest.shards),
        "retired_documents": len(index.retired),
        "n_segments": len(segments),
        "n_documents": sum(record.n_documents for record in segments),
        "n_tokens": sum(record.n_tokens for record in segments),
        "n_text_bytes": sum(record.n_bytes for record in segments),
        "n_index_bytes": sum(sizes.values()),
        "bytes_by_file": dict(sorted(sizes.items())),
        "capped_grams": len(capped),
        "dates": dates,
        "n_unreadable_dates": n_unreadable,
    }


def _dates_of(index: Index) -> tuple[list[str] | None, int]:
    """First and last day that a document's date may mean, and how many dates cannot be read."""
    spans: set[Span] = set()
    n_unreadable = 0
    for segment in index.segments:
        counts = segment.document_table().counts_of("date", _WITH_DAY, _DAY_LENGTH)
        for text, n_documents in counts.items():
            span = span_of(text)
            if span is not None:
                spans.add(span)
            elif text.strip():
                n_unreadable += n_documents
    if not spans:
        return None, n_unreadable
    first, last = min(begin for begin, _ in spans), max(end for _, end in spans)
    return [first.isoformat(), last.isoformat()], n_unreadable
