"""Processor time of scanning a corpus in an object store, beside that of its copy in a folder.

    python benchmarks/bench_remote.py [MEGABYTES]

An S3 server of ours on loopback, in a process of its own, so that the figures are those of contam
alone. Both are scanned in turn in this process, after one scan that counts for nothing; the figures
are the least of several rounds.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import sys
import tempfile
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
from tests.remote.s3 import S3Handler, put_folder
from tests.remote.server import running

if TYPE_CHECKING:
    from collections.abc import Callable
    from multiprocessing.connection import Connection

_FIXTURES: Final = Path(__file__).resolve().parents[1] / "bench_fixtures"
_BUCKET: Final = "corpus"
_KINDS: Final = ("parquet", "plain", "jsonl")
_ROUNDS: Final = 5
_SHARDS: Final = 4


def serve(folder: Path, ask: Connection) -> None:
    """Serve a folder as a bucket until the other side says that it is done."""
    with running(S3Handler) as store:
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


def seconds(work: Callable[[str], object], corpus: str) -> float:
    """Processor seconds of all threads of this process."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    work(corpus)
    after = resource.getrusage(resource.RUSAGE_SELF)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def read(corpus: str) -> None:
    """Read all texts, as a scan does."""
    found = open_shards(survey([corpus], look=False)[0])
    for chunk in found.chunks:
        for _ in read_chunk(chunk, found.shards, found.selections):
            pass


def main() -> None:
    """Print processor seconds and ratios."""
    megabytes = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    os.environ |= {
        "AWS_ACCESS_KEY_ID": "nobody",
        "AWS_SECRET_ACCESS_KEY": "nothing",
        "AWS_EC2_METADATA_DISABLED": "true",
    }
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        write_corpus(folder, megabytes * 1_000_000)
        ours, theirs = multiprocessing.Pipe()
        server = multiprocessing.get_context("spawn").Process(target=serve, args=(folder, theirs))
        server.start()
        os.environ["AWS_ENDPOINT_URL"] = ours.recv()
        works: dict[str, Callable[[str], object]] = {
            "read": read,
            "scan": lambda corpus: scan(corpus, _FIXTURES / "items", workers=2),
        }
        print(f"{megabytes} MB of text; processor seconds, least of {_ROUNDS}")
        print("what  format    folder  bucket  ratio")
        for what, work in works.items():
            for kind in _KINDS:
                places = (str(folder / kind), f"s3://{_BUCKET}/{kind}")
                for place in places:
                    work(place)
                found = [[seconds(work, place) for place in places] for _ in range(_ROUNDS)]
                local, remote = (min(each[i] for each in found) for i in range(2))
                print(f"{what}  {kind:8}  {local:6.2f}  {remote:6.2f}  {remote / local:5.2f}")
        ours.send(None)
        server.join()


if __name__ == "__main__":
    main()
