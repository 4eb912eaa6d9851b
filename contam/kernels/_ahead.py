"""Compile kernels on several cores: find out what a workload calls, then share that out.

Numba compiles in one thread, when a kernel is first called. Here another process first has Python
run the kernels of the workload, which takes a second and tells what is called, with which types,
and what calls what. Several processes then compile into the cache, each kernel after those that
it calls. The workload itself, run at the end, compiles whatever is missing.
"""

from __future__ import annotations

import functools
import importlib
import os
import pickle
import selectors
import subprocess
import sys
import threading
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, cast

import numba

from contam.kernels._jit import watchers
from contam.memory import usable_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

F = TypeVar("F", bound="Callable[..., Any]")

#: More would wait for kernels that the others compile.
_MOST_PROCESSES: Final = 8
#: What one is given room for; it takes half of that.
_PROCESS_BYTES: Final = 1 << 30


class _Task(NamedTuple):
    """A kernel to compile: as other kernels call it, or as Python does."""

    module: str
    name: str
    is_inner: bool


@dataclass
class _Calls:
    """The kernels of a workload: the types of their arguments, what they call, their size."""

    types: dict[_Task, tuple[Any, ...]] = field(default_factory=dict)
    callees: dict[_Task, set[_Task]] = field(default_factory=dict)
    size: dict[_Task, int] = field(default_factory=dict)


def compile_ahead(workload: Callable[[], None], report: Callable[[int], None]) -> None:
    """Compile into the cache what the workload calls, and report how many kernels are done.

    workload  a function of a module
    Whatever goes wrong here is left to whoever calls the kernel, who compiles what is missing.
    """
    n_processes = min(
        _MOST_PROCESSES, len(os.sched_getaffinity(0)), usable_bytes() // _PROCESS_BYTES
    )
    can_import = workload.__module__ != "__main__" and "<" not in workload.__qualname__
    if n_processes < 2 or not (sys.executable and can_import):
        return
    calls = _calls_of(workload)
    urgency = _urgency(calls)
    waiting = {task: set(callees) for task, callees in calls.callees.items()}
    done: set[str] = set()
    with ExitStack() as stack:
        idle = [_start("compile_for_parent", stack) for _ in range(min(n_processes, len(waiting)))]
        answers = stack.enter_context(selectors.DefaultSelector())
        while True:
            ready = sorted((task for task in waiting if not waiting[task]), key=urgency.__getitem__)
            while idle and ready:
                task, process = ready.pop(), idle.pop()
                del waiting[task]
                with suppress(BrokenPipeError):  # its end is read below
                    process.stdin.write(pickle.dumps((task, calls.types[task])))
                answers.register(process.stdout, selectors.EVENT_READ, (task, process))
            if not answers.get_map():
                return  # all is done, or every process has ended
            for key, _ in answers.select():
                task, process = key.data
                answers.unregister(process.stdout)
                if process.stdout.read(1):
                    idle.append(process)
                for callees in waiting.values():
                    callees.discard(task)
                done.add(f"{task.module}.{task.name}")
                report(len(done))


def compile_for_parent() -> None:
    """Compile what standard input names until it ends, and answer a byte for each."""
    with _answers() as answers, suppress(EOFError, KeyboardInterrupt):
        while True:
            task, types = pickle.load(sys.stdin.buffer)  # noqa: S301 - our parent wrote it
            with suppress(Exception):  # who calls this kernel meets it again
                kernel = getattr(importlib.import_module(task.module), task.name)
                (kernel.inner if task.is_inner else kernel).compile(types)
            answers.write(b".")


def tell_parent_calls() -> None:
    """Run the workload that an argument names, and answer what its kernels are called with."""
    calls = _Calls()
    watchers.append(functools.partial(_watched, calls, threading.local()))
    module, name = sys.argv[1:]
    with _answers() as answers:
        getattr(importlib.import_module(module), name)()
        answers.write(pickle.dumps(calls))


def _calls_of(workload: Callable[[], None]) -> _Calls:
    with ExitStack() as stack:
        process = _start(
            "tell_parent_calls",
            stack,
            workload.__module__,
            workload.__qualname__,
            NUMBA_DISABLE_JIT="1",
        )
        answer, _ = process.communicate()
    # Nothing comes from a workload that fails; who runs it meets that again.
    return cast("_Calls", pickle.loads(answer)) if answer else _Calls()  # noqa: S301 - our child's


def _watched(calls: _Calls, thread: threading.local, function: F) -> F:
    """A kernel that Python runs, as a function that takes down who calls it with what."""

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        callers: list[_Task] = vars(thread).setdefault("callers", [])
        task = _Task(function.__module__, function.__name__, is_inner=bool(callers))
        calls.types.setdefault(task, tuple(map(numba.typeof, args)))
        calls.callees.setdefault(task, set())
        calls.size[task] = len(function.__code__.co_code)
        if callers:
            calls.callees[callers[-1]].add(task)
        callers.append(task)
        try:
            return function(*args)
        finally:
            callers.pop()

    return cast("F", call)


def _urgency(calls: _Calls) -> dict[_Task, int]:
    """The size of the longest chain of callers above each kernel, itself included."""
    callers: dict[_Task, set[_Task]] = {task: set() for task in calls.callees}
    for task, callees in calls.callees.items():
        for callee in callees:
            callers[callee].add(task)

    @functools.cache
    def of(task: _Task) -> int:
        return calls.size[task] + max(map(of, callers[task]), default=0)

    return {task: of(task) for task in callers}


def _start(job: str, stack: ExitStack, *arguments: str, **environment: str) -> Any:
    """This Python, running a function of this module; the end of the stack ends it."""
    process = subprocess.Popen(  # noqa: S603 - this very Python
        [sys.executable, "-c", f"from {__name__} import {job}; {job}()", *arguments],
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))} | environment,
    )
    stack.enter_context(process)
    stack.callback(process.kill)
    return process


def _answers() -> Any:
    """Standard output, which nothing else writes to from now on."""
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    return answers
