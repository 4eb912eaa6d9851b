"""Columns inside structs, lists of turns and JSON text."""

import pyarrow as pa
import pytest

from contam.tables.blocks import texts_of
from contam.tables.chat import joined, turn_at, turns_of
from contam.tables.columns import ColumnRef, describe
from contam.tables.fields import as_text_block, take_rows, turns_at, values_at, wanted_leaves

CHATS = [
    [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello\nthere"}],
    None,
    [],
    [{"role": "system", "content": None}, {"role": "user", "content": "é 漢"}],
]
JOINED = ["Hi\nHello\nthere", "", "", "\né 漢"]


def batch_of(**columns):
    return pa.RecordBatch.from_pydict(columns)


def ref_of(batch, dotted):
    return next(ref for ref in describe(batch.schema) if ref.dotted == dotted)


def chat_array(kind=None, make=pa.list_):
    turn = pa.struct([("role", pa.string()), ("content", kind or pa.string())])
    plain = pa.array(CHATS, pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())])))
    return plain.cast(make(turn))


def test_nested_fields_are_listed_by_dotted_path():
    batch = batch_of(meta=[{"text": "a", "deep": {"url": "u"}}], n=[1])
    kinds = {ref.dotted: ref.kind for ref in describe(batch.schema)}
    assert kinds == {
        "meta": "struct",
        "meta.text": "text",
        "meta.deep": "struct",
        "meta.deep.url": "text",
        "n": "other",
    }


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary()]
)
@pytest.mark.parametrize("make", [pa.list_, pa.large_list])
def test_turns_are_joined_by_line_feeds(kind, make):
    batch = batch_of(messages=chat_array(kind, make))
    ref = ref_of(batch, "messages")
    assert ref.kind == "chat"
    block = as_text_block(batch, ref)
    assert texts_of(block) == JOINED
    assert block.n_null == 1


def test_a_slice_of_chats_joins_only_its_own_turns():
    batch = batch_of(messages=chat_array()).slice(1, 3)
    assert texts_of(as_text_block(batch, ref_of(batch, "messages"))) == JOINED[1:]


def test_dictionary_encoded_contents_are_joined():
    turns = pa.StructArray.from_arrays(
        [pa.array(["u", "a", "u"]), pa.array(["x", "y", "x"]).dictionary_encode()],
        names=["role", "content"],
    )
    chats = pa.ListArray.from_arrays(pa.array([0, 2, 3], pa.int32()), turns)
    batch = batch_of(messages=chats)
    assert texts_of(as_text_block(batch, ref_of(batch, "messages"))) == ["x\ny", "x"]


def test_undecodable_turns_are_repaired_alike_in_text_and_turns():
    turns = pa.StructArray.from_arrays(
        [pa.array(["u", "a"]), pa.array([b"x\xff", b"\xe6\xbc y"])], names=["role", "content"]
    )
    chats = pa.ListArray.from_arrays(pa.array([0, 2], pa.int32()), turns)
    batch = batch_of(messages=chats)
    ref = ref_of(batch, "messages")
    block = as_text_block(batch, ref)
    assert block.n_undecodable == 1
    assert texts_of(block) == [joined(turns_at(batch, ref, 0))]


@pytest.mark.parametrize(
    ("char", "turn"),
    [(0, "0:user"), (2, "0:user"), (3, "1:assistant"), (13, "1:assistant"), (15, None), (-1, None)],
)
def test_a_position_belongs_to_the_turn_it_lies_in(char, turn):
    assert turn_at(turns_of(CHATS[0]), char) == turn


def test_a_turn_that_is_no_message_is_an_error():
    with pytest.raises(ValueError, match="int"):
        turns_of([3])


def test_values_come_from_structs_json_text_and_damaged_bytes():
    batch = batch_of(
        meta=['{"url": "u1"}', "not json", None],
        info=[{"lang": "en"}, None, {"lang": None}],
        raw=[b"ok", b"\xff", None],
        nothing=pa.nulls(3),
    )
    refs = {ref.dotted: ref for ref in describe(batch.schema)}
    inside = type(refs["meta"])(("meta", "url"), "json", "JSON text", depth=1)
    assert values_at(batch, inside) == ["u1", None, None]
    assert values_at(batch, refs["info.lang"]) == ["en", None, None]
    assert values_at(batch, refs["raw"]) == ["ok", "\ufffd", None]
    assert values_at(batch, refs["nothing"]) == [None, None, None]


def test_wanted_rows_are_taken_across_batches_and_reading_stops_after_the_last():
    seen = []

    def batches():
        for begin in (0, 4, 8, 12):
            seen.append(begin)
            yield batch_of(n=list(range(begin, begin + 4)))

    taken = [
        (rows, batch.column(0).to_pylist())
        for rows, batch in take_rows(batches(), 100, [101, 103, 109])
    ]
    assert taken == [([101, 103], [1, 3]), ([109], [9])]
    assert seen == [0, 4, 8]


@pytest.mark.parametrize("level", ["list.element", "list.item", "bag.array_element"])
def test_a_chat_needs_only_the_leaves_of_its_contents(level):
    leaves = [
        "id",
        f"messages.{level}.content",
        f"messages.{level}.role",
        f"messages.{level}.tool_calls.list.element.arguments",
        f"messages.{level}.image.content",
    ]
    ref = ColumnRef(("messages",), "chat")
    assert wanted_leaves(leaves, ref) == (leaves[1], leaves[3])
    parts = [f"messages.{level}.content.list.element.{x}" for x in ("text", "type")]
    assert wanted_leaves([*parts, leaves[2]], ref) == tuple(parts)
    assert wanted_leaves(["messages"], ref) == ("messages",)


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.string_view(), pa.list_(pa.string_view())], ids=str
)
def test_rows_of_any_type_can_be_chosen(kind):
    values = ["a", None, "b" * 40, "c", "d"]
    if pa.types.is_list(kind):
        values = [[value] for value in values]
    batch = pa.RecordBatch.from_arrays([pa.array(values, kind)], names=["text"]).slice(1)
    for rows in ([], [0], [0, 1, 3], [0, 1, 2, 3]):
        found = list(take_rows([batch], 10, [10 + row for row in rows]))
        assert [row for numbers, _ in found for row in numbers] == [10 + row for row in rows]
        texts = [text for _, part in found for text in part["text"].to_pylist()]
        assert texts == [values[1 + row] for row in rows]
