"""Shards that cannot be read: named, counted, and never the reason why an item is called clean."""

import gzip
import json
import re

import pyarrow.parquet as pq
import pytest

from contam.detect.report import load_report
from contam.detect.scan import scan
from tests.cli.processes import contam_here
from tests.index.builds import build
from tests.integration.inputs import (
    ABSENT,
    FILLER,
    QUESTION,
    corpus_of,
    labels,
    run_scan,
    verdict,
    write_items,
    write_jsonl,
)

SECOND = (
    "How many kites did the children of Vellmar fly above the salt marsh before the storm tore"
    " every last one of them away?"
)


@pytest.fixture
def items(tmp_path):
    return write_items(tmp_path / "items.jsonl", QUESTION, ABSENT, SECOND)


def no_footer(path):
    path.write_bytes(path.read_bytes()[:-9])


def half_a_file(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def nothing_left(path):
    path.write_bytes(b"")


def other_bytes(path):
    path.write_bytes(b"<html>503 Service Unavailable</html>")


def spoilt_page(path):
    raw = bytearray(path.read_bytes())
    at = raw.find(b"council")
    raw[at - 40 : at + 400] = b"\xff" * 440
    path.write_bytes(bytes(raw))


def half_a_gzip_member(path):
    path.unlink()
    lines = [json.dumps({"text": f"{FILLER} {SECOND} {n}"}) for n in range(4000)]
    raw = gzip.compress("\n".join(lines).encode())
    (path.parent / "part-1.jsonl.gz").write_bytes(raw[: len(raw) // 2])


def half_a_line(path):
    path.unlink()
    (path.parent / "part-1.jsonl").write_text(json.dumps({"text": SECOND}) + '\n{"text": "and th')


def no_text_column(path):
    path.unlink()
    write_jsonl(path.parent / "part-1.jsonl", [{"title": SECOND, "size": 3}])


def gone(path):
    path.unlink()
    path.symlink_to("nowhere.parquet")


DAMAGES = [
    no_footer, half_a_file, nothing_left, other_bytes, spoilt_page, half_a_gzip_member,
    half_a_line, no_text_column, gone,
]  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_an_unread_shard_beside_good_ones(tmp_path, items, damage):
    shards = [FILLER], [FILLER * 3, FILLER + SECOND], [FILLER + QUESTION]
    corpus = corpus_of(tmp_path / "corpus", *shards, compression="none", use_dictionary=False)
    damage(corpus / "part-1.parquet")
    out = tmp_path / "out"
    process = run_scan(corpus, items, out)
    assert process.returncode == 4, process.stderr
    assert "Traceback" not in process.stderr
    assert "NOT READ part-1." in process.stdout
    assert "--allow-missing" in process.stderr
    report = load_report(out)
    coverage = report.run["coverage"]
    assert (coverage["shards_expected"], coverage["shards_read"]) == (3, 2)
    assert not coverage["complete"]
    assert [one["shard"].split(".")[0] for one in coverage["shards_failed"]] == ["part-1"]
    found = labels(report)
    assert found["q0"] == "contaminated"
    assert "clean" not in found.values()
    absent = verdict(report, "q1")
    assert (absent.label, absent.score) == ("not_checkable", None)
    assert absent.reason == "1 of 3 shards unread"


def test_every_policy_says_not_checkable(tmp_path, items):
    corpus = corpus_of(tmp_path / "corpus", [FILLER], [FILLER])
    half_a_file(corpus / "part-0.parquet")
    result = scan(corpus, items, policies=["contam", "gpt3-test", "gpt4-50char", "decon-default"])
    assert {one.label for one in result} == {"not_checkable"}
    assert result.exit_code() == 4


def test_a_row_group_that_fails_late_keeps_what_the_others_gave(tmp_path, items):
    texts = [QUESTION, *[f"{FILLER} {n}" for n in range(20_000)], SECOND]
    corpus = corpus_of(tmp_path / "corpus", texts, row_group_size=5_000, compression="none")
    path = corpus / "part-0.parquet"
    last = pq.ParquetFile(path).metadata.row_group(3).column(1)
    raw = bytearray(path.read_bytes())
    start = last.dictionary_page_offset or last.data_page_offset
    raw[start : start + 200] = b"\xff" * 200
    path.write_bytes(bytes(raw))
    result = scan(corpus, items)
    assert labels(result)["q0"] in {"contaminated", "not_checkable"}
    assert "clean" not in labels(result).values()
    assert result.exit_code() == 4


def test_allow_missing_is_a_recorded_choice(tmp_path, items):
    corpus = corpus_of(tmp_path / "corpus", [FILLER + QUESTION], [FILLER])
    half_a_file(corpus / "part-1.parquet")
    process = run_scan(corpus, items, tmp_path / "out", "--allow-missing")
    assert process.returncode == 0
    assert "NOT READ part-1.parquet" in process.stdout
    report = load_report(tmp_path / "out")
    assert labels(report) == {"q0": "contaminated", "q1": "clean", "q2": "clean"}
    assert report.run["parameters"]["allow_missing"] is True
    assert report.run["coverage"]["complete"] is False


def test_skipped_files_that_may_be_text_are_named_first_and_always(tmp_path):
    corpus = corpus_of(tmp_path / "corpus", [FILLER])
    for name in (".a.crc", ".b.crc", "_SUCCESS", "a.lock", "deep/leak.txt"):
        (corpus / name).parent.mkdir(exist_ok=True)
        (corpus / name).write_text(QUESTION)
    sets = tmp_path / "sets"
    write_items(sets / "quiz.jsonl", QUESTION)
    (sets / "more.txt").write_text(QUESTION)
    process = run_scan(corpus, sets, tmp_path / "out", "-q")
    assert process.stderr == ""
    (line,) = [line for line in process.stdout.splitlines() if line.startswith("skipped")]
    assert re.findall(r"\d+|\S+\.txt", line)[:3] == ["6", "leak.txt", "more.txt"]
    assert line in contam_here("show", tmp_path / "out").stdout.splitlines()
    told = json.loads(run_scan(corpus, sets, tmp_path / "json", "--json").stdout)
    assert {file["path"].rsplit("/", 1)[1] for file in told["skipped_files"]} == {
        ".a.crc", ".b.crc", "_SUCCESS", "a.lock", "leak.txt", "more.txt",
    }  # fmt: skip
    assert all(file["reason"] for file in told["skipped_files"])


# --------------------------------------------------------------------------------------- benchmarks


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
