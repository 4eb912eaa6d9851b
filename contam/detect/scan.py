"""Scan a corpus for benchmark items: plan, scan every chunk, merge and judge."""

from __future__ import annotations

import os
import time
from concurrent.futures import CancelledError
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from contam.corpus.batches import BATCH_BYTES, read_chunk
from contam.corpus.columns import NAMEABLE
from contam.corpus.coverage import Coverage, ShardCoverage, ShardFailure
from contam.corpus.documents import read_metadata
from contam.corpus.opening import open_shards
from contam.corpus.shards import leave_out, survey
from contam.detect.blocks import Blocks, folder_near
from contam.detect.corpus_checks import benchmark_shards
from contam.detect.given import IN_MEMORY, given_benchmark, given_corpus
from contam.detect.judge import finish_scan
from contam.detect.leases.cut import cut_leases
from contam.detect.match.matching import UnitMatcher
from contam.detect.match.workers import on_threads
from contam.detect.partial import Partial
from contam.detect.plan import Plan, ScanParameters, make_plan, named_fields, named_policies
from contam.detect.result import LEFT_OUT
from contam.detect.warm import scan_a_little
from contam.errors import InternalError, Remedy, ShardError, UsageError
from contam.files.natural_order import natural_key
from contam.kernels.warm_up import compile_once
from contam.tables.memory import release_unused

if TYPE_CHECKING:
    import threading
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from contam.corpus.batches import DocBatch
    from contam.corpus.chunks import Chunk
    from contam.corpus.columns import Selection
    from contam.corpus.documents import DocumentMeta
    from contam.corpus.listing import Skipped
    from contam.corpus.shards import Shard
    from contam.detect.given import Source
    from contam.detect.leases.kept_parts import KeptParts
    from contam.detect.leases.workshop import Workshop
    from contam.detect.model import Bools, Matches
    from contam.detect.result import ScanResult

    PathLike = str | Path


_MOST_WORKERS = 64
_NAMED = 5
#: Text read at once where a tokenizer file makes the tokens: about a second's work, so that a scan
#: can be stopped soon.
_TOKENIZER_BATCH_BYTES = 1 << 20
#: Batches that are matched with one block of the items before the next, where there are several.
_BATCHES_TOGETHER = 4


