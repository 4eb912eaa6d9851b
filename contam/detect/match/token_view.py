"""Build a token view: all items in one unit, with weights and a table of their grams.

Items become tokens a few megabytes of text at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from contam.benchmark.item_table import ItemTable
from contam.detect.match.grams import make_table
from contam.detect.match.variants import TracedVariants, Variants, VariantTexts, variants_of
from contam.detect.model import ANSWER, CHOICES, N_PARTS, QUESTION, ViewItems
from contam.detect.policies.common import part_sums
from contam.kernels.document import PRETOKENIZED
from contam.kernels.hash_set import are_entered, marks_of
from contam.kernels.letters import new_letter_scratch, word_letters
from contam.kernels.match_rows import ItemFacts, ViewSpec
from contam.kernels.tokenize_items import (
    code_point_spans,
    count_words,
    longest_pieces,
    tokenize_parts,
    word_starts,
)
from contam.kernels.tokens import CHARS, WORDS
from contam.memory import trim
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
from contam.text.token_kinds import character_tokens, marked_table, number_hashes, token_table
from contam.text.tokenizer import char_tables, tokenize_bytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from contam.benchmark.items import BenchItem
    from contam.detect.match.variants import Variant
    from contam.detect.meaning.rare_words import RareWords
    from contam.detect.policies.policy import TextReader
    from contam.kernels.gram_table import GramTable


_LETTERS = tuple("abcdefghijklmnopqrstuvwxyz")
_NUMBERS = tuple(map(str, range(26)))
#: From so many on, free memory is given back between the steps of a plan.
_MANY_TOKENS = 1 << 24
#: Tokens that are looked up together.
_AT_ONCE = 1 << 20


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TokenView:
    """One unit's view of all items, as they are judged and shown.

    unit       as the user names it
    spec       unit, seed and min_run as the kernels take them
    items      what policies see
    part_start int64[4 * (items and variants) + 1], where the tokens of each part begin
    points     int32[tokens, 2], code points of each in its part's text, where the unit is a
               tokenizer file: to make them again would take long; else empty
    longest    tokens of the longest part
    variants   the variants of items, where there are some
    tokenizer  what makes the tokens where the unit is a tokenizer file
    reads_with  the tokenizer file that readers of documents use, if any
    rephrasings  what is known of the items where only rephrased questions are looked for
    """

    unit: str
    spec: ViewSpec
    items: ViewItems
    part_start: NDArray[np.int64]
    points: NDArray[np.int32]
    longest: int
    variants: Variants | None = None
    tokenizer: FileTokenizer | None = None
    reads_with: FileTokenizer | None = None
    rephrasings: RareWords | None = None


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SearchView(TokenView):
    """A token view with all that a search needs, which is most of its memory.

    gram_table    what the kernels see
    facts      letters of right choices, and words that announce an answer
    benchmark  int32[n], of the items and of their variants, which follow them in gram_table and
               facts
    is_number  uint8[tokens / 8], which are numbers of the questions, one bit each, the lowest
               first; none in units other than words
    readers    what reads documents for the policies of `items.read`, in their order
    """

    gram_table: GramTable
    facts: ItemFacts
    benchmark: NDArray[np.int32]
    is_number: NDArray[np.uint8]
    readers: tuple[TextReader, ...] = ()

    def for_judging(self) -> TokenView:
        """What the view has without the rest."""
        return TokenView(**{field.name: getattr(self, field.name) for field in fields(TokenView)})


@cache
def _mark_hashes(marks: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(int(tokenize_bytes(mark.encode()).hashes[0]) for mark in marks)


def _choice_marks(
    right: NDArray[np.int64], marks: tuple[str, ...], tokenizer: FileTokenizer | None
) -> NDArray[np.uint64]:
    """Hash of the mark (a letter, a number) of each item's right choice, 0 where there is none."""
    if tokenizer is None:
        hashes = list(_mark_hashes(marks))
    else:
        found = [tokenizer.single_tokens([mark.upper()]) for mark in marks]
        hashes = [int(tokens[0]) if len(tokens) else 0 for tokens in found]
    # Behind the last: what has no such mark.
    known = np.array([*hashes, 0], np.uint64)
    return known[np.where((right >= 0) & (right < len(marks)), right, -1)]


