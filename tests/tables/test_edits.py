"""Stretches are cut or masked where they stand; Arrow files keep all else."""

import re

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from packaging.version import Version
from pyarrow import ipc

from contam.errors import ShardError
from contam.files.listed import ListedPath, state_at
from contam.tables.blocks import texts_of
from contam.tables.columns import ColumnRef, TextColumns, describe
from contam.tables.edits import Edit, Rewrite, Rewritten, edited, edited_batch
from contam.tables.fields import as_text_block
from contam.tables.ipc import rewrite

#: Older releases do not read some columns of a file that has the framing of before Arrow 1.0.
READS_OLD_FILES = Version("25")

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
TURN = pa.struct(
    [
        pa.field("role", pa.dictionary(pa.int8(), pa.string())),
        pa.field("content", pa.string(), metadata={"of": "a turn"}),
        pa.field("n", pa.int8(), nullable=False),
    ]
)
ONE = {
    "string": pa.string(),
    "large_string": pa.large_string(),
    "binary": pa.binary(),
    "large_binary": pa.large_binary(),
    "struct": pa.struct([("n", pa.int32()), ("text", pa.string())]),
}
MANY = {
    "list": pa.list_(pa.string()),
    "large_list": pa.large_list(pa.large_string()),
    "three": pa.list_(pa.string(), 3),
    "chat": pa.list_(TURN),
    "large chat": pa.large_list(TURN),
}


def rows_of(leaves, name, kind):
    if name in MANY:
        if "chat" in name:
            leaves = [[{"role": "user", "content": leaf, "n": 1} for leaf in row] for row in leaves]
        return pa.array(leaves, kind)
    texts = [row[0] if row else None for row in leaves]
    if name.startswith("struct"):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        arrays = [
            pa.array(texts if field.name == "text" else [7] * len(texts), field.type)
            for field in fields
        ]
        return pa.StructArray.from_arrays(arrays, fields=fields)
    if "binary" in name:
        texts = [text if text is None else text.encode() for text in texts]
    return pa.array(texts, kind)


@st.composite
def spans_in(draw, length):
    cuts = sorted(draw(st.sets(st.integers(0, length), max_size=6)))
    return tuple(zip(cuts[::2], cuts[1::2], strict=False))


def by_slicing(leaves, spans, replacement):
    """Each leaf without the spans of the text that lie in it."""
    at, out = 0, []
    for leaf in leaves:
        inside = [(max(b, at) - at, min(e, at + len(leaf)) - at) for b, e in spans]
        out.append(edited(leaf, [span for span in inside if span[0] < span[1]], replacement))
        at += len(leaf) + 1
    return out


@pytest.mark.parametrize("name", [*ONE, *MANY])
@settings(max_examples=15)
@given(data=st.data())
def test_only_the_spans_change(name, data):
    kind = (ONE | MANY)[name]
    n_leaves = st.just(1) if name in ONE else st.integers(0, 4)
    n_leaves = st.just(3) if name == "three" else n_leaves
    leaves = data.draw(
        st.lists(n_leaves.flatmap(lambda n: st.lists(TEXT, min_size=n, max_size=n)), max_size=5)
    )
    replacement = data.draw(st.sampled_from([None, "", "#é"]))
    array = rows_of([*leaves, ["the last"] * 3], name, kind)
    column = pa.field("doc", kind, metadata={"a": "b"})
    schema = pa.schema([pa.field("id", pa.int64()), column], metadata={"k": "v"})
    whole = pa.RecordBatch.from_arrays([pa.array(range(len(array))), array], schema=schema)
    begin = data.draw(st.integers(0, len(leaves)))
    batch, leaves = whole.slice(begin, len(leaves) - begin), leaves[begin:]
    ref = next(
        r for r in describe(schema) if r.path[0] == "doc" and r.kind in ("text", "list", "chat")
    )

    edits, expected = [], []
    for row, texts in enumerate(leaves):
        spans = data.draw(spans_in(sum(map(len, texts)) + max(0, len(texts) - 1)))
        # A line feed between two turns is in none of them.
        spans = tuple(s for s in spans if by_slicing(texts, [s], None) != texts)
        drop = data.draw(st.booleans())
        edits.append(Edit(row, drop, spans))
        if not drop:
            expected.append((begin + row, by_slicing(texts, spans, replacement)))
    out = edited_batch(batch, Rewrite(edits, TextColumns(ref), replacement))
    out.validate(full=True)
    assert out.schema.equals(schema, check_metadata=True)
    assert out["id"].to_pylist() == [row for row, _ in expected]
    assert texts_of(as_text_block(out, ref)) == ["\n".join(texts) for _, texts in expected]
    if "chat" in name:
        turns = [[(turn["role"], turn["n"]) for turn in row] for row in out["doc"].to_pylist()]
        assert turns == [[("user", 1)] * len(texts) for _, texts in expected]


