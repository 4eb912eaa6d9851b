"""What an item costs where the index lies in a store: requests and time, as segments grow.

    python benchmarks/bench_index_remote.py --corpus DIR --items PATH

An S3 server of ours on loopback, in a process of its own, waits 30 ms before it answers. Indexes of
more and more shards of a corpus, of one segment and of one for each shard, are asked for items:
the index on disk, then the one in the store, opened with an empty cache (cold), and once more
(warm). The corpus lies on disk, and is read for the first time but for `warm`. All are medians.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bench_remote import LateHandler

from contam.benchmark.read_files import read_benchmarks
from contam.detect.indexed.index_reader import open_index
from contam.index import change
from contam.index.blocks import use_cache
from contam.index.build import build
from contam.index.open import Index
from tests.remote.s3 import put_folder
from tests.remote.server import running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.connection import Connection

_BUCKET: Final = "indexes"
_ITEMS: Final = 11
#: Shards of the smaller indexes.
_FEW: Final = (1, 2, 4)
_COLUMNS: Final = (
    ("segments", ".0f"), ("MB", ".1f"), ("open ms", ".0f"), ("requests", ".0f"), ("MB", ".1f"),
    ("disk ms", ".0f"), ("cold ms", ".0f"), ("requests", ".0f"), ("MB", ".1f"), ("warm ms", ".1f"),
    ("open again", ".0f"),
)  # fmt: skip


def serve(home: Path, ask: Connection) -> None:
    """Serve a folder as a bucket, and say how many requests came and how many bytes were asked."""
    with running(LateHandler) as store:
        files = [path for path in home.rglob("*") if path.is_file()]
        put_folder(
            store, _BUCKET, {str(path.relative_to(home)): path.read_bytes() for path in files}
        )
        ask.send(store.url)
        while ask.recv():
            ranges = [one.range for one in store.requests if one.range]
            ask.send((len(store.requests), sum(end + 1 - begin for begin, end in ranges) / 1e6))
            store.requests.clear()


def make_indexes(corpus: Path, home: Path) -> Iterator[Path]:
    """Indexes of some shards and of all, and one that has a segment for each."""
    shards = sorted(corpus.rglob("*.parquet"))
    for n_shards in (*_FEW, len(shards)):
        build(shards[:n_shards], home / f"whole-{n_shards}", workers=2)
        yield home / f"whole-{n_shards}"
    build(shards[:1], home / "cut", workers=2)
    for shard in shards[1:]:
        change.add(home / "cut", shard, workers=2)
    yield home / "cut"


def timed(work: Callable[[], object]) -> float:
    """Milliseconds that something takes."""
    begun = time.perf_counter()
    work()
    return 1e3 * (time.perf_counter() - begun)


def main() -> None:
    """Print a line for each index."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--items", required=True)
    given = parser.parse_args()
    os.environ |= {
        "AWS_ACCESS_KEY_ID": "nobody",
        "AWS_SECRET_ACCESS_KEY": "nothing",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    every = [item for one in read_benchmarks([given.items]) for item in one.items]
    items = every[:: max(1, len(every) // _ITEMS)][:_ITEMS]
    with tempfile.TemporaryDirectory() as folder:
        caches, home = Path(folder, "caches"), Path(folder, "indexes")
        home.mkdir()
        made = list(make_indexes(Path(given.corpus), home))
        ours, theirs = multiprocessing.Pipe()
        server = multiprocessing.get_context("spawn").Process(
            target=serve, args=(home, theirs), daemon=True
        )
        server.start()
        os.environ["AWS_ENDPOINT_URL"] = ours.recv()
        open_index(made[0]).check(items)  # compiles

        def asked() -> tuple[int, float]:
            ours.send(True)  # noqa: FBT003 - go on
            found: tuple[int, float] = ours.recv()
            return found

        print("".join(f"{name:>11}" for name, _ in _COLUMNS))
        for index in made:
            segments = Index.open(index).manifest.segments
            size = sum(file.n_bytes for one in segments for file in one.files) / 1e6
            address = f"s3://{_BUCKET}/{index.name}"
            rows = []
            for number, item in enumerate(items):
                use_cache(0, caches / f"{index.name}-{number}")
                disk = timed(partial(open_index(index).check, item))
                asked()
                opened = timed(partial(open_index, address)), *asked()
                reader = open_index(address)
                asked()
                cold = timed(partial(reader.check, item)), *asked()
                warm = timed(partial(reader.check, item))
                again = timed(partial(open_index, address))
                rows.append((len(segments), size, *opened, disk, *cold, warm, again))
            figures = zip(map(median, zip(*rows, strict=True)), _COLUMNS, strict=True)
            print("".join(f"{figure:11{form}}" for figure, (_, form) in figures))
        ours.send(False)  # noqa: FBT003 - stop
        server.join()


if __name__ == "__main__":
    main()
