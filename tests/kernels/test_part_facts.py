"""Words, pieces and word beginnings of item texts, and equal grams put together."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from contam.kernels import tokenize_items
from contam.kernels.gram_table import EMPTY
from contam.kernels.tokenize_items import tokenize_parts
from contam.text.tokenizer import char_tables
from tests.kernels.support import FEW, NOISE, U64, UNITS, frozen, u64s
from tests.twins import parts as twin

SPACES = [*filter(str.isspace, map(chr, range(sys.maxunicode + 1)))]
#: Neighbours of white space, and characters that begin with the same bytes.
NEARLY = ["\x08", "\x0e", "\x1b", "\x21", "\x84", "\x86", "\x9f", "\xa1", "\u167f", "\u1681"]
NEARLY += ["\u1fff", "\u200b", "\u2027", "\u202a", "\u2030", "\u205e", "\u2060", "\u3001", "\ufeff"]
BLANKED = st.lists(st.sampled_from([*SPACES, *NEARLY, "a", "中", "🦊"]), max_size=12).map("".join)
LINES = st.lists(st.sampled_from(["one", "a b", "\n", " ", ".", "两个"]), max_size=9).map("".join)


def laid_out(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    encoded = [text.encode() for text in texts]
    data = frozen(np.frombuffer(b"".join(encoded) or b"\0", np.uint8), np.uint8)
    return data, np.cumsum([0, *map(len, encoded)])


@given(st.lists(BLANKED | NOISE, max_size=5))
@example([])
@example(["", *SPACES, *NEARLY])
@example([f"a{space}b" for space in SPACES + NEARLY])
def test_words_are_what_split_finds(texts):
    counted = tokenize_items.count_words(*laid_out(texts))
    assert counted.tolist() == [len(text.split()) for text in texts]


@pytest.mark.parametrize("unit", ["word", "char"])
@given(texts=st.lists(LINES | NOISE, max_size=9), cut=st.integers(0, 3))
@example(texts=["one\ntwo three\nfour"] * 4, cut=2)
@example(texts=[], cut=2)
def test_pieces_and_word_beginnings(unit, texts, cut):
    data, offsets = laid_out(texts)
    _, spans, starts = tokenize_parts(data, offsets, UNITS[unit], char_tables())
    longest = tokenize_items.longest_pieces(data, offsets, starts, spans, 4, cut)
    fresh = tokenize_items.word_starts(data, offsets, starts, spans)
    assert (longest.shape, fresh.shape) == ((len(texts),), (len(spans),))
    for i, text in enumerate(texts):
        mine = [(int(a), int(b)) for a, b in spans[starts[i] : starts[i + 1]]]
        encoded = text.encode()
        assert longest[i] == twin.longest_piece(encoded, mine, i % 4 == cut)
        want = [twin.begins_word(encoded, mine, at) for at in range(len(mine))]
        assert fresh[starts[i] : starts[i + 1]].tolist() == want


@given(st.lists(U64 | FEW, max_size=30))
@example([])
@example([7] * 9)
@example([0, 2**64 - 1, 64, 128, 0, 64])
def test_equal_grams_get_one_number_and_keep_their_order(grams):
    slots = np.full(64, EMPTY, np.int32)
    keys, gram_of = np.zeros(len(grams), np.uint64), np.full(len(grams), -7, np.int32)
    n_grams = tokenize_items.group_grams(u64s(grams), slots, keys, gram_of)
    want = twin.grouped(grams)
    assert keys[:n_grams].tolist() == list(want)
    assert keys[gram_of].tolist() == grams

    where = np.arange(100, 100 + len(grams))
    part_of = np.arange(len(grams), dtype=np.int32) // 3
    start = np.zeros(n_grams + 1, np.int64)
    place, part = np.zeros_like(where), np.zeros_like(part_of)
    tokenize_items.gather_places(gram_of, where, part_of, start, place, part)
    for at, places in enumerate(want.values()):
        here = slice(start[at], start[at + 1])
        assert place[here].tolist() == [100 + one for one in places]
        assert part[here].tolist() == [one // 3 for one in places]
    assert start[-1] == len(grams)
