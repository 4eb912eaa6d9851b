"""Make the spans of tokens again: where evidence stands in the texts of items."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from contam.detect.match.item_tokens import in_blocks, tokens_of, traced_variants
from contam.detect.model import N_PARTS
from contam.kernels.tokenize_items import code_point_spans

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from contam.benchmark.item_table import ItemTable
    from contam.detect.match.token_view import TokenView

#: Tokens whose spans are made at once.
_SPANS_AT_ONCE = 1 << 19


def spans_of(items: ItemTable, view: TokenView, tokens: NDArray[np.int64]) -> NDArray[np.int32]:
    """Code points of tokens of a view, in any order, in the texts of their parts: int32[n, 2]."""
    if view.tokenizer is not None:
        return view.points[tokens]
    spans = np.empty((len(tokens), 2), np.int32)
    order = np.argsort(tokens, kind="stable")
    for begin in range(0, len(order), _SPANS_AT_ONCE):
        some = order[begin : begin + _SPANS_AT_ONCE]
        spans[some] = _spans_by_token(items, view, tokens[some])[tokens[some]]
    return spans


def _spans_by_token(
    items: ItemTable, view: TokenView, tokens: NDArray[np.int64]
) -> NDArray[np.int32]:
    """The same as a table of all tokens; of items and variants without `tokens` all is 0.

    What is not asked for takes no memory.
    """
    begin, n, code = view.part_start[::N_PARTS], len(items), view.spec.unit
    result = np.zeros((int(begin[-1]), 2), np.int32)
    asked = np.unique(np.searchsorted(begin, tokens, side="right") - 1)

    def fill(rows: NDArray[np.int64], spans: list[NDArray[np.int32]]) -> None:
        """Put the spans of these items or variants, behind each other, in their places."""
        length = begin[rows + 1] - begin[rows]
        moved = np.repeat(begin[rows] - (np.cumsum(length) - length), length)
        result[moved + np.arange(len(moved))] = np.concatenate(spans)

    own = asked[asked < n]
    if len(own):
        fill(own, [spans for spans, _ in _points(items.take(own), code)])
    owner = np.empty(0, np.int32) if view.variants is None else view.variants.owner
    owners = np.unique(owner[asked[asked >= n] - n]).astype(np.int64)
    if len(owners):
        # Their blocks are others than those of all items: an item's variants keep their order.
        chosen = items.take(owners)
        counts = [of_block for _, of_block in _points(chosen, code)]
        traced = [trace for _, _, trace in traced_variants(chosen, counts)]
        found = np.argsort(np.concatenate([trace.owner for trace in traced]), kind="stable")
        rows = np.flatnonzero(np.isin(owner, owners))
        placed = np.empty_like(rows)
        placed[found] = n + rows[np.argsort(owner[rows], kind="stable")]
        fill(placed, [trace.spans for trace in traced])
    return result


def _points(items: ItemTable, code: int) -> Iterator[tuple[NDArray[np.int32], NDArray[np.int64]]]:
    """Code points of the tokens of each block of items, and how many each part has."""
    for some in in_blocks(items):
        data, offsets = some.part_texts()
        _, spans, starts = tokens_of(data, offsets, code, None)
        yield code_point_spans(data, offsets, starts, spans), np.diff(starts)
