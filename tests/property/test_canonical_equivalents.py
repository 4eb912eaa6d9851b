"""Texts that Unicode calls canonically equivalent are the same tokens."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from contam.kernels.tokens import CHARS, WORDS
from contam.text.text_tables import load_tables
from contam.text.tokenizer import tokenize_bytes
from tests.kernels.support import CHARACTERS, NOISE, few

both_units = pytest.mark.parametrize("unit", [WORDS, CHARS], ids=["word", "char"])
#: U+037E is canonically equivalent to the semicolon at the end of an entity.
QUESTION_MARK = "\u037e"
#: What tokenizers write for a space is none of its letters.
WORD_START = "Ġ"


def tokens(text: str, unit: int) -> list[int]:
    return tokenize_bytes(text.encode("utf-8", "replace"), unit=unit).hashes.tolist()


def same_tokens(text: str, unit: int) -> bool:
    forms = [unicodedata.normalize(form, text) for form in ("NFC", "NFD")]
    composed, decomposed = (tokens(form, unit) for form in forms)
    return tokens(text, unit) == composed == decomposed


def assigned() -> list[str]:
    return [
        chr(code)
        for first, last in load_tables().assigned.tolist()
        for code in range(first, last + 1)
        if not 0xD800 <= code <= 0xDFFF
    ]


@both_units
def test_every_code_point_reads_as_its_decomposition_does(unit):
    # Between Latin letters, where a look-alike counts, and among Greek ones, where it may not.
    for around in ("a{}b", "ж{}ж", "{}"):
        decomposed = [char for char in assigned() if unicodedata.decomposition(char)]
        chars = [char for char in decomposed if char != WORD_START]
        plain = " . ".join(around.format(char) for char in chars)
        for form in ("NFC", "NFD"):
            assert tokens(unicodedata.normalize(form, plain), unit) == tokens(plain, unit), around


@both_units
def test_a_mark_that_may_change_places_changes_nothing(unit):
    marks = [char for char in assigned() if unicodedata.combining(char)]
    assert len(marks) > 800
    for around in ("a{}b", "中{}", "क{}त", "α{}ι"):
        plain = " . ".join(around.format("") for _ in marks)
        assert tokens(" . ".join(map(around.format, marks)), unit) == tokens(plain, unit)


MARKS = st.sampled_from("\u0300\u0301\u0308\u0327\u0338\u0345\u093c\u094d\u0655\u3099\u0f71\u0f74")
LETTERS = st.sampled_from("aenxΗηΜνΥαωжеกかक가각ɑı")
VOWELS = st.sampled_from(
    "\u093e\u0940\u09c7\u09be\u09d7\u0bc6\u0bbe\u0cc6\u0cc2\u0cd5\u0ddd\u1161\u11a8"
)
PIECES = st.one_of(LETTERS, MARKS, MARKS, VOWELS, NOISE, CHARACTERS)


@both_units
@given(text=st.lists(PIECES, max_size=20).map("".join))
@example(text="α\u0345\u0301")
@example(text="t\u0345he \u1fb3 \u1fcaa \u1f28a")
@example(text="\\nabla\u0301 \\to\u0302i \\x4e\u0301 \\u00e9\u0301 %4e\u0301 %C3%AA\u0301")
@example(text="<b>\u0338 <b\u0301> <a x=1>\u0338 <br/>\u0338 x=\u0338y")
@few
def test_composed_and_decomposed_texts_are_the_same_tokens(unit, text):
    text = unicodedata.normalize("NFC", text).replace(WORD_START, "").replace(QUESTION_MARK, "")
    assert same_tokens(text.encode("utf-8", "replace").decode(), unit)


@given(words=st.lists(st.text("abcdefgh", min_size=1, max_size=8), min_size=1), mark=MARKS)
@few
def test_a_mark_within_a_word_makes_no_other_word(words, mark):
    marked = " ".join(word[:1] + mark + word[1:] for word in words)
    assert tokens(marked, WORDS) == tokens(" ".join(words), WORDS)
