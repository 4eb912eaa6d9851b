"""Logs out again: in the shared form, and as a benchmark."""

from __future__ import annotations

import hashlib
import json
import re

import numpy as np
import pytest

from contam.benchmark.read_files import read_benchmarks
from contam.errors import LogError, OutputError
from contam.rescore.join import Joiner
from contam.rescore.logs import read_logs, self_check
from contam.rescore.logs.logged_items import benchmark_of, write_items
from tests.rescore.logs.small import QUESTIONS, items_table, lm_eval, write_every_eval, write_lines

CHOICES = ("0", "4", "B", "six")


def docs(n=4):
    return [
        {
            "question": QUESTIONS[i],
            "choices": [f"{c}{'' if c in 'B04' else i}" for c in CHOICES],
            "answer": i % 4,
        }
        for i in range(n)
    ]


def test_what_is_written_in_the_shared_form_reads_back_as_it_was(tmp_path):
    (log,) = read_logs([lm_eval(tmp_path / "in", [1, 0, 0.5, 1], docs=docs())])
    whole, rows = write_every_eval(log, tmp_path / "out")
    (back,) = read_logs([tmp_path / "out"])
    self_check(back)
    assert back.path == str(rows)
    assert (back.model, back.benchmark) == (log.model, log.benchmark)
    assert back.columns[0].score.tolist() == log.columns[0].score.tolist()
    assert back.columns[0].reported == log.columns[0].reported
    for item, other in zip(log.items, back.items, strict=True):
        assert (item.item_id, item.question, item.choices, item.answer, item.doc_hash) == (
            other.item_id,
            other.question,
            other.choices,
            other.answer,
            other.doc_hash,
        )
    again = write_every_eval(log, tmp_path / "again")
    assert [path.read_bytes() for path in again] == [whole.read_bytes(), rows.read_bytes()]


def test_the_clean_score_is_a_further_result_and_labels_stand_with_the_items(tmp_path):
    (log,) = read_logs([lm_eval(tmp_path / "in", [1, 0, 1, 1])])
    clean = np.array([True, True, False, True])
    labels = ["clean", "clean", "contaminated", None]
    whole, rows = write_every_eval(log, tmp_path / "out", labels=labels, clean=clean)
    results = json.loads(whole.read_bytes())["evaluation_results"]
    assert [result["score_details"]["score"] for result in results] == [0.75, pytest.approx(2 / 3)]
    assert results[1]["score_details"]["uncertainty"]["num_samples"] == 3
    assert results[1]["score_details"]["details"]["n_dropped"] == "1"
    metadata = [json.loads(line)["metadata"] for line in rows.read_text().splitlines()]
    assert [one.get("contam_label") for one in metadata] == labels
    assert all(isinstance(value, str) for one in metadata for value in one.values())
    promised = json.loads(whole.read_bytes())["detailed_evaluation_results"]
    assert promised["checksum"] == hashlib.sha256(rows.read_bytes()).hexdigest()
    self_check(read_logs([whole])[0])


def test_a_cut_instance_file_is_noticed_by_its_aggregate(tmp_path):
    (log,) = read_logs([lm_eval(tmp_path / "in", [1, 0, 1, 1])])
    whole, rows = write_every_eval(log, tmp_path / "out")
    lines = rows.read_text().splitlines(keepends=True)
    rows.write_text("".join(lines[:3]), encoding="utf-8")
    with pytest.raises(LogError, match="3 lines, its aggregate counts 4"):
        read_logs([rows])
    rows.write_text("".join([*lines[:3], lines[3].replace("1.0", "0.0")]), encoding="utf-8")
    with pytest.raises(LogError, match="checksum"):
        read_logs([rows])
    whole.unlink()
    rows.write_text("".join([*lines[:3], lines[0]]), encoding="utf-8")
    with pytest.raises(LogError, match="stands here again"):
        read_logs([rows])


def test_a_log_without_scores_per_item_is_not_written(tmp_path):
    path = lm_eval(tmp_path / "in", [None, None], reported=999, metrics=["bypass"], bypass=None)
    (log,) = read_logs([path])
    with pytest.raises(LogError, match="no score per item"):
        write_every_eval(log, tmp_path / "out")


def test_a_benchmark_made_of_logs_is_read_as_the_items_were(tmp_path):
    lm_eval(tmp_path / "a", [1, 0, 1, 1], docs=docs(), model="one")
    lm_eval(tmp_path / "b", [0, 0, 1, 1], docs=docs(), model="two")
    logs = read_logs([tmp_path])
    found = benchmark_of(logs)
    assert (len(found.rows), found.n_again, found.without) == (4, 4, ())
    write_items(found.rows, tmp_path / "lantern.jsonl")
    (benchmark,) = read_benchmarks([tmp_path / "lantern.jsonl"])
    assert benchmark.name == "lantern"
    for item, doc in zip(benchmark.items, docs(), strict=True):
        assert item.question == doc["question"]
        assert list(item.choices) == doc["choices"]
        assert item.answer == doc["choices"][doc["answer"]]
        assert item.answer_index == doc["answer"]
    for log in logs:
        joined = Joiner(items_table(benchmark.items)).join(log)
        assert joined.index.tolist() == [0, 1, 2, 3]
        assert joined.by["item"] == 4


def test_duplicates_inside_a_log_stay_items_of_the_benchmark(tmp_path):
    same = [docs()[0], docs()[0], docs()[1]]
    logs = read_logs([lm_eval(tmp_path, [1, 0, 1], docs=same)])
    assert len(benchmark_of(logs).rows) == 3


def test_one_id_with_two_texts_is_refused(tmp_path):
    lm_eval(tmp_path / "a", [1, 0], docs=docs(2))
    lm_eval(tmp_path / "b", [1, 0], docs=docs(2)[::-1], model="two")
    assert len(benchmark_of(read_logs([tmp_path])).rows) == 2
    lm_eval(tmp_path / "c", [1, 0], docs=docs(4)[2:], model="three")
    with pytest.raises(LogError, match="item 0 of lantern has another text"):
        benchmark_of(read_logs([tmp_path]))


def test_logs_without_items_make_no_benchmark(tmp_path):
    rows = [{"task_id": "T/1", "completion": "", "passed": True}]
    with pytest.raises(LogError, match="hold no items"):
        benchmark_of(read_logs([write_lines(tmp_path / "r.jsonl", rows)]))


def test_a_file_that_is_there_is_not_written_over(tmp_path):
    path = write_lines(tmp_path / "x.jsonl", [{"a": 1}])
    with pytest.raises(OutputError, match="already exists"):
        write_items([{"question": "q"}], path)
    write_items([{"question": "q"}], path, overwrite=True)
    assert json.loads(path.read_text()) == {"question": "q"}
    with pytest.raises(OutputError, match="cannot write"):
        write_items([], tmp_path / "none" / "x.jsonl")


def test_names_and_places_are_of_the_form_that_the_shared_schema_asks_for(tmp_path):
    (log,) = read_logs([lm_eval(tmp_path / "in", [1, 0], model="lab/team/tiny")])
    whole, rows = write_every_eval(log, tmp_path / "out")
    uuid = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
    assert re.fullmatch(uuid, whole.stem)
    document = json.loads(whole.read_bytes())
    path = document["detailed_evaluation_results"]["file_path"]
    assert path == f"data/lantern/lab_team/tiny/{rows.name}"
    assert document["model_info"]["developer"] == "lab/team"
    assert document["model_info"]["additional_details"]["log_sha256"] == log.digest
