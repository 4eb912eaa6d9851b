"""Write one shard without what was found in it, and prove that it is gone."""

from __future__ import annotations

import os
import shutil
from bisect import bisect_left
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from contam.cleaning.choice import (
    in_original,
    long_pieces,
    n_cuts,
    whole_words,
    widened,
    within_lines,
)
from contam.corpus.batches import BATCH_BYTES, gathered
from contam.corpus.columns import select_columns
from contam.corpus.coverage import Coverage
from contam.corpus.documents import read_documents, read_metadata
from contam.corpus.opening import cut_shard
from contam.corpus.shards import errors_named, file_sha256
from contam.detect.chunk_scan import scan_chunks, start_collections
from contam.detect.corpus import Corpus
from contam.detect.match.matching import Matcher
from contam.errors import CorpusError, InternalError, ShardError
from contam.files.listed import opened, state_at, state_of
from contam.tables.edits import Edit, Rewrite, edited

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from contam.benchmark.items import ItemName
    from contam.cleaning.choice import Choice, CleanOptions, Found, SparedRows
    from contam.corpus.columns import Selection
    from contam.corpus.documents import DocumentMeta
    from contam.corpus.formats.base import Document
    from contam.corpus.shards import Shard
    from contam.detect.match.collect import Collection
    from contam.detect.match.pieces import Hits
    from contam.detect.plan import Plan
    from contam.tables.edits import Rewritten, Span

#: Cutting and masking bring words together that may match: so often it is done.
MOST_PASSES: Final = 3
_SHOWN: Final = 3


@dataclass(frozen=True, kw_only=True)
class Cleaning:
    """What a run does with every shard.

    choice  which hits count in the corpus as it is;  after  and in what is written
    spared  hits that do not count, by shard
    """

    plan: Plan
    options: CleanOptions
    choice: Choice
    after: Choice
    spared: Mapping[int, SparedRows]

    @cached_property
    def names(self) -> list[ItemName]:
        """The names of the items by number."""
        return self.plan.items.names()


@dataclass(frozen=True, kw_only=True)
class Removal:
    """A document that was found, with the stretches that were taken out in the end.

    drop   whether all of it goes
    texts  what was taken out: the whole text of a dropped document, else the text of each stretch;
           None where it was not read
    tokens places of its first and last token in a shard of token ids
    """

    found: Found
    meta: DocumentMeta
    drop: bool
    texts: tuple[str, ...] | None
    tokens: tuple[int, int] | None = None


def digest(shard: Shard) -> dict[str, Any]:
    """Bytes and SHA-256 of a shard, as it was listed. Raises ShardError."""
    found = file_sha256(shard).removeprefix("sha256:")
    return {"bytes": state_of(shard.path).size, "sha256": found}


def copy(shard: Shard, target: Path) -> None:
    """Copy a shard byte for byte; the file system may share the blocks. Raises ShardError."""
    with errors_named(shard), opened(shard.path) as source, target.open("xb") as file:
        try:
            while os.copy_file_range(source.fileno(), file.fileno(), 1 << 30):
                pass
        except (OSError, AttributeError, ValueError):
            # An object in a store has no descriptor, and not every system or file system copies.
            shutil.copyfileobj(source, file, 4 << 20)


