"""Every benchmark format gives the same items and verdicts through the command."""

import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contam.detect.report import load_report
from tests.index.builds import build
from tests.integration.inputs import (
    FILLER,
    QUESTION,
    contam_here,
    corpus_of,
    labels,
    run_scan,
    write_jsonl,
)

PLANTED = "Which instrument did the ferryman of Oxmoor play for the geese at dusk?"
OTHER = "Which of these rivers does the painted barge of Saint Orla cross twice each harvest?"
CHOICES = ["a walnut fiddle", "a tin whistle", "a borrowed drum", "a cracked bell"]
ROWS = [
    {"id": "p", "question": PLANTED, "choices": CHOICES, "answer": "B"},
    {"id": "o", "question": OTHER, "choices": ["Ash", "Bourne", "Cam", "Dee"], "answer": "D"},
]


def mmlu(path):
    lines = [",".join([f'"{row["question"]}"', *row["choices"], row["answer"]]) for row in ROWS]
    path.write_text("\n".join(lines) + "\n")


def with_header(delimiter):
    def write(path):
        head = ["id", "question", "A", "B", "C", "D", "answer"]
        lines = [[row["id"], row["question"], *row["choices"], row["answer"]] for row in ROWS]
        path.write_text("\n".join(delimiter.join(cells) for cells in [head, *lines]) + "\n")

    return write


def jsonl_gz(path):
    lines = [json.dumps(row).encode() + b"\n" for row in ROWS]
    path.write_bytes(b"".join(map(gzip.compress, lines)))


def json_array(path):
    path.write_text(json.dumps(ROWS, indent=1))


def parquet(path):
    rows = [{**row, "answer": "ABCD".index(row["answer"])} for row in ROWS]
    pq.write_table(pa.Table.from_pylist(rows), path)


def decon(path):
    rows, number = [], 0
    for index, row in enumerate(ROWS):
        for letter, choice in zip("ABCD", row["choices"], strict=True):
            number += 1
            rows.append(
                {
                    "eval_key": "quiz", "eval_instance_index": index, "split": "test",
                    "question": row["question"], "answer": choice, "doc_id": number,
                    "is_correct": letter == row["answer"], "config": "all",
                    "fingerprint": f"{number:016x}",
                }
            )  # fmt: skip
    path.write_bytes(gzip.compress("".join(json.dumps(row) + "\n" for row in rows).encode()))


def saved_dataset(path):
    split = path / "test"
    split.mkdir(parents=True)
    (path / "dataset_dict.json").write_text(json.dumps({"splits": ["test"]}))
    table = pa.Table.from_pylist(ROWS)
    with pa.ipc.new_stream(split / "data-00000-of-00001.arrow", table.schema) as writer:
        writer.write_table(table)
    state = {"_data_files": [{"filename": "data-00000-of-00001.arrow"}], "_split": "test"}
    (split / "state.json").write_text(json.dumps(state))
    (split / "dataset_info.json").write_text("{}")


FORMS = {
    "mmlu.csv": mmlu,
    "quiz.csv": with_header(","),
    "quiz.tsv": with_header("\t"),
    "quiz.jsonl.gz": jsonl_gz,
    "quiz.json": json_array,
    "quiz.parquet": parquet,
    "decon-1.jsonl.gz": decon,
    "quiz_saved": saved_dataset,
}


@pytest.mark.parametrize("name", FORMS)
def test_every_form_gives_the_same_items_and_verdicts(tmp_path, name):
    FORMS[name](tmp_path / name)
    quiz = f"{FILLER}{PLANTED}\nA. {CHOICES[0]}\nB. {CHOICES[1]}\nC. {CHOICES[2]}\nD. {CHOICES[3]}"
    corpus = corpus_of(tmp_path / "corpus", [FILLER, f"{quiz}\nAnswer: B\n{FILLER}"])
    process = run_scan(corpus, tmp_path / name, tmp_path / "out")
    assert process.returncode == 0, process.stderr
    report = load_report(tmp_path / "out")
    by_question = {row["question"]: row for row in report.items.to_pylist()}
    assert list(by_question) in ([PLANTED, OTHER], [OTHER, PLANTED])
    planted = by_question[PLANTED]
    assert planted["choices"] == CHOICES
    assert planted["answer"] == "a tin whistle"
    found = labels(report)
    assert found[planted["item_id"]] == "contaminated"
    assert found[by_question[OTHER]["item_id"]] == "clean"
    (best,) = [one for one in report if one.item_id == planted["item_id"]]
    assert (best.exposure, best.best_row) == ("question+answer", 1)
    if name.startswith(("quiz_saved", "decon")):
        assert best.split == "test"


