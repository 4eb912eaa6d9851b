"""Share code among policies: labels from scores, wording of figures, and tokens side by side.

A segment is one part of one item. Segments are in item order, and within an item in PARTS order, so
that shares are sums, not loops. Grams, runs and windows never cross from one part into the next.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeVar
from weakref import ref

import numpy as np
from numpy.typing import NDArray

from contam.benchmark.items import PARTS
from contam.detect.labels import LABELS, NOT_CHECKABLE
from contam.detect.model import ANSWER, CHOICES, PASSAGE, QUESTION, Judgements, ViewItems
from contam.detect.policies.policy_spec import PolicyTraits
from contam.errors import InternalError, PolicyError, Statement
from contam.facts import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import DTypeLike

    from contam.detect.model import Bools, Float64s, Int8s, Int32s, Int64s, Matches, Totals, Uint64s
    from contam.detect.policies.policy_spec import PolicySpec


Fact = TypeVar("Fact")

COUNTS_RUNS: Final = PolicyTraits(
    monotone=False,
    short_items="none",
    needs_weights=False,
    sees_variants=False,
    reads_text=False,
)
"""Traits of a rule that counts runs of n tokens as they stand, wherever they are."""


def judgements(
    spec: PolicySpec, score: Float64s, checkable: Bools, *, tolerance: float = 0.0
) -> Judgements:
    """Labels by the spec's thresholds; what is not checkable is labelled so and scores 0."""
    label = np.zeros(score.shape[0], np.int8)
    for threshold, name in spec.thresholds:
        label[passes(spec, score, threshold, tolerance=tolerance)] = LABELS.index(name)
    label[~checkable] = NOT_CHECKABLE
    return Judgements(label=label, score=np.where(checkable, score, 0.0))


def passes(spec: PolicySpec, score: Float64s, threshold: float, *, tolerance: float = 0.0) -> Bools:
    """Which scores earn the label of this threshold."""
    if spec.comparison == "more than":
        return score > threshold + tolerance
    return score >= threshold - tolerance


class PerItems(Generic[Fact]):
    """Remembers what was computed for the items last asked about; threads may share it.

    It does not hold items and totals themselves: those of a large set take gigabytes.
    """

    _last: tuple[ref[ViewItems], ref[Totals] | None, Fact] | None = None

    def __getstate__(self) -> dict[str, object]:
        """Nothing: a policy read from the file of a plan computes it again."""
        return {}

    def get(
        self, items: ViewItems, compute: Callable[[ViewItems], Fact], totals: Totals | None = None
    ) -> Fact:
        """The remembered value for these very items (and totals), else `compute(items)`."""
        last = self._last
        if last is not None and last[0]() is items and (last[1] and last[1]()) is totals:
            return last[2]
        value = compute(items)
        # One assignment, so no thread sees a half.
        self._last = (ref(items), None if totals is None else ref(totals), value)
        return value


def documents_hold(number: int) -> str:
    """`no document holds`, `1 document holds`, `3 documents hold`."""
    if number == 0:
        return "no document holds"
    return f"{counted(number, 'document')} {'holds' if number == 1 else 'hold'}"


def part_lengths(spec: PolicySpec, n_tokens: Sequence[int], unit: str) -> str:
    """How long the judged parts of an item are: `the question has 3 words`.

    n_tokens  of each of its parts, in PARTS order;  unit  see `unit_names`
    """
    lengths = [
        f"the {PARTS[column]} has {counted(n_tokens[column], unit)}"
        for column in part_index(spec.parts)
        if n_tokens[column]
    ]
    return " and ".join(lengths) or f"there is no text in its {' or '.join(spec.parts)}"


def unit_names(
    spec: PolicySpec, items: ViewItems, rows: Int32s | Int64s, parts: Iterable[str] | None = None
) -> list[str]:
    """What a token of these items is called: without spaces between words, a character.

    parts   the parts that are looked at; those that the policy judges where none are named
    """
    if spec.unit != "word":
        return ["character"] * len(rows)
    columns = part_index(spec.parts if parts is None else parts)
    # Column by column: to take some of the columns at once is slower.
    n_single = sum((items.n_single[rows, column] for column in columns), np.zeros(len(rows), int))
    n_tokens = sum((items.n_tokens[rows, column] for column in columns), np.zeros(len(rows), int))
    kind = np.where(n_single == 0, 0, np.where(n_single == n_tokens, 1, 2))
    return [_UNIT_NAMES[at] for at in kind.tolist()]


_UNIT_NAMES: Final = ("word", "character", "word or character")


def percent(share: float) -> str:
    """A share in percent, rounded down: 79.96 % must not read like the 80 % it misses."""
    tenths = math.floor(share * 1000.0 + 1e-6) / 10.0
    return f"{tenths:.0f} %" if tenths.is_integer() else f"{tenths:.1f} %"


def flags_from(spec: PolicySpec) -> str:
    """How the thresholds are said in a reason, for scores that are shares."""
    word = "above" if spec.comparison == "more than" else "from"
    return "this policy says " + " and ".join(
        f"{name} {word} {percent(score)}" for score, name in spec.thresholds
    )


