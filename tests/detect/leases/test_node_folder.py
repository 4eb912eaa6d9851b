"""Processes that need files at the same time find them once on the disk, and leave nothing."""

import os
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from contam.detect.leases.node_folder import node_folder, write_files
from tests.cli.processes import environment
from tests.waiting import HANG_S

FILES = {"a.bin": b"first", "b.bin": bytes(range(256)) * 4096}
#: Says that the folder is there, and stays in the block until its input ends.
USER = """
import sys
from contam.detect.leases.node_folder import node_folder, write_files
with node_folder(sys.argv[1], lambda folder: write_files(folder, {"a.bin": b"first"})) as folder:
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A temporary folder that is empty."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def filled(files):
    return lambda folder: write_files(folder, files)


def user(home):
    """Another process in the block."""
    process = subprocess.Popen(
        [sys.executable, "-c", USER, "shared"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(TMPDIR=str(home)),
    )
    return process, Path(process.stdout.readline().strip())


def end(process):
    process.stdin.close()
    assert process.wait(HANG_S) == 0
    process.stdout.close()


def test_all_who_are_there_at_once_share_one_folder(home):
    together = Barrier(8)

    def use(_):
        together.wait(HANG_S)
        with node_folder("shared", filled(FILES)) as folder:
            found = {name: (folder / name).read_bytes() for name in FILES}
            inode = (folder / "b.bin").stat().st_ino
            together.wait(HANG_S)
        return found == FILES, inode

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(use, range(8)))
    assert len(set(found)) == 1
    assert found[0][0]
    assert not list(home.iterdir())


def test_all_who_come_and_go_find_all_files(home):
    def use(_):
        for _ in range(50):
            with node_folder("shared", filled(FILES)) as folder:
                assert {name: (folder / name).read_bytes() for name in FILES} == FILES

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(use, range(4)))
    assert not list(home.iterdir())


def test_it_stays_as_long_as_another_process_uses_it(home):
    process, folder = user(home)
    with node_folder("shared", filled({"a.bin": b"first"})) as mine:
        assert mine == folder
    assert (folder / "a.bin").read_bytes() == b"first"
    end(process)
    assert not list(home.iterdir())


def test_what_a_killed_process_left_goes_with_the_next(home):
    process, folder = user(home)
    os.kill(process.pid, signal.SIGKILL)
    process.wait(HANG_S)
    process.stdin.close()
    process.stdout.close()
    assert folder.exists()
    with node_folder("shared", filled({"a.bin": b"first"})) as mine:
        assert (mine / "a.bin").read_bytes() == b"first"
    assert not list(home.iterdir())


def test_an_error_in_the_block_leaves_nothing(home):
    with pytest.raises(KeyError), node_folder("shared", filled(FILES)):
        raise KeyError
    assert not list(home.iterdir())
