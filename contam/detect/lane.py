"""The items of a run as one unit sees them: tokens, weights and the table of their grams."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from contam.detect.model import ANSWER, CHOICES, N_PARTS, PARTS, LaneItems
from contam.kernels.items import code_point_spans, template_weights, tokenize_parts
from contam.kernels.judge import LaneSpec
from contam.kernels.pairs import ItemFacts
from contam.kernels.plan import (
    EMPTY,
    PlanArrays,
    count_owners,
    fill_table,
    hash_item_grams,
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
    from collections.abc import Callable, Sequence

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
        )


def _part_texts(items: Sequence[BenchItem]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    texts = [item.part_text(part).encode() for item in items for part in PARTS]
    offsets = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([len(text) for text in texts], out=offsets[1:])
    return np.frombuffer(b"".join(texts) or b"\0", np.uint8), offsets


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
    return 1 << max(_LEAST_FILTER_BITS, (least - 1).bit_length())


def _frozen(array: NDArray[np.generic]) -> None:
    array.setflags(write=False)


def _choice_marks(
    items: Sequence[BenchItem], marks: Sequence[str], tokenizer: FileTokenizer | None
) -> NDArray[np.uint64]:
    """Hash of the mark (a letter, a number) of each item's right choice, 0 where there is none."""
    if tokenizer is None:
        hashes = [int(tokenize_bytes(mark.encode()).hashes[0]) for mark in marks]
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