def removals(
    cleaning: Cleaning,
    shard: Shard,
    selection: Selection,
    found: Sequence[Found],
    spared: SparedRows,
) -> tuple[list[Removal], int]:
    """What is to be removed of documents that were found, and in how many passes that was settled.

    Cutting and masking bring words together that may match. So texts without their stretches are
    searched, and lose what is found there too, `MOST_PASSES` times at most.

    Raises ShardError when a stretch is not in the text, which then is not what was searched, and
    when something is still found in the last pass.
    """
    options = cleaning.options
    rows = [one.row for one in found]
    metas = read_metadata(shard, selection, rows)
    is_text = selection.text is None or selection.text.kind != "tokens"
    if is_text and options.action in ("drop", "list") and not options.keep_removed:
        return [
            Removal(found=one, meta=meta, drop=options.action == "drop", texts=None)
            for one, meta in zip(found, metas, strict=True)
        ], 1
    documents = dict(zip(rows, read_documents(shard, selection, rows), strict=True))
    final: dict[int, Found] = {}
    for one in found:
        text = documents[one.row].text
        if one.spans and one.spans[-1][1] > len(text):
            raise ShardError(
                "{shard}: row {} is shorter than what was found in it", one.row, shard=shard.name,
                hint="let nobody write to the corpus while it is read",
            )  # fmt: skip
        spans = _stretches(options, documents[one.row], one.spans, options.around)
        final[one.row] = one._replace(spans=spans)
    n_passes = 1
    if options.action in ("mask", "cut"):
        n_passes = _settle(cleaning, shard, documents, final, spared)
    made = []
    for row, meta in zip(rows, metas, strict=True):
        one, text = final[row], documents[row].text
        drop = _is_dropped(options, text, one.spans)
        texts = (text,) if drop else tuple(text[a:b] for a, b in one.spans)
        told = documents[row].tokens
        tokens = None if told is None else (told.first, told.first + max(0, told.n - 1))
        made.append(Removal(found=one, meta=meta, drop=drop, texts=texts, tokens=tokens))
    return made, n_passes


def _stretches(
    options: CleanOptions, document: Document, spans: tuple[Span, ...], around: int = 0
) -> tuple[Span, ...]:
    """What is taken out of a document for the stretches that were found in it."""
    text = document.text
    if options.action == "cut":
        spans = whole_words(widened(spans, around, len(text)), text)
        spans = long_pieces(spans, _bounds(document), options.min_piece)
    return spans if document.turns is None else within_lines(spans, text)


def _bounds(document: Document) -> list[Span]:
    """Where the texts that a document is joined from begin and end in it."""
    if document.turns is None:
        return [(0, len(document.text))]
    lengths = [len(turn.text) for turn in document.turns]
    begins = accumulate((length + 1 for length in lengths), initial=0)
    return [(begin, begin + length) for begin, length in zip(begins, lengths, strict=False)]


def _is_dropped(options: CleanOptions, text: str, spans: Sequence[Span]) -> bool:
    if options.action != "cut":
        return options.action == "drop"
    if options.max_cuts is not None and n_cuts(spans, text) > options.max_cuts:
        return True
    return bool(options.min_piece) and not edited(text, spans, None).strip()


def _settle(
    cleaning: Cleaning,
    shard: Shard,
    documents: Mapping[int, Document],
    final: dict[int, Found],
    spared: SparedRows,
) -> int:
    """Add stretches to those in `final` until nothing is found; returns the number of passes."""
    options, replacement = cleaning.options, cleaning.options.replacement
    rows = sorted(final)
    for n_passes in range(1, MOST_PASSES + 1):
        # Those that are dropped need not be searched again.
        rows = [r for r in rows if not _is_dropped(options, documents[r].text, final[r].spans)]
        if not rows:
            return n_passes
        texts = [edited(documents[row].text, final[row].spans, replacement) for row in rows]
        left = _found_in_texts(cleaning, rows, texts, spared)
        if not left:
            return n_passes
        for one in left:
            old = final[one.row]
            spans = in_original(one.spans, old.spans, replacement)
            spans = _stretches(options, documents[one.row], spans)
            final[one.row] = old._replace(
                items=tuple(sorted({*old.items, *one.items})),
                policies=tuple(sorted({*old.policies, *one.policies})),
                spans=spans,
            )
        rows = [one.row for one in left]
    raise _still_found(shard, left)


def _still_found(shard: Shard, left: Sequence[Found]) -> ShardError:
    rows = ", ".join(str(one.row) for one in left[:_SHOWN])
    return ShardError(
        "{shard}: {} documents still match, among them row {}", len(left), rows, shard=shard.name,
        hint="drop the document as a whole, or leave the file out",
    )  # fmt: skip


