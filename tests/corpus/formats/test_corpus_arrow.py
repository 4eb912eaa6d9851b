"""Arrow IPC shards: file and stream format, whole, cut, and such as nobody here can read."""

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from packaging.version import Version
from pyarrow import feather, ipc

import contam
from contam.corpus.documents import read_metadata
from contam.errors import ShardError
from tests.corpus_files import read_texts

TABLE = pa.table(
    {
        "id": ["a", "b", "c", "d", "e", "f"],
        "text": ["one", None, "", "naïve 漢字", "five", "six"],
        "other": [[1], [2], [3], [4], [5], [6]],
    }
)
READ = ["one", "", "", "naïve 漢字", "five", "six"]


def write(path, table=TABLE, make=ipc.new_file, rows=2, **options):
    with make(path, table.schema, options=ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table, max_chunksize=rows)


@pytest.mark.parametrize("make", [ipc.new_file, ipc.new_stream])
@pytest.mark.parametrize("compression", [None, "zstd", "lz4"])
@pytest.mark.parametrize("rows", [1, 2, 100])
def test_file_and_stream(tmp_path, read_corpus, make, compression, rows):
    write(tmp_path / "a.arrow", make=make, rows=rows, compression=compression)
    corpus = read_corpus(tmp_path)
    assert corpus.texts == [READ]
    assert corpus.coverage.total.n_null == 1


@pytest.mark.parametrize("make", [ipc.new_file, ipc.new_stream])
@pytest.mark.parametrize(
    "form",
    [pa.large_string(), pa.string_view(), pa.binary(), pa.dictionary(pa.int32(), pa.string())],
    ids=str,
)
def test_every_text_type(tmp_path, read_corpus, make, form):
    text = TABLE["text"]
    text = text.dictionary_encode() if pa.types.is_dictionary(form) else text.cast(form)
    write(tmp_path / "a.arrow", pa.table({"text": text.unify_dictionaries()}), make)
    assert read_corpus(tmp_path).texts == [READ]


@pytest.mark.parametrize("make", [ipc.new_file, ipc.new_stream])
def test_chats(tmp_path, read_corpus, make):
    turns = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yo"}]
    write(tmp_path / "a.arrow", pa.table({"messages": [turns, None, turns[:1]]}), make)
    assert read_corpus(tmp_path).texts == [["Hi\nYo", "", "Hi"]]


@pytest.mark.parametrize("make", [ipc.new_file, ipc.new_stream])
def test_rows_are_found_again(tmp_path, read_corpus, make):
    write(tmp_path / "a.arrow", make=make)
    corpus = read_corpus(tmp_path)
    shard, selection = corpus.shards[0], corpus.selections[0]
    assert read_texts(shard, selection, [5, 0, 3]) == ["six", "one", "naïve 漢字"]
    assert [meta.document_id for meta in read_metadata(shard, selection, [5, 0, 3])] == [
        "f",
        "a",
        "d",
    ]


LONG = pa.table({"text": [f"document {i}" for i in range(40)]})
KIND = pa.table({"text": LONG["text"].combine_chunks(), "kind": ["a", "b"] * 20})
AS_DICTIONARY = pa.table({"text": KIND["text"], "kind": KIND["kind"].dictionary_encode()})


# Earlier releases of Arrow read files of before format 0.15 (2019) with all their columns only.
ALL_FILES_WITH_SOME_COLUMNS = Version("25")


@pytest.mark.parametrize("step", [36, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("table", [LONG, AS_DICTIONARY], ids=["plain", "dictionary"])
@pytest.mark.parametrize("old", [False, True], ids=["mark of 8", "mark of 4"])
@pytest.mark.parametrize("make", [ipc.new_file, ipc.new_stream])
def test_no_beginning_of_a_file_passes_for_the_whole(tmp_path, read_corpus, make, old, table, step):
    path = tmp_path / "a.arrow"
    write(path, table, make, rows=10, use_legacy_format=old)
    raw = path.read_bytes()
    if old and make is ipc.new_file and Version(pa.__version__) < ALL_FILES_WITH_SOME_COLUMNS:
        with pytest.raises(ShardError, match=r"a\.arrow"):
            read_corpus(tmp_path)
    else:
        assert read_corpus(tmp_path).texts == [LONG["text"].to_pylist()]
    for cut in range(0, len(raw), step):
        path.write_bytes(raw[:cut])
        with pytest.raises(ShardError, match=r"a\.arrow"):
            read_corpus(tmp_path)


def test_a_dictionary_at_the_end_is_no_end_mark(tmp_path, read_corpus):
    path = tmp_path / "a.arrows"
    options = ipc.IpcWriteOptions(emit_dictionary_deltas=True)
    starts = []
    with path.open("wb") as file, ipc.new_stream(file, AS_DICTIONARY.schema, options=options) as to:
        for values in ("ab", "abc"):
            starts.append(file.tell())
            kind = pa.array([values[-1]]).dictionary_encode()
            kind = pa.DictionaryArray.from_arrays(
                pa.array([len(values) - 1], kind.type.index_type), pa.array(list(values))
            )
            to.write_batch(pa.record_batch([["one"], kind], schema=AS_DICTIONARY.schema))
    raw = path.read_bytes()
    assert read_corpus(tmp_path).texts == [["one", "one"]]
    for cut in range(starts[1], len(raw)):
        path.write_bytes(raw[:cut])
        with pytest.raises(ShardError, match=r"a\.arrows"):
            read_corpus(tmp_path)


def test_streams_in_one_file_are_not_read_as_one(tmp_path, read_corpus):
    path = tmp_path / "a.arrows"
    write(path, make=ipc.new_stream)
    path.write_bytes(2 * path.read_bytes())
    with pytest.raises(ShardError, match="bytes follow the end mark") as caught:
        read_corpus(tmp_path)
    assert caught.value.hint


ITEMS = [
    {"question": "Who painted the weather vane of the mill at Varnholt blue in the dry summer?"}
]


@pytest.mark.filterwarnings("ignore:Feather V1")
def test_feather_of_version_1_is_not_read(tmp_path):
    feather.write_feather(pa.table({"text": ["a page"]}), tmp_path / "a.feather", version=1)
    (tmp_path / "b.jsonl").write_text('{"text": "a page"}\n')
    result = contam.scan(tmp_path, ITEMS)
    (failed,) = result.coverage["shards_failed"]
    assert "a.feather: cannot be read" in failed["reason"]
    assert result.counts()["items"]["contam"]["not_checkable"] == 1


@pytest.mark.parametrize("beside", [False, True])
def test_a_run_end_encoded_text_is_never_passed_over(tmp_path, beside):
    texts = pa.array([ITEMS[0]["question"]] * 3)
    columns = {"text": pc.run_end_encode(texts), **({"content": ["a page"] * 3} if beside else {})}
    table = pa.table(columns)
    with ipc.new_file(tmp_path / "a.arrow", table.schema) as file:
        file.write_table(table)
    with pytest.raises(contam.errors.CorpusError, match="run-end encoded") as caught:
        contam.scan(tmp_path, ITEMS)
    assert "run_end_decode" in caught.value.hint


def test_a_run_end_encoded_label_hinders_nobody(tmp_path):
    table = pa.table(
        {"text": ["a page"] * 3, "lang": pc.run_end_encode(pa.array(["en", "en", "fr"]))}
    )
    with ipc.new_file(tmp_path / "a.arrow", table.schema) as file:
        file.write_table(table)
    assert contam.scan(tmp_path, ITEMS).counts()["items"]["contam"]["clean"] == 1
