"""A run killed at any moment goes on, and ends as if nobody had touched it."""

import json
import random
import subprocess
import sys

import pytest

import contam
from contam.detect.parts.part_store import Division
from tests.cleaning.inputs import tree
from tests.cli.processes import environment
from tests.integration.inputs import compiled_only

pytestmark = [compiled_only, pytest.mark.slow]

KILLS = 20
#: Forks a process for each call, so that none has to load the compiler. It kills itself at the given
#: step, before it opens, renames or removes something of the result or of its hidden folder. One
#: that is not killed ends with the number of its steps. Calls of one line run at the same time.
CLEANER = """
import json, os, signal, sys, threading, traceback
import contam
from contam.cleaning.clean import clean_share
from contam.detect.parts.part_store import Division
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
def clean(corpus, items, home, action, workers):
    contam.clean(
        corpus, items, home + "/out", action=action, keep_removed=True, workers=workers
    )
def write(corpus, items, parts, home, action, index, count):
    asked = {"action": action, "keep_removed": True, "workers": 2}
    division = Division(folder=parts, size=20_000, share=(index, count) if count else (0, 1))
    call = clean_share if count else contam.clean
    call(corpus, items, home + "/out", division=division, **asked)
for line in sys.stdin:
    calls = []
    for name, home, arguments, last in json.loads(line):
        back, told = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                where = home
                globals()[name](**arguments, home=home)
                os.write(told, str(steps).encode())
                os._exit(0)
            except BaseException:
                traceback.print_exc()
                os._exit(1)
        os.close(told)
        calls.append((child, back))
    answers = []
    for child, back in calls:
        done, status = os.waitpid(child, 0)
        answers.append((os.waitstatus_to_exitcode(status), int(os.read(back, 20).decode() or 0)))
        os.close(back)
    print(json.dumps(answers), flush=True)
"""


@pytest.fixture(scope="module")
def at_once():
    """Runs calls `[name, home, arguments, last]` at once; gives exit codes and steps."""
    with subprocess.Popen(
        [sys.executable, "-c", CLEANER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as process:

        def run(calls):
            process.stdin.write(json.dumps(calls) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        yield run


@pytest.fixture(scope="module")
def cleaner(at_once, corpus, items):
    """`run(home, action, workers, last)`: clean, killed at its step `last`; exit code and steps."""
    asked = {"corpus": str(corpus), "items": [str(path) for path in items]}

    def run(home, action, workers, last=0):
        call = ("clean", str(home), {**asked, "action": action, "workers": workers}, last)
        (answer,) = at_once([call])
        return answer

    return run


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


@pytest.mark.parametrize("action", ["drop", "mask"])
def test_workers_killed_twenty_times_give_the_bytes_of_one_machine(
    at_once, corpus, items, tmp_path_factory, tmp_path, action
):
    parts = tmp_path_factory.mktemp("parts")
    division = Division(folder=str(parts), size=20_000)
    contam.clean(
        corpus, items, tmp_path / "whole", division=division, action=action, keep_removed=True
    )
    expected = tree(tmp_path / "whole")
    draw = random.Random(action)

    def call(home, index, count, last=0):
        asked = {
            "corpus": str(corpus), "items": [str(path) for path in items],
            "parts": str(parts), "action": action, "index": index, "count": count,
        }  # fmt: skip
        return ("write", str(home), asked, last)

    (tmp_path / "counted").mkdir()
    ((code, n_steps),) = at_once([call(tmp_path / "counted", 0, 1)])
    assert (code, n_steps > KILLS) == (0, True)
    n_kills = n_runs = 0
    while n_kills < KILLS:
        home = tmp_path / f"killed-{n_runs}"
        home.mkdir()
        n_runs += 1
        for _ in range(3):
            count = draw.randrange(1, 5)
            # Some shares are worked on twice at once, and some by nobody.
            calls = [
                call(home, draw.randrange(count), count, draw.randrange(1, n_steps // count + 2))
                for _ in range(draw.randrange(1, 4))
            ]
            codes = [code for code, _ in at_once(calls)]
            assert set(codes) <= {0, -9}
            n_kills += codes.count(-9)
            assert not (home / "out").exists()
        code = -9
        while code:
            ((code, _),) = at_once([call(home, 0, 0, draw.randrange(1, 2 * n_steps))])
            assert code in (0, -9)
            n_kills += code == -9
            assert not (home / "out").exists() or tree(home / "out") == expected
        assert tree(home / "out") == expected
        assert [path.name for path in home.iterdir()] == ["out"]
