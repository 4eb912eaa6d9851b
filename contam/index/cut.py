"""Cut the shards of an index into groups that can be indexed apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contam.index.model import ShardRecord

#: Bytes of the files of a group: with most codecs about three times as much text.
MOST_BYTES: Final = 8 << 30
LEAST_BYTES: Final = 256 << 20
#: Groups of a corpus between the two, so that 100 machines end at about the same time.
_WANTED: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Shards `first` to `end` (exclusive), by their places in the manifest: no segment leaves them.

    number  from 1, as commands and files name it
    """

    number: int
    first: int
    end: int


def cut_groups(shards: Sequence[ShardRecord]) -> tuple[Group, ...]:
    """All shards, in order, in groups: by their sizes alone, so the same on any machines."""
    size = min(MOST_BYTES, max(LEAST_BYTES, sum(one.size_bytes for one in shards) // _WANTED))
    ends: list[int] = []
    held = 0
    for place, shard in enumerate(shards):
        if held and held + shard.size_bytes > size:
            ends.append(place)
            held = 0
        held += shard.size_bytes
    if shards:
        ends.append(len(shards))
    return tuple(
        Group(number=number, first=first, end=end)
        for number, (first, end) in enumerate(zip([0, *ends], ends, strict=False), 1)
    )
