"""Every benchmark format gives the same items and verdicts through the command."""

import json

import pytest

from contam.detect.report import load_report
from tests.index.builds import build
from tests.integration.inputs import (
    FILLER,
    contam_here,
    corpus_of,
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


def test_one_id_in_two_benchmarks_is_two_items(tmp_path):
    write_jsonl(tmp_path / "sets" / "one.jsonl", [{"id": "1", "question": PLANTED}])
    write_jsonl(tmp_path / "sets" / "two.jsonl", [{"id": "1", "question": OTHER}])
    corpus = corpus_of(tmp_path / "corpus", [FILLER + PLANTED])
    process = run_scan(corpus, tmp_path / "sets", tmp_path / "out", "--json")
    told = json.loads(process.stdout)
    assert told["counts"]["one"]["contam"]["contaminated"] == 1
    assert told["counts"]["two"]["contam"]["clean"] == 1


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
