"""The items of a run as one unit sees them: tokens, weights and the table of their grams."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from contam.detect.model import ANSWER, CHOICES, N_PARTS, PARTS, LaneItems
from contam.kernels.items import code_point_spans, template_weights, tokenize_parts
from contam.kernels.judge import LaneSpec
from contam.kernels.pairs import ItemFacts
from contam.kernels.parts import (
    count_words,
    gather_places,
    group_grams,
    longest_pieces,
    word_starts,
)
from contam.kernels.plan import (
    EMPTY,
    PlanArrays,
    count_owners,
    fill_table,
    hash_item_grams,
    note_skips,
    short_places_first,
)
from contam.kernels.pretokenized import PRETOKENIZED
from contam.kernels.tokens import CHARS, WORDS
from contam.text.bpe import BUILT_IN_UNITS, FileTokenizer, load_tokenizer
from contam.text.common_words import (
    COMMON_WEIGHT,
    PAIR_WEIGHT,
    SHORT_WEIGHT,
    SINGLE_WEIGHT,
    announcing_texts,
    announcing_words,
    common_words,
)
from contam.text.single_characters import character_tokens, is_among
from contam.text.tokenizer import char_tables, tokenize_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from contam.benchmark.items import BenchItem

#: Wording shared by this many items of one benchmark says next to nothing.
TEMPLATE_OWNERS = 16.0
TEMPLATE_FLOOR = 0.03
#: A gram that more items of one benchmark, or more places in all, hold is common: a run of fewer
#: than min_run tokens of such grams alone proves nothing and is not looked at.
COMMON_OWNERS = 16
COMMON_PLACES = 512
_LEAST_FILTER_BITS = 10
#: Words of the filter that is asked first: 1 MiB, half of what a core of a server keeps near.
_FRONT_WORDS = 1 << 17
#: Bytes of two ASCII characters; a character of a script without spaces has more.
_PAIR_BYTES = 2
_LETTERS = tuple("abcdefghijklmnopqrstuvwxyz")
_NUMBERS = tuple(map(str, range(26)))


@dataclass(slots=True, eq=False, kw_only=True)
class Lane:
    """One unit's view of all items, ready to be matched.

    unit       as the user names it
    spec       unit, seed and min_run as the kernels take them
    items      what policies see
    plan       what the kernels see
    facts      letters of right choices, and words that announce an answer
    item_span  int32[total tokens, 2], code points of each token in its part's text
    longest    tokens of the longest part
    tokenizer  what makes the tokens where the unit is a tokenizer file
    """

    unit: str
    spec: LaneSpec
    items: LaneItems
    plan: PlanArrays
    facts: ItemFacts
    item_span: NDArray[np.int32]
    longest: int
    tokenizer: FileTokenizer | None = None

    def release_table(self) -> None:
        """Give back the memory that only matching needs; the lane cannot match any more."""
        none = np.empty(0, np.int64)
        self.plan = self.plan._replace(
            weight_sum=none.astype(np.float64),
            gram_idf=none.astype(np.float32),
            common_at=none.astype(np.bool_),
            slot_key=none.astype(np.uint64),
            slot_gram=none.astype(np.int32),
            gram_start=none,
            gram_short=none.astype(np.int32),
            gram_common=none.astype(np.bool_),
            place=none,
            place_part=none.astype(np.int32),
            filter_words=none.astype(np.uint64),
            front_words=none.astype(np.uint64),
        )


def _part_texts(
    items: Sequence[BenchItem],
) -> tuple[NDArray[np.uint8], NDArray[np.int64], NDArray[np.int32]]:
    """All parts' texts behind each other, where each begins, and their code points, int32[n, 4]."""
    texts = [item.part_text(part) for item in items for part in PARTS]
    encoded = [text.encode() for text in texts]
    offsets = np.zeros(len(texts) + 1, np.int64)
    np.cumsum(list(map(len, encoded)), out=offsets[1:])
    n_chars = np.array(list(map(len, texts)), np.int32).reshape(-1, N_PARTS)
    return np.frombuffer(b"".join(encoded) or b"\0", np.uint8), offsets, n_chars


