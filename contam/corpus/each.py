"""Do something with every shard of a corpus, many at a time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, TypeVar

from contam.corpus.coverage import ShardFailure
from contam.errors import ShardError
from contam.files.addresses import is_address

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from contam.corpus.shards import Shard

Found = TypeVar("Found")

#: Requests to an object store that wait at a time; files of a disk need fewer.
_MOST_THREADS: Final = 32
#: Fewer files are not worth a thread; an object is, since its store answers late.
_FILES_A_THREAD: Final = 16


def of_each(
    work: Callable[[int, Shard], Found],
    shards: Sequence[Shard],
    numbers: Sequence[int] | None = None,
) -> list[Found]:
    """What `work` gives for the number of each shard and the shard, in their order.

    numbers  those of the shards to work on, in the order wanted; None takes all

    Called from several threads where there are many shards. Raises what `work` raises for the first
    shard for which it does.
    """
    numbers = range(len(shards)) if numbers is None else numbers
    chosen = [shards[number] for number in numbers]
    per_thread = 1 if any(is_address(shard.uri) for shard in chosen) else _FILES_A_THREAD
    n_threads = min(_MOST_THREADS, len(chosen) // per_thread)
    if n_threads <= 1:
        return [work(number, shard) for number, shard in zip(numbers, chosen, strict=True)]
    with ThreadPoolExecutor(n_threads, thread_name_prefix="contam-list") as pool:
        try:
            return list(pool.map(work, numbers, chosen))
        finally:
            pool.shutdown(cancel_futures=True)


def of_each_readable(
    work: Callable[[int, Shard], Found], shards: Sequence[Shard], numbers: Sequence[int]
) -> tuple[dict[int, Found], list[ShardFailure]]:
    """What `of_each` gives, by number, and the shards for which `work` raises ShardError."""

    def tried(number: int, shard: Shard) -> Found | ShardFailure:
        try:
            return work(number, shard)
        except ShardError as error:
            return ShardFailure.of(number, shard.name, error)

    found, failures = {}, []
    for number, one in zip(numbers, of_each(tried, shards, numbers), strict=True):
        if isinstance(one, ShardFailure):
            failures.append(one)
        else:
            found[number] = one
    return found, failures
