"""A build killed at any moment goes on, and ends as if nobody had touched it."""

import random
import signal
import subprocess
import sys
import time

import pytest

from contam.index.manifest import MANIFEST, read_manifest
from tests.integration.inputs import compiled_only, corpus_of
from tests.integration.processes import environment
from tests.unit.index.builds import files_of, some_texts

pytestmark = [compiled_only, pytest.mark.slow]

KILLS = 16
#: Forks a process for each build, so that none has to load the compiler, and kills it in time.
#: Delays spread the writing of files over the time in which a build can be killed.
BUILDER = """
import os, signal, sys, time, traceback
from contam.index import files, manifest
from tests.unit.index.builds import build
real = files.write_synced
def slow(path, *pieces):
    time.sleep(0.002)
    real(path, *pieces)
    time.sleep(0.002)
files.write_synced = manifest.write_synced = slow
for line in sys.stdin:
    corpus, index, workers, seconds = line.split()
    child = os.fork()
    if child == 0:
        try:
            build(corpus, index, memory=25_000, workers=int(workers))
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    end = time.monotonic() + float(seconds)
    done, status = 0, 0
    while not done:
        if time.monotonic() >= end:
            os.kill(child, signal.SIGKILL)
            done, status = os.waitpid(child, 0)
        else:
            time.sleep(0.0005)
            done, status = os.waitpid(child, os.WNOHANG)
    print(os.waitstatus_to_exitcode(status), flush=True)
"""


@pytest.fixture(scope="module")
def builder():
    """`run(corpus, index, workers, seconds)`: build for so many seconds at most; the exit code."""
    with subprocess.Popen(
        [sys.executable, "-c", BUILDER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    ) as process:

        def run(corpus, index, workers, seconds=600.0):
            process.stdin.write(f"{corpus} {index} {workers} {seconds}\n")
            process.stdin.flush()
            return int(process.stdout.readline())

        yield run


def is_finished(index):
    return (index / MANIFEST).exists() and not read_manifest(index).pending


def test_a_build_killed_again_and_again_ends_as_an_undisturbed_one(tmp_path, builder):
    corpus = corpus_of(tmp_path / "corpus", *(some_texts(60, 40 * n) for n in range(9)))
    assert builder(corpus, tmp_path / "warm", 2) == 0
    began = time.monotonic()
    assert builder(corpus, tmp_path / "want", 2) == 0
    seconds = time.monotonic() - began
    want = files_of(tmp_path / "want")
    assert len(read_manifest(tmp_path / "want").segments) > 9
    chance = random.Random(7)
    killed = rounds = 0
    pending = set()
    while killed < KILLS:
        index = tmp_path / f"ix{rounds}"
        rounds += 1
        while not is_finished(index):
            limit = chance.uniform(0, seconds)
            code = builder(corpus, index, chance.choice((1, 2, 3)), limit)
            assert code in {0, -signal.SIGKILL}
            killed += code != 0
            if (index / MANIFEST).exists():
                pending.add(len(read_manifest(index).pending))
        assert files_of(index) == want
    # The kills hit a build in different states, not just before or after it.
    assert len(pending) > 2
