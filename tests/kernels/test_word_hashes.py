"""Eight words at once have the hashes that each has by itself, and other tokens keep theirs."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from contam.kernels import word_hashes
from contam.kernels._jit import kernel
from tests.kernels.support import frozen
from tests.twins.tokens import token_hash

LETTERS = "abcxyzABCXYZ0189"
WORDS = st.lists(st.text(LETTERS, min_size=1, max_size=40), max_size=40)


@kernel
def eight_at(text, lo, spans, first, hashes):
    return word_hashes.hash_eight(text, lo, spans, first, hashes)


def laid_out(words: list[str], before: str, after: str) -> tuple[np.ndarray, np.ndarray]:
    """A text of the words with a space behind each, and their spans from the first word on."""
    text = before + "".join(f"{word} " for word in words) + after
    ends = np.cumsum([len(word) + 1 for word in words], dtype=np.int32) - 1
    begins = ends - np.array([len(word) for word in words], np.int32)
    spans = np.stack([begins, ends], axis=1).astype(np.int32).reshape(-1, 2)
    return frozen(np.frombuffer(text.encode(), np.uint8), np.uint8), np.ascontiguousarray(spans)


@given(WORDS, st.text(LETTERS, max_size=9), st.text(LETTERS, max_size=20), st.data())
def test_every_unhashed_word_gets_its_hash(words, before, after, more):
    text, spans = laid_out(words, before, after)
    known = more.draw(
        st.lists(st.sampled_from([0, 0, 5]), min_size=len(words), max_size=len(words))
    )
    hashes = np.array(known, np.uint64)
    word_hashes.hash_words(text, len(before), spans, len(words), hashes)
    assert hashes.tolist() == [
        old or token_hash(word.lower()) for old, word in zip(known, words, strict=True)
    ]


@given(st.lists(st.integers(1, 20), min_size=8, max_size=8), st.integers(0, 7), st.booleans())
def test_eight_words_are_hashed_but_those_that_are_too_long(lengths, first, is_known):
    words = [LETTERS[:1] * 3] * first + [
        (LETTERS * 2)[i : i + length] for i, length in enumerate(lengths)
    ]
    text, spans = laid_out(words, "", "x" * word_hashes.LONGEST)
    hashes = np.zeros(len(words), np.uint64)
    hashes[first] = 7 * is_known
    left = eight_at(text, 0, spans, first, hashes)
    for i, length in enumerate(lengths):
        skipped = i == 0 and is_known
        too_long = length > word_hashes.LONGEST and not skipped
        assert bool(left >> i & 1) == too_long
        hashed = 0 if too_long else token_hash(words[first + i].lower())
        assert hashes[first + i] == (7 if skipped else hashed)


@given(st.text(LETTERS, min_size=1, max_size=40), st.integers(0, 9))
def test_a_word_is_hashed_wherever_it_ends(word, behind):
    text = frozen(np.frombuffer(f"-{word}{'-' * behind}".encode(), np.uint8), np.uint8)
    assert int(word_hashes.hash_word(text, 1, len(word))) == token_hash(word.lower())