class ScanProgress(Protocol):
    """Receives the progress of a scan; every method may be called from any thread."""

    def start(self, total_bytes: int) -> None:
        """Begin: the corpus has this many bytes to read."""

    def advance(self, n_bytes: int, /) -> None:
        """Add bytes that were read."""

    def note(self, message: str) -> None:
        """Show a line of text."""

    def compiled(self, done: int, total: int) -> None:
        """So many of all kernels are compiled; only a first run hears of it."""

    def finish(self) -> None:
        """End: nothing more will be read."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Corpus:
    """The shards of a run, the columns to read of each, and the chunks they are cut into.

    It is also the `contam.detect.sources.Sources` of a scan: all evidence is compared with the text
    of the shards.

    paths       what the user named, sorted: shards take their names from it
    digests     of each shard when it was listed, None where it could not be read
    selections  columns of each shard, None where none was found
    coverage    what was read: nothing yet when it is opened
    in_memory   names of the shards that are tables of the caller
    skipped     files in the folders that are no shards
    documents   (shard, row) -> what is known of documents that were read before
    """

    paths: tuple[str, ...]
    shards: tuple[Shard, ...]
    digests: tuple[str | None, ...]
    selections: list[Selection | None]
    chunks: list[Chunk]
    coverage: Coverage
    notes: tuple[str, ...]
    in_memory: frozenset[str] = frozenset()
    skipped: tuple[Skipped, ...] = ()
    documents: Mapping[tuple[int, int], DocumentMeta] = field(default_factory=dict)

    @classmethod
    def open(
        cls,
        paths: Sequence[PathLike],
        text: str | None,
        tables: Sequence[Shard] = (),
        *,
        columns: Mapping[str, str] | None = None,
        exclude: Sequence[str] = (),
    ) -> Corpus:
        """Find shards and columns; shards that cannot be opened are failures in the coverage.

        tables   shards besides those of the paths, under names of their own
        columns  field of a document (id, url, date) -> the column that holds it
        exclude  patterns of shards to leave out on purpose (`contam.corpus.shards.leave_out`)
        """
        found = survey(paths, look=False) if paths or not tables else ((), ())
        shards, skipped = found
        in_memory = frozenset(table.name for table in tables)
        if twice := sorted(in_memory.intersection(shard.name for shard in shards)):
            raise UsageError("a table and a file of the corpus are both called {}", twice[0])
        shards = tuple(sorted((*shards, *tables), key=lambda shard: natural_key(shard.name)))
        shards, excluded = leave_out(shards, exclude)
        opened = open_shards(shards, text, columns)
        return cls(
            paths=tuple(
                sorted([*map(str, paths), *(IN_MEMORY + name for name in in_memory)]),
            ),
            shards=opened.shards,
            digests=opened.digests,
            selections=opened.selections,
            chunks=opened.chunks,
            coverage=Coverage.expect(shards, opened.chunks, opened.failures, excluded),
            notes=(
                *excluded_note(excluded),
                *(f"{LEFT_OUT}{file.path}: {file.reason}" for file in skipped),
                *_unread_columns(shards, opened.selections, text),
            ),
            in_memory=in_memory,
            skipped=skipped,
        )

    @property
    def names(self) -> tuple[str, ...]:
        """The shards' names."""
        return tuple(shard.name for shard in self.shards)

    @cached_property
    def chunk_numbers(self) -> Mapping[Chunk, int]:
        """The place of every chunk in the list of chunks."""
        return {chunk: number for number, chunk in enumerate(self.chunks)}

    def metadata(self, shard: int, rows: Sequence[int]) -> list[DocumentMeta]:
        """What is known of the documents in these rows, or their shard says. Raises ShardError."""
        known = {row: self.documents.get((shard, row)) for row in rows}
        missing = [row for row, meta in known.items() if meta is None]
        read = dict(zip(missing, self._read_metadata(shard, missing), strict=True))
        return [known[row] or read[row] for row in rows]

    def _read_metadata(self, shard: int, rows: Sequence[int]) -> list[DocumentMeta]:
        if not rows:
            return []
        selection = self.selections[shard]
        if selection is None:
            name = self.shards[shard].name
            raise InternalError(f"{name}: rows were read without a text column")
        return read_metadata(self.shards[shard], selection, rows)

    def verified(self, matches: Matches) -> Bools:
        """Every match is verified."""
        return np.ones(len(matches), np.bool_)

    def near(self, matches: Matches) -> Bools:
        """No match was found by a sketch: every document was read."""
        return np.zeros(len(matches), np.bool_)

    def inputs(self) -> dict[str, Any]:
        """The paths as named, every shard with its digest, and the files that are no shards."""
        skipped = [{"path": str(file.path), "reason": file.reason} for file in self.skipped]
        return {
            "corpus": list(self.paths),
            "shards": [
                {
                    "uri": IN_MEMORY + shard.name if shard.name in self.in_memory else shard.uri,
                    "name": shard.name,
                    "format": shard.format,
                    "size_bytes": shard.size_bytes,
                    "digest": digest,
                }
                for shard, digest in zip(self.shards, self.digests, strict=True)
            ],
            **({"skipped_files": skipped} if skipped else {}),
        }


def named_columns(columns: Mapping[str, str] | None) -> dict[str, str] | None:
    """The columns a caller named, None for none. Raises UsageError for other fields."""
    for field_name in columns or ():
        if field_name not in NAMEABLE:
            raise UsageError(
                "{!r} is not one of id, url and date",
                field_name,
                remedy=Remedy.CHOOSE_KNOWN(known=", ".join(NAMEABLE)),
            )
    return {name: columns[name] for name in NAMEABLE if name in columns} if columns else None


def excluded_note(names: Sequence[str]) -> tuple[str, ...]:
    """What to say of shards that were left out on purpose."""
    if not names:
        return ()
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    count = "1 shard" if len(names) == 1 else f"{len(names):,} shards"
    return (f"excluded on purpose, not searched: {count}: {', '.join(names[:_NAMED])}{more}",)


def _unread_columns(
    shards: Sequence[Shard], selections: Sequence[Selection | None], text: str | None
) -> list[str]:
    """What to say where a column was named, and shards have one that would have been read else."""
    if text is None:
        return []
    # Of formats with open keys nobody knows them before all is read.
    ignored = [
        (shard.name, selection.others[0].dotted)
        for shard, selection in zip(shards, selections, strict=True)
        if selection is not None and selection.others and not shard.kind.open_keys
    ]
    if not ignored:
        return []
    (name, column), n = ignored[0], len(ignored)
    where = name if n == 1 else f"{name} and {n - 1} more"
    return [f"{where}: the column {column} was not read, because --text names {text}"]


