"""A run killed at any moment goes on, and ends as if nobody had touched it."""

import random
import subprocess
import sys

import pytest

import contam
from tests.cleaning.inputs import tree
from tests.integration.inputs import compiled_only
from tests.integration.processes import environment

pytestmark = [compiled_only, pytest.mark.slow]

KILLS = 20
#: Forks a process for each run, so that none has to load the compiler. It kills itself at the given
#: step, before it opens, renames or removes something of the result or of its hidden folder. A run
#: that is not killed ends with the number of its steps.
CLEANER = """
import os, signal, sys, threading, traceback
import contam, contam.cleaning.clean
STEPS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir"}
where, last, steps, one_by_one = "", 0, 0, threading.Lock()
def noticed(event, arguments):
    global steps
    if event in STEPS and where:
        path = arguments[0]
        if isinstance(path, (str, os.PathLike)) and os.fspath(path).startswith(where):
            with one_by_one:
                steps += 1
                if steps == last:
                    os.kill(os.getpid(), signal.SIGKILL)
sys.addaudithook(noticed)
for line in sys.stdin:
    corpus, items, home, action, workers, last = line.split()
    last = int(last)
    back, told = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            where = home
            contam.clean(
                corpus, items.split(","), home + "/out", action=action, keep_removed=True,
                workers=int(workers), resume=True,
            )
            os.write(told, str(steps).encode())
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    os.close(told)
    done, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), os.read(back, 20).decode() or 0, flush=True)
    os.close(back)
"""


@pytest.fixture(scope="module")
def cleaner(corpus, items):
    """`run(home, action, workers, last)`: clean, killed at its step `last`; exit code and steps."""
    with subprocess.Popen(
        [sys.executable, "-c", CLEANER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as process:

        def run(home, action, workers, last=0):
            files = ",".join(map(str, items))
            process.stdin.write(f"{corpus} {files} {home} {action} {workers} {last}\n")
            process.stdin.flush()
            code, steps = map(int, process.stdout.readline().split())
            return code, steps

        yield run


@pytest.mark.parametrize(("action", "workers"), [("drop", 1), ("cut", 3)])
def test_a_run_killed_twenty_times_gives_the_same_bytes(
    cleaner, corpus, items, tmp_path, action, workers
):
    contam.clean(corpus, items, tmp_path / "whole", action=action, keep_removed=True)
    expected = tree(tmp_path / "whole")
    (tmp_path / "counted").mkdir()
    code, n_steps = cleaner(tmp_path / "counted", action, workers)
    assert (code, n_steps > KILLS) == (0, True)
    draw = random.Random(f"{action} {workers}")
    n_kills = n_runs = 0
    while n_kills < KILLS:
        home = tmp_path / f"killed-{n_runs}"
        home.mkdir()
        n_runs += 1
        code = -9
        while code:
            code, _ = cleaner(home, action, workers, draw.randrange(1, n_steps))
            assert code in (0, -9)
            n_kills += code == -9
            # What is there is nothing or everything.
            assert not (home / "out").exists() or tree(home / "out") == expected
        assert tree(home / "out") == expected
        assert [path.name for path in home.iterdir()] == ["out"]
    assert n_kills >= KILLS