def one(value, kind=None, name="text"):
    return pa.RecordBatch.from_arrays([pa.array([value, value], kind)], names=[name])


def column_of(batch, dotted="text"):
    return TextColumns(next(ref for ref in describe(batch.schema) if ref.dotted == dotted))


def test_bytes_that_are_no_utf8_become_what_is_read_of_them():
    batch = one(b"ab\xe2\x82cd\xff", pa.binary())
    out = edited_batch(batch, Rewrite([Edit(1, False, ((3, 5),))], column_of(batch)))
    assert out["text"].to_pylist() == [b"ab\xe2\x82cd\xff", "ab\ufffd\ufffd".encode()]


def test_the_column_that_was_read_is_the_one_that_is_edited():
    batch = pa.record_batch(
        {
            "text": ["said here", "  ", None],
            "question": ["said here", "asked", None],
            "answer": ["said here", "ABCDEF", "only this"],
        }
    )
    text, question, answer = describe(batch.schema)
    group = ColumnRef(("question+answer",), "group", parts=(question, answer))
    edits = [Edit(0, False, ((0, 4),)), Edit(1, False, ((3, 8),)), Edit(2, False, ((5, 9),))]
    out = edited_batch(batch, Rewrite(edits, TextColumns(text, (group,)), "_"))
    assert out.to_pydict() == {
        "text": ["_ here", "  ", None],
        "question": ["said here", "ask_", None],
        "answer": ["said here", "_CDEF", "only _"],
    }
    sources = TextColumns(text, (group,), named=True)
    with pytest.raises(ValueError, match="outside a text"):
        edited_batch(batch, Rewrite([Edit(2, False, ((5, 9),))], sources, "_"))


@pytest.mark.parametrize("word", ["first", "second", "think", "called", "so"])
def test_what_stands_elsewhere_than_in_the_content_of_a_message_is_refused(word):
    parts = [{"type": "text", "text": "first part"}, {"type": "text", "text": "second"}]
    call = {"function": {"name": "run", "arguments": "called so"}}
    turn = {"role": "assistant", "content": parts, "reasoning": "think", "tool_calls": [call]}
    batch = one([turn, turn], name="messages")
    sources = column_of(batch, "messages")
    (text, _) = texts_of(as_text_block(batch, sources.first))
    found = tuple(match.span() for match in re.finditer(word, text))
    with pytest.raises(ValueError):
        edited_batch(batch, Rewrite([Edit(1, False, found)], sources, "_"))
    assert edited_batch(batch, Rewrite([Edit(1, True, found)], sources, "_")).num_rows == 1


def test_a_text_inside_json_in_a_column_is_refused():
    batch = one('{"a": {"text": "asked"}}', name="meta")
    sources = TextColumns(ColumnRef(("meta", "a", "text"), "json", depth=1))
    with pytest.raises(ValueError):
        edited_batch(batch, Rewrite([Edit(0, False, ((1, 4),))], sources))


@pytest.mark.parametrize("spans", [((0, 99),), ((3, 3),), ((4, 6), (2, 3)), ((-1, 2),)])
def test_spans_that_are_not_in_the_text_are_errors(spans):
    batch = one("some text")
    with pytest.raises(ValueError, match="outside a text"):
        edited_batch(batch, Rewrite([Edit(0, False, spans)], column_of(batch)))


