"""Plain tables whose columns hold records, and benchmarks made of plain tables."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contam.benchmark.read_files import read_benchmarks
from contam.errors import LogError
from contam.rescore.logs import read_logs
from tests.cli.processes import contam_here
from tests.rescore.logs.small import QUESTIONS, write_lines


def records():
    return [
        {
            "doc": {"id": f"quay-{i}", "stem": question, "options": ["one", "two"]},
            "metrics": {"acc": i % 2, "f1": i / 10},
        }
        for i, question in enumerate(QUESTIONS)
    ]


def write(tmp_path, form):
    if form == "parquet":
        pq.write_table(pa.Table.from_pylist(records()), tmp_path / "t.parquet")
        return tmp_path / "t.parquet"
    return write_lines(tmp_path / "t.jsonl", records())


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_a_dotted_name_reaches_into_records(tmp_path, form):
    columns = {
        "score": "metrics.f1",
        "id": "doc.id",
        "question": "doc.stem",
        "choices": "doc.options",
    }
    (log,) = read_logs([write(tmp_path, form)], columns=columns)
    assert log.columns[0].metric == "metrics.f1"
    assert log.columns[0].score.tolist() == [i / 10 for i in range(6)]
    assert [(item.item_id, item.question) for item in log.items] == [
        (f"quay-{i}", question) for i, question in enumerate(QUESTIONS)
    ]
    assert log.items[0].choices == ("one", "two")
    wide = {"models": "metrics.acc+metrics.f1", "id": "doc.id"}
    one, two = read_logs([write(tmp_path, form)], columns=wide)
    assert (one.model, two.model) == ("metrics.acc", "metrics.f1")


def test_a_lone_score_in_a_record_is_found_and_one_of_two_is_asked_for(tmp_path):
    rows = [{"doc_id": i, "metrics": {"acc": i % 2, "seconds": 1.5}} for i in range(4)]
    (log,) = read_logs([write_lines(tmp_path / "t.jsonl", rows)])
    assert log.columns[0].score.tolist() == [0, 1, 0, 1]
    rows = [{"doc_id": i, "metrics": {"acc": 1, "em": 0}} for i in range(4)]
    with pytest.raises(LogError, match=r"'metrics\.acc' or 'metrics\.em'"):
        read_logs([write_lines(tmp_path / "t.jsonl", rows)])
    with pytest.raises(LogError, match=r"no column 'metrics\.bleu'") as caught:
        read_logs([tmp_path / "t.jsonl"], columns={"score": "metrics.bleu"})
    assert "'metrics.em'" in caught.value.hint
    with pytest.raises(LogError, match=r"no column 'a\+b'"):
        read_logs([tmp_path / "t.jsonl"], columns={"score": "metrics.em", "question": "a+b"})


def test_a_field_that_some_records_lack_is_no_score(tmp_path):
    rows = [{"id": "a", "m": {"acc": 1}}, {"id": "b", "m": {}}, {"id": "c", "m": None}]
    (log,) = read_logs([write_lines(tmp_path / "t.jsonl", rows)], columns={"score": "m.acc"})
    assert log.n_unscored == 2


def test_a_benchmark_is_made_of_a_plain_table(tmp_path):
    lines = "".join(f'"{question}",{i % 2}\n' for i, question in enumerate(QUESTIONS))
    (tmp_path / "quay.csv").write_text(f"question,score\n{lines}", encoding="utf-8")
    out = tmp_path / "items.jsonl"
    done = contam_here("items", "--from-logs", tmp_path / "quay.csv", "--out", out)
    assert done.returncode == 0, done.stderr
    assert "6 items of a benchmark without a name" in done.stdout
    (benchmark,) = read_benchmarks([out])
    assert [item.question for item in benchmark.items] == list(QUESTIONS)
    assert len({item.item_id for item in benchmark.items}) == 6
    assert all(item.item_id != item.question for item in benchmark.items)


def test_columns_of_the_table_are_named_for_a_benchmark_too(tmp_path):
    path = write_lines(tmp_path / "t.jsonl", records())
    out = tmp_path / "items.jsonl"
    columns = ["score=metrics.acc", "id=doc.id", "question=doc.stem", "choices=doc.options"]
    done = contam_here("items", "--from-logs", path, "--out", out, "--columns", *columns)
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert rows[2] == {"id": "quay-2", "question": QUESTIONS[2], "choices": ["one", "two"]}
