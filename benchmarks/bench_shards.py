"""Time and memory of opening a corpus of many small shards, which is what planning it takes.

    python benchmarks/bench_shards.py
    python benchmarks/bench_shards.py --shards 5000 --formats parquet arrow jsonl

Writes shards of a few documents, then lists them, opens each for its digest, columns and chunks,
in a process of its own for each format.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

# The checkout this file lies in is what is measured, installed or not.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

_DOCUMENTS = 5
_SHARDS_A_FOLDER = 1000


def _table(number: int) -> pa.Table:
    rows = range(_DOCUMENTS)
    return pa.table(
        {
            "id": [f"doc-{number}-{row}" for row in rows],
            "url": [f"https://example.org/{number}/{row}" for row in rows],
            "date": ["2024-01-01T00:00:00Z" for _ in rows],
            "text": [f"a few words of document {row} of shard {number}" for row in rows],
        }
    )


def _write(path: Path, kind: str, table: pa.Table) -> None:
    if kind == "parquet":
        pq.write_table(table, path, compression="zstd")
    elif kind == "arrow":
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))


def write_shards(folder: Path, kind: str, n_shards: int) -> None:
    """Write so many shards of a format, a thousand a folder."""
    for number in range(n_shards):
        path = folder / f"{number // _SHARDS_A_FOLDER:03}" / f"part-{number:06}.{kind}"
        path.parent.mkdir(exist_ok=True)
        _write(path, kind, _table(number))


def _used() -> tuple[float, float]:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e9


def measure(folder: str) -> dict[str, Any]:
    """Open the corpus in this process; gigabytes of 10^9 bytes."""
    from contam.memory import tune_command

    tune_command()
    from contam.detect.corpus import Corpus

    start, start_gb = _used()
    began = time.perf_counter()
    corpus = Corpus.open([folder], None)
    cpu, peak = _used()
    return {
        "shards": len(corpus.shards),
        "chunks": len(corpus.chunks),
        "cpu_s": cpu - start,
        "wall_s": time.perf_counter() - began,
        "start_gb": start_gb,
        "peak_gb": peak,
    }


def main() -> int:
    """Print one line for each format."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--shards", type=int, default=50_000)
    parser.add_argument("--formats", nargs="+", default=["parquet", "arrow", "jsonl"])
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.measure:
        sys.stdout.write(json.dumps(measure(asked.measure)))
        return 0
    heads = ("format", "shards", "chunks", "CPU-s", "wall s", "start GB", "peak GB")
    sys.stdout.write("".join(f"{head:>10}" for head in heads) + "\n")
    for kind in asked.formats:
        with tempfile.TemporaryDirectory() as folder:
            write_shards(Path(folder), kind, asked.shards)
            command = [sys.executable, __file__, "--measure", folder]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
        seen = json.loads(done.stdout)
        cells = (
            kind,
            *(str(seen[name]) for name in ("shards", "chunks")),
            *(f"{seen[name]:.1f}" for name in ("cpu_s", "wall_s")),
            *(f"{seen[name]:.2f}" for name in ("start_gb", "peak_gb")),
        )
        sys.stdout.write("".join(f"{cell:>10}" for cell in cells) + "\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
