"""Rows that have their text elsewhere, or in parts: nothing is skipped silently, in any format."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import ipc

from contam.corpus.columns import select_columns
from contam.corpus.documents import read_documents
from contam.errors import CorpusError, ShardError
from tests.corpus_files import find_shards, read_texts

FORMATS = ["parquet", "arrow", "stream", "jsonl"]


def store(folder, kind, records, *, rows=2, schema=None):
    """Write one shard in small row groups or batches."""
    path = folder / f"a.{'arrow' if kind == 'stream' else kind}"
    if kind == "jsonl":
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
        return path
    table = pa.Table.from_pylist(records, schema=schema)
    if kind == "parquet":
        pq.write_table(table, path, row_group_size=rows)
        return path
    make = ipc.new_file if kind == "arrow" else ipc.new_stream
    with make(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=rows)
    return path


def second_look(corpus):
    """Texts read again are those the scan saw; turns, where there are some, join to them."""
    shard, selection = corpus.shards[0], corpus.selections[0]
    rows = range(len(corpus.texts[0]))
    assert read_texts(shard, selection, rows) == corpus.texts[0]
    found = read_documents(shard, selection, rows)
    assert [one.text for one in found] == corpus.texts[0]
    for one in found:
        if one.turns is not None:
            assert "\n".join(turn.text for turn in one.turns) == one.text
    return found


MIXED = [
    {"text": "one", "content": "unused"},
    {"text": None, "content": "two"},
    {"text": "", "content": "three"},
    {"text": None, "content": None},
    {"text": "", "content": ""},
    {"text": " \n\t", "content": "six"},
    {"text": "  seven", "content": "unused"},
    {"text": None, "content": " "},
    {"text": "\n", "content": None},
]
READ = ["one", "two", "three", "", "", "six", "  seven", "", "\n"]


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("batch_bytes", [1, 7, 1 << 20])
def test_a_row_without_a_text_is_read_from_the_next_column(
    tmp_path, read_corpus, kind, batch_bytes
):
    store(tmp_path, kind, MIXED)
    corpus = read_corpus(tmp_path, batch_bytes=batch_bytes)
    assert corpus.texts == [READ]
    total = corpus.coverage.total
    assert (total.rows, total.n_null, total.n_empty) == (9, 2, 1)
    assert (total.n_moved, total.n_elsewhere) == (3, 0)
    assert dict(total.columns) == {"text": 3, "content": 3}
    found = second_look(corpus)
    assert [one.column for one in found] == [
        "", "content", "content", "", "", "content", "", "", "",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", FORMATS)
def test_a_column_the_user_named_is_kept_to_and_what_it_misses_is_counted(
    tmp_path, read_corpus, kind
):
    store(tmp_path, kind, MIXED)
    corpus = read_corpus(tmp_path, text="text")
    assert corpus.texts == [["one", "", "", "", "", " \n\t", "  seven", "", "\n"]]
    total = corpus.coverage.total
    assert (total.n_null, total.n_empty) == (3, 2)
    assert (total.n_moved, total.n_elsewhere) == (0, 3)
    assert dict(total.columns) == {"text": 4}
    second_look(corpus)


def test_a_key_that_the_first_lines_do_not_have_is_read(tmp_path, read_corpus):
    records = [{"text": f"row {i}"} for i in range(300)]
    late = [
        {"content": "late content"},
        {"messages": [{"role": "user", "content": "late turn"}]},
        {"prompt": "late prompt", "response": "late response"},
        {"body": 5, "code": {"a": 1}, "turns": [1, 2], "answer": "late answer"},
        {"title": "no text"},
    ]
    store(tmp_path, "jsonl", [*records, *late])
    corpus = read_corpus(tmp_path)
    assert corpus.texts[0][300:] == [
        "late content", "late turn", "late prompt\nlate response", "late answer", "",
    ]  # fmt: skip
    assert dict(corpus.coverage.total.columns) == {
        "text": 300, "content": 1, "messages": 1, "prompt+response": 1, "answer": 1,
    }  # fmt: skip
    assert corpus.coverage.total.n_null == 1
    assert second_look(corpus)[302].turn_at(12) == "1:response"


def test_a_chat_that_cannot_be_read_is_an_error_even_in_another_column(tmp_path, read_corpus):
    store(tmp_path, "jsonl", [{"text": "x"}, {"messages": ["hi", 5]}])
    with pytest.raises(ShardError, match="line 2: a turn is a int"):
        read_corpus(tmp_path)


@pytest.mark.parametrize("kind", ["parquet", "arrow", "stream"])
@pytest.mark.parametrize(
    "column",
    [
        pa.array(["", "b", None, "d"], pa.large_string()),
        pa.array(["", "b", None, "d"]).dictionary_encode(),
        pa.array([b"", b"b", None, b"d"], pa.binary()),
        pa.array([[], ["b"], None, ["", "d"]], pa.list_(pa.string())),
        pa.array(
            [[], [("u", "b")], None, [("u", None), ("a", "d")]],
            pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())])),
        ),
    ],
    ids=["large", "dictionary", "binary", "list", "chat"],
)
def test_other_columns_of_every_type(tmp_path, read_corpus, kind, column):
    table = pa.table({"text": pa.array([None, None, None, ""], pa.string()), "messages": column})
    if kind == "parquet":
        pq.write_table(table, tmp_path / "a.parquet", row_group_size=3)
    else:
        make = ipc.new_file if kind == "arrow" else ipc.new_stream
        with make(tmp_path / "a.arrow", table.schema) as writer:
            writer.write_table(table, max_chunksize=3)
    corpus = read_corpus(tmp_path)
    assert [text.lstrip("\n") for text in corpus.texts[0]] == ["", "b", "", "d"]
    assert corpus.coverage.total.n_moved == 2
    second_look(corpus)


def test_undecodable_bytes_in_another_column_are_counted(tmp_path, read_corpus):
    table = pa.table({"text": ["a", None], "content": pa.array([b"x", b"b\xffc"], pa.binary())})
    pq.write_table(table, tmp_path / "a.parquet")
    corpus = read_corpus(tmp_path)
    assert corpus.texts == [["a", "b\ufffdc"]]
    assert corpus.coverage.total.undecodable_bytes == 1


SFT = [
    ({"prompt": "p", "response": "r"}, ["prompt", "response"]),
    ({"instruction": "i", "input": "n", "output": "o"}, ["instruction", "input", "output"]),
    ({"question": "q", "answer": "a"}, ["question", "answer"]),
    ({"problem": "p", "solution": "s"}, ["problem", "solution"]),
    ({"system_prompt": "s", "question": "q", "response": "r"}, None),
    ({"inputs": "i", "targets": "t", "size": 4}, ["inputs", "targets"]),
    ({"query": "q", "response": "r", "type": "x"}, ["query", "response"]),
]


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize(("record", "names"), SFT)
def test_prompts_and_replies_are_joined_like_turns(tmp_path, read_corpus, kind, record, names):
    names = names or list(record)
    empty = dict.fromkeys(record, None)
    last = empty | {names[-1]: "only the last"}
    store(tmp_path, kind, [record, empty, last])
    corpus = read_corpus(tmp_path)
    joined = "\n".join(record[name] for name in names)
    assert corpus.texts == [[joined, "", "only the last"]]
    assert corpus.coverage.total.n_null == 1
    assert dict(corpus.coverage.total.columns) == {"+".join(names): 2}
    found = second_look(corpus)
    assert found[0].turn_at(len(joined) - 1) == f"{len(names) - 1}:{names[-1]}"
    assert found[2].turn_at(0) == f"0:{names[-1]}"


@pytest.mark.parametrize("kind", FORMATS)
def test_parts_may_be_lists_and_chats(tmp_path, read_corpus, kind):
    turn = {"role": "assistant", "content": "c"}
    records = [
        {"prompt": "p", "chosen": [turn, turn | {"content": ""}], "rejected": [turn]},
        {"prompt": "p", "chosen": [], "rejected": None},
    ]
    store(tmp_path, kind, records)
    corpus = read_corpus(tmp_path)
    assert corpus.texts == [["p\nc\n\nc", "p"]]
    assert second_look(corpus)[0].turn_at(2) == "1:chosen.assistant"


def test_a_part_that_appears_late_is_read(tmp_path, read_corpus):
    records = [{"instruction": f"i{n}", "output": "o"} for n in range(300)]
    store(tmp_path, "jsonl", [*records, {"instruction": "i", "input": "late", "output": "o"}])
    assert read_corpus(tmp_path).texts[0][-1] == "i\nlate\no"


def test_a_part_that_is_no_text_is_an_error_with_its_line(tmp_path, read_corpus):
    store(
        tmp_path,
        "jsonl",
        [{"prompt": "p", "response": "r"}, {"prompt": {"x": "y"}, "response": "r"}],
    )
    with pytest.raises(ShardError, match="line 2: prompt is a dict"):
        read_corpus(tmp_path)


@pytest.mark.parametrize("record", [{"prompt": "p"}, {"response": "r"}, {"question": "q", "n": 1}])
def test_half_a_pair_is_no_document_by_itself(tmp_path, record):
    path = store(tmp_path, "jsonl", [record])
    with pytest.raises(CorpusError, match="no text column found"):
        select_columns(find_shards([path])[0])


CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"q": "kites"}'}}
CHATS = [
    ([{"role": "assistant", "content": None, "tool_calls": [CALL]}], '{"q": "kites"}'),
    (
        [{"role": "assistant", "content": "say", "tool_calls": [CALL, CALL]}],
        'say\n{"q": "kites"}\n{"q": "kites"}',
    ),
    ([{"role": "user", "content": "hi", "tool_calls": None}], "hi"),
    ([{"role": "user", "content": "hi", "tool_calls": []}], "hi"),
    ([{"role": "assistant", "content": "x", "reasoning_content": "because"}], "x\nbecause"),
    (
        [
            {
                "role": "assistant",
                "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
            }
        ],
        "a\nb",
    ),
    ([{"from": "human", "value": "v"}, {"from": "gpt", "value": None}], "v\n"),
    ([{"role": "assistant", "tool_calls": [CALL]}], '{"q": "kites"}'),
    (
        [
            {
                "role": "a",
                "tool_calls": [{"function": {"name": "f", "arguments": {"q": "kites", "n": 3}}}],
            }
        ],
        "kites",
    ),
]


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize(("chat", "text"), CHATS)
def test_all_that_a_turn_says_is_its_text(tmp_path, read_corpus, kind, chat, text):
    store(
        tmp_path,
        kind,
        [{"messages": chat}, {"messages": []}, {"messages": None}, {"messages": chat}],
    )
    corpus = read_corpus(tmp_path)
    assert corpus.texts == [[text, "", "", text]]
    assert corpus.coverage.total.n_null == 1
    second_look(corpus)


def test_typed_parts_of_other_makers_are_text_in_json(tmp_path, read_corpus):
    content = [
        {"type": "thinking", "thinking": "hm"},
        {"type": "tool_use", "name": "look", "input": {"query": "kites"}},
        {"type": "tool_result", "content": [{"type": "text", "text": "found"}]},
        {"type": "image_url", "image_url": {"url": "u"}},
    ]
    store(tmp_path, "jsonl", [{"messages": [{"role": "assistant", "content": content}]}])
    assert read_corpus(tmp_path).texts == [["hm\nkites\nfound\n"]]


@pytest.mark.parametrize("kind", FORMATS)
def test_a_turn_whose_first_content_field_is_null_is_read_from_the_next(
    tmp_path, read_corpus, kind
):
    chat = [
        {"role": "user", "content": None, "value": "asked"},
        {"role": "bot", "content": "told", "value": None},
    ]
    store(tmp_path, kind, [{"messages": chat}])
    assert read_corpus(tmp_path).texts == [["asked\ntold"]]


@pytest.mark.parametrize("kind", ["parquet", "arrow", "stream"])
def test_damaged_bytes_beside_tool_calls_are_repaired(tmp_path, read_corpus, kind):
    turn = pa.struct(
        [("role", pa.binary()), ("content", pa.binary()), ("tool_calls", pa.list_(pa.binary()))]
    )
    chats = pa.array([[(b"a", b"x\xffy", [b"arg\xfe"])], None], pa.list_(turn))
    table = pa.table({"messages": chats})
    if kind == "parquet":
        pq.write_table(table, tmp_path / "a.parquet")
    else:
        make = ipc.new_file if kind == "arrow" else ipc.new_stream
        with make(tmp_path / "a.arrow", table.schema) as writer:
            writer.write_table(table)
    corpus = read_corpus(tmp_path)
    assert corpus.texts == [["x\ufffdy\narg\ufffd", ""]]
    assert corpus.coverage.total.undecodable_bytes == 2
    second_look(corpus)


def test_null_structs_and_nested_nulls(tmp_path, read_corpus):
    turn = pa.struct(
        [("role", pa.string()), ("content", pa.list_(pa.struct([("text", pa.string())])))]
    )
    chats = [
        [None, {"role": None, "content": [None, {"text": None}, {"text": "deep"}]}],
        [None],
        None,
    ]
    table = pa.table(
        {"text": pa.nulls(3, pa.string()), "messages": pa.array(chats, pa.list_(turn))}
    )
    pq.write_table(table, tmp_path / "a.parquet")
    corpus = read_corpus(tmp_path)
    assert corpus.texts == [["\n\n\ndeep", "", ""]]
    assert corpus.coverage.total.n_null == 3 - corpus.coverage.total.n_moved
    second_look(corpus)


ASK, SAY = "Which lantern burns longest?", "The red one, by two hours."
USER, ASSISTANT = {"role": "user", "content": ASK}, {"role": "assistant", "content": SAY}
STEP = {"thought": "Look for lanterns.", "action": "search[lantern]", "observation": "Four burn."}
#: A row, and the texts of it in order. `id` and numbers are never text.
SHAPES = {
    "a prompt of messages": ({"prompt": [USER], "ability": "math", "id": "1"}, [ASK]),
    "verl": (
        {"data_source": "x", "prompt": [USER], "reward_model": {"ground_truth": "4", "style": "rule"}},
        [ASK],
    ),
    "preferences as texts": ({"chosen": f"{ASK} {SAY}", "rejected": f"{ASK} No."}, [SAY, "No."]),
    "preferences as chats": ({"chosen": [USER, ASSISTANT], "rejected": [USER]}, [ASK, SAY, ASK]),
    "a list of texts": ({"id": "1", "data": [ASK, SAY]}, [ASK, SAY]),
    "a trajectory": ({"trajectory": [STEP, {**STEP, "thought": "Done."}]}, [*STEP.values(), "Done."]),
    "steps with a call": (
        {"steps": [{"thought": "Ask.", "action": {"name": "find", "args": {"q": "oldest lamp"}}}]},
        ["Ask.", "oldest lamp"],
    ),
    "a history of turns": ({"history": [USER, ASSISTANT]}, [ASK, SAY]),
}  # fmt: skip


@pytest.mark.parametrize("kind", ["parquet", "arrow", "jsonl"])
@pytest.mark.parametrize("shape", SHAPES)
def test_what_a_row_says_is_read_in_its_order(tmp_path, kind, shape, read_corpus):
    row, texts = SHAPES[shape]
    store(tmp_path, kind, [row] * 3)
    corpus = read_corpus(tmp_path)
    for text in corpus.texts[0]:
        at = 0
        for one in texts:
            at = text.index(one, at) + len(one)
    second_look(corpus)


@pytest.mark.parametrize("kind", ["parquet", "jsonl"])
def test_a_column_of_data_is_text_only_as_a_list(tmp_path, kind):
    path = store(tmp_path, kind, [{"data": "some words of anything", "n": 1}])
    (shard,) = find_shards([path])
    with pytest.raises(CorpusError, match="data"):
        select_columns(shard)


@pytest.mark.parametrize("named", ["chosen,rejected", "chosen+rejected"])
def test_several_columns_are_named_with_commas(tmp_path, named):
    row = {"prompt": "unused", "chosen": ASK, "rejected": SAY}
    (shard,) = find_shards([store(tmp_path, "parquet", [row])])
    assert read_texts(shard, select_columns(shard, named), [0]) == [f"{ASK}\n{SAY}"]
