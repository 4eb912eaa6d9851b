"""A scan of many leases on one machine: killed and resumed, and divided over processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import contam
from contam.detect.leases import cut, local
from contam.detect.leases.parts_folder import PARTS_FILE
from contam.detect.leases.workshop import Workshop
from contam.errors import ContamError, OutputError
from tests.cli.processes import ROOT, environment
from tests.property.worlds import write_items, write_shard
from tests.waiting import HANG_S

TABLES = ("verdicts.parquet", "evidence.parquet", "items.parquet")
N_SHARDS = 5
#: The command line, with leases of a shard each.
SMALL = """
import os, sys
from contam.cli.main import run
from contam.detect.leases import cut, parts_folder

cut.LEAST_BYTES = 1
parts, real = [], parts_folder.write_file

def write_file(path, data, **more):
    real(path, data, **more)
    if path.suffix == ".part":
        parts.append(path)
    if len(parts) == 2 and (sign := int(os.environ["STOP_WITH"])):
        os.kill(os.getpid(), sign)

parts_folder.write_file = write_file
run(sys.argv[1:])
"""


@pytest.fixture
def world(tmp_path):
    rows = [
        {"id": f"q{k}", "question": f"the {k}th lantern of the old harbour burns copper green {k}"}
        for k in range(N_SHARDS)
    ]
    for number in range(N_SHARDS):
        texts = [f"{number} {rows[number]['question']}", "nothing of it", None]
        write_shard(tmp_path / "corpus" / f"part-{number}.parquet", texts)
    write_items(tmp_path / "bench.jsonl", rows)
    return tmp_path


@pytest.fixture
def small(monkeypatch):
    """Leases of a shard each."""
    monkeypatch.setattr(cut, "LEAST_BYTES", 1)


def files_of(out):
    run = json.loads((out / "run.json").read_bytes())
    del run["timings"]
    return {"run": run, **{name: (out / name).read_bytes() for name in TABLES}}


def search(world, out, **more):
    result = contam.scan(
        world / "corpus", world / "bench.jsonl", policies=("contam", "gpt4-50char"), **more
    )
    contam.write_report(result, out)
    return files_of(out)


@pytest.mark.parametrize("workers", [4, pytest.param(9, marks=pytest.mark.slow)])
@pytest.mark.usefixtures("small")
def test_any_number_of_workers_and_processes_gives_the_same_bytes(world, workers):
    whole = search(world, world / "a", workers=1)
    workshop = Workshop.beside(world / "b")
    assert search(world, world / "b", workers=workers, workshop=workshop) == whole
    assert workshop.n_done() == N_SHARDS
    workshop.discard()
    assert not workshop.folder.exists()


def test_a_small_corpus_is_one_lease_and_leaves_nothing_behind(world):
    workshop = Workshop.beside(world / "a")
    search(world, world / "a", workers=1, workshop=workshop)
    assert not workshop.folder.exists()


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_a_shard_that_cannot_be_read_is_the_same_failure_in_any_process(world):
    (world / "corpus" / "part-1.parquet").write_bytes(b"PAR1 no")
    whole = search(world, world / "a", workers=1)
    found = search(world, world / "b", workers=5, workshop=Workshop.beside(world / "b"))
    assert found == whole
    assert not found["run"]["coverage"]["complete"]


def call(world, out, *more, stop_with=0):
    """Run the command line; it gets the signal when its second part is written."""
    given = ("--corpus", world / "corpus", "--benchmark", world / "bench.jsonl", "--out", out)
    return subprocess.run(
        [sys.executable, "-c", SMALL, "scan", *map(str, given), "--workers", "1", *more],
        capture_output=True,
        text=True,
        env=environment(STOP_WITH=str(stop_with)),
        cwd=ROOT,
        timeout=HANG_S,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_stopped_scan_goes_on_from_what_it_had_done(world, sign):
    whole = call(world, world / "a", "--resume")
    assert whole.returncode == 0
    assert "nothing to resume" in whole.stderr
    out, workshop = world / "b", Workshop.beside(world / "b")
    stopped = call(world, out, stop_with=int(sign))
    assert stopped.returncode != 0
    assert not out.exists()
    assert workshop.n_done() == 2
    assert ("--resume" in stopped.stderr) == (sign != signal.SIGKILL)
    again = call(world, out, "--resume")
    assert again.returncode == 0, again.stderr
    assert "leases done before: 2" in again.stderr
    assert files_of(out) == files_of(world / "a")
    assert not workshop.folder.exists()


def interrupted(world, out, monkeypatch):
    """A scan that stops after its second part."""
    from contam.detect.leases import work

    real, done = work.scan_lease, []

    def stop_after_two(*args, **kwargs):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(1)
        return real(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(work, "scan_lease", stop_after_two)
        with pytest.raises(KeyboardInterrupt):
            search(world, out, workers=1, workshop=Workshop.beside(out))
    assert Workshop.beside(out).n_done() == 2


@pytest.mark.usefixtures("small")
def test_resuming_repeats_nothing_that_was_done(world, monkeypatch):
    whole = search(world, world / "a", workers=1)
    interrupted(world, world / "b", monkeypatch)
    parts = Workshop.beside(world / "b").parts
    before = {path: path.stat().st_mtime_ns for path in parts.glob("*.part")}
    workshop = Workshop.beside(world / "b", resume=True)
    assert search(world, world / "b", workers=5, workshop=workshop) == whole
    after = {path: path.stat().st_mtime_ns for path in parts.glob("*.part")}
    assert {path: after[path] for path in before} == before
    assert len(after) == N_SHARDS


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("n_parts", [0, 2])
def test_a_run_killed_before_it_said_what_its_parts_are_of_is_resumed(world, monkeypatch, n_parts):
    whole = search(world, world / "a", workers=1)
    workshop = Workshop.beside(world / "b", resume=True)
    if n_parts:
        interrupted(world, world / "b", monkeypatch)
        (workshop.parts / PARTS_FILE).unlink()
    else:
        workshop.parts.mkdir(parents=True)
    assert search(world, world / "b", workers=1, workshop=workshop) == whole


@pytest.mark.usefixtures("small")
def test_without_resume_a_scan_begins_anew(world, monkeypatch):
    whole = search(world, world / "a", workers=1)
    interrupted(world, world / "b", monkeypatch)
    write_shard(world / "corpus" / "part-9.parquet", ["a shard that came later"])
    found = search(world, world / "b", workers=1, workshop=Workshop.beside(world / "b"))
    assert found["verdicts.parquet"] == whole["verdicts.parquet"]
    assert found["run"]["coverage"]["shards_read"] == N_SHARDS + 1


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("change", ["shard", "item", "mark", "option", "column", "time", "numpy"])
def test_parts_of_another_question_are_not_taken_up(world, monkeypatch, change):
    interrupted(world, world / "b", monkeypatch)
    more = {}
    if change == "shard":
        write_shard(world / "corpus" / "part-9.parquet", ["a shard that came later"])
    elif change == "time":
        # As one whose middle was written to: no digest of its edges shows that.
        os.utime(world / "corpus" / "part-0.parquet", ns=(1, 1))
    elif change == "mark":
        # No word of any item.
        text = (world / "bench.jsonl").read_text()
        (world / "bench.jsonl").write_text(text.replace("green 0", "green, 0"))
    elif change == "numpy":
        monkeypatch.setattr("numpy.__version__", "1.0")
    elif change == "item":
        with (world / "bench.jsonl").open("a") as file:
            file.write('{"id": "late", "question": "what came later than all the others"}\n')
    else:
        more = {"min_run": 9} if change == "option" else {"columns": {"url": "id"}}
    with pytest.raises(OutputError, match="another scan"):
        search(
            world,
            world / "b",
            workers=1,
            workshop=Workshop.beside(world / "b", resume=True),
            **more,
        )


def test_a_run_removes_no_folder_that_another_works_in(world):
    workshop = Workshop.beside(world / "b")
    with workshop.held():
        workshop.discard()
        assert workshop.folder.exists()
    workshop.discard()
    assert not workshop.folder.exists()


def test_what_is_done_lies_on_the_disk_of_the_results(tmp_path, monkeypatch):
    out = tmp_path / "mounted"
    out.mkdir()
    assert Workshop.beside(out).folder.parent == tmp_path
    monkeypatch.setattr("os.path.ismount", lambda path: str(path) == str(out))
    assert Workshop.beside(out).folder.parent == out


def test_ctrl_c_does_not_reach_the_processes_of_a_scan():
    with local._Children() as children:
        process = children.start()
        status = Path(f"/proc/{process.pid}/status").read_text()
        process.stdin.close()
        process.stdout.close()
    blocked = int(status.partition("SigBlk:\t")[2].split()[0], 16)
    assert blocked >> (signal.SIGINT - 1) & 1


@pytest.mark.usefixtures("small")
def test_two_runs_do_not_work_in_one_folder(world):
    workshop = Workshop.beside(world / "b")
    with workshop.held(), pytest.raises(OutputError, match="another run"):
        search(world, world / "b", workers=1, workshop=workshop)


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_a_killed_process_ends_the_scan_with_what_was_done(world, monkeypatch):
    child = local._CHILD
    monkeypatch.setattr(
        local, "_CHILD", f"import os, sys; sys.stdin.readline(); os.kill(os.getpid(), 9); {child}"
    )
    with pytest.raises(ContamError, match="SIGKILL") as caught:
        search(world, world / "b", workers=5, workshop=Workshop.beside(world / "b"))
    assert "resume" in caught.value.hint
    assert not (world / "b").exists()
    monkeypatch.undo()
    monkeypatch.setattr(cut, "LEAST_BYTES", 1)
    whole = search(world, world / "a", workers=1)
    workshop = Workshop.beside(world / "b", resume=True)
    assert search(world, world / "b", workers=5, workshop=workshop) == whole


@pytest.mark.slow
@pytest.mark.usefixtures("small")
def test_an_error_in_a_process_is_the_error_of_the_scan(world, capfd):
    workshop = Workshop.beside(world / "b", resume=True)
    in_the_way = workshop.parts / "lease-00003.part"
    search(world, world / "a", workers=1, workshop=workshop)
    in_the_way.unlink()
    in_the_way.mkdir()
    with pytest.raises(OutputError, match=in_the_way.name) as one:
        search(world, world / "b", workers=1, workshop=workshop)
    with pytest.raises(OutputError, match=in_the_way.name) as other:
        search(world, world / "b", workers=5, workshop=workshop)
    assert (str(other.value), other.value.hint) == (str(one.value), one.value.hint)
    assert capfd.readouterr().err == ""


@pytest.mark.usefixtures("small")
def test_a_run_that_fails_before_a_lease_is_done_leaves_nothing(world, monkeypatch):
    def fail(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("contam.detect.leases.work.scan_lease", fail)
    workshop = Workshop.beside(world / "b")
    with pytest.raises(KeyboardInterrupt):
        search(world, world / "b", workers=1, workshop=workshop)
    assert not workshop.folder.exists()


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("workers", [1, pytest.param(5, marks=pytest.mark.slow)])
def test_a_shard_that_changes_after_its_lease_was_not_read(world, monkeypatch, workers):
    real = local.merge_parts

    def change_first(*args, **more):
        os.utime(world / "corpus" / "part-0.parquet", ns=(1, 1))
        return real(*args, **more)

    monkeypatch.setattr(local, "merge_parts", change_first)
    workshop = Workshop.beside(world / "b")
    found = search(world, world / "b", workers=workers, workshop=workshop)
    failed = found["run"]["coverage"]["shards_failed"]
    assert [failure["shard"] for failure in failed] == ["part-0.parquet"]


@pytest.mark.usefixtures("small")
def test_no_text_of_items_is_kept_for_a_scan_that_may_be_interrupted(world, monkeypatch):
    """With --no-text nobody expects them in a hidden folder."""
    rows = [json.loads(line) for line in (world / "bench.jsonl").read_text().splitlines()]
    workshop = Workshop.beside(world / "out")

    def stop(*_):
        (workshop.parts / "lease-00001.part").write_bytes(b"of a lease that is done")
        raise KeyboardInterrupt

    monkeypatch.setattr(local, "_feed", stop)
    with pytest.raises(KeyboardInterrupt):
        search(world, world / "out", workers=9, workshop=workshop, keep_text=False)
    kept = {path.name: path.read_bytes() for path in (workshop.folder / "plan").iterdir()}
    assert "views.bin" in kept
    for row in rows:
        assert not any(row["question"][:30].encode() in data for data in kept.values())
