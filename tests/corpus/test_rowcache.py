"""Reading rows back: the text that was indexed or an error, in bounded memory, decoding little."""

from __future__ import annotations

import json
import threading
import zlib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from contam.corpus import rowcache
from contam.corpus.rowcache import IndexedShard, RowCache
from contam.corpus.shards import shard_digest
from contam.errors import ShardError
from contam.tables.blocks import TextBlock, texts_of
from tests.corpus_files import find_shards
from tests.integration.inputs import write_jsonl, write_parquet
from tests.waiting import wait_until

if TYPE_CHECKING:
    from contam.corpus.batches import DocBatch

ROWS_PER_GROUP = 10
GROUPS = 8
TEXTS = [f"row {row}: " + "lorem ipsum " * 200 for row in range(ROWS_PER_GROUP * GROUPS)]
GROUP_BYTES = sum(map(len, TEXTS)) // GROUPS
#: Three row groups and the documents of some more.
ROOM = 5 * GROUP_BYTES


@dataclass
class Reads:
    """Which row groups were decoded, in order, and how many documents came of them."""

    groups: list[int] = field(default_factory=list)
    documents: int = 0


@pytest.fixture
def reads(monkeypatch) -> Reads:
    seen = Reads()
    real = rowcache.read_chunk

    def counted(unit, *rest):
        seen.groups += unit.row_groups or (-1,)
        for batch in real(unit, *rest):
            seen.documents += batch.n_docs
            yield batch

    monkeypatch.setattr(rowcache, "read_chunk", counted)
    return seen


@pytest.fixture
def shard(tmp_path) -> Path:
    return write_parquet(tmp_path / "one.parquet", TEXTS, row_group_size=ROWS_PER_GROUP)


def cache(*paths: Path, capacity: int = ROOM) -> RowCache:
    shards = find_shards(paths)
    return RowCache(
        [IndexedShard(shard=one, digest=shard_digest(one), column=None) for one in shards],
        capacity=capacity,
    )


def ask(rows: RowCache, *wanted: int, number: int = 0, texts: list[str] = TEXTS) -> list[str]:
    """The documents in these rows, proved to be those of `texts`."""
    crcs = [zlib.crc32(texts[row].encode()) for row in wanted]
    found = rows.texts(number, np.array(wanted, np.int64), np.array(crcs, np.uint32))
    return [text.decode() for text in found]


def found_in(batch: DocBatch) -> list[str]:
    return texts_of(TextBlock(batch.data, batch.offsets, 0, 0, 0))


def stream(rows: RowCache, *wanted: int) -> list[str]:
    at = np.array(wanted, np.int64)
    crcs = np.array([zlib.crc32(TEXTS[row].encode()) for row in wanted], np.uint32)
    return [text for batch in rows.stream(0, at, crcs) for text in found_in(batch)]


@pytest.mark.parametrize("wanted", [(0,), (79,), (0, 9, 10, 33, 79), tuple(range(80))])
def test_rows_come_back_as_they_are_in_the_order_asked(shard, wanted):
    expected = [TEXTS[row] for row in wanted]
    rows = cache(shard)
    assert ask(rows, *wanted) == expected
    assert ask(rows, *wanted) == expected
    assert stream(rows, *wanted) == expected


def test_no_row_group_is_decoded_that_holds_none_of_the_rows(shard, reads):
    rows = cache(shard)
    ask(rows, 3, 7, 41)
    assert reads.groups == [0, 4]
    list(stream(rows, 15, 71, 72))
    assert reads.groups == [0, 4, 1, 7]


def test_what_is_kept_never_takes_more_than_the_room(shard):
    rows = cache(shard)
    generator = np.random.default_rng(5)
    most = 0
    for _ in range(300):
        wanted = np.unique(generator.integers(0, len(TEXTS), 4)).tolist()
        assert ask(rows, *wanted) == [TEXTS[row] for row in wanted]
        most = max(most, rows.n_bytes)
    assert ROOM / 2 < most <= ROOM


@pytest.mark.parametrize("kept", [True, False])
def test_a_shard_that_changes_while_it_is_open_is_an_error_and_nothing_kept_of_it_answers(
    tmp_path, kept
):
    path = write_parquet(tmp_path / "one.parquet", TEXTS, row_group_size=ROWS_PER_GROUP)
    other = write_parquet(tmp_path / "two.parquet", TEXTS, row_group_size=ROWS_PER_GROUP)
    rows = cache(path, other)
    if kept:
        ask(rows, 0, 1)
    ask(rows, 0, number=1)
    write_parquet(path, [text.upper() for text in TEXTS], row_group_size=ROWS_PER_GROUP)
    for _ in range(2):
        with pytest.raises(ShardError, match="changed since it was indexed"):
            ask(rows, 0)
        with pytest.raises(ShardError, match="changed since it was indexed"):
            stream(rows, 0)
    ask(rows, 1, number=1)
    path.unlink()
    with pytest.raises(ShardError, match="cannot be read"):
        ask(rows, 0)


