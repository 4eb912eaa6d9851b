"""Benchmarks by name: what an entry says is how its rows are read, and files are known by theirs."""

import json
import re

import pytest

from contam.benchmark.catalogue import entries, find
from contam.benchmark.named import asked_for, gated_among
from contam.benchmark.read_files import read_benchmarks
from contam.errors import BenchmarkError
from tests.catalogue_rows import parts_of, rows_of


def write_rows(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def parts_read(benchmark):
    return [
        {
            name: value
            for name in ("question", "passage", "choices", "answer")
            if (value := getattr(item, name)) is not None or name == "answer"
        }
        for item in benchmark.items
    ]


def test_entries_say_what_they_must():
    names = [name for entry in entries().values() for name in (entry.name, *entry.aliases)]
    assert len(set(names)) == len(names) >= 300
    for entry in entries().values():
        assert entry.splits, entry.name
        assert entry.question, entry.name
        assert re.fullmatch(r"(20[012]\d-(0[1-9]|1[012]))?", entry.released), entry.name
        assert bool(entry.files) == (entry.revision == "main"), entry.name
        assert entry.first is None or entry.choices, entry.name


@pytest.mark.parametrize("name", entries())
def test_the_rows_of_an_entry_are_read_by_it(name, tmp_path):
    entry = entries()[name]
    path = write_rows(tmp_path / "copy.jsonl", rows_of(entry))
    (found,) = read_benchmarks([f"{name}={path}"])
    assert found.name == name
    assert found.sources[0].entry == name
    read = parts_read(found)
    for own, wanted in zip(read, parts_of(entry), strict=True):
        assert {part: own.get(part) for part in wanted} == wanted
    if entry.id:
        assert [item.item_id for item in found.items] == [f"{name}-{at}" for at in range(len(read))]


@pytest.mark.parametrize(("name", "is_part"), [("mbpp_pro", False), ("gsm8k", True)])
def test_an_entry_may_say_that_nothing_else_is_part_of_an_item(tmp_path, name, is_part):
    rows = [
        {**row, "raw_problem": " ".join(f"word {at} of wording {n}" for at in range(200))}
        for n, row in enumerate(rows_of(find(name)))
    ]
    path = write_rows(tmp_path / "rows.jsonl", rows)
    (found,) = read_benchmarks([f"{name}={path}"])
    for item in found.items:
        assert ("of wording" in f"{item.passage} {item.question}") == is_part
    assert {item.incomplete for item in found.items} == {""}


def test_names_are_found_by_alias_data_set_and_spelling():
    assert find("GSM8K") is find("openai/gsm8k") is find("gsm8k")
    assert find("hendrycks_test") is find("mmlu")
    assert find("ARC-Challenge") is find("arc_c") is find("arc_challenge")
    assert find("allenai/ai2_arc") is None
    assert find("no such benchmark") is None


def test_all_is_every_entry_that_is_not_gated():
    asked = asked_for(["all"])
    assert set(asked.gated) == {name for name, entry in entries().items() if entry.gated}
    assert {one.entry.name for one in asked.named} == entries().keys() - set(asked.gated)
    assert gated_among(["gpqa,gsm8k", "x.jsonl"]) == ["gpqa_main"]


def test_an_unknown_name_is_told_with_what_is_close(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BenchmarkError) as caught:
        read_benchmarks(["gsm8kk"])
    assert "gsm8k" in caught.value.hint
    with pytest.raises(BenchmarkError, match="mmmlux"):
        read_benchmarks(["gsm8k,mmmlux"])


ROW = {"narrative": "The keeper left.", "question": "Who left the lantern on the pier at night?",
       "choices": "['the keeper', 'the child']", "answer_index": 0, "answer_choice": "the keeper"}  # fmt: skip


def test_a_file_is_read_by_an_entry_if_name_and_columns_say_so(tmp_path):
    named = write_rows(tmp_path / "musr.jsonl", [ROW])
    folder = write_rows(tmp_path / "MuSR" / "murder_mysteries.jsonl", [ROW])
    other = write_rows(tmp_path / "mystery.jsonl", [ROW])
    for path in (named, folder):
        (found,) = read_benchmarks([path])
        assert found.sources[0].entry == "musr"
        assert found.items[0].question.startswith("The keeper left.")
    assert read_benchmarks([other])[0].sources[0].entry == ""
    assert read_benchmarks([named], mapping={"question": "question"})[0].sources[0].entry == ""
    lacking = write_rows(tmp_path / "in" / "musr.jsonl", [{"question": ROW["question"]}])
    assert read_benchmarks([lacking])[0].sources[0].entry == ""


def test_rows_of_another_kind_in_a_known_file_are_read_all_the_same(tmp_path):
    other = {"prompt": "Which of the four lanterns went out first?", "completion": "the last"}
    for rows in ([ROW, other], [other, ROW]):
        (found,) = read_benchmarks([write_rows(tmp_path / "musr.jsonl", rows)])
        questions = {item.question for item in found.items}
        assert any(one.startswith("The keeper left.") for one in questions)
        assert other["prompt"] in questions
        with pytest.raises(BenchmarkError):
            read_benchmarks([f"musr={tmp_path / 'musr.jsonl'}"])


def test_a_file_that_two_entries_read_in_different_ways_is_read_by_none(tmp_path):
    """Both `mbpp` and `mbpp_sanitized` are of the data set mbpp."""
    row = {
        "text": "Write a lantern counter.",
        "prompt": "Count lanterns.",
        "code": "x",
        "task_id": 1,
    }
    path = write_rows(tmp_path / "google" / "mbpp" / "rows.jsonl", [row])
    assert read_benchmarks([path])[0].sources[0].entry == ""


def test_a_copy_gives_the_splits_of_the_entry(tmp_path):
    for part in ("train", "test"):
        rows = [
            {"question": f"Of {part}: how high is tide {n}?", "answer": f"{n}"} for n in range(3)
        ]
        write_rows(tmp_path / "copy" / "main" / f"{part}.jsonl", rows)
        write_rows(tmp_path / "copy" / "socratic" / f"{part}.jsonl", rows)
    (found,) = read_benchmarks([f"gsm8k={tmp_path / 'copy'}"])
    assert [(item.split, item.question[:8]) for item in found.items] == [("test", "Of test:")] * 3
    assert any("train" in row.reason for row in found.skipped)
    (train,) = read_benchmarks([f"gsm8k={tmp_path / 'copy'}"], split="train")
    assert {item.split for item in train.items} == {"train"}
    with pytest.raises(BenchmarkError, match="split"):
        read_benchmarks([f"gsm8k={tmp_path / 'copy'}"], split="dev")


def test_a_copy_without_the_fields_is_refused_with_both(tmp_path):
    path = write_rows(
        tmp_path / "copy.jsonl", [{"problem": "How high is tide 3?", "answer": "2 m"}]
    )
    with pytest.raises(BenchmarkError) as caught:
        read_benchmarks([f"gsm8k={path}"])
    told = f"{caught.value.message} {caught.value.hint}"
    assert "problem" in told
    assert "question=question" in told


def test_two_sources_of_one_name_are_refused(tmp_path):
    path = write_rows(
        tmp_path / "gsm8k.jsonl", [{"question": "How high is tide 3?", "answer": "2"}]
    )
    with pytest.raises(BenchmarkError, match="gsm8k"):
        read_benchmarks([f"gsm8k={path}", path])


@pytest.mark.labelled
@pytest.mark.parametrize(
    ("name", "file", "n_items"),
    [("gsm8k", "gsm8k_test_300.jsonl", 300), ("humaneval", "HumanEval.jsonl.gz", 164)],
)
def test_real_rows_are_read_by_their_entries(shared, name, file, n_items):
    (found,) = read_benchmarks([f"{name}={shared / 'eval-logs' / 'benchmarks' / file}"])
    assert len(found.items) == n_items
    assert all(item.question and item.answer and not item.incomplete for item in found.items)
    assert find(name).seen
