"""Ask a judge about many pairs, some at once, and keep each answer."""

from __future__ import annotations

import time
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Final, Protocol

from contam.client.judges import JudgeError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from contam.audit.review.pairs import PairText
    from contam.client.judges import Judge

    Answered = tuple[PairText, str | None]
    Asking = dict[Future[str | None], PairText]

AT_ONCE: Final = 4

#: Without an answer between them, so many failures end a run.
_MOST_FAILED: Final = 10
#: Answers of so many seconds are lost where the process is killed.
_SAVE_S: Final = 20.0


class Counter(Protocol):
    """Who is told that a pair is done."""

    def advance(self, n: int) -> None:
        """So many more are done."""


@dataclass(slots=True)
class Asked:
    """What came of a run.

    unread   why pairs have no text, for each of them;  failed  why pairs have no answer, likewise
    ended    whether it ended early, because nothing was answered any more
    """

    n_answered: int = 0
    unread: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    ended: bool = False


def ask_all(
    judge: Judge,
    texts: Iterable[PairText],
    keep: Callable[[Sequence[Answered]], None],
    *,
    at_once: int = AT_ONCE,
    progress: Counter | None = None,
) -> Asked:
    """Ask about all texts, `at_once` of them at a time.

    keep  stores answers; it is called now and then, and at the end, however that comes
    """
    done = Asked()
    waiting: list[Answered] = []
    saved = time.monotonic()
    pool = ThreadPoolExecutor(at_once)
    asking: Asking = {}
    source = _readable(texts, done, progress)
    in_a_row = 0
    try:
        while not done.ended:
            for text in islice(source, at_once - len(asking)):
                asking[pool.submit(judge.reply, text)] = text
            if not asking:
                break
            for future in wait(asking, return_when=FIRST_COMPLETED).done:
                text = asking.pop(future)
                try:
                    waiting.append((text, future.result()))
                    in_a_row = 0
                except JudgeError as error:
                    done.failed.append(str(error))
                    in_a_row += 1
                    done.ended |= error.ends_all or in_a_row >= _MOST_FAILED
                if progress is not None:
                    progress.advance(1)
            if time.monotonic() - saved > _SAVE_S:
                done.n_answered += _kept(waiting, keep)
                saved = time.monotonic()
    finally:
        judge.stop()
        pool.shutdown(wait=False, cancel_futures=True)
        done.n_answered += _kept(waiting, keep)
    return done


def _readable(
    texts: Iterable[PairText], done: Asked, progress: Counter | None
) -> Iterator[PairText]:
    for text in texts:
        if text.problem:
            done.unread.append(text.problem)
            if progress is not None:
                progress.advance(1)
        else:
            yield text


def _kept(waiting: list[Answered], keep: Callable[[Sequence[Answered]], None]) -> int:
    """Store what was answered, and forget it; how many these were."""
    n = len(waiting)
    if n:
        keep(waiting)
        waiting.clear()
    return n
