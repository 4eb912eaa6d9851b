"""Write the shards of a corpus one by one without what was found, and prove that it is gone."""

from __future__ import annotations

import json
import os
import shutil
from bisect import bisect_left
from collections import Counter
from contextlib import closing
from dataclasses import dataclass, replace
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
from contam.cleaning.run import NAMES, Cleaned, counts_of, record_of
from contam.cleaning.work_folder import CORPUS, RECORD, REMOVED
from contam.corpus.batches import BATCH_BYTES, gathered
from contam.corpus.columns import select_columns
from contam.corpus.coverage import Coverage
from contam.corpus.documents import read_documents, read_metadata
from contam.corpus.opening import cut_shard
from contam.corpus.shards import errors_named, file_sha256
from contam.detect.chunk_scan import scan_chunks, start_collections
from contam.detect.corpus import Corpus
from contam.detect.match.matching import Matcher
from contam.detect.match.workers import on_threads
from contam.errors import (
    LET_NOBODY_WRITE,
    CorpusError,
    IncompleteError,
    InternalError,
    Place,
    ShardError,
)
from contam.files.disk import output_errors
from contam.files.listed import opened, state_at, state_of
from contam.files.publish import publish_made
from contam.tables.edits import Edit, Rewrite, edited
from contam.tables.hit_table import write_removed

if TYPE_CHECKING:
    import threading
    from collections.abc import Collection, Iterator, Mapping, Sequence
    from pathlib import Path

    from contam.cleaning.choice import Cleaning, CleanOptions, Found, SparedRows
    from contam.cleaning.run import Run
    from contam.cleaning.work_folder import WorkFolder
    from contam.corpus.columns import Selection
    from contam.corpus.documents import DocumentMeta
    from contam.corpus.formats.base import Document
    from contam.corpus.shards import Shard
    from contam.detect.corpus import ScanProgress
    from contam.detect.match.collect import Collection as Collected
    from contam.detect.match.pieces import Hits
    from contam.tables.edits import Rewritten, Span

#: A byte of a shard in which something was found takes as long as so many that are only copied.
_TOUCHED: Final = 20
#: What any shard takes besides, in bytes that are copied.
_FILE: Final = 1 << 20
#: Cutting and masking bring words together that may match: so often it is done.
MOST_PASSES: Final = 3
_SHOWN: Final = 3


def share_of(
    sizes: Sequence[int], touched: Collection[int], index: int, count: int
) -> tuple[int, ...]:
    """The numbers of the shards of one of `count` workers, ascending; index from 0.

    sizes  bytes of each shard;  touched  numbers of the shards in which something was found

    Every shard is in one share, and all shares take about as long.
    """
    costs = [_FILE + size * (_TOUCHED if n in touched else 1) for n, size in enumerate(sizes)]
    order = sorted(range(len(costs)), key=lambda n: -costs[n])
    return tuple(sorted(order[index::count]))


