"""Tokens of many texts at once, their code points, and the weights of shared wording."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from contam.kernels import tokenize_items
from contam.text.tokenizer import char_tables
from tests.kernels.support import LOOKALIKES, NAMES, NOISE, UNITS, frozen
from tests.twins import grams
from tests.twins import tokens as twin
from tests.twins.bits import code_points


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
