"""Evidence: every row and piece that a scan writes is the one that the twin writes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contam.benchmark.read_files import read_benchmarks
from contam.detect.match import grams as gram_tables
from contam.detect.match.token_view import build_view
from contam.detect.plan import CHAR_MIN_RUN, CHAR_SEED, CHAR_STRIDE, MIN_RUN, SEED
from contam.kernels import match_rows as columns
from contam.kernels._jit import INTERPRETED
from tests.kernels.evidence_support import check, with_weights
from tests.kernels.support import few, make_item, view_of

if TYPE_CHECKING:
    from pathlib import Path

    from contam.benchmark.items import BenchItem
    from contam.detect.match.token_view import SearchView

FEW_WORDS = ("red", "fox", "runs", "by")
MANY_WORDS = tuple(f"w{n}" for n in range(24))
#: What stands around an answer, and what no item holds.
BESIDE = ("answer", "a", "b", "c", "0", "1", "2", "correct")
OTHER = ("und", "so", "weiter")
#: Sums of these are exact, interpreted and compiled.
WEIGHTS = st.sampled_from((0.0, 0.03125, 0.0625, 0.25, 0.25, 0.5, 1.0, 1.0, 1.0))


@st.composite
def item_words(draw) -> list[list[str]]:
    """Passage, question and up to four choices."""
    word = st.sampled_from(draw(st.sampled_from((FEW_WORDS, MANY_WORDS, MANY_WORDS))))
    passage = draw(st.lists(word, max_size=24))
    question = draw(st.lists(word, min_size=9, max_size=24) | st.lists(word, max_size=5))
    if passage and draw(st.booleans()):
        question = [*question, *passage[:9]]
    choice = st.lists(word, min_size=1, max_size=5) | st.lists(word, min_size=1, max_size=1)
    return [passage, question, *draw(st.lists(choice, min_size=2, max_size=4) | st.just([]))]


OTHERS = st.tuples(st.sampled_from(OTHER), st.sampled_from((0, 0, 0, 1, 2, 5, 30, 60, 90))).map(
    lambda some: [some[0]] * some[1]
)
EDITS = st.lists(
    st.tuples(
        st.integers(0, 40),
        st.sampled_from(("drop", "replace", "insert")),
        st.sampled_from((*OTHER, *FEW_WORDS, *MANY_WORDS[:3])),
    ),
    max_size=3,
)


def edited(words: list[str], edits: list[tuple[int, str, str]]) -> list[str]:
    words = list(words)
    for at, how, new in edits:
        if at < len(words):
            words[at : at + (how != "insert")] = [] if how == "drop" else [new]
    return words


@st.composite
def excerpts(draw, words: list[str]) -> list[str]:
    """A text with a few edits: whole, one end of it, its ends swapped, or apart."""
    cut = draw(st.integers(0, len(words)))
    head, tail = words[:cut], words[cut:]
    shapes = (words, words, head, tail, tail + head, [*head, *draw(OTHERS), *tail])
    return edited(draw(st.sampled_from(shapes)), draw(EDITS | st.just([])))


@st.composite
def copies(draw, item: list[list[str]]) -> list[str]:
    """An item as documents have it: passage, question, choices and the answer, or some of them."""
    passage, question, *choices = item
    listed = [
        word for mark, choice in zip("abcd", choices, strict=False) for word in (mark, *choice)
    ]
    plain = [word for choice in choices for word in choice]
    right = st.sampled_from([["a"], ["b"], ["0"], ["1"], *choices])
    said = st.sampled_from((["answer"], ["answer", "und"], ["answer", "so", "und"], []))
    answer = st.tuples(said, right)
    written = [
        draw(st.just([]) | excerpts(passage)),
        draw(OTHERS),
        draw(excerpts(question)),
        draw(OTHERS),
        draw(st.sampled_from((listed, plain, [])) | excerpts(plain)),
        draw(OTHERS),
        draw(answer.map(lambda some: [word for one in some for word in one]) | st.just([])),
    ]
    return [word for one in written for word in one]


@st.composite
def documents_of(draw, items: list[list[list[str]]]) -> str:
    """What a document may hold: copies, excerpts and marks, and other text between."""
    beside = st.lists(st.sampled_from(BESIDE), max_size=3)
    item = st.sampled_from(items)
    excerpt = item.flatmap(st.sampled_from).flatmap(excerpts)
    copy = item.flatmap(copies)
    pieces = draw(st.lists(copy | copy | excerpt | beside | OTHERS, min_size=1, max_size=4))
    random, lost = draw(st.randoms(use_true_random=False)), draw(st.sampled_from((0, 0, 0.1, 0.3)))
    words = [word for piece in pieces for word in piece]
    return "".join(word + " " * (random.random() >= lost) for word in words)


@st.composite
def worlds(draw) -> tuple[list[BenchItem], list[str]]:
    """Up to three items, and documents that are made of them."""
    drawn = draw(st.lists(item_words(), min_size=1, max_size=3))
    items = []
    for number, (passage, question, *choices) in enumerate(drawn):
        texts = tuple(" ".join(choice) for choice in choices)
        right = draw(st.integers(0, 1)) if choices else None
        items.append(
            make_item(
                number,
                question=" ".join(question),
                passage=" ".join(passage) or None,
                choices=texts,
                answer=texts[right] if right is not None else draw(st.sampled_from((None, "w3"))),
                answer_index=right,
            )
        )
    return items, draw(st.lists(documents_of(drawn), min_size=2, max_size=4))


def without_mending(view: SearchView) -> SearchView:
    """The view for documents whose words stay as they are."""
    gram_table = view.gram_table
    none = {name: getattr(gram_table, name)[:0] for name in ("letter_tag", "letter_place")}
    return replace(view, gram_table=gram_table._replace(**none))


def some_lane(items: list[BenchItem], owners: int, **lengths: int) -> SearchView:
    """A view in which a gram of more than `owners` items is common."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gram_tables, "COMMON_OWNERS", owners)
        return view_of(items, **lengths)


