"""What may be done to a document without changing what is said of the items in it."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from contam.kernels.tokens import CHARS, WORDS
from contam.text.text_tables import load_tables
from contam.text.tokenizer import tokenize_bytes
from tests.kernels.support import CHARACTERS, NOISE, few
from tests.property.worlds import ALL_POLICIES, full_text, labels, padding, records, scan
from tests.twins import decon

SEVERITY = {"clean": 0, "not_checkable": 0, "suspect": 1, "contaminated": 2}


@given(records())
@few
def test_an_item_matches_itself_under_every_policy_that_admits_it(rows):
    texts = [full_text(row) for row in rows]
    result = scan(rows, texts, ALL_POLICIES)
    decons = decon.Index(rows, decon.Settings())
    for (item, policy), label in labels(result).items():
        if (policy, label) == ("decon-default", "clean"):
            # decon itself passes over copies, say of options too far behind their question.
            number = [row["id"] for row in rows].index(item)
            least = decons.settings.contamination_score_threshold
            assert all(decons.score(number, text) < least + 1e-6 for text in texts)
            continue
        assert label in {"contaminated", "not_checkable"}, (item, policy, label)
    of_ours = [label for (_, policy), label in labels(result).items() if policy == "contam"]
    assert set(of_ours) == {"contaminated"}


@given(records())
@few
def test_a_question_alone_matches_itself(rows):
    result = scan(rows, [row["question"] for row in rows])
    assert set(labels(result).values()) == {"contaminated"}
    assert {verdict.kind for verdict in result} == {"exact"}


@st.composite
def damaged(draw, rows: list[dict]) -> list[str]:
    """Documents that hold items whole, in part, or not at all: every label has its examples."""
    texts = []
    for row in rows:
        words = full_text(row).split(" ")
        lo = draw(st.integers(0, len(words) // 2))
        texts.append(" ".join(words[lo : lo + draw(st.integers(4, len(words)))]))
    return texts


worlds = records().flatmap(lambda rows: st.tuples(st.just(rows), damaged(rows)))


def rewrapped(text: str) -> str:
    return re.sub(r"[ \n]+", lambda gap: "\n" if gap.start() % 3 == 0 else " ", text)


def in_capitals(text: str) -> str:
    # Capital and small Greek nu, upsilon and so on look like different Latin letters only beside
    # Latin ones, so whole Greek words keep their reading.
    return text.upper()


def punctuated(text: str) -> str:
    return re.sub(r"[ \n]+", lambda gap: (", ", " — ", "; ", " (", ") ")[gap.start() % 5], text)


CHANGES = {
    "lines": rewrapped,
    "capitals": in_capitals,
    "title": str.title,
    "punctuation": punctuated,
    "html": lambda text: "<p>" + text.replace(" ", " <b>").replace("\n", "<br/>\n") + "</p>",
    "zero width": lambda text: text.replace("a", "a\u200b").replace("o", "\u00ado"),
    "full width": lambda text: "".join(
        chr(ord(c) + 0xFEE0) if c.isascii() and c.isalnum() else c for c in text
    ),
    "json": lambda text: "".join(c if c.isascii() else f"\\u{ord(c):04x}" for c in text),
}


@given(world=worlds)
@few
def test_how_a_text_is_written_changes_no_verdict(world):
    rows, texts = world
    policies = ("contam", "gpt3-test", "openr1-8", "llama3-8gram")
    before = scan(rows, texts, policies)
    told = [(v.item_id, v.policy, v.label, v.n_documents, v.score) for v in before]
    for name, change in CHANGES.items():
        after = scan(rows, [change(text) for text in texts], policies)
        assert [(v.item_id, v.policy, v.label, v.n_documents, v.score) for v in after] == told, name


@given(world=worlds, head=padding, tail=padding)
@few
def test_other_text_around_it_changes_no_verdict(world, head, tail):
    rows, texts = world
    policies = ("contam", "gpt3-test", "openr1-8", "llama3-8gram", "tulu3-50")
    before = labels(scan(rows, texts, policies))
    padded = [f"{head}.\n{text}.\n{tail}" for text in texts]
    assert labels(scan(rows, padded, policies)) == before


@given(world=worlds, other=padding)
@few
def test_more_documents_never_take_a_hit_away(world, other):
    rows, texts = world
    before = scan(rows, texts, ALL_POLICIES)
    after = scan(rows, [*texts, other, *texts[:1]], ALL_POLICIES)
    for old, new in zip(before, after, strict=True):
        assert (old.item_id, old.policy) == (new.item_id, new.policy)
        assert SEVERITY[new.label] >= SEVERITY[old.label]
        assert new.n_documents >= old.n_documents
        assert new.n_occurrences >= old.n_occurrences
        assert (new.score or 0) >= (old.score or 0)


# --------------------------------------------------------------------- canonically equivalent texts


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
