"""What an item costs where the index lies in a store: requests and time, as segments grow.

    python benchmarks/bench_index_remote.py --corpus PATH... --items PATH

An S3 server of ours on loopback, in a process of its own, waits 30 ms before it answers. Indexes of
parts of the corpus, of one segment or several, are opened with an empty cache, and asked for items
one after the other, each a first time (cold) and once more (warm); then opened once more. The texts
of the corpus lie on disk. Medians, but for the sizes.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.bench_remote import _LATE_S, _SENT
from contam.benchmark.read_files import read_benchmarks
from contam.detect.indexed.index_reader import open_index
from contam.index import change
from contam.index.blocks import use_cache
from contam.index.build import build
from contam.index.open import Index
from contam.tables import object_stores
from tests.remote.s3 import S3Handler, put_folder
from tests.remote.server import running

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from multiprocessing.connection import Connection

    from tests.remote.server import Request

_BUCKET: Final = "indexes"
_ITEMS: Final = 9
#: Shards of the smaller indexes.
_SHARDS: Final = (1, 2)


class LateHandler(S3Handler):
    """Answers as a store does that is far away."""

    def answer(self, request: Request) -> None:
        """Wait, then answer."""
        n_bytes = request.range[1] - request.range[0] if request.range else 0
        time.sleep(_LATE_S + n_bytes / _SENT)
        super().answer(request)


def serve(home: Path, ask: Connection) -> None:
    """Serve a folder as a bucket, and say how many requests came and how many bytes were asked."""
    with running(LateHandler) as store:
        files = sorted(path for path in home.rglob("*") if path.is_file())
        put_folder(
            store, _BUCKET, {str(path.relative_to(home)): path.read_bytes() for path in files}
        )
        ask.send(store.url)
        while ask.recv():
            ranges = [one.range for one in store.requests if one.range]
            ask.send((len(store.requests), sum(end + 1 - begin for begin, end in ranges)))
            store.requests.clear()


def indexes(corpus: Sequence[str], home: Path) -> Iterator[str]:
    """Indexes of more and more shards, of one segment and of one for each shard."""
    shards = [str(path) for one in corpus for path in sorted(Path(one).glob("*.parquet"))] or [
        *corpus
    ]
    for n_shards in [*_SHARDS, len(shards)]:
        build(shards[:n_shards], home / f"whole-{n_shards}", workers=2)
        yield f"whole-{n_shards}"
    name = f"cut-{len(shards)}"
    build(shards[:1], home / name, workers=2)
    for shard in shards[1:]:
        change.add(home / name, shard, workers=2)
    yield name


def _halves(rows: list[tuple[int, int]]) -> tuple[float, float]:
    """The medians of requests, and of the megabytes that they asked for."""
    counts, sizes = zip(*rows, strict=True)
    return statistics.median(counts), statistics.median(sizes) / 1e6


def timed(work: Callable[[], object]) -> float:
    """Milliseconds that something takes."""
    begun = time.perf_counter()
    work()
    return 1e3 * (time.perf_counter() - begun)


def main() -> None:
    """Print a line for each index."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--corpus", nargs="+", required=True)
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
        home = Path(folder)
        (home / "indexes").mkdir()
        names = list(indexes(given.corpus, home / "indexes"))
        ours, theirs = multiprocessing.Pipe()
        server = multiprocessing.get_context("spawn").Process(
            target=serve, args=(home / "indexes", theirs), daemon=True
        )
        server.start()
        os.environ["AWS_ENDPOINT_URL"] = ours.recv()
        object_stores._stores.clear()  # noqa: SLF001 - another server is asked now

        def requests() -> tuple[int, int]:
            ours.send(True)  # noqa: FBT003 - go on
            found: tuple[int, int] = ours.recv()
            return found

        print(
            "segments     MB  open: ms requests     MB  cold: ms requests     MB  warm: ms  again"
        )
        for name in names:
            record = Index.open(home / "indexes" / name).manifest.segments
            size = sum(file.n_bytes for one in record for file in one.files)
            open_index(home / "indexes" / name).check(items[0])
            address = f"s3://{_BUCKET}/{name}"
            opened, cold, warm, asked, at_open = [], [], [], [], []
            for number, item in enumerate(items):
                use_cache(0, home / "cache" / f"{name}-{number}")
                requests()
                opened.append(timed(partial(open_index, address)))
                at_open.append(requests())
                reader = open_index(address)
                requests()
                cold.append(timed(partial(reader.check, item)))
                asked.append(requests())
                warm.append(timed(partial(reader.check, item)))
            again = timed(partial(open_index, address))
            figures = (
                *(len(record), size / 1e6, statistics.median(opened), *_halves(at_open)),
                *(statistics.median(cold), *_halves(asked), statistics.median(warm), again),
            )
            print("{:8} {:6.1f} {:9.0f} {:8.0f} {:6.1f} {:9.0f} {:8.0f} {:6.1f} {:9.1f} {:6.0f}"
                  .format(*figures))  # fmt: skip
        ours.send(False)  # noqa: FBT003 - stop
        server.join()


if __name__ == "__main__":
    main()