LENGTHS = st.sampled_from(((2, 3, 1), (2, 4, 1), (3, 6, 1), (5, 8, 1), (3, 5, 2), (5, 8, 4)))


@given(
    worlds(), LENGTHS, st.sampled_from((16, 16, 1, 0)), st.lists(WEIGHTS, min_size=1, max_size=9)
)
@few
def test_every_row_and_piece_is_the_twins(world, lengths, owners, weights):
    items, documents = world
    seed, min_run, stride = lengths
    view = some_lane(items, owners, seed=seed, min_run=min_run, stride=stride)
    check(with_weights(without_mending(view), weights), documents)


# ------------------------------------------------------------------------- picked by hand

PASSAGE = " ".join(f"pas{n}" for n in range(30))
QUESTION = " ".join(f"que{n}" for n in range(20))
CHOICES = ("one two three", "four five six", "seven eight nine")


def filler(n: int) -> str:
    return " ".join(f"z{k % 7}" for k in range(n))


def numbered(letter: str, numbers: range) -> str:
    return " ".join(f"{letter}{n}" for n in numbers)


def told_of(document: str, **parts: object) -> tuple[dict, list[float], list[tuple]]:
    """What is written of one item, the same by the kernels and by the twin."""
    given = {"question": QUESTION, **parts}
    told = check(view_of([make_item(0, **given)]), [document])
    assert list(told) == [(0, 0)]
    return told[0, 0]


def alignments(pieces: list[tuple], kind: int) -> list[int]:
    return [piece[1] for piece in pieces if piece[0] == kind]


@pytest.mark.parametrize(
    ("said", "marks"),
    [
        ("answer: b", [columns.AS_LETTER]),
        ("the answer is b", [columns.AS_LETTER]),
        ("answer: 1", [columns.AS_NUMBER]),
        ("the answer is 1", []),
        ("answer z z z b", []),
        ("b", []),
        ("answer: two", [0]),
        ("two", [0]),
        ("z z z two", [0]),
        ("z z z z two", []),
        ("answer z z z two", [0]),
    ],
)
def test_an_answer_is_its_text_or_its_mark_near_the_question(said, marks):
    document = f"{QUESTION} {said} {filler(9)}"
    parts = {"choices": ("one", "two"), "answer": "two", "answer_index": 1}
    row, _, pieces = told_of(document, **parts)
    assert row["answer"] == bool(marks)
    assert alignments(pieces, columns.ANSWER) == marks


@pytest.mark.parametrize("apart", [0, 59, 60, 61, 299, 300, 301, 360, 361, 400])
@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("n", [3, 9])
def test_an_answer_stands_by_its_question_so_far_and_no_further(apart, listed, n):
    answer = numbered("a", range(n))
    choices = ("one two three four", answer, "five six seven")
    between = " ".join(choices) if listed else ""
    document = f"{QUESTION} {between} {filler(apart)} {answer}"
    row, _, _ = told_of(document, choices=choices, answer=answer, answer_index=1)
    # A long answer has runs of its own, told from further on than a short one is looked for. Among
    # listed choices the first copy is one of them.
    most = 0 if listed else 360 if n == 9 else 57
    assert row["answer"] == (apart <= most)


