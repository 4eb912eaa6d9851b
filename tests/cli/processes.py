"""Run the command line, as a real process or in this one; `scan` may be stood in for."""

import contextlib
import ctypes
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from contam.cli.main import main
from tests.waiting import HANG_S

ROOT = Path(__file__).resolve().parents[2]
_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH, _PR_CAPBSET_DROP = 1, 2, 24
_NOT_OURS = {"COLUMNS", "FORCE_COLOR", "NO_COLOR"}


def environment(**extra):
    kept = {k: v for k, v in os.environ.items() if k not in _NOT_OURS}
    changed = kept | {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8", **extra}
    return {name: value for name, value in changed.items() if value is not None}


def command(*arguments, canned=False):
    module = "tests.cli.canned" if canned else "contam"
    return [sys.executable, "-m", module, *map(str, arguments)]


def run(words, cwd=None, *, unprivileged=False, **extra):
    """Run to the end, with more in its environment; gives the finished process with text output.

    `unprivileged` lets file modes bind even root.
    """
    return subprocess.run(
        words,
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=cwd,
        env=environment(**extra),
        timeout=HANG_S,
        check=False,
        preexec_fn=_without_override if unprivileged else None,
    )


def python(*arguments, **how):
    """Run this interpreter to its end."""
    return run([sys.executable, *map(str, arguments)], **how)


def contam(*arguments, canned=False, **how):
    """Run the command line as a process of its own to its end."""
    return run(command(*arguments, canned=canned), **how)


def _without_override():
    # Root passes every file mode; a process without these capabilities does not.
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None)
        for capability in (_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH):
            libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)


def contam_here(*arguments, cwd=None, canned=False, **extra):
    """The same in this process, which spares its start: for what is printed and written.

    Streams of its own, signals and what ends a process need `contam`.
    """
    out, said = (io.TextIOWrapper(io.BytesIO(), "utf-8", newline="") for _ in range(2))
    with pytest.MonkeyPatch.context() as patch:
        for name in _NOT_OURS:
            patch.delenv(name, raising=False)
        for name, value in extra.items():
            patch.setenv(name, value)
        patch.chdir(cwd or Path.cwd())
        if canned:
            from tests.cli.canned import module

            patch.setitem(sys.modules, "contam.detect.scan", module())
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(said):
            code = main([str(word) for word in arguments])
    printed = []
    for stream in (out, said):
        stream.flush()
        printed.append(stream.buffer.getvalue().decode())
    return subprocess.CompletedProcess(arguments, code, *printed)


def assert_one_line_error(process, code, *words):
    """Exit code, `error:` and `hint:` lines and nothing else on stderr, nothing on stdout."""
    lines = process.stderr.splitlines()
    assert process.returncode == code, process.stderr
    assert [line.split(":")[0] for line in lines] == ["error", "hint"], process.stderr
    assert process.stdout == ""
    for word in words:
        assert word in process.stderr
