"""Open the corpus of a run: shards, columns and chunks; tell what is read of it, and spoils it.

Describe the documents of an answer: id, shard, row, url, date and source. A scan takes them from
the shards it has just read, an index from what it recorded of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from contam.corpus.columns import names_of, unread_notes
from contam.corpus.coverage import Coverage, ShardFailure
from contam.corpus.dates import span_of
from contam.corpus.documents import DocumentMeta, metadata_or_lost, read_documents
from contam.corpus.listing import passed_over, refuse_left_out
from contam.corpus.opening import map_readable_shards, open_shards
from contam.corpus.shards import check_unchanged, leave_out, survey
from contam.detect.given import IN_MEMORY
from contam.detect.result import LEFT_OUT, UNREADABLE_DATES
from contam.errors import CorpusError, InternalError, Place, Public, ShardError, UsageError
from contam.facts import counted
from contam.files.natural_order import natural_key
from contam.tables.memory import distinct

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Mapping, Sequence

    from contam.benchmark.items import Benchmark
    from contam.corpus.columns import Selection
    from contam.corpus.formats.base import Chunk, Document
    from contam.corpus.listing import Skipped
    from contam.corpus.opening import OpenedShards
    from contam.corpus.shards import Shard
    from contam.detect.indexed.search import SearchResult
    from contam.detect.match.collect import Collection
    from contam.detect.model import Bools, Int32s, Int64s, Matches

    PathLike = str | Path
    Sources: TypeAlias = "Corpus | SearchResult"
    """The documents behind an answer. A shard is given by its number, an index into `names`."""


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

    It is also the `contam.detect.corpus.Sources` of a scan: all evidence is compared with the text
    of the shards.

    paths       what the user named, sorted: shards take their names from it
    digests     of each shard when it was listed, None where it could not be read
    selections  columns of each shard, None where none was found
    coverage    what was read: nothing yet when it is opened
    in_memory   names of the shards that are tables of the caller
    skipped     files in the folders that are no shards
    documents   (shard, row) -> what is known of documents that were read before
    sha256      of the shards that were searched for every hit, by number
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
    sha256: Mapping[int, str] = field(default_factory=dict)

    @classmethod
    def open(
        cls,
        paths: Sequence[PathLike],
        text: str | None,
        tables: Sequence[Shard] = (),
        *,
        columns: Mapping[str, str] | None = None,
        exclude: Sequence[str] = (),
        lines: bool = False,
        bundle: bool = False,
        opening: Callable[..., OpenedShards] = open_shards,
    ) -> Corpus:
        """Find shards and columns; shards that cannot be opened are failures in the coverage.

        tables   shards besides those of the paths, under names of their own
        columns  field of a document (id, url, date, source) -> the column that holds it
        exclude  patterns of shards to leave out on purpose (`contam.corpus.shards.leave_out`)
        lines    whether a document of plain text is a line, not a file
        bundle   whether many small files of text in one folder become one shard
        opening  what opens the shards, in place of `contam.corpus.opening.open_shards`
        """
        found = (
            survey(paths, look=False, lines=lines, bundle=bundle and not exclude)
            if paths or not tables
            else ((), ())
        )
        shards, skipped = found
        refuse_left_out(skipped, columns)
        files = tuple(one for one in skipped if not one.folder)
        in_memory = frozenset(table.name for table in tables)
        if twice := sorted(in_memory.intersection(shard.name for shard in shards)):
            raise UsageError("a table and a file of the corpus are both called {}", twice[0])
        shards = tuple(sorted((*shards, *tables), key=lambda shard: natural_key(shard.name)))
        shards, excluded = leave_out(shards, exclude)
        opened = opening(shards, text, columns)
        unread = [one.unread if one is not None else None for one in opened.selections]
        return cls(
            paths=tuple(
                sorted([*map(str, paths), *(IN_MEMORY + name for name in in_memory)]),
            ),
            shards=opened.shards,
            digests=opened.digests,
            selections=opened.selections,
            chunks=opened.chunks,
            coverage=Coverage.expect(
                shards,
                opened.chunks,
                opened.failures,
                excluded,
                passed_over(skipped),
                names_of(unread),
            ),
            notes=(
                *excluded_note(excluded),
                *(f"{LEFT_OUT}{file.path}: {file.reason}" for file in files),
                *unread_notes(zip([shard.name for shard in shards], unread, strict=True)),
            ),
            in_memory=in_memory,
            skipped=files,
        )

    @cached_property
    def source_columns(self) -> tuple[str, ...]:
        """The columns that name the sources of documents.

        Fields that a JSON text may have are none of them unless they were named.
        """
        selected = [one.metadata.get("source", ()) for one in self.selections if one is not None]
        return tuple(
            dict.fromkeys(
                ref.dotted
                for refs in selected
                for ref in refs
                if ref.kind != "json" or len(refs) == 1
            )
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

    def of_tokens(self, shard: int, rows: Sequence[int]) -> list[Document] | None:
        """The documents in these rows, where they are token ids. Raises ShardError."""
        selection = self.selections[shard]
        if selection is None or selection.text is None or selection.text.kind != "tokens":
            return None
        return read_documents(self.shards[shard], selection, rows)

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
                    **({"sha256": self.sha256[number]} if number in self.sha256 else {}),
                }
                for number, (shard, digest) in enumerate(
                    zip(self.shards, self.digests, strict=True)
                )
            ],
            **({"skipped_files": skipped} if skipped else {}),
        }


def excluded_note(names: Sequence[str]) -> tuple[str, ...]:
    """What to say of shards that were left out on purpose."""
    if not names:
        return ()
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    count = counted(len(names), "shard")
    return (f"excluded on purpose, not searched: {count}: {', '.join(names[:_NAMED])}{more}",)


def changed_shards(
    corpus: Corpus, numbers: Iterable[int], failed: Container[int]
) -> list[ShardFailure]:
    """Those of the numbered shards that have changed since they were listed.

    failed  shards that are known not to have been read
    """
    left = [number for number in numbers if number not in failed]
    _, changed = map_readable_shards(
        lambda number, shard: check_unchanged(shard, corpus.digests[number]), corpus.shards, left
    )
    return changed


def undecoded_shards(corpus: Corpus, coverage: Coverage) -> list[ShardFailure]:
    """The shards that were read to their end, and hold no text that could be decoded."""
    failed = {failure.shard for failure in coverage.failures}
    found = []
    for number, counts in coverage.read.items():
        name = corpus.shards[number].name
        try:
            if number not in failed:
                counts.check_decoded(name)
        except ShardError as error:
            found.append(ShardFailure.of(number, name, error))
    return found


def benchmark_shards(
    corpus: Sequence[str | Path], shards: Sequence[Shard], benchmarks: Sequence[Benchmark]
) -> tuple[str, ...]:
    """Names of the shards that are files of the benchmarks, whose items match themselves.

    Raises UsageError when a folder or glob includes them along with other shards, which is a
    mistake. If they are named as shards themselves, or are the only shards, they are meant.
    """
    sources = {Path(source.path).resolve() for each in benchmarks for source in each.sources}
    own = [shard for shard in shards if Path(shard.uri).resolve() in sources]
    named = {Path(path).resolve() for path in corpus}
    swept = [shard for shard in own if Path(shard.uri).resolve() not in named]
    if swept and len(own) < len(shards):
        raise UsageError(
            "the benchmark file {} lies in the corpus, too: its items would match themselves",
            swept[0].name,
            hint="keep benchmarks out of the corpus folder, or name every shard",
        )
    return tuple(shard.name for shard in own)


def refuse_without_text(coverage: Coverage, *, allow_missing: bool) -> None:
    """Raise CorpusError when a corpus without any text would make every item clean.

    Shards that could not be read are reported in the coverage, unless that was allowed.
    """
    total = coverage.total
    if total.n_bytes or not (coverage.complete or allow_missing):
        return
    failed = [Place(failure.name) for failure in coverage.failures[:1]]
    raise CorpusError(
        "the corpus contains no text: {}, {}, {} without a text, {} empty"
        + "; not read: {}" * len(failed),
        Public(counted(len(coverage.names), "shard")),
        Public(counted(total.rows, "document")),
        total.n_null,
        total.n_empty,
        *failed,
        hint="check that the shards are complete, or name the text column with --text",
    )


# A shard has fewer rows than this, and there are fewer than 2**22 shards.
_ROW_BITS = 41


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Documents:
    """The d documents of an answer, by shard and row.

    date         as the corpus writes it; None where it cannot be read as one
    place        int64[d], shard and row as one number, ascending
    document_id  what the corpus calls it, else "SHARD:ROW"
    shard        name of its shard;  row  its place there
    odd          bool[d], whether the corpus has a date that cannot be read
    lost         shard that could not be asked for all of its documents -> why
    """

    place: Int64s
    document_id: list[str]
    shard: list[str]
    row: list[int]
    url: list[str | None]
    date: list[str | None]
    source: list[str | None]
    odd: Bools
    lost: Mapping[str, str]

    def at(self, shard: Int32s, row: Int64s) -> Int64s:
        """Places in the lists of the documents at these rows of these shards; -1 for no shard."""
        found = np.searchsorted(self.place, _place(shard, row)).astype(np.int64)
        found[shard < 0] = -1
        return found


def describe(sources: Sources, collections: Sequence[Collection]) -> Documents:
    """Ask the sources about every document that verdicts or evidence name.

    Of a shard that is gone meanwhile, and where only the text can be read, the places stay; a date
    that makes no sense is left out: see `document_notes`.
    """
    shards, rows = named_documents(collections)
    place = _place(shards, rows)
    metas: list[DocumentMeta] = []
    lost: dict[str, str] = {}
    known = sources.names
    names: list[str] = []
    first = np.flatnonzero(np.diff(shards, prepend=-1))
    for lo, hi in pairwise([*first.tolist(), len(place)]):
        shard, wanted = int(shards[lo]), rows[lo:hi].tolist()
        name = known[shard]
        try:
            found = sources.metadata(shard, wanted)
            metas += found
            if any(meta.lost for meta in found):
                lost[name] = "these columns are damaged"
        except ShardError as error:
            lost[name] = error.message
            metas += [DocumentMeta("", None, None, None, None) for _ in wanted]
        names += [name] * len(wanted)
    dates = [meta.date if span_of(meta.date) else None for meta in metas]
    ids = [meta.document_id for meta in metas]
    return Documents(
        place=place,
        document_id=[
            own or f"{name}:{row}" for own, name, row in zip(ids, names, rows.tolist(), strict=True)
        ],
        shard=names,
        row=rows.tolist(),
        url=[meta.url for meta in metas],
        date=dates,
        source=[meta.source for meta in metas],
        odd=np.array(
            [
                date is None and bool((meta.date or "").strip())
                for date, meta in zip(dates, metas, strict=True)
            ],
            np.bool_,
        ),
        lost=lost,
    )


def first_tokens(sources: Sources, shard: Int32s, row: Int64s, start: Int32s) -> Int64s:
    """Where in its shard the token stands that holds the code point `start` of each document.

    -1 in shards without token ids, and where a shard cannot be read any more.
    """
    found = np.full(len(start), -1, np.int64)
    for number in np.unique(shard[shard >= 0]).tolist():
        here = np.flatnonzero(shard == number)
        rows = np.unique(row[here]).tolist()
        try:
            documents = sources.of_tokens(number, rows)
        except ShardError:
            continue
        if documents is None:
            continue
        known = dict(zip(rows, documents, strict=True))
        for at in here.tolist():
            if (tokens := known[int(row[at])].tokens) is not None:
                found[at] = tokens.at(int(start[at]))
    return found


def document_notes(documents: Documents) -> list[str]:
    """A line for each shard that could not be asked, and one with the number of odd dates."""
    notes = [
        f"{name}: evidence without url and date: {why}" for name, why in documents.lost.items()
    ]
    if n_odd := int(documents.odd.sum()):
        notes.append(f"{n_odd:,} of {len(documents.place):,} {UNREADABLE_DATES}")
    return notes


def named_documents(collections: Sequence[Collection]) -> tuple[Int64s, Int64s]:
    """Shard and row of every document that verdicts or evidence name, by place: int64[d] each."""
    places = [_place(*collection.documents()) for collection in collections]
    place = distinct(np.concatenate(places)) if places else np.empty(0, np.int64)
    return place >> _ROW_BITS, place & ((1 << _ROW_BITS) - 1)


def _place(shard: Int32s | Int64s, row: Int64s) -> Int64s:
    return (shard.astype(np.int64) << _ROW_BITS) | row
