"""A kernel is compiled once, whoever calls it with what, and by one process at a time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

from contam.kernels._jit import INTERPRETED, kernel
from contam.kernels.warm_up import compile_once
from tests.cli.processes import contam, python

pytestmark = pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")

#: Compiles two small kernels, one of which calls the other, and says what it compiled.
WORK = """
import json, os, sys
import numba
if "other" in sys.argv:
    numba.version_info = numba.version_info._replace(short=(9, 9))
import numpy as np
from numba.core import event
from contam.kernels.bits import next_bytes
from contam.kernels.document import count_code_points
from contam.kernels.warm_up import compile_once, is_warm

class Heard(event.Listener):
    names = []
    def on_start(self, happened):
        self.names.append(happened.data["dispatcher"].py_func.__name__)
    def on_end(self, happened):
        pass

class Progress:
    notes, counts = [], []
    def note(self, message):
        self.notes.append(message)
        print("note", file=sys.stderr, flush=True)
    def compiled(self, done, total):
        self.counts.append((done, total))

event.register("numba:compile", Heard())
found = []
def work():
    found.append(count_code_points(np.frombuffer("aé中x".encode() * 9, np.uint8), 0, 63))
    if "stop" in sys.argv:
        print("stopped", flush=True)
        sys.stdin.read()
compile_once("scan", work, Progress())
if "again" in sys.argv:
    compile_once("scan", work, Progress())
names = [name for name in Heard.names if name in ("next_bytes", "count_code_points")]
print(json.dumps({"found": found, "compiled": sorted(names), "counts": Progress.counts,
                  "notes": len(Progress.notes), "warm": is_warm("scan")}))
"""


def start(cache, *how, before=""):
    """WORK in a process of its own, with its cache in a folder, behind some other lines."""
    return subprocess.Popen(
        [sys.executable, "-c", before + WORK, *how],
        env={**os.environ, "CONTAM_CACHE_DIR": str(cache)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process):
    out, err = process.communicate()
    assert process.returncode == 0, err
    return json.loads(out.splitlines()[-1])


def test_constants_and_read_only_arrays_and_narrow_numbers_need_no_other_signature():
    @kernel
    def pick(values: np.ndarray, at: int, both: tuple[int, int]) -> int:
        return values[at] + both[0] - both[1]

    @kernel
    def callers(values: np.ndarray, narrow: np.ndarray) -> int:
        number = np.int64(3)
        first = pick(values, 0, (1, 2)) + pick(values, number, (number, 0))
        return first + pick(values, narrow[0], (0, number))

    # As in a script: no folder belongs to a function that is made within a test.
    values, narrow = np.arange(5), np.array([2], np.int32)
    frozen = np.arange(5)
    frozen.setflags(write=False)
    assert callers(values, narrow) == callers(frozen, narrow) == (0 - 1) + (3 + 3) + (2 - 3)
    assert len(callers.signatures) == 1
    assert len(pick.inner.signatures) == 1
    assert pick.signatures == []
    assert pick(frozen, 1, (5, 1)) == pick(values, 1, (5, 1)) == 5
    assert len(pick.signatures) == 1


def test_what_kernels_call_is_compiled_once_for_all_of_them(tmp_path):
    first = finish(start(tmp_path))
    assert first["compiled"] == ["count_code_points", "next_bytes"]
    assert first["found"] == [36]
    assert first["warm"]
    done, total = zip(*first["counts"], strict=True)
    assert list(done) == sorted(done)
    assert done[-1] == total[-1]
    assert finish(start(tmp_path)) == {
        **first,
        "compiled": [],
        "found": [],
        "counts": [],
        "notes": 0,
    }


@pytest.mark.slow
def test_a_numba_that_was_never_tried_compiles_in_its_own_way_to_the_same(tmp_path):
    assert finish(start(tmp_path, "other"))["found"] == [36]


@pytest.mark.slow
def test_a_killed_compilation_is_finished_by_the_next_run(tmp_path):
    killed = start(tmp_path, "stop")
    assert killed.stdout.readline() == "stopped\n"
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    again = finish(start(tmp_path))
    assert again["compiled"] == []
    assert again["counts"]
    assert again["warm"]


@pytest.mark.slow
def test_a_second_process_waits_and_compiles_nothing(tmp_path):
    first = start(tmp_path, "stop")
    assert first.stdout.readline() == "stopped\n"
    second = start(tmp_path)
    assert second.stderr.readline() == "note\n"
    first.communicate()
    found = finish(second)
    assert found["compiled"] == found["found"] == []
    assert found["notes"] == 1


@pytest.mark.slow
@pytest.mark.parametrize(("mode", "is_used"), [(0o700, True), (0o775, True), (0o777, False)])
def test_a_named_folder_is_shared_with_its_group_and_not_with_everybody(tmp_path, mode, is_used):
    folder = tmp_path / "kernels"
    folder.mkdir()
    folder.chmod(mode)
    assert finish(start(tmp_path))["compiled"] == ["count_code_points", "next_bytes"]
    assert any(folder.iterdir()) == is_used


@pytest.mark.slow
def test_a_folder_whose_parent_everybody_can_write_is_not_used(tmp_path):
    tmp_path.chmod(0o777)
    found = finish(start(tmp_path))
    assert (found["found"], found["warm"], found["notes"]) == ([36], False, 2)
    assert not any((tmp_path / "kernels").iterdir())


@pytest.mark.slow
def test_a_process_that_can_keep_nothing_runs_the_workload_once(tmp_path):
    tmp_path.chmod(0o777)
    assert finish(start(tmp_path, "again"))["found"] == [36]


@pytest.mark.slow
def test_warm_fails_where_nothing_can_be_kept():
    asked = contam("warm", "--json", CONTAM_CACHE_DIR=os.devnull)
    assert (asked.returncode, json.loads(asked.stdout)) == (1, {"folder": None})
    assert "CONTAM_CACHE_DIR" in asked.stderr


@pytest.mark.slow
def test_a_full_disk_stops_no_run_and_is_not_taken_for_done(tmp_path):
    small = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (900, 900))\n"
    found = finish(start(tmp_path, before=small))
    assert (found["found"], found["warm"], found["notes"]) == ([36], False, 2)
    again = finish(start(tmp_path))
    assert (again["found"], again["warm"]) == ([36], True)


def test_a_workload_that_fails_is_not_taken_for_done(tmp_path, monkeypatch):
    monkeypatch.setattr("contam.kernels.warm_up.CACHE_FOLDER", tmp_path)

    def work():
        raise OSError

    with pytest.raises(OSError):
        compile_once("scan", work, None)
    ran = []
    compile_once("scan", lambda: ran.append(1), None)
    compile_once("scan", lambda: ran.append(2), None)
    assert ran == [1]


@pytest.mark.slow
def test_a_kernel_that_counts_from_the_end_of_an_array_is_found_where_bounds_are_checked(tmp_path):
    call = "from contam.kernels.runs import is_before; import numpy as np;"
    call += "is_before(np.zeros((2, 4), np.int32), -1, 0)"
    found = python("-c", call, CONTAM_CACHE_DIR=str(tmp_path), NUMBA_BOUNDSCHECK="1")
    assert found.returncode == 1
    assert "IndexError" in found.stderr