def build_view(
    items: Sequence[BenchItem],
    *,
    unit: str,
    seed: int,
    min_run: int,
    stride: int = 1,
    with_variants: bool = False,
    with_grams: bool = True,
) -> SearchView:
    """Tokenise all parts of all items and enter their grams into the table.

    unit     "word", "char" or the path of a tokenizer file
    seed     tokens of the shortest run that is looked for; min_run  of one always reported
    stride   how many of the grams are entered, see ViewSpec
    variants  whether items are searched without their punctuation, too: see match.variants
    grams     whether they are entered; a view without them finds no runs

    Raises UsageError or ConfigError when the unit is no tokenizer file.
    """
    items = ItemTable.of(items)
    tokenizer = None if unit in BUILT_IN_UNITS else load_tokenizer(unit)
    code = PRETOKENIZED if tokenizer is not None else CHARS if unit == "char" else WORDS
    spec = ViewSpec(unit=code, seed=seed, min_run=min_run, stride=stride)
    tokens, traces, benchmark = _tokens_of(items, code, tokenizer, with_variants=with_variants)
    starts = tokens.starts()
    variants = Variants.of(traces, len(items), starts) if traces else None
    if variants is not None:
        variants.mask_ambiguous(tokens.hashes)
    # A variant has the choices of its item, one by one.
    alike = np.empty(0, np.int32) if variants is None else variants.owner
    longest = int(tokens.n_tokens.max(initial=0))
    entered = spec if with_grams else spec._replace(seed=longest + stride)
    letters = (tokens.n_letters, tokens.letters) if with_grams else None
    gram_table = make_table(
        tokens.hashes, starts, tokens.weight, benchmark, entered, variants, letters
    )
    del letters
    tokens = tokens._replace(letters=tokens.letters[:0].copy())
    if len(tokens.hashes) > _MANY_TOKENS:
        trim()
    own = slice(len(items))
    return SearchView(
        unit=unit,
        spec=spec,
        items=ViewItems(
            n_items=len(items),
            benchmark=benchmark[own],
            n_tokens=tokens.n_tokens.astype(np.int32).reshape(-1, N_PARTS)[own],
            n_words=tokens.n_words[own],
            token_start=starts[:-1].reshape(-1, N_PARTS)[own],
            token_hash=gram_table.token,
            part_weight=gram_table.part_weight.reshape(-1, N_PARTS)[own],
            n_single=tokens.n_single[own],
            stretch=tokens.stretch[own],
            item_ids=items.lazy("item_id"),
            word_start=tokens.word_start if code == CHARS else None,
            seed=seed,
            min_run=min_run,
        ),
        part_start=starts,
        gram_table=gram_table,
        facts=_facts(items, alike, tokenizer),
        points=tokens.points,
        longest=longest,
        benchmark=benchmark,
        is_number=_numbers_among(tokens.hashes, items, code),
        variants=variants,
        tokenizer=tokenizer,
    )


def _tokens_of(
    items: ItemTable,
    code: int,
    tokenizer: FileTokenizer | None,
    *,
    with_variants: bool,
) -> tuple[Block, list[TracedVariants], NDArray[np.int32]]:
    """The tokens of the items, and of their variants behind them; and each one's benchmark."""
    own = [
        read_block(*some.part_texts(), code, tokenizer, with_letters=code == WORDS)
        for some in in_blocks(items)
    ]
    names, codes = items.codes("benchmark")
    place = _places(names[at] for at in np.unique(codes).tolist())
    benchmark = np.array([place.get(name, -1) for name in names], np.int32)[codes]
    traces: list[TracedVariants] = []
    if with_variants:
        others, traces, names = read_variants(items, own, code)
        own += others
        # They have benchmarks of their own, so that nobody's weights change.
        theirs = _places(names, len(place))
        benchmark = np.append(benchmark, np.array([theirs[name] for name in names], np.int32))
        del others
    columns = list(zip(*own, strict=True))
    del own
    # Column by column, so that no more than one is there twice.
    columns.reverse()
    tokens = Block(*(np.concatenate(columns.pop()) for _ in Block._fields))
    if len(tokens.hashes) > _MANY_TOKENS:
        # What was freed is in gaps, into which none of the large arrays to come fits.
        trim()
    return tokens, traces, benchmark


def _places(names: Iterable[str], first: int = 0) -> dict[str, int]:
    """The different names, numbered in order."""
    return {name: at for at, name in enumerate(sorted(set(names)), first)}


def _facts(
    items: ItemTable, alike: NDArray[np.int32], tokenizer: FileTokenizer | None
) -> ItemFacts:
    """Letters and numbers of the right choices, of the items and those like them."""
    right = items.right_choices()
    letter = _choice_marks(right, _LETTERS, tokenizer)
    number = _choice_marks(right, _NUMBERS, tokenizer)
    return ItemFacts(
        letter=np.concatenate([letter, letter[alike]]),
        number=np.concatenate([number, number[alike]]),
        answer_words=announcing_words()
        if tokenizer is None
        else tokenizer.single_tokens(announcing_texts()),
    )


def _numbers_among(hashes: NDArray[np.uint64], items: ItemTable, code: int) -> NDArray[np.uint8]:
    """Which tokens are numbers of the questions: `SearchView.is_number`."""
    # Never written where it stays so: it takes no memory.
    is_number = np.zeros(len(hashes) // 8 + 1, np.uint8)
    if code != WORDS:
        return is_number
    numbers = token_table(number_hashes(items.column("question")))
    for begin in range(0, len(hashes), _AT_ONCE):
        found = are_entered(hashes[begin : begin + _AT_ONCE], numbers)
        bits = np.packbits(found, bitorder="little")
        is_number[begin // 8 : begin // 8 + len(bits)] = bits
    return is_number


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
        scratch = new_letter_scratch(char_tables(), int(np.diff(offsets).max(initial=0)))
        n_letters, letters = word_letters(data, offsets, starts, hashes, spans, scratch)
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
    n_tokens = [block.n_tokens for block in own]
    starts = np.concatenate([[0], np.cumsum(np.concatenate(n_tokens))])
    for variants, texts in variant_texts(items, n_tokens):
        blocks.append(read_block(*texts.left(), code, None))
        traces.append(TracedVariants.of(variants, texts, starts))
        # No name of a benchmark holds a null character.
        names += [f"{benchmarks[number[some.owner]]}\0{some.name}" for some in variants]
    return blocks, traces, names


def variant_texts(
    items: ItemTable, n_tokens: Sequence[NDArray[np.int64]]
) -> Iterator[tuple[list[Variant], VariantTexts]]:
    """The variants of each block of items that has some; n_tokens  of the parts of each block."""
    begin = 0
    for some, counts in zip(in_blocks(items), n_tokens, strict=True):
        variants = variants_of(some, counts[QUESTION::N_PARTS].astype(np.int32), begin)
        begin += len(some)
        if variants:
            yield variants, VariantTexts.of(items, variants)


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
