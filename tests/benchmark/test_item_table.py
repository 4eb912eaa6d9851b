"""Items as columns are what the objects are that they were made of."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contam.benchmark import collector, item_table
from contam.benchmark.collector import Collector, Parts
from contam.benchmark.item_table import FIELDS, ItemTable
from contam.benchmark.items import BenchItem, Benchmark, ItemName, SkippedRow, SourceFile
from contam.detect.plan import _in_order
from contam.detect.result import item_ranks
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


def collect(found_rows, at_once: int) -> tuple[Benchmark, ...] | str:
    """What becomes of the rows where so many items become columns together; the error's text."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(collector, "_AT_ONCE", at_once)
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
            benchmark.items.key_digests().tolist(),
        )
        for benchmark in benchmarks
    ]


@given(rows, st.integers(1, 6))
def test_items_are_the_same_however_many_become_columns_together(found_rows, at_once):
    some, every = collect(found_rows, at_once), collect(found_rows, 1000)
    assert plainly(some) == plainly(every)
    if isinstance(every, str):
        return
    for benchmark in every:
        keys = ItemTable.of(list(benchmark.items)).key_digests()
        assert benchmark.items.key_digests().tolist() == keys.tolist()


@given(rows)
def test_a_plan_has_the_items_of_all_benchmarks_in_the_order_of_their_names(found_rows):
    benchmarks = collect(found_rows, 4)
    if isinstance(benchmarks, str):
        return
    items = _in_order(benchmarks)
    given_items = [item for benchmark in benchmarks for item in benchmark.items]
    ranks = item_ranks([ItemName.of(item) for item in given_items])
    assert list(items) == [given_items[at] for at in np.argsort(ranks)]
    assert items.key_digests().tolist() == ItemTable.of(list(items)).key_digests().tolist()


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
        for at_once in range(1, 5):
            assert plainly(collect(found_rows, at_once)) == plainly(collect(found_rows, 1000))


def test_a_name_that_comes_again_is_told_with_its_first_place():
    first = [("quiz", "", f"q{n}", QUESTION) for n in range(8)]
    again = ("quiz", "", "q1", Parts("Elsewhere.", *QUESTION[1:]))
    message = collect([*first, again], 3)
    assert "quiz.jsonl:9: id 'q1' was given to another item at quiz.jsonl:2" in message
    (found,) = collect([*first, ("quiz", "", "q6", QUESTION)], 3)
    assert "repeats item 'q6' of quiz.jsonl:7" in [row.reason for row in found.skipped]
    assert [ItemName.of(item).item_id for item in found.items] == [f"q{n}" for n in range(8)]


texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
items = st.builds(
    BenchItem,
    benchmark=st.sampled_from(("quiz", "maze")),
    split=st.sampled_from(("", "test")),
    item_id=texts,
    question=texts,
    passage=st.none() | texts,
    choices=st.lists(texts | st.just("a\nb"), max_size=3).map(tuple),
    answer=st.none() | texts,
    answer_index=st.none() | st.integers(-3, 5),
    source=st.sampled_from(("a.jsonl", "b.jsonl")),
    line=st.integers(0, 9),
    incomplete=st.sampled_from(("", "half of it is missing")),
)


@given(st.lists(items, max_size=10), st.data())
def test_whatever_is_asked_of_a_table_is_what_was_put_into_it(given_items, more):
    order = more.draw(st.permutations(range(len(given_items))))
    found = ItemTable.of(given_items).take(np.array(order, np.int64))
    wanted = [given_items[at] for at in order]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(item_table, "_AT_ONCE", 3)
        assert list(found) == wanted
        assert len(found) == len(wanted)
        for name in FIELDS:
            assert found.column(name) == [getattr(item, name) for item in wanted]
        begin = more.draw(st.integers(0, len(wanted)))
        assert list(found[begin:]) == wanted[begin:]
        if wanted:
            assert found.lazy("answer")[-1] == found[-1].answer == wanted[-1].answer
        assert found.names() == [ItemName.of(item) for item in wanted]
        assert found.lazy("item_id")[begin:] == [item.item_id for item in wanted[begin:]]
        assert found.lazy("choices")[begin:] == [item.choices or None for item in wanted[begin:]]
        texts = [text.encode() for item in wanted for text in item.part_texts()]
        data, starts = found.part_texts()
        assert data.tobytes() == b"".join(texts) + b"\0"
        assert starts.tolist() == np.cumsum([0, *map(len, texts)]).tolist()
        assert [-1 if at is None else at for at in map(right_choice, wanted)] == (
            found.right_choices().tolist()
        )
        again = pickle.loads(pickle.dumps(found))  # noqa: S301 - our own
        assert list(again) == wanted
        assert list(ItemTable.joined([found, again, found[:1]])) == [*wanted, *wanted, *wanted[:1]]


def right_choice(item: BenchItem) -> int | None:
    at = item.answer_index
    return at if at is not None and 0 <= at < len(item.choices) else None
