"""Do something with every shard of a corpus, many at a time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contam.corpus.shards import Shard

Found = TypeVar("Found")

#: Requests to an object store that wait at a time; files of a disk need fewer.
_MOST_THREADS: Final = 32
#: Fewer shards are not worth a thread.
_SHARDS_A_THREAD: Final = 16


def of_each(work: Callable[[int, Shard], Found], shards: Sequence[Shard]) -> list[Found]:
    """What `work` gives for the number of each shard and the shard, in their order.

    Called from several threads where there are many shards. Raises what `work` raises for the first
    shard for which it does.
    """
    n_threads = min(_MOST_THREADS, len(shards) // _SHARDS_A_THREAD)
    if n_threads <= 1:
        return [work(number, shard) for number, shard in enumerate(shards)]
    with ThreadPoolExecutor(n_threads, thread_name_prefix="contam-list") as pool:
        try:
            return list(pool.map(work, range(len(shards)), shards))
        finally:
            pool.shutdown(cancel_futures=True)