def test_a_question_in_two_places_is_split():
    first, second = QUESTION.split()[:10], QUESTION.split()[10:]
    document = " ".join([*first, filler(90), *second])
    row, reals, _ = told_of(document)
    assert row["split"] == row["places"] - 1 == 1
    assert reals[columns.QUESTION] == 1


@pytest.mark.parametrize("n", [4, 5, 6, 15])
def test_a_place_with_little_of_the_question_counts_for_nothing(n):
    some = " ".join(QUESTION.split()[:n])
    row, _, pieces = told_of(f"{QUESTION.replace('que9', 'z')} {filler(90)} {some}")
    assert row["places"] == 1 + (n >= 10)
    assert (len(set(alignments(pieces, columns.QUESTION))) > 1) == (n >= 5)


@pytest.mark.parametrize(
    ("question", "document", "coverage"),
    [
        ("Who?", f"who {PASSAGE}", 1.0),
        ("Who is it", f"{PASSAGE} who is it", 1.0),
        ("pas3 pas4", PASSAGE, 0.0),
        ("pas3 pas4", f"{PASSAGE} z pas3 pas4", 1.0),
        ("pas3", f"{PASSAGE} {filler(59)} pas3", 1.0),
        ("pas3", f"{PASSAGE} {filler(60)} pas3", 0.0),
        ("what is the x y", f"{PASSAGE} what z is the z y", 0.8),
        ("what is the x y", f"{PASSAGE} what z z y", 0.0),
        (numbered("s", range(0, 82, 2)), f"{PASSAGE} {numbered('s', range(82))}", 0.0),
        (numbered("s", range(0, 80, 2)), f"{PASSAGE} {numbered('s', range(80))}", 1.0),
        ("", PASSAGE, 0.0),
    ],
)
def test_a_question_without_runs_is_looked_for_around_its_passage(question, document, coverage):
    row, reals, _ = told_of(document, question=question, passage=PASSAGE)
    assert reals[columns.QUESTION] == pytest.approx(coverage)
    assert row["places"] == (coverage > 0)


def test_a_question_that_repeats_its_passage_gives_back_those_words():
    question = f"{numbered('pas', range(9))} but why"
    row, reals, _ = told_of(PASSAGE, question=question, passage=PASSAGE)
    assert row["longest"][columns.QUESTION] == 9
    assert reals[columns.QUESTION] == 0
    _, reals, _ = told_of(f"{PASSAGE} {question}", question=question, passage=PASSAGE)
    assert reals[columns.QUESTION] == 1


@pytest.mark.parametrize(
    ("shown", "coverage", "answer"),
    [
        ("a one two three b so four five six c so seven eight nine", 1.0, 0),
        ("one two three so four five z", 5 / 9, 1),
        ("one two three so four five six", 6 / 9, 0),
        ("one two three four", 0.0, 1),
        (f"{filler(42)} one two three so four five six so seven eight nine", 1.0, 0),
        (f"{filler(43)} one two three so four five six so seven eight nine", 8 / 9, 0),
        (f"{filler(53)} one two three so four five six so seven eight nine", 0.0, 1),
    ],
)
def test_choices_are_looked_for_behind_the_question(shown, coverage, answer):
    # Words between, so that the choices have no runs of their own.
    parts = {"choices": CHOICES, "answer": CHOICES[0], "answer_index": 0}
    row, reals, _ = told_of(f"{QUESTION} {shown}", **parts)
    assert reals[columns.CHOICES] == pytest.approx(coverage)
    assert row["answer"] == answer


@pytest.mark.parametrize("n", [159, 160, 161, 319, 320, 321, 400])
def test_long_gaps_are_aligned_as_far_as_the_longest_stretch_goes(n):
    head, tail = numbered("h", range(9)), numbered("t", range(9))
    every, third = numbered("g", range(n)), " ".join(f"g{k}" for k in range(0, n, 3))
    for mine, theirs in ((every, third), (third, every)):
        for question, document in (
            (f"{head} {mine} {tail}", f"{head} {theirs} {tail}"),
            (f"{mine} {tail}", f"{theirs} {tail}"),
            (f"{head} {mine}", f"{head} {theirs}"),
        ):
            told_of(document, question=question)


@pytest.mark.parametrize("gap", [51, 52, 53, 54])
def test_places_are_parted_by_more_than_the_question_and_some(gap):
    row, _, _ = told_of(
        f"{QUESTION.replace('que9', 'z')} {filler(gap)} {QUESTION.replace('que5', 'z')}"
    )
    assert row["places"] == 1 + (gap > 52)


