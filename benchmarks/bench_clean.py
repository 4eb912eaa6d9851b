"""Processor time of cleaning a corpus, beside that of scanning it and of writing it with pyarrow.

    python benchmarks/bench_clean.py --corpus PATH --items PATH

All in this process, one run each after a scan that counts for nothing. "more" is the time besides
that of the scan; the last column divides it by the time in which pyarrow alone reads the Parquet
shards and writes them again, row group by row group, with their codecs.
"""

from __future__ import annotations

import argparse
import io
import json
import resource
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import contam

if TYPE_CHECKING:
    from collections.abc import Callable

#: Words that no corpus has: nothing is found, so that every shard is copied.
_NOWHERE = (
    "zwq{0} vkx{0} jqz{0} xvw{0} qzk{0} wvj{0} kqx{0} zjv{0} xkw{0} vzq{0} jwx{0} qkv{0} zxj{0}"
)


def seconds(work: Callable[[], object]) -> float:
    """Processor seconds of all threads of this process."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    work()
    after = resource.getrusage(resource.RUSAGE_SELF)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def write_again(corpus: Path) -> None:
    """Read and write every Parquet shard with pyarrow, row group by row group."""
    for path in sorted(corpus.rglob("*.parquet")):
        with pq.ParquetFile(path) as file:
            groups = file.metadata.num_row_groups
            codecs = (
                {
                    chunk.path_in_schema: chunk.compression
                    for chunk in map(
                        file.metadata.row_group(0).column, range(file.metadata.num_columns)
                    )
                }
                if groups
                else None
            )
            with pq.ParquetWriter(
                io.BytesIO(), file.schema_arrow, compression=codecs or "zstd"
            ) as out:
                for number in range(groups):
                    out.write_table(file.read_row_group(number, use_threads=False))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--items", type=Path, required=True)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        nowhere = Path(home, "nowhere.jsonl")
        rows = ({"question": _NOWHERE.format(number), "answer": "x"} for number in range(9))
        nowhere.write_text("".join(json.dumps(row) + "\n" for row in rows))
        contam.scan(given.corpus, given.items, workers=1)
        scans = {
            items: seconds(partial(contam.scan, given.corpus, items, workers=1))
            for items in (given.items, nowhere)
        }
        writing = seconds(partial(write_again, given.corpus))
        print("what                        CPU s   more  / pyarrow alone")
        print(f"scan                       {scans[given.items]:6.2f}")
        print(f"pyarrow alone, all shards  {writing:6.2f}")
        for name, items, action in (
            ("nothing found, copied", nowhere, "drop"),
            *((action, given.items, action) for action in ("list", "drop", "mask", "cut")),
        ):
            out = Path(home, name)
            call = partial(contam.clean, given.corpus, items, out, action=action, workers=1)
            spent = seconds(call)
            more = spent - scans[items]
            print(f"{name:25}  {spent:6.2f} {more:6.2f}  {more / writing:6.2f}")


if __name__ == "__main__":
    main()
