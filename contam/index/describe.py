"""An index in figures: what `contam index show` prints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contam.index.recipe import to_dict
from contam.index.shards import not_indexed

if TYPE_CHECKING:
    from contam.index.open import Index


def describe(index: Index) -> dict[str, Any]:
    """Recipe, guarantee, coverage, sizes, capped grams and dates of an index, as plain values.

    n_text_bytes   raw text of the segments, as UTF-8; n_index_bytes  all their files
    not_indexed    names of files in the corpus that the index does not have
    capped_grams   grams of which some segment kept only a part
    dates          first and last date, as the corpus writes them; None when no document has one
    Raises IndexDamageError.
    """
    segments = [segment.record for segment in index.segments]
    ranges = [segment.document_table().range_of("date") for segment in index.segments]
    dates = [one for one in ranges if one is not None]
    sizes: dict[str, int] = {}
    for record in segments:
        for file in record.files:
            sizes[file.name] = sizes.get(file.name, 0) + file.n_bytes
    for segment in index.segments:
        segment.arrays["capped_key"].check_all()
    capped = {
        key for segment in index.segments for key in segment.arrays["capped_key"].array.tolist()
    }
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
        "dates": [min(one[0] for one in dates), max(one[1] for one in dates)] if dates else None,
    }
