"""The frozen character and name tables, tokens and hashes against Unicode data, the lists and the twin."""

from __future__ import annotations

import bisect
import json
import re
import unicodedata
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from contam.errors import InternalError
from contam.kernels.hash_set import are_entered
from contam.text.text_tables import TABLE_FILE, FoldKind, load_tables, read_tables
from contam.text.token_hash import token_hash
from contam.text.token_kinds import character_tokens
from tests.kernels.support import LOOKALIKES, NAMES
from tests.twins import tokens as twin
from tests.word_tables import generate_tables, markup_names
from tests.word_tables.lookalikes import CONSISTENT_BIT, FIRST, LAST

TABLES = load_tables()
SAME_UNICODE = TABLES.unicode_version == unicodedata.unidata_version
# A newer Python may classify a handful of old code points anew; none of these tests is about them.
RECLASSIFIED_AT_MOST = 0 if SAME_UNICODE else 60

NAME_TABLES = {
    "latex_skip": dict.fromkeys(markup_names.LATEX_SKIP, 1),
    "latex_words": dict.fromkeys(markup_names.LATEX_WORDS, 1),
    "html_tags": markup_names.HTML_TAGS,
    "attributes": markup_names.ATTRIBUTES,
    "entities": markup_names.ENTITIES,
    "asides": markup_names.ASIDES,
}


KINDS = {int(kind): kind.name.lower() for kind in FoldKind}


@cache
def lists() -> tuple[list[int], list[int], list[int]]:
    return TABLES.page.tolist(), TABLES.entry.tolist(), TABLES.expansion.tolist()


def entries(code: int) -> list[tuple[str, int]]:
    """The (kind, folded) entries the arrays hold for a code point."""
    page, entry, expansion = lists()
    packed = [entry[page[code >> 8] * 256 + (code & 255)]]
    if packed[0] & 7 == FoldKind.EXPANSION:
        at = packed[0] >> 3
        packed = expansion[at + 1 : at + 1 + expansion[at]]
    return [(KINDS[one & 7], one >> 3) for one in packed]


def expected(code: int) -> list[tuple[str, int]]:
    """What the twin says, with runs of separators as one and a dropped character as transparent."""
    found: list[tuple[str, int]] = []
    for kind, folded in twin.fold(code):
        entry = (kind, 0 if kind == twin.SEPARATOR else folded)
        if entry != (twin.SEPARATOR, 0) or found[-1:] != [entry]:
            found.append(entry)
    return found or [(twin.TRANSPARENT, 0)]


@cache
def assigned_code_points() -> list[int]:
    return [
        code
        for first, last in TABLES.assigned.tolist()
        for code in range(first, last + 1)
        if unicodedata.category(chr(code)) != "Co"
    ]


def test_every_assigned_code_point_folds_as_the_twin_says():
    different = [code for code in assigned_code_points() if entries(code) != expected(code)]
    assert len(different) <= RECLASSIFIED_AT_MOST, [hex(code) for code in different]


def test_unassigned_surrogate_and_private_code_points_never_open_a_word():
    known = set(assigned_code_points())
    kinds = {entries(code)[0][0] for code in range(0x110000) if code not in known}
    assert kinds == {"separator", "transparent"}
    for code in (0x0378, 0xD800, 0xDFFF, 0xE000, 0xF8FF, 0x10FFFF):
        assert entries(code) == [("separator", 0)]
    for code in (0x2065, 0xFFF0, 0xE0000, 0xE0FFF):
        assert entries(code) == [("transparent", 0)]


@pytest.mark.slow
@pytest.mark.skipif(not SAME_UNICODE, reason="this Python's Unicode data is not the tables'")
def test_the_file_is_what_the_generator_writes():
    made = generate_tables.all_arrays()
    with np.load(TABLE_FILE, allow_pickle=False) as file:
        assert sorted(file.files) == sorted(made)
        for name, array in made.items():
            assert file[name].dtype == array.dtype
            np.testing.assert_array_equal(file[name], array)


def test_no_index_leaves_its_array():
    kinds = TABLES.entry & 7
    assert set(np.unique(kinds)) <= {int(kind) for kind in FoldKind}
    at = 0
    starts = set()
    while at < TABLES.expansion.size:
        starts.add(at)
        count = int(TABLES.expansion[at])
        assert count >= 2
        inside = TABLES.expansion[at + 1 : at + 1 + count]
        assert inside.size == count
        assert set((inside & 7).tolist()) <= {
            FoldKind.SEPARATOR,
            FoldKind.LETTER,
            FoldKind.DIGIT,
            FoldKind.SINGLE,
        }
        at += 1 + count
    pointed = set((TABLES.entry[kinds == FoldKind.EXPANSION] >> 3).tolist())
    assert pointed == starts


def test_one_byte_gives_at_most_two_words_and_five_characters():
    most_words = most_chars = 0.0
    for code in assigned_code_points():
        found = [twin.Piece(*entry, code, 0, 0) for entry in entries(code)]
        n_bytes = len(chr(code).encode("utf-8", "surrogatepass"))
        chars = [piece for piece in found if piece.kind in {"letter", "digit", "single"}]
        most_chars = max(most_chars, len(chars) / n_bytes)
        if len(chars) > n_bytes:  # a word takes an entry, so no other character can give more
            pieces = [piece for piece in found if piece.kind != "transparent"]
            most_words = max(most_words, len(list(twin.words(pieces))) / n_bytes)
    assert (most_words, most_chars) == (2.0, 5.0)


