"""Processor time of cleaning a corpus, beside that of scanning it and of writing it with pyarrow.

    python benchmarks/bench_clean.py --corpus PATH --items PATH

In two processes of one thread each: one takes memory as a command does, the other as Python does
that calls `contam.clean`. Each cleans the Parquet shards as they are, and as pyarrow writes them by
default, which is with Snappy; after a scan that counts for nothing.

"more" is the time besides that of the scan, of which some went into writing the shards, comparing
all rows with the original and searching again. Numbers in brackets divide by the time in which
pyarrow alone reads the shards and writes them again in the same process, row group by row group,
with their codecs at its usual levels, measured just before. "size" is that of the new shards, the
old ones being 1.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import resource
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import contam
from contam import memory
from contam.cleaning.writer import TouchedShard
from contam.corpus.formats.typed import Parquet

if TYPE_CHECKING:
    from collections.abc import Callable


P = ParamSpec("P")
T = TypeVar("T")

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


def write_again(paths: list[Path]) -> None:
    """Read and write Parquet shards with pyarrow, row group by row group, with their codecs."""
    for path in paths:
        with pq.ParquetFile(path) as file:
            first = file.metadata.row_group(0)
            chunks = [first.column(number) for number in range(file.metadata.num_columns)]
            codecs = {chunk.path_in_schema: chunk.compression for chunk in chunks}
            with pq.ParquetWriter(io.BytesIO(), file.schema_arrow, compression=codecs) as out:
                for number in range(file.metadata.num_row_groups):
                    out.write_table(file.read_row_group(number, use_threads=False))


class Parts:
    """Processor seconds of parts of a run, none of which calls another."""

    def __init__(self) -> None:
        self.spent = dict.fromkeys(("writing", "comparing", "searching"), 0.0)
        for owner, name, part in (
            (Parquet, "rewrite", "writing"),
            (Parquet, "count_same", "comparing"),
            (TouchedShard, "found_in", "searching"),
        ):
            setattr(owner, name, self._noted(getattr(owner, name), part))

    def _noted(self, work: Callable[P, T], part: str) -> Callable[P, T]:
        def noted(*given: P.args, **named: P.kwargs) -> T:
            found: list[T] = []
            self.spent[part] += seconds(lambda: found.append(work(*given, **named)))
            return found[0]

        return noted


def with_snappy(corpus: Path, home: Path) -> Path:
    """A copy of a corpus's Parquet shards as pyarrow writes them by default."""
    for path in shards_of(corpus):
        target = home / path.relative_to(corpus)
        target.parent.mkdir(parents=True, exist_ok=True)
        with pq.ParquetFile(path) as file, pq.ParquetWriter(target, file.schema_arrow) as out:
            for number in range(file.metadata.num_row_groups):
                out.write_table(file.read_row_group(number, use_threads=False))
    return home


def shards_of(corpus: Path) -> list[Path]:
    """The Parquet shards that have rows."""
    return [
        path for path in sorted(corpus.rglob("*.parquet")) if pq.read_metadata(path).num_row_groups
    ]


def table(title: str, corpus: Path, given_items: Path, home: Path, parts: Parts) -> None:
    """Print the table of a corpus."""
    home.mkdir()
    nowhere = home / "nowhere.jsonl"
    rows = ({"question": _NOWHERE.format(number), "answer": "x"} for number in range(9))
    nowhere.write_text("".join(json.dumps(row) + "\n" for row in rows))
    contam.scan(corpus, given_items, workers=1)
    scans = {
        items: seconds(partial(contam.scan, corpus, items, workers=1))
        for items in (given_items, nowhere)
    }
    shards = shards_of(corpus)
    size = sum(path.stat().st_size for path in shards)
    names = "".join(f"{name:>16}" for name in ("more", *parts.spent)) + "   alone"
    print(f"{title}: scan {scans[given_items]:.2f} CPU s")
    print(f"{'':21}{names}  size")
    for name, items, action in (
        ("nothing found, copied", nowhere, "drop"),
        *((action, given_items, action) for action in ("list", "drop", "mask", "cut")),
    ):
        alone = seconds(partial(write_again, shards))
        parts.spent = dict.fromkeys(parts.spent, 0.0)
        out = home / name
        more = (
            seconds(partial(contam.clean, corpus, items, out, action=action, workers=1))
            - scans[items]
        )
        told = "".join(
            f"{spent:8.2f} ({spent / alone:5.2f})" for spent in (more, *parts.spent.values())
        )
        made = sum(path.stat().st_size for path in (out / "corpus").rglob("*.parquet"))
        print(f"{name:21}{told} {alone:7.2f}  {made / size:.2f}", flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--corpus", type=Path, required=True)
    parser.add_argument("--items", type=Path, required=True)
    parser.add_argument("--memory", choices=("command", "python"), help="only this process")
    given = parser.parse_args()
    if given.memory is None:
        for name in ("command", "python"):
            # Arrow chooses where to take memory from when it is loaded.
            own = {"ARROW_DEFAULT_MEMORY_POOL": "system"} if name == "command" else {}
            call = [sys.executable, *sys.argv, "--memory", name]
            subprocess.run(call, env={**os.environ, **own}, check=True)
        return
    if given.memory == "command":
        memory.tune_command()
    parts = Parts()
    with tempfile.TemporaryDirectory() as made:
        home = Path(made)
        snappy = with_snappy(given.corpus, home / "snappy")
        for name, corpus in (("as it is", given.corpus), ("Snappy", snappy)):
            title = f"{given.memory}, {name}"
            table(title, corpus, given.items, home / name.replace(" ", "-"), parts)


if __name__ == "__main__":
    main()
