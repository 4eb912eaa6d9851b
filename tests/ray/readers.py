"""Run a driver of the cluster, and stop or kill what reads a file for it."""

import os
import signal
import subprocess
import threading
from pathlib import Path

from tests.cli.processes import environment
from tests.waiting import HANG_S, wait_until


def run(arguments):
    return subprocess.run(
        arguments, capture_output=True, text=True, env=environment(), timeout=HANG_S
    )


def readers(folder):
    """Processes of the cluster that have a file open there, or this very file."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            try:
                if (
                    not (process / "cmdline")
                    .read_bytes()
                    .startswith((b"ray::_Worker", b"ray::_search"))
                ):
                    continue
                opened = [one.readlink() for one in (process / "fd").iterdir()]
            except OSError:
                continue  # it has ended
            if any(path.is_relative_to(folder) for path in opened):
                found.append(int(process.name))
    return found


def stop_reader(folder):
    """Stop a process while it reads a file there: wait for one that does. Gives its number."""
    found = []

    def stopped():
        for pid in readers(folder):
            os.kill(pid, signal.SIGSTOP)
            if pid in readers(folder):
                found.append(pid)
                return True
            # It had just closed it.
            os.kill(pid, signal.SIGCONT)
        return False

    wait_until(stopped, pause_s=0.001)
    return found[0]


def kill_reader(path):
    """Kill a process with SIGKILL while it reads a file."""
    pid = stop_reader(path)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: pid not in readers(path))


def run_and_kill(arguments, path, times, *, stdout=False):
    """Run a driver whose processes are killed when they read a file.

    Its exit code and stderr; between them its stdout, where that is wanted.
    """
    call = subprocess.Popen(
        arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
    )
    deaths = []

    def kill():
        for _ in range(times):
            kill_reader(path)
            deaths.append(1)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    told, said = call.communicate(timeout=HANG_S)
    killer.join(HANG_S)
    assert len(deaths) == times
    return (call.returncode, told, said) if stdout else (call.returncode, said)
