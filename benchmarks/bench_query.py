"""How long an index takes to open and to answer: a whole benchmark, one item at a time, and a scan.

Usage: python benchmarks/bench_query.py --index DIR --items PATH... [--scan] [--json]

Everything runs on one thread, with modules loaded and kernels compiled. Times are CPU time, but for
opening and for the cold query, for which the page cache is asked to let go of the index and its
shards: those are told in seconds of the clock as well.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from contam.benchmark.read_files import read_benchmarks
from contam.detect.indexed.index_reader import open_index
from contam.detect.query import query
from contam.detect.scan import scan
from contam.index.open import Index

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from contam import BenchItem, IndexReader

#: Single questions asked; those before them fill what is kept in memory.
N_SINGLE: Final = 400
N_WARM: Final = 20
N_OPENINGS: Final = 5

Record = dict[str, Any]


def measure(index: str, items: Sequence[str], *, with_scan: bool) -> Record:
    """Figures of one index and some benchmark files.

    open_ms      cold, and the median warm: CPU and clock, shards looked at included
    cold, warm   a whole query, tables of the result included: cpu and wall, seconds
    fresh, again single questions, each new and each asked a second time: milliseconds of CPU
    scan         the same items, with a scan of the same shards; None when it was not asked for
    peak_mb      of this process before the scan; pages of the index that were touched count
    """
    shards = [record.uri for record in Index.open(index).records if record is not None]
    asked = [item for benchmark in read_benchmarks(items) for item in benchmark.items]
    step = max(1, len(asked) // (N_WARM + N_SINGLE))
    chosen = asked[::step][: N_WARM + N_SINGLE]
    _questions(open_index(index), chosen[:N_WARM])

    files = [path for path in Path(index).rglob("*") if path.is_file()]
    forgotten = _forget([*files, *map(Path, shards)])
    _, cold_open = _timed(lambda: open_index(index))
    result, cold = _timed(lambda: _told(query(index, list(items), workers=1)))
    _, warm = _timed(lambda: _told(query(index, list(items), workers=1)))
    openings = [_timed(lambda: open_index(index))[1] for _ in range(N_OPENINGS)]
    reader = open_index(index)
    _questions(reader, chosen[:N_WARM])
    found = {
        "items": len(asked),
        "corpus_bytes": result.coverage["n_bytes"],
        "documents_read": result.run["index"]["documents_read"],
        "forgotten": forgotten,
        "open_ms": {
            "cold": {name: 1e3 * value for name, value in cold_open.items()},
            "warm": {
                name: 1e3 * statistics.median(opening[name] for opening in openings)
                for name in ("cpu", "wall")
            },
        },
        "cold": cold,
        "warm": warm,
        "fresh": _spread(_questions(reader, chosen[N_WARM:])),
        "again": _spread(_questions(reader, chosen[N_WARM:])),
        "peak_mb": _peak_mb(),
        "scan": None,
    }
    if with_scan:
        _, found["scan"] = _timed(lambda: _told(scan(shards, list(items), workers=1)))
    return found


def _told(result: Any) -> Any:  # noqa: ANN401 - a scan's result or a query's
    """The result, once its tables are made."""
    if not result.complete or not result.verdicts.num_rows or result.evidence is None:
        raise SystemExit("bench: the corpus could not be read whole")
    return result


def _timed(call: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    wall, cpu = time.perf_counter(), time.process_time()
    answer = call()
    return answer, {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}


def _questions(reader: IndexReader, items: Iterable[BenchItem]) -> list[float]:
    def ask(item: BenchItem) -> float:
        cpu: float = _timed(lambda: _told(reader.check(item)))[1]["cpu"]
        return 1e3 * cpu

    return [ask(item) for item in items]


def _spread(times: Sequence[float]) -> dict[str, float]:
    return {
        "median": statistics.median(times),
        "p90": sorted(times)[int(0.9 * len(times))],
        "largest": max(times),
    }


def _forget(files: Iterable[Path]) -> bool:
    """Ask the system to read these files from the disk next time; False where that is no use."""
    if not hasattr(os, "posix_fadvise"):
        return False
    for path in files:
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
            os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(handle)
    return True


def _peak_mb() -> float:
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 1e6


def table(found: Record) -> str:
    """The figures as text."""
    lines = [
        (
            f"{found['corpus_bytes'] / 1e6:,.0f} MB of text, {found['items']:,} items, "
            f"{found['documents_read']:,} documents read, peak {found['peak_mb']:,.0f} MB"
        ),
        "",
        "| | CPU | clock |",
        "| --- | ---: | ---: |",
    ]
    cold = "cold" if found["forgotten"] else "first"
    for name in ("cold", "warm"):
        one = found["open_ms"][name]
        called = cold if name == "cold" else name
        lines.append(f"| open, {called} | {one['cpu']:.1f} ms | {one['wall']:.1f} ms |")
    rows = [(f"all items, {cold}", found["cold"]), ("all items, warm", found["warm"])]
    if found["scan"]:
        rows.append(("all items, scan", found["scan"]))
    lines += [f"| {name} | {one['cpu']:.2f} s | {one['wall']:.2f} s |" for name, one in rows]
    lines += ["", "| one item | median ms | 90 % ms | largest ms |", "| --- " + "| ---: " * 3 + "|"]
    for name, called in (("fresh", "new"), ("again", "asked again")):
        one = found[name]
        lines.append(
            f"| {called} | {one['median']:.2f} | {one['p90']:.2f} | {one['largest']:.1f} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--index", required=True)
    parser.add_argument("--items", nargs="+", required=True)
    parser.add_argument("--scan", action="store_true", help="scan the same shards as well")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = measure(options.index, options.items, with_scan=options.scan)
    print(json.dumps(found, indent=1) if options.json else table(found))


if __name__ == "__main__":
    main()
