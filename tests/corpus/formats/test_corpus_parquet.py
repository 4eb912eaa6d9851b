"""Parquet shards: every writer's habits, and every way to be broken."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contam.corpus.batches import read_chunk
from contam.corpus.columns import select_columns
from contam.errors import CorpusError, ShardError
from tests.corpus_files import find_shards, plan_chunks

TEXTS = ["one", None, "", "naïve 漢字", "last"]
READ = ["one", "", "", "naïve 漢字", "last"]


def write(path, columns, **options):
    pq.write_table(columns if isinstance(columns, pa.Table) else pa.table(columns), path, **options)


@pytest.mark.parametrize("codec", ["zstd", "snappy", "gzip", "lz4", "brotli", "none"])
def test_every_compression(tmp_path, read_corpus, codec):
    write(tmp_path / "a.parquet", {"text": TEXTS}, compression=codec)
    corpus = read_corpus(tmp_path)
    assert corpus.texts == [READ]
    total = corpus.coverage.total
    assert (total.rows, total.n_null, total.n_empty) == (5, 1, 1)
    assert total.n_bytes == len("".join(READ).encode())
    assert corpus.coverage.complete


@pytest.mark.parametrize("schema_stored", [True, False])
@pytest.mark.parametrize(
    "form",
    [
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.binary(),
        pa.large_binary(),
        pa.dictionary(pa.int32(), pa.string()),
    ],
    ids=str,
)
def test_every_text_type(tmp_path, read_corpus, form, schema_stored):
    array = pa.array(TEXTS)
    array = array.dictionary_encode() if pa.types.is_dictionary(form) else array.cast(form)
    write(tmp_path / "a.parquet", {"text": array}, store_schema=schema_stored)
    assert read_corpus(tmp_path).texts == [READ]


def test_bytes_that_are_not_utf8_are_counted(tmp_path, read_corpus):
    raw = pa.array([b"ok", b"a\xffb", b"\xe6\xbc"], pa.binary())
    disguised = pa.Array.from_buffers(pa.string(), 3, raw.buffers())
    write(tmp_path / "a.parquet", {"text": raw})
    write(tmp_path / "b.parquet", {"text": disguised})
    corpus = read_corpus(tmp_path)
    assert corpus.texts == [["ok", "a\ufffdb", "\ufffd"]] * 2
    assert corpus.coverage.total.n_undecodable == 4
    assert corpus.coverage.total.undecodable_bytes == 6


def test_one_giant_row_group_is_streamed_in_small_batches(tmp_path):
    words = " ".join(f"word{i % 977}" for i in range(1500))
    texts = [f"{i} {words}" for i in range(8000)]
    write(tmp_path / "a.parquet", {"text": texts}, row_group_size=1 << 20)
    before = pa.total_allocated_bytes()
    shards = find_shards([tmp_path])
    selection = select_columns(shards[0])
    units, _ = plan_chunks(shards, selection)
    assert len(units) == 1
    rows = peak = 0
    for batch in read_chunk(units[0], shards, [selection]):
        rows += batch.n_docs
        peak = max(peak, pa.total_allocated_bytes() - before)
    assert rows == 8000
    assert sum(map(len, texts)) > 80 << 20
    assert peak < 40 << 20


@pytest.mark.slow
def test_long_repeated_documents_do_not_unpack_at_once(tmp_path):
    # A dictionary page holds such a document once: sizes in the footer say nothing.
    write(tmp_path / "a.parquet", {"text": ["word " * 200_000] * 300}, row_group_size=1000)
    shards = find_shards([tmp_path])
    selection = select_columns(shards[0])
    units, _ = plan_chunks(shards, selection)
    sizes = [batch.n_bytes for batch in read_chunk(units[0], shards, [selection])]
    assert sum(sizes) == 300 * 1_000_000
    assert max(sizes) <= 8 << 20


def test_a_wrong_column_lists_the_columns_seen(tmp_path):
    write(tmp_path / "a.parquet", {"body_html": ["x"], "n": [1]})
    shard = find_shards([tmp_path])[0]
    with pytest.raises(CorpusError, match=r"no column nope; columns seen: body_html \(string\), n"):
        select_columns(shard, "nope")
    with pytest.raises(CorpusError, match="no text column found; columns seen: body_html"):
        select_columns(shard)
    with pytest.raises(CorpusError, match="column n holds int64, not text"):
        select_columns(shard, "n")


def damaged(path, how):
    raw = path.read_bytes()
    if how == "empty":
        path.write_bytes(b"")
    elif how == "half":
        path.write_bytes(raw[: len(raw) // 2])
    elif how == "no end":
        path.write_bytes(raw[:-1])
    elif how == "footer":
        size = int.from_bytes(raw[-8:-4], "little")
        path.write_bytes(raw[: -8 - size] + bytes(size) + raw[-8:])
    elif how == "not parquet":
        path.write_bytes(b"<html>404</html>" * 10)
    elif how == "pages":
        path.write_bytes(raw[:4] + b"\x5a" * 3000 + raw[3004:])
    return path


@pytest.mark.parametrize("how", ["empty", "half", "no end", "footer", "not parquet", "pages"])
def test_a_damaged_file_is_an_error_that_names_it(tmp_path, how):
    texts = [f"{i} {'random text ' * (i % 7)}" for i in range(3000)]
    path = tmp_path / "bad.parquet"
    write(path, {"text": texts}, use_dictionary=False)
    damaged(path, how)
    shards = find_shards([tmp_path])

    def read_all():
        selection = select_columns(shards[0], "text")
        for unit in plan_chunks(shards, selection)[0]:
            list(read_chunk(unit, shards, [selection]))

    with pytest.raises(ShardError, match=r"bad\.parquet") as caught:
        read_all()
    assert caught.value.hint
    assert "\n" not in caught.value.message


def test_a_damaged_page_with_a_checksum_is_noticed(tmp_path):
    path = tmp_path / "bad.parquet"
    write(
        path,
        {"text": ["abcdefgh" * 100] * 50},
        use_dictionary=False,
        compression="none",
        write_page_checksum=True,
    )
    raw = path.read_bytes()
    middle = raw.index(b"abcdefgh", len(raw) // 2)
    path.write_bytes(raw[:middle] + b"X" + raw[middle + 1 :])
    shards = find_shards([tmp_path])
    selection = select_columns(shards[0])
    units, _ = plan_chunks(shards, selection)
    with pytest.raises(ShardError, match=r"bad\.parquet"):
        list(read_chunk(units[0], shards, [selection]))


def test_a_damaged_shard_beside_good_ones_is_a_named_failure(tmp_path, read_corpus):
    write(tmp_path / "1.parquet", {"text": ["a"]})
    write(tmp_path / "2.parquet", {"text": ["b"]})
    write(tmp_path / "3.parquet", {"n": [1]})
    damaged(tmp_path / "2.parquet", "half")
    corpus = read_corpus(tmp_path, failing=True)
    assert corpus.texts == [["a"], [], []]
    assert [failure.name for failure in corpus.coverage.failures] == ["2.parquet", "3.parquet"]
    assert corpus.coverage.shards_read == (0,)
    assert not corpus.coverage.complete
