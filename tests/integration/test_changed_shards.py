"""Shards that change while they are read: never counted as read, whatever the format or the moment.

Each case writes one shard, lets a command begin, changes the file at one exact moment, and looks at
what the command says of it.
"""

from __future__ import annotations

import csv
import gzip
import itertools
import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from pyarrow import ipc

from contam.audit import checks
from contam.audit.spec import AuditSpec, CorpusSpec
from contam.benchmark.read_files import read_benchmarks
from contam.corpus import opening
from contam.corpus.shards import shard_digest
from contam.detect import chunk_scan
from contam.detect import query as query_module
from contam.detect import scan as scan_module
from contam.detect.indexed import search
from contam.detect.match import matching
from contam.detect.query import query
from contam.detect.report import load_report
from contam.detect.scan import scan
from contam.index import build as build_module
from contam.index.change import add
from contam.index.open import Index
from contam.index.writing import intake
from tests.corpus_files import delimited, find_shards, wet_records
from tests.index.builds import build
from tests.integration.inputs import ABSENT, FILLER, QUESTION, labels, write_items
from tests.matrix import sampled

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from contam.detect.result import ScanResult

ROWS = 30
LATE = (
    "How many kites did the children of Vellmar fly above the salt marsh before the storm tore"
    " every last one of them away?"
)
assert len(FILLER) >= max(len(QUESTION), len(LATE)), "texts are padded to one length"


def texts(question: str, n: int = ROWS, seed: int = 0) -> list[str]:
    """Rows of one length; the last but one holds the question."""
    rows = [f"{seed * 1000 + row:06d} {FILLER}" for row in range(n)]
    rows[-2] = rows[-2][:7] + question
    return [row.ljust(7 + len(FILLER)) for row in rows]


BEFORE = texts(QUESTION)
AFTER = texts(LATE, seed=1)


def as_parquet(rows: list[str]) -> bytes:
    out = pa.BufferOutputStream()
    pq.write_table(
        pa.table({"text": rows}), out, row_group_size=10, compression="none", use_dictionary=False
    )
    return bytes(out.getvalue())


def as_lines(rows: list[str]) -> bytes:
    return b"".join(json.dumps({"text": row}).encode() + b"\n" for row in rows)


def as_gzip(rows: list[str]) -> bytes:
    parts = [as_lines(rows[at : at + 10]) for at in range(0, len(rows), 10)]
    return b"".join(gzip.compress(part, 0, mtime=0) for part in parts)


def as_zstd(rows: list[str]) -> bytes:
    """A frame for ten rows, each filled up to 2 kB by a frame that is skipped."""
    frames = []
    for at in range(0, len(rows), 10):
        frame = zstandard.compress(as_lines(rows[at : at + 10]))
        room = 2048 - len(frame) - 8
        frames.append(frame + b"\x50\x2a\x4d\x18" + room.to_bytes(4, "little") + bytes(room))
    return b"".join(frames)


def as_arrow(rows: list[str], opened: Callable = ipc.new_file) -> bytes:
    out = pa.BufferOutputStream()
    with opened(out, pa.schema({"text": pa.string()})) as writer:
        for at in range(0, len(rows), 10):
            writer.write_batch(pa.record_batch({"text": rows[at : at + 10]}))
    return bytes(out.getvalue())


def as_stream(rows: list[str]) -> bytes:
    return as_arrow(rows, ipc.new_stream)


def as_csv(rows: list[str]) -> bytes:
    return delimited(rows, quoting=csv.QUOTE_ALL)


def as_tsv(rows: list[str]) -> bytes:
    return delimited(rows, "\t", quoting=csv.QUOTE_ALL)


def as_wet(rows: list[str]) -> bytes:
    return b"".join(wet_records(rows))


def as_packed_wet(rows: list[str]) -> bytes:
    return b"".join(gzip.compress(record, 0, mtime=0) for record in wet_records(rows))


FORMATS: dict[str, Callable[[list[str]], bytes]] = {
    "shard.parquet": as_parquet, "shard.jsonl": as_lines, "shard.jsonl.gz": as_gzip,
    "shard.jsonl.zst": as_zstd, "shard.arrow": as_arrow, "shard.arrows": as_stream,
    "shard.csv": as_csv, "shard.tsv": as_tsv, "shard.warc.wet": as_wet,
    "shard.warc.wet.gz": as_packed_wet,
}  # fmt: skip


