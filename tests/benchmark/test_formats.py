"""The same items come out of every file format and packing."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard

from contam.benchmark import jsonrows
from contam.benchmark.jsonrows import BOM
from contam.benchmark.looks import Look
from contam.benchmark.read_files import read_benchmarks
from contam.errors import BenchmarkError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from conftest import WriteRows

Rows = list[dict[str, object]]


def pairs(path: Path) -> list[tuple[str, str | None]]:
    (benchmark,) = read_benchmarks([path])
    return [(item.question, item.answer) for item in benchmark.items]


def expected(rows: Rows) -> list[tuple[str, str]]:
    return [(str(row["question"]), str(row["answer"])) for row in rows]


def jsonl(rows: Rows) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


PACKINGS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "": (".jsonl", bytes),
    "gzip": (".jsonl.gz", gzip.compress),
    "zstd": (".jsonl.zst", lambda data: zstandard.ZstdCompressor().compress(data)),
    "bzip2": (".jsonl.bz2", bz2.compress),
    "xz": (".jsonl.xz", lzma.compress),
}


@pytest.mark.parametrize("codec", PACKINGS)
def test_packed_lines_are_unpacked(tmp_path: Path, rivers: Rows, codec: str):
    suffix, pack = PACKINGS[codec]
    path = tmp_path / f"rivers{suffix}"
    path.write_bytes(pack(jsonl(rivers)))
    assert pairs(path) == expected(rivers)
    (benchmark,) = read_benchmarks([path])
    assert benchmark.name == "rivers"
    assert benchmark.sources[0].format == ("jsonl+" + codec if codec else "jsonl")
    assert benchmark.sources[0].size == path.stat().st_size


@pytest.mark.parametrize("codec", ["gzip", "zstd", "bzip2", "xz"])
def test_several_members_are_all_read(tmp_path: Path, rivers: Rows, codec: str):
    suffix, pack = PACKINGS[codec]
    path = tmp_path / f"rivers{suffix}"
    path.write_bytes(b"".join(pack(jsonl([row])) for row in rivers))
    assert pairs(path) == expected(rivers)


def test_packing_is_seen_from_the_bytes(tmp_path: Path, rivers: Rows):
    path = tmp_path / "rivers.jsonl"
    path.write_bytes(gzip.compress(jsonl(rivers)))
    assert pairs(path) == expected(rivers)


@pytest.mark.parametrize(
    "text",
    [
        "{rows}",
        "  {rows}\n",
        '{{"canary": "x", "examples": {rows}}}',
        '{{\n "version": 1,\n "data": {rows}\n}}',
    ],
)
@pytest.mark.parametrize("indent", [None, 1])
def test_json_lists_and_records_with_a_list(
    tmp_path: Path, rivers: Rows, text: str, indent: int | None
):
    path = tmp_path / "rivers.json"
    path.write_text(text.format(rows=json.dumps(rivers, indent=indent)), "utf-8")
    assert pairs(path) == expected(rivers)
    (benchmark,) = read_benchmarks([path])
    assert benchmark.sources[0].format == "json"
    assert [item.line for item in benchmark.items] == [1, 2, 3]


def test_byte_order_mark_and_blank_lines_are_no_items(tmp_path: Path, rivers: Rows):
    path = tmp_path / "rivers.jsonl"
    path.write_bytes(b"\xef\xbb\xbf\n" + jsonl(rivers).replace(b"\n", b"\r\n\r\n"))
    assert pairs(path) == expected(rivers)
    (benchmark,) = read_benchmarks([path])
    assert [item.line for item in benchmark.items] == [2, 4, 6]


def test_nested_squad_gives_one_item_a_question(tmp_path: Path):
    squad = {
        "version": "2.0",
        "data": [
            {
                "title": "Owls",
                "paragraphs": [
                    {
                        "context": "Owls hoot at night.",
                        "qas": [
                            {
                                "id": "a",
                                "question": "Who hoots?",
                                "answers": [{"text": "Owls", "answer_start": 0}],
                            },
                            {
                                "id": "b",
                                "question": "Who sings?",
                                "answers": [],
                                "is_impossible": True,
                            },
                        ],
                    }
                ],
            }
        ],
    }
    path = tmp_path / "squad_dev.json"
    path.write_text(json.dumps(squad), "utf-8")
    (benchmark,) = read_benchmarks([path])
    assert [(item.item_id, item.answer) for item in benchmark.items] == [("a", "Owls"), ("b", None)]
    assert {item.passage for item in benchmark.items} == {"Owls hoot at night."}


@pytest.mark.parametrize(
    ("suffix", "delimiter"), [(".csv", ","), (".csv", ";"), (".csv", "\t"), (".tsv", "\t")]
)
def test_quoted_cells_keep_delimiters_quotes_and_lines(tmp_path: Path, suffix: str, delimiter: str):
    cells = [
        ["id", "question", "answer"],
        ["7", 'A "dished"\nface, or; a\tflat one?', "flat"],
        ["8", "One more?", ""],
    ]
    sheet = io.StringIO(newline="")
    csv.writer(sheet, delimiter=delimiter).writerows(cells)
    path = tmp_path / f"faces{suffix}"
    path.write_bytes(b"\xef\xbb\xbf" + sheet.getvalue().encode())
    (benchmark,) = read_benchmarks([path])
    first, second = benchmark.items
    assert (first.item_id, first.question, first.answer, first.line) == (
        "7",
        'A "dished"\nface, or; a\tflat one?',
        "flat",
        2,
    )
    assert (second.item_id, second.answer, second.line) == ("8", None, 4)


def test_a_sheet_with_semicolons_and_names_of_its_own_is_told_by_its_first_row(tmp_path: Path):
    path = tmp_path / "fragen.csv"
    path.write_text('frage;antwort\nWas ist "rot", bitte?;der Mohn\nWo ist es;hier\n', "utf-8")
    with pytest.raises(BenchmarkError, match="'frage', 'antwort'"):
        read_benchmarks([path])
    (benchmark,) = read_benchmarks([path], mapping={"question": "frage"})
    assert [item.question for item in benchmark.items] == ['Was ist "rot", bitte?', "Wo ist es"]


def test_utf_16_sheet_is_read(tmp_path: Path):
    path = tmp_path / "m.csv"
    path.write_bytes("question,answer\nWo ist Köln?,am Rhein\n".encode("utf-16"))
    assert pairs(path) == [("Wo ist Köln?", "am Rhein")]


def test_mmlu_sheet_without_header_keeps_its_first_row(tmp_path: Path):
    path = tmp_path / "botany_test.csv"
    path.write_text(
        '"Which floats,\nand why?",moss,fern,"reed, dry",problem,C\nHow many?,0,4,2,6,B\n', "utf-8"
    )
    (benchmark,) = read_benchmarks([path])
    first, second = benchmark.items
    assert (benchmark.name, first.split) == ("botany", "test")
    assert first.choices == ("moss", "fern", "reed, dry", "problem")
    assert (first.answer, first.answer_index, first.line) == ("reed, dry", 2, 1)
    assert (second.answer, second.answer_index, second.line) == ("4", 1, 3)


def test_tsv_with_bare_quotes_is_read_as_written(tmp_path: Path):
    path = tmp_path / "m.tsv"
    path.write_text('question\tanswer\n"Hop" means?\tjump\n"Run means?\tflee\n', "utf-8")
    assert pairs(path) == [('"Hop" means?', "jump"), ('"Run means?', "flee")]


@pytest.mark.parametrize(
    "cell",
    [
        "['moss', \"owl's fern\"]",
        "['moss' \"owl's fern\"]",
        '["moss", "owl\'s fern"]',
        "A) moss B) owl's fern",
        "(A) moss; (B) owl's fern",
    ],
)
def test_choices_written_into_one_cell(tmp_path: Path, cell: str):
    sheet = io.StringIO(newline="")
    csv.writer(sheet).writerows([["question", "choices", "answer"], ["Which?", cell, "1"]])
    path = tmp_path / "m.csv"
    path.write_text(sheet.getvalue(), "utf-8")
    (benchmark,) = read_benchmarks([path])
    assert benchmark.items[0].choices == ("moss", "owl's fern")
    assert benchmark.items[0].answer == "owl's fern"


@pytest.mark.parametrize(
    "text_type",
    [pa.string(), pa.large_string(), pa.binary(), pa.dictionary(pa.int32(), pa.string())],
)
def test_parquet_reads_only_what_it_needs(tmp_path: Path, text_type: pa.DataType):
    table = pa.table(
        {
            "image": pa.array([b"\xff\xd8", None], pa.binary()),
            "question": pa.array(["Which?", "Who?"], pa.string()).cast(text_type),
            "choices": [
                {"text": ["a", "b"], "label": ["A", "B"]},
                {"text": ["c", "d"], "label": ["A", "B"]},
            ],
            "answerKey": ["B", None],
        }
    )
    path = tmp_path / "arcs" / "test-00000-of-00001.parquet"
    path.parent.mkdir()
    pq.write_table(table, path, row_group_size=1)
    (benchmark,) = read_benchmarks([tmp_path])
    first, second = benchmark.items
    assert (benchmark.name, first.split) == ("arcs", "test")
    assert (first.question, first.choices, first.answer, first.answer_index) == (
        "Which?",
        ("a", "b"),
        "b",
        1,
    )
    assert (second.choices, second.answer, second.line) == (("c", "d"), None, 2)


@pytest.mark.parametrize("kind", ["file", "stream"])
def test_arrow_files_and_streams(tmp_path: Path, rivers: Rows, kind: str):
    table = pa.Table.from_pylist(rivers)
    path = tmp_path / "rivers.arrow"
    new = pa.ipc.new_file if kind == "file" else pa.ipc.new_stream
    with new(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    assert pairs(path) == expected(rivers)


def save_dataset(folder: Path, rows: Rows, split: str, info: dict[str, object]) -> None:
    """What `Dataset.save_to_disk` leaves behind, in two data files."""
    folder.mkdir(parents=True)
    table = pa.Table.from_pylist(rows)
    names = [f"data-{part:05}-of-00002.arrow" for part in range(2)]
    for part, name in enumerate(names):
        with pa.ipc.new_stream(folder / name, table.schema) as writer:
            writer.write_table(table.slice(part * 2, 2))
    state = {"_data_files": [{"filename": name} for name in names], "_split": split}
    (folder / "state.json").write_text(json.dumps(state), "utf-8")
    (folder / "dataset_info.json").write_text(json.dumps(info), "utf-8")


def test_saved_dataset_takes_name_and_split_from_its_metadata(tmp_path: Path, rivers: Rows):
    save_dataset(
        tmp_path / "out",
        rivers,
        "validation",
        {"dataset_name": "rivers_qa", "config_name": "north"},
    )
    (benchmark,) = read_benchmarks([tmp_path / "out"])
    assert benchmark.name == "rivers_qa/north"
    assert [(item.split, item.line) for item in benchmark.items] == [
        ("validation", 1),
        ("validation", 2),
        ("validation", 1),
    ]
    assert len(benchmark.sources) == 2
    assert benchmark.skipped == ()


def test_saved_dataset_dict_keeps_its_splits_apart(tmp_path: Path, rivers: Rows):
    folder = tmp_path / "rivers"
    for split in ("train", "test"):
        save_dataset(
            folder / split, rivers, split, {"builder_name": "json", "config_name": "default-0a"}
        )
    (folder / "dataset_dict.json").write_text('{"splits": ["train", "test"]}', "utf-8")
    (benchmark,) = read_benchmarks([folder])
    assert benchmark.name == "rivers"
    assert [item.split for item in benchmark.items] == ["train"] * 3 + ["test"] * 3
    (only_test,) = read_benchmarks([folder], split="test")
    assert [item.split for item in only_test.items] == ["test"] * 3
    assert [row.reason for row in only_test.skipped] == [
        "2 rows of split 'train', not 'test'",
        "1 row of split 'train', not 'test'",
    ]


def test_every_format_gives_the_same_ids(tmp_path: Path, write_jsonl: WriteRows, rivers: Rows):
    lines = write_jsonl("a.jsonl", rivers)
    table = tmp_path / "b.parquet"
    pq.write_table(pa.Table.from_pylist(rivers), table)
    ids = [[item.item_id for item in read_benchmarks([path])[0].items] for path in (lines, table)]
    assert ids[0] == ids[1]


ROWS = [json.dumps({"id": n, "question": f"Which of {n} lanterns burns?"}).encode() for n in (1, 2)]
LINES = {
    "plain": b"\n".join(ROWS),
    "ended": b"\n".join(ROWS) + b"\n",
    "windows": b"\r\n".join(ROWS) + b"\r\n",
    "blank": b"\n  \n" + ROWS[0] + b"\n\n\n" + ROWS[1] + b"\n\n",
    "marked": BOM + b"\n".join(ROWS),
    "marked twice": b"\n".join([BOM + ROWS[0], BOM + ROWS[1]]),
    "no object": b"\n".join([*ROWS, b"[1]"]),
    "no JSON": b"\n".join([*ROWS, b"", b'{"question": ', *ROWS]),
    "twice": b"\n".join([*ROWS, b'{"question": "a", "question": "b"}']),
    "no text": b"\n".join([*ROWS, b'{"question": "\xff"}']),
    "same id": b"\n".join([*ROWS, b'{"id": 1, "question": "Another?"}', b"{"]),
    "number first": b"1\n" + ROWS[0],
}
WHOLE = {
    "nothing": b"",
    "one": ROWS[0],
    "list": b" [" + b",\n".join(ROWS) + b"]",
    "object": b'{"data": [\n' + b",\n".join(ROWS) + b"]}",
    "broken": b'{"question": \n' + ROWS[1],
    "gzip": gzip.compress(b"\n".join(ROWS)),
    "pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
}


def outcome(path) -> object:
    try:
        return read_benchmarks([path])[0]
    except BenchmarkError as error:
        return str(error)


@pytest.mark.parametrize("suffix", [".jsonl", ".json"])
@pytest.mark.parametrize("name", [*LINES, *WHOLE])
def test_lines_are_what_the_whole_file_is(tmp_path, monkeypatch, name, suffix):
    path = tmp_path / f"quiz{suffix}"
    path.write_bytes((LINES | WHOLE)[name])
    whole = outcome(path)
    monkeypatch.setattr(jsonrows, "_LONG_BYTES", 0)
    found = outcome(path)
    if isinstance(whole, str):
        assert found == whole
    else:
        assert list(found.items) == list(whole.items)
        assert (found.skipped, found.sources) == (whole.skipped, whole.sources)


def test_a_table_that_changes_while_it_is_read_is_an_error(tmp_path, monkeypatch):
    path, other = tmp_path / "quiz.parquet", tmp_path / "other"
    pq.write_table(pa.table({"question": ["who?", "where?"]}), path)
    real = Look.add

    def changing(self, row):
        other.write_bytes(path.read_bytes())
        other.replace(path)
        real(self, row)

    monkeypatch.setattr(Look, "add", changing)
    with pytest.raises(BenchmarkError, match=r"quiz\.parquet: was"):
        read_benchmarks([path])