_Array = NDArray[Any]

_BLOCK_TOKENS: Final = 1 << 18
#: The columns of `ViewItems` with a row for each item.
_OF_ITEMS: Final = (
    "benchmark", "n_tokens", "n_words", "token_start", "part_weight", "n_single", "stretch",
    "item_ids",
)  # fmt: skip
_MIX_1: Final = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2: Final = np.uint64(0x94D049BB133111EB)


def mixed(keys: Uint64s) -> Uint64s:
    """The keys with every bit spread over all 64; equal keys stay equal (splitmix64's finish)."""
    keys = (keys ^ (keys >> np.uint64(30))) * _MIX_1
    keys = (keys ^ (keys >> np.uint64(27))) * _MIX_2
    return keys ^ (keys >> np.uint64(31))


def part_index(parts: Iterable[str]) -> tuple[int, ...]:
    """Columns of the named parts, in PARTS order."""
    return _columns(tuple(parts))


@cache
def _columns(parts: tuple[str, ...]) -> tuple[int, ...]:
    return tuple(column for column, name in enumerate(PARTS) if name in parts)


def longest_runs(spec: PolicySpec, matches: Matches) -> Int32s:
    """The longest run of the judged parts in each match, in tokens, int32[m]."""
    longest: Int32s = matches.longest[:, part_index(spec.parts)].max(axis=1)
    return longest


def require_view(spec: PolicySpec, items: ViewItems) -> None:
    """Refuse to judge what the view cannot have seen; PolicyError."""
    if spec.n < items.seed:
        raise PolicyError(
            "policy {!r} needs runs of {}, but the scan sees them from {}",
            spec.id,
            spec.n,
            items.seed,
            hint=Statement("scan with a seed of at most {}", spec.n),
        )


def item_range(items: ViewItems, first: int, after: int) -> ViewItems:
    """The items from `first` up to `after` alone; they keep their places in the flat arrays."""
    own = {name: getattr(items, name)[first:after] for name in _OF_ITEMS}
    return replace(items, n_items=after - first, **own)


def in_blocks(
    items: ViewItems,
    parts: Iterable[str],
    compute: Callable[[ViewItems], tuple[_Array, ...]],
) -> tuple[_Array, ...]:
    """What `compute` gives for all items, asked block by block and joined along the first axis.

    A block has about 260,000 tokens of the named parts, so memory does not grow with the items.
    """
    tokens = np.cumsum(items.n_tokens[:, part_index(parts)].sum(axis=1, dtype=np.int64))
    n_tokens = int(tokens[-1]) if tokens.size else 0
    marks = np.searchsorted(tokens, np.arange(_BLOCK_TOKENS, n_tokens, _BLOCK_TOKENS)) + 1
    edges = np.unique(np.concatenate([[0], marks, [items.n_items]]))
    blocks = [
        compute(item_range(items, int(first), int(after))) for first, after in pairwise(edges)
    ] or [compute(items)]
    if len(blocks) == 1:
        return blocks[0]
    return tuple(np.concatenate(column) for column in zip(*blocks, strict=True))


@dataclass(frozen=True, slots=True, eq=False)
class Segments:
    """k tokens in s segments; s is n_items times the number of judged parts.

    length    int64[s]  tokens of each segment
    segment   int64[k]  which segment a token is in
    offset    int64[k]  its position there
    place     int64[k]  its position in the view's flat arrays
    n_items, n_parts  the segments of one item are one row of an [n_items, n_parts] array
    """

    length: Int64s
    segment: Int64s
    offset: Int64s
    place: Int64s
    n_items: int
    n_parts: int

    @classmethod
    def of(cls, items: ViewItems, parts: Iterable[str]) -> Self:
        """The segments of these parts of every item."""
        columns = part_index(parts)
        length = items.n_tokens[:, columns].reshape(-1).astype(np.int64)
        start = items.token_start[:, columns].reshape(-1)
        segment = np.repeat(np.arange(length.size, dtype=np.int64), length)
        first = np.cumsum(length) - length
        offset = np.arange(segment.size, dtype=np.int64) - first[segment]
        return cls(length, segment, offset, start[segment] + offset, items.n_items, len(columns))

    def by_item(self, values: Int64s) -> Int64s:
        """int64[s] as int64[n_items, n_parts]."""
        return values.reshape(self.n_items, self.n_parts)

    def runs(self, totals: Totals) -> Int64s:
        """int64[k]: the longest run in any document that starts at each token."""
        runs = totals.longest_at[self.place].astype(np.int64)
        if np.any(runs > self.length[self.segment] - self.offset):
            raise InternalError("a run was recorded that leaves its part")
        return runs

    def longest(self, runs: Int64s) -> Int64s:
        """int64[s]: the longest run that starts anywhere in each segment."""
        best = np.zeros(self.length.size, np.int64)
        filled = self.length > 0
        if runs.size:
            first = np.cumsum(self.length) - self.length
            best[filled] = np.maximum.reduceat(runs, first[filled])
        return best

    def count(self, chosen: Bools) -> Int64s:
        """int64[s]: chosen tokens (bool[k]) of each segment."""
        return np.bincount(self.segment[chosen], minlength=self.length.size).astype(np.int64)

    def n_grams(self, n: int) -> Int64s:
        """int64[s]: places where n tokens fit."""
        return np.maximum(self.length - (n - 1), 0)

    def covered(self, gram_starts: Bools, n: int) -> Bools:
        """bool[k]: tokens inside a chosen gram of n tokens (bool[k], true where one starts)."""
        starts = np.flatnonzero(gram_starts)
        depth = np.zeros(gram_starts.size + 1, np.int64)
        depth[starts] += 1
        depth[starts + n] -= 1
        return np.cumsum(depth[:-1]) > 0


