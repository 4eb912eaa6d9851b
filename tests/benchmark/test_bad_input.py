"""What cannot be read is an error that names the file and the line, or a listed skip."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from contam.benchmark.read_files import read_benchmarks
from contam.errors import BenchmarkError

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import WriteRows

GOOD = b'{"question": "Which?", "answer": "this"}\n'

BAD_LINES: dict[str, tuple[bytes, str]] = {
    "cut off": (b'{"question": "Wh', "not valid JSON"),
    "not an object": (b'["Which?"]', "expected a JSON object, found a list"),
    "not UTF-8": (b'{"question": "Wh\xffich?"}', "not valid UTF-8"),
    "half a surrogate": (b'{"question": "\\ud800 Which?"}', "surrogate"),
    "two questions": (b'{"question": "Which?", "question": "Whose?"}',
        "the field 'question' occurs twice"),
    "two answers within": (b'{"q": [{"answer": NaN, "answer": 2}]}', "'q.0.answer' occurs twice"),
    "number as question": (b'{"question": 5, "answer": "x"}', "the question is the number 5"),
    "no question field": (b'{"headline": "Which?", "answer": "x"}', "'headline', 'answer'"),
    "number as choices": (b'{"question": "Q?", "choices": 3}', "the choices are the number 3"),
    "null choice": (b'{"question": "Q?", "choices": ["a", null]}', "a choice is null"),
    "uneven labels": (b'{"question": "Q?", "choices": {"text": ["a", "b"], "label": ["A"]}}',
        "as many labels as texts"),
    "text as choices": (b'{"question": "Q?", "choices": "a or b"}', "the choices are one text"),
    "answer out of range": (b'{"question": "Q?", "choices": ["a", "b"], "answer": 7}',
        "answer 7 is none of 2 choices"),
    "index out of range": (b'{"question": "Q?", "choices": ["a", "b"], "answer_index": 2}',
        "answer index 2 is none of 2 choices"),
    "index of a wrong type": (b'{"question": "Q?", "choices": ["a", "b"], "answer_index": 0.5}',
        "expected a whole number"),
    "list as id": (b'{"id": ["a"], "question": "Q?"}', "the id is a list"),
}  # fmt: skip


def failure(path: Path | str) -> BenchmarkError:
    with pytest.raises(BenchmarkError) as caught:
        read_benchmarks([path])
    return caught.value


@pytest.mark.parametrize("case", BAD_LINES)
def test_bad_line_is_named(tmp_path: Path, case: str):
    line, reason = BAD_LINES[case]
    path = tmp_path / "m.jsonl"
    path.write_bytes(GOOD + b"\n" + line + b"\n")
    error = failure(path)
    assert str(error).startswith(f"{path}:3:")
    assert reason in str(error)


#: Name, content, and what the error says.
BAD_FILES = [
    ("m.json", b'[{"question": "Q?"}, 7]', "m.json, row 2: "),
    ("m.json", b'[\n{"question": "Q?"},\n{"question": }\n]', "m.json:3: "),
    ("m.json", b"[" * 100_000, "m.json"),
    ("m.csv", b"question,answer\nQ?,a\nWhy, oh why?,b\n", ":3: 3 cells, but the first row has 2"),
    ("m.csv", b'question,answer\nQ?,a\n"Why?,b\n', ":3: broken row"),
    ("m.csv", b"question,question\nQ?,a\n", "names 'question' twice"),
    ("m.csv", b"headline,reply\nQ?,a\n", "'headline', 'reply'"),
    ("m.csv", b"Which?,a,b,A\nWhy?,a,b,Z\n", "no field for the question"),
    ("m.csv", b"question,answer\nQ?,a\nK\xf6ln?,b\n", "m.csv:3: not valid UTF-8"),
    ("m.csv", b"question,answer\n", "holds no rows"),
    ("m.jsonl", b'{"question": ""}\n{"question": "\\n"}\n', "benchmark 'm' has no items"),
    ("notes.txt", b"hello", "cannot tell the format"),
    *((name, b"", name) for name in ("m.jsonl", "m.csv", "m.tsv", "m.json", "m")),
]


@pytest.mark.parametrize(("name", "content", "fact"), BAD_FILES)
def test_a_bad_file_is_named_with_what_is_wrong(
    tmp_path: Path, name: str, content: bytes, fact: str
):
    (tmp_path / name).write_bytes(content)
    assert str(tmp_path) in str(failure(tmp_path / name)) or "has no items" in fact
    assert fact in str(failure(tmp_path / name))


@pytest.mark.parametrize("suffix", [".jsonl.gz", ".jsonl.zst"])
def test_half_a_packed_member_is_no_benchmark(tmp_path: Path, suffix: str):
    lines = b"".join(GOOD.replace(b"Which", str(n).encode()) for n in range(5000))
    packed = (
        gzip.compress(lines)
        if suffix.endswith("gz")
        else zstandard.ZstdCompressor().compress(lines)
    )
    path = tmp_path / f"m{suffix}"
    path.write_bytes(packed[: len(packed) // 2])
    assert "damaged or ends early" in str(failure(path))


@pytest.mark.parametrize("name", ["m.parquet", "m.arrow"])
def test_damaged_table_is_named(tmp_path: Path, name: str):
    path = tmp_path / name
    pq.write_table(pa.table({"question": ["Q?"] * 1000}), path)
    path.write_bytes(path.read_bytes()[:-20])
    assert str(failure(path)).startswith(f"{path}: cannot read as ")


def test_wrong_type_in_a_table_names_the_row(tmp_path: Path):
    path = tmp_path / "m.parquet"
    pq.write_table(pa.table({"question": [3, 4]}), path)
    assert str(failure(path)) == f"{path}, row 1: the question is the number 3, expected a text"


def test_saved_dataset_with_a_part_missing_is_an_error(tmp_path: Path):
    (tmp_path / "state.json").write_text('{"_data_files": [{"filename": "data-0.arrow"}]}', "utf-8")
    assert "lacks its file data-0.arrow" in str(failure(tmp_path))


def test_what_a_folder_holds_besides_items_is_listed(tmp_path: Path, write_jsonl: WriteRows):
    write_jsonl("m.jsonl", [{"question": "Q?"}])
    (tmp_path / "README.md").write_text("hello", "utf-8")
    (tmp_path / ".hidden").write_text("hello", "utf-8")
    (tmp_path / "planted.json").write_text('{"m": [1, 2]}', "utf-8")
    (tmp_path / "void.jsonl").write_bytes(b"")
    (benchmark,) = read_benchmarks([tmp_path])
    assert {(row.source.rsplit("/", 1)[-1], row.line, row.reason) for row in benchmark.skipped} == {
        ("README.md", 0, "not a benchmark format"),
        ("planted.json", 0, "a JSON object without a list of items"),
        ("void.jsonl", 0, "the file holds no rows"),
    }


def test_empty_questions_are_listed(write_jsonl: WriteRows):
    path = write_jsonl("m.jsonl", [{"question": " "}, {"question": "Q?"}, {"question": None}])
    (benchmark,) = read_benchmarks([path])
    assert len(benchmark.items) == 1
    assert [(row.line, row.reason) for row in benchmark.skipped] == [
        (1, "empty question"),
        (3, "empty question"),
    ]
    assert benchmark.sources[0].n_rows == 3


def test_one_id_for_two_items_is_an_error_that_names_both(write_jsonl: WriteRows):
    path = write_jsonl("m.jsonl", [{"id": 1, "question": "Q?"}, {"id": 1, "question": "R?"}])
    error = failure(path)
    assert str(error) == f"{path}:2: id '1' was given to another item at {path}:1"
    assert "--map id=" in error.hint


def test_an_exact_repeat_is_listed(write_jsonl: WriteRows):
    row = {"id": 1, "question": "Q?", "answer": "a"}
    path = write_jsonl("m.jsonl", [row, row])
    (benchmark,) = read_benchmarks([path])
    assert len(benchmark.items) == 1
    assert [(skip.line, skip.reason) for skip in benchmark.skipped] == [
        (2, f"repeats item '1' of {path}:1")
    ]


@pytest.mark.parametrize(
    "suffix", [".jsonl", ".json", ".csv", ".tsv", ".parquet", ".arrow", ".jsonl.gz"]
)
@given(
    data=st.binary(max_size=60) | st.text('{}[]"question:,\n\t AB1', max_size=60).map(str.encode)
)
def test_rubbish_is_an_error_or_items_and_nothing_else(tmp_path_factory, suffix: str, data: bytes):
    path = tmp_path_factory.getbasetemp() / f"rubbish{suffix}"
    path.write_bytes(data)
    try:
        benchmarks = read_benchmarks([path])
    except BenchmarkError:
        return
    assert all(item.question.strip() for benchmark in benchmarks for item in benchmark.items)


@pytest.mark.parametrize("within", [False, True])
@pytest.mark.parametrize("kind", ["parquet", "arrow", "stream"])
def test_a_column_that_stands_twice_is_an_error(tmp_path: Path, kind: str, within: bool) -> None:
    texts = [pa.array(["one?"]), pa.array(["two?"])]
    names = ["question", "question"]
    if within:
        record = pa.StructArray.from_arrays(texts, names=names)
        texts, names = (
            [pa.array(["one?"]), pa.array([[{}]], pa.list_(record.type))],
            ["question", "x"],
        )
    table = pa.Table.from_arrays(texts, names=names)
    path = tmp_path / f"items.{'parquet' if kind == 'parquet' else 'arrow'}"
    if kind == "parquet":
        pq.write_table(table, path)
    else:
        new = pa.ipc.new_file if kind == "arrow" else pa.ipc.new_stream
        with new(path, table.schema) as writer:
            writer.write(table)
    assert "'question' occurs twice" in failure(path).message
