"""Grow gram hits into maximal runs of equal tokens, each found once."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from contam.kernels._jit import int64, lean_kernel
from contam.kernels.bits import bit_of
from contam.kernels.gram_table import part_of, place_of

if TYPE_CHECKING:
    from contam.kernels._jit import Int32s, Int64s, Uint16s, Uint64s
    from contam.kernels.gram_table import GramTable


#: Columns of a run: part number, first token in the part, first token in the document, length.
RUN_PART = 0
RUN_ITEM = 1
RUN_DOC = 2
RUN_LENGTH = 3
RUN_COLUMNS = 4


class RunGroup(NamedTuple):
    """Runs of a document that are looked at together: runs[order[lo]] up to runs[order[hi - 1]].

    runs  int32[room, RUN_COLUMNS];  order  int64[room], see `order_runs`
    """

    runs: Int32s
    order: Int64s
    lo: int
    hi: int


#: What it takes to write a run, and to order and read it later, in steps of `find_runs`.
RUN_STEPS = 8

#: Bits of each half of the length of a long run, see `note_longest`.
_HALF_BITS = 16
_LOW_HALF = (1 << _HALF_BITS) - 1

#: Runs that are put in order one by one, before such stretches are merged.
_SORTED_AT_ONCE = 16


@lean_kernel
def find_runs(
    doc: tuple[Uint64s, int],
    hits: tuple[Int32s, Int32s, int],
    seed: int,
    min_run: int,
    gram_table: GramTable,
    last_run: Int32s,
    runs: Int32s,
    left: int,
) -> tuple[int, int]:
    """Maximal runs that the document shares with any part, each found at its first token.

    doc       (token hashes of the document, how many)
    hits      (index of the gram in the document, where its places begin, how many), ascending by
              index
    last_run  int32[parts], scratch; holds anything
    runs      int32[room, RUN_COLUMNS], written, by document position of the first hit
    left      steps that may be spent: places looked at, tokens compared
    return    (their number, -1 where there is no room for them; steps left, negative where there
              were too few and runs are missing)
    Every run of min_run tokens is there, and every run of `seed` tokens that holds a gram few
    items share or fills a short part; runs of fewer than min_run tokens of common grams alone
    are left out.  A run of a periodic text that overlaps the one before it, with the same first
    item token and no longer, is the same occurrence and is left out.
    """
    words, n_doc = doc
    hit_at, hit_gram, n_hits = hits
    # Locals: handing the whole gram table to a helper would copy it for every place of every hit.
    token, part_start, common_at = gram_table.token, gram_table.part_start, gram_table.common_at
    places, place_skip, part_at = gram_table.place, gram_table.place_skip, gram_table.part_at
    n = 0
    streak_end = 0
    streak = 0
    for h in range(n_hits):
        if h == streak_end:
            while streak_end < n_hits and hit_at[streak_end] - hit_at[h] == streak_end - h:
                streak_end += 1
            streak = streak_end - h
        begin = int64(hit_gram[h])
        common = bit_of(common_at, place_of(int64(places[begin]))) != 0
        only_short = common and streak + seed - 1 < min_run
        following = begin
        # Up to the gram's last place.
        while following == begin or places[following - 1] >= 0:
            j = following
            following += 1
            where = place_of(int64(places[j]))
            at = int64(hit_at[h])
            part = part_of(where, part_at, part_start)
            first = part_start[part]
            short = part_start[part + 1] - first < min_run
            if only_short and not short:
                # Those in short parts come first.
                break
            left -= 1
            least = min_run if common and not short else seed
            back = 0
            earlier = False
            while where - back > first and at > back:
                if token[where - back - 1] != words[at - back - 1]:
                    break
                # It started earlier, and was added there unless only common grams lie between;
                # of short parts even those are followed.
                known = short or common
                if known or back >= min_run or bit_of(common_at, where - back - 1) == 0:
                    earlier = True
                    break
                back += 1
            if earlier:
                if common and back == 0:
                    # Those that follow with the same token before them started earlier, too.
                    following = j + int64(place_skip[j])
                continue
            most = min(part_start[part + 1] - where, n_doc - at)
            here = (part, where - back - first, at - back)
            covered = known_length(here, runs, n, last_run)
            if most + back <= covered:
                continue
            length = seed
            while length < most and token[where + length] == words[at + length]:
                length += 1
            left -= length
            if left < 0:
                return n, left
            if length + back < least or (back > 0 and length + back >= min_run):
                continue
            if length + back <= covered:
                continue
            if not equal_tokens(token, where, words, at, seed):
                continue
            if n == runs.shape[0]:
                return -1, left
            add_run(here, length + back, runs, n, last_run)
            n += 1
            left -= RUN_STEPS
        if left < 0:
            break
    return n, left


@lean_kernel
def known_length(here: tuple[int, int, int], runs: Int32s, n: int, last_run: Int32s) -> int:
    """Tokens of the part's last run where one that begins here is the same occurrence; else 0.

    here  (part, first token in the part, first token in the document)
    """
    part, item, doc = here
    before = last_run[part]
    if not 0 <= before < n or runs[before, RUN_PART] != part or runs[before, RUN_ITEM] != item:
        return 0
    length = int64(runs[before, RUN_LENGTH])
    return length if doc < runs[before, RUN_DOC] + length else 0


@lean_kernel
def add_run(
    here: tuple[int, int, int], length: int, runs: Int32s, n: int, last_run: Int32s
) -> None:
    """Write run number n; here as in `known_length`."""
    runs[n, RUN_PART], runs[n, RUN_ITEM], runs[n, RUN_DOC] = here
    runs[n, RUN_LENGTH] = length
    last_run[here[0]] = n


@lean_kernel
def equal_tokens(left: Uint64s, i: int, right: Uint64s, j: int, n: int) -> bool:
    """Whether n tokens are equal: a gram hash may lie."""
    for k in range(n):
        if left[i + k] != right[j + k]:
            return False
    return True


@lean_kernel
def note_longest(runs: Int32s, n: int, part_start: Int64s, longest_at: Uint16s) -> None:
    """Raise longest_at[t] to the longest run of this document that starts at item token t.

    longest_at  uint16[t, 1], or uint16[t, 2] where a part has more than 65,535 tokens: the lower
                half, then the higher
    """
    for r in range(n):
        first = part_start[runs[r, RUN_PART]] + runs[r, RUN_ITEM]
        length = int64(runs[r, RUN_LENGTH])
        if noted_run(longest_at, first) >= length:
            continue
        for t in range(length):
            if noted_run(longest_at, first + t) < length - t:
                longest_at[first + t, 0] = (length - t) & _LOW_HALF
                if longest_at.shape[1] > 1:
                    longest_at[first + t, 1] = (length - t) >> _HALF_BITS


@lean_kernel
def noted_run(longest_at: Uint16s, at: int) -> int:
    """The longest run noted at an item token: see `note_longest`."""
    length = int64(longest_at[at, 0])
    if longest_at.shape[1] > 1:
        length |= int64(longest_at[at, 1]) << _HALF_BITS
    return length


@lean_kernel
def order_runs(runs: Int32s, n: int, order: Int64s, scratch: Int64s) -> None:
    """Write the order of the runs by part, document position, item position, then as found.

    order  int64[>= n], written; scratch  int64[>= n], scratch
    """
    for begin in range(0, n, _SORTED_AT_ONCE):
        end = min(begin + _SORTED_AT_ONCE, n)
        for run in range(begin, end):
            at = run
            while at > begin and is_before(runs, run, order[at - 1]):
                order[at] = order[at - 1]
                at -= 1
            order[at] = run
    width = _SORTED_AT_ONCE
    while width < n:
        for begin in range(0, n, 2 * width):
            middle = min(begin + width, n)
            end = min(begin + 2 * width, n)
            left, right = begin, middle
            for at in range(begin, end):
                if right == end or (
                    left < middle and not is_before(runs, order[right], order[left])
                ):
                    scratch[at] = order[left]
                    left += 1
                else:
                    scratch[at] = order[right]
                    right += 1
        for at in range(n):
            order[at] = scratch[at]
        width *= 2


@lean_kernel
def is_before(runs: Int32s, one: int, other: int) -> bool:
    """Whether a run comes before another one by part, then document, then item position."""
    for column in (RUN_PART, RUN_DOC):
        if runs[one, column] != runs[other, column]:
            return bool(runs[one, column] < runs[other, column])
    return bool(runs[one, RUN_ITEM] < runs[other, RUN_ITEM])


@lean_kernel
def find_runs_by_few(
    doc: tuple[Uint64s, int],
    hits: tuple[Int32s, Int32s, int],
    lengths: tuple[int, int, int],
    gram_table: GramTable,
    last_run: Int32s,
    runs: Int32s,
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
