"""Tokenise items, a few megabytes of text at a time."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from contam.detect.match.variant_texts import VariantTexts, variants_of
from contam.detect.match.variants import TracedVariants
from contam.detect.model import ANSWER, CHOICES, N_PARTS, QUESTION
from contam.detect.policies.common import part_sums
from contam.kernels.hash_set import are_entered, marks_of
from contam.kernels.letters import new_letter_scratch, word_letters
from contam.kernels.part_facts import count_words, longest_pieces, word_starts
from contam.kernels.tokenize_items import code_point_spans, tokenize_parts
from contam.kernels.tokens import CHARS
from contam.text.common_words import (
    COMMON_WEIGHT,
    PAIR_WEIGHT,
    SHORT_WEIGHT,
    SINGLE_WEIGHT,
    common_words,
)
from contam.text.token_kinds import character_tokens, marked_table, token_table
from contam.text.tokenizer import char_tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from contam.benchmark.item_table import ItemTable
    from contam.detect.match.variant_texts import Variant
    from contam.text.bpe import FileTokenizer

#: Bytes of two ASCII characters; a character of a script without spaces has more.
_PAIR_BYTES = 2
#: Text of the items that is tokenised at once, in bytes.
_BLOCK_BYTES = 1 << 19


class Block(NamedTuple):
    """The tokens of all parts of some items.

    hashes      uint64[tokens], one part behind the other
    n_tokens    int64[parts]
    points      int32[tokens, 2], code points, where the tokens are those of a file: to make them
                again would take long; else empty
    weight      float32[tokens], what each token says by itself
    word_start  as in ViewItems where the unit is letters and digits; else empty
    n_words, n_single, stretch  see ViewItems
    n_letters, letters  see `word_letters`; empty where nobody asked for them
    """

    hashes: NDArray[np.uint64]
    n_tokens: NDArray[np.int64]
    points: NDArray[np.int32]
    weight: NDArray[np.float32]
    n_words: NDArray[np.int32]
    n_single: NDArray[np.int32]
    word_start: NDArray[np.bool_]
    stretch: NDArray[np.int32]
    n_letters: NDArray[np.uint8]
    letters: NDArray[np.uint8]

    def starts(self) -> NDArray[np.int64]:
        """Where the tokens of each part begin, and the end: int64[parts + 1]."""
        return np.concatenate([[0], np.cumsum(self.n_tokens)])


def in_blocks(items: ItemTable) -> Iterator[ItemTable]:
    """The items in their order, some megabytes of text at a time; at least one block.

    What is made of a text on the way takes many times its size.
    """
    return items.blocks(_BLOCK_BYTES)


def read_block(
    data: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    code: int,
    tokenizer: FileTokenizer | None,
    *,
    with_letters: bool = False,
) -> Block:
    """The tokens of some items.

    data, offsets  their texts, as `ItemTable.part_texts` has them
    code           the unit as the kernels know it
    """
    hashes, spans, starts = tokens_of(data, offsets, code, tokenizer)
    points = code_point_spans(data, offsets, starts, spans) if tokenizer is not None else None
    weight, single = _base_weights(hashes, spans, points)
    n_letters = letters = np.empty(0, np.uint8)
    if with_letters:
        scratch = new_letter_scratch(int(np.diff(offsets).max(initial=0)))
        n_letters, letters = word_letters(
            data, offsets, starts, hashes, spans, scratch, char_tables()
        )
    return Block(
        hashes=hashes,
        n_tokens=np.diff(starts),
        points=np.empty((0, 2), np.int32) if points is None else points,
        weight=weight,
        n_words=count_words(data, offsets).reshape(-1, N_PARTS),
        n_single=part_sums(single, starts[:-1], np.diff(starts), np.int32).reshape(-1, N_PARTS),
        word_start=word_starts(data, offsets, starts, spans)
        if code == CHARS
        else np.empty(0, np.bool_),
        stretch=_stretches(data, offsets, starts, spans),
        n_letters=n_letters,
        letters=letters,
    )


def read_variants(
    items: ItemTable, own: Sequence[Block], code: int
) -> tuple[list[Block], list[TracedVariants], list[str]]:
    """Other variants of the items, some megabytes of text at a time, and their benchmarks' names.

    own  the blocks of `in_blocks(items)`
    """
    blocks, traces, names = [], [], []
    benchmarks, number = items.codes("benchmark")
    for variants, texts, traced in traced_variants(items, [block.n_tokens for block in own]):
        blocks.append(read_block(*texts.left(), code, None))
        # Spans are asked for at the end, and made again then: see `match.spans`.
        traces.append(traced._replace(spans=np.empty((0, 2), np.int32)))
        # No name of a benchmark holds a null character.
        names += [f"{benchmarks[number[some.owner]]}\0{some.name}" for some in variants]
    return blocks, traces, names


def traced_variants(
    items: ItemTable, n_tokens: Sequence[NDArray[np.int64]]
) -> Iterator[tuple[list[Variant], VariantTexts, TracedVariants]]:
    """The variants of each block of items that has some; n_tokens  of the parts of each block."""
    starts = np.concatenate([[0], np.cumsum(np.concatenate(n_tokens))])
    begin = 0
    for some, counts in zip(in_blocks(items), n_tokens, strict=True):
        variants = variants_of(some, counts[QUESTION::N_PARTS].astype(np.int32), begin)
        begin += len(some)
        if variants:
            texts = VariantTexts.of(items, variants)
            yield variants, texts, TracedVariants.of(variants, texts, starts)


def _base_weights(
    hashes: NDArray[np.uint64], spans: NDArray[np.int32], points: NDArray[np.int32] | None
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """What each token says by itself, and which are characters of a script without spaces.

    spans   bytes of each token;  points  its code points where the tokens are those of a file
    """
    n_bytes = spans[:, 1] - spans[:, 0]
    if points is not None:
        weight = np.ones(len(hashes), np.float32)
        weight[n_bytes == _PAIR_BYTES] = PAIR_WEIGHT
        weight[n_bytes == 1] = SHORT_WEIGHT
        single = (points[:, 1] - points[:, 0] == 1) & (n_bytes > _PAIR_BYTES)
        weight[single] = SINGLE_WEIGHT
        weight[are_entered(hashes, _common_words())] = COMMON_WEIGHT
        return weight, single
    kinds = marks_of(hashes, *_weighed())
    # Only what takes more than two bytes, in whatever spelling, can be a single character.
    kinds[n_bytes <= _PAIR_BYTES] &= ~_SINGLE
    return _WEIGHTS[kinds], (kinds & _SINGLE) > 0


@cache
def _common_words() -> NDArray[np.uint64]:
    return token_table(common_words())


@cache
def _weighed() -> tuple[NDArray[np.uint64], NDArray[np.uint8]]:
    """The hashes of tokens that weigh less than others, and of which kinds each is."""
    known = character_tokens()
    return marked_table(known.pair, known.short, known.single, _common_words())


#: What tokens weigh by their kinds, float32[16]; of several kinds the last decides.
_WEIGHTS: Final = np.ones(16, np.float32)
for _number, _weight in enumerate((PAIR_WEIGHT, SHORT_WEIGHT, SINGLE_WEIGHT, COMMON_WEIGHT)):
    _WEIGHTS[np.arange(16) >> _number == 1] = _weight
_SINGLE: Final = np.uint8(1 << 2)


def tokens_of(
    data: NDArray[np.uint8], offsets: NDArray[np.int64], code: int, tokenizer: FileTokenizer | None
) -> tuple[NDArray[np.uint64], NDArray[np.int32], NDArray[np.int64]]:
    """The tokens of all parts: see tokenize_parts; code  the unit as the kernels know it."""
    if tokenizer is None:
        return tokenize_parts(data, offsets, code, char_tables())
    tokens = tokenizer.encode(data, offsets)
    return tokens.hashes, tokens.spans, tokens.starts


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
