"""Names, splits, ids and duplicates."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from contam.benchmark.items import BenchItem, Benchmark, SourceFile
from contam.benchmark.paths import name_of
from contam.benchmark.read_files import read_benchmarks
from contam.benchmark.reading import about_benchmark, how_read
from contam.cli.render import benchmark_lines
from contam.errors import BenchmarkError

if TYPE_CHECKING:
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


def test_given_split_selects_among_stated_ones(write_jsonl: WriteRows):
    path = write_jsonl(
        "m.jsonl", [{"split": s, "question": f"{s}?"} for s in ("train", "train", "test")]
    )
    (benchmark,) = read_benchmarks([path], split="test")
    assert [item.question for item in benchmark.items] == ["test?"]
    assert [skip.reason for skip in benchmark.skipped] == ["2 rows of split 'train', not 'test'"]
    with pytest.raises(BenchmarkError, match="rows of split 'train', not 'dev'"):
        read_benchmarks([path], split="dev")


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


def source(*fields, unread=(), left_out=()):
    return SourceFile("quiz.jsonl", "", 1, 1, "jsonl", fields, unread, left_out)


def record(*sources, incomplete=()):
    items = [
        BenchItem(benchmark="quiz", split="", item_id=str(at), question="Why?", incomplete=why)
        for at, why in enumerate(incomplete)
    ]
    return about_benchmark(Benchmark(name="quiz", items=items, sources=sources))


def lines(*sources, incomplete=()):
    return list(benchmark_lines({"benchmarks": [record(*sources, incomplete=incomplete)]}))


def test_the_largest_share_of_any_file_is_told():
    read = how_read(
        record(
            source(("question", "question"), unread=(("notes", 0.2), ("aside", 0.3))),
            source(("question", "prompt"), unread=(("notes", 0.4),), left_out=("hint",)),
            incomplete=("", "half is missing", "half is missing"),
        )
    )
    assert list(read.unread.items()) == [("notes", 0.4), ("aside", 0.3)]
    assert read.fields["question"] == ["question", "prompt"]
    assert read.left_out == ["hint"]
    assert read.incomplete == {"half is missing": 2}


@pytest.mark.parametrize(
    "usual", [("question", "question"), ("passage", "context"), ("choices", "A"), ("answer", "x")]
)
def test_of_a_plain_reading_nothing_is_said(usual):
    asked = ("question", "prompt")
    assert not lines(source(asked, usual) if usual[0] != "question" else source(usual))


@pytest.mark.parametrize(
    ("said", "sources", "incomplete"),
    [
        ("narrative", [source(("question", "narrative"))], ()),
        ("story", [source(("question", "story"), ("question", "question"))], ()),
        ("saga", [source(("question", "question"), ("passage", "saga"))], ()),
        ("notes (<0.1 %", [source(("question", "question"), unread=(("notes", 1e-5),))], ()),
        ("notes (62.5 %", [source(("question", "question"), unread=(("notes", 0.625),))], ()),
        ("hint", [source(("question", "question"), left_out=("hint",))], ()),
        ("2 items", [source(("question", "question"))], ("a", "b", "")),
    ],
)
def test_what_is_not_plain_is_said_in_one_line(said, sources, incomplete):
    (line,) = lines(*sources, incomplete=incomplete)
    assert line.startswith("quiz: ")
    assert said in line


@pytest.fixture(scope="module")
def logs() -> Path:
    home = os.environ.get("CONTAM_SHARED")
    folder = Path(home or ".", "eval-logs", "benchmarks")
    if not home or not folder.is_dir():
        pytest.skip("evaluation logs not installed (CONTAM_SHARED)")
    return folder


def only(path: Path) -> Benchmark:
    (benchmark,) = read_benchmarks([path])
    return benchmark


@pytest.mark.slow
@pytest.mark.labelled
def test_all_labelled_items_are_read(labelled_data: Path):
    benchmarks = read_benchmarks([labelled_data / "items"])
    items = [item for benchmark in benchmarks for item in benchmark.items]
    assert (len(benchmarks), len(items)) == (28, 36_941)
    assert not any(benchmark.skipped for benchmark in benchmarks)
    assert sum(bool(item.choices) for item in items) == 22_600
    assert sum(item.answer_index is not None for item in items) == 22_027  # 580 answers are letters
    assert sum(item.passage is not None for item in items) == 4_847


def test_decon_rows_fold(logs: Path):
    mmlu, gsm8k = (
        only(logs / "decon_mmlu_test-1.head40.jsonl"),
        only(logs / "decon_gsm8k_test-1.head50.jsonl"),
    )
    anatomy = only(logs / "mmlu_anatomy_test.jsonl")
    assert [(i.question, i.choices, i.answer) for i in mmlu.items] == [
        (i.question, i.choices, i.answer) for i in anatomy.items[:10]
    ]
    assert [item.question for item in gsm8k.items] == [
        item.question for item in only(logs / "gsm8k_test_300.jsonl").items[:50]
    ]
