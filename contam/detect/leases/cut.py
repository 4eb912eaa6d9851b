"""Cut a corpus into leases: consecutive chunks that one worker reads and answers for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from contam.corpus.chunks import Chunk

#: Bytes of text of a lease: 3 minutes of work of a core, so that little is lost with a worker.
MOST_BYTES: Final = 16 << 30
#: A part costs a plan's memory and a file: less text is not worth them.
LEAST_BYTES: Final = 512 << 20
#: Leases of a corpus between the two, so that 100 workers end at about the same time.
_WANTED: Final = 256


@dataclass(frozen=True, slots=True)
class Lease:
    """Chunks `first` to `end` (exclusive), with so many bytes of text.

    number  from 1, as commands and files name it
    """

    number: int
    first: int
    end: int
    n_bytes: int


def cut_leases(chunks: Sequence[Chunk], n_bytes: int | None = None) -> tuple[Lease, ...]:
    """All chunks, in order, as leases of about `n_bytes` of text: the same for any workers.

    n_bytes  None takes a 256th of the corpus, but 512 MiB at least and 16 GiB at most
    """
    total = sum(chunk.n_bytes for chunk in chunks)
    size = n_bytes or min(MOST_BYTES, max(LEAST_BYTES, total // _WANTED))
    return tuple(
        Lease(number, first, end, sum(chunk.n_bytes for chunk in chunks[first:end]))
        for number, (first, end) in enumerate(_pieces(chunks, size), 1)
    )


def _pieces(chunks: Sequence[Chunk], size: int) -> Iterator[tuple[int, int]]:
    first, held = 0, 0
    for at, chunk in enumerate(chunks):
        if at > first and held + chunk.n_bytes > size:
            yield first, at
            first, held = at, 0
        held += chunk.n_bytes
    if first < len(chunks):
        yield first, len(chunks)


def share_of(leases: Sequence[Lease], index: int, count: int) -> tuple[Lease, ...]:
    """The leases of one of `count` workers; index from 0. Every `count`-th, so all end alike."""
    return tuple(leases[index::count])
