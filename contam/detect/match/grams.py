"""Collect the grams of all items and build the table in which they are looked up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from contam.detect.model import N_PARTS
from contam.detect.policies.common import part_sums
from contam.kernels.constants import (
    COMMON_OWNERS,
    COMMON_PLACES,
    TEMPLATE_FLOOR,
    TEMPLATE_OWNERS,
)
from contam.kernels.gram_table import (
    EMPTY,
    PART_SHIFT,
    GramTable,
    count_owners,
    fill_table,
    find_common,
    item_grams,
    note_skips,
    short_places_first,
)
from contam.kernels.letters import enter_letters, letter_grams
from contam.kernels.tokenize_items import gather_places, group_grams, note_shared, template_weights
from contam.memory import trim

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from contam.detect.match.variants import Variants
    from contam.kernels.match_rows import ViewSpec

#: Grams that are looked at together where they need not be there all at once.
_AT_ONCE = 1 << 22
_MOST_SHARES = 16
_MOST_PASSES = 32
#: Places of tokens are numbers of 32 bits; so many take far more memory than most machines have.
_MOST_TOKENS = (1 << 31) - 1
#: Grams, or tokens, for which temporary arrays are made at once.
_PIECE = 1 << 19
_LEAST_FILTER_BITS = 10
#: At most four of five are taken: most look-ups end in the filter, others among a few tags.
_SLOTS_FOR_FOUR = 5
_LEAST_SLOTS = 16
_BITS_A_BYTE = 8
#: Grams for which the filter has a word, at most twice as many words; of many grams a quarter.
_FILTERED = 3
_MANY_GRAMS = 1 << 24
#: Words for whose letters the filter of heads has a word, at most twice as many words.
_FILTERED_HEADS = 12
#: Words of the filter that is asked first: 1 MiB, half of what a core of a server keeps near.
_FRONT_WORDS = 1 << 17


@dataclass(frozen=True, slots=True, eq=False)
class GramPlaces:
    """Grams of the items: g different ones, in p places.

    key    uint64[g], their hashes
    start  int32[g + 1], where a gram's places begin in the next two
    place  int32[p], the token where it begins; part  int32[p], its part
    """

    key: NDArray[np.uint64]
    start: NDArray[np.int32]
    place: NDArray[np.int32]
    part: NDArray[np.int32]

    @classmethod
    def of(
        cls,
        hashes: NDArray[np.uint64],
        starts: NDArray[np.int64],
        n: int,
        *,
        stride: int = 1,
        share: tuple[int, int] = (0, 1),
    ) -> GramPlaces:
        """The grams of `n` tokens of every part; `stride` and `share` as in `item_grams`."""
        grams, at, part_of = item_grams(hashes, starts, n, stride, share)
        key = np.empty(len(grams), np.uint64)
        number = np.empty(len(grams), np.int32)
        slots = np.full(_power_of_two(2 * len(grams) + 2), EMPTY, np.int32)
        n_grams = group_grams(grams, slots, key, number)
        # Of a million items each of these takes hundreds of megabytes: none lives on for nothing.
        del grams, slots
        key = key[:n_grams].copy()
        start = np.zeros(n_grams + 1, np.int32)
        place, part = np.empty_like(at), np.empty_like(part_of)
        gather_places(number, at, part_of, start, place, part)
        return cls(key, start, place, part)

    def owners(self, benchmark: NDArray[np.int32]) -> NDArray[np.int32]:
        """Items of its benchmark that hold the gram of each place, int32[p]: see `count_owners`."""
        owners = np.empty(len(self.place), np.int32)
        count_owners(self.start, self.part, benchmark, owners)
        return owners

    def common(self, owners: NDArray[np.int32], n_items: int) -> NDArray[np.bool_]:
        """Which grams are common, bool[g]; variants decide about those that no item holds."""
        limits = (COMMON_PLACES, COMMON_OWNERS)
        return find_common(self.start, self.part, owners, N_PARTS * n_items, limits)

    def mark(self, chosen: NDArray[np.bool_], bits: NDArray[np.uint8]) -> None:
        """Set the bit of every token where one of the chosen grams begins.

        chosen  one a gram;  bits  one bit a token, see `bit_of`
        """
        for some in self.pieces():
            marked = self._places(some)[np.repeat(chosen[some], self._n_places(some))]
            np.bitwise_or.at(bits, marked >> 3, (1 << marked % _BITS_A_BYTE).astype(np.uint8))

    def _n_places(self, some: slice) -> NDArray[np.int32]:
        return np.diff(self.start[some.start : some.stop + 1])

    def _places(self, some: slice) -> NDArray[np.int32]:
        return self.place[self.start[some.start] : self.start[some.stop]]

    def pieces(self) -> Iterator[slice]:
        """The grams, some hundred thousand at a time."""
        for begin in range(0, len(self.key), _PIECE):
            yield slice(begin, min(begin + _PIECE, len(self.key)))

    def entries(self) -> NDArray[np.int32]:
        """The places as a gram table has them, the last one of each gram marked; int32[p]."""
        last = self.start[1:] - 1
        self.place[last] = -1 - self.place[last]
        return self.place


def grams_in_shares(
    hashes: NDArray[np.uint64], starts: NDArray[np.int64], spec: ViewSpec
) -> Iterator[GramPlaces]:
    """All grams of `spec.seed` tokens, some millions at a time, equal ones together.

    Let go of one share before the next is asked for. Raises MemoryError for too many tokens.
    """
    if len(hashes) > _MOST_TOKENS:
        raise MemoryError
    # Each share is another pass over the tokens.
    shares = min(1 + len(hashes) // _AT_ONCE, _MOST_SHARES if spec.stride == 1 else _MOST_PASSES)
    for number in range(shares):
        yield GramPlaces.of(hashes, starts, spec.seed, share=(number, shares))


def _discount(
    weight: NDArray[np.float32], shared: NDArray[np.uint8], variants: Variants | None
) -> None:
    """Let tokens weigh less by how many items share the grams they are in; shared  uint8[t]."""
    for begin in range(0, len(weight), _PIECE):
        some = slice(begin, begin + _PIECE)
        weight[some] = template_weights(weight[some], shared[some], TEMPLATE_OWNERS, TEMPLATE_FLOOR)
    if variants is not None:
        variants.inherit(weight)


def make_table(
    hashes: NDArray[np.uint64],
    starts: NDArray[np.int64],
    weight: NDArray[np.float32],
    benchmark: NDArray[np.int32],
    spec: ViewSpec,
    variants: Variants | None = None,
    letters: tuple[NDArray[np.uint8], NDArray[np.uint8]] | None = None,
) -> GramTable:
    """What the kernels see of items with these tokens.

    hashes, starts  uint64[total] tokens, and where each part's begin: int64[parts + 1]
    weight          what each token says by itself; becomes the gram table's own weight
    benchmark       int32[items and variants];  variants  the variants, where there are some
    letters         how many each token has, and which: see `word_letters`
    """
    n_items = len(benchmark) if variants is None else variants.n_items
    shared = np.zeros(len(hashes), np.uint8)
    common_at = np.zeros(len(hashes) // _BITS_A_BYTE + 1, np.uint8)
    every = spec.stride == 1
    n_grams = n_places = 0
    # Filled share by share: never is anything there twice.
    room = int(np.maximum(np.diff(starts) - spec.seed + 1, 0).sum()) if every else 0
    place, skip = np.empty(room, np.int32), np.empty(room, np.uint8)
    for grams in grams_in_shares(hashes, starts, spec):
        owners = grams.owners(benchmark)
        is_common = grams.common(owners, n_items)
        note_shared(grams.place, owners, spec.seed, shared)
        del owners
        grams.mark(is_common, common_at)
        if every:
            here = slice(n_places, n_places + len(grams.place))
            short_places_first(grams.start, starts, spec.min_run, grams.place, grams.part)
            skip[here] = note_skips(
                hashes, starts, (grams.start, is_common), grams.place, grams.part
            )
            place[here] = grams.entries()
            n_grams, n_places = n_grams + len(grams.key), here.stop
        del grams, is_common
    _discount(weight, shared, variants)
    del shared
    size = spec.seed - spec.stride + 1
    if not every:
        grams = GramPlaces.of(hashes, starts, size, stride=spec.stride)
        n_grams, place = len(grams.key), grams.entries()
        del grams
    if len(hashes) >= _AT_ONCE:
        trim()  # what the shares left behind
    slots = n_grams * _SLOTS_FOR_FOUR // 4 + _LEAST_SLOTS
    slot_tag, slot_place = np.zeros(slots, np.uint8), np.zeros(slots, np.int32)
    per_word = _FILTERED if n_grams < _MANY_GRAMS else 4 * _FILTERED
    filter_words = np.zeros(_power_of_two(n_grams // per_word + 1), np.uint64)
    fill_table(hashes, size, place, slot_tag, slot_place, filter_words)
    gram_table = GramTable(
        token=hashes,
        weight=weight,
        common_at=common_at,
        part_start=starts,
        part_weight=part_sums(weight, starts[:-1], np.diff(starts), np.float64),
        slot_tag=slot_tag,
        slot_place=slot_place,
        place=place,
        place_skip=skip,
        part_at=_noted_parts(starts),
        filter_words=filter_words,
        front_words=_folded(filter_words),
        **_letter_table(letters, starts),
    )
    for array in gram_table:
        array.setflags(write=False)
    return gram_table


def _letter_table(
    letters: tuple[NDArray[np.uint8], NDArray[np.uint8]] | None, starts: NDArray[np.int64]
) -> dict[str, NDArray[Any]]:
    """The columns of a gram table about letters."""
    counts, text = letters or (np.empty(0, np.uint8), np.empty(0, np.uint8))
    slots = 2 * len(counts) + _LEAST_SLOTS if len(counts) else 0
    tags, places = np.zeros(slots, np.uint8), np.zeros(slots, np.int32)
    heads = np.zeros(_power_of_two(len(counts) // _FILTERED_HEADS + 1), np.uint64)
    part = at = 0
    # Piece by piece: what the grams take is as much as all tokens.
    while (first := int(starts[part])) < len(counts):
        end = max(part + 1, int(np.searchsorted(starts, first + _PIECE, side="right")) - 1)
        some = counts[first : starts[end]]
        here = text[at : at + int(some.sum(dtype=np.int64))]
        enter_letters(
            letter_grams(some, here, starts[part : end + 1] - first, heads), first, tags, places
        )
        part, at = end, at + len(here)
    return {"letters": counts, "letter_tag": tags, "letter_place": places, "letter_heads": heads}


def _noted_parts(starts: NDArray[np.int64]) -> NDArray[np.int32]:
    """The part of every 2**PART_SHIFT-th token: `GramTable.part_at`."""
    parts = np.empty(-(-int(starts[-1]) // (1 << PART_SHIFT)), np.int32)
    for begin in range(0, len(parts), _PIECE):
        some = np.arange(begin, min(begin + _PIECE, len(parts))) << PART_SHIFT
        parts[begin : begin + _PIECE] = np.searchsorted(starts, some, side="right") - 1
    return parts


def _power_of_two(least: int) -> int:
    return 1 << max(_LEAST_FILTER_BITS, (int(least) - 1).bit_length())


def _folded(filter_words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The filter, its equal parts laid over each other, in no more words than a core keeps near."""
    words = min(len(filter_words), _FRONT_WORDS)
    folded: NDArray[np.uint64] = np.bitwise_or.reduce(filter_words.reshape(-1, words), axis=0)
    return folded
