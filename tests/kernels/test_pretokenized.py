"""Documents that come with their tokens: the same answer as for the tokens that a kernel makes."""

from __future__ import annotations

import numpy as np
from hypothesis import given

from contam.detect.match.collect import as_halves
from contam.detect.match.matching import matches_from_rows
from contam.detect.match.pieces import Pieces
from contam.kernels.align import new_scratch
from contam.kernels.document import PRETOKENIZED, new_buffers, scan_tokens
from contam.kernels.tokenize_items import tokenize_parts
from contam.text.tokenizer import char_tables
from tests.kernels.support import batch, few, match, view_of, worlds


@given(worlds(documents=4))
@few
def test_given_tokens_are_matched_as_made_ones_are(world):
    items, documents = world
    view = view_of(items)
    made = match(view, documents)
    here = batch(documents)
    tokens = tokenize_parts(here.data, here.offsets, view.spec.unit, char_tables())
    longest = int(np.diff(tokens[2]).max(initial=0))
    longest_at = np.zeros_like(made.longest_at)
    rows, where, n_tokens = scan_tokens(
        here.data,
        here.offsets,
        tokens,
        view.spec._replace(unit=PRETOKENIZED),
        view.gram_table,
        view.facts,
        char_tables(),
        new_buffers(longest, PRETOKENIZED),
        new_scratch(view.longest),
        (np.zeros(4 * len(items), np.int32), as_halves(longest_at)),
    )
    assert n_tokens == made.n_tokens
    assert longest_at.tolist() == made.longest_at.tolist()
    pieces = Pieces.from_rows(rows, where)
    matches = matches_from_rows(rows, view, 0, 0)
    want_pairs, want_pieces = made.evidence()
    assert spoken(matches, pieces) == spoken(want_pairs, want_pieces)


def spoken(matches, pieces) -> list[tuple]:
    """Pieces of evidence with the item and row they belong to, in an order of their own."""
    columns = (
        pieces.part, pieces.alignment, pieces.item_token, pieces.length, pieces.start, pieces.end,
    )  # fmt: skip
    places = zip(
        matches.item[pieces.match].tolist(), matches.row[pieces.match].tolist(), strict=True
    )
    rows = zip(places, *(column.tolist() for column in columns), strict=True)
    return sorted(rows)