def test_a_place_has_no_more_than_the_heaviest_chains():
    # Fives of the question, last first: no two make a chain.
    words = numbered("que", range(100)).split()
    fives = [words[k : k + 5] for k in range(0, 100, 5)]
    document = " ".join(" ".join(five) for five in reversed(fives))
    _, _, pieces = told_of(document, question=" ".join(words))
    assert alignments(pieces, columns.QUESTION) == list(range(12))


@pytest.mark.parametrize(
    ("document", "n_pieces"),
    [
        ("que0 que1 que2 que3 que4 que5 que6 que7 que8Que9 que10 que11que12que13 que14 z", 4),
        ("z que3que4 que5 que6que7que8 que9 que10 que11 que12 que13 que14", 4),
        ("que0 que1 que2 que3 que4 que5que6 z que8 que9que10 que11 que12 que13 que14", 4),
        ("que0que1 z que3 que4 que5 que6 que7 que8 que9", 1),
        ("que0 que1 que2 que3 que4 que5que6 z que7que8", 2),
    ],
)
def test_words_run_together_beside_a_run_are_the_questions(document, n_pieces):
    _, _, pieces = told_of(document)
    assert len(pieces) == n_pieces
    words = QUESTION.split()
    for _, _, item, _, length, begin, end in pieces:
        assert document[begin:end].replace(" ", "").lower() == "".join(words[item : item + length])


WORD = {"unit": "word", "seed": SEED, "min_run": MIN_RUN, "with_variants": True}
CHAR = {"unit": "char", "seed": CHAR_SEED, "min_run": CHAR_MIN_RUN}
UNITS = {"word": WORD, "char": CHAR, "char-stride": {**CHAR, "stride": CHAR_STRIDE}}


def texts_of(paths: list[Path]) -> list[str]:
    return [text for path in paths for text in pq.read_table(path)["text"].to_pylist() if text]


#: The share of the documents that is compared; of letters there are many more than of words.
SHARES = [("word", 4), ("char", 9), ("char-stride", 9)]
WHOLE = [
    pytest.param(unit, n, marks=pytest.mark.slow) for unit, n in zip(UNITS, (1, 2, 2), strict=True)
]


@pytest.mark.parametrize(("unit", "step"), SHARES + WHOLE)
def test_every_row_and_piece_of_the_small_corpus_is_the_twins(unit, step, bench_fixtures):
    items = [item for found in read_benchmarks([bench_fixtures / "items"]) for item in found.items]
    documents = texts_of(sorted((bench_fixtures / "corpus").rglob("*.parquet")))
    assert len(documents) > 300
    step = 11 if INTERPRETED else step
    view = build_view(items, **UNITS[unit])
    if INTERPRETED:
        # NumPy rounds its sums of other weights to 32 bits, and then 1 is not always reached.
        view = with_weights(view, [1.0, 0.25, 0.5, 1.0, 0.75])
    told = check(view, documents[::step])
    assert len(told) * step > 33


#: With passages, with choices, with neither, programs, and Chinese.
LABELLED = ("arc_challenge", "boolq", "humaneval", "logiqa_zh", "mathqa", "mbpp")


@pytest.mark.slow
@pytest.mark.skipif(INTERPRETED, reason="real documents would take minutes")
def test_every_row_and_piece_of_labelled_documents_is_the_twins(labelled_data):
    columns_read = ["benchmark", "item_id", "doc_id", "shard"]
    labels = pq.read_table(labelled_data / "labels.parquet", columns=columns_read)
    labels = labels.filter(pc.is_in(labels["benchmark"], pa.array(LABELLED)))
    some = labels.filter(pc.is_valid(labels["shard"])).sort_by("doc_id").to_pylist()[::20]
    documents = []
    for shard in sorted({row["shard"] for row in some}):
        wanted = [row["doc_id"] for row in some if row["shard"] == shard]
        table = pq.read_table(labelled_data / "corpus" / shard, columns=["id", "text"])
        texts = table.filter(pc.is_in(table["id"], pa.array(wanted)))["text"].to_pylist()
        documents += [text for text in texts if text]
    mine = {row["item_id"] for row in some}
    found = read_benchmarks([labelled_data / "items" / f"{name}.jsonl" for name in LABELLED])
    every = [item for benchmark in found for item in benchmark.items]
    items = [one for n, one in enumerate(every) if n % 10 == 0 or one.item_id in mine]
    assert len(documents) > 100
    told = check(build_view(items, **WORD), documents)
    assert len(told) > 100
