"""Find runs by a few grams of each part, where a table of all would be too large."""

from __future__ import annotations

from typing import TYPE_CHECKING

from contam.kernels._jit import int64, lean_kernel
from contam.kernels.bits import bit_of
from contam.kernels.gram_table import part_of, place_of
from contam.kernels.runs import RUN_STEPS, add_run, known_length

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from contam.kernels.gram_table import GramTable


@lean_kernel
def find_runs_by_few(
    doc: tuple[NDArray[np.uint64], int],
    hits: tuple[NDArray[np.int32], NDArray[np.int32], int],
    lengths: tuple[int, int, int],
    gram_table: GramTable,
    last_run: NDArray[np.int32],
    runs: NDArray[np.int32],
    left: int,
) -> tuple[int, int]:
    """What `find_runs` finds, where the table has only every stride-th gram of a part.

    lengths  (seed, min_run, stride), see ViewSpec
    The rest is as in `find_runs`.  The first `stride` tokens of a run of `seed` tokens hold the
    first token of a gram that is in the table and ends within the run: there the run is found.
    """
    words, n_doc = doc
    hit_at, hit_gram, n_hits = hits
    seed, min_run, stride = lengths
    # Locals: handing the whole gram table to a helper would copy it for every place of every hit.
    token, part_start, common_at = gram_table.token, gram_table.part_start, gram_table.common_at
    places, part_at = gram_table.place, gram_table.part_at
    n = 0
    for h in range(n_hits):
        begin = int64(hit_gram[h])
        at = int64(hit_at[h])
        j = begin
        # Up to the gram's last place.
        while j == begin or places[j - 1] >= 0:
            left -= 1
            where = place_of(int64(places[j]))
            j += 1
            part = part_of(where, part_at, part_start)
            first, end = part_start[part], part_start[part + 1]
            furthest = min(stride, where - first, at)
            back = int64(0)
            while back < furthest and token[where - back - 1] == words[at - back - 1]:
                back += 1
            if back == stride:
                # It holds the gram before this one, too, and was found there.
                continue
            most = min(end - where, n_doc - at)
            here = (part, where - back - first, at - back)
            covered = known_length(here, runs, n, last_run)
            if most + back <= max(covered, seed - 1):
                continue
            # From the gram's first token on, for its hash may lie.
            length = int64(0)
            while length < most and token[where + length] == words[at + length]:
                length += 1
            left -= length
            if left < 0:
                return n, left
            total = length + back
            if total < seed or total <= covered:
                continue
            if total < min_run <= end - first:
                common = True
                for start in range(where - back, where - back + total - seed + 1):
                    common = common and bit_of(common_at, start) != 0
                if common:
                    continue
            if n == runs.shape[0]:
                return -1, left
            add_run(here, total, runs, n, last_run)
            n += 1
            left -= RUN_STEPS
        if left < 0:
            break
    return n, left
