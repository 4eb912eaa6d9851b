"""Build a token view: all items in one unit, with weights and a table of their grams."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np

from contam.benchmark.packed import column_of, ids_of, right_choices
from contam.detect.match.grams import make_table, without_table
from contam.detect.match.item_tokens import (
    Block,
    in_blocks,
    known_spans,
    read_block,
    read_variants,
    spans_of,
)
from contam.detect.match.variants import Variants
from contam.detect.model import N_PARTS, ViewItems
from contam.kernels.hash_set import are_entered
from contam.kernels.match_rows import ItemFacts
from contam.kernels.pretokenized import PRETOKENIZED
from contam.kernels.score_item import ViewSpec
from contam.kernels.tokens import CHARS, WORDS
from contam.memory import trim
from contam.text.bpe import BUILT_IN_UNITS, FileTokenizer, load_tokenizer
from contam.text.common_words import announcing_texts, announcing_words
from contam.text.token_kinds import number_hashes, token_table
from contam.text.tokenizer import tokenize_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from contam.benchmark.items import BenchItem
    from contam.detect.match.variants import TracedVariants
    from contam.detect.meaning.rare_words import RareWords
    from contam.detect.policies.policy import TextReader
    from contam.kernels.gram_table import GramTable

_LETTERS = tuple("abcdefghijklmnopqrstuvwxyz")
_NUMBERS = tuple(map(str, range(26)))
#: From so many on, free memory is given back between the steps of a plan.
_MANY_TOKENS = 1 << 24
#: Tokens that are looked up together.
_AT_ONCE = 1 << 20


@dataclass(slots=True, eq=False, kw_only=True)
class TokenView:
    """One unit's view of all items, ready to be matched.

    unit       as the user names it
    spec       unit, seed and min_run as the kernels take them
    items      what policies see
    gram_table    what the kernels see
    facts      letters of right choices, and words that announce an answer
    spans      makes int32[total tokens, 2], code points of each token in its part's text: as large
               as the tokens themselves, and asked for once, at the end; or of given tokens alone
    longest    tokens of the longest part
    benchmark  int32[n], of the items and of their variants, which follow them in gram_table and
               facts
    variants   the variants of items, where there are some
    tokenizer  what makes the tokens where the unit is a tokenizer file
    readers    what reads documents for the policies of `items.read`, in their order
    is_number  uint8[tokens of gram_table / 8], which are numbers of the questions, one bit each,
               the lowest first; none in units other than words
    reads_with  the tokenizer file they read with, if any
    rephrasings  what is known of the items where only rephrased questions are looked for
    """

    unit: str
    spec: ViewSpec
    items: ViewItems
    gram_table: GramTable
    facts: ItemFacts
    spans: Callable[..., NDArray[np.int32]]
    longest: int
    benchmark: NDArray[np.int32]
    is_number: NDArray[np.uint8]
    variants: Variants | None = None
    tokenizer: FileTokenizer | None = None
    readers: tuple[TextReader, ...] = ()
    reads_with: FileTokenizer | None = None
    rephrasings: RareWords | None = None

    def release_table(self) -> None:
        """Give back the memory that only matching needs; the view cannot match any more."""
        self.gram_table = without_table(self.gram_table)

    def release_tokens(self) -> None:
        """Give back the tokens, too: no policy can judge by the view any more."""
        none = self.items.token_hash[:0].copy()
        self.gram_table = without_table(self.gram_table)._replace(token=none)
        self.items = replace(self.items, token_hash=none)


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
        hashes = [int(tokens[0]) if len(tokens) else 0 for tokens in found]
    right = [hashes[at] if at is not None and at < len(marks) else 0 for at in right_choices(items)]
    return np.array(right, np.uint64)


def build_view(
    items: Sequence[BenchItem],
    *,
    unit: str,
    seed: int,
    min_run: int,
    stride: int = 1,
    with_variants: bool = False,
    with_grams: bool = True,
) -> TokenView:
    """Tokenise all parts of all items and enter their grams into the table.

    unit     "word", "char" or the path of a tokenizer file
    seed     tokens of the shortest run that is looked for; min_run  of one always reported
    stride   how many of the grams are entered, see ViewSpec
    variants  whether items are searched without their punctuation, too: see match.variants
    grams     whether they are entered; a view without them finds no runs

    Raises UsageError or ConfigError when the unit is no tokenizer file.
    """
    tokenizer = None if unit in BUILT_IN_UNITS else load_tokenizer(unit)
    code = PRETOKENIZED if tokenizer is not None else CHARS if unit == "char" else WORDS
    own = [read_block(some, code, tokenizer) for some in in_blocks(items)]
    benchmarks = list(column_of(items, "benchmark"))
    traces: list[TracedVariants] = []
    if with_variants:
        others, traces, names = read_variants(items, own, code)
        own += others
        benchmarks += names
        del others
    columns = list(zip(*own, strict=True))
    del own
    # Column by column, so that no more than one is there twice.
    columns.reverse()
    tokens = Block(*(np.concatenate(columns.pop()) for _ in Block._fields))
    if len(tokens.hashes) > _MANY_TOKENS:
        # What was freed is in gaps, into which none of the large arrays to come fits.
        trim()
    starts = tokens.starts()
    traced = Variants.of(traces, len(items), starts) if traces else None
    if traced is not None:
        traced.blot_out(tokens.hashes)
    points = tokens.points
    # A variant has the choices of its item, one by one.
    alike = np.empty(0, np.int32) if traced is None else traced.owner
    again = partial(spans_of, items, code, starts, alike)
    letter = _choice_marks(items, _LETTERS, tokenizer)
    number = _choice_marks(items, _NUMBERS, tokenizer)
    facts = ItemFacts(
        letter=np.concatenate([letter, letter[alike]]),
        number=np.concatenate([number, number[alike]]),
        answer_words=announcing_words()
        if tokenizer is None
        else tokenizer.single_tokens(announcing_texts()),
    )
    spec = ViewSpec(unit=code, seed=seed, min_run=min_run, stride=stride)
    view = view_of(
        tokens,
        starts=starts,
        benchmarks=benchmarks,
        item_ids=ids_of(items),
        facts=facts,
        spec=spec,
        unit=unit,
        spans=again if tokenizer is None else partial(known_spans, points),
        variants=traced,
        tokenizer=tokenizer,
        with_grams=with_grams,
    )
    if len(tokens.hashes) > _MANY_TOKENS:
        trim()
    if code == WORDS:
        numbers = token_table(number_hashes(column_of(items, "question")))
        for begin in range(0, len(tokens.hashes), _AT_ONCE):
            found = are_entered(tokens.hashes[begin : begin + _AT_ONCE], numbers)
            bits = np.packbits(found, bitorder="little")
            view.is_number[begin // 8 : begin // 8 + len(bits)] = bits
    return view


def view_of(  # noqa: PLR0913 - all by name: what a view is made of
    tokens: Block,
    *,
    starts: NDArray[np.int64] | None = None,
    benchmarks: Sequence[str],
    item_ids: Sequence[str],
    facts: ItemFacts,
    spec: ViewSpec,
    unit: str,
    spans: Callable[..., NDArray[np.int32]],
    variants: Variants | None = None,
    tokenizer: FileTokenizer | None = None,
    with_grams: bool = True,
) -> TokenView:
    """The view of items whose tokens are known.

    tokens      those of the items' variants lie behind their own; the view writes its own weights
                over `tokens.weight`
    starts      `tokens.starts()`, where it is there already
    benchmarks  of each item and variant, by name
    """
    n_items = len(item_ids)
    names = [*sorted(set(benchmarks[:n_items])), *sorted(set(benchmarks[n_items:]))]
    place = {name: at for at, name in enumerate(names)}
    benchmark = np.array([place[name] for name in benchmarks], np.int32)
    starts = tokens.starts() if starts is None else starts
    n_tokens = tokens.n_tokens.astype(np.int32).reshape(-1, N_PARTS)
    longest = int(n_tokens.max(initial=0))
    # No part has a gram that is longer than it.
    entered = spec if with_grams else spec._replace(seed=longest + spec.stride)
    gram_table = make_table(tokens.hashes, starts, tokens.weight, benchmark, entered, variants)
    own = slice(n_items)
    return TokenView(
        unit=unit,
        spec=spec,
        items=ViewItems(
            n_items=n_items,
            benchmark=benchmark[own],
            n_tokens=n_tokens[own],
            n_words=tokens.n_words[own],
            token_start=starts[:-1].reshape(-1, N_PARTS)[own],
            token_hash=gram_table.token[: starts[N_PARTS * n_items]],
            part_weight=gram_table.part_weight.reshape(-1, N_PARTS)[own],
            n_single=tokens.n_single[own],
            stretch=tokens.stretch[own],
            item_ids=item_ids,
            word_start=tokens.word_start if spec.unit == CHARS else None,
            seed=spec.seed,
            min_run=spec.min_run,
        ),
        gram_table=gram_table,
        facts=facts,
        spans=spans,
        longest=longest,
        benchmark=benchmark,
        # Never written where it stays so: it takes no memory.
        is_number=np.zeros(len(gram_table.token) // 8 + 1, np.uint8),
        variants=variants,
        tokenizer=tokenizer,
    )
