"""Tokens of many texts at once, made or given, the texts of token ids, and weights of shared wording."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from contam.detect.match.collect import as_halves
from contam.detect.match.matching import matches_from_rows
from contam.detect.match.pieces import Pieces
from contam.kernels import tokenize_items
from contam.kernels.document import PRETOKENIZED, new_buffers, scan_batch
from contam.kernels.token_texts import BREAK, HEAD, MISSING, TokenTable, measure_texts, write_texts
from contam.kernels.tokenize_items import tokenize_parts
from contam.text.tokenizer import char_tables
from tests.kernels.evidence_support import search_of
from tests.kernels.support import (
    LOOKALIKES,
    NAMES,
    NOISE,
    UNITS,
    batch,
    few,
    frozen,
    match,
    view_of,
    worlds,
)
from tests.twins import grams
from tests.twins import tokens as twin
from tests.twins.bits import code_points
from tests.twins.token_texts import texts


def laid_out(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    encoded = [text.encode() for text in texts]
    data = frozen(np.frombuffer(b"".join(encoded) or b"\0", np.uint8), np.uint8)
    return data, np.cumsum([0, *map(len, encoded)])


def said(text: str, unit: str) -> list[tuple[int, int, int]]:
    if unit == "char":
        return twin.char_tokens(text.encode(), NAMES)
    return twin.word_tokens(text.encode(), NAMES, LOOKALIKES)


@pytest.mark.parametrize("unit", ["word", "char"])
@given(texts=st.lists(NOISE, max_size=5))
@example(texts=[])
@example(texts=[""])
@example(texts=["\ufdfa" * 40, "", "a b " * 60])
def test_texts_behind_each_other_are_read_one_by_one(unit, texts):
    data, offsets = laid_out(texts)
    hashes, spans, starts = tokenize_items.tokenize_parts(data, offsets, UNITS[unit], char_tables())
    assert len(starts) == len(texts) + 1
    assert starts[-1] == len(hashes) == len(spans)
    points = tokenize_items.code_point_spans(data, offsets, starts, spans)
    for i, text in enumerate(texts):
        want = said(text, unit)
        here = slice(starts[i], starts[i + 1])
        assert hashes[here].tolist() == [h for h, _, _ in want]
        assert spans[here].tolist() == [[a, b] for _, a, b in want]
        encoded = text.encode()
        assert points[here].tolist() == [
            [code_points(encoded[:a]), code_points(encoded[:b])] for _, a, b in want
        ]


@given(
    st.lists(st.floats(0, 1, width=32), max_size=12),
    st.lists(st.tuples(st.integers(0, 11), st.integers(1, 60) | st.just(70_000)), max_size=12),
    st.integers(1, 5),
)
@example([0.5], [(0, 1)], 1)
@example([0.5, 1.0], [(0, 40), (0, 2)], 2)
def test_shared_wording_weighs_less_the_more_items_share_it(base, places, n):
    places = [(first, owners) for first, owners in places if first + n <= len(base)]
    shared = np.zeros(len(base), np.uint8)
    for some in (places[:5], places[5:]):
        first = frozen([first for first, _ in some], np.int64)
        tokenize_items.note_shared(
            first, frozen([owners for _, owners in some], np.int32), n, shared
        )
    weights = tokenize_items.template_weights(frozen(base, np.float32), shared, 40.0, 0.08)
    want = grams.template_weights(base, places, n, 40.0, 0.08)
    assert weights.dtype == np.float32
    assert weights.tolist() == pytest.approx(want, rel=1e-5, abs=1e-7)


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
    search = search_of(view, as_halves(longest_at))
    rows, where, n_tokens = scan_batch(
        here.data,
        here.offsets,
        tokens,
        search._replace(spec=view.spec._replace(unit=PRETOKENIZED)),
        new_buffers(longest, PRETOKENIZED, char_tables()),
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


TOKENS = st.lists(
    st.one_of(
        st.binary(max_size=12),
        st.binary(min_size=HEAD - 1, max_size=3 * HEAD),
        st.sampled_from([b" ", b" a", b"", BREAK, MISSING]),
    ),
    min_size=1,
    max_size=12,
)


def table_of(tokens):
    plain = [one if isinstance(one, bytes) else b"" for one in tokens]
    size = np.array([len(one) for one in plain], np.int64)
    return TokenTable(
        length=np.array([one if isinstance(one, int) else len(one) for one in tokens], np.int32),
        head=np.frombuffer(b"".join(one[:HEAD].ljust(HEAD, b"\0") for one in plain), "<u8").reshape(-1, 2),
        start=np.cumsum(size) - size,
        data=np.frombuffer(b"".join(plain) + b"\0", np.uint8),
    )  # fmt: skip


@given(TOKENS, st.data(), st.booleans())
def test_texts_of_a_table_are_those_of_a_loop(tokens, data, strips):
    documents = data.draw(st.lists(st.lists(st.integers(0, len(tokens)), max_size=9), max_size=5))
    ids = np.array([one for document in documents for one in document], np.uint32)
    offsets = np.cumsum([0, *map(len, documents)]).astype(np.int64)
    wanted = texts(ids.tolist(), offsets.tolist(), tokens, strips=strips)
    size, unknown = measure_texts(ids, table_of(tokens))
    assert (unknown >= 0) == (wanted is None)
    if wanted is None:
        assert ids[unknown] == len(tokens) or tokens[ids[unknown]] == MISSING
        return
    out, bounds = np.empty(size, np.uint8), np.empty(len(offsets), np.int64)
    where = np.empty(len(ids) + 1, np.int64)
    write_texts(ids, offsets, table_of(tokens), strips, out, bounds, where)
    made = out.tobytes()
    assert [made[a:b] for a, b in itertools.pairwise(bounds)] == wanted[0]
    assert where.tolist() == wanted[1]
