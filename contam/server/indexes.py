"""Hold the indexes of a service open: lend snapshots to requests, watch their files, and reload."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import threading
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from contam.benchmark.items import BenchItem
from contam.config import MIB
from contam.detect.indexed.index_reader import IndexReader, quote
from contam.detect.indexed.indexes import IndexSet
from contam.detect.policies.policy import get_policy, list_policies
from contam.detect.query import refuse_unanswerable
from contam.errors import ConfigError, IndexDamageError, IndexMismatchError, UsageError
from contam.files.addresses import Address, is_address
from contam.files.stores import place, real
from contam.index.blocks import use_cache
from contam.index.manifest import SEGMENTS, index_id, read_manifest
from contam.index.open import resolve_index
from contam.kernels.candidates import SHUT
from contam.memory import usable_bytes
from contam.server.problems import RequestError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from contam.config import Settings


_LEAST: Final = 256 * MIB
#: A gigabyte of corpus fits twice; of a larger one most text is never asked for again.
_MOST: Final = 2048 * MIB


def text_bytes(said: int, n_indexes: int, usable: int) -> int:
    """Bytes of text that each index keeps.

    said  by the operator; 0 leaves it to us: an eighth of `usable` bytes for all indexes together,
          and for each at least 256 MiB and at most 2 GiB
    """
    return said or max(_LEAST, min(_MOST, usable // 8 // max(1, n_indexes)))


Stamp = tuple[int, int, int, int, int]


@dataclass(frozen=True, slots=True)
class Watched:
    """Files as they were before anything was read from them.

    digests  SHA-256 of each as the manifest has it
    states   of each index, by its manifest
    """

    stamps: dict[str, Stamp]
    digests: dict[str, str]
    states: tuple[str, ...]

    @classmethod
    def of(cls, folders: Iterable[Path]) -> Watched:
        """The files of the segments below these folders of indexes.

        Raises UsageError or IndexDamageError when one has no manifest that can be read.
        """
        stamps: dict[str, Stamp] = {}
        digests: dict[str, str] = {}
        states = []
        for folder in folders:
            manifest = read_manifest(folder)
            states.append(index_id(manifest))
            for segment in manifest.segments:
                for file in segment.files:
                    path = folder / SEGMENTS / segment.id / file.name
                    digests[str(path)] = file.sha256
                    digests[str(path.with_suffix(".crc"))] = file.checks
                if isinstance(folder, Address):
                    continue  # what is fetched of it is on this disk, and was compared
                # Others may be written just now.
                for path in (folder / SEGMENTS / segment.id).glob("*"):
                    stamp = stamp_of(str(path))
                    if stamp is not None:
                        stamps[str(path)] = stamp
        return cls(stamps, digests, tuple(states))

    def check(self) -> None:
        """Make sure that nobody has written into them. Raises IndexDamageError.

        A file of which only the time of its last change is another is read whole: its rights or
        links may have changed, or somebody wrote into it and set the other time back.
        """
        for path, before in list(self.stamps.items()):
            now = stamp_of(path)
            if now is None or now == before or now[:2] != before[:2]:
                continue
            if now[:-1] != before[:-1] or not self._is_whole(path):
                raise IndexDamageError(
                    f"{path} was written to while it was in use",
                    file=path,
                    hint="restore the index, then reload it: POST /v1/indexes/NAME/reload",
                )
            self.stamps[path] = now

    def _is_whole(self, path: str) -> bool:
        try:
            with Path(path).open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest() == self.digests.get(path)
        except OSError:
            return False


def stamp_of(path: str) -> Stamp | None:
    """What another file, or a change of this one, changes; None for a file that is not there."""
    try:
        found = os.stat(path)  # noqa: PTH116 - a path object costs as much as the call
    except OSError:
        return None
    return (
        *(found.st_dev, found.st_ino, found.st_size),
        *(found.st_mtime_ns, found.st_ctime_ns),
    )


_ABSENT: Final = "seven small kites flew over the old harbour wall before the rain came in"
_LEAST_TOKENS: Final = 60
_CHARACTERS: Final = 2000


def probe(opened: IndexSet, reader: IndexReader) -> None:
    """Ask for a text that is there and for one that hardly is."""
    items = [BenchItem(benchmark="probe", split="", item_id="absent", question=_ABSENT)]
    text = next(_texts(opened), "")
    third = len(text) // 3
    if third:
        items.append(
            BenchItem(
                benchmark="probe",
                split="",
                item_id="present",
                passage=text[:third],
                question=text[third : 2 * third],
                choices=(text[2 * third : -third // 2], text[-third // 2 :]),
                answer=text[-third // 2 :],
            )
        )
    policies = list(answerable(opened))
    reader.check(items, policies=policies, max_evidence=1)
    reader.check(items[-1], policies=policies[:1])


def answerable(opened: IndexSet) -> Iterator[str]:
    """The policies that these indexes can answer."""
    for spec in list_policies():
        try:
            refuse_unanswerable([get_policy(spec.id)], opened.recipe)
        except IndexMismatchError:
            continue
        yield spec.id


def _texts(opened: IndexSet) -> Iterator[str]:
    """The beginning of a document of each segment that can be read."""
    for part in opened.parts:
        tokens = part.segment.arrays["doc_tokens"].check_all()
        counted = (tokens >= _LEAST_TOKENS) & (part.state != SHUT)
        for number in np.flatnonzero(counted)[:1].tolist():
            shard, row = opened.place_of(part, np.array([number], np.int64))
            place = (opened.names[int(shard[0])], int(row[0]))
            if text := quote(opened, [place]).get(place):
                yield text[:_CHARACTERS]


NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
"""What may be part of an address as the name of something that is served."""

_MOST_GROUPS: Final = 4


@dataclass(frozen=True, slots=True, eq=False)
class IndexSnapshot:
    """Some indexes as one, in one state: whoever holds it is not disturbed by a reload.

    names    as requests name them;  folders  of each;  states  of each, as answers name them
    opened   what `reader` reads from;  files  those of the indexes, as they were when opened
    """

    names: tuple[str, ...]
    folders: tuple[Path, ...]
    states: tuple[str, ...]
    opened: IndexSet
    reader: IndexReader
    files: Watched


class IndexRegistry:
    """Opens every index of the settings under a name, alone and all together.

    A name is that of the folder, or NAME of `NAME=DIR`. Several threads may use one.
    """

    def __init__(self, folders: dict[str, Path], corpus: Sequence[str], n_text_bytes: int) -> None:
        self._folders = folders
        self._corpus = tuple(corpus) or None
        self._text_bytes = n_text_bytes
        self._lock = threading.Lock()
        self._opening = threading.Lock()
        self._snapshots: dict[str, IndexSnapshot] = {}
        self._groups: OrderedDict[tuple[str, ...], IndexSnapshot] = OrderedDict()
        self._damage: dict[str, IndexDamageError] = {}

    @classmethod
    def open(cls, settings: Settings) -> IndexRegistry:
        """Open, probe and warm up all indexes. Raises ContamError subclasses."""
        refuse_nothing(settings)
        folders = named_folders(settings.index, settings.home)
        use_cache(settings.cache_bytes, block_folder(settings))
        n_bytes = text_bytes(settings.text_bytes, len(folders), usable_bytes())
        registry = cls(folders, settings.corpus, n_bytes)
        for name in registry.names:
            registry._snapshots[name] = registry._open((name,))
        return registry

    @property
    def names(self) -> tuple[str, ...]:
        """What requests call the indexes, in the order of the settings."""
        return tuple(self._folders)

    def chosen(self, names: Sequence[str] | None) -> tuple[str, ...]:
        """These names once each, in the order of the settings; all for None or none.

        Raises RequestError, 404, for a name that is not served.
        """
        for name in names or ():
            if name not in self._folders:
                raise RequestError(
                    404, "no such index", code="no-index", hint="GET /v1/indexes lists them",
                )  # fmt: skip
        return tuple(name for name in self._folders if not names or name in names)

    @contextlib.contextmanager
    def snapshot(self, names: Sequence[str] | None = None) -> Iterator[IndexSnapshot]:
        """These indexes as one, in their present state, for as long as the block runs.

        Raises RequestError, 404, for an unknown name, IndexMismatchError when they cannot answer
        as one, and IndexDamageError, at the end of the block at the latest, when somebody wrote
        into their files: nothing that was read within it may be used then.
        """
        chosen = self.chosen(names)
        snapshot = self._snapshots[chosen[0]] if len(chosen) == 1 else self._group(chosen)
        damage = next((self._damage[name] for name in chosen if name in self._damage), None)
        if damage is not None:
            # Of a file that was cut, a look behind its end would end the process.
            raise IndexDamageError(damage.statement, file=damage.file, hint=damage.hints)
        try:
            yield snapshot
            snapshot.files.check()
        except IndexDamageError as error:
            self._note_damage(snapshot, error)
            raise

    def reload(self, name: str) -> IndexSnapshot:
        """Open an index anew, and hand it to all requests from now on.

        Requests that hold the state before end with it. Raises RequestError, 404, for an unknown
        name, and ContamError subclasses when it cannot be opened: then all stays as it was.
        """
        (chosen,) = self.chosen([name])
        with self._opening:
            try:
                fresh = self._open((chosen,))
            except UsageError as error:
                # Whoever asked named an index that is served: it is its folder that is not there.
                raise IndexDamageError(
                    error.statement, file=str(self._folders[chosen]), hint=error.hints
                ) from error
            with self._lock:
                self._snapshots[chosen] = fresh
                self._damage.pop(chosen, None)
                for group in [group for group in self._groups if chosen in group]:
                    del self._groups[group]
        return fresh

    @property
    def damaged(self) -> tuple[str, ...]:
        """Names of the indexes that do not answer, because files of theirs are damaged."""
        return tuple(self._damage)

    def look(self) -> None:
        """See whether files of the indexes, or shards of their corpora, have changed since."""
        with self._lock:
            groups = list(self._groups.values())
        for name, snapshot in list(self._snapshots.items()):
            try:
                snapshot.files.check()
            except IndexDamageError as error:
                with self._lock:
                    if self._snapshots[name] is snapshot:
                        self._damage[name] = error
        for snapshot in (*self._snapshots.values(), *groups):
            snapshot.opened.check_shards()
            snapshot.opened.look_again()

    def _note_damage(self, snapshot: IndexSnapshot, error: IndexDamageError) -> None:
        """Let the indexes of a snapshot answer nothing more, unless they were opened anew since."""
        of_file = [
            name
            for name, folder in zip(snapshot.names, snapshot.folders, strict=True)
            if place(error.file).is_relative_to(folder)
        ]
        with self._lock:
            held = self._snapshots if len(snapshot.names) == 1 else self._groups
            if snapshot in held.values():
                self._damage.update(dict.fromkeys(of_file or snapshot.names, error))

    def changed(self) -> list[str]:
        """Names of the indexes whose folder is in another state than the one that answers.

        One whose state cannot be read now is not among them: what is open goes on to answer.
        """
        found = []
        for name, snapshot in list(self._snapshots.items()):
            with contextlib.suppress(Exception):
                if (index_id(read_manifest(self._folders[name])),) != snapshot.states:
                    found.append(name)
        return found

    def _group(self, chosen: tuple[str, ...]) -> IndexSnapshot:
        with self._lock:
            found = self._groups.get(chosen)
            if found is not None:
                self._groups.move_to_end(chosen)
                return found
        with self._opening:
            found = self._groups.get(chosen)
            if found is None:
                found = self._open(chosen)
                with self._lock:
                    self._groups[chosen] = found
                    while len(self._groups) > _MOST_GROUPS:
                        self._groups.popitem(last=False)
        return found

    def _open(self, names: tuple[str, ...]) -> IndexSnapshot:
        folders = tuple(self._folders[name] for name in names)
        while True:
            # Before anything is read: what is written from now on is noticed.
            files = Watched.of(folders)
            opened = IndexSet.open(folders, corpus=self._corpus, text_bytes=self._text_bytes)
            reader = IndexReader(opened)
            if sorted(reader.ids) == sorted(files.states):
                break
            # Another state was published in between, with segments that are not watched.
        probe(opened, reader)
        return IndexSnapshot(names, folders, reader.ids, opened, reader, files)


def block_folder(settings: Settings) -> Path:
    """Where the service and its jobs keep blocks of indexes in stores."""
    return Path(settings.data, "blocks").resolve()


def refuse_nothing(settings: Settings) -> None:
    """Raise ConfigError where a service would have no index."""
    if not settings.index:
        raise ConfigError("there is no index to serve", hint="give --index DIR")


def named_folders(index: Sequence[str], home: str | None) -> dict[str, Path]:
    """Name -> folder of indexes given as `DIR`, `NAME` (in the home of indexes) or `NAME=DIR`.

    Raises ConfigError when two have one name, or a name fits no address.
    """
    found: dict[str, Path] = {}
    for text in index:
        name, equals, where = text.partition("=")
        if not equals or is_address(text) or Path(text).exists():
            name, where = "", text
        folder = resolve_index(where, home)
        name = name or real(folder).name
        if not NAME.fullmatch(name):
            raise ConfigError(
                f"an index cannot be served under the name {name!r}",
                hint="give it one of letters, digits, dots and dashes: --index NAME=DIR",
            )
        if name in found:
            raise ConfigError(
                f"two indexes have the name {name!r}", hint="name them: --index NAME=DIR"
            )
        found[name] = folder
    return found
