"""Choose how much text a service caches by default."""

from __future__ import annotations

from typing import Final

from contam.config import MIB

_LEAST: Final = 256 * MIB
#: A gigabyte of corpus fits twice; of a larger one most text is never asked for again.
_MOST: Final = 2048 * MIB


def text_cache_bytes(cache_bytes: int, n_indexes: int, usable: int) -> int:
    """Bytes of text that each index keeps.

    cache_bytes  as the operator says; 0 leaves it to us: an eighth of `usable` bytes for all
                 indexes together, and for each at least 256 MiB and at most 2 GiB
    """
    return cache_bytes or max(_LEAST, min(_MOST, usable // 8 // max(1, n_indexes)))
