"""The tokeniser against its twin and against the frozen known answers."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from contam.kernels import tokens, words
from contam.text.tokenizer import char_tables, tokenize_bytes
from tests.kernels.support import CHARACTERS, LOOKALIKES, NAMES, NOISE, UNITS, few, frozen
from tests.twins import tokens as twin

GUARD = 7
ROOM = {"word": 2, "char": 5}


def read(data: bytes, unit: str, before: bytes = b"zz", after: bytes = b"zz") -> list[tuple]:
    """Tokens of a text in the middle of a buffer; fails when the kernel writes past its room."""
    n, text_scratch = len(data), ROOM[unit] * len(data) + 16
    text = frozen(np.frombuffer(before + data + after, np.uint8), np.uint8)
    hashes = np.full(text_scratch + 8, GUARD, np.uint64)
    spans = np.full((text_scratch + 8, 2), GUARD, np.int32)
    limits = (len(before), len(before) + n)
    count = tokens.tokenize(
        text, limits, UNITS[unit], hashes[:text_scratch], spans[:text_scratch], char_tables()
    )
    for buffer in (hashes, spans):
        assert (buffer[text_scratch:] == GUARD).all()
    return [
        (int(h), int(a), int(b)) for h, (a, b) in zip(hashes[:count], spans[:count], strict=True)
    ]


def said(data: bytes, unit: str) -> list[tuple[int, int, int]]:
    if unit == "char":
        return twin.char_tokens(data, NAMES)
    return twin.word_tokens(data, NAMES, LOOKALIKES)


both_units = pytest.mark.parametrize("unit", ["word", "char"])


@both_units
def test_frozen_answers(unit, repository):
    path = repository / "tests/text/known_answers.json"
    cases = [case for case in json.loads(path.read_text(encoding="utf-8")) if unit in case]
    assert len(cases) >= 3
    for case in cases:
        want = [(int(digest, 16), start, end) for _, start, end, digest in case[unit]]
        assert read(case["text"].encode(), unit) == want, case["name"]


@both_units
@given(text=NOISE)
@example(text="")
@example(text="x")
@example(text="㌖" * 3)
@example(text="\ufdfa" * 3)
@example(text="a-")
@example(text="a-\n")
@example(text="a-\n<b>b")
@example(text="a-\num of")
@example(text="a\u00ad\num of")
def test_any_text_reads_as_the_twin_reads_it(unit, text):
    data = text.encode()
    assert read(data, unit) == said(data, unit)


@both_units
@given(text=st.text(CHARACTERS, max_size=12))
def test_every_character_of_unicode_reads_as_the_twin_reads_it(unit, text):
    data = text.encode()
    assert read(data, unit) == said(data, unit)


@given(st.lists(st.text("aZ9", min_size=1, max_size=40), max_size=6), st.sampled_from(" -.\n%"))
@few
def test_ascii_words_of_any_length_read_as_the_twin_reads_them(parts, glue):
    data = glue.join(parts).encode()
    assert read(data, "word") == said(data, "word")


@pytest.mark.parametrize("length", [*range(36), 63, 64, 65, 1000])
def test_a_word_may_end_at_any_distance_from_an_eight_byte_border(length):
    for end in (b"", b" b", b"-b", b"-\nb", b"\xc3\xa9", b"\\n", b"&amp;b"):
        data = b"a" * length + end
        assert read(data, "word") == said(data, "word")


@both_units
@given(n=st.integers(44, 66), filler=st.sampled_from(("a", "z ", ". ", "é", "中")), text=NOISE)
@few
@example(n=63, filler="a", text="-\nb")
@example(n=64, filler="a", text="-\nb")
@example(n=62, filler="z ", text="<b>b")
@example(n=63, filler="a", text="中")
@example(n=63, filler="z ", text="\u201d b")
def test_what_stands_over_the_end_of_a_block_reads_as_the_twin_reads_it(unit, n, filler, text):
    data = ((filler * n).encode()[:n].decode("utf-8", "ignore") + text + " tail" * 14).encode()
    assert read(data, unit) == said(data, unit)


@both_units
@given(text=NOISE, before=st.binary(max_size=3), after=st.binary(max_size=9))
@few
def test_what_stands_around_the_text_plays_no_part(unit, text, before, after):
    data = text.encode()
    assert read(data, unit, before, after) == read(data, unit, b"", b"")


@both_units
@given(text=NOISE)
@few
def test_the_library_hands_the_kernel_what_it_asks_for(unit, text):
    found = tokenize_bytes(text.encode(), unit=UNITS[unit])
    read_back = [
        (int(h), *map(int, span)) for h, span in zip(found.hashes, found.spans, strict=True)
    ]
    assert read_back == said(text.encode(), unit)


@given(st.lists(CHARACTERS, max_size=30))
def test_a_hash_may_be_fed_one_code_point_at_a_time(chars):
    state = (words.SEED, np.uint64(0), np.uint64(0))
    for char in chars:
        packed, n = words.utf8_bytes(ord(char))
        assert int(packed).to_bytes(8, "little")[: int(n)] == char.encode()
        state = tuple(np.uint64(one) for one in words.push(*state, ord(char)))
    assert int(words.finish(*state)) == twin.token_hash("".join(chars))
