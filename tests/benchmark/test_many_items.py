"""Many items, which are packed while they are read, give what a few give."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import contam
from contam.benchmark import collector, many_items, packed
from contam.benchmark.collector import Collector
from contam.benchmark.items import PARTS, BenchItem, Benchmark, ItemName, SkippedRow, SourceFile
from contam.benchmark.key_table import COLUMNS
from contam.benchmark.packed import PackedItems, column_of, ids_of, right_choices, text_column
from contam.benchmark.rows import Parts
from contam.detect import plan as plans
from contam.detect.match.item_tokens import in_blocks
from contam.detect.match.variant_texts import behind_each_other
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
        patch.setattr(many_items, "_STRETCH_BYTES", 40)
        patch.setattr(many_items, "_PIECE_BYTES", 20)
        patch.setattr(many_items, "_ROWS", 2)
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


@pytest.fixture(autouse=True, scope="module")
def small_chunks():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packed, "AT_ONCE", 3)
        yield


@given(st.lists(items, max_size=10), st.data())
def test_whatever_is_asked_of_packed_items_is_what_was_packed(given_items, more):
    order = more.draw(st.permutations(range(len(given_items))))
    found = PackedItems.of(tuple(given_items)).take(np.array(order, np.int64))
    wanted = [given_items[at] for at in order]
    assert list(found) == wanted
    assert len(found) == len(wanted)
    for name in (*ItemName._fields, *PARTS, "source", "incomplete"):
        assert list(column_of(found, name)) == list(column_of(wanted, name))
    begin = more.draw(st.integers(0, len(wanted)))
    assert list(found[begin:]) == wanted[begin:]
    for part in PARTS:
        assert text_column(found, part)[begin:] == list(text_column(wanted, part))[begin:]
    assert right_choices(found) == right_choices(wanted)
    ids = [item.item_id for item in wanted]
    assert list(ids_of(found)) == ids
    assert list(ids_of(PackedItems.of(wanted))[begin:]) == ids[begin:]


@given(st.lists(items, min_size=1, max_size=10), st.data())
def test_texts_are_taken_as_they_lie(given_items, more):
    first = more.draw(st.integers(0, len(given_items) - 1))
    after = more.draw(st.integers(first + 1, len(given_items)))
    data, starts = PackedItems.of(given_items)[first:after].part_bytes()
    encoded = [text.encode() for item in given_items[first:after] for text in item.part_texts()]
    same, offsets = behind_each_other(encoded)
    assert data.tolist() == same.tolist()
    assert starts.tolist() == offsets.tolist()


@given(st.lists(items, max_size=10), st.integers(1, 40))
def test_blocks_are_all_items_in_their_order(given_items, size):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("contam.detect.match.item_tokens._BLOCK_CHARACTERS", size)
        blocks = list(in_blocks(PackedItems.of(given_items)))
    assert [item for block in blocks for item in block] == given_items
    assert len(blocks) >= 1


def test_a_scan_for_packed_items_gives_the_same_bytes(tmp_path, monkeypatch):
    rows = [
        {
            "id": f"q{n}",
            "question": rf"Which of the {n} lanterns of the old harbour burns \frac{{{n}}}{{7}}?",
            "passage": "Sparrows nest above the old observatory." if n % 3 else None,
            "choices": ["copper green", f"{n} boats"],
            "answer_index": n % 2,
        }
        for n in (3, 1, 2, 2, 10, 4, 4)
    ]
    for n, row in enumerate(rows):
        row["id"] += "ab"[n % 2]
    lines = [json.dumps(row) + "\n" for row in rows]
    (tmp_path / "items.jsonl").write_text("".join(lines), encoding="utf-8")
    text = " ".join(row["question"] for row in rows)
    (tmp_path / "corpus.jsonl").write_text(json.dumps({"text": text}) + "\n", encoding="utf-8")

    def files(out: str, **options: bool) -> dict[str, bytes]:
        result = contam.scan(
            tmp_path / "corpus.jsonl",
            tmp_path / "items.jsonl",
            policies=["contam", "lmeval-13", "gpt4-50char", "decon-default"],
            **options,
        )
        contam.write_report(result, tmp_path / out)
        assert result.items.num_rows == len(rows)
        names = ("verdicts", "evidence", "items")
        found = {name: (tmp_path / out / f"{name}.parquet").read_bytes() for name in names}
        run = json.loads((tmp_path / out / "run.json").read_text())
        return found | {"run": json.dumps(run | {"timings": None}).encode()}

    plain, bare = files("plain"), files("bare", keep_text=False)
    monkeypatch.setattr(plans, "_MANY_ITEMS", 0)
    assert files("packed") == plain
    assert files("packed bare", keep_text=False) == bare
    monkeypatch.setattr(collector, "_MANY_ITEMS", 0)
    assert files("packed while read") == plain
    assert files("packed while read, bare", keep_text=False) == bare
