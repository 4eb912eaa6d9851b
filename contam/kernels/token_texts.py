"""Write the text of token ids, from a table of the bytes of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from contam.kernels._jit import int64, kernel
from contam.kernels.bits import store8

if TYPE_CHECKING:
    from contam.kernels._jit import Int32s, Int64s, Uint8s, Uint32s, Uint64s

#: In place of a length: a special token, which ends what stands before it, and an id without any.
BREAK: Final = -1
MISSING: Final = -2
#: Bytes of a token that are copied at once.
HEAD: Final = 16
_HALF: Final = 8
_SPACE: Final = 32
_LINE_FEED: Final = 10


class TokenTable(NamedTuple):
    """The bytes of every id.

    length  int32[ids], or BREAK or MISSING
    head    uint64[ids, 2], the first HEAD bytes of each, little endian, zeros behind
    start   int64[ids], where its bytes begin in `data`, uint8[n]
    """

    length: Int32s
    head: Uint64s
    start: Int64s
    data: Uint8s


@kernel
def measure_texts(ids: Uint32s, table: TokenTable) -> tuple[int, int]:
    """How many bytes `write_texts` needs at most, and the first place of an unknown id, or -1."""
    length = table.length
    total = int64(0)
    for i in range(ids.shape[0]):
        if ids[i] >= length.shape[0] or length[ids[i]] == MISSING:
            return total, i
        total += max(int64(1), int64(length[ids[i]]))
    return total + HEAD, -1


@kernel
def write_texts(
    ids: Uint32s,
    offsets: Int64s,
    table: TokenTable,
    strips: bool,
    out: Uint8s,
    bounds: Int64s,
    where: Int64s,
) -> None:
    """Write the texts of documents one behind the other.

    ids      all of them known; document i is ids[offsets[i] : offsets[i + 1]]
    strips   leave out a space at the beginning of a document
    out      uint8[n], as long as `measure_texts` says
    bounds   int64[documents + 1], gets where each text begins, and the end of the last
    where    int64[tokens + 1], gets where each token begins; of length 0, nothing

    A special token is a line feed, and nothing at the beginning and the end of a document.
    """
    at = int64(0)
    told = where.shape[0] > 0
    for document in range(offsets.shape[0] - 1):
        first = at
        spoken = at
        fresh = True
        bounds[document] = first
        for i in range(offsets[document], offsets[document + 1]):
            if told:
                where[i] = at
            token = ids[i]
            size = int64(table.length[token])
            if size == BREAK:
                if at > first:
                    out[at] = _LINE_FEED
                    at += 1
                continue
            begin = table.start[token]
            is_first = fresh and size > 0
            fresh = fresh and size == 0
            if strips and is_first and table.data[begin] == _SPACE:
                for k in range(1, size):
                    out[at + k - 1] = table.data[begin + k]
                at += size - 1
                spoken = at
                continue
            store8(out, at, table.head[token, 0])
            if size > _HALF:
                store8(out, at + _HALF, table.head[token, 1])
                for k in range(HEAD, size):
                    out[at + k] = table.data[begin + k]
            at += size
            spoken = at
        at = spoken
    bounds[offsets.shape[0] - 1] = at
    if told:
        where[ids.shape[0]] = at
