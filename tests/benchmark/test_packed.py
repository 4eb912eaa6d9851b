"""Packed items are the items that were packed, whole and in part."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import contam
from contam.benchmark import collector, packed
from contam.benchmark.items import PARTS, BenchItem, ItemName
from contam.benchmark.packed import PackedItems, column_of, ids_of, right_choices, text_column
from contam.detect import plan as plans
from contam.detect.match.item_tokens import in_blocks
from contam.detect.match.variant_texts import behind_each_other

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
    for name in (*ItemName._fields, *PARTS, "source"):
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
