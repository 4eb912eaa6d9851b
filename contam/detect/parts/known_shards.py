"""Keep what opening the shards of a corpus told, so that not every worker opens all of them.

Who opens a corpus first writes it beside the parts: digests, columns and chunks, under a digest of
the list of the shards with their stamps. Others read it, and open what is not in it.
"""

from __future__ import annotations

import hashlib
import io
import json
import tempfile
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from contam.corpus.opening import OpenedShard, OpenedShards, collected, map_shards, open_shard
from contam.corpus.tokens import following_of
from contam.detect.parts.mapped import MappedFile, TreeError, write_tree
from contam.detect.parts.pieces import versions
from contam.files.addresses import checked
from contam.files.disk import NOT_THERE
from contam.files.stores import store_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contam.corpus.shards import Shard
    from contam.detect.parts.part_store import PartStore


class KnownShards(NamedTuple):
    """What is known of shards, kept in a store of parts.

    writes  whether what was not known is kept for others
    """

    store: PartStore
    writes: bool = True

    def open(
        self,
        shards: Sequence[Shard],
        text: str | None = None,
        named: Mapping[str, str] | None = None,
    ) -> OpenedShards:
        """What `contam.corpus.opening.open_shards` gives. Raises also OutputError."""
        if self.writes:
            self.store.begin()
        stamps = [_stamp(shard) for shard in shards]
        asked = [versions(), text, dict(named or {}), stamps]
        name = hashlib.sha256(json.dumps(asked).encode()).hexdigest()
        known = self._read(name, len(shards))

        def opened(number: int, shard: Shard) -> OpenedShard:
            one = known[number]
            if one is None or stamps[number] is None:
                told = following_of(shards, number, named or {})
                return open_shard(number, shard, text, told)
            # An object is read in the state that was opened; a file in its state here.
            return one if shard.state is None else replace(one, shard=shard)

        found = map_shards(opened, shards)
        # One without text is looked at each time: no part says later what was read of it.
        kept = [one if one.chunks and one.refused is None else None for one in found]
        is_more = sum(one is not None for one in kept) > sum(one is not None for one in known)
        if is_more and self.writes:
            file = io.BytesIO()
            write_tree(file, tuple(kept))
            self.store.write(name, file.getvalue())
        return collected(found)

    def _read(self, name: str, n_shards: int) -> Sequence[OpenedShard | None]:
        """What is known of each shard; None where nothing is."""
        data = self.store.read(name)
        if data is not None:
            with tempfile.TemporaryFile() as file:
                file.write(data)
                try:
                    found: tuple[OpenedShard | None, ...] = MappedFile(file).read({})
                except TreeError:
                    found = ()
                if len(found) == n_shards:
                    return found
        return [None] * n_shards


def _stamp(shard: Shard) -> list[str] | None:
    """What tells the state of a listed shard on every machine; None where nothing does."""
    if shard.state is not None:
        return None if shard.state == NOT_THERE else [shard.name, shard.format, shard.state.stamp]
    address = checked(shard.uri)
    listed = store_of(address).listed(address)
    return [shard.name, shard.format, shard.uri, listed] if listed else None
