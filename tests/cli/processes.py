"""Run the command line as a real process; `scan` may be stood in for to reach its edges."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.waiting import HANG_S

ROOT = Path(__file__).resolve().parents[2]

# The command is real from its first line to its last; only the matching is canned.
CANNED = """
import sys, types
from tests.detect.samples import make_result
import contam.detect
module = types.ModuleType("contam.detect.scan")
def scan(corpus, benchmark, *, progress, **options):
    import json, os, signal
    told = os.environ.get("CANNED_CALL")
    if told:
        with open(told, "w") as file:
            json.dump({"corpus": corpus, "benchmark": benchmark, **options}, file)
    progress.note("compiling kernels, first run only")
    progress.start(50_000_000)
    for _ in range(25):
        progress.advance(2_000_000)
    progress.finish()
    mode = os.environ.get("CANNED", "")
    if mode == "wait":
        print("ready", flush=True)
        signal.pause()
    if mode == "crash":
        raise RuntimeError("unexpected\\x1b[31m")
    if mode == "memory":
        raise MemoryError
    result = make_result(
        complete=mode != "incomplete",
        allow_missing=options["allow_missing"],
        keep_text=options["keep_text"],
    )
    if mode == "clean":
        result.verdict_columns = {**result.verdict_columns, "label": ["clean"] * 6}
    result.run["notes"] = ["2 rows of items.jsonl were skipped"]
    result.run["coverage"] = {
        "shards_expected": 12, "shards_read": 12 if result.complete else 11,
        "shards_failed": [] if result.complete else [{"shard": "b.parquet", "reason": "no footer"}],
        "complete": result.complete, "rows": 1234, "n_bytes": 5_600_000, "n_null": 2,
        "n_empty": 0, "n_undecodable": 0, "undecodable_bytes": 0, "by_shard": [],
    }
    return result
module.scan = scan
sys.modules["contam.detect.scan"] = module
from contam.cli.main import run
run()
"""


def environment(**extra):
    kept = {k: v for k, v in os.environ.items() if k not in {"COLUMNS", "FORCE_COLOR", "NO_COLOR"}}
    return kept | {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8", **extra}


def command(*arguments, canned=False):
    start = ["-c", CANNED] if canned else ["-m", "contam"]
    return [sys.executable, *start, *map(str, arguments)]


def contam(*arguments, cwd=None, canned=False, **extra):
    """Run to the end; gives the finished process with text output."""
    return subprocess.run(
        command(*arguments, canned=canned),
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=cwd,
        env=environment(**extra),
        timeout=HANG_S,
        check=False,
    )


def assert_one_line_error(process, code, *words):
    """Exit code, `error:` and `hint:` lines and nothing else on stderr, nothing on stdout."""
    lines = process.stderr.splitlines()
    assert process.returncode == code, process.stderr
    assert [line.split(":")[0] for line in lines] == ["error", "hint"], process.stderr
    assert process.stdout == ""
    for word in words:
        assert word in process.stderr
