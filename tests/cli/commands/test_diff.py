"""`contam diff`: whose label changed from one result to the next, and why."""

import datetime as dt
import json
import shutil

import pytest

import contam
from contam.detect.accepted import AcceptedRow, Seen, add_accepted
from contam.detect.changes import Side, compare
from contam.detect.report import RUN_FILE, load_report, write_report
from tests.cli.processes import assert_one_line_error, contam_here


@pytest.fixture(scope="module")
def results(bench_fixtures, tmp_path_factory):
    """Results of the fixtures: of two shards, and of all."""
    home = tmp_path_factory.mktemp("diff")
    shards = sorted((bench_fixtures / "corpus").glob("*.parquet"))[:2]
    for name, corpus in (("fewer", shards), ("all", bench_fixtures / "corpus")):
        write_report(contam.scan(corpus, bench_fixtures / "items"), home / name)
    return home


@pytest.fixture
def folder(results, tmp_path):
    """A copy of the result of all, to change."""
    return shutil.copytree(results / "all", tmp_path / "copy")


def diff(*words):
    done = contam_here("diff", *words, "--json")
    return json.loads(done.stdout), done.returncode


def labels(folder):
    return {(verdict.benchmark, verdict.item_id): verdict.label for verdict in load_report(folder)}


def test_every_label_that_changed_is_told_with_the_shards_it_came_from(results):
    before, after = (labels(results / name) for name in ("fewer", "all"))
    there, code = diff(results / "fewer", results / "all")
    assert code == 0
    told = {(one["benchmark"], one["item_id"]): one for one in there["items"]}
    assert {key: (one["before"], one["after"]) for key, one in told.items()} == {
        key: (before[key], after[key]) for key in before if before[key] != after[key]
    }
    assert {one["of"] for one in there["shards"]} == {
        "archive/part-003.parquet",
        "part-002.parquet",
    }
    assert all(".parquet" in one["why"] for one in told.values())
    back, _ = diff(results / "all", results / "fewer")
    assert back["counts"]["cleared"] == there["counts"]["newly_flagged"] > 0
    assert diff(results / "all", results / "all")[0]["items"] == []


def test_what_is_newly_flagged_fails_only_where_nobody_accepted_it(results, tmp_path):
    both = (results / "fewer", results / "all", "--fail-on-flagged")
    assert diff(*both)[1] == 3
    seen = Seen(load_report(results / "all"), {"brook_math", "lantern_quiz", "tinker_code"})
    rows = [
        AcceptedRow(
            *item, "", "contam", "harmless", "me", dt.date.max, seen.digest([item], "", "contam")
        )
        for item in seen.flags
    ]
    add_accepted(tmp_path / "accepted.csv", rows)
    assert diff(*both, "--accept", tmp_path / "accepted.csv")[1] == 0


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("normaliser", "word-0"),
        ("policy_definitions", {"contam": {"version": "0", "fingerprint": "0123"}}),
    ],
)
def test_what_cannot_be_compared_is_said_first_and_fails(results, folder, part, value):
    run = json.loads((folder / RUN_FILE).read_text())
    run["parameters"][part] = value
    (folder / RUN_FILE).write_text(json.dumps(run))
    done = contam_here("diff", folder, results / "all", "--fail-on-flagged")
    assert done.stdout.startswith("NOT COMPARABLE: ")
    assert done.returncode == 3


def test_an_item_with_another_text_is_a_new_one(results, bench_fixtures, tmp_path):
    items = tmp_path / "brook_math.jsonl"
    lines = (bench_fixtures / "items" / items.name).read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    rows[3]["question"] += " How many miles is that?"
    items.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    result = contam.scan(bench_fixtures / "corpus", items)
    after = load_report(write_report(result, tmp_path / "out"))
    found = compare(Side.of(load_report(results / "all")), Side.of(after))
    assert found.n_items_changed == 1
    assert {one.benchmark for one in found.items if one.change == "removed"} == {
        "lantern_quiz",
        "tinker_code",
    }


def test_a_pack_is_not_compared_with_a_result(results, tmp_path):
    (tmp_path / "report.json").write_text("{}")
    assert_one_line_error(contam_here("diff", results / "all", tmp_path), 2, "pack")
