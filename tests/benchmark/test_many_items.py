"""Many items, which are packed while they are read, give what a few give."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contam.benchmark import collector, many_items, packed, put_in_order
from contam.benchmark.collector import Collector
from contam.benchmark.items import Benchmark, ItemName, SkippedRow, SourceFile
from contam.benchmark.key_table import COLUMNS
from contam.benchmark.packed import PackedItems
from contam.benchmark.rows import Parts
from contam.detect.plan import _in_order
from contam.errors import BenchmarkError

words = st.sampled_from(["", "Where?", "Wo\u00df?", "a b", "A  b", "long " * 9])
parts = st.builds(
    Parts,
    passage=st.none() | words,
    question=words.filter(bool),
    choices=st.lists(words, max_size=2).map(tuple),
    answer=st.none() | words,
    answer_index=st.none() | st.integers(0, 1),
)
#: What items without an id often say, and what they are called then.
QUESTION = Parts(None, "Where?", (), None, None)
NAME = collector.content_id(QUESTION)
ids = st.sampled_from(["", "", "q2", "q10", "2", NAME, f"{NAME}#2"])
rows = st.lists(
    st.tuples(
        st.sampled_from(["quiz", "maze10", "maze9"]),
        st.sampled_from(["", "a"]),
        ids,
        parts | st.just(QUESTION),
    ),
    max_size=14,
)


@pytest.fixture(autouse=True, scope="module")
def small_pieces():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packed, "AT_ONCE", 3)
        patch.setattr(packed, "_MADE_AT_ONCE", 4)
        patch.setattr(put_in_order, "_STRETCH_BYTES", 40)
        patch.setattr(put_in_order, "_PIECE_BYTES", 20)
        patch.setattr(put_in_order, "_ROWS", 2)
        yield


def collect(found_rows, most: int) -> tuple[Benchmark, ...] | str:
    """What becomes of the rows where more items than `most` are many; the error's text."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(collector, "_MANY_ITEMS", most)
        taking = Collector()
        try:
            for line, (name, split, item_id, item) in enumerate(found_rows, 1):
                taking.add(name, split, item_id, item, f"{name}.jsonl", line)
                if line % 3 == 0:
                    taking.skip(name, SkippedRow(f"{name}.jsonl", line, "empty question"))
            taking.add_source(["quiz"], SourceFile("quiz.jsonl", "", 0, len(found_rows), "jsonl"))
            return taking.finish([SkippedRow("other.json", 0, "no items", n_rows=0)])
        except BenchmarkError as error:
            return str(error)


def plainly(benchmarks: tuple[Benchmark, ...] | str) -> object:
    if isinstance(benchmarks, str):
        return benchmarks
    return [
        (
            benchmark.name,
            list(benchmark.items),
            [benchmark.items[at] for at in range(len(benchmark.items))],
            benchmark.skipped,
            benchmark.sources,
            benchmark.duplicates,
            [[part.tolist() for part in benchmark.keys.column(name)] for name in COLUMNS],
            [benchmark.keys.one(at) for at in range(len(benchmark.keys))],
        )
        for benchmark in benchmarks
    ]


@given(rows, st.integers(0, 6), st.booleans())
def test_many_items_are_what_few_are(found_rows, most, collide):
    few = collect(found_rows, 1000)
    with pytest.MonkeyPatch.context() as patch:
        if collide:
            patch.setattr(many_items, "hash", lambda name: len(name.item_id), raising=False)
        many = collect(found_rows, most)
    assert plainly(many) == plainly(few)
    if isinstance(few, str):
        return
    assert all(isinstance(b.items, PackedItems) for b in many) == (
        sum(len(b.items) for b in few) > most
    )
    (_, items, keys), (_, wanted, known) = _in_order(many), _in_order(few)
    assert list(items) == list(wanted)
    for name in COLUMNS:
        for column, same in zip(keys.column(name), known.column(name), strict=True):
            assert np.array_equal(column, same)


@given(rows)
def test_many_items_lie_in_the_order_of_their_names(found_rows):
    many = collect(found_rows, 0)
    if isinstance(many, str):
        return
    items = _in_order(many)[1]
    assert items.is_whole()
    texts = [text.encode() for item in items for text in item.part_texts()]
    assert items.part_bytes()[0].tobytes() == b"".join(texts) + b"\0"


def test_content_and_id_may_give_the_same_name():
    none, given_id, twin = ("quiz", "", "", QUESTION), ("quiz", "", NAME, QUESTION), f"{NAME}#2"
    other = Parts("Elsewhere.", *QUESTION[1:])
    for found_rows in (
        [none, none, none],
        [none, given_id, none],
        [given_id, none, none],
        [none, ("quiz", "", twin, other), none],
        [none, ("quiz", "", twin, QUESTION), none, none],
    ):
        for most in range(4):
            assert plainly(collect(found_rows, most)) == plainly(collect(found_rows, 1000))


def test_a_name_of_many_is_told_with_its_first_place():
    first = [("quiz", "", f"q{n}", QUESTION) for n in range(8)]
    again = ("quiz", "", "q1", Parts("Elsewhere.", *QUESTION[1:]))
    message = collect([*first, again], 0)
    assert "quiz.jsonl:9: id 'q1' was given to another item at quiz.jsonl:2" in message
    (found,) = collect([*first, ("quiz", "", "q6", QUESTION)], 0)
    assert "repeats item 'q6' of quiz.jsonl:7" in [row.reason for row in found.skipped]
    assert [ItemName.of(item).item_id for item in found.items] == [f"q{n}" for n in range(8)]
