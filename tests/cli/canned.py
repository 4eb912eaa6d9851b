"""The command line with a scan that is answered by hand: `python -m tests.cli.canned scan ...`.

The command is real from its first line to its last; only the matching is canned. CANNED says how
the scan goes, CANNED_CALL is a file that notes what the scan was called with.
"""

import json
import os
import signal
import sys
import types
from pathlib import Path

from tests.detect.samples import make_result


def scan(corpus, benchmark, *, progress, division, **options):
    told = os.environ.get("CANNED_CALL")
    if told:
        call = {"corpus": corpus, "benchmark": benchmark, "parts": division.folder, **options}
        Path(told).write_text(json.dumps(call), encoding="utf-8")
    progress.note("compiling kernels, first run only")
    for done in range(1, 9):
        progress.compiled(done, 8)
    progress.start(50_000_000)
    for _ in range(25):
        progress.advance(2_000_000)
    progress.finish()
    mode = os.environ.get("CANNED", "")
    if mode == "wait":
        print("ready", flush=True)
        signal.pause()
    if mode == "crash":
        raise RuntimeError("unexpected\x1b[31m")
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
        "shards_expected": 12,
        "shards_read": 12 if result.complete else 11,
        "shards_failed": [] if result.complete else [{"shard": "b.parquet", "reason": "no footer"}],
        "complete": result.complete,
        "rows": 1234,
        "n_bytes": 5_600_000,
        "n_null": 2,
        "n_empty": 0,
        "n_undecodable": 0,
        "undecodable_bytes": 0,
        "by_shard": [],
    }
    return result


def module():
    """What stands in for `contam.detect.scan`."""
    made = types.ModuleType("contam.detect.scan")
    made.scan = scan
    return made


if __name__ == "__main__":
    import contam.detect

    sys.modules["contam.detect.scan"] = contam.detect.scan = module()
    from contam.cli.main import run

    run()
