"""What is no regular file is refused by name; nobody waits for somebody to write into a pipe.

A test that would wait is ended by an alarm.
"""

import os
import signal
import socket
import subprocess
import sys

import pytest

from contam.benchmark.read_files import read_benchmarks
from contam.corpus.shards import shard_digest, survey
from contam.detect.report import load_report
from contam.errors import (
    BenchmarkError,
    ContamError,
    CorpusError,
    IndexDamageError,
    LogError,
    OutputError,
    ShardError,
)
from contam.index.manifest import MANIFEST
from contam.index.open import Index
from contam.index.verify import verify
from contam.rescore.logs.read import read_logs
from tests.cli.processes import ROOT, assert_one_line_error, environment
from tests.corpus_files import find_shards
from tests.index.tiny import write_index
from tests.waiting import HANG_S

NAMES = ("a.jsonl", "a.jsonl.gz", "a.parquet", "a.arrow", "a.json", "a.csv", "a")


@pytest.fixture(autouse=True)
def no_waiting():
    """An error in the middle of whatever still runs when any test would have ended."""

    def stop(*_):
        raise AssertionError("it waits for somebody to write into the pipe")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(int(HANG_S))
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def pipe(path):
    path.parent.mkdir(exist_ok=True)
    os.mkfifo(path)
    return path


def assert_refused(refused, path):
    assert str(path) in refused.value.message
    assert refused.value.hint


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("read", "kind"),
    [(find_shards, CorpusError), (read_benchmarks, BenchmarkError), (read_logs, LogError)],
)
def test_a_pipe_that_is_named_is_refused(tmp_path, read, kind, name):
    path = pipe(tmp_path / name)
    with pytest.raises(kind) as refused:
        read([path])
    assert_refused(refused, path)


@pytest.mark.parametrize(
    ("read", "kind"),
    [(find_shards, CorpusError), (read_benchmarks, BenchmarkError), (read_logs, LogError)],
)
def test_a_pipe_in_a_folder_is_not_passed_over(tmp_path, read, kind):
    path = pipe(tmp_path / "folder" / "0.jsonl")
    (tmp_path / "folder" / "a.jsonl").write_text('{"text": "words", "question": "which?"}\n')
    for given in (tmp_path / "folder", tmp_path / "folder" / "*"):
        with pytest.raises(kind) as refused:
            read([given])
        assert_refused(refused, path)


def test_what_is_no_shard_by_its_name_is_listed_with_the_reason(tmp_path):
    pipe(tmp_path / "control")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "agent"))
        (tmp_path / "a.jsonl").write_text('{"text": "words"}\n')
        shards, skipped = survey([tmp_path])
    assert [shard.name for shard in shards] == ["a.jsonl"]
    assert {one.path.name for one in skipped} == {"agent", "control"}


def test_devices_are_refused_too():
    for read in (find_shards, read_benchmarks, read_logs):
        with pytest.raises(ContamError, match="/dev/null"):
            read(["/dev/null"])


def test_a_shard_that_became_a_pipe_is_an_error_of_that_shard(tmp_path):
    shards = []
    for name in ("a.jsonl", "b.parquet", "c.arrow"):
        (tmp_path / name).write_bytes(b"")
        shards += find_shards([tmp_path / name])
        (tmp_path / name).unlink()
        pipe(tmp_path / name)
    for shard in shards:
        with pytest.raises(ShardError, match=shard.name):
            shard_digest(shard)


@pytest.mark.parametrize("kind", ["npy", "crc", "json", "parquet"])
def test_a_pipe_among_the_files_of_an_index_is_damage(tmp_path, kind):
    write_index(tmp_path)
    path = tmp_path / MANIFEST if kind == "json" else min(tmp_path.rglob(f"*.{kind}"))
    path.unlink()
    pipe(path)
    with pytest.raises(IndexDamageError, match=path.name):
        Index.open(tmp_path)
    if kind != "json":
        assert any(path.name in finding.place for finding in verify(tmp_path).findings)


def test_a_pipe_in_place_of_a_result_is_an_error(tmp_path):
    pipe(tmp_path / "run.json")
    with pytest.raises(OutputError, match=r"run\.json"):
        load_report(tmp_path)


@pytest.mark.slow
def test_what_a_shell_makes_of_a_command_is_refused_by_name(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"question": "which?", "text": "words"}\n')
    for option, other in (("--corpus", "--benchmark"), ("--benchmark", "--corpus")):
        process = subprocess.run(
            ["bash", "-c",
             f"{sys.executable} -m contam scan {option} <(cat a.jsonl) {other} a.jsonl --out out"],
            cwd=tmp_path, env=environment(PYTHONPATH=str(ROOT)), capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert_one_line_error(process, code=1)