LEAK = "the question that leaked"
SCHEMA = pa.schema(
    [
        pa.field("text", pa.string(), metadata={"of": "text"}),
        pa.field("kind", pa.dictionary(pa.int8(), pa.string())),
        pa.field("deep", pa.list_(pa.struct([("a", pa.float16()), ("b", pa.binary(2))]))),
    ],
    metadata={"whole": "schema"},
)
DOCUMENT = TextColumns(ColumnRef(("text",), "text"))


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
    with make(path, batches[0].schema, options=ipc.IpcWriteOptions(**options)) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return ListedPath(str(path), state_at(str(path)))


def batches_in(path, *, stream):
    if stream:
        with ipc.open_stream(path) as reader:
            return reader.schema, list(reader)
    with ipc.open_file(path) as reader:
        return reader.schema, [reader.get_batch(i) for i in range(reader.num_record_batches)]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "options",
    [{}, {"compression": "zstd"}, {"compression": "lz4"}, {"metadata_version": ipc.MetadataVersion.V4},
     {"use_legacy_format": True}],
    ids=str,
)  # fmt: skip
def test_batches_stay_as_they_are(tmp_path, stream, options):
    source = stored(tmp_path / "in", stream=stream, **options)
    if "use_legacy_format" in options and not stream and Version(pa.__version__) < READS_OLD_FILES:
        with pytest.raises(ShardError):
            rewrite(source, tmp_path / "out", Rewrite([], DOCUMENT, None))
        return
    edits = [Edit(0, True), Edit(3, False, ((7, 7 + len(LEAK)),)), Edit(5, True)]
    found = rewrite(source, tmp_path / "out", Rewrite(edits, DOCUMENT, "_"))
    assert found == Rewritten(6, 4, ("the compression level",) if "compression" in options else ())
    schema, left = batches_in(tmp_path / "out", stream=stream)
    assert schema.equals(SCHEMA, check_metadata=True)
    expected = [
        BATCHES[0].slice(1),
        BATCHES[1],
        batch_of(["c", "before _ after", "d"], [2, None, 0]),
    ]
    for one, batch in zip(left, expected, strict=True):
        assert one.equals(batch)
        assert one["kind"].dictionary.to_pylist() == ["x", "y", "z"]
    data = (tmp_path / "out").read_bytes()
    assert LEAK.encode() not in data
    # Written again without an edit it is the file it was.
    again = ListedPath(str(tmp_path / "out"), state_at(str(tmp_path / "out")))
    rewrite(again, tmp_path / "again", Rewrite([], DOCUMENT, None))
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
    found = rewrite(source, tmp_path / "out", Rewrite(edits, DOCUMENT, "_"))
    assert found == Rewritten(6, 5)
    _, left = batches_in(tmp_path / "out", stream=stream)
    assert [one["text"].to_pylist() for one in left] == [["a", "b"], ["a"], ["in _", "b"]]
    data = (tmp_path / "out").read_bytes()
    assert LEAK.encode() not in data
    assert data.count(b"unused") == 0


def test_a_stream_that_was_cut_or_a_file_that_changed_is_an_error(tmp_path):
    source = stored(tmp_path / "in", stream=True)
    (tmp_path / "cut").write_bytes((tmp_path / "in").read_bytes()[:-8])
    cut = ListedPath(str(tmp_path / "cut"), state_at(str(tmp_path / "cut")))
    with pytest.raises(ShardError, match="no end mark"):
        rewrite(cut, tmp_path / "a", Rewrite([Edit(0, True)], DOCUMENT, None))
    with pytest.raises(ShardError, match="no row 6"):
        rewrite(source, tmp_path / "b", Rewrite([Edit(6, True)], DOCUMENT, None))
    stored(tmp_path / "in", stream=True, batches=BATCHES[:1])
    with pytest.raises(ShardError, match="after it was listed"):
        rewrite(source, tmp_path / "c", Rewrite([Edit(0, True)], DOCUMENT, None))
