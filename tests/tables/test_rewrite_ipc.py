"""Arrow IPC files and streams keep their batches, metadata, dictionaries and compression."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyarrow import ipc

from contam.errors import ShardError
from contam.files.listed import ListedPath, state_at
from contam.tables.columns import ColumnRef, TextColumns
from contam.tables.edits import Edit, Rewrite, Rewritten
from contam.tables.rewrite_ipc import rewrite

LEAK = "the question that leaked"
SCHEMA = pa.schema(
    [
        pa.field("text", pa.string(), metadata={"of": "text"}),
        pa.field("kind", pa.dictionary(pa.int8(), pa.string())),
        pa.field("deep", pa.list_(pa.struct([("a", pa.float16()), ("b", pa.binary(2))]))),
    ],
    metadata={"whole": "schema"},
)
TEXT = TextColumns(ColumnRef(("text",), "text"))


def batch_of(texts, kinds, schema=SCHEMA):
    deep = [[{"a": None, "b": b"xy"}], None] * len(texts)
    encoded = pa.DictionaryArray.from_arrays(pa.array(kinds, pa.int8()), ["x", "y", "z"])
    columns = [
        pa.array(texts, schema.field("text").type),
        encoded,
        pa.array(deep[: len(texts)], schema.field("deep").type),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


BATCHES = [
    batch_of(["a", "b"], [0, 1]),
    batch_of([], []),
    batch_of(["c", f"before {LEAK} after", "d"], [2, None, 0]),
    batch_of([LEAK], [1]),
]


def stored(path, *, stream=False, batches=BATCHES, **options):
    make = ipc.new_stream if stream else ipc.new_file
    more = {} if stream else {"metadata": {"of": "the file"}}
    with make(path, batches[0].schema, options=ipc.IpcWriteOptions(**options), **more) as writer:
        for number, batch in enumerate(batches):
            # Arrow cannot read it again where the metadata are of version 4.
            noted = None if "metadata_version" in options else {"number": str(number)}
            writer.write_batch(batch, custom_metadata=noted)
    return ListedPath(str(path), state_at(str(path)))


def batches_in(path, *, stream):
    if stream:
        with ipc.open_stream(path) as reader:
            found = []
            while True:
                try:
                    found.append(reader.read_next_batch_with_custom_metadata())
                except StopIteration:
                    return reader.schema, found
    with ipc.open_file(path) as reader:
        every = range(reader.num_record_batches)
        return reader.schema, [reader.get_batch_with_custom_metadata(i) for i in every]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "options",
    [{}, {"compression": "zstd"}, {"compression": "lz4"}, {"metadata_version": ipc.MetadataVersion.V4},
     {"use_legacy_format": True}],
    ids=str,
)  # fmt: skip
def test_batches_stay_as_they_are(tmp_path, stream, options):
    source = stored(tmp_path / "in", stream=stream, **options)
    edits = [Edit(0, True), Edit(3, False, ((7, 7 + len(LEAK)),)), Edit(5, True)]
    found = rewrite(source, tmp_path / "out", Rewrite(edits, TEXT, "_"))
    assert found == Rewritten(6, 4, ("the compression level",) if "compression" in options else ())
    schema, left = batches_in(tmp_path / "out", stream=stream)
    assert schema.equals(SCHEMA, check_metadata=True)
    if "metadata_version" not in options:
        assert [dict(one.custom_metadata)[b"number"] for one in left] == [b"0", b"1", b"2"]
    expected = [
        BATCHES[0].slice(1),
        BATCHES[1],
        batch_of(["c", "before _ after", "d"], [2, None, 0]),
    ]
    for one, batch in zip(left, expected, strict=True):
        assert one.batch.equals(batch)
        assert one.batch["kind"].dictionary.to_pylist() == ["x", "y", "z"]
    data = (tmp_path / "out").read_bytes()
    assert LEAK.encode() not in data
    head = data[8:12] if not stream else data[:4]
    assert (head == b"\xff\xff\xff\xff") is not bool(options.get("use_legacy_format"))
    if not stream:
        with ipc.open_file(tmp_path / "out") as reader:
            assert dict(reader.metadata) == {b"of": b"the file"}
    # Written again without an edit it is the file it was.
    again = ListedPath(str(tmp_path / "out"), state_at(str(tmp_path / "out")))
    rewrite(again, tmp_path / "again", Rewrite([], TEXT, None))
    assert (tmp_path / "again").read_bytes() == data


@pytest.mark.parametrize("stream", [False, True])
def test_what_was_taken_out_of_one_batch_is_in_the_dictionary_of_none(tmp_path, stream):
    schema = SCHEMA.set(0, pa.field("text", pa.dictionary(pa.int16(), pa.string())))
    values = pa.array(["a", LEAK, f"in {LEAK}", "unused", "b"])
    batches = [
        pa.RecordBatch.from_arrays(
            [pa.DictionaryArray.from_arrays(pa.array(places, pa.int16()), values),
             *batch_of(["-"] * len(places), [0] * len(places)).columns[1:]], schema=schema)
        for places in ([0, 4], [0, 1], [2, 4])
    ]  # fmt: skip
    source = stored(tmp_path / "in", stream=stream, batches=batches)
    edits = [Edit(3, True), Edit(4, False, ((3, 3 + len(LEAK)),))]
    found = rewrite(source, tmp_path / "out", Rewrite(edits, TEXT, "_"))
    assert found == Rewritten(6, 5)
    _, left = batches_in(tmp_path / "out", stream=stream)
    assert [one.batch["text"].to_pylist() for one in left] == [["a", "b"], ["a"], ["in _", "b"]]
    data = (tmp_path / "out").read_bytes()
    assert LEAK.encode() not in data
    assert data.count(b"unused") == 0


def test_a_stream_that_was_cut_or_a_file_that_changed_is_an_error(tmp_path):
    source = stored(tmp_path / "in", stream=True)
    (tmp_path / "cut").write_bytes((tmp_path / "in").read_bytes()[:-8])
    cut = ListedPath(str(tmp_path / "cut"), state_at(str(tmp_path / "cut")))
    with pytest.raises(ShardError, match="no end mark"):
        rewrite(cut, tmp_path / "a", Rewrite([Edit(0, True)], TEXT, None))
    with pytest.raises(ShardError, match="no row 6"):
        rewrite(source, tmp_path / "b", Rewrite([Edit(6, True)], TEXT, None))
    stored(tmp_path / "in", stream=True, batches=BATCHES[:1])
    with pytest.raises(ShardError, match="after it was listed"):
        rewrite(source, tmp_path / "c", Rewrite([Edit(0, True)], TEXT, None))
