"""The items of a run as one unit sees them: tokens, weights and the table of their grams."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from contam.detect.glued import Glued
from contam.detect.grams import make_table, without_table
from contam.detect.model import ANSWER, CHOICES, N_PARTS, PARTS, QUESTION, LaneItems
from contam.detect.readings import Reading, readings_of
from contam.detect.sums import part_sums
from contam.kernels.items import code_point_spans, tokenize_parts
from contam.kernels.judge import LaneSpec
from contam.kernels.pairs import ItemFacts
from contam.kernels.parts import count_words, longest_pieces, word_starts
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
from contam.text.numbers import number_hashes
from contam.text.single_characters import character_tokens, is_among
from contam.text.tokenizer import char_tables, tokenize_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from contam.benchmark.items import BenchItem
    from contam.kernels.plan import PlanArrays

#: Bytes of two ASCII characters; a character of a script without spaces has more.
_PAIR_BYTES = 2
#: Text of the items that is tokenised at once.
_BLOCK_CHARACTERS = 1 << 21
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
    spans      makes int32[total tokens, 2], code points of each token in its part's text: as large
               as the tokens themselves, and asked for once, at the end
    longest    tokens of the longest part
    benchmark  int32[n], of the items and of their readings, which lie behind them in plan and facts
    glued      the readings of items, where there are some
    tokenizer  what makes the tokens where the unit is a tokenizer file
    numbers    uint64[...], sorted hashes of the numbers in the questions; empty in units other
               than words
    """

    unit: str
    spec: LaneSpec
    items: LaneItems
    plan: PlanArrays
    facts: ItemFacts
    spans: Callable[[], NDArray[np.int32]]
    longest: int
    benchmark: NDArray[np.int32]
    glued: Glued | None = None
    tokenizer: FileTokenizer | None = None
    numbers: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))

    def release_table(self) -> None:
        """Give back the memory that only matching needs; the lane cannot match any more."""
        self.plan = without_table(self.plan)


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


def _base_weights(
    hashes: NDArray[np.uint64], spans: NDArray[np.int32], points: NDArray[np.int32] | None
) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """What each token says by itself, and which are characters of a script without spaces.

    spans   bytes of each token;  points  its code points where the tokens are those of a file
    """
    weight = np.ones(len(hashes), np.float32)
    n_bytes = spans[:, 1] - spans[:, 0]
    if points is not None:
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
    data: NDArray[np.uint8], offsets: NDArray[np.int64], code: int, tokenizer: FileTokenizer | None
) -> tuple[NDArray[np.uint64], NDArray[np.int32], NDArray[np.int64]]:
    """The tokens of all parts: see tokenize_parts; code  the unit as the kernels know it."""
    if tokenizer is None:
        return tokenize_parts(data, offsets, code, char_tables())
    tokens = tokenizer.encode(data, offsets)
    return tokens.hashes, tokens.spans, tokens.starts


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class LaneTokens:
    """The tokens of all parts of n items, and what else a lane is told of them.

    unit        as the kernels know it
    hashes, starts  uint64[total] tokens, and where each part's begin: int64[4 * n + 1]
    spans       see Lane
    weight      float32[total], what each token says by itself
    single      bool[total], characters of a script without spaces
    n_words, n_chars, word_start, stretch, item_ids  see LaneItems
    glued       other readings, which lie behind the items everywhere but in item_ids
    """

    unit: int
    hashes: NDArray[np.uint64]
    starts: NDArray[np.int64]
    spans: Callable[[], NDArray[np.int32]]
    weight: NDArray[np.float32]
    single: NDArray[np.bool_]
    n_words: NDArray[np.int32]
    n_chars: NDArray[np.int32]
    word_start: NDArray[np.bool_] | None
    stretch: NDArray[np.int32]
    item_ids: tuple[str, ...]
    glued: Glued | None = None


class _Block(NamedTuple):
    """Some items' tokens, and what `LaneTokens` says of them.

    n_tokens  int64[parts];  points  int32[tokens, 2], code points, where the tokens are those of a
              file: to make them again would take long
    """

    hashes: NDArray[np.uint64]
    n_tokens: NDArray[np.int64]
    points: NDArray[np.int32]
    weight: NDArray[np.float32]
    single: NDArray[np.bool_]
    n_words: NDArray[np.int32]
    n_chars: NDArray[np.int32]
    word_start: NDArray[np.bool_]
    stretch: NDArray[np.int32]


def _blocks(items: Sequence[BenchItem]) -> Iterator[Sequence[BenchItem]]:
    """The items in their order, some megabytes of text at a time; at least one block.

    What is made of a text on the way takes many times its size.
    """
    begin = size = 0
    for at, item in enumerate(items):
        size += sum(len(item.part_text(part)) for part in PARTS)
        if size > _BLOCK_CHARACTERS:
            yield items[begin : at + 1]
            begin, size = at + 1, 0
    if begin < len(items) or not items:
        yield items[begin:]


def _block(items: Sequence[BenchItem], code: int, tokenizer: FileTokenizer | None) -> _Block:
    data, offsets, n_chars = _part_texts(items)
    hashes, spans, starts = _tokens(data, offsets, code, tokenizer)
    points = code_point_spans(data, offsets, starts, spans) if tokenizer is not None else None
    weight, single = _base_weights(hashes, spans, points)
    return _Block(
        hashes=hashes,
        n_tokens=np.diff(starts),
        points=np.empty((0, 2), np.int32) if points is None else points,
        weight=weight,
        single=single,
        n_words=count_words(data, offsets).reshape(len(items), N_PARTS),
        n_chars=n_chars,
        word_start=word_starts(data, offsets, starts, spans)
        if code == CHARS
        else np.empty(0, np.bool_),
        stretch=_stretches(data, offsets, starts, spans),
    )


