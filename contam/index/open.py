"""Open an index as a snapshot that writers do not disturb."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

import numpy as np

from contam.corpus.columns import names_of
from contam.corpus.coverage import Coverage, ShardCoverage, ShardFailure
from contam.errors import IndexDamageError, IndexMismatchError, Place, Public, Statement
from contam.files.addresses import Address
from contam.files.natural_order import natural_key
from contam.files.stores import store_of
from contam.index.array_files import reading
from contam.index.blocks import opened_at_once
from contam.index.home import resolve_index
from contam.index.manifest import index_id, read_manifest
from contam.index.recipe import current_normaliser
from contam.index.segment import Segment
from contam.index.states import read_retired, read_states

if TYPE_CHECKING:
    from pathlib import Path

    from contam.index.model import Manifest, Recipe, ShardRecord

_ATTEMPTS: Final = 5


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
        self.segments = tuple(
            opened_at_once(
                folder,
                lambda record: Segment.open(folder, record, manifest.recipe),
                manifest.segments,
            )
        )
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
        units: list[int] = []
        failures: list[ShardFailure] = []
        for place, (name, record) in enumerate(zip(self.names, self.records, strict=True)):
            if record is not None and record.counts:
                read[place] = ShardCoverage.of_counts(record.counts)
            if name in self.manifest.pending:
                pending = Statement("{}: not indexed yet", Place(name))
                failures.append(
                    ShardFailure(
                        place,
                        name,
                        pending,
                        (Statement("run the same build again: it goes on where it stopped"),),
                    )
                )
            elif record is not None and record.failure is not None:
                failures.append(
                    ShardFailure.noted(
                        place, name, record.failure, "repair the shard and add it again"
                    )
                )
            units.append(read[place].units if place in read else 1)
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
