"""A build killed at any moment goes on, and ends as if nobody had touched it."""

import random
import signal
import subprocess
import sys

import pytest

from contam.index.manifest import MANIFEST, read_manifest
from tests.cli.processes import environment
from tests.index.builds import files_of, some_texts
from tests.integration.inputs import compiled_only, corpus_of

pytestmark = [compiled_only, pytest.mark.slow]

KILLS = 10
#: Forks a process for each build, so that none has to load the compiler. It kills itself at the
#: given step: before it opens, renames or removes something of the index, or when half of a file is
#: written. A build that is not killed ends with the number of its steps.
BUILDER = """
import os, signal, sys, threading, traceback
from pathlib import Path
from contam.index import array_files, manifest
from tests.index.builds import build
STEPS = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir"}
real = array_files.write_synced
last, where, steps, one_by_one = 0, "", 0, threading.Lock()
def step(half=None):
    global steps
    with one_by_one:
        steps += 1
        if steps == last:
            if half:
                half()
            os.kill(os.getpid(), signal.SIGKILL)
def noticed(event, arguments):
    if event in STEPS and where and not one_by_one.locked():
        if os.fspath(arguments[0] if isinstance(arguments[0], (str, os.PathLike)) else "").startswith(where):
            step()
def halved(path, *pieces):
    content = b"".join(bytes(piece) for piece in pieces)
    step(lambda: Path(path).write_bytes(content[: len(content) // 2]))
    real(path, content)
array_files.write_synced = manifest.write_synced = halved
sys.addaudithook(noticed)
for line in sys.stdin:
    corpus, index, workers, last = line.split()
    last = int(last)
    back, told = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            where = index
            build(corpus, index, memory=25_000, workers=int(workers))
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
def builder():
    """`run(corpus, index, workers, last)`: build, killed at its step `last`; exit code and steps."""
    with subprocess.Popen(
        [sys.executable, "-c", BUILDER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as process:

        def run(corpus, index, workers, last=0):
            process.stdin.write(f"{corpus} {index} {workers} {last}\n")
            process.stdin.flush()
            code, steps = map(int, process.stdout.readline().split())
            return code, steps

        yield run


def is_finished(index):
    return (index / MANIFEST).exists() and not read_manifest(index).pending


def test_a_build_killed_again_and_again_ends_as_an_undisturbed_one(tmp_path, builder):
    corpus = corpus_of(tmp_path / "corpus", *(some_texts(60, 40 * n) for n in range(9)))
    code, steps = builder(corpus, tmp_path / "want", 2)
    assert code == 0
    assert steps > 100
    want = files_of(tmp_path / "want")
    assert len(read_manifest(tmp_path / "want").segments) > 9
    chance = random.Random(7)
    killed = rounds = 0
    pending = set()
    while killed < KILLS:
        index = tmp_path / f"ix{rounds}"
        rounds += 1
        while not is_finished(index):
            last = chance.randint(1, steps)
            code, _ = builder(corpus, index, chance.choice((1, 2, 3)), last)
            assert code in {0, -signal.SIGKILL}
            killed += code != 0
            if (index / MANIFEST).exists():
                pending.add(len(read_manifest(index).pending))
        assert files_of(index) == want
    # The kills hit a build in different states, not just before or after it.
    assert len(pending) > 2
