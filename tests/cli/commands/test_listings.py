"""`contam policies`, `sql`, `logs` and `items --from-logs`, as a user calls them."""

import json

import pyarrow.parquet as pq
import pytest

from contam.detect.policies.policy import list_policies
from contam.detect.report import write_report
from contam.detect.scan import scan
from tests.cli.processes import assert_one_line_error, contam_here
from tests.rescore.logs.small import QUESTIONS, lm_eval, write_lines


def test_every_policy_is_listed_and_second_hand_ones_say_approximate():
    text = contam_here("policies").stdout
    for spec in list_policies(optional=True):
        (line,) = (line for line in text.splitlines() if line.split(" ")[0] == spec.id)
        assert spec.unit in line
    assert "approximate" in text


def test_json_lists_the_specs_in_full():
    told = json.loads(contam_here("policies", "--json").stdout)
    assert [spec["id"] for spec in told] == [spec.id for spec in list_policies(optional=True)]
    assert all(len(spec["fingerprint"]) == 16 for spec in told)


def test_one_policy_is_described():
    text = contam_here("policies", "lmeval-13").stdout
    for word in ("lmeval-13, version", "source", "13", "too short"):
        assert word in text
    assert json.loads(contam_here("policies", "lmeval-13", "--json").stdout)["id"] == "lmeval-13"


QUESTION = "How many copper kettles does the lighthouse keeper polish before the third bell?"


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    """A result whose corpus is gone."""
    folder = tmp_path_factory.mktemp("sql")
    corpus = folder / "corpus.jsonl"
    corpus.write_text(json.dumps({"text": QUESTION}) + "\n")
    items = folder / "kettles.jsonl"
    items.write_text(json.dumps({"id": "k1", "question": QUESTION}) + "\n")
    write_report(scan(corpus, items, workers=1), folder / "out")
    corpus.unlink()
    return folder / "out"


def test_the_tables_of_a_result_are_views(result):
    query = "select label, shard from verdicts join evidence using (benchmark, split, item_id)"
    process = contam_here("sql", result, query)
    assert process.returncode == 0, process.stderr
    assert process.stdout.split()[-4:] == ["contaminated", "corpus.jsonl", "1", "row"]


@pytest.mark.parametrize("query", ["select nonsense from verdicts", "selec", "from verdict"])
def test_a_wrong_query_says_what_there_is(result, query):
    assert_one_line_error(contam_here("sql", result, query), 2, "verdicts", "evidence", "items")


def test_an_answer_is_written_by_copy(result, tmp_path):
    out = tmp_path / "a.parquet"
    done = contam_here("sql", result, f"copy verdicts to '{out}'")
    assert done.returncode == 0, done.stderr
    assert pq.read_table(out).column("label").to_pylist() == ["contaminated"]


def test_the_documents_of_the_evidence_are_a_view(result):
    assert "documents" in contam_here("sql", result, "show tables").stdout.split()
    query = "select sum(n_items) from documents"
    pairs = "select count(distinct (benchmark, split, item_id, shard, row)) from evidence"
    told = [contam_here("sql", result, asked).stdout for asked in (query, pairs)]
    assert told[0].split()[-3] == told[1].split()[-3]


def test_text_cannot_steer_the_terminal(result):
    shown = contam_here("sql", result, "select chr(27) || '[31m' as x").stdout
    assert "\x1b" not in shown
    assert "<U+001B>[31m" in shown


def test_logs_are_listed_with_what_they_join_by(tmp_path):
    lm_eval(tmp_path, [1, 0, 1, 1])
    done = contam_here("logs", tmp_path)
    assert done.returncode == 0, done.stderr
    for word in ("lm-eval", "org/tiny", "lantern", "acc,none", "0.7500", "question"):
        assert word in done.stdout


def test_json_says_all_of_it(tmp_path):
    lm_eval(tmp_path / "a", [1, 0, 1, 1])
    write_lines(tmp_path / "notes.txt", [{"not": "a log"}])
    done = contam_here("logs", tmp_path, "--json")
    found = json.loads(done.stdout)
    (log,) = found["logs"]
    assert log["items"] == 4
    assert log["joins_by"] == "question"
    assert log["metrics"][0]["mean"] == log["metrics"][0]["reported"] == 0.75
    assert log["problem"] is None
    assert [one["path"] for one in found["skipped"]] == [str(tmp_path / "notes.txt")]


def test_a_log_that_contradicts_its_tool_is_listed_and_fails(tmp_path):
    lm_eval(tmp_path, [1, 0], reported=0.9)
    done = contam_here("logs", tmp_path)
    assert "0.9000" in done.stdout
    assert done.returncode == 1
    assert {"0.9,", "0.5"} <= {*done.stderr.split()}
    shown = json.loads(contam_here("logs", tmp_path, "--json").stdout)
    assert "0.9" in shown["logs"][0]["problem"]


def test_items_come_out_of_logs(tmp_path):
    lm_eval(tmp_path / "a", [1, 0, 1])
    lm_eval(tmp_path / "b", [1, 1, 1], model="other")
    out = tmp_path / "lantern.jsonl"
    done = contam_here("items", "--from-logs", tmp_path / "a", tmp_path / "b", "--out", out)
    assert done.returncode == 0, done.stderr
    assert "3 items of lantern; 3 more times" in done.stdout
    assert [json.loads(line)["question"] for line in out.read_text().splitlines()] == list(
        QUESTIONS[:3]
    )
    again = contam_here("items", "--from-logs", tmp_path / "a", "--out", out)
    assert_one_line_error(again, 1, str(out))
    assert (
        contam_here("items", "--from-logs", tmp_path / "a", "--out", out, "--overwrite").returncode
        == 0
    )


def test_a_bad_log_is_listed_with_its_reason_and_the_others_are_read(tmp_path):
    lm_eval(tmp_path / "good", [1, 0, 1, 1])
    cut = lm_eval(tmp_path / "cut", [1, 0, 1, 0], model="org/other")
    cut.write_text(cut.read_text(encoding="utf-8")[:-30], encoding="utf-8")
    cancelled = tmp_path / "cancelled.json"
    cancelled.write_text(
        json.dumps({"status": "cancelled", "eval": {}, "plan": {}}), encoding="utf-8"
    )
    done = contam_here("logs", tmp_path)
    assert done.returncode == 4
    assert "0.7500" in done.stdout
    assert f"bad log: {cancelled}" in " ".join(done.stdout.split())
    assert "status 'cancelled'" in " ".join(done.stdout.split())
    assert "--skip-damaged" in done.stderr
    found = json.loads(contam_here("logs", tmp_path, "--json").stdout)
    assert len(found["logs"]) == 1
    assert [one["path"] for one in found["damaged"]] == [str(cancelled), str(cut)]
    assert "not valid JSON" in found["damaged"][1]["reason"]