def build_lane(items: Sequence[BenchItem], *, unit: str, seed: int, min_run: int) -> Lane:
    """Tokenise all parts of all items and enter their grams into the table.

    unit     "word", "char" or the path of a tokenizer file
    seed     tokens of a gram; min_run  tokens of a run that is always reported

    Raises UsageError or ConfigError when the unit is no tokenizer file.
    """
    data, offsets = _part_texts(items)
    tokenizer = None if unit in BUILT_IN_UNITS else load_tokenizer(unit)
    code, (hashes, spans, starts) = _tokens(data, offsets, unit, tokenizer)
    points = code_point_spans(data, offsets, starts, spans)
    n_items = len(items)
    names = sorted({item.benchmark for item in items})
    number = {name: at for at, name in enumerate(names)}
    benchmark = np.array([number[item.benchmark] for item in items], np.int32)

    grams = np.empty(len(hashes), np.uint64)
    where = np.empty(len(hashes), np.int64)
    part_of = np.empty(len(hashes), np.int32)
    count = hash_item_grams(hashes, starts, seed, grams, where, part_of)
    order = np.argsort(grams[:count], kind="stable")
    grams, where, part_of = grams[order], where[order], part_of[order]
    first = np.flatnonzero(np.concatenate([[True], grams[1:] != grams[:-1]]))[: max(count, 0)]
    if count == 0:
        first = np.empty(0, np.int64)
    gram_start = np.append(first, count).astype(np.int64)
    keys = grams[first]
    owners = np.empty(count, np.int32)
    holders = np.empty(len(first), np.int32)
    count_owners(gram_start, part_of, benchmark, owners, holders)

    gram_short = np.zeros(len(first), np.int32)
    common_owners = np.zeros(len(first), np.bool_)
    if count:
        most_owners = np.maximum.reduceat(owners, first)
        common_owners = (most_owners > COMMON_OWNERS) | (np.diff(gram_start) > COMMON_PLACES)
    common_at = np.zeros(len(hashes), np.bool_)
    common_at[where] = np.repeat(common_owners, np.diff(gram_start))
    base, single = _base_weights(hashes, spans, points, code)
    single_before = np.concatenate([[0], np.cumsum(single)])
    n_single = single_before[starts[1:]] - single_before[starts[:-1]]
    weight = template_weights(base, where, owners, seed, TEMPLATE_OWNERS, TEMPLATE_FLOOR)
    gram_idf = np.zeros(len(hashes), np.float32)
    per_place = np.repeat(np.log(max(n_items, 2) / holders), np.diff(gram_start))
    gram_idf[where] = per_place
    short_places_first(gram_start, starts, min_run, where, part_of, gram_short)
    slots = _power_of_two(2 * len(keys) + 2)
    slot_key = np.zeros(slots, np.uint64)
    slot_gram = np.full(slots, EMPTY, np.int32)
    filter_words = np.zeros(_power_of_two(len(keys) // 3 + 1), np.uint64)
    fill_table(keys, slot_key, slot_gram, filter_words)
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
        gram_start=gram_start,
        gram_short=gram_short,
        gram_common=common_owners,
        place=where,
        place_part=part_of,
        filter_words=filter_words,
    )
    for array in plan:
        _frozen(array)
    n_tokens = np.diff(starts).reshape(n_items, N_PARTS)
    return Lane(
        unit=unit,
        spec=LaneSpec(unit=code, seed=seed, min_run=min_run),
        items=LaneItems(
            n_items=n_items,
            benchmark=benchmark,
            benchmark_names=tuple(names),
            n_tokens=n_tokens.astype(np.int32),
            n_words=_per_part(items, lambda text: len(text.split())),
            n_chars=_per_part(items, len),
            token_start=starts[:-1].reshape(n_items, N_PARTS),
            token_hash=hashes,
            token_weight=weight,
            n_single=n_single.reshape(n_items, N_PARTS).astype(np.int32),
            word_start=_word_starts(data, offsets, starts, spans) if code == CHARS else None,
            stretch=_stretches(data, offsets, starts, spans),
            seed=seed,
            min_run=min_run,
        ),
        plan=plan,
        facts=ItemFacts(
            letter=_choice_marks(items, _LETTERS, tokenizer),
            number=_choice_marks(items, _NUMBERS, tokenizer),
            answer_words=announcing_words()
            if tokenizer is None
            else tokenizer.single_tokens(announcing_texts()),
        ),
        item_span=points,
        longest=int(n_tokens.max(initial=0)),
        tokenizer=tokenizer,
    )


def _per_part(items: Sequence[BenchItem], measure: Callable[[str], int]) -> NDArray[np.int32]:
    flat = [measure(item.part_text(part)) for item in items for part in PARTS]
    return np.array(flat, np.int32).reshape(len(items), N_PARTS)


def _stretches(
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    starts: NDArray[np.int64],
    spans: NDArray[np.int32],
) -> NDArray[np.int32]:
    """Tokens of each item's longest text that every layout keeps together.

    That is its passage, its question or one of its choices: letters and bullets come between
    choices.
    """
    n_parts = len(starts) - 1
    part = np.repeat(np.arange(n_parts), np.diff(starts))
    breaks = np.concatenate([[0], np.cumsum(data == ord("\n"))])
    start, end = offsets[part] + spans[:, 0], offsets[part] + spans[:, 1]
    fresh = np.ones(len(part), np.bool_)
    fresh[1:] = part[1:] != part[:-1]
    broken = np.zeros(len(part), np.bool_)
    broken[1:] = breaks[start[1:]] > breaks[end[:-1]]
    fresh |= broken & (part % N_PARTS == CHOICES)
    first = np.flatnonzero(fresh)
    lengths = np.diff(np.append(first, len(part)))
    longest = np.zeros(n_parts, np.int32)
    np.maximum.at(longest, part[first], lengths.astype(np.int32))
    kept = longest.reshape(-1, N_PARTS)
    result: NDArray[np.int32] = kept[:, :ANSWER].max(axis=1)
    return result


def _word_starts(
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    starts: NDArray[np.int64],
    spans: NDArray[np.int32],
) -> NDArray[np.bool_]:
    """Whether a token begins a white-space separated word of its text."""
    blank = np.isin(data, np.frombuffer(b" \t\n\r\f\v", np.uint8))
    text_of = np.repeat(offsets[:-1], np.diff(starts))
    byte = text_of + spans[:, 0]
    # The token begins a word when a blank, or nothing of the same text, lies between it and the
    # token before.
    blanks = np.concatenate([[0], np.cumsum(blank)])
    previous_end = np.concatenate([[0], byte[:-1]])
    fresh = np.ones(len(byte), np.bool_)
    fresh[1:] = text_of[1:] != text_of[:-1]
    result: NDArray[np.bool_] = fresh | (blanks[byte] > blanks[previous_end])
    return result
