"""Names, splits, ids and duplicates."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest

from contam.benchmark import read_benchmarks
from contam.benchmark.naming import name_of
from contam.errors import BenchmarkError

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import WriteRows


@pytest.mark.parametrize(
    ("path", "benchmark", "split"),
    [
        ("x/gsm8k_test.jsonl.gz", "gsm8k", "test"),
        ("x/gsm8k_test_300.jsonl", "gsm8k_test_300", ""),
        ("x/botany-validation.csv", "botany", "validation"),
        ("x/mmlu_auxiliary_train.csv", "mmlu", "auxiliary_train"),
        ("x/arc/test-00000-of-00003.parquet", "arc", "test"),
        ("x/arc/data/test-00000-of-00001-0a1b2c.parquet", "arc", "test"),
        ("x/arc/test.jsonl", "arc", "test"),
        ("x/latest.jsonl", "latest", ""),
        ("x/v1.5.items.jsonl", "v1.5.items", ""),
    ],
)
def test_paths_imply_names(tmp_path: Path, path: str, benchmark: str, split: str):
    naming = name_of(tmp_path / path)
    assert (naming.benchmark, naming.split) == (benchmark, split)


def test_a_file_may_hold_several_benchmarks_and_splits(write_jsonl: WriteRows):
    rows = [
        {"benchmark": "b", "split": "test", "id": "1", "question": "Q?"},
        {"benchmark": "a", "split": "test", "id": "1", "question": "Q?"},
        {"benchmark": "b", "split": "dev", "id": "1", "question": "R?"},
    ]
    first, second = read_benchmarks([write_jsonl("m.jsonl", rows)])
    assert [(i.benchmark, i.split, i.question) for i in first.items] == [("a", "test", "Q?")]
    assert [(i.benchmark, i.split, i.question) for i in second.items] == [
        ("b", "test", "Q?"),
        ("b", "dev", "R?"),
    ]
    assert first.sources == second.sources


def test_given_name_wins_and_given_split_fills_in(write_jsonl: WriteRows):
    path = write_jsonl("m.jsonl", [{"question": "Q?"}])
    (benchmark,) = read_benchmarks([path], name="own", split="main")
    assert (benchmark.name, benchmark.items[0].split) == ("own", "main")


def test_given_split_selects_among_stated_ones(write_jsonl: WriteRows):
    path = write_jsonl(
        "m.jsonl", [{"split": s, "question": f"{s}?"} for s in ("train", "train", "test")]
    )
    (benchmark,) = read_benchmarks([path], split="test")
    assert [item.question for item in benchmark.items] == ["test?"]
    assert [skip.reason for skip in benchmark.skipped] == ["2 rows of split 'train', not 'test'"]
    with pytest.raises(BenchmarkError, match="rows of split 'train', not 'dev'"):
        read_benchmarks([path], split="dev")


def test_files_are_found_once_and_in_natural_order(write_jsonl: WriteRows, tmp_path: Path):
    for part in (10, 2, 1):
        write_jsonl(f"parts/b-{part}.jsonl", [{"benchmark": "b", "question": f"{part}?"}])
    (benchmark,) = read_benchmarks(
        [tmp_path / "parts", f"{tmp_path}/**/*.jsonl", tmp_path / "parts" / "b-1.jsonl"]
    )
    assert [item.question for item in benchmark.items] == ["1?", "2?", "10?"]


def test_ids_made_from_content_are_stable(write_jsonl: WriteRows):
    rows = [
        {"question": "Q?", "choices": ["a", "b"], "answer": 0},
        {"question": "R?"},
        {"question": "R?"},
    ]
    (benchmark,) = read_benchmarks([write_jsonl("m.jsonl", rows)])
    ids = [item.item_id for item in benchmark.items]
    assert ids == ["3bed2e5093789a49", "c78d9b5529e5fadd", "c78d9b5529e5fadd#2"]
    (turned,) = read_benchmarks([write_jsonl("n.jsonl", rows[::-1])], name="m")
    assert {i.item_id for i in turned.items} == set(ids)


@pytest.mark.parametrize(
    ("value", "item_id"), [(7, "7"), (7.0, "7"), (" x ", "x"), ({"q": 1, "p": 0}, '{"p":0,"q":1}')]
)
def test_native_ids_are_kept_as_text(write_jsonl: WriteRows, value: object, item_id: str):
    (benchmark,) = read_benchmarks([write_jsonl("m.jsonl", [{"idx": value, "question": "Q?"}])])
    assert benchmark.items[0].item_id == item_id


def test_row_without_its_id_is_named_by_content(write_jsonl: WriteRows):
    rows = [{"id": "a", "question": "Q?"}, {"id": None, "question": "R?"}]
    (benchmark,) = read_benchmarks([write_jsonl("m.jsonl", rows)])
    assert [item.item_id for item in benchmark.items] == ["a", "c78d9b5529e5fadd"]


def test_duplicates_are_grouped_whatever_the_order_of_choices(write_jsonl: WriteRows):
    rows = [
        {"question": "Which “one” floats?", "choices": ["moss", "reed"], "answer": 1},
        {"question": "Which is it?", "choices": ["moss", "reed"], "answer": 1},
        {"question": 'which "one"  FLOATS?', "choices": ["Reed", "moss"], "answer": 0},
        {"question": "Which is it?", "choices": ["moss", "palm"], "answer": 1},
        {"question": "Which is it?", "choices": ["moss", "reed"], "passage": "P.", "answer": 1},
        {"question": "Which is it?", "choices": ["moss", "reed"], "answer": 0},
    ]
    (benchmark,) = read_benchmarks([write_jsonl("m.jsonl", rows)])
    assert benchmark.duplicates == ((0, 2), (1, 5))


def test_source_digest_is_that_of_the_file(write_jsonl: WriteRows):
    path = write_jsonl("m.jsonl", [{"question": "Q?"}])
    (benchmark,) = read_benchmarks([path])
    (source,) = benchmark.sources
    assert source.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert (source.path, source.size, source.n_rows, source.format) == (
        str(path),
        path.stat().st_size,
        1,
        "jsonl",
    )
