"""What a cut takes: whole words, with what is around them, and pieces too short to be of use."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import contam
from contam.cleaning.choice import CleanOptions, long_pieces, whole_words
from contam.errors import UsageError
from tests.cleaning.inputs import _OTHER, question, rows_of

ASKED = question("orchard", 0)
OTHER = question("harbour", 0)
TEXT = f"The ferrymen kept careful records. {ASKED} Historians still disagree about it."


def cleaned(tmp_path, items, rows, *, name="a.jsonl", **options):
    """The rows of a corpus of one shard, without what was found in it, and clean.json."""
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    rows = [*rows, *({**rows[0], **dict.fromkeys(rows[0], "Rain fell all day.")} for _ in "ab")]
    if name.endswith(".parquet"):
        pq.write_table(pa.Table.from_pylist(rows), corpus / name)
    else:
        (corpus / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = contam.clean(corpus, items, tmp_path / "out", action="cut", **options)
    return rows_of(tmp_path / "out" / "corpus" / name)[:-2], done.record


@pytest.mark.parametrize(
    ("around", "left"),
    [
        (0, "The ferrymen kept careful records. ? Historians still disagree about it."),
        (3, "The ferrymen kept careful  still disagree about it."),
        (12, "The ferrymen kept  still disagree about it."),
        (500, ""),
    ],
)
def test_a_cut_takes_whole_words_and_leaves_the_others_apart(items, tmp_path, around, left):
    ((row,), _) = cleaned(tmp_path, items, [{"text": TEXT}], around=around)
    assert row["text"] == left


@given(st.text("ab 'é-.中文ไท", max_size=30), st.data())
def test_no_word_is_cut_in_two_and_no_two_become_one(text, data):
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(text))] * 2)))
    inside = text[start:end]
    if not any(char in "abé" for char in inside):
        return
    ((a, b),) = whole_words([(start, end)], text)
    for place in (a, b):
        halves = text[:place][-1:], text[place:][:1]
        assert not all(half and half in "abé" for half in halves)
    assert not (text[:a][-1:] in set("abé") and text[b:][:1] in set("abé"))
    # Only what is no part of a word may stay of what was to be cut.
    assert not set(text[start:a] + text[b:end]) & set("abé")
    # Beside scripts without spaces no more is taken than was asked for.
    assert not set(text[a:start] + text[end:b]) & set("中文ไท")


@given(st.integers(0, 12), st.data())
def test_no_short_piece_is_left_beside_a_cut(least, data):
    text = "abcdefghijklmnopqrstuvwxyz"
    marks = data.draw(st.sets(st.integers(0, 26), max_size=6).map(sorted))
    spans = tuple(zip(marks[::2], marks[1::2], strict=False))
    found = long_pieces(spans, [(0, 10), (11, 26)], least)
    assert all(any(a <= begin and end <= b for a, b in found) for begin, end in spans)
    for begin, end in ((0, 10), (11, 26)):
        kept = "".join(
            text[at] if not any(a <= at < b for a, b in found) else " " for at in range(begin, end)
        )
        touched = any(a < end and b > begin for a, b in spans)
        assert not touched or all(len(piece) >= least for piece in kept.split())
        assert touched or kept == text[begin:end]


def test_short_pieces_go_and_documents_cut_too_often_are_dropped(items, tmp_path):
    rest = _OTHER * 3
    rows = [
        {"text": f"Brief. {ASKED} {rest}"},
        {"text": f"Brief. {ASKED} Short."},
        {"text": f"{rest}{ASKED} {rest}{OTHER} {rest}"},
    ]
    left, record = cleaned(tmp_path, items, rows, min_piece=100, max_cuts=1, keep_removed=True)
    assert [row["text"].strip(" ?") for row in left] == [rest.strip()]
    documents = record["documents"]
    assert [documents[name] for name in ("found", "dropped", "edited")] == [3, 2, 1]
    removed = pq.read_table(tmp_path / "out" / "removed" / "a.jsonl.parquet").to_pylist()
    assert [row["action"] for row in removed] == ["cut", "drop", "drop"]
    assert removed[2]["text"] == rows[2]["text"]
    assert removed[0]["text"].startswith("Brief. ")


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet"])
@pytest.mark.parametrize("column", ["prompt", "response"])
def test_an_item_that_fills_a_column_is_cut(items, tmp_path, name, column):
    row = {"prompt": "Say something.", "response": "Something."} | {column: ASKED.rstrip("?")}
    ((left,), record) = cleaned(tmp_path, items, [row], name=name)
    assert left == row | {column: ""}
    assert record["documents"]["edited"] == 1


@pytest.mark.parametrize("options", [{"around": 3}, {"min_piece": 3}, {"max_cuts": 3}])
def test_what_is_for_cutting_is_refused_with_other_actions(options):
    for action in ("drop", "mask", "list"):
        with pytest.raises(UsageError):
            CleanOptions(action=action, **options)
    with pytest.raises(UsageError):
        CleanOptions(action="cut", **dict.fromkeys(options, -1))
