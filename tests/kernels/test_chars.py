"""Readers of single characters and escapes, against the twin's regular expressions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from contam.kernels import chars
from contam.kernels.chars import JOIN, SKIP, TEXT
from contam.kernels.tags import read_tag
from contam.text.tokenizer import char_tables
from tests.kernels.support import CHARACTERS, NAMES, NOISE, frozen
from tests.twins import tokens as twin

TABLES = char_tables()
BEFORE, AFTER = b"z\\", b"000;>-->"


def embedded(data: bytes) -> tuple[np.ndarray, int, int]:
    """A text in the middle of a read-only buffer: what stands around it must not be read."""
    whole = BEFORE + data + AFTER
    array = frozen(np.frombuffer(whole, np.uint8), np.uint8)
    return array, len(BEFORE), len(BEFORE) + len(data)


def as_read(code: int, end: int) -> tuple[object, int]:
    what = {JOIN: "join", TEXT: "text", SKIP: None, 0: None}.get(code, code)
    return what, end - len(BEFORE)


def as_said(step: twin.Step) -> tuple[object, int]:
    return ("join" if step.transparent else "text" if step.texts else step.code or None), step.end


def check(data: bytes) -> None:
    """Whatever rule 1, 2, 3 or 4 reads at the beginning of the text, kernel and twin agree on it."""
    array, lo, hi = embedded(data)
    if data[:1] == b"\\":
        read, said = chars.read_backslash(array, lo, hi, TABLES), twin.backslash(data, 0, NAMES)
    elif data[:1] == b"<":
        read, said = read_tag(array, lo, hi, TABLES), twin.less_than(data, 0, NAMES)
    elif data[:1] == b"&":
        read, said = chars.read_entity(array, lo, hi, TABLES), twin.ampersand(data, 0, NAMES)
    else:
        read, said = chars.read_percent(array, lo, hi, TABLES.table), twin.percent(data, 0)
    assert as_read(*read) == as_said(said)


@given(st.sampled_from("\\<&%"), NOISE)
@example("\\", "")
@example("<", "!-->")
@example("<", "!--" + "x" * 1017 + "-->")
@example("<", "!--" + "x" * 1018 + "-->")
@example("<", "p a=" + "y" * 1018 + ">")
@example("<", "p a=" + "y" * 1019 + ">")
@example("&", "amp;AMP;#x41;")
def test_an_escape_reads_as_the_twin_reads_it(sign, rest):
    check((sign + rest).encode())


@pytest.mark.parametrize("sign", "\\<&%")
def test_every_short_text_behind_a_sign_reads_as_the_twin_reads_it(sign):
    parts = ("", *"uUx#/bn0;> =\n", "#x", "!--", "amp;", "4g", "41")
    for first in parts:
        for second in parts:
            check(f"{sign}{first}{second}".encode())


@pytest.mark.parametrize(
    "kind", ["latex_skip", "latex_words", "html_tags", "entities", "attributes"]
)
def test_every_listed_name_is_known(kind):
    shapes = {"html_tags": "<{}>", "entities": "&{};", "attributes": "<p {}='a b c d'>"}
    for name in getattr(NAMES, kind):
        for spelling in (name, name.upper()):
            check(shapes.get(kind, "\\{}").format(spelling).encode())


@given(st.sampled_from(("", " ", "\t ", " \n ", "\n", "\r", "\r\n", "\r\n\t", "\n\n", "x")), NOISE)
def test_a_broken_line_goes_on_where_the_twin_says(gap, rest):
    data = (gap + rest).encode()
    array, lo, hi = embedded(data)
    at = chars.read_break(array, lo, hi, TABLES.table)
    assert (None if at < 0 else at - len(BEFORE)) == twin.joins_lines(data, 0)


@given(CHARACTERS)
def test_utf8_is_decoded_and_looked_up_as_python_does_it(char):
    array, lo, _ = embedded(char.encode())
    code, after = chars.decode_utf8(array, lo)
    assert (code, after - lo) == (ord(char), len(char.encode()))
    kinds = {twin.SEPARATOR: 0, twin.LETTER: 1, twin.DIGIT: 2, twin.SINGLE: 3, twin.TRANSPARENT: 4}
    entry = chars.lookup(code, TABLES.table)
    at, n = entry >> 3, 1
    if entry & 7 == 5:
        n = int(TABLES.table[at])
    packed = [entry] if n == 1 else TABLES.table[at + 1 : at + 1 + n].tolist()
    read = [(e & 7, e >> 3 if 1 <= e & 7 <= 3 else 0) for e in packed if e & 7 != 4]
    said = [
        (kinds[kind], value if kind != twin.SEPARATOR else 0)
        for kind, value in twin.fold(ord(char))
    ]
    # A run of separators in a fold counts as one.
    said = [one for k, one in enumerate(said) if one[0] or k == 0 or said[k - 1][0]]
    assert read == said