@dataclass(frozen=True, slots=True, eq=False)
class Grams:
    """All grams of the items: g different ones, in p places.

    key         uint64[g], their hashes
    start       int64[g + 1], where a gram's places begin in the next two
    place       int64[p], token where it stands; part  int32[p], in which part
    at, number  int64[p], int32[p]: the places again, in the order of the tokens, and which gram
                stands there
    """

    key: NDArray[np.uint64]
    start: NDArray[np.int64]
    place: NDArray[np.int64]
    part: NDArray[np.int32]
    at: NDArray[np.int64]
    number: NDArray[np.int32]

    @classmethod
    def of(cls, hashes: NDArray[np.uint64], starts: NDArray[np.int64], seed: int) -> Grams:
        """The grams of `seed` tokens of every part."""
        grams = np.empty(len(hashes), np.uint64)
        at = np.empty(len(hashes), np.int64)
        part_of = np.empty(len(hashes), np.int32)
        count = hash_item_grams(hashes, starts, seed, grams, at, part_of)
        grams, at, part_of = grams[:count], at[:count], part_of[:count]
        key = np.empty(count, np.uint64)
        number = np.empty(count, np.int32)
        slots = np.full(_power_of_two(2 * count + 2), EMPTY, np.int32)
        n_grams = group_grams(grams, slots, key, number)
        start = np.zeros(n_grams + 1, np.int64)
        place, part = np.empty_like(at), np.empty_like(part_of)
        gather_places(number, at, part_of, start, place, part)
        return cls(key[:n_grams].copy(), start, place, part, at, number)


