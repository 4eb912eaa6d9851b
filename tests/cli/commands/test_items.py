"""`contam items`: how a benchmark is read, shown before any scan."""

import json

import pytest

from tests.cli.processes import assert_one_line_error, contam_here
from tests.rescore.logs.small import write_lines

ROWS = [
    {
        "id": f"q{at}",
        "question": f"Why does lantern number {at} of the {word} jetty burn green at night?",
        "choices": ["copper in the wick", "a cat"],
        "answer": 0,
        "split": "dev" if at < 3 else "test",
    }
    for at, word in enumerate(
        ["northern", "southern", "western", "eastern", "lower", "upper", "outer", "inner"]
    )
]


def test_parts_counts_and_five_items_are_shown(tmp_path):
    path = write_lines(tmp_path / "lanterns.jsonl", [*ROWS, {"id": "q8", "question": ""}])
    done = contam_here("items", path)
    assert done.returncode == 0, done.stderr
    assert "lanterns: 8 items of 9 rows" in done.stdout
    assert "1 row: empty question" in done.stdout
    assert "dev 3, test 5" in done.stdout
    assert [line for line in done.stdout.splitlines() if line.startswith("q")] == [
        "q0", "q1", "q3", "q5", "q7",
    ]  # fmt: skip
    assert "copper in the wick | a cat" in done.stdout


def test_json_has_all_of_it(tmp_path):
    path = write_lines(tmp_path / "lanterns.jsonl", ROWS)
    found = json.loads(contam_here("items", path, "--split", "test", "--json").stdout)
    (one,) = found["benchmarks"]
    assert one["n_items"] == 5
    assert one["splits"] == {"test": 5}
    assert one["skipped"] == {"another split": 3}
    assert one["fields"]["question"] == ["question"]
    assert (one["unread"], one["left_out"], one["incomplete"]) == ({}, [], {})
    assert one["items"][0]["question"] == ROWS[3]["question"]
    assert one["sources"][0]["n_rows"] == 8


def test_an_item_that_is_never_clean_is_not_strict(tmp_path):
    rows = [
        {**row, "incomplete": "its map is a picture" if row["id"] == "q4" else ""} for row in ROWS
    ]
    path = write_lines(tmp_path / "lanterns.jsonl", rows)
    for flags, code in (((), 0), (("--strict",), 4), (("--strict", "--json"), 4)):
        done = contam_here("items", path, "--map", "incomplete=incomplete", *flags)
        assert done.returncode == code, done.stderr
        assert "its map is a picture" in done.stdout


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ((), "BENCHMARK"),
        (("{}", "--from-logs", "{}"), "BENCHMARK"),
        (("--from-logs", "{}", "--strict"), "--strict"),
        (("--from-logs", "{}"), "--out"),
        (("{}", "--out", "x.jsonl"), "--out"),
    ],
)
def test_what_does_not_go_together_is_refused(tmp_path, given, named):
    path = write_lines(tmp_path / "lanterns.jsonl", ROWS)
    done = contam_here("items", *(word.format(path) for word in given))
    assert_one_line_error(done, 2, named)
