"""`contam logs` and `contam items`, as a user calls them."""

from __future__ import annotations

import json

from tests.cli.processes import assert_one_line_error, contam_here
from tests.rescore.logs.small import QUESTIONS, TIME, lm_eval, write_lines


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
    assert "reports 0.9, its rows give 0.5" in done.stderr
    shown = json.loads(contam_here("logs", tmp_path, "--json").stdout)
    assert "reports 0.9" in shown["logs"][0]["problem"]


def test_columns_of_a_table_are_named_on_the_command_line(tmp_path):
    (tmp_path / "t.csv").write_text("n,good,bad\na,1,0\nb,1,1\n", encoding="utf-8")
    done = contam_here("logs", tmp_path / "t.csv", "--columns", "id=n", "score=good", "--json")
    assert json.loads(done.stdout)["logs"][0]["metrics"][0]["mean"] == 1.0


def test_a_folder_without_logs_is_one_line(tmp_path):
    assert_one_line_error(contam_here("logs", tmp_path), 1, "no logs of evaluations")


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
    assert_one_line_error(again, 1, "already exists")
    assert (
        contam_here("items", "--from-logs", tmp_path / "a", "--out", out, "--overwrite").returncode
        == 0
    )


def test_a_results_file_alone_says_what_is_missing(tmp_path):
    lm_eval(tmp_path, [1]).unlink()
    done = contam_here("logs", tmp_path / f"results_{TIME}.json")
    assert_one_line_error(done, 1, "only the means")
    assert "--log_samples" in done.stderr


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


def test_a_bad_log_that_was_named_is_listed_too(tmp_path):
    path = tmp_path / "run.jsonl"
    path.write_text("version https://git-lfs.github.com/spec/v1\nsize 3\n", encoding="utf-8")
    done = contam_here("logs", path)
    assert done.returncode == 4
    assert "is a Git LFS pointer" in done.stdout