def write_in_place(path: Path, content: bytes) -> None:
    """The same file with other bytes."""
    with path.open("r+b") as file:
        file.write(content)
        file.truncate()


def same_size(path: Path) -> None:
    content = FORMATS[path.name](AFTER)
    assert len(content) == path.stat().st_size
    write_in_place(path, content)


def same_size_and_time(path: Path) -> None:
    times = path.stat().st_atime_ns, path.stat().st_mtime_ns
    same_size(path)
    os.utime(path, ns=times)


def other_size(path: Path) -> None:
    write_in_place(path, FORMATS[path.name](texts(LATE, 50, 1)))


def extended(path: Path) -> None:
    with path.open("ab") as file:
        file.write(FORMATS[path.name](texts(LATE, 10, 1)))


def cut_between_records(path: Path) -> None:
    content = FORMATS[path.name](BEFORE[:20])
    if path.suffix == ".arrows":
        content = content.removesuffix(b"\xff\xff\xff\xff\0\0\0\0")
    if path.suffix not in (".parquet", ".arrow"):
        assert path.read_bytes().startswith(content)
    write_in_place(path, content)


def renamed_over(path: Path) -> None:
    other = path.with_name(f"{path.name}.tmp")
    other.write_bytes(FORMATS[path.name](AFTER))
    assert other.stat().st_size == path.stat().st_size
    os.utime(other, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))
    other.replace(path)


def link_turned(path: Path) -> None:
    """What lies at the path is a link from now on, to a file elsewhere."""
    other = path.parent.parent / f"elsewhere-{path.name}"
    other.write_bytes(FORMATS[path.name](AFTER))
    path.unlink()
    path.symlink_to(other)


def removed(path: Path) -> None:
    path.unlink()


CHANGES = (
    same_size, same_size_and_time, other_size, extended, cut_between_records, renamed_over,
    link_turned, removed,
)  # fmt: skip


@dataclass
class World:
    """A corpus of one shard, and items: in it, in what replaces it, in neither."""

    path: Path
    items: Path
    index: Path
    digest: str
    size: int


@pytest.fixture(params=FORMATS)
def world(request, tmp_path) -> World:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    path = corpus / request.param
    path.write_bytes(FORMATS[path.name](BEFORE))
    # The clock of a file system ticks too slowly to tell this moment from the next.
    os.utime(path, ns=(1_700_000_000_000_000_000,) * 2)
    items = write_items(tmp_path / "items.jsonl", QUESTION, LATE, ABSENT)
    (shard,) = find_shards([corpus])
    return World(path, items, tmp_path / "ix", shard_digest(shard), shard.size_bytes)


@pytest.fixture
def small_units(monkeypatch) -> None:
    monkeypatch.setattr(opening, "CHUNK_BYTES", 2000)
    monkeypatch.setattr(search, "_UNIT_BYTES", 2000)


def before_call(monkeypatch, owner: object, name: str, act: Callable[[], None]) -> None:
    """Act once, just before the first call of a function."""
    real, todo = getattr(owner, name), iter([act])

    def acting(*args, **kwargs):
        for one in todo:
            one()
        return real(*args, **kwargs)

    monkeypatch.setattr(owner, name, acting)


def after_call(monkeypatch, owner: object, name: str, act: Callable[[], None]) -> None:
    """Act once, just after the first call of a function."""
    real, todo = getattr(owner, name), iter([act])

    def acting(*args, **kwargs):
        found = real(*args, **kwargs)
        for one in todo:
            one()
        return found

    monkeypatch.setattr(owner, name, acting)


SCAN_MOMENTS = {
    "planned, not opened": (before_call, scan_module, "scan_opened"),
    "a unit was read": (after_call, chunk_scan, "scan_chunk"),
    "within a unit": (after_call, matching.Matcher, "match"),
    "all units were read": (after_call, scan_module, "scan_chunks"),
}
QUERY_MOMENTS = {
    "indexed, not opened": (before_call, query_module.IndexSet, "open"),
    "opened, not read": (before_call, query_module, "query_opened"),
    "some rows were read": (after_call, matching.Matcher, "match"),
    "all rows were read": (after_call, query_module, "search"),
}
BUILD_MOMENTS = {
    "listed, not planned": (before_call, build_module.Intake, "of"),
    "planned, not opened": (after_call, build_module.Intake, "of"),
    "within a unit": (after_call, intake.Sampler, "sample"),
    "all units were read": (before_call, intake.IntakeReader, "_digest"),
}


