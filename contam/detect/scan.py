"""Scan a corpus for benchmark items: plan, scan every chunk, merge and judge."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from contam.corpus.columns import NAMEABLE
from contam.corpus.coverage import Coverage
from contam.corpus.documents import metadata_or_lost
from contam.corpus.opening import open_shards
from contam.corpus.shards import leave_out, survey
from contam.detect.blocks import Blocks, folder_near
from contam.detect.corpus_checks import benchmark_shards
from contam.detect.given import IN_MEMORY, given_benchmark, given_corpus
from contam.detect.judge import finish_scan
from contam.detect.leases.cut import cut_leases
from contam.detect.leases.local import scan_in_leases
from contam.detect.leases.work import scan_leases
from contam.detect.plan import Plan, ScanParameters, make_plan, named_fields, named_policies
from contam.detect.result import LEFT_OUT
from contam.detect.warm import scan_a_little
from contam.errors import InternalError, Remedy, UsageError
from contam.files.natural_order import natural_key
from contam.kernels.warm_up import compile_once
from contam.tables.memory import release_unused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

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
        return metadata_or_lost(self.shards[shard], selection, rows)

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
        if workshop is not None and workshop.resume and progress is not None:
            n_done = workshop.n_done()
            progress.note(f"leases done before: {n_done}" if n_done else "nothing to resume")
        if workshop is not None and not tables and workshop.serves(cut_leases(opened.chunks)):
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
        partial = scan_leases(plan, opened, workers=workers, progress=progress)
    else:
        partial = parts.search(plan, opened, workers=workers, progress=progress)
    result = finish_scan(plan, opened, partial, workers=workers, started=started)
    if progress is not None:
        progress.finish()
    return result


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
