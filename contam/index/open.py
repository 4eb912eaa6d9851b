"""Find indexes by name, and open one as a snapshot that writers do not disturb."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from contam.corpus.columns import names_of
from contam.corpus.coverage import Coverage, ShardCoverage, ShardFailure
from contam.errors import (
    IndexDamageError,
    IndexMismatchError,
    Place,
    Public,
    Statement,
    UsageError,
)
from contam.files.addresses import Address, is_address, refuse_address
from contam.files.natural_order import natural_key
from contam.files.stores import place, store_of
from contam.index.array_files import reading
from contam.index.blocks import opened_at_once
from contam.index.manifest import index_id, read_manifest
from contam.index.recipe import current_normaliser
from contam.index.segment import Segment
from contam.index.states import read_retired, read_states

if TYPE_CHECKING:
    from contam.index.model import Manifest, Recipe, SegmentRecord, ShardRecord

_ATTEMPTS: Final = 5
_COPY_AFTERWARDS: Final = (
    "do that on this machine, and copy the folder to the store: it is read there"
)
_CHECKOUT: Final = Path(__file__).parents[2] / "indexes"


def index_home(home: str | Path | None = None) -> Path:
    """The folder of all indexes.

    `home` if it is given, else CONTAM_HOME, else `indexes/` of a checkout, else
    the user's data folder. It need not exist yet. Raises UsageError when there is no such folder
    to name.
    """
    if home:
        return Path(home)
    if named := os.environ.get("CONTAM_HOME"):
        return Path(named)
    if (_CHECKOUT / "README.md").is_file() and os.access(_CHECKOUT, os.W_OK):
        return _CHECKOUT
    if base := os.environ.get("XDG_DATA_HOME"):
        return Path(base) / "contam" / "indexes"
    try:
        return Path.home() / ".local" / "share" / "contam" / "indexes"
    except RuntimeError as error:
        raise UsageError(
            "there is no home for indexes", hint="name one with --home or CONTAM_HOME"
        ) from error


def local_folder(index: str | Path) -> Path:
    """The folder of an index that is written or verified. Raises UsageError for an address."""
    refuse_address(index, "an index that is written or verified", _COPY_AFTERWARDS)
    return Path(index)


def resolve_index(
    name_or_path: str | Path, home: str | Path | None = None, *, to_write: bool = False
) -> Path:
    """The folder of an index, or its address where it is only read. It need not exist yet.

    A bare name is a folder in the home of indexes; whatever has a separator, or is a folder in the
    current one and not in the home, is a path. Raises UsageError for an empty name, and for an
    address `to_write`.
    """
    text = os.fspath(name_or_path)
    if not text:
        raise UsageError("an index needs a name or a path", hint="give --index NAME or --index DIR")
    if is_address(name_or_path):
        return local_folder(name_or_path) if to_write else place(name_or_path)
    path = Path(text)
    if os.sep in text or text in {".", ".."}:
        return path
    named = index_home(home) / path
    return path if path.is_dir() and not named.is_dir() else named


class Index:
    """One state of an index, with everything mapped that a reader needs of it.

    folder     its path;  id  the name of this state of it in answers
    manifest   what it consists of
    segments   its segments, in the manifest's order
    retired    documents that no answer counts
    states     of the shards' files when they had the bytes that were indexed
    names      the shards that count, in the order in which a scan would number them
    records    what is known of each of them; None when the build has not read it yet
    number_of  int32[shards of the manifest], place in `names`; -1 when the shard is retired
    """

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        check_normaliser(folder, manifest.recipe)
        self.folder = folder
        self.manifest = manifest
        self.id = index_id(manifest)

        def opened(record: SegmentRecord) -> Segment:
            return Segment(folder, record, manifest.recipe)

        self.segments = tuple(opened_at_once(folder, opened, manifest.segments))
        self.retired = read_retired(folder, manifest.retired)
        self.states = read_states(folder)
        known = {shard.name: shard for shard in manifest.shards if not shard.retired}
        self.names = tuple(sorted({*known, *manifest.pending}, key=natural_key))
        self.records: tuple[ShardRecord | None, ...] = tuple(map(known.get, self.names))
        places = {name: place for place, name in enumerate(self.names)}
        self.number_of = np.array(
            [-1 if shard.retired else places[shard.name] for shard in manifest.shards], np.int32
        )

    @classmethod
    def open(cls, name_or_path: str | Path, *, home: str | Path | None = None) -> Index:
        """Open an index by its path, or by its name in the home of indexes.

        Raises UsageError when there is none, IndexMismatchError when this version of contam cannot
        read it, IndexDamageError when a file is not as it was written, IndexUnreachableError when
        its store does not answer.
        """
        folder = resolve_index(name_or_path, home)
        if isinstance(folder, Address):
            with reading(folder):
                folder = cast("Path", store_of(folder).pinned(folder))
        manifest = read_manifest(folder)
        for _ in range(_ATTEMPTS):
            try:
                return cls(folder, manifest)
            except IndexDamageError:
                # A writer may have replaced the segments between our two looks.
                before, manifest = manifest, read_manifest(folder)
                if manifest == before:
                    raise
        return cls(folder, manifest)

    @property
    def recipe(self) -> Recipe:
        """What the index holds of its corpus."""
        return self.manifest.recipe

    @property
    def guarantee(self) -> int:
        """Tokens of the shortest run that is always found."""
        return self.recipe.guarantee

    def coverage(self) -> Coverage:
        """How much of the corpus the index answers for: what failed or is pending was not read."""
        read: dict[int, ShardCoverage] = {}
        failures: list[ShardFailure] = []
        for number, (name, record) in enumerate(zip(self.names, self.records, strict=True)):
            if record is not None and record.counts:
                read[number] = ShardCoverage.of_counts(record.counts)
            if name in self.manifest.pending:
                pending = Statement("{}: not indexed yet", Place(name))
                way_out = Statement("run the same build again: it goes on where it stopped")
                failures.append(ShardFailure(number, name, pending, (way_out,)))
            elif record is not None and record.failure is not None:
                repair = "repair the shard and add it again"
                failures.append(ShardFailure.noted(number, name, record.failure, repair))
        units = [read[at].units if at in read else 1 for at in range(len(self.names))]
        return Coverage(
            self.names,
            tuple(units),
            read,
            tuple(failures),
            self.manifest.excluded,
            passed_over=self.manifest.passed_over,
            unread_columns=names_of(one.unread for one in self.manifest.shards if not one.retired),
        )


def check_normaliser(folder: Path, recipe: Recipe) -> None:
    """Raise IndexMismatchError when this contam makes other tokens than the index has."""
    expected = current_normaliser(recipe.unit)
    if recipe.normaliser != expected:
        raise IndexMismatchError(
            "{}: made with the normaliser {}, this version of contam has {}: the same "
            "text would be other tokens",
            folder,
            Public(recipe.normaliser),
            Public(expected),
            hint="build an index of its corpus instead: contam index build",
        )
