"""Text as decon reads it: cleaned, and cut as cl100k cuts it before its vocabulary."""

import numpy as np
import pytest

from contam.detect.policies import decon_tokens
from contam.detect.policies.decon_tokens import FileTokens, PieceTokens, clean
from contam.text.bpe import load_tokenizer
from tests.detect.word_level import save_word_level

# What tiktoken's cl100k pattern gives for the text with a space before it.
CUT = [
    ("two words", [" two", " words"]),
    ("12345 7", [" ", "123", "45", " ", "7"]),
    ("x2y", [" x", "2", "y"]),
    ("a \u2192 b", [" a", " \u2192", " b"]),
    ("a\u2192b", [" a", "\u2192b"]),
    ("a\u2192\u2192b", [" a", "\u2192\u2192", "b"]),
    ("m\u00b2 \u00bd", [" m", "\u00b2", " ", "\u00bd"]),
    ("caf\u00e9 \u4e2d\u6587", [" caf\u00e9", " \u4e2d\u6587"]),
    ("", []),
]


@pytest.mark.parametrize(
    ("raw", "cleaned"),
    [
        ("  Hello,  WORLD! ", "hello world"),
        ("don't\u2019\u2014stop\u2013now\u2026", "don t stop\u2013now\u2026"),
        ("a\tb\u00a0c\u3000d\r\ne", "a b c d e"),
        ("\x1c a_b\\c", "\x1c a b c"),
        ("?!", ""),
    ],
)
def test_cleaning(raw, cleaned):
    assert clean(raw) == cleaned


@pytest.mark.parametrize(("text", "pieces"), CUT)
def test_pieces(text, pieces):
    tokens = PieceTokens()
    (mine,) = tokens.of_items([text])
    known = {number: piece for piece, number in tokens._number.items()}
    assert [known[number] for number in mine.tolist()] == pieces
    assert tokens.of_document(text).tolist() == mine.tolist()


def test_a_document_has_no_token_that_no_item_has():
    tokens = PieceTokens()
    tokens.of_items(["red kettle"])
    assert tokens.of_document("red kettles and a kettle").tolist() == [2, 0, 0, 0, 3]


@pytest.fixture
def words_of_a_file(tmp_path):
    """A tokenizer of whole words, that takes the space before a word into it."""
    vocab = {"[UNK]": 0, " red": 1, " kettle": 2, " ": 3, "1": 4}
    path = save_word_level(tmp_path / "tokenizer.json", vocab, r" ?[a-z]+|\d|\s")
    return FileTokens(load_tokenizer(path))


def test_tokens_of_a_file_keep_the_space_before_a_number(words_of_a_file):
    assert words_of_a_file.space == 4
    (mine,) = words_of_a_file.of_items(["1 red kettle"])
    assert mine.tolist() == [4, 5, 2, 3]
    assert words_of_a_file.of_document("").tolist() == []


def test_a_long_text_has_the_tokens_of_its_stretches(words_of_a_file, monkeypatch):
    text = " ".join(["red kettle 1"] * 50)
    whole = words_of_a_file.of_document(text)
    monkeypatch.setattr(decon_tokens, "_LONGEST", 40)
    monkeypatch.setattr(decon_tokens, "_AT_ONCE", 3)
    assert np.array_equal(words_of_a_file.of_document(text), whole)
    found = words_of_a_file.of_items([text, "", "red", text, text[:60]])
    assert [len(tokens) for tokens in found] == [len(whole), 0, 1, len(whole), len(found[4])]
    assert np.array_equal(found[3], whole)
