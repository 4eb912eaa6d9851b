"""Change an index: add shards, retire shards and documents, compact segments."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from contam.corpus.opening import map_shards
from contam.corpus.shards import file_sha256, is_out, leave_out
from contam.corpus.tokens import following_of, settled
from contam.errors import (
    IndexMismatchError,
    Place,
    Public,
    ShardError,
    Statement,
    UsageError,
)
from contam.files.listed import state_at
from contam.files.natural_order import natural_key
from contam.index.build import (
    DEFAULT_MEMORY,
    Work,
    index_pending,
    listed,
    refuse_inside,
    remove_strays,
)
from contam.index.manifest import publish_manifest, read_manifest, writer_lock
from contam.index.model import DOCUMENT_BITS
from contam.index.open import check_normaliser, local_folder
from contam.index.segment import Segment
from contam.index.states import (
    change_since,
    note_states,
    read_retired,
    read_states,
    state_for,
    write_retired,
)
from contam.index.writing.intake import new_record, shard_of
from contam.index.writing.write import merge_segments, merged_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from numpy.typing import NDArray

    from contam.corpus.shards import Shard
    from contam.index.model import Manifest, SegmentRecord, ShardRecord
    from contam.index.states import States
    from contam.index.writing.intake import BuildProgress

    PathLike = str | Path

_PAIR_BYTES: Final = 24
_DOCUMENT_BYTES: Final = 1 << 9
_MOST_DOCUMENTS: Final = 1 << DOCUMENT_BITS
_NAMED: Final = 5


@dataclass(frozen=True, slots=True)
class Added:
    """The index after `add`, and the shards that were in it already: live, and retired ones."""

    manifest: Manifest
    passed_over: tuple[str, ...]
    still_retired: tuple[str, ...]


def add(
    index: PathLike,
    corpus: PathLike | Sequence[PathLike],
    *,
    workers: int | None = None,
    memory: int = DEFAULT_MEMORY,
    text: str | None = None,
    columns: Mapping[str, str] | None = None,
    exclude: Sequence[str] = (),
    lines: bool = False,
    again: bool = False,
    progress: BuildProgress | None = None,
) -> Added:
    """Index the shards that the index does not hold yet, and those it could not read before.

    Options as in `build`; the columns are those of the other shards unless they are named. What the
    index excludes already is left out as well, and so are retired shards with the same bytes.

    again  take retired shards, too

    Raises IndexMismatchError for a shard of a known name with other bytes, and what `build` raises.
    """
    folder = local_folder(index)
    paths = [corpus] if isinstance(corpus, (str, os.PathLike)) else list(corpus)
    work = Work(workers, memory, progress)
    with _writing(folder):
        manifest = read_manifest(folder)
        check_normaliser(folder, manifest.recipe)
        refuse_inside(folder, paths)
        known = {record.column for record in manifest.shards}
        column = text if text is not None or len(known) != 1 else known.pop()
        alike = [
            {key: value for key, value in (record.columns or {}).items() if key != "following"}
            for record in manifest.shards
        ]
        if columns is None and alike and all(one == alike[0] for one in alike):
            columns = alike[0]
        columns = {**(columns or {}), **settled(columns or {})}
        there, aside = listed(paths, columns, work, lines=lines)
        shards, excluded = _left(manifest, there, exclude)
        offered = map_shards(
            lambda at, shard: new_record(shard, column, following_of(shards, at, columns)), shards
        )
        states = read_states(folder)
        retired: tuple[str, ...] = ()
        if not again:
            retired = _retired(manifest, offered, states)
            offered = [record for record in offered if record.name not in retired]
        found, passed = _with_shards(manifest, offered, states)
        note_states(folder, states)
        named = sorted({*manifest.paths, *(str(path) for path in paths)})
        found = replace(
            found,
            paths=tuple(named),
            exclude=tuple(sorted({*manifest.exclude, *exclude})),
            excluded=tuple(sorted({*manifest.excluded, *excluded}, key=natural_key)),
            passed_over=tuple(
                sorted({*_still_aside(manifest.passed_over, paths), *aside}, key=natural_key)
            ),
        )
        if not found.pending:
            # Nothing to read: the index stays as it is, but for what it leaves out.
            same = replace(
                manifest,
                exclude=found.exclude,
                excluded=found.excluded,
                passed_over=found.passed_over,
            )
            if same != manifest:
                publish_manifest(folder, same)
            return Added(same, passed, retired)
        done = index_pending(folder, found, work)
        return Added(done, passed, retired)


def retire(
    index: PathLike, *, shards: Sequence[str] = (), documents: Sequence[str] = ()
) -> Manifest:
    """Let no answer count these shards and documents any more, from the next opening on.

    shards     names as reports write them
    documents  ids as evidence writes them: the corpus' own, else SHARD:ROW; all that have the id
    Raises UsageError when there is none of a name; then nothing is retired.
    """
    folder = local_folder(index)
    with _writing(folder):
        manifest = read_manifest(folder)
        live = {record.name for record in manifest.shards if not record.retired}
        _refuse_unknown("shard", [name for name in shards if name not in live])
        gone = set(shards)
        pairs = read_retired(folder, manifest.retired).pairs
        if documents:
            more = np.array(_places(folder, manifest, documents), np.int64)
            pairs = np.concatenate([pairs, more])
        manifest = replace(
            manifest,
            shards=tuple(
                replace(record, retired=record.retired or record.name in gone)
                for record in manifest.shards
            ),
            pending=tuple(name for name in manifest.pending if name not in gone),
            retired=write_retired(folder, pairs),
        )
        publish_manifest(folder, manifest)
        remove_strays(folder, manifest)
        return manifest


def compact(
    index: PathLike, *, workers: int | None = None, memory: int = DEFAULT_MEMORY
) -> Manifest:
    """Join neighbouring segments, and leave out what is retired. No answer changes.

    Raises UsageError when a build is unfinished, and IndexDamageError.
    """
    folder = local_folder(index)
    Work(workers, memory)
    with _writing(folder):
        manifest = read_manifest(folder)
        if manifest.pending:
            raise UsageError(
                "{}: shards are still to be indexed", folder, hint="finish the build first"
            )
        segments: list[SegmentRecord] = []
        for group in _groups(manifest, memory // 2):
            segments += _compacted(folder, manifest, group)
        if tuple(segments) != manifest.segments:
            manifest = replace(manifest, segments=tuple(segments))
            publish_manifest(folder, manifest)
        remove_strays(folder, manifest)
        return manifest


def _writing(folder: Path) -> AbstractContextManager[None]:
    """The lock of an index that is there: a wrong path must not leave a folder behind."""
    read_manifest(folder)
    return writer_lock(folder)


def _still_aside(folders: Sequence[str], paths: Sequence[PathLike]) -> Iterator[str]:
    """Folders that were passed over, and are not named now."""
    named = [f"/{str(path).rstrip('/')}" for path in paths]
    return (folder for folder in folders if not any(one.endswith(f"/{folder}") for one in named))


def _left(
    manifest: Manifest, shards: Sequence[Shard], exclude: Sequence[str]
) -> tuple[tuple[Shard, ...], tuple[str, ...]]:
    """Those of the shards that are offered, and the names of what is left out on purpose.

    Raises UsageError for a new pattern that fits no shard, or one that is in the index already.
    """
    there = {record.name for record in manifest.shards if not record.retired}
    left, gone = leave_out(shards, exclude)
    if clash := sorted(there.intersection(gone)):
        raise UsageError(
            "shard {} is in the index", Place(clash[0]),
            hint=Statement("retire it first: contam index retire --shard {}", clash[0]),
        )  # fmt: skip
    offered = tuple(shard for shard in left if not is_out(shard, manifest.exclude))
    return offered, (*gone, *(shard.name for shard in left if shard not in offered))


def _with_shards(
    manifest: Manifest, offered: Sequence[ShardRecord], states: States
) -> tuple[Manifest, tuple[str, ...]]:
    """The manifest with all that is new as pending, and the names of what is not new.

    states  of the shards' files; gets those of shards that had to be compared
    """
    records = list(manifest.shards)
    pending = list(manifest.pending)
    passed: list[str] = []
    place_of = {record.name: place for place, record in enumerate(records) if not record.retired}
    known = _by_digest(
        record
        for record in records
        if not record.retired and record.failure is None and record.name not in manifest.pending
    )
    for record in offered:
        place = place_of.get(record.name)
        if _is_known(record, known.get(record.digest, []), states):
            passed.append(record.name)
        elif place is None:
            records.append(record)
            pending.append(record.name)
        elif records[place].failure is not None or record.name in pending:
            records[place] = record
            if record.name not in pending:
                pending.append(record.name)
        else:
            raise IndexMismatchError(
                "shard {} is in the index with other bytes",
                Place(record.name),
                hint=Statement("retire it first: contam index retire --shard {}", record.name),
            )
    return replace(manifest, shards=tuple(records), pending=tuple(pending)), tuple(passed)


def _retired(manifest: Manifest, offered: Sequence[ShardRecord], states: States) -> tuple[str, ...]:
    """Names of offered shards that are in the index as retired ones alone, with the same bytes."""
    live = {record.name for record in manifest.shards if not record.retired}
    gone = _by_digest(record for record in manifest.shards if record.retired)
    return tuple(
        record.name
        for record in offered
        if record.name not in live and _is_known(record, gone.get(record.digest, []), states)
    )


def _by_digest(records: Iterable[ShardRecord]) -> dict[str, list[ShardRecord]]:
    found: dict[str, list[ShardRecord]] = {}
    for record in records:
        found.setdefault(record.digest, []).append(record)
    return found


def _is_known(record: ShardRecord, same_edges: Sequence[ShardRecord], states: States) -> bool:
    """Whether one of the shards with this digest is this one.

    The digest is of a file's size and edges: another file, and one that may have been written to
    since, is compared with every byte of it, and its state is noted if it has them.
    """
    if not same_edges or record.failure is not None:
        return False
    try:
        now = state_at(record.uri)
        known = [state_for(states, record.uri, edge.sha256) for edge in same_edges]
        if any(state is not None and not change_since(state, now) for state in known):
            return True
        whole = file_sha256(replace(shard_of(record), state=now))
    except (OSError, ShardError):
        return False  # reading it will give the reason
    if all(edge.sha256 != whole for edge in same_edges):
        return False
    states[record.uri] = whole, now
    return True


def _places(folder: Path, manifest: Manifest, ids: Sequence[str]) -> list[tuple[int, int]]:
    """Shard and row of every document with one of these ids. Raises UsageError."""
    wanted = list(dict.fromkeys(ids))
    found: list[tuple[int, int]] = []
    seen: set[str] = set()
    for record in manifest.segments:
        segment = Segment(folder, record, manifest.recipe)
        for name, numbers in segment.document_table().numbers_of(wanted).items():
            shards, rows = segment.place_of(numbers)
            live = [not manifest.shards[shard].retired for shard in shards.tolist()]
            places = zip(shards.tolist(), rows.tolist(), strict=True)
            found += [place for place, is_live in zip(places, live, strict=True) if is_live]
            if any(live):
                seen.add(name)
    for name in wanted:
        shard, colon, row = name.rpartition(":")
        if name in seen or not colon or not row.isdecimal():
            continue
        for place, known in enumerate(manifest.shards):
            if known.name == shard and not known.retired and int(row) < known.n_rows:
                found.append((place, int(row)))
                seen.add(name)
    _refuse_unknown("document", [name for name in wanted if name not in seen])
    return found


def _refuse_unknown(thing: str, names: Sequence[str]) -> None:
    if names:
        more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
        raise UsageError(
            "the index has no {} {}{}",
            Public(thing),
            ", ".join(names[:_NAMED]),
            Public(more),
            hint="nothing was retired; `contam index show --json` lists the shards"
            if thing == "shard"
            else ("nothing was retired; document_id in evidence.parquet is what it is called"),
        )


def _groups(manifest: Manifest, budget: int) -> Iterator[list[SegmentRecord]]:
    """Neighbouring segments that fit the memory together, without completely retired ones."""
    group: list[SegmentRecord] = []
    weight = documents = 0
    for record in manifest.segments:
        if all(manifest.shards[span.shard].retired for span in record.spans):
            continue
        mine = _PAIR_BYTES * record.n_entries + _DOCUMENT_BYTES * record.n_documents
        over = weight + mine > budget or documents + record.n_documents > _MOST_DOCUMENTS
        if group and over:
            yield group
            group, weight, documents = [], 0, 0
        group.append(record)
        weight += mine
        documents += record.n_documents
    if group:
        yield group


def _compacted(folder: Path, manifest: Manifest, group: list[SegmentRecord]) -> list[SegmentRecord]:
    """The one segment that replaces a group; the group itself where nothing would be gained."""
    recipe, shards = manifest.recipe, manifest.shards
    retired = read_retired(folder, manifest.retired)
    gone = np.array([shard.retired for shard in shards], np.bool_)
    segments = [Segment(folder, record, recipe) for record in group]
    kept: list[NDArray[np.bool_]] = []
    for segment in segments:
        shard, row = segment.place_of(np.arange(segment.n_documents))
        kept.append(~(gone[shard] | retired.holds(shard, row)))
    name = merged_id(recipe, segments, shards, kept)
    whole = all(mask.all() for mask in kept)
    if len(group) == 1 and (whole or name == group[0].id):
        return group
    return [merge_segments(folder, recipe, segments, shards, kept)]