def _base_weights(
    hashes: NDArray[np.uint64], spans: NDArray[np.int32], points: NDArray[np.int32], unit: int
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """What each token says by itself, and which are characters of a script without spaces."""
    weight = np.ones(len(hashes), np.float32)
    n_bytes = spans[:, 1] - spans[:, 0]
    if unit == PRETOKENIZED:
        weight[n_bytes == _PAIR_BYTES] = PAIR_WEIGHT
        weight[n_bytes == 1] = SHORT_WEIGHT
        single = (points[:, 1] - points[:, 0] == 1) & (n_bytes > _PAIR_BYTES)
    else:
        known = character_tokens()
        weight[is_among(hashes, known.pair)] = PAIR_WEIGHT
        weight[is_among(hashes, known.short)] = SHORT_WEIGHT
        # Only what takes more than two bytes, in whatever spelling, can be such a character.
        single = n_bytes > _PAIR_BYTES
        single[single] = is_among(hashes[single], known.single)
    weight[single] = SINGLE_WEIGHT
    weight[is_among(hashes, common_words())] = COMMON_WEIGHT
    return weight, single


def _power_of_two(least: int) -> int:
    return 1 << max(_LEAST_FILTER_BITS, (int(least) - 1).bit_length())


def _folded(filter_words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The filter, its equal parts laid over each other, in no more words than a core keeps near."""
    words = min(len(filter_words), _FRONT_WORDS)
    folded: NDArray[np.uint64] = np.bitwise_or.reduce(filter_words.reshape(-1, words), axis=0)
    return folded


def _frozen(array: NDArray[np.generic]) -> None:
    array.setflags(write=False)


@cache
def _mark_hashes(marks: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(int(tokenize_bytes(mark.encode()).hashes[0]) for mark in marks)


def _choice_marks(
    items: Sequence[BenchItem], marks: tuple[str, ...], tokenizer: FileTokenizer | None
) -> NDArray[np.uint64]:
    """Hash of the mark (a letter, a number) of each item's right choice, 0 where there is none."""
    if tokenizer is None:
        hashes = list(_mark_hashes(marks))
    else:
        found = [tokenizer.single_tokens([mark.upper()]) for mark in marks]
        hashes = [int(one[0]) if len(one) else 0 for one in found]
    right = [
        hashes[item.answer_index]
        if item.answer_index is not None
        and 0 <= item.answer_index < min(len(item.choices), len(marks))
        else 0
        for item in items
    ]
    return np.array(right, np.uint64)


def _tokens(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], unit: str, tokenizer: FileTokenizer | None
) -> tuple[int, tuple[NDArray[np.uint64], NDArray[np.int32], NDArray[np.int64]]]:
    """The unit as the kernels know it, and the tokens of all parts: see tokenize_parts."""
    if tokenizer is not None:
        tokens = tokenizer.encode(data, offsets)
        return PRETOKENIZED, (tokens.hashes, tokens.spans, tokens.starts)
    code = CHARS if unit == "char" else WORDS
    return code, tokenize_parts(data, offsets, code, char_tables())


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class LaneTokens:
    """The tokens of all parts of n items, and what else a lane is told of them.

    unit        as the kernels know it
    hashes, starts  uint64[total] tokens, and where each part's begin: int64[4 * n + 1]
    points      int32[total, 2], code points of each token in its part's text
    weight      float32[total], what each token says by itself
    single      bool[total], characters of a script without spaces
    n_words, n_chars, word_start, stretch, item_ids  see LaneItems
    """

    unit: int
    hashes: NDArray[np.uint64]
    starts: NDArray[np.int64]
    points: NDArray[np.int32]
    weight: NDArray[np.float32]
    single: NDArray[np.bool_]
    n_words: NDArray[np.int32]
    n_chars: NDArray[np.int32]
    word_start: NDArray[np.bool_] | None
    stretch: NDArray[np.int32]
    item_ids: tuple[str, ...]


def build_lane(items: Sequence[BenchItem], *, unit: str, seed: int, min_run: int) -> Lane:
    """Tokenise all parts of all items and enter their grams into the table.

    unit     "word", "char" or the path of a tokenizer file
    seed     tokens of a gram; min_run  tokens of a run that is always reported

    Raises UsageError or ConfigError when the unit is no tokenizer file.
    """
    data, offsets, n_chars = _part_texts(items)
    tokenizer = None if unit in BUILT_IN_UNITS else load_tokenizer(unit)
    code, (hashes, spans, starts) = _tokens(data, offsets, unit, tokenizer)
    points = code_point_spans(data, offsets, starts, spans)
    weight, single = _base_weights(hashes, spans, points, code)
    tokens = LaneTokens(
        unit=code,
        hashes=hashes,
        starts=starts,
        points=points,
        weight=weight,
        single=single,
        n_words=count_words(data, offsets).reshape(len(items), N_PARTS),
        n_chars=n_chars,
        word_start=word_starts(data, offsets, starts, spans) if code == CHARS else None,
        stretch=_stretches(data, offsets, starts, spans),
        item_ids=tuple(item.item_id for item in items),
    )
    facts = ItemFacts(
        letter=_choice_marks(items, _LETTERS, tokenizer),
        number=_choice_marks(items, _NUMBERS, tokenizer),
        answer_words=announcing_words()
        if tokenizer is None
        else tokenizer.single_tokens(announcing_texts()),
    )
    return lane_of(
        tokens, [item.benchmark for item in items], facts, (seed, min_run), unit, tokenizer
    )


def lane_of(
    tokens: LaneTokens,
    benchmarks: Sequence[str],
    facts: ItemFacts,
    sizes: tuple[int, int],
    unit: str,
    tokenizer: FileTokenizer | None = None,
) -> Lane:
    """The lane of items whose tokens are known.

    benchmarks  of each item, by name;  sizes  seed and min_run, see `build_lane`
    """
    hashes, starts = tokens.hashes, tokens.starts
    seed, min_run = sizes
    n_items = len(benchmarks)
    names = sorted(set(benchmarks))
    place = {name: at for at, name in enumerate(names)}
    benchmark = np.array([place[name] for name in benchmarks], np.int32)
    grams = Grams.of(hashes, starts, seed)
    where, part_of = grams.place, grams.part
    owners = np.empty(len(where), np.int32)
    holders = np.empty(len(grams.key), np.int32)
    count_owners(grams.start, part_of, benchmark, owners, holders)

    gram_short = np.zeros(len(grams.key), np.int32)
    common_owners = np.zeros(len(grams.key), np.bool_)
    if len(where):
        most_owners = np.maximum.reduceat(owners, grams.start[:-1])
        common_owners = (most_owners > COMMON_OWNERS) | (np.diff(grams.start) > COMMON_PLACES)
    common_at = np.zeros(len(hashes), np.bool_)
    common_at[grams.at] = common_owners[grams.number]
    single_before = np.concatenate([[0], np.cumsum(tokens.single)])
    n_single = single_before[starts[1:]] - single_before[starts[:-1]]
    weight = template_weights(tokens.weight, where, owners, seed, TEMPLATE_OWNERS, TEMPLATE_FLOOR)
    gram_idf = np.zeros(len(hashes), np.float32)
    idf = np.log(max(n_items, 2) / holders).astype(np.float32)
    gram_idf[grams.at] = idf[grams.number]
    short_places_first(grams.start, starts, min_run, where, part_of, gram_short)
    skip = note_skips(hashes, starts, (grams.start, common_owners), where, part_of)
    slots = _power_of_two(2 * len(grams.key) + 2)
    slot_key = np.zeros(slots, np.uint64)
    slot_gram = np.full(slots, EMPTY, np.int32)
    filter_words = np.zeros(_power_of_two(len(grams.key) // 3 + 1), np.uint64)
    fill_table(grams.key, slot_key, slot_gram, filter_words)
    sums = np.concatenate([[0.0], np.cumsum(weight.astype(np.float64))])
    plan = PlanArrays(
        token=hashes,
        weight=weight,
        weight_sum=sums,
        gram_idf=gram_idf,
        common_at=common_at,
        part_start=starts,
        part_weight=sums[starts[1:]] - sums[starts[:-1]],
        slot_key=slot_key,
        slot_gram=slot_gram,
        gram_start=grams.start,
        gram_short=gram_short,
        gram_common=common_owners,
        place=where,
        place_part=part_of,
        place_skip=skip,
        filter_words=filter_words,
        front_words=_folded(filter_words),
    )
    for array in plan:
        _frozen(array)
    n_tokens = np.diff(starts).reshape(n_items, N_PARTS)
    return Lane(
        unit=unit,
        spec=LaneSpec(unit=tokens.unit, seed=seed, min_run=min_run),
        items=LaneItems(
            n_items=n_items,
            benchmark=benchmark,
            benchmark_names=tuple(names),
            n_tokens=n_tokens.astype(np.int32),
            n_words=tokens.n_words,
            n_chars=tokens.n_chars,
            token_start=starts[:-1].reshape(n_items, N_PARTS),
            token_hash=hashes,
            token_weight=weight,
            n_single=n_single.reshape(n_items, N_PARTS).astype(np.int32),
            word_start=tokens.word_start,
            stretch=tokens.stretch,
            seed=seed,
            min_run=min_run,
            item_ids=tokens.item_ids,
        ),
        plan=plan,
        facts=facts,
        item_span=tokens.points,
        longest=int(n_tokens.max(initial=0)),
        tokenizer=tokenizer,
    )


def _stretches(
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    starts: NDArray[np.int64],
    spans: NDArray[np.int32],
) -> NDArray[np.int32]:
    """Tokens of each item's longest passage, question or single choice."""
    # Letters and bullets come between choices; every layout keeps together what is within one.
    longest = longest_pieces(data, offsets, starts, spans, N_PARTS, CHOICES)
    result: NDArray[np.int32] = longest.reshape(-1, N_PARTS)[:, :ANSWER].max(axis=1)
    return result
