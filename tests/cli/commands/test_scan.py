import json
import re
import signal
import subprocess

import pytest

from contam.detect.report import load_report
from tests.cli.processes import assert_one_line_error, command, contam, contam_here, environment
from tests.waiting import HANG_S

CALL = ("scan", "--corpus", "a", "b", "--benchmark", "c", "--out")


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_a_finished_scan_prints_the_verdict_table_and_where_the_evidence_is(tmp_path):
    process = contam_here(*CALL, tmp_path / "out", canned=True)
    assert process.returncode == 0
    lines = process.stdout.splitlines()
    assert re.split(r"\s{2,}", lines[0].strip()) == [
        "benchmark", "policy", "items", "contaminated", "suspect", "clean", "not checkable", "flagged",
    ]  # fmt: skip
    assert re.split(r"\s{2,}", lines[4].strip()) == [
        "quiz",
        "contam",
        "2",
        "1",
        "0",
        "1",
        "0",
        "50.0 %",
    ]
    assert "read 12 of 12 shards, 1,234 documents, 5.6 MB of text" in lines
    assert "among them 2 without a text" in lines
    assert f"contam show {tmp_path / 'out'}" in process.stdout
    assert "\x1b" not in process.stdout + process.stderr
    assert len(load_report(tmp_path / "out")) == 6


def test_json_is_one_document_on_stdout(tmp_path):
    process = contam_here(*CALL, tmp_path / "out", "--json", canned=True)
    told = json.loads(process.stdout)
    assert told["exit_code"] == 0
    assert told["counts"]["quiz"]["contam"]["contaminated"] == 1
    assert [v["item_id"] for v in told["flagged"]] == ["q9", "q9"]
    assert told["coverage"]["shards_read"] == 12


def test_every_option_reaches_the_library(tmp_path):
    call = tmp_path / "call.json"
    contam_here(
        "scan", "--corpus", "a", "b", "--corpus=d", "--benchmark", "c", "--out", tmp_path / "out",
        "--policy", "contam,gpt3-test", "palm-70", "--unit", "char", "--workers", "3",
        "--text", "meta.text", "--map", "question=prompt,answer=x", "--name", "n", "--split", "s",
        "--no-text", "--allow-missing", "--max-evidence", "7", "--seed", "4", "--min-run", "9",
        "--id-column", "key", "--date-column", "day", "--exclude", "x*", "y", "--parts", "p",
        "--ignore", "rubric", "notes", "--every-hit", "--include-path", "tasks",
        "--lines", "--source-column", "subset",
        canned=True, CANNED_CALL=str(call),
    )  # fmt: skip
    assert json.loads(call.read_text()) == {
        "columns": {"id": "key", "date": "day", "source": "subset"}, "lines": True, "exclude": ["x*", "y"],
        "corpus": ["a", "b", "d"], "benchmark": ["c"],
        "policies": ["contam", "gpt3-test", "palm-70"], "unit": "char", "workers": 3,
        "text": "meta.text", "mapping": {"question": "prompt", "answer": "x"}, "name": "n",
        "split": "s", "keep_text": False, "allow_missing": True, "max_evidence": 7, "seed": 4,
        "min_run": 9, "parts": "p", "ignore": ["rubric", "notes"],
        "every_hit": True, "include_path": ["tasks"],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("mode", "options", "code"),
    [
        ("", [], 0),
        ("", ["--fail-on-flagged"], 3),
        ("clean", ["--fail-on-flagged"], 0),
        ("incomplete", [], 4),
        ("incomplete", ["--fail-on-flagged"], 4),
        ("incomplete", ["--allow-missing"], 0),
        ("incomplete", ["--allow-missing", "--fail-on-flagged"], 3),
    ],
)
def test_exit_codes(tmp_path, mode, options, code):
    process = contam_here(*CALL, tmp_path / "out", *options, canned=True, CANNED=mode)
    assert process.returncode == code
    # An incomplete answer is written all the same: it says what it covers.
    assert load_report(tmp_path / "out").run["coverage"]["complete"] == (mode != "incomplete")
    if mode == "incomplete":
        assert "NOT READ b.parquet: no footer" in process.stdout
    assert ("not_checkable" in process.stderr) == (code == 4)
    assert ("corpus" in process.stderr) == (mode == "incomplete")


