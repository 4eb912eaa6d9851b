"""A real cluster of two nodes, and plans to be done on it."""

import contextlib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.cli.processes import environment
from tests.waiting import HANG_S


def pytest_collection_modifyitems(items):
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.ray)


@contextlib.contextmanager
def two_nodes(*hidden, **variables):
    """The address of a cluster whose second node does not see the hidden folders.

    variables  of the environment of both nodes
    """
    pytest.importorskip("ray", reason="make ray installs it")
    # The names of its sockets must be short.
    folder = tempfile.mkdtemp(prefix="ray-", dir="/tmp")
    script = Path(__file__).with_name("cluster.py")
    log = Path(folder, "cluster.log")
    with log.open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, script, folder, *map(str, hidden)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            env=environment(**variables),
            text=True,
        )
        try:
            address = process.stdout.readline().strip()
            assert address, log.read_text(errors="replace")
            yield address
        finally:
            process.stdin.close()
            process.wait(HANG_S)
            process.stdout.close()
            shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def cluster():
    """The address of a cluster of two nodes with a CPU each."""
    with two_nodes() as address:
        yield address