def _spans(items: Sequence[BenchItem], code: int, glued: Glued | None) -> NDArray[np.int32]:
    """Code points of each token in its part's text: int32[total, 2]."""
    found = []
    for some in _blocks(items):
        data, offsets, _ = _part_texts(some)
        _, spans, starts = _tokens(data, offsets, code, None)
        found.append(code_point_spans(data, offsets, starts, spans))
    if glued is not None:
        found.append(glued.spans)
    return np.concatenate(found)


def build_lane(
    items: Sequence[BenchItem],
    *,
    unit: str,
    seed: int,
    min_run: int,
    stride: int = 1,
    idf: bool = True,
    glued: bool = False,
) -> Lane:
    """Tokenise all parts of all items and enter their grams into the table.

    unit     "word", "char" or the path of a tokenizer file
    seed     tokens of the shortest run that is looked for; min_run  of one always reported
    stride   how many of the grams are entered, see LaneSpec
    idf      whether `Pairs.gram_share` is asked for; else it stays 0
    glued    whether items are searched without their punctuation, too: see contam.detect.glued

    Raises UsageError or ConfigError when the unit is no tokenizer file.
    """
    tokenizer = None if unit in BUILT_IN_UNITS else load_tokenizer(unit)
    code = PRETOKENIZED if tokenizer is not None else CHARS if unit == "char" else WORDS
    own = [_block(some, code, tokenizer) for some in _blocks(items)]
    readings: list[Reading] = []
    begin = 0
    if glued:
        for some, block in zip(_blocks(items), own, strict=True):
            words = block.n_tokens[QUESTION::N_PARTS].astype(np.int32)
            readings += readings_of(some, words, begin)
            begin += len(some)
    if readings:
        own += [_block(some, code, tokenizer) for some in _blocks([one.item for one in readings])]
    everything = [*items, *(one.item for one in readings)]
    columns = list(zip(*own, strict=True))
    del own
    # Column by column, so that no more than one is there twice.
    columns.reverse()
    whole = _Block(*(np.concatenate(columns.pop()) for _ in _Block._fields))
    points = whole.points
    starts = np.concatenate([[0], np.cumsum(whole.n_tokens)])
    traced = Glued.of(items, readings, starts) if readings else None
    if traced is not None:
        traced.blot_out(whole.hashes)
    tokens = LaneTokens(
        unit=code,
        hashes=whole.hashes,
        starts=starts,
        spans=partial(_spans, items, code, traced) if tokenizer is None else lambda: points,
        weight=whole.weight,
        single=whole.single,
        n_words=whole.n_words,
        n_chars=whole.n_chars,
        word_start=whole.word_start if code == CHARS else None,
        stretch=whole.stretch,
        item_ids=tuple(item.item_id for item in items),
        glued=traced,
    )
    facts = ItemFacts(
        letter=_choice_marks(everything, _LETTERS, tokenizer),
        number=_choice_marks(everything, _NUMBERS, tokenizer),
        answer_words=announcing_words()
        if tokenizer is None
        else tokenizer.single_tokens(announcing_texts()),
    )
    spec = LaneSpec(unit=code, seed=seed, min_run=min_run, stride=stride)
    benchmarks = [item.benchmark for item in everything]
    lane = lane_of(tokens, benchmarks, facts, spec, unit, tokenizer, idf=idf)
    if code == WORDS:
        lane.numbers = number_hashes(item.question for item in everything)
    return lane


def lane_of(
    tokens: LaneTokens,
    benchmarks: Sequence[str],
    facts: ItemFacts,
    spec: LaneSpec,
    unit: str,
    tokenizer: FileTokenizer | None = None,
    *,
    idf: bool = True,
) -> Lane:
    """The lane of items whose tokens are known.

    benchmarks  of each item and reading, by name;  idf  see `build_lane`
    """
    glued = tokens.glued
    n_items = len(benchmarks) if glued is None else glued.n_items
    names = sorted(set(benchmarks[:n_items]))
    every_name = [*names, *sorted(set(benchmarks[n_items:]))]
    place = {name: at for at, name in enumerate(every_name)}
    benchmark = np.array([place[name] for name in benchmarks], np.int32)
    plan = make_table(tokens.hashes, tokens.starts, tokens.weight, benchmark, spec, glued, idf=idf)
    token_start = tokens.starts[:-1].reshape(-1, N_PARTS)[:n_items]
    n_tokens = np.diff(tokens.starts).astype(np.int32).reshape(-1, N_PARTS)
    own, total = slice(n_items), slice(tokens.starts[N_PARTS * n_items])
    return Lane(
        unit=unit,
        spec=spec,
        items=LaneItems(
            n_items=n_items,
            benchmark=benchmark[own],
            benchmark_names=tuple(names),
            n_tokens=n_tokens[own],
            n_words=tokens.n_words[own],
            n_chars=tokens.n_chars[own],
            token_start=token_start,
            token_hash=plan.token[total],
            token_weight=plan.weight[total],
            part_weight=plan.part_weight.reshape(-1, N_PARTS)[own],
            n_single=part_sums(tokens.single, token_start, n_tokens[own], np.int32),
            word_start=tokens.word_start,
            stretch=tokens.stretch[own],
            seed=spec.seed,
            min_run=spec.min_run,
            item_ids=tokens.item_ids,
        ),
        plan=plan,
        facts=facts,
        spans=tokens.spans,
        longest=int(n_tokens.max(initial=0)),
        benchmark=benchmark,
        glued=glued,
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