def assert_not_read(result: ScanResult, world: World) -> None:
    """The shard is named as not read, nothing is called clean, and what is recorded fits."""
    coverage = result.coverage
    assert not result.complete
    assert [one["shard"] for one in coverage["shards_failed"]] == [world.path.name]
    assert all(one["reason"] for one in coverage["shards_failed"])
    assert "clean" not in labels(result).values()
    (recorded,) = result.run["inputs"]["shards"]
    assert (recorded["size_bytes"], recorded["digest"]) == (world.size, world.digest)


@pytest.mark.usefixtures("small_units")
@pytest.mark.parametrize(
    ("moment", "change"), sampled(5, itertools.product(SCAN_MOMENTS.values(), CHANGES))
)
def test_a_shard_that_changes_during_a_scan_was_not_read(world, moment, change, monkeypatch):
    hook, owner, name = moment
    hook(monkeypatch, owner, name, lambda: change(world.path))
    result = scan(world.path.parent, world.items, workers=1)
    assert_not_read(result, world)
    assert result.exit_code() == 4


@pytest.mark.usefixtures("small_units")
@pytest.mark.parametrize(
    ("moment", "change"), sampled(7, itertools.product(QUERY_MOMENTS.values(), CHANGES))
)
def test_a_shard_that_changes_during_a_query_was_not_read(world, moment, change, monkeypatch):
    build(world.path.parent, world.index)
    hook, owner, name = moment
    hook(monkeypatch, owner, name, lambda: change(world.path))
    result = query(world.index, world.items, workers=1)
    assert_not_read(result, world)


@pytest.mark.usefixtures("small_units")
@pytest.mark.parametrize(
    ("command", "moment", "change"),
    sampled(13, itertools.product(["build", "add"], BUILD_MOMENTS.values(), CHANGES)),
)
def test_a_shard_that_changes_while_it_is_indexed_is_not_indexed(
    world, command, moment, change, monkeypatch, tmp_path
):
    if command == "add":
        (tmp_path / "first.jsonl").write_bytes(as_lines(["the first shard of all", "and a row"]))
        build(tmp_path / "first.jsonl", world.index)
    hook, owner, name = moment
    hook(monkeypatch, owner, name, lambda: change(world.path))
    if command == "add":
        add(world.index, world.path.parent, workers=1)
    else:
        build(world.path.parent, world.index, workers=1)
    index = Index.open(world.index)
    assert [failure.name for failure in index.coverage().failures] == [world.path.name]
    (record,) = [shard for shard in index.manifest.shards if shard.name == world.path.name]
    assert record.failure
    assert record.size_bytes == world.size
    assert record.counts["rows"] == 0


@pytest.mark.parametrize("change", sampled(3, CHANGES))
def test_a_shard_that_changes_during_an_audit_was_not_read(world, change, monkeypatch, tmp_path):
    before_call(monkeypatch, checks, "scan_opened", lambda: change(world.path))
    corpus = CorpusSpec(name="corpus", paths=(str(world.path.parent),))
    items = read_benchmarks([world.items])
    cache = checks.StageCache(tmp_path / "pack", lambda _: None)
    checks.Checker(cache, workers=1).check("checks/corpus", "key", AuditSpec(), corpus, items)
    result = load_report(cache.folder / "checks/corpus")
    coverage = result.run["coverage"]
    assert [one["shard"] for one in coverage["shards_failed"]] == [world.path.name]
    assert "clean" not in labels(result).values()


@pytest.mark.usefixtures("small_units")
def test_a_corpus_that_stays_as_it_is_is_read_whole(world):
    build(world.path.parent, world.index)
    for result in (
        scan(world.path.parent, world.items, workers=1),
        query(world.index, world.items, workers=1),
    ):
        assert result.complete
        assert labels(result) == {"q0": "contaminated", "q1": "clean", "q2": "clean"}
