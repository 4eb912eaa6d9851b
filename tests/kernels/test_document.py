"""Whole documents: what is reported of every item is true, and no run of `min_run` is missing."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contam.detect.match import grams
from contam.detect.plan import CHAR_MIN_RUN, CHAR_SEED, CHAR_STRIDE
from contam.kernels import document as kernels
from contam.kernels.document import place_pieces
from contam.kernels.match_rows import AS_LETTER, PIECE_ALIGNMENT, PIECE_DOC, MatchRows
from contam.kernels.run_together import Document
from tests.kernels.support import (
    CHARACTERS,
    TINY,
    VOCABULARY,
    check_world,
    few,
    frozen,
    make_item,
    match,
    u64s,
    view_of,
    worlds,
)
from tests.twins.bits import code_points

CHAR = {"unit": "char", "seed": CHAR_SEED, "min_run": CHAR_MIN_RUN}
#: Words of the texts, how many at the most, and the units and lengths of the search.
SEARCHES = [
    (VOCABULARY, 40, {}),
    (TINY, 30, {}),
    (TINY, 18, {"seed": 3, "min_run": 5}),
    (("red", "中文", "の", "café"), 9, {"unit": "char", "seed": 4, "min_run": 9}),
    (VOCABULARY, 24, CHAR),
    (VOCABULARY, 24, {**CHAR, "stride": CHAR_STRIDE}),
]


@pytest.mark.parametrize(("words", "most", "lengths"), SEARCHES)
@given(more=st.data(), owners=st.sampled_from((16, 16, 0, 1, 2)))
@few
def test_evidence_is_true_and_whole(words, most, lengths, more, owners):
    """Also where a gram of more than so many items is common."""
    items, documents = more.draw(worlds(words=words, most=most))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(grams, "COMMON_OWNERS", owners)
        view = view_of(items, **lengths)
    check_world(view, items, documents)


@pytest.mark.parametrize("items", [[], [make_item(0, question="")]])
def test_nothing_is_found_where_nothing_is(items):
    assert len(check_world(view_of(items), items, ["", "red fox"]).evidence()[0]) == 0


def test_an_item_of_every_length_is_found_whole():
    for length in range(5, 24):
        question = " ".join(f"w{k}" for k in range(length))
        items = [make_item(0, question=question)]
        collection = check_world(view_of(items), items, [f"Before. {question}? After."])
        matches, _ = collection.evidence()
        assert matches.exact[0, 1]
        assert matches.coverage[0, 1] == pytest.approx(1.0)


@pytest.mark.parametrize(("unit", "stride"), [("word", 1), ("char", 1), ("char", 9)])
@pytest.mark.parametrize("before", [-30, -9, -1, 0, 1])
def test_an_item_is_found_across_the_end_of_the_grams_that_are_looked_up_at_once(
    unit, stride, before
):
    question = "who painted the small red fox that runs past the old mill by the river every day"
    sizes = {"seed": 24, "min_run": 50} if unit == "char" else {}
    view = view_of([make_item(0, question=question)], unit=unit, stride=stride, **sizes)
    lead = kernels.GRAMS_AT_ONCE + before
    words = ["x"] * lead
    matches, pieces = match(view, [" ".join([*words, question, *words])]).evidence()
    assert matches.exact[0, 1]
    assert (pieces.start[0], pieces.end[0]) == (2 * lead, 2 * lead + len(question))


def test_more_pairs_pieces_runs_and_blocks_than_the_first_buffers_hold():
    short = make_item(0, question="q0 is the red fox that runs by")
    long = make_item(1, question=" ".join(f"w{k}" for k in range(kernels.FIRST_BLOCKS)))
    n_copies = max(kernels.FIRST_RUNS, kernels.FIRST_PIECES) + 3
    alone = [short.question] * (kernels.FIRST_MATCHES + 2)
    documents = [
        *alone,
        long.question.replace("w77 ", "other "),
        ". ".join([short.question] * n_copies),
        *alone,
    ]
    matches, pieces = match(view_of([short, long]), documents).evidence()
    assert sorted(matches.row.tolist()) == list(range(len(documents)))
    of_row = {int(row): k for k, row in enumerate(matches.row)}
    many, edited = of_row[len(alone) + 1], of_row[len(alone)]
    assert matches.n_runs[many, 1] == matches.n_places[many] == n_copies
    assert matches.longest[edited, 1] == kernels.FIRST_BLOCKS - 78
    assert matches.aligned[edited, 1] == kernels.FIRST_BLOCKS - 1
    for row in (0, len(alone) - 1, len(documents) - 1):
        (mine,) = np.flatnonzero(pieces.match == of_row[row])
        assert (pieces.start[mine], pieces.end[mine]) == (0, len(short.question))


@given(worlds(documents=4))
@few
def test_a_batch_says_what_its_documents_say_alone(world):
    items, documents = world
    view = view_of(items)
    together, told = match(view, documents), []
    for row, document in enumerate(documents):
        matches, _ = match(view, [document], first_row=row).evidence()
        told += list(
            zip(matches.item.tolist(), matches.row.tolist(), matches.coverage.tolist(), strict=True)
        )
    matches, _ = together.evidence()
    whole = zip(matches.item.tolist(), matches.row.tolist(), matches.coverage.tolist(), strict=True)
    assert sorted(whole) == sorted(told)


@given(st.lists(CHARACTERS, min_size=1, max_size=60), st.integers(0, 3), st.data())
def test_pieces_in_any_order_are_placed_in_code_points(chars, first, more):
    ends = np.cumsum([0, *(len(char.encode()) for char in chars)])
    spans = np.stack([ends[:-1], ends[1:]], axis=1).astype(np.int32)
    at = st.integers(0, len(chars) - 1)
    drawn = more.draw(st.lists(st.tuples(at, at), max_size=6))
    stretches = [(min(pair), max(pair) + 1) for pair in drawn]
    pieces = np.zeros((first + len(stretches) + 2, 6), np.int32)
    for k, (lo, hi) in enumerate(stretches):
        pieces[first + k, PIECE_DOC:] = lo, hi - lo
    # Marks of answers: these are other tokens than the item's.
    pieces[:, PIECE_ALIGNMENT] = AS_LETTER
    where = np.full((len(pieces), 2), -7, np.int32)
    rows = MatchRows(
        np.zeros((1, 24), np.int32),
        np.zeros((1, 8), np.float32),
        pieces,
        np.array([0, first + len(stretches)]),
    )
    before = "é".encode()
    text = frozen(np.frombuffer(before + "".join(chars).encode(), np.uint8), np.uint8)
    document = Document(u64s([0] * len(chars)), len(chars), spans, text, len(before), len(text))
    gram_table = view_of([make_item(0, question="one two three four five")]).gram_table
    place_pieces(document, gram_table, rows, first, where)
    data = text.tobytes()[len(before) :]
    want = [[code_points(data[: ends[lo]]), code_points(data[: ends[hi]])] for lo, hi in stretches]
    assert where[first : first + len(stretches)].tolist() == want
    assert (where[:first] == -7).all()
    assert (where[first + len(stretches) :] == -7).all()
