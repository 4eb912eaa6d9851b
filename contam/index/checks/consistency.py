"""Check that the parts of a manifest agree; otherwise the index is refused."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from contam.corpus.formats.registry import NAMED
from contam.index.recipe import check_recipe

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contam.index.model import FileRecord, Manifest, RowSpan, SegmentRecord

_FILE: Final = re.compile(r"[a-z][a-z0-9_-]*\.(npy|parquet)")
_SEGMENT: Final = re.compile(r"[0-9a-f]{8,64}")
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_MOST_ENTRIES: Final = 1 << 32
#: What every index of format 1 counts of a shard. Later versions of contam may count more.
_COUNTS: Final = frozenset(
    {"units", "rows", "n_bytes", "n_null", "n_empty", "n_undecodable", "undecodable_bytes"}
)


class Inconsistent(ValueError):  # noqa: N818 - it states a fact about a manifest
    """A manifest contradicts itself; the message names the place."""


def check_manifest(manifest: Manifest) -> None:
    """Raise Inconsistent when two parts cannot both be true, ConfigError for a wrong recipe.

    Names of shards that count are unique, no row is indexed twice, and the rows of every shard
    that is neither pending, failed nor retired are all in a segment.
    """
    check_recipe(manifest.recipe)
    _check_shards(manifest)
    if again := _twice(segment.id for segment in manifest.segments):
        raise Inconsistent(f"segment {again} is listed twice")
    for segment in manifest.segments:
        _check_segment(segment, len(manifest.shards))
    _check_rows(manifest)
    if manifest.retired is not None:
        _check_file(manifest.retired, "the retired documents")


def _check_shards(manifest: Manifest) -> None:
    for shard in manifest.shards:
        unread = shard.name in manifest.pending and not shard.counts
        if not (unread or shard.counts.keys() >= _COUNTS):
            raise Inconsistent(
                f"shard {shard.name}: counts lack some of {', '.join(sorted(_COUNTS))}"
            )
        if min(shard.size_bytes, 0, *shard.counts.values()) < 0:
            raise Inconsistent(f"shard {shard.name}: a count is negative")
        if shard.format not in NAMED:
            raise Inconsistent(f"shard {shard.name}: unknown format {shard.format!r}")
    live = [shard.name for shard in manifest.shards if not shard.retired]
    if again := _twice(live):
        raise Inconsistent(f"shard {again} is listed twice")
    if again := _twice(manifest.pending):
        raise Inconsistent(f"shard {again} is pending twice")


def _check_segment(segment: SegmentRecord, n_shards: int) -> None:
    where = f"segment {segment.id}"
    if not _SEGMENT.fullmatch(segment.id):
        raise Inconsistent(f"{where}: is no name for a segment")
    if min(segment.n_documents, segment.n_tokens, segment.n_entries, segment.n_bytes) < 0:
        raise Inconsistent(f"{where}: a count is negative")
    if segment.n_entries >= _MOST_ENTRIES:
        raise Inconsistent(f"{where}: has more entries than can be numbered")
    if not all(_is_span(span, n_shards) for span in segment.spans):
        raise Inconsistent(f"{where}: has rows of a shard that is not there")
    if sum(span.n_rows for span in segment.spans) != segment.n_documents:
        raise Inconsistent(f"{where}: its rows are not as many as its documents")
    if again := _twice(file.name for file in segment.files):
        raise Inconsistent(f"{where}: file {again} is listed twice")
    for file in segment.files:
        _check_file(file, where)


def _is_span(span: RowSpan, n_shards: int) -> bool:
    return 0 <= span.shard < n_shards and span.first_row >= 0 and span.n_rows > 0


def _check_file(file: FileRecord, where: str) -> None:
    if not _FILE.fullmatch(file.name):
        # A name is joined to a folder: it must not lead out of it.
        raise Inconsistent(f"{where}: {file.name!r} is no name for a file")
    digests = (file.sha256, file.checks)
    if file.n_bytes < 0 or not all(_SHA256.fullmatch(digest) for digest in digests):
        raise Inconsistent(f"{where}: the record of {file.name} is wrong")


def _check_rows(manifest: Manifest) -> None:
    spans: dict[int, list[RowSpan]] = {}
    for segment in manifest.segments:
        for span in segment.spans:
            spans.setdefault(span.shard, []).append(span)
    for number, shard in enumerate(manifest.shards):
        held = sorted(spans.get(number, []), key=lambda span: span.first_row)
        for span, following in pairwise(held):
            if span.first_row + span.n_rows > following.first_row:
                row = following.first_row
                raise Inconsistent(f"shard {shard.name}: row {row} is indexed twice")
        if shard.failure is not None and held:
            raise Inconsistent(f"shard {shard.name}: could not be indexed, and yet is")
        whole = shard.failure is None and not shard.retired and shard.name not in manifest.pending
        if whole and sum(span.n_rows for span in held) != shard.n_rows:
            raise Inconsistent(f"shard {shard.name}: not all of its rows are indexed")


def _twice(names: Iterable[str]) -> str | None:
    return next((name for name, count in Counter(names).items() if count > 1), None)