def test_the_process_ends_with_the_exit_code(tmp_path):
    mode, option, code = "incomplete", "--fail-on-flagged", 4
    assert contam(*CALL, tmp_path / "out", option, canned=True, CANNED=mode).returncode == code


def test_a_second_run_refuses_before_it_reads_anything(tmp_path):
    contam_here(*CALL, tmp_path / "out", canned=True)
    before = (tmp_path / "out" / "run.json").stat().st_mtime_ns
    call = tmp_path / "call.json"
    process = contam_here(*CALL, tmp_path / "out", canned=True, CANNED_CALL=str(call))
    assert_one_line_error(process, 1, "--overwrite")
    assert not call.exists()
    assert (tmp_path / "out" / "run.json").stat().st_mtime_ns == before
    assert contam_here(*CALL, tmp_path / "out", "--overwrite", canned=True).returncode == 0


def test_results_are_not_put_where_the_next_run_reads_the_corpus(tmp_path):
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    for out in (corpus, corpus / "deep" / "out", tmp_path / "corpus" / ".." / "corpus" / "x"):
        process = contam_here("scan", "--corpus", corpus, "--benchmark", "b", "--out", out)
        assert_one_line_error(process, 2, "--out", str(corpus))
    assert files(tmp_path) == []
    assert (
        contam_here(
            "scan",
            "--corpus",
            corpus,
            "--benchmark",
            "b",
            "--out",
            tmp_path / "corpus-out",
            canned=True,
        ).returncode
        == 0
    )


@pytest.mark.parametrize("out", ["/dev/null/x", "/proc/x", "/dev/null"])
def test_an_output_that_cannot_be_written_is_known_before_any_work(tmp_path, out):
    call = tmp_path / "call.json"
    process = contam_here(*CALL, out, canned=True, CANNED_CALL=str(call))
    assert_one_line_error(process, 1, out)
    assert not call.exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_in_the_middle_leaves_nothing_and_keeps_the_old_result(tmp_path, number, code):
    contam_here(*CALL, tmp_path / "deep" / "old", canned=True)
    before = files(tmp_path)
    for out in ("deep/old", "new/deeper"):
        with subprocess.Popen(
            # Under nohup, as some runners are, the process would inherit that SIGHUP is ignored.
            [
                *("env", "--default-signal"),
                *command(*CALL, tmp_path / out, "--overwrite", "--quiet", canned=True),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(CANNED="wait"),
        ) as process:
            assert process.stdout.readline() == "ready\n"
            process.send_signal(number)
            assert process.wait(HANG_S) == code
            assert len(process.stderr.read().splitlines()) == 1
    assert files(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == ["deep"]


@pytest.mark.slow
def test_a_run_under_nohup_outlives_its_terminal(tmp_path):
    with subprocess.Popen(
        ["nohup", *command(*CALL, tmp_path / "out", "--quiet", canned=True)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(CANNED="wait"),
    ) as process:
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGHUP)
        # The first of the two that is not ignored ends it.
        process.send_signal(signal.SIGTERM)
        assert process.wait(HANG_S) == 143
    assert files(tmp_path) == []


def test_more_workers_than_parts_are_told_that_fewer_are_enough(bench_fixtures, tmp_path):
    call = ("scan", "--corpus", bench_fixtures / "corpus", "--benchmark", bench_fixtures / "items")
    parts = ("--parts", tmp_path / "parts")
    assert "one worker" in contam_here(*call, *parts, "--shard", "5/9").stderr
    assert "worker" not in contam_here(*call, *parts, "--shard", "1/1").stderr
    assert "worker" not in contam_here(*call, *parts, "--shard", "2/9", "--quiet").stderr
