"""Real item files, where the shared material is installed (CONTAM_SHARED)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from contam.benchmark import Benchmark, read_benchmarks


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


@pytest.mark.labelled
def test_all_labelled_items_are_read(labelled_data: Path):
    benchmarks = read_benchmarks([labelled_data / "items"])
    items = [item for benchmark in benchmarks for item in benchmark.items]
    assert (len(benchmarks), len(items)) == (28, 36_941)
    assert not any(benchmark.skipped for benchmark in benchmarks)
    assert sum(bool(item.choices) for item in items) == 22_600
    assert sum(item.answer_index is not None for item in items) == 22_027  # 580 answers are letters
    assert sum(item.passage is not None for item in items) == 4_847


@pytest.mark.parametrize("subject", ["abstract_algebra", "anatomy"])
def test_mmlu_sheet_and_lines_hold_the_same_items(logs: Path, subject: str):
    sheet, lines = only(logs / f"{subject}_test.csv"), only(logs / f"mmlu_{subject}_test.jsonl")
    assert len(sheet.items) == {"abstract_algebra": 100, "anatomy": 135}[subject]
    assert [(i.item_id, i.choices, i.answer_index) for i in sheet.items] == [
        (i.item_id, i.choices, i.answer_index) for i in lines.items
    ]


def test_code_and_word_problems_are_read(logs: Path):
    code, words = only(logs / "HumanEval.jsonl.gz"), only(logs / "gsm8k_test_300.jsonl")
    assert [item.item_id for item in code.items] == [f"HumanEval/{n}" for n in range(164)]
    assert len(words.items) == 300
    assert all("####" in (item.answer or "") for item in words.items)


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


def test_a_folder_with_other_files_lists_them(logs: Path):
    benchmarks = read_benchmarks([logs])
    assert sum(len(benchmark.items) for benchmark in benchmarks) == 994
    assert [Path(row.source).name for b in benchmarks for row in b.skipped] == ["planted.json"]