def scan(  # noqa: PLR0913 - the options of a scan, all but two of them by name
    corpus: Source,
    benchmark: Source,
    *,
    policies: str | Sequence[str] = ("contam",),
    unit: str = "word",
    workers: int | None = None,
    seed: int = 5,
    min_run: int = 8,
    text: str | None = None,
    columns: Mapping[str, str] | None = None,
    exclude: str | Sequence[str] = (),
    mapping: str | Mapping[str, str] | None = None,
    name: str | None = None,
    split: str | None = None,
    allow_missing: bool = False,
    max_evidence: int = 20,
    keep_text: bool = True,
    workshop: Workshop | None = None,
    block_items: int | None = None,
    progress: ScanProgress | None = None,
) -> ScanResult:
    """Search every document of a corpus for every item of the benchmarks.

    corpus, benchmark  files, folders or globs, one or several; or rows as dictionaries, a table
                       (Arrow, pandas, Polars, `datasets`), or several tables by name
    policies           ids (`contam policies` lists them), id:preset, or policy files
    workers            threads; None takes one a core. The result does not depend on it.
    text               column of the document text, where the usual names do not find it
    columns            "id", "url" or "date" of a document -> the column that holds it
    exclude            patterns of shards to leave out on purpose, as `--exclude`
    mapping            part of an item -> field of the benchmark's rows
    allow_missing      judge items although shards could not be read (recorded in the result)
    max_evidence       documents kept as evidence per item; counts stay exact
    keep_text          whether the result holds the items' texts
    workshop           where to keep what is done of a large corpus, to resume from, and to let
                       processes share the work; None keeps all in memory
    block_items        items that are looked up together, of whole benchmarks: fewer take less
                       memory and more time; None takes all up to a million. The result does not
                       depend on it.

    Raises ContamError subclasses; a shard that cannot be read does not raise, it is in
    `result.coverage`, and no item is then called clean.
    """
    started = time.time()
    parameters = ScanParameters(
        policies=named_policies(policies),
        unit=unit,
        seed=seed,
        min_run=min_run,
        max_evidence=max_evidence,
        allow_missing=allow_missing,
        keep_text=keep_text,
        text=text,
        columns=named_columns(columns),
        exclude=tuple([exclude] if isinstance(exclude, str) else exclude),
        mapping=named_fields(mapping),
        name=name,
        split=split,
    )
    n_workers = worker_count(workers)
    with given_corpus(corpus) as (paths, tables):
        opened = _opened(paths, parameters, tables)
        compile_once("scan", scan_a_little, progress)
        blocks = Blocks(block_items, folder_near(workshop.folder) if workshop else None)
        plan = make_plan(given_benchmark(benchmark, name), parameters, blocks)
        if workshop is not None and not tables and workshop.serves(cut_leases(opened.chunks)):
            from contam.detect.leases.local import scan_in_leases  # which is made of scans

            opened = _with_own_files_noted(opened, plan)
            return scan_in_leases(
                opened, plan, workshop, workers=n_workers, progress=progress, started=started
            )
        return scan_opened(opened, plan, workers=n_workers, progress=progress, started=started)


def open_scan(
    corpus: Sequence[PathLike],
    benchmark: Sequence[PathLike],
    parameters: ScanParameters,
    blocks: Blocks | None = None,
) -> tuple[Corpus, Plan]:
    """What a scan begins with: the corpus as it is now, and the plan for the items.

    blocks  as of `contam.detect.plan.make_plan`

    Raises ContamError subclasses.
    """
    opened = _opened(corpus, parameters)
    compile_once("scan", scan_a_little, None)
    plan = make_plan(benchmark, parameters, blocks)
    return _with_own_files_noted(opened, plan), plan


def _opened(
    paths: Sequence[PathLike], parameters: ScanParameters, tables: Sequence[Shard] = ()
) -> Corpus:
    return Corpus.open(
        paths, parameters.text, tables, columns=parameters.columns, exclude=parameters.exclude
    )


def _with_own_files_noted(opened: Corpus, plan: Plan) -> Corpus:
    """The corpus with a note for each shard that is a benchmark file of the plan."""
    own = benchmark_shards(opened.paths, opened.shards, plan.benchmarks)
    notes = tuple(f"{name} is a benchmark file: it matches itself" for name in own)
    return replace(opened, notes=(*opened.notes, *notes))