def test_a_text_that_is_not_the_one_indexed_is_an_error_with_its_row(shard):
    rows = cache(shard)
    wrong = [*TEXTS[:12], "another text", *TEXTS[13:]]
    for _ in range(2):
        with pytest.raises(ShardError, match="row 12 changed"):
            ask(rows, 11, 12, 13, texts=wrong)
    with pytest.raises(ShardError, match="row 12 changed"):
        list(rows.stream(0, np.array([12]), np.array([1], np.uint32)))


@pytest.mark.parametrize("capacity", [ROOM, 0])
@pytest.mark.parametrize("name", ["one.parquet", "one.jsonl"])
def test_a_row_that_is_not_there_is_an_error(tmp_path, name, capacity):
    path = tmp_path / name
    if name.endswith("parquet"):
        write_parquet(path, TEXTS[:3])
    else:
        write_jsonl(path, [{"text": text} for text in TEXTS[:3]])
    rows = cache(path, capacity=capacity)
    with pytest.raises(ShardError, match="row 3 is not there"):
        ask(rows, 1, 3)
    with pytest.raises(ShardError, match="row 3 is not there"):
        stream(rows, 1, 3)


def test_lines_with_no_row_groups_are_read_back_with_and_without_room(tmp_path, reads):
    path = tmp_path / "one.jsonl"
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    for capacity in (0, 1 << 20):
        rows = cache(path, capacity=capacity)
        assert ask(rows, 2, 77) == [TEXTS[2], TEXTS[77]]
        assert ask(rows, 2, 77) == [TEXTS[2], TEXTS[77]]
    # Without room each time, with room once.
    assert len(reads.groups) == 3


def test_a_cached_row_group_is_read_on_from_where_it_was_left(tmp_path, reads, monkeypatch):
    monkeypatch.setattr(rowcache, "BATCH_BYTES", 2 * len(TEXTS[0]))
    rows = cache(write_parquet(tmp_path / "one.parquet", TEXTS), capacity=40 * GROUP_BYTES)
    assert ask(rows, 2) == [TEXTS[2]]
    assert reads.documents < 10
    assert ask(rows, 3, 41) == [TEXTS[3], TEXTS[41]]
    assert reads.documents < 50
    assert ask(rows, 40, 79) == [TEXTS[40], TEXTS[79]]
    assert (reads.groups, reads.documents) == ([0], len(TEXTS))


def test_a_row_group_counts_as_a_whole_until_all_of_it_is_read(tmp_path):
    texts = [f"row {row}: " + "lorem ipsum " * 40_000 for row in range(20)]
    path = write_parquet(tmp_path / "one.parquet", texts, row_group_size=20)
    rows = cache(path, capacity=100 << 20)
    ask(rows, 0, texts=texts)
    assert rows.n_bytes > sum(map(len, texts))
    ask(rows, 19, texts=texts)
    assert rows.n_bytes < 2 * sum(map(len, texts))


def test_an_error_half_way_is_told_to_all_who_wait_and_not_kept(tmp_path, monkeypatch):
    texts = [f"row {row}: " + "lorem ipsum " * 40_000 for row in range(20)]
    path = write_parquet(tmp_path / "one.parquet", texts, row_group_size=20)
    rows = cache(path, capacity=100 << 20)
    real, fail = rowcache.read_chunk, threading.Event()
    real_read, readers = rowcache._Group.read, []

    def interrupted(*given):
        yield next(real(*given))
        fail.wait()
        raise ShardError("{shard}: its store is busy", shard="one.parquet")

    def counted(*given):
        readers.append(given)
        real_read(*given)

    monkeypatch.setattr(rowcache, "read_chunk", interrupted)
    ask(rows, 0, texts=texts)
    monkeypatch.setattr(rowcache._Group, "read", counted)
    with ThreadPoolExecutor(2) as pool:
        asked = [pool.submit(ask, rows, 19, texts=texts) for _ in range(2)]
        wait_until(lambda: len(readers) == 2)
        monkeypatch.setattr(rowcache, "read_chunk", real)
        fail.set()
        for one in asked:
            with pytest.raises(ShardError, match="busy"):
                one.result()
    assert ask(rows, 19, texts=texts) == texts[19:]


def n_open() -> int:
    return len(list(Path("/dev/fd").iterdir()))


def test_few_files_stay_open_for_row_groups_that_are_not_read_to_their_end(tmp_path):
    texts = [f"row {row}: " + "lorem ipsum " * 1000 for row in range(4000)]
    path = write_parquet(tmp_path / "one.parquet", texts, row_group_size=25)
    before = n_open()
    rows = cache(path, capacity=45 << 20)
    for row in range(0, len(texts), 25):
        ask(rows, row, texts=texts)
    assert n_open() - before < 100
