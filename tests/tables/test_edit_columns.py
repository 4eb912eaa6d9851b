"""Stretches of documents are cut or masked in the column, turn and field they stand in."""

from __future__ import annotations

import json
import re

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contam.tables.blocks import texts_of
from contam.tables.columns import ColumnRef, TextColumns, describe
from contam.tables.edit_columns import edited_batch
from contam.tables.edits import Edit, edited
from contam.tables.fields import as_text_block

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
    "string_view": pa.string_view(),
    "binary": pa.binary(),
    "large_binary": pa.large_binary(),
    "binary_view": pa.binary_view(),
    "encoded": pa.dictionary(pa.int8(), pa.string()),
    "struct": pa.struct([("n", pa.int32()), ("text", pa.string())]),
    "struct of encoded": pa.struct([("text", pa.dictionary(pa.int16(), pa.large_string()))]),
}
MANY = {
    "list": pa.list_(pa.string()),
    "large_list": pa.large_list(pa.string_view()),
    "list of encoded": pa.list_(pa.dictionary(pa.int32(), pa.string())),
    "three": pa.list_(pa.string(), 3),
    "chat": pa.list_(TURN),
    "large chat": pa.large_list(TURN),
}


def texts_of_type(texts, kind):
    if not pa.types.is_dictionary(kind):
        return pa.array(texts, kind)
    # Not every release makes a dictionary of large strings from Python's.
    encoded = pa.array(texts, kind.value_type).dictionary_encode()
    places = encoded.indices.cast(kind.index_type)
    return pa.DictionaryArray.from_arrays(places, encoded.dictionary)


def rows_of(leaves, name, kind):
    if name in MANY:
        if "chat" in name:
            leaves = [[{"role": "user", "content": leaf, "n": 1} for leaf in row] for row in leaves]
        return pa.array(leaves, kind)
    texts = [row[0] if row else None for row in leaves]
    if name.startswith("struct"):
        fields = [kind.field(i) for i in range(kind.num_fields)]
        arrays = [
            texts_of_type(texts, field.type)
            if field.name == "text"
            else pa.array([7] * len(texts), field.type)
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
    out = edited_batch(batch, TextColumns(ref), edits, replacement)
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


@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string()), pa.list_(pa.string())],
    ids=str,
)
def test_what_was_taken_out_is_not_in_the_file(kind):
    secret, other = "the question that leaked into this corpus", "a text that stays"
    values = [secret, other, f"before {secret} after"]
    if pa.types.is_list(kind):
        values = [[value] for value in values]
    batch = pa.RecordBatch.from_arrays([pa.array(values, kind)], names=["text"])
    edits = [Edit(0, True), Edit(2, False, ((7, 7 + len(secret)),))]
    out = edited_batch(batch, column_of(batch), edits, "[removed]")
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, out.schema) as writer:
        writer.write_batch(out)
    written = sink.getvalue().to_pybytes()
    assert secret.encode() not in written
    assert b"before [removed] after" in written
    assert other.encode() in written


def test_bytes_that_are_no_utf8_stay_as_they_are():
    raw = b"ab\xe2\x82cd\xff\xffe\xc3"
    batch = one(raw, pa.binary())
    read = texts_of(as_text_block(batch, column_of(batch).first))[0]
    assert read == "ab\ufffdcd\ufffd\ufffde\ufffd"
    for cut, left in (((3, 5), b"ab\xe2\x82\xff\xffe\xc3"), ((2, 3), b"abcd\xff\xffe\xc3"),
                      ((5, 7), b"ab\xe2\x82cde\xc3"), ((7, 9), b"ab\xe2\x82cd\xff\xff")):  # fmt: skip
        out = edited_batch(batch, column_of(batch), [Edit(1, False, (cut,))], None)
        assert out["text"].to_pylist() == [raw, left]


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
    out = edited_batch(batch, TextColumns(text, (group,)), edits, "_")
    assert out.to_pydict() == {
        "text": ["_ here", "  ", None],
        "question": ["said here", "ask_", None],
        "answer": ["said here", "_CDEF", "only _"],
    }
    with pytest.raises(ValueError, match="no code points"):
        edited_batch(
            batch, TextColumns(text, (group,), named=True), [Edit(2, False, ((5, 9),))], "_"
        )


def test_texts_inside_json_columns_keep_the_rest_of_the_json():
    written = '{"b": [1.50, "\\u00e9"], "a": {"text": "q\\u00e9\\n\\ud83d\\ude00z\\"!"}, "a ":0}'
    batch = one(written, name="meta")
    sources = TextColumns(ColumnRef(("meta", "a", "text"), "json", depth=1))
    out = edited_batch(batch, sources, [Edit(0, False, ((1, 4), (5, 6)))], "né")
    assert out["meta"].to_pylist() == [
        '{"b": [1.50, "\\u00e9"], "a": {"text": "qn\\u00e9zn\\u00e9!"}, "a ":0}', written,
    ]  # fmt: skip


def test_parts_of_messages_and_calls_of_tools_are_edited():
    turn = {
        "role": "assistant",
        "content": [{"type": "text", "text": "first part"}, {"type": "text", "text": "second"}],
        "reasoning": "think",
        "tool_calls": [{"function": {"name": "run", "arguments": "called so"}}],
    }
    batch = one([turn, turn], name="messages")
    sources = column_of(batch, "messages")
    (text, _) = texts_of(as_text_block(batch, sources.first))
    for word in ("first", "second", "think", "called"):
        found = [match.span() for match in re.finditer(word, text)]
        (before, after) = edited_batch(batch, sources, [Edit(1, False, tuple(found))], "_")[
            "messages"
        ].to_pylist()
        assert before == [turn, turn]
        assert after == json.loads(json.dumps([turn, turn]).replace(word, "_"))


@pytest.mark.parametrize("spans", [((0, 99),), ((3, 3),), ((4, 6), (2, 3)), ((-1, 2),)])
def test_spans_that_are_not_in_the_text_are_errors(spans):
    batch = one("some text")
    with pytest.raises(ValueError, match="no code points"):
        edited_batch(batch, column_of(batch), [Edit(0, False, spans)], None)


def test_a_full_dictionary_is_an_error():
    batch = pa.record_batch({"text": pa.array([f"t{i}" for i in range(128)])})
    batch = pa.RecordBatch.from_arrays(
        [batch["text"].dictionary_encode().cast(pa.dictionary(pa.int8(), pa.string()))],
        names=["text"],
    )
    out = edited_batch(batch, column_of(batch), [Edit(5, True)], None)
    assert len(out["text"].dictionary) == 127
    with pytest.raises(ValueError, match="no room"):
        edited_batch(batch, column_of(batch), [Edit(5, False, ((0, 1),))], "x")