#: Parts that are summed at once: NumPy makes a copy of their values in the type of the sums.
_AT_ONCE = 1 << 18


def part_sums(
    values: NDArray[Any], start: NDArray[np.int64], length: NDArray[Any], dtype: DTypeLike
) -> NDArray[Any]:
    """The sum of the values of each part, in the shape of `start`.

    values         one a token, parts behind each other
    start, length  where a part begins in `values`, and its tokens; ascending, without gaps
    dtype          of the sums
    A sum depends on its own part alone, to the last bit.
    """
    sums: NDArray[Any] = np.zeros(start.size, dtype)
    first, n_values = start.reshape(-1), length.reshape(-1)
    for begin in range(0, len(sums), _AT_ONCE):
        some = begin + np.flatnonzero(n_values[begin : begin + _AT_ONCE])
        if len(some):
            lo, hi = first[some[0]], first[some[-1]] + n_values[some[-1]]
            sums[some] = np.add.reduceat(values[lo:hi], first[some] - lo, dtype=dtype)
    return sums.reshape(start.shape)


EXPOSURES: Final = ("none", "question", "question+answer", "passage_only", "answer_only")
NONE: Final = 0
QUESTION_ONLY: Final = 1
QUESTION_AND_ANSWER: Final = 2
PASSAGE_ONLY: Final = 3
ANSWER_ONLY: Final = 4

KINDS: Final = ("exact", "near", "partial", "rephrased")
_EXACT, _NEAR, _PARTIAL, _REPHRASED = range(4)

#: A part counts as standing in a document from this weight share on.
STANDS = 0.5
#: So does one with a run of this many tokens, as long as it may be.
LONG_RUN = 13
NEAR = 0.75
#: A copy has this share of the tokens themselves.
MOST = 0.7


def question_words(matches: Matches, n_tokens: Int32s) -> Int32s:
    """Words of the question that the figures of each match count, int32[m].

    n_tokens  int32[items, 4], tokens of the parts of each item
    """
    own: Int32s = np.where(matches.item >= 0, n_tokens[matches.item, QUESTION], 0)
    return np.where(matches.variant_words > 0, matches.variant_words, own)


def exposures(matches: Matches) -> Int8s:
    """What of its item stands in the document of each match, int8[m]: an index into EXPOSURES."""
    stands = (matches.coverage >= STANDS) | matches.exact | (matches.longest >= LONG_RUN)
    some = (matches.longest[:, QUESTION] > 0) | (matches.coverage[:, QUESTION] > 0)
    found = np.where(some, QUESTION_ONLY, NONE).astype(np.int8)
    found[stands[:, ANSWER] | stands[:, CHOICES]] = ANSWER_ONLY
    found[stands[:, PASSAGE]] = PASSAGE_ONLY
    found[matches.told > 0] = ANSWER_ONLY
    whole = stands[:, QUESTION]
    found[whole] = np.where(matches.answer_near[whole], QUESTION_AND_ANSWER, QUESTION_ONLY)
    found[matches.item < 0] = NONE
    return found


def kinds(matches: Matches, exposure: Int8s, n_tokens: Int32s) -> Int8s:
    """How what stands there compares with the item, int8[m]: an index into KINDS, -1 for neither.

    exposure  int8[m], see `exposures`; n_tokens  int32[m, 4], tokens of the parts of each item
    """
    part = np.where(
        matches.coverage[:, ANSWER] >= matches.coverage[:, CHOICES], ANSWER, CHOICES
    ).astype(np.int64)
    part[exposure == PASSAGE_ONLY] = PASSAGE
    asked = (exposure == QUESTION_ONLY) | (exposure == QUESTION_AND_ANSWER)
    part[asked] = QUESTION
    row = np.arange(len(matches))
    whole = matches.coverage[row, part] >= NEAR
    words = np.where(
        asked & (matches.variant_words > 0), matches.variant_words, n_tokens[row, part]
    )
    whole &= matches.aligned[row, part] >= MOST * words
    whole &= ~(asked & matches.split)
    kind = np.where(whole, _NEAR, _PARTIAL).astype(np.int8)
    kind[matches.exact[row, part]] = _EXACT
    # Nothing is aligned where other words say the same.
    no_run = (matches.longest[:, QUESTION] == 0) & ~matches.exact[:, QUESTION]
    kind[asked & no_run & (matches.coverage[:, QUESTION] > 0)] = _REPHRASED
    kind[exposure == NONE] = -1
    return kind
