"""Hold a block of documents as two flat arrays."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from contam.files.listed import wide_encoding

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

MOST_ROWS = 1 << 20
"""Documents of one batch at most, however short: an index numbers them in few bits."""

_SPACE = 32
#: Fewer bytes may hold NULs for any reason, and are no text in which anything could be found.
_SHORTEST_WIDE = 16


class TextBlock(NamedTuple):
    """Consecutive documents of one shard, as valid UTF-8.

    data               uint8[total], read-only
    offsets            int64[n + 1], read-only; document i is data[offsets[i]:offsets[i + 1]]
    n_null             documents without a text (zero length here)
    n_undecodable      documents in which bytes that are not UTF-8 became U+FFFD
    undecodable_bytes  how many bytes were replaced
    moved              columns that were read for documents without a text in the shard's first
                       one, and for how many
    n_elsewhere        documents left without a text although another column holds one
    n_blank            blank lines between documents, which keep a row each (zero length here)
    records            names and values that each document was read from, None for one that is not
                       kept; empty where the format reads no whole records
    """

    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    n_null: int
    n_undecodable: int
    undecodable_bytes: int
    moved: tuple[tuple[str, int], ...] = ()
    n_elsewhere: int = 0
    n_blank: int = 0
    records: Sequence[Mapping[str, object] | None] = ()


def frozen(array: NDArray[np.generic]) -> None:
    """Make `array` read-only: compiled kernels then see one array type, mapped or not."""
    array.flags.writeable = False


def block_of(
    texts: list[bytes], *, n_null: int = 0, n_undecodable: int = 0, undecodable_bytes: int = 0
) -> TextBlock:
    """Join valid UTF-8 texts into one block."""
    data = np.frombuffer(b"".join(texts), np.uint8)
    offsets = np.zeros(len(texts) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)), out=offsets[1:])
    frozen(data)
    frozen(offsets)
    return TextBlock(data, offsets, n_null, n_undecodable, undecodable_bytes)


def repaired(raw: bytes) -> tuple[bytes, int]:
    """Return `raw` with every byte that is not UTF-8 replaced by U+FFFD, and their number.

    Of text in UTF-16 these are its NULs, too, which are valid but stand between the letters.
    """
    if len(raw) >= _SHORTEST_WIDE and wide_encoding(raw):
        raw = raw.replace(b"\0", b"\xff")
    try:
        raw.decode()
    except UnicodeDecodeError:
        n_valid = len(raw.decode("utf-8", "ignore").encode())
        return raw.decode("utf-8", "replace").encode(), len(raw) - n_valid
    return raw, 0


def texts_of(block: TextBlock) -> list[str]:
    """Return the documents of a block as strings."""
    whole = block.data.tobytes()
    bounds = block.offsets.tolist()
    return [whole[begin:end].decode() for begin, end in pairwise(bounds)]


def blank_rows(block: TextBlock) -> NDArray[np.int64]:
    """Return the documents without a text: of length zero, or nothing but ASCII white space."""
    begins, ends = block.offsets[:-1], block.offsets[1:]
    blank = begins == ends
    if len(block.data):
        # Text hardly ever begins with white space: few documents are scanned to their end.
        first = block.data[np.minimum(begins, len(block.data) - 1)]
        for i in np.flatnonzero(~blank & (first <= _SPACE)).tolist():
            blank[i] = block.data[begins[i] : ends[i]].tobytes().isspace()
    return np.flatnonzero(blank)


def replaced(block: TextBlock, texts: Mapping[int, bytes]) -> TextBlock:
    """Put other texts in place of some documents; the counts stay those of `block`."""
    parts: list[bytes] = []
    done = 0
    lengths = np.diff(block.offsets)
    for i in sorted(texts):
        parts += (block.data[block.offsets[done] : block.offsets[i]].tobytes(), texts[i])
        lengths[i] = len(texts[i])
        done = i + 1
    parts.append(block.data[block.offsets[done] :].tobytes())
    data = np.frombuffer(b"".join(parts), np.uint8)
    offsets = np.zeros_like(block.offsets)
    np.cumsum(lengths, out=offsets[1:])
    frozen(data)
    frozen(offsets)
    return block._replace(data=data, offsets=offsets)


def pieces(block: TextBlock, max_bytes: int) -> list[tuple[int, int]]:
    """Cut a block into runs `[begin, end)` of at most `max_bytes` of text and `MOST_ROWS` rows.

    A document above the limit gets a run of its own: documents are never cut.
    """
    n = len(block.offsets) - 1
    if n == 0 or (block.offsets[-1] <= max_bytes and n <= MOST_ROWS):
        return [(0, n)] if n else []
    runs = []
    begin = 0
    while begin < n:
        limit = block.offsets[begin] + max_bytes
        end = int(np.searchsorted(block.offsets, limit, side="right")) - 1
        end = min(max(end, begin + 1), begin + MOST_ROWS, n)
        runs.append((begin, end))
        begin = end
    return runs
