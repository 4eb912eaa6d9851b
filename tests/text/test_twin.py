"""The promises of docs/normaliser.md, asked of the twin that the kernels are measured against."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kernels.support import LOOKALIKES, NAMES
from tests.twins import tokens as twin

# Capital and small form of these look like different Latin letters, so case may matter beside one.
TWO_FACED = {"Η", "Μ", "Ν", "Υ"}


def is_two_faced(char: str) -> bool:
    return unicodedata.normalize("NFKD", char)[0].upper() in TWO_FACED or char in "Ġġ"


LETTERS = st.characters(categories=("L", "N", "Zs", "Mn")).filter(lambda c: not is_two_faced(c))
PROSE = st.text(LETTERS | st.sampled_from("aeoаеоαε хyz -.\n"), max_size=40)
SYNTAX = st.sampled_from(
    ["\\", "\\n", "\\u0041", "\\ud835", "\\udc00", "\\x", "\\quad", "<", "<b>", "</p>", "<wbr>", "<a x=",
     ">", "<!--", "-->", "&", "amp;", "&#65;", "&eacute;", ";", "%", "%41", "%C3%A9", "-\n", "-", "\u00ad",
     "\n", " ", "é", "中", "한", "12", "00:01.5", "-->", "[", ",", "title='", "'", "\u200b", "<c>", "а", "µ", "½", "e\u0301", "word", "I", "1"]
)  # fmt: skip
NOISE = st.lists(SYNTAX | st.text(max_size=3), max_size=12).map("".join)


def words(text: str) -> list[int]:
    return [digest for digest, _, _ in twin.word_tokens(text.encode(), NAMES, LOOKALIKES)]


@given(NOISE)
def test_ranges_are_in_order_inside_the_text_and_on_character_borders(text):
    data = text.encode("utf-8", "replace")
    found = twin.word_tokens(data, NAMES, LOOKALIKES)
    # Not disjoint: one character may end a word and begin the next, as the half in "1\u00bd" does.
    assert [start for _, start, _ in found] == sorted(start for _, start, _ in found)
    assert [end for _, _, end in found] == sorted(end for _, _, end in found)
    for _, start, end in found:
        assert 0 <= start < end <= len(data)
        data[start:end].decode("utf-8")


@given(NOISE)
def test_every_word_is_a_stretch_of_characters_of_the_char_unit(text):
    data = text.encode("utf-8", "replace")
    chars = twin.char_tokens(data, NAMES)
    found = list(twin.words(twin.pieces(data, NAMES)))
    assert sum(len(word) for word in found) == len(chars)
    assert [piece.start for word in found for piece in word] == [start for _, start, _ in chars]


@given(PROSE)
def test_case_changes_no_word(text):
    assert words(text.upper()) == words(text) == words(text.lower())


@given(st.lists(st.text("abcdeéß中1", min_size=1, max_size=8), max_size=8))
def test_punctuation_line_breaks_and_markup_between_words_change_no_word(tokens):
    plain = words(" ".join(tokens))
    for between in (
        "\n",
        "\r\n",
        ", ",
        "</p>\n<p class='x'>",
        "&nbsp;",
        "\\n",
        " \\quad ",
        "\u2028",
        "**",
        " \u200b",
    ):
        # A literal \n swallows what only looks like a LaTeX word: "\ne" of "e", so it stands apart.
        glue = between + " " if between == "\\n" else between
        assert words(glue.join(tokens)) == plain


def written_between(kind: str, tokens: list[str]) -> str:
    """The words with what a program or a transcriber writes between them."""
    halves = [(word[:1], word[1:]) for word in tokens]
    lines = [f"2024-05-06T07:08:{n % 60:02}Z INFO {word}" for n, word in enumerate(tokens)]
    return {
        "link": " ".join(f"[{word}](https://a.example/{n})" for n, word in enumerate(tokens)),
        "footnote": " ".join(f"{word}[{n}]" for n, word in enumerate(tokens, 1)),
        "named footnote": " ".join(f"{word}[^n-{n}]" for n, word in enumerate(tokens)),
        "sound": " (pause) ".join(tokens),
        "filler": " um ".join(tokens),
        "log": "\n".join(lines),
        "##": " ".join(f"{head} ##{tail}" for head, tail in halves),
        "@@": " ".join(f"{head}@@ {tail}" for head, tail in halves),
        "Ġ": " ".join(f"Ġ{head} {tail}" for head, tail in halves),
        "▁": " ".join(f"▁{head} {tail}" for head, tail in halves),
    }[kind]


KINDS = ("link", "footnote", "named footnote", "sound", "filler", "log", "##", "@@", "Ġ", "▁")
SOME = st.lists(st.text("abcdeg", min_size=2, max_size=8), min_size=4, max_size=12)


@given(st.sampled_from(KINDS), SOME, SOME, SOME)
def test_what_is_written_between_words_changes_none_in_an_item_or_a_copy(kind, before, item, after):
    if kind == "filler":
        before, item, after = (["the", *part, "of"] for part in (before, item, after))
    plain = words(" ".join(item))
    assert words(written_between(kind, item)) == plain
    document = words(written_between(kind, before + item + after))
    assert document == words(" ".join(before + item + after))


@pytest.mark.parametrize(
    "text",
    [
        "x = nums[2] + nums[3]", "f(pause) and call(laughs)", "a[i](b / c)", "[0,1](2/3)", "[[1],[2],[3]]",
        "um drei Uhr und um vier", "## Heading ##", "a @@ b", "fill ▁ the ▁ blanks ▁", "1 2 3\n4 5 6",
        "2024-05-06 07:08:09 1.5 2.5\n2024-05-06 07:08:10 3.5 4.5", "on 2024-05-06 07:08:09 it rained",
    ],
)  # fmt: skip
def test_code_tables_and_mathematics_keep_their_words(text):
    kept = re.findall(r"\w+", text.replace("▁", " "))
    assert words(text) == [twin.token_hash(word.lower()) for word in kept]


@given(st.text("abcdeéßж", min_size=2, max_size=12), st.integers(1, 11))
def test_what_is_invisible_inside_a_word_changes_no_word(word, at):
    head, tail = word[:at], word[at:]
    for inside in ("\u00ad", "\u200b", "\ufeff", "\u2060", "<wbr>", "&shy;", "\\u200b", "\u0301"):
        assert words(head + inside + tail) == words(word)


@given(st.text(st.characters(categories=("L", "N", "P", "Zs")), min_size=1, max_size=12))
def test_escaped_text_has_the_words_of_the_text(text):
    plain = "".join(c for c in text if c not in "\\<&%-\u2010Ġ:([@#")
    as_json = "".join(f"\\u{unit:04x}" for unit in utf16(plain))
    as_entities = "".join(f"&#{ord(c)};" for c in plain)
    as_url = "".join(f"%{byte:02X}" for byte in plain.encode())
    assert words(as_json) == words(as_entities) == words(as_url) == words(plain)


def utf16(text: str) -> list[int]:
    data = text.encode("utf-16-le")
    return [int.from_bytes(data[at : at + 2], "little") for at in range(0, len(data), 2)]


@given(PROSE, PROSE)
def test_text_after_a_separator_is_read_as_if_it_stood_alone(first, second):
    assert words(f"{first}.\n{second}") == words(first) + words(second)


@pytest.mark.parametrize("length", [1, 7, 8, 9, 3_000])
def test_a_word_has_no_greatest_length(length):
    assert twin.word_tokens(b"a" * length, NAMES, LOOKALIKES) == [
        (twin.token_hash("a" * length), 0, length)
    ]
