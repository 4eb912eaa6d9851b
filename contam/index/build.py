"""Build an index from corpus shards: resumable, and the same bytes for any workers."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from contam.corpus.columns import unread_notes
from contam.corpus.coverage import ShardCoverage
from contam.corpus.listing import passed_over, refuse_left_out
from contam.corpus.opening import map_shards
from contam.corpus.shards import leave_out, survey
from contam.corpus.tokens import following_of, settled
from contam.errors import (
    IndexMismatchError,
    OutputError,
    Place,
    ShardError,
    Statement,
    UsageError,
)
from contam.files.stores import lies_in
from contam.index.array_files import writing
from contam.index.groups import PARTS, cut_groups, groups_of, with_groups
from contam.index.manifest import (
    LOCK,
    MANIFEST,
    SEGMENTS,
    publish_manifest,
    read_manifest,
    writer_lock,
)
from contam.index.minhash import permutations
from contam.index.model import DOCUMENT_BITS, KEY_BITS, LARGE_CORPUS, MOST_KEY_BITS, Manifest
from contam.index.open import local_folder
from contam.index.recipe import load_recipe
from contam.index.states import RETIRED_NAME, STATES, note_states
from contam.index.warm import small_corpus
from contam.index.writing.intake import (
    Done,
    Intake,
    IntakeReader,
    Result,
    Task,
    failed,
    listed_record,
    new_record,
    pending_places,
    running,
)
from contam.index.writing.sampling import tokenizer_of
from contam.index.writing.write import write_segment
from contam.kernels.warm_up import compile_once
from contam.memory import usable_cores
from contam.tables.blocks import MOST_ROWS
from contam.tables.memory import release_unused

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from contam.corpus.shards import Shard
    from contam.index.model import Recipe, SegmentRecord, ShardRecord
    from contam.index.states import States
    from contam.index.writing.intake import BuildProgress, Pipeline
    from contam.index.writing.sampling import Sampled

    PathLike = str | Path

_FINISH_BUILD_OR_OVERWRITE: Final = (
    "finish it with the call it was begun with, or begin afresh with --overwrite"
)


DEFAULT_MEMORY: Final = 2_000_000_000
"""Default memory of a build, in bytes."""

LEAST_MEMORY: Final = 256_000_000
"""Below it, a segment would be smaller than what is read at once."""

# Needed for any size of segment: what one worker reads, and what the allocators retain.
_RESERVE: Final = 128_000_000

#: Names of files and folders that contam writes into an index, besides lists of retired documents.
_OURS: Final = frozenset(
    (MANIFEST, f"{MANIFEST}.draft", STATES, f"{STATES}.draft", LOCK, SEGMENTS, PARTS)
)
_MOST_WORKERS: Final = 64
#: Files that a build names as left out.
_MOST_NOTED: Final = 5
_WORKER_BYTES: Final = 48 << 20
#: A segment can number more, by those of one batch: the last one may be as large.
_MOST_DOCUMENTS: Final = (1 << DOCUMENT_BITS) - MOST_ROWS


def build(
    corpus: PathLike | Sequence[PathLike],
    index: PathLike,
    recipe: str | Recipe = "complete",
    *,
    workers: int | None = None,
    memory: int = DEFAULT_MEMORY,
    text: str | None = None,
    columns: Mapping[str, str] | None = None,
    exclude: Sequence[str] = (),
    lines: bool = False,
    overwrite: bool = False,
    progress: BuildProgress | None = None,
) -> Manifest:
    """Index every document of a corpus in the folder `index`; go on where a killed build stopped.

    corpus     files, folders or globs, one or several
    recipe     its name, the path of its TOML file, or the recipe itself
    workers    threads; None takes one a core. The index does not depend on it.
    memory     bytes to hold at most, besides the program itself; decides how segments are cut
    text       column of the document text, where the usual names do not find it
    columns    "id", "url", "date" or "source" of a document -> the column that holds it
    exclude    patterns of shards to leave out on purpose; the index remembers them
    lines      whether a document of plain text is a line, not a file
    overwrite  begin afresh although there is an index

    A shard that cannot be read does not raise: the manifest records it with the reason. Raises
    CorpusError, OutputError, IndexBusyError, IndexMismatchError and UsageError.
    """
    work = Work(workers, memory, progress)
    folder, fresh = begun(
        *(corpus, index, recipe, work),
        text=text, columns=columns, exclude=exclude, lines=lines, overwrite=overwrite,
    )  # fmt: skip
    with writer_lock(folder):
        there = (folder / MANIFEST).exists() and not overwrite
        manifest = _resumed(folder, fresh) if there else fresh
        if not there:
            with writing(folder / STATES):
                (folder / STATES).unlink(missing_ok=True)
        manifest = with_groups(folder, manifest, memory)
        done = index_pending(folder, manifest, work)
        shutil.rmtree(folder / PARTS, ignore_errors=True)
        return done


@dataclass(frozen=True, slots=True)
class Work:
    """How a build works: its threads, the bytes it may hold, and who is told how far it is.

    Raises UsageError for a number of workers or bytes that makes no sense.
    """

    workers: int | None
    memory: int
    progress: BuildProgress | None = None

    def __post_init__(self) -> None:
        if self.workers is not None and not 1 <= self.workers <= _MOST_WORKERS:
            raise UsageError(
                "workers must be 1 to {}, not {}", _MOST_WORKERS, self.workers,
                hint="leave it out for one per core",
            )  # fmt: skip
        if self.memory < LEAST_MEMORY:
            raise UsageError(
                "memory of {:,} bytes is too little", self.memory,
                hint=Statement("give {}MB or more", LEAST_MEMORY // 10**6),
            )  # fmt: skip

    @property
    def n_workers(self) -> int:
        """Threads to use: what was asked for, or one a core, as far as the memory goes."""
        wanted = min(self.workers or usable_cores(), _MOST_WORKERS)
        # Data read ahead is in memory besides a segment: a small memory has room for few workers.
        return max(1, min(wanted, self.memory // 4 // _WORKER_BYTES))

    def note(self, message: str) -> None:
        """Tell something worth a line."""
        if self.progress is not None:
            self.progress.note(message)


def begun(
    corpus: PathLike | Sequence[PathLike],
    index: PathLike,
    recipe: str | Recipe,
    work: Work,
    share: tuple[int, int] = (0, 1),
    *,
    text: str | None,
    columns: Mapping[str, str] | None,
    exclude: Sequence[str],
    lines: bool,
    overwrite: bool,
) -> tuple[Path, Manifest]:
    """The folder of an index, and what it begins with: every shard of the corpus is pending.

    share  a number from 0 and a count: only shards of every n-th group are opened
    Raises as `build`.
    """
    folder = local_folder(index)
    paths = [corpus] if isinstance(corpus, (str, os.PathLike)) else list(corpus)
    refuse_inside(folder, paths)
    check_free(folder, overwrite=overwrite)
    if isinstance(recipe, str):
        recipe = load_recipe(recipe)
    columns = {**(columns or {}), **settled(columns or {})}
    found, aside = listed(paths, columns, work, lines=lines)
    shards, excluded = leave_out(found, exclude)
    if not recipe.key_bits:
        is_large = sum(shard.size_bytes for shard in shards) >= LARGE_CORPUS
        recipe = replace(recipe, key_bits=MOST_KEY_BITS if is_large else KEY_BITS)
    number, count = share
    groups = cut_groups([shard.size_bytes for shard in shards])[number::count]
    mine = {place for group in groups for place in group}

    def record(place: int, shard: Shard) -> ShardRecord:
        told = following_of(shards, place, columns)
        return (new_record if place in mine else listed_record)(shard, text, told)

    manifest = Manifest(
        recipe=recipe,
        paths=tuple(sorted(str(path) for path in paths)),
        shards=tuple(map_shards(record, shards)),
        segments=(),
        pending=tuple(shard.name for shard in shards),
        retired=None,
        exclude=tuple(sorted(set(exclude))),
        excluded=excluded,
        passed_over=aside,
    )
    return folder, manifest


def listed(
    paths: Sequence[PathLike], columns: Mapping[str, str], work: Work, *, lines: bool
) -> tuple[tuple[Shard, ...], tuple[str, ...]]:
    """The shards below some paths, and the folders that were passed over.

    Files that were left out are noted.
    """
    shards, skipped = survey(paths, look=False, lines=lines)
    refuse_left_out(skipped, columns)
    out = sorted((one for one in skipped if not one.folder), key=lambda one: not one.ours)
    for file in out[:_MOST_NOTED]:
        work.note(f"left out of the corpus: {file.path}: {file.reason}")
    if len(out) > _MOST_NOTED:
        work.note(f"left out of the corpus: {len(out) - _MOST_NOTED:,} more files")
    return shards, passed_over(skipped)


def index_pending(folder: Path, manifest: Manifest, work: Work) -> Manifest:
    """Read what is pending in a manifest and publish each segment; the caller has the lock."""

    def publish(now: Manifest, states: States) -> None:
        # First: a state is of use only to a manifest that has the shard, and does no harm before.
        note_states(folder, states)
        publish_manifest(folder, now)

    def begin() -> None:
        publish_manifest(folder, manifest)
        remove_strays(folder, manifest)

    return read_pending(folder, manifest, publish, work, begin)


def read_pending(
    folder: Path,
    manifest: Manifest,
    publish: Callable[[Manifest, States], None],
    work: Work,
    begin: Callable[[], None] = lambda: None,
) -> Manifest:
    """Write the segments of what is pending in a manifest below the folder.

    publish  called with the manifest whenever segments of whole shards were added to it, and with
             the states of the shards added since the last call
    begin    called before anything is written, when it is known that something can be read
    """
    progress = work.progress
    compile_once("build", warmup_build, progress)
    tokenizer = tokenizer_of(manifest.recipe)
    if manifest.recipe.minhash:
        permutations()
    intake = Intake.of(manifest)
    begin()
    if progress is not None:
        progress.start(intake.n_bytes)

    def make() -> IntakeReader:
        return IntakeReader(intake, manifest, tokenizer, progress)

    with running(intake.tasks(), work.n_workers, make) as pipeline:
        builder = _Builder(folder, manifest, (work.memory - _RESERVE) // 2, publish)
        builder.run(intake, pipeline)
    for note in unread_notes((one.name, one.unread) for one in builder.manifest.shards):
        work.note(note)
    if progress is not None:
        progress.finish()
    return builder.manifest


class _Builder:
    """The ordering half of a build: documents in, segments and manifests out.

    A segment holds whole shards of one group, or one piece of one shard. Shards are published when
    all of them is in segments; until then nothing of them counts.
    """

    def __init__(
        self,
        folder: Path,
        manifest: Manifest,
        budget: int,
        publish: Callable[[Manifest, States], None],
    ) -> None:
        self.manifest = manifest
        self._folder = folder
        self._budget = budget
        self._tell = publish
        self._begins = {group.start for group in groups_of(manifest)}
        self._records: list[ShardRecord] = list(manifest.shards)
        self._done: list[str] = []  # read, but not published yet
        self._keep([])
        self._pieces: list[SegmentRecord] = []  # of the shard that is being read
        self._states: States = {}  # of shards that are read, but not published yet

    def run(self, intake: Intake, pipeline: Pipeline[Task, Result]) -> None:
        """Take all results, shard by shard, and publish all there is at the end."""
        for place in pending_places(self.manifest):
            record = self._records[place]
            if place in self._begins and self._done:
                self._publish(len(self._parts))
            if place in intake.failures:
                self._records[place] = failed(record, intake.failures[place])
            else:
                n_tasks = len(intake.chunks[place]) + 1
                selection = intake.selections[place]
                self._records[place] = replace(
                    self._take_shard(place, n_tasks, pipeline),
                    unread=selection.unread if selection else None,
                )
            self._note(intake.shards[place], self._records[place])
            self._done.append(record.name)
            if self._pieces:
                self._publish(len(self._parts))
        # A finished build is not written again: killed then, it would leave a draft.
        if self._done:
            self._publish(len(self._parts))

    def _take_shard(
        self, place: int, n_tasks: int, pipeline: Pipeline[Task, Result]
    ) -> ShardRecord:
        record = self._records[place]
        counts = ShardCoverage()
        sha256 = ""
        left = n_tasks
        try:
            while left:
                left -= 1
                for result in pipeline.results():
                    if isinstance(result, Done):
                        counts += result.counts
                        sha256 = sha256 or result.sha256
                    elif result.n_docs:
                        self._add(result)
            counts.check_decoded(record.name)
        except ShardError as error:
            for _ in range(left):
                pipeline.skip()
            self._drop(place)
            return failed(record, error.message)
        return replace(record, counts=counts.to_dict(), sha256=sha256)

    def _add(self, part: Sampled) -> None:
        self._parts.append(part)
        self._weight += part.weight
        self._n_docs += part.n_docs
        while self._weight >= self._budget or self._n_docs >= _MOST_DOCUMENTS:
            whole = next(i for i, other in enumerate(self._parts) if other.shard == part.shard)
            if whole:
                # The shards before this one: it may yet fail, and they must not wait for it.
                self._publish(whole)
            else:
                self._close(len(self._parts))

    def _keep(self, parts: list[Sampled]) -> None:
        self._parts = parts
        self._weight = sum(part.weight for part in parts)
        self._n_docs = sum(part.n_docs for part in parts)

    def _close(self, n_parts: int) -> None:
        """Write the first parts as a segment, which counts once it is published."""
        parts = self._parts[:n_parts]
        self._keep(self._parts[n_parts:])
        if not parts:
            return
        record = write_segment(self._folder, self.manifest.recipe, parts, self._records)
        self._pieces.append(record)
        release_unused()

    def _note(self, shard: Shard, record: ShardRecord) -> None:
        if record.failure is None and shard.state is not None:
            self._states[shard.uri] = record.sha256, shard.state

    def _publish(self, n_parts: int) -> None:
        """Write the first parts as a segment, and publish all that is written."""
        self._close(n_parts)
        done = set(self._done)
        self.manifest = replace(
            self.manifest,
            shards=tuple(
                mine if mine.name in done else old
                for mine, old in zip(self._records, self.manifest.shards, strict=True)
            ),
            segments=in_order([*self.manifest.segments, *self._pieces]),
            pending=tuple(name for name in self.manifest.pending if name not in done),
        )
        self._tell(self.manifest, self._states)
        self._states = {}
        self._pieces = []
        self._done = []

    def _drop(self, place: int) -> None:
        """Forget all of a shard that cannot be read to its end."""
        self._keep([part for part in self._parts if part.shard != place])
        for piece in self._pieces:
            shutil.rmtree(self._folder / SEGMENTS / piece.id, ignore_errors=True)
        self._pieces = []


def warmup_build() -> None:
    """Index a corpus of one text, which compiles or loads all that a build needs."""
    with small_corpus() as corpus:
        build(corpus, corpus.with_name("index"), workers=1)


def in_order(segments: Sequence[SegmentRecord]) -> tuple[SegmentRecord, ...]:
    """Segments in the order of their first rows, whoever made them."""
    return tuple(sorted(segments, key=lambda one: (one.spans[0].shard, one.spans[0].first_row)))


def remove_strays(folder: Path, manifest: Manifest) -> None:
    """Remove what a killed writer left and what no manifest speaks of; the caller has the lock."""
    known = {segment.id for segment in manifest.segments}
    keep = {MANIFEST, LOCK, SEGMENTS, STATES, PARTS}
    if manifest.retired is not None:
        keep |= {manifest.retired.name, Path(manifest.retired.name).with_suffix(".crc").name}
    with writing(folder):
        if (folder / SEGMENTS).is_dir():
            for path in (folder / SEGMENTS).iterdir():
                if path.name not in known:
                    shutil.rmtree(path)
        for path in folder.iterdir():
            if path.name not in keep and _is_ours(path.name):
                path.unlink()


def _is_ours(name: str) -> bool:
    """Whether it is the name of a file or folder that contam writes into an index."""
    return name in _OURS or RETIRED_NAME.fullmatch(name) is not None


def refuse_inside(folder: Path, paths: Sequence[PathLike]) -> None:
    """Raise UsageError when the index would lie inside a folder of the corpus."""
    for path in paths:
        if lies_in(folder, path):
            raise UsageError(
                "the index {} lies inside the corpus folder {}", folder, Place(path),
                hint="its files would be taken for corpus: choose a folder outside",
            )  # fmt: skip


def check_free(folder: Path, *, overwrite: bool) -> None:
    """Raise OutputError where an index cannot be begun, or gone on with, in this folder."""
    if folder.exists() and not folder.is_dir():
        raise OutputError("{} is a file, not a folder", folder, hint="choose another folder")
    if not folder.is_dir():
        return
    present = sorted(path.name for path in folder.iterdir())
    foreign = [name for name in present if not _is_ours(name)]
    if foreign:
        raise OutputError(
            "{} holds files that are not an index: {}", folder, Place(", ".join(foreign[:3])),
            hint="choose a new or empty folder",
        )  # fmt: skip
    if MANIFEST in present and not overwrite and not read_manifest(folder).pending:
        raise OutputError(
            "{} already holds a finished index",
            folder,
            hint="add shards to it with `contam index add`, or build it again with --overwrite",
        )


def _resumed(folder: Path, fresh: Manifest) -> Manifest:
    """The manifest of an unfinished build of the same corpus, ready to go on."""
    old = read_manifest(folder)
    if old.recipe != fresh.recipe:
        raise IndexMismatchError(
            "{} holds an unfinished index of another recipe ({})", folder, old.recipe.name,
            hint=_FINISH_BUILD_OR_OVERWRITE,
        )  # fmt: skip
    mine = {record.name: record for record in fresh.shards}
    theirs = {record.name: record for record in old.shards if not record.retired}
    if mine.keys() != theirs.keys():
        odd = min(mine.keys() ^ theirs.keys())
        raise IndexMismatchError(
            "{} holds an unfinished index of other shards: {} is only in one of them", folder,
            Place(odd),
            hint=_FINISH_BUILD_OR_OVERWRITE,
        )  # fmt: skip
    for name, record in theirs.items():
        if name in old.pending:
            continue
        if record.digest != mine[name].digest:
            raise IndexMismatchError(
                "shard {} changed since it was indexed",
                Place(name),
                hint="begin afresh with --overwrite",
            )
        if (record.column, record.columns) != (mine[name].column, mine[name].columns):
            raise IndexMismatchError(
                "{} holds an unfinished index of other columns: shard {} is in it already", folder,
                Place(name), hint=_FINISH_BUILD_OR_OVERWRITE,
            )  # fmt: skip
    return replace(
        old,
        exclude=fresh.exclude,
        excluded=fresh.excluded,
        passed_over=fresh.passed_over,
        shards=tuple(
            mine[record.name] if record.name in old.pending and not record.retired else record
            for record in old.shards
        ),
    )
