"""What scanning a corpus in an object store takes, beside its copy in a folder.

    python benchmarks/bench_remote.py [MEGABYTES]

An S3 server of ours on loopback, in a process of its own, so that the figures are those of contam
alone. Both are scanned in turn in this process, after one scan that counts for nothing; the figures
are the least of several rounds. Processor time first; then the time that passes where the store
answers late and sends slowly, also for many small shards.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from contam.corpus.batches import read_chunk
from contam.corpus.opening import open_shards
from contam.corpus.shards import survey
from contam.detect.scan import scan
from contam.tables import object_stores
from tests.remote.s3 import S3Handler, put_folder
from tests.remote.server import running

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection

    from tests.remote.server import Request

_FIXTURES: Final = Path(__file__).resolve().parents[1] / "bench_fixtures"
_BUCKET: Final = "corpus"
_KINDS: Final = ("parquet", "plain", "jsonl")
_ROUNDS: Final = 5
_SHARDS: Final = 4
#: A store that is late: seconds before it answers, and bytes a second that it sends.
_LATE_S: Final = 0.03
_SENT: Final = 80e6
_SMALL_SHARDS: Final = 200


class LateHandler(S3Handler):
    """Answers as a store does that is far away."""

    def answer(self, request: Request) -> None:
        """Wait, then answer."""
        n_bytes = request.range[1] - request.range[0] if request.range else 0
        time.sleep(_LATE_S + n_bytes / _SENT)
        super().answer(request)


def serve(folder: Path, ask: Connection, handler: type[S3Handler]) -> None:
    """Serve a folder as a bucket until the other side says that it is done."""
    with running(handler) as store:
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        put_folder(
            store,
            _BUCKET,
            {path.relative_to(folder).as_posix(): path.read_bytes() for path in files},
        )
        ask.send(store.url)
        ask.recv()


def write_corpus(folder: Path, n_bytes: int) -> None:
    """Shards of Parquet, packed and plain, and of packed JSON lines, each with its share."""
    found = pq.read_table(_FIXTURES / "corpus", columns=["text"])["text"].to_pylist()
    originals = [text for text in found if text]
    n_turns = 1 + n_bytes // sum(map(len, originals))
    texts = [f"entry {turn}\n{text}\n{turn}" for turn in range(n_turns) for text in originals]
    for kind in _KINDS:
        (folder / kind).mkdir()
    for number in range(_SHARDS):
        own = texts[number::_SHARDS]
        table = pa.table({"text": pa.array(own, pa.large_string())})
        name = f"part-{number}.parquet"
        pq.write_table(table, folder / "parquet" / name, compression="zstd", row_group_size=2_000)
        # The worst case: every byte of the text is fetched.
        pq.write_table(table, folder / "plain" / name, compression="none", row_group_size=2_000)
        packed = zstandard.compress(b"".join(orjson.dumps({"text": text}) + b"\n" for text in own))
        (folder / "jsonl" / f"part-{number}.jsonl.zst").write_bytes(packed)


def write_small_shards(folder: Path) -> None:
    """Many shards of a few documents."""
    rows = pq.read_table(_FIXTURES / "corpus").slice(0, 20)
    for number in range(_SMALL_SHARDS):
        pq.write_table(rows, folder / f"{number:03}.parquet")


def processor_s() -> float:
    """Processor seconds of all threads of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def taken(clock: Callable[[], float], work: Callable[[str], object], corpus: str) -> float:
    """What a clock says of reading or scanning a corpus."""
    before = clock()
    work(corpus)
    return clock() - before


def read(corpus: str) -> None:
    """Read all texts, as a scan does."""
    found = open_shards(survey([corpus], look=False)[0])
    for chunk in found.chunks:
        for _ in read_chunk(chunk, found.shards, found.selections):
            pass


def search(corpus: str) -> None:
    """Scan for a few items."""
    scan(corpus, _FIXTURES / "items", workers=2)


def compare(
    folder: Path,
    handler: type[S3Handler],
    clock: Callable[[], float],
    works: dict[str, Callable[[str], object]],
    kinds: tuple[str, ...],
) -> None:
    """Print what each work takes in a folder and in a bucket of such a store."""
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(
        target=serve, args=(folder, theirs, handler), daemon=True
    )
    server.start()
    os.environ["AWS_ENDPOINT_URL"] = ours.recv()
    # Another server is asked now.
    object_stores._stores.clear()  # noqa: SLF001 - nobody else moves a store
    print("what  format    folder  bucket  ratio")
    for what, work in works.items():
        for kind in kinds:
            places = (str(folder / kind), f"s3://{_BUCKET}/{kind}")
            for place in places:
                work(place)
            found = [[taken(clock, work, place) for place in places] for _ in range(_ROUNDS)]
            local, remote = (min(each[i] for each in found) for i in range(2))
            print(f"{what}  {kind:8}  {local:6.2f}  {remote:6.2f}  {remote / local:5.2f}")
    ours.send(None)
    server.join()


def main() -> None:
    """Print seconds and ratios."""
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    os.environ |= {
        "AWS_ACCESS_KEY_ID": "nobody",
        "AWS_SECRET_ACCESS_KEY": "nothing",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        write_corpus(folder, megabytes * 1_000_000)
        (folder / "small").mkdir()
        write_small_shards(folder / "small")
        print(f"{megabytes} MB of text; processor seconds, least of {_ROUNDS}")
        compare(folder, S3Handler, processor_s, {"read": read, "scan": search}, _KINDS)
        print(f"a store that answers after {_LATE_S} s and sends {_SENT / 1e6:.0f} MB a second; "
              f"seconds, least of {_ROUNDS}; small: {_SMALL_SHARDS} shards")  # fmt: skip
        compare(folder, LateHandler, time.perf_counter, {"scan": search}, (*_KINDS, "small"))


if __name__ == "__main__":
    main()