def _found_in_texts(
    cleaning: Cleaning, rows: Sequence[int], texts: Sequence[str], spared: SparedRows
) -> list[Found]:
    """What is found in some documents by themselves."""
    collections = start_collections(cleaning.plan)
    matchers = [Matcher(view) for view in cleaning.plan.search_views]
    documents = (0, np.array(rows, np.int64), [text.encode() for text in texts])
    for batch in gathered([documents], BATCH_BYTES):
        for matcher, collection in zip(matchers, collections, strict=True):
            matcher.match(batch, collection)
    return cleaning.after.documents(_hits(collections), spared)


def _hits(collections: Sequence[Collection]) -> dict[int, Hits]:
    found = {view: collection.hits() for view, collection in enumerate(collections)}
    return {view: hits for view, hits in found.items() if hits is not None}


def written(
    cleaning: Cleaning,
    shard: Shard,
    selection: Selection,
    removed: Sequence[Removal],
    target: Path,
    spared: SparedRows,
    *,
    workers: int,
) -> tuple[Rewritten, int]:
    """Write a shard without what is removed, compare it with the original, and search it again.

    spared  rows of the original
    return  also how many rows are the same in all columns

    Raises ShardError when anything is found, or when a row is not what it should be.
    """
    sources = selection.sources
    if sources is None:
        raise InternalError(f"{shard.name}: rows were found without a text column")
    edits = [Edit(one.found.row, one.drop, () if one.drop else one.found.spans) for one in removed]
    how = Rewrite(edits, sources, cleaning.options.replacement)
    with errors_named(shard):
        done = shard.kind.rewrite(shard.path, target, how)
    state = state_at(str(target))
    new = replace(shard, uri=str(target), size_bytes=state.size, state=state)
    with errors_named(new):
        n_same = shard.kind.count_same(shard.path, new.path, how)
    dropped = [one.found.row for one in removed if one.drop]
    moved = {
        row - bisect_left(dropped, row): kept for row, kept in spared.items() if row not in dropped
    }
    if left := found_in(cleaning, new, selection, done.rows_after, moved, workers=workers):
        raise _still_found(shard, left)
    return done, n_same


def found_in(
    cleaning: Cleaning,
    new: Shard,
    selection: Selection,
    n_rows: int,
    spared: SparedRows,
    *,
    workers: int,
) -> list[Found]:
    """What is still found in a shard that was written, by the columns read then and now.

    Raises ShardError when it cannot be read, or has other rows than were written.
    """
    parameters = cleaning.plan.parameters
    try:
        fresh = select_columns(new, parameters.text, parameters.columns)
    except CorpusError as error:
        raise ShardError(error.statement, shard=new.name, hint=error.hints) from error
    selections = [fresh] if fresh.sources == selection.sources else [selection, fresh]
    found: dict[int, Found] = {}
    for chosen in selections:
        if chosen.text is None:
            continue
        chunks = list(cut_shard(0, new, chosen))
        corpus = Corpus(
            paths=(new.uri,),
            shards=(new,),
            digests=(None,),
            selections=[chosen],
            chunks=chunks,
            coverage=Coverage.expect([new], chunks, []),
            notes=(),
        )
        partial = scan_chunks(cleaning.plan, corpus, workers=workers)
        coverage = partial.coverage
        if coverage.failures:
            raise ShardError(
                "{shard}: what was written cannot be read: {}", coverage.failures[0].reason,
                shard=new.name,
            )  # fmt: skip
        total = coverage.total
        if total.rows + total.n_blank != n_rows:
            raise ShardError(
                "{shard}: {} rows were read where {} were written", total.rows, n_rows,
                shard=new.name,
            )  # fmt: skip
        hits = _hits(partial.collections)
        found.update({one.row: one for one in cleaning.after.documents(hits, spared)})
    return [found[row] for row in sorted(found)]
