"""Ctrl-C while a kernel is loaded waits until it is, and is not lost."""

from __future__ import annotations

import os
import signal
import threading

import pytest
from numba.core.compiler_lock import global_compiler_lock

from contam.cli.main import Interrupt
from tests.waiting import HANG_S, wait_until


@pytest.fixture(autouse=True)
def handler():
    handled.__init__()
    handled.count = 0
    before = signal.signal(signal.SIGINT, handled)
    yield
    signal.signal(signal.SIGINT, before)


def interrupt_and_wait() -> None:
    """Send Ctrl-C; it has been handled once already when this returns."""
    os.kill(os.getpid(), signal.SIGINT)
    wait_until(lambda: handled.count)


class Counted(Interrupt):
    """The handler, which counts its calls."""

    count = 0

    def __call__(self, number, frame) -> None:
        self.count += 1
        super().__call__(number, frame)


handled = Counted()


def test_a_kernel_that_is_being_loaded_is_loaded_first():
    steps = []

    def load_and_go_on() -> None:
        with global_compiler_lock:
            interrupt_and_wait()
            steps.append("loaded")
        wait_until(lambda: False)

    with pytest.raises(KeyboardInterrupt):
        load_and_go_on()
    assert steps == ["loaded"]


def test_anything_else_ends_at_once():
    with pytest.raises(KeyboardInterrupt):
        interrupt_and_wait()
    assert handled.count == 1


def test_a_compiler_at_work_on_another_thread_is_not_waited_for():
    locked, done = threading.Event(), threading.Event()

    def compile_something() -> None:
        with global_compiler_lock:
            locked.set()
            done.wait(HANG_S)

    other = threading.Thread(target=compile_something)
    other.start()
    locked.wait(HANG_S)
    with pytest.raises(KeyboardInterrupt):
        interrupt_and_wait()
    done.set()
    other.join()
    assert handled.count == 1


def test_what_takes_long_is_not_waited_for():
    def compile_for_a_minute() -> None:
        with global_compiler_lock:
            interrupt_and_wait()
            wait_until(lambda: False)

    with pytest.raises(KeyboardInterrupt):
        compile_for_a_minute()
    assert handled.count > 1
