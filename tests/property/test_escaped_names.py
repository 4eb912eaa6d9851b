"""One name spelt in two ways is one name: no reader of JSON takes the second and drops the first."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from contam.benchmark.read_files import read_benchmarks
from contam.corpus.batches import read_chunk
from contam.errors import BenchmarkError, LogError, ShardError
from contam.rescore.logs.read import read_logs
from contam.server.problems import RequestError
from contam.server.state import read_json
from tests.corpus_files import find_shards, plan_chunks, select_all
from tests.rescore.logs.small import lm_eval

BODY = TypeAdapter(dict)
COPY = "the lantern keeper climbs one hundred and ninety steps every evening"
SHORT = {"/": "\\/", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
GAPS = st.sampled_from(["", " ", "\t", "  ", "\r"])
NOISE = st.sampled_from(
    [
        "", '"text": "x"', "\\", ": a text that begins with a colon", '\\":', "a\u0000b",
        "\U0001f642 é",
    ]
)  # fmt: skip
#: Names a user may give to `--text`; a dot would lead into an object.
COLUMNS = st.one_of(
    st.sampled_from(["text", "content", "a/b", 'q"', "tab\t", "é", "\U0001f642", "back\\", " "]),
    st.text(
        st.characters(exclude_characters=".", exclude_categories=["Cs"]), min_size=1, max_size=6
    ),
)


@st.composite
def spelt(draw, text) -> str:
    """A JSON string that means `text`: each character raw, by its number, or by its short form."""
    parts = []
    for one in text:
        units = one.encode("utf-16-be")
        numbers = [f"{int.from_bytes(units[at : at + 2]):04x}" for at in range(0, len(units), 2)]
        by_number = "".join(
            f"\\u{number.upper() if draw(st.booleans()) else number}" for number in numbers
        )
        must = one in '"\\' or one < " "
        ways = [by_number]
        ways += [SHORT[one]] if one in SHORT else []
        ways += [f"\\{one}"] if one in '"\\' else [] if must else [one]
        parts.append(draw(st.sampled_from(ways)))
    whole = '"' + "".join(parts) + '"'
    assert json.loads(whole) == text
    return whole


@st.composite
def doubled(draw, name, first, second, *, more="") -> str:
    """An object with `name` twice, with other names and texts that look like names between."""
    noise = [
        f'"n{at}"{draw(GAPS)}:{draw(GAPS)}{json.dumps(draw(NOISE))}'
        for at in range(draw(st.integers(0, 3)))
    ]
    matches = [f"{draw(spelt(name))}{draw(GAPS)}:{draw(GAPS)}{one}" for one in (first, second)]
    listed = draw(st.permutations([*noise, *([more] if more else [])]))
    cut = draw(st.integers(0, len(listed)))
    return "{" + ",".join([matches[0], *listed[:cut], matches[1], *listed[cut:]]) + "}"


def texts_read(path, column):
    shards = find_shards([path])
    selections, failures = select_all(shards, column)
    units, more = plan_chunks(shards, selections)
    assert not failures
    assert not more
    for unit in units:
        for batch in read_chunk(unit, shards, selections):
            yield from (
                batch.data[a:b].tobytes()
                for a, b in zip(batch.offsets, batch.offsets[1:], strict=False)
            )


def refused_by_the_corpus(line, column, first):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.jsonl")
        path.write_text(f"{first}\n{line}\n", "utf-8")
        with pytest.raises(ShardError, match=r"line 2: .*occurs twice"):
            list(texts_read(path, column))


@given(st.data())
def test_a_text_column_spelt_twice_is_refused(data):
    column = data.draw(COLUMNS)
    line = data.draw(doubled(column, json.dumps(COPY), '"nothing"'))
    refused_by_the_corpus(line, column, json.dumps({column: "a text"}))


@given(st.data())
def test_a_usual_column_that_nobody_named_is_refused(data):
    column = data.draw(st.sampled_from(["text", "content", "question", "answer", "messages"]))
    line = data.draw(doubled(column, json.dumps(COPY), "null", more='"raw_text": "other"'))
    refused_by_the_corpus(line, None, json.dumps({"text": "a text"}))


@given(st.data())
def test_a_nested_text_and_a_text_within_json_are_refused(data):
    inner = data.draw(doubled("text", json.dumps(COPY), '"nothing"'))
    outer = data.draw(spelt("meta"))
    packed = json.dumps(inner) if data.draw(st.booleans()) else inner
    first = {"meta": '{"text": "a"}' if packed != inner else {"text": "a"}}
    refused_by_the_corpus(f"{{{outer}: {packed}}}", "meta.text", json.dumps(first))


@given(st.data())
def test_a_turn_of_a_chat_is_refused(data):
    key = data.draw(st.sampled_from(["content", "reasoning", "tool_calls"]))
    second = data.draw(st.sampled_from(['""', "null", '"nothing"', "[]"]))
    turn = data.draw(doubled(key, json.dumps(COPY), second, more='"role": "user"'))
    other = data.draw(st.sampled_from(["", '{"role": "tool", "reasoning": "x"},']))
    first = {"messages": [{"role": "user", "content": "a"}]}
    refused_by_the_corpus(f'{{"messages": [{other}{turn}]}}', None, json.dumps(first))


@given(st.data())
def test_what_a_tool_was_called_with_is_refused(data):
    call = data.draw(doubled("arguments", json.dumps(COPY), '""', more='"name": "f"'))
    turn = f'{{"role": "assistant", "tool_calls": [{{"function": {call}}}]}}'
    first = {"messages": [{"role": "user", "content": "a"}]}
    refused_by_the_corpus(f'{{"messages": [{turn}]}}', None, json.dumps(first))


@given(st.data())
def test_a_benchmark_and_a_body_are_refused(data):
    name = data.draw(st.sampled_from(["question", "answer", "id", "extra"]))
    more = "" if name == "question" else '"question": "How many steps?"'
    line = data.draw(doubled(name, json.dumps(COPY), '"nothing"', more=more))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "items.jsonl")
        path.write_text(f'{{"question": "Which is it?"}}\n{line}\n', "utf-8")
        with pytest.raises(BenchmarkError, match="occurs twice"):
            read_benchmarks([path])
    with pytest.raises(RequestError) as caught:
        read_json(BODY, f'{{"items": [{line}]}}'.encode())
    assert caught.value.status == 422


@given(st.data())
def test_choices_that_a_field_holds_as_json_are_refused(data):
    inner = data.draw(
        doubled("text", '["one", "two"]', '["three", "four"]', more='"label": ["A", "B"]')
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "items.jsonl")
        path.write_text(
            json.dumps({"question": "Which?", "choices": inner, "answer": "A"}), "utf-8"
        )
        with pytest.raises(BenchmarkError, match="occurs twice"):
            read_benchmarks([path])


@given(st.data())
def test_a_row_of_a_log_is_refused(data):
    with tempfile.TemporaryDirectory() as folder:
        path = lm_eval(Path(folder), [1, 0])
        first, second = path.read_text("utf-8").splitlines()
        name = data.draw(st.sampled_from(["acc", "doc_id", "doc"]))
        value = json.dumps(json.loads(second)[name])
        again = data.draw(spelt(name))
        assert second.startswith("{")
        path.write_text(f"{first}\n{{{again}: {value}, {second[1:]}\n", "utf-8")
        with pytest.raises(LogError, match=r":2: the field '.*' occurs twice"):
            read_logs([path])


@given(st.lists(st.tuples(COLUMNS, NOISE), max_size=4, unique_by=lambda pair: pair[0]), st.data())
def test_names_that_stand_once_are_read_whatever_stands_beside_them(matches, data):
    matches = [(name, noise) for name, noise in matches if name != "text"]
    spelling = [
        f"{data.draw(spelt(name))}{data.draw(GAPS)}:{json.dumps(noise)}" for name, noise in matches
    ]
    nested = '"meta": {"text": 1, "\\u0074ext2": 2}, "tags": [{"text": "x"}, {"text": "y"}]'
    line = (
        "{" + ",".join([f"{data.draw(spelt('text'))}: {json.dumps(COPY)}", nested, *spelling]) + "}"
    )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "a.jsonl")
        path.write_text(f"{line}\n", "utf-8")
        assert list(texts_read(path, "text")) == [COPY.encode()]