@dataclass(frozen=True, eq=False)
class Writer:
    """Writes the shards of a run, each whole or not at all."""

    run: Run
    work: WorkFolder

    def known(self, number: int) -> dict[str, Any] | None:
        """What is to be said of a shard that is done."""
        return self.work.done(number, self.run.written, self.files(number))

    def files(self, number: int) -> dict[str, Path]:
        """The files of the result that a shard may have, by kind."""
        name = self.run.corpus.names[number]
        return {
            CORPUS: self.work.target(CORPUS, name),
            REMOVED: self.work.target(REMOVED, f"{name}.parquet"),
        }

    def write_all(
        self, numbers: Sequence[int], progress: ScanProgress | None
    ) -> dict[int, dict[str, Any]]:
        """Write shards unless they are done; returns what is to be said of each."""
        shards, touched, workers = self.run.corpus.shards, self.run.touched, self.run.workers
        # What takes longest comes first.
        order = sorted(numbers, key=lambda n: (n not in touched, -shards[n].size_bytes))
        within = max(1, workers // max(1, len(touched.keys() & set(numbers))))
        if progress is not None:
            progress.start(sum(shards[number].size_bytes for number in numbers))

        def work(numbers: Iterator[int], stop: threading.Event) -> dict[int, dict[str, Any]]:
            done: dict[int, dict[str, Any]] = {}
            for number in numbers:
                if stop.is_set():
                    break
                done[number] = self.write(number, within)
                if progress is not None:
                    progress.advance(shards[number].size_bytes)
            return done

        noted: dict[int, dict[str, Any]] = {}
        with closing(on_threads(work, order, workers)) as found:
            for some in found:
                noted.update(some)
        if progress is not None:
            progress.finish()
        return noted

    def write(self, number: int, workers: int) -> dict[str, Any]:
        """Write one shard, unless that is done; returns what is to be said of it."""
        known = self.known(number)
        if known is not None:
            return known
        shard = self.run.corpus.shards[number]
        before = digest(shard)
        if self.run.sha256.get(number) != f"sha256:{before['sha256']}":
            raise IncompleteError(
                "{} is not the file that was searched",
                Place(shard.name),
                hint="search the corpus again, without parts or a result of the old search, and let"
                " nobody write to it until it is cleaned",
            )
        read = self.run.coverage.read.get(number)
        # Blank lines are rows, too.
        n_rows = read.rows + read.n_blank if read is not None else 0
        noted = {
            "name": shard.name, "format": shard.format, "rows_before": n_rows,
            "rows_after": n_rows, "found": 0,
        }  # fmt: skip
        if number in self.run.touched:
            noted |= self._without_found(number, before, n_rows, workers)
        else:
            noted |= {"in": before, CORPUS: self._copied(number, before), REMOVED: None}
        self.work.note_done(number, self.run.written, noted, self.files(number))
        return noted

    def _copied(self, number: int, before: dict[str, Any]) -> dict[str, Any] | None:
        if self.run.options.action == "list":
            return None
        shard = self.run.corpus.shards[number]
        draft = self.work.draft(number, shard.name)
        with output_errors(draft):
            copy(shard, draft)
        copied = self.work.put(draft, CORPUS, shard.name)
        if copied != before:
            raise ShardError(
                "{shard}: its copy is not the same", shard=shard.name, hint=LET_NOBODY_WRITE
            )
        return copied

    def _without_found(
        self, number: int, before: dict[str, Any], n_rows: int, workers: int
    ) -> dict[str, Any]:
        run, cleaning = self.run, self.run.cleaning
        shard, selection = run.corpus.shards[number], run.corpus.selections[number]
        if selection is None:
            raise InternalError(f"{shard.name}: rows were found without a text column")
        touched = TouchedShard(cleaning, shard, selection, cleaning.spared.get(number, {}))
        removed, n_passes = touched.removals(run.hits.of_shard(number))
        facts: dict[str, Any] = {"found": len(removed)}
        made = None
        if run.options.action != "list":
            draft = self.work.draft(number, shard.name)
            done, n_same = touched.written(removed, draft, workers)
            if done.rows_before != n_rows:
                raise ShardError(
                    "{shard}: {} rows were searched, and {} written from", n_rows,
                    done.rows_before, shard=shard.name, hint=LET_NOBODY_WRITE,
                )  # fmt: skip
            if done.rows_after != n_rows - sum(one.drop for one in removed):
                raise InternalError(f"{shard.name}: {done.rows_after} rows were written")
            facts |= {
                "rows_after": done.rows_after,
                "rows_same": n_same,
                "passes": n_passes,
                "not_kept": list(done.not_kept),
            }
            made = self.work.put(draft, CORPUS, shard.name)
        table = self.work.draft(number, f"{shard.name}.parquet")
        with output_errors(table):
            rows = [self._row(shard, one) for one in removed]
            write_removed(table, rows, with_text=run.options.keep_removed)
        return {
            **facts,
            "in": before,
            CORPUS: made,
            REMOVED: self.work.put(table, REMOVED, f"{shard.name}.parquet"),
            **counts_of(cleaning.names, [one.found for one in removed]),
            "sources": dict(sorted(Counter(one.meta.source or "" for one in removed).items())),
        }

    def _row(self, shard: Shard, one: Removal) -> dict[str, Any]:
        """What the table of what was removed has of a document."""
        cleaning, found = self.run.cleaning, one.found
        first, last = one.tokens or (None, None)
        return {
            "shard": shard.name,
            "row": found.row,
            "document_id": one.meta.document_id or f"{shard.name}:{found.row}",
            "action": "drop" if one.drop else self.run.options.action,
            "spans": [{"start": start, "end": end} for start, end in found.spans],
            "items": [cleaning.names[item]._asdict() for item in found.items],
            "policy": [cleaning.plan.policies[n].spec.id for n in found.policies],
            "first_token": first,
            "last_token": last,
            "text": "\n".join(one.texts),
        }

    def publish(
        self, noted: Mapping[int, dict[str, Any]], out: Path, *, overwrite: bool
    ) -> Cleaned:
        """Publish all shards; noted  what is to be said of each."""
        record = record_of(self.run, noted, done=True)
        made = self.work.result
        self.work.keep_only(
            {
                path
                for number, facts in noted.items()
                for kind, path in self.files(number).items()
                if facts[kind] is not None
            }
        )
        with output_errors(out):
            for kind in (CORPUS, REMOVED):
                if kind == REMOVED or self.run.options.action != "list":
                    (made / kind).mkdir(exist_ok=True)
            (made / RECORD).write_text(json.dumps(record, indent=1) + "\n", "ascii")
        names = [name for name in NAMES if (made / name).exists()]
        publish_made(made, out, names=names, last=RECORD, overwrite=overwrite)
        return Cleaned(record=record, folder=out)


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


@dataclass(frozen=True, kw_only=True)
class Removal:
    """A document that was found, with the stretches that were taken out in the end.

    drop   whether all of it goes
    texts  what was taken out: the whole text of a dropped document, else the text of each stretch;
           none where it was not read
    tokens places of its first and last token in a shard of token ids
    """

    found: Found
    meta: DocumentMeta
    drop: bool
    texts: tuple[str, ...] = ()
    tokens: tuple[int, int] | None = None


@dataclass(frozen=True, eq=False)
class TouchedShard:
    """A shard in which something was found.

    selection  the columns that were read;  spared  rows of it whose hits do not count
    """

    cleaning: Cleaning
    shard: Shard
    selection: Selection
    spared: SparedRows

    def removals(self, hits: Mapping[int, Hits]) -> tuple[list[Removal], int]:
        """What is to be removed of the documents that go, and in how many passes that was settled.

        Cutting and masking bring words together that may match. So texts without their stretches
        are searched, and lose what is found there too, `MOST_PASSES` times at most.

        Raises ShardError when a stretch is not in the text, which then is not what was searched,
        and when something is still found in the last pass.
        """
        options, shard, selection = self.cleaning.options, self.shard, self.selection
        found = self.cleaning.choice.documents(hits, self.spared)
        rows = [one.row for one in found]
        metas = read_metadata(shard, selection, rows)
        is_text = selection.text is None or selection.text.kind != "tokens"
        if is_text and options.action in ("drop", "list") and not options.keep_removed:
            return [
                Removal(found=one, meta=meta, drop=options.action == "drop")
                for one, meta in zip(found, metas, strict=True)
            ], 1
        documents = dict(zip(rows, read_documents(shard, selection, rows), strict=True))
        final: dict[int, Found] = {}
        for one in found:
            text = documents[one.row].text
            if one.spans and one.spans[-1][1] > len(text):
                raise ShardError(
                    "{shard}: row {} is shorter than what was found in it", one.row,
                    shard=shard.name, hint=LET_NOBODY_WRITE,
                )  # fmt: skip
            spans = _stretches(options, documents[one.row], one.spans, options.around)
            final[one.row] = one._replace(spans=spans)
        n_passes = (
            self._edit_until_clean(documents, final) if options.action in ("mask", "cut") else 1
        )
        made = []
        for row, meta in zip(rows, metas, strict=True):
            one, text = final[row], documents[row].text
            drop = _is_dropped(options, text, one.spans)
            texts = (text,) if drop else tuple(text[a:b] for a, b in one.spans)
            told = documents[row].tokens
            tokens = None if told is None else (told.first, told.first + max(0, told.n - 1))
            made.append(Removal(found=one, meta=meta, drop=drop, texts=texts, tokens=tokens))
        return made, n_passes

    def _edit_until_clean(self, documents: Mapping[int, Document], final: dict[int, Found]) -> int:
        """Add stretches to those in `final` until nothing is found; returns the passes."""
        options, replacement = self.cleaning.options, self.cleaning.options.replacement
        rows = sorted(final)
        for n_passes in range(1, MOST_PASSES + 1):
            # Those that are dropped need not be searched again.
            rows = [r for r in rows if not _is_dropped(options, documents[r].text, final[r].spans)]
            if not rows:
                return n_passes
            texts = [edited(documents[row].text, final[row].spans, replacement) for row in rows]
            left = self._found_in_texts(rows, texts)
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
        raise self._still_found(left)

    def _still_found(self, left: Sequence[Found]) -> ShardError:
        rows = ", ".join(str(one.row) for one in left[:_SHOWN])
        return ShardError(
            "{shard}: {} documents still match, among them row {}", len(left), rows,
            shard=self.shard.name,
            hint="drop the document as a whole, or leave the file out",
        )  # fmt: skip

    def _found_in_texts(self, rows: Sequence[int], texts: Sequence[str]) -> list[Found]:
        """What is found in some documents by themselves."""
        plan = self.cleaning.plan
        collections = start_collections(plan)
        matchers = [Matcher(view) for view in plan.search_views]
        documents = (0, np.array(rows, np.int64), [text.encode() for text in texts])
        for batch in gathered([documents], BATCH_BYTES):
            for matcher, collection in zip(matchers, collections, strict=True):
                matcher.match(batch, collection)
        return self.cleaning.after.documents(_hits(collections), self.spared)

    def written(
        self, removed: Sequence[Removal], target: Path, workers: int
    ) -> tuple[Rewritten, int]:
        """Write the shard without what is removed, compare it with the original, and search it.

        Returns also how many rows are the same in all columns. Raises ShardError when anything is
        found, or when a row is not what it should be.
        """
        shard, sources = self.shard, self.selection.sources
        if sources is None:
            raise InternalError(f"{shard.name}: rows were found without a text column")
        edits = [
            Edit(one.found.row, one.drop, () if one.drop else one.found.spans) for one in removed
        ]
        how = Rewrite(edits, sources, self.cleaning.options.replacement)
        with errors_named(shard):
            done = shard.kind.rewrite(shard.path, target, how)
        state = state_at(str(target))
        new = replace(shard, uri=str(target), size_bytes=state.size, state=state)
        with errors_named(new):
            n_same = shard.kind.count_same(shard.path, new.path, how)
        dropped = [one.found.row for one in removed if one.drop]
        moved = {
            row - bisect_left(dropped, row): kept
            for row, kept in self.spared.items()
            if row not in dropped
        }
        if left := self.found_in(new, done.rows_after, moved, workers):
            raise self._still_found(left)
        return done, n_same

    def found_in(self, new: Shard, n_rows: int, spared: SparedRows, workers: int) -> list[Found]:
        """What is still found in the shard that was written, by the columns read then and now.

        spared  rows of it. Raises ShardError when it cannot be read, or has other rows than were
        written.
        """
        parameters = self.cleaning.plan.parameters
        try:
            fresh = select_columns(new, parameters.text, parameters.columns)
        except CorpusError as error:
            raise ShardError(error.statement, shard=new.name, hint=error.hints) from error
        same = fresh.sources == self.selection.sources
        found: dict[int, Found] = {}
        for chosen in [fresh] if same else [self.selection, fresh]:
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
            partial = scan_chunks(self.cleaning.plan, corpus, workers=workers)
            failures, total = partial.coverage.failures, partial.coverage.total
            if failures:
                raise ShardError(
                    "{shard}: what was written cannot be read: {}", failures[0].reason,
                    shard=new.name,
                )  # fmt: skip
            if total.rows + total.n_blank != n_rows:
                raise ShardError(
                    "{shard}: {} rows were read where {} were written", total.rows, n_rows,
                    shard=new.name,
                )  # fmt: skip
            hits = _hits(partial.collections)
            found.update({one.row: one for one in self.cleaning.after.documents(hits, spared)})
        return [found[row] for row in sorted(found)]


def _hits(collections: Sequence[Collected]) -> dict[int, Hits]:
    found = {view: collection.hits() for view, collection in enumerate(collections)}
    return {view: hits for view, hits in found.items() if hits is not None}


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