def scan_opened(
    opened: Corpus,
    plan: Plan,
    *,
    workers: int,
    progress: ScanProgress | None = None,
    started: float,
    parts: KeptParts | None = None,
) -> ScanResult:
    """Search every document of a corpus for what a plan looks for; the plan is used up by it.

    started  when the run began, seconds since 1970
    parts    what earlier runs found in shards; only the others are read

    Raises CorpusError when nothing that was read has a text.
    """
    opened = _with_own_files_noted(opened, plan)
    release_unused()
    if progress is not None:
        progress.start(sum(chunk.n_bytes for chunk in opened.chunks))
    if parts is None:
        from contam.detect.leases.work import scan_leases  # which is made of scans

        partial = scan_leases(plan, opened, workers=workers, progress=progress)
    else:
        partial = parts.search(plan, opened, workers=workers, progress=progress)
    result = finish_scan(plan, opened, partial, workers=workers, started=started)
    if progress is not None:
        progress.finish()
    return result


def scan_chunk(
    plan: Plan,
    corpus: Corpus,
    chunk: Chunk,
    matchers: Sequence[UnitMatcher],
    partial: Partial,
    progress: ScanProgress | None = None,
    stop: threading.Event | None = None,
) -> None:
    """Match one chunk and add it to a partial answer; a shard that fails is recorded there."""
    counts = ShardCoverage()
    reported = 0
    slow = any(view.tokenizer is not None for view in plan.views)
    size = _TOKENIZER_BATCH_BYTES if slow else BATCH_BYTES
    # Each block is looked up in all of it before the next: they may not fit into memory together.
    together = _BATCHES_TOGETHER * size if len(plan.views) > plan.n_units else 0
    batches = read_chunk(chunk, corpus.shards, corpus.selections, size)
    try:
        for some in _together(batches, together):
            if stop is not None and stop.is_set():
                return
            by_unit = [
                matcher.match(some, partial.collections[unit :: len(matchers)])
                for unit, matcher in enumerate(matchers)
            ]
            for batch, *rows in zip(some, *by_unit, strict=True):
                partial.found.note(
                    batch, corpus.selections, [found for of_unit in rows for found in of_unit]
                )
                counts += ShardCoverage.of_batch(batch)
                if progress is not None:
                    step = min(batch.n_bytes, max(chunk.n_bytes - reported, 0))
                    progress.advance(step)
                    reported += step
            partial.found.shrink(partial.collections)
    except ShardError as error:
        name = corpus.shards[chunk.shard].name
        partial.read.add_failure(ShardFailure.of(chunk.shard, name, error))
        partial.chunks.add(corpus.chunk_numbers[chunk])
        return
    partial.read.add_chunk(chunk, counts)
    partial.chunks.add(corpus.chunk_numbers[chunk])
    if progress is not None:
        progress.advance(max(chunk.n_bytes - reported, 0))


def _together(batches: Iterator[DocBatch], n_bytes: int) -> Iterator[list[DocBatch]]:
    """As many batches at a time as have so much text, also those before an error."""
    waiting: list[DocBatch] = []
    try:
        for batch in batches:
            waiting.append(batch)
            if sum(some.n_bytes for some in waiting) >= n_bytes:
                yield waiting
                waiting = []
    except ShardError:
        if waiting:
            yield waiting
        raise
    if waiting:
        yield waiting


def scan_chunks(
    plan: Plan,
    corpus: Corpus,
    *,
    workers: int,
    chunks: Sequence[Chunk] | None = None,
    progress: ScanProgress | None = None,
    stop: threading.Event | None = None,
) -> Partial:
    """Match these chunks of the corpus, or all, on threads that each fill a partial answer.

    stop  raises CancelledError before the next chunk once it is set
    """
    whole = Partial.start(plan, corpus)

    def work(chunks: Iterator[Chunk], unwanted: threading.Event) -> Partial:
        partial = whole.empty_sibling(corpus)
        matchers = [UnitMatcher(plan.views[unit :: plan.n_units]) for unit in range(plan.n_units)]
        for chunk in chunks:
            if stop is not None and stop.is_set():
                raise CancelledError
            scan_chunk(plan, corpus, chunk, matchers, partial, progress, unwanted)
        for collection in partial.collections:
            collection.flush()
        return partial

    with closing(on_threads(work, corpus.chunks if chunks is None else chunks, workers)) as found:
        for partial in found:
            whole.merge(partial)
    return whole


def as_list(paths: PathLike | Sequence[PathLike]) -> list[PathLike]:
    """One path, or several, as a list."""
    return [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)


def worker_count(workers: int | None) -> int:
    """Threads to use; None is one a core. Raises UsageError."""
    if workers is None:
        return max(1, min(_MOST_WORKERS, os.cpu_count() or 1))
    if not 1 <= workers <= _MOST_WORKERS:
        raise UsageError(
            "workers must be 1 to {}, not {}",
            _MOST_WORKERS,
            workers,
            remedy=Remedy.LEAVE_OUT_FOR_ONE_PER_CORE,
        )
    return workers
