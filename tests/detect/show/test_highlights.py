import pytest
from hypothesis import given
from hypothesis import strategies as st

from contam.detect.show.highlights import Mark, mark


def shown(marks):
    return "".join({"match": f"[{m.text}]", "text": m.text, "gap": "~"}[m.kind] for m in marks)


@pytest.mark.parametrize(
    ("spans", "context", "expected"),
    [
        ([(4, 7)], 99, "one [two] three four five"),
        ([(4, 7)], 2, "~e [two] t~"),
        ([(0, 3), (19, 23)], 2, "[one] t~r [five]"),
        ([(4, 7), (5, 13)], 1, "~ [two three] ~"),
        ([(4, 7), (7, 13)], 0, "~[two three]~"),
        ([(8, 13), (0, 3)], 3, "[one] two [three] fo~"),
        ([(-5, 3), (19, 99)], 0, "[one]~[five]"),
        ([(5, 5), (50, 60)], 3, "one tw~"),
        ([], 99, "one two three four five"),
    ],
)
def test_spans_become_matches_with_context(spans, context, expected):
    assert shown(mark("one two three four five", spans, context)) == expected


def test_an_empty_text_has_no_marks():
    assert mark("", [(0, 4)], 5) == ()


def test_a_gap_says_how_much_is_left_out():
    assert mark("abcdefgh", [(0, 1)], 2)[-1] == Mark("gap", "", 5)


@given(
    st.text(max_size=60),
    st.lists(st.tuples(st.integers(-5, 70), st.integers(-5, 70)), max_size=5),
    st.integers(0, 20),
)
def test_marks_hold_every_matching_character_once_and_in_order(text, spans, context):
    at, matched = 0, set()
    for piece in mark(text, spans, context):
        if piece.kind == "gap":
            assert piece.n_left_out > 0
            at += piece.n_left_out
            continue
        assert piece.text == text[at : at + len(piece.text)] != ""
        if piece.kind == "match":
            matched |= set(range(at, at + len(piece.text)))
        at += len(piece.text)
    assert at == len(text)
    wanted = {i for a, b in spans for i in range(max(a, 0), min(b, len(text)))}
    assert matched == wanted