def test_folding_again_changes_nothing():
    folded = {code for number in assigned_code_points() for kind, code in entries(number) if code}
    unstable = [code for code in folded if [code] != [again for _, again in entries(code)]]
    assert unstable == []


def test_upper_and_lower_case_fold_alike():
    def letters(text: str) -> list[tuple[str, int]]:
        return [entry for char in text for entry in entries(ord(char)) if entry[0] != "transparent"]

    different = [
        code
        for code in assigned_code_points()
        # In capitals the iota subscript is a letter: there Unicode's own case folding differs.
        if "\u0345" not in unicodedata.normalize("NFD", chr(code))
        and chr(code) not in "Ġġ"
        and not letters(chr(code)) == letters(chr(code).upper()) == letters(chr(code).lower())
    ]
    assert len(different) <= RECLASSIFIED_AT_MOST, [hex(code) for code in different]


def test_lookalikes_are_single_letters_that_read_as_a_latin_letter():
    for code in range(FIRST, LAST + 1):
        value = int(TABLES.confusable[code - FIRST])
        if value:
            assert ord("a") <= value & 0x7F <= ord("z")
            assert [kind for kind, _ in entries(code)] == ["letter"]


def test_consistent_lookalikes_read_the_same_in_both_cases():
    for code in range(FIRST, LAST + 1):
        value = int(TABLES.confusable[code - FIRST])
        if value & CONSISTENT_BIT:
            for other in (chr(code).upper(), chr(code).lower(), chr(entries(code)[0][1])):
                assert int(TABLES.confusable[ord(other[0]) - FIRST]) == value, hex(code)


@pytest.mark.parametrize(
    ("letter", "latin"),
    list(zip("асԁеһіјӏорԛѕԝухАВЕКМНОРСТХ", "acdehijlopqswyxabekmhopctx", strict=True)),
)
def test_the_usual_cyrillic_lookalikes_are_consistent(letter, latin):
    assert int(TABLES.confusable[ord(letter) - FIRST]) == ord(latin) | CONSISTENT_BIT


@pytest.mark.parametrize("table", NAME_TABLES)
def test_name_tables_hold_exactly_the_lists(table):
    keys, values = (array.tolist() for array in TABLES.names[table])
    assert keys == sorted(set(keys))
    assert len(keys) == len(values) == len(NAME_TABLES[table])
    for name, value in NAME_TABLES[table].items():
        at = bisect.bisect_left(keys, token_hash(name.encode("ascii")))
        assert keys[at] == token_hash(name.encode("ascii"))
        assert values[at] == value


def test_a_missing_or_damaged_file_is_refused(tmp_path):
    with pytest.raises(InternalError, match="cannot read the text tables"):
        read_tables(tmp_path / "none.npz")
    cut = tmp_path / "cut.npz"
    cut.write_bytes(TABLE_FILE.read_bytes()[:1000])
    with pytest.raises(InternalError, match="cannot read the text tables"):
        read_tables(cut)
    other = tmp_path / "other.npz"
    with np.load(TABLE_FILE) as file:
        np.savez(other, **{**file, "normaliser": np.array("word-0")})
    with pytest.raises(InternalError, match="word-0"):
        read_tables(other)


def test_tokens_of_one_character_are_known_by_their_hash():
    known = character_tokens()
    for text, where in (("a", "short"), ("7", "short"), ("x2", "pair"), ("ж", "pair"), ("中", "single"),
                        ("か", "single"), ("ก", "single"), ("abc", None), ("été", None)):  # fmt: skip
        hashes = np.array([token_hash(twin_fold(text).encode())], np.uint64)
        found = [name for name in known._fields if are_entered(hashes, getattr(known, name))[0]]
        assert found == ([where] if where else [])


def twin_fold(text: str) -> str:
    return "".join(chr(folded) for char in text for _, folded in twin.fold(ord(char)))


CASES = json.loads(Path(__file__).with_name("known_answers.json").read_text(encoding="utf-8"))


def answers(case: dict, unit: str) -> list[tuple[int, int, int]]:
    return [(int(digest, 16), start, end) for _, start, end, digest in case[unit]]


@pytest.mark.parametrize(
    ("token", "digest"),
    [
        (b"", 0x2E72_B464_3DEC_7BFB),
        (b"a", 0x3D7E_4D3B_1F1D_3D27),
        (b"abcdefgh", 0x5AC8_1B40_2908_9A46),
        (b"abcdefghi", 0xB528_5473_5112_21FA),
        ("中".encode(), 0xECFD_BC51_3CC8_756E),
    ],
)
def test_hash_values_are_frozen(token, digest):
    assert token_hash(token) == digest


def test_hashes_in_the_format_document_are_true(repository):
    page = (repository / "docs" / "normaliser.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.+) \| `([0-9a-f]{16})` \|$", page, re.MULTILINE)
    written = {cell: int(digest, 16) for cell, digest in rows}
    tokens = {"(none)": b"", "E4 B8 AD (中)": "中".encode()}
    assert len(written) == 5
    for cell, digest in written.items():
        assert token_hash(tokens.get(cell, cell.strip("`").encode())) == digest


def test_every_frozen_hash_is_the_hash_of_the_frozen_token():
    for case in CASES:
        for folded, _, _, digest in case["word"] + case.get("char", []):
            assert token_hash(folded.encode()) == twin.token_hash(folded) == int(digest, 16)


def test_twin_gives_the_frozen_tokens():
    for case in CASES:
        text = case["text"].encode()
        assert twin.word_tokens(text, NAMES, LOOKALIKES) == answers(case, "word"), case["name"]
        if "char" in case:
            assert twin.char_tokens(text, NAMES) == answers(case, "char"), case["name"]
