"""Hits of one document -> maximal runs of equal tokens, each found once, at its first token."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from contam.kernels._jit import kernel
from contam.kernels.plan import PlanArrays

#: Columns of a run: part number, first token in the part, first token in the document, length.
RUN_PART = 0
RUN_ITEM = 1
RUN_DOC = 2
RUN_LENGTH = 3
RUN_COLUMNS = 4


@kernel
def grow_rows(rows: NDArray[np.int32], n_used: int) -> NDArray[np.int32]:
    """`rows` with twice the room, the first n_used rows kept."""
    larger = np.empty((2 * rows.shape[0] + 16, rows.shape[1]), rows.dtype)
    larger[:n_used] = rows[:n_used]
    return larger


@kernel
def find_runs(
    doc: tuple[NDArray[np.uint64], int],
    hits: tuple[NDArray[np.int32], NDArray[np.int32], int],
    seed: int,
    min_run: int,
    plan: PlanArrays,
    last_run: NDArray[np.int32],
    runs: NDArray[np.int32],
) -> tuple[NDArray[np.int32], int]:
    """Maximal runs that the document shares with any part, each found at its first token.

    doc       (token hashes of the document, how many)
    hits      (index of the gram in the document, gram number, how many), ascending by index
    last_run  int32[parts], scratch; holds anything
    runs      int32[room, RUN_COLUMNS], scratch; replaced by a larger one when it fills up
    return    the runs and their number, by document position
    Every run of min_run tokens is there, and every run of `seed` tokens that holds a gram few
    items share or fills a short part; runs of fewer than min_run tokens of common grams alone
    are left out.  A run of a periodic text that overlaps the one before it, with the same first
    item token and no longer, is the same occurrence and is left out.
    """
    hit_at, hit_gram, n_hits = hits
    n = 0
    streak_end = 0
    streak = 0
    for h in range(n_hits):
        if h == streak_end:
            while streak_end < n_hits and hit_at[streak_end] - hit_at[h] == streak_end - h:
                streak_end += 1
            streak = streak_end - h
        gram = hit_gram[h]
        lo, hi = plan.gram_start[gram], plan.gram_start[gram + 1]
        common = plan.gram_common[gram]
        if common and streak + seed - 1 < min_run:
            hi = lo + plan.gram_short[gram]
        for j in range(lo, hi):
            least = min_run if common and j >= lo + plan.gram_short[gram] else seed
            place = (plan.place[j], plan.place_part[j], least)
            runs, n = add_run(
                doc, np.int64(hit_at[h]), place, (seed, min_run), plan, last_run, runs, n
            )
    return runs, n


@kernel
def add_run(
    doc: tuple[NDArray[np.uint64], int],
    at: int,
    place: tuple[int, int, int],
    lengths: tuple[int, int],
    plan: PlanArrays,
    last_run: NDArray[np.int32],
    runs: NDArray[np.int32],
    n: int,
) -> tuple[NDArray[np.int32], int]:
    """Append the run that starts at document token `at` and the item's place, if one starts there.

    place    (index of the item token, its part, tokens below which the run is left out)
    lengths  (seed, min_run)
    return  the runs, perhaps in a larger array, and their number
    """
    words, n_doc = doc
    seed, min_run = lengths
    where, part, least = place
    token = plan.token
    first = plan.part_start[part]
    back = 0
    if least > seed and where > first and at > 0 and token[where - 1] == words[at - 1]:
        # A run of min_run tokens was added at its own start.
        return runs, n
    while where - back > first and at > back and token[where - back - 1] == words[at - back - 1]:
        # It started earlier, and was added there unless only common grams lie in between.
        if not plan.common_at[where - back - 1] or back >= min_run:
            return runs, n
        back += 1
    most = min(plan.part_start[part + 1] - where, n_doc - at)
    length = 0
    while length < most and token[where + length] == words[at + length]:
        length += 1
    length += back
    if back > 0 and length >= min_run:
        return runs, n
    where -= back
    at -= back
    if length < least:
        return runs, n
    before = last_run[part]
    if 0 <= before < n and runs[before, RUN_PART] == part:
        same = runs[before, RUN_ITEM] == where - first
        inside = at < runs[before, RUN_DOC] + runs[before, RUN_LENGTH]
        if same and inside and length <= runs[before, RUN_LENGTH]:
            return runs, n
    if n == runs.shape[0]:
        runs = grow_rows(runs, n)
    runs[n, RUN_PART] = part
    runs[n, RUN_ITEM] = where - first
    runs[n, RUN_DOC] = at
    runs[n, RUN_LENGTH] = length
    last_run[part] = n
    return runs, n + 1


@kernel
def note_longest(
    runs: NDArray[np.int32], n: int, part_start: NDArray[np.int64], longest_at: NDArray[np.int32]
) -> None:
    """longest_at[t] = longest run, in any document so far, that starts at item token t."""
    for r in range(n):
        first = part_start[runs[r, RUN_PART]] + runs[r, RUN_ITEM]
        length = runs[r, RUN_LENGTH]
        if longest_at[first] >= length:
            continue
        for t in range(length):
            if longest_at[first + t] < length - t:
                longest_at[first + t] = length - t


@kernel
def order_runs(runs: NDArray[np.int32], n: int) -> NDArray[np.int64]:
    """Order of the runs by part, then document position, then item position."""
    key = np.empty(n, np.int64)
    for r in range(n):
        key[r] = (np.int64(runs[r, RUN_PART]) << 32) | np.int64(runs[r, RUN_DOC])
    return np.argsort(key, kind="mergesort")
