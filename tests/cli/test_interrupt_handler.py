"""Ctrl-C while a kernel is loaded waits until it is, and is not lost."""

from __future__ import annotations

import os
import signal

import pytest

from contam.cli.main import Interrupt
from tests.waiting import wait_until

CALLER = "def call(step):\n    step()\n    return 'done'\n"


def called_by(module: str):
    """A function that calls another, as if it stood in that module."""
    scope = {"__name__": module}
    exec(CALLER, scope)  # noqa: S102 - our own three lines
    return scope["call"]


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


@pytest.mark.parametrize("module", ["numba.core.caching", "llvmlite.binding.executionengine"])
def test_a_kernel_that_is_being_loaded_is_loaded_first(module):
    steps = []

    def load_and_go_on() -> None:
        steps.append(called_by(module)(interrupt_and_wait))
        wait_until(lambda: False)

    with pytest.raises(KeyboardInterrupt):
        load_and_go_on()
    assert steps == ["done"]


def test_anything_else_ends_at_once():
    with pytest.raises(KeyboardInterrupt):
        called_by("contam.detect.scan")(interrupt_and_wait)


def test_what_takes_long_is_not_waited_for():
    with pytest.raises(KeyboardInterrupt):
        called_by("numba.core.compiler")(lambda: (interrupt_and_wait(), wait_until(lambda: False)))