def test_fields_can_be_mapped(tmp_path):
    path = write_jsonl(tmp_path / "odd.jsonl", [{"key": 7, "riddle": QUESTION, "reply": "nine"}])
    corpus = corpus_of(tmp_path / "corpus", [FILLER + QUESTION])
    process = run_scan(
        corpus, path, tmp_path / "out", "--map", "question=riddle,answer=reply,id=key"
    )
    assert process.returncode == 0, process.stderr
    assert labels(load_report(tmp_path / "out")) == {"7": "contaminated"}


def test_one_id_in_two_benchmarks_is_two_items(tmp_path):
    write_jsonl(tmp_path / "sets" / "one.jsonl", [{"id": "1", "question": PLANTED}])
    write_jsonl(tmp_path / "sets" / "two.jsonl", [{"id": "1", "question": OTHER}])
    corpus = corpus_of(tmp_path / "corpus", [FILLER + PLANTED])
    process = run_scan(corpus, tmp_path / "sets", tmp_path / "out", "--json")
    told = json.loads(process.stdout)
    assert told["counts"]["one"]["contam"]["contaminated"] == 1
    assert told["counts"]["two"]["contam"]["clean"] == 1


def test_rows_that_are_no_items_are_counted_and_listed(tmp_path):
    rows = [*ROWS, {"id": "e", "question": "  "}, ROWS[0]]
    path = write_jsonl(tmp_path / "quiz.jsonl", rows)
    corpus = corpus_of(tmp_path / "corpus", [FILLER])
    process = run_scan(corpus, path, tmp_path / "out")
    assert process.returncode == 0, process.stderr
    line = "quiz: 2 of 4 rows skipped (1 empty question, 1 repeated item)"
    assert line in process.stdout.splitlines()
    assert "quiz.jsonl" not in process.stderr
    run = load_report(tmp_path / "out").run
    assert [note.split("quiz.jsonl:", 1)[1] for note in run["notes"]] == [
        "3: empty question", f"4: repeats item 'p' of {path}:1"
    ]  # fmt: skip
    (source,) = run["inputs"]["benchmarks"]
    assert (source["n_items"], source["n_skipped"]) == (2, 2)
    assert source["skipped"] == {"empty question": 1, "repeated item": 1}
    assert line in contam_here("show", tmp_path / "out").stdout.splitlines()


@pytest.mark.parametrize("command", ["scan", "query"])
@pytest.mark.parametrize("quiet", [(), ("-q",)])
def test_half_a_benchmark_that_was_skipped_is_said_once(tmp_path, command, quiet):
    """Of thousands of rows without a question each would else be a note, or, with -q, none."""
    rows = [{"id": f"q{n}", "question": f"{n} {PLANTED}" if n % 2 else ""} for n in range(12)]
    path = write_jsonl(tmp_path / "half.jsonl", rows)
    write_jsonl(tmp_path / "whole.jsonl", ROWS)
    corpus = corpus_of(tmp_path / "corpus", [FILLER])
    if command == "query":
        build(corpus, tmp_path / "ix")
    where = ("--corpus", corpus) if command == "scan" else ("--index", tmp_path / "ix")
    call = (command, *where, "--benchmark", path, tmp_path / "whole.jsonl", *quiet, "--out")
    done = contam_here(*call, tmp_path / "out")
    said = [line for line in done.stdout.splitlines() if "skipped" in line]
    assert said == ["half: 6 of 12 rows skipped (empty question)"]
    assert "skipped" not in done.stderr
    told = json.loads(contam_here(*call, tmp_path / "json", "--json").stdout)
    assert told["skipped_rows"] == {
        "half": {"n_skipped": 6, "n_rows": 12, "reasons": {"empty question": 6}}
    }
    assert sum("empty question" in note for note in load_report(tmp_path / "out").run["notes"]) == 6


def test_rows_of_another_split_are_counted(tmp_path):
    rows = [{**row, "split": "train" if n else "test"} for n, row in enumerate(ROWS)]
    path = write_jsonl(tmp_path / "quiz.jsonl", rows)
    corpus = corpus_of(tmp_path / "corpus", [FILLER])
    process = run_scan(corpus, path, tmp_path / "out", "--split", "test", "-q")
    assert "quiz: 1 of 2 rows skipped (another split)" in process.stdout.splitlines()
