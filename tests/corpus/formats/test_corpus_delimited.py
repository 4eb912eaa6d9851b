"""CSV and TSV shards: every row with the text that was written, or an error that names the line."""

import csv
import gzip

import pytest

from contam.corpus.formats import records
from contam.errors import ShardError
from tests.corpus_files import table

ROWS = [
    {"id": "1", "content": "plain", "text": "one, two"},
    {"id": "2", "content": "of\n\r\nthree lines", "text": ""},
    {"id": "3", "content": "", "text": 'with "quotes"\tand tabs\r'},
]


@pytest.mark.parametrize(("name", "delimiter"), [("a.csv", ","), ("a.tsv", "\t")])
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
def test_rows_are_read_whatever_ends_a_line(tmp_path, read_corpus, name, delimiter, ends):
    path = tmp_path / name
    with path.open("w", newline="", encoding="utf-8-sig") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator=ends)
        writer.writerows([["", "text"], *([at, row["text"]] for at, row in enumerate(ROWS))])
        file.write(ends * 2)  # blank lines are no rows
    corpus = read_corpus(tmp_path)
    assert corpus.texts == [[row["text"] for row in ROWS]]
    assert corpus.coverage.total.n_empty == 1
    assert corpus.coverage.total.n_null == 0


def test_a_row_without_a_text_is_read_from_the_next_usual_column(tmp_path, read_corpus):
    (tmp_path / "a.csv").write_bytes(table(ROWS))
    corpus = read_corpus(tmp_path)
    assert corpus.texts == [["one, two", "of\n\r\nthree lines", 'with "quotes"\tand tabs\r']]
    assert dict(corpus.coverage.total.columns) == {"text": 2, "content": 1}
    assert read_corpus(tmp_path, text="content").texts == [[row["content"] for row in ROWS]]


def test_bytes_that_are_not_utf8_are_replaced_and_counted(tmp_path, read_corpus):
    (tmp_path / "a.csv").write_bytes(b"text\nright\nna\xefve\xff\n")
    corpus = read_corpus(tmp_path)
    assert corpus.texts == [["right", "na\ufffdve\ufffd"]]
    assert corpus.coverage.total.n_undecodable == 1
    assert corpus.coverage.total.undecodable_bytes == 2


def test_a_long_cell_is_a_document(tmp_path, read_corpus):
    long = "word, " * 100_000
    (tmp_path / "a.csv").write_bytes(table([{"text": long}, {"text": "short"}]))
    assert read_corpus(tmp_path).texts == [[long, "short"]]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "no header"),
        (b"\n\n", "no header"),
        (b'text\n"open\nand never closed\n', "line 3: unexpected end of data"),
        (b'text\n"closed" too early\n', "line 2: ',' expected"),
        (b"id,text\n1,a\n2\n", "line 3: 1 cells where the header has 2"),
        (b"id,text\n1,a,b\n", "line 2: 3 cells where the header has 2"),
        (b"text,id,text\na,1,b\n", "line 1: the header names 'text' twice"),
        (b"x" * 201 + b"\nb\n", "line 1: no header"),
        (b"text\na\nb", "line 3: ends without a line break"),
        (b"text\na\rb\n", "line 2: new-line character seen in unquoted field"),
    ],
)  # fmt: skip
def test_a_table_that_cannot_be_understood_is_an_error(tmp_path, read_corpus, content, words):
    (tmp_path / "a.csv").write_bytes(content)
    with pytest.raises(ShardError, match=rf"^a\.csv.*{words}"):
        read_corpus(tmp_path)
    (tmp_path / "a.csv").unlink()
    (tmp_path / "b.csv.gz").write_bytes(gzip.compress(content))
    with pytest.raises(ShardError, match=rf"^b\.csv\.gz.*{words}"):
        read_corpus(tmp_path)


@pytest.mark.parametrize("content", [b"x" * 4000, b'"' + b"x\n" * 2000])
def test_a_row_without_end_is_refused(tmp_path, read_corpus, monkeypatch, content):
    monkeypatch.setattr(records, "MAX_RECORD_BYTES", 3000)
    limit = csv.field_size_limit(3000)
    try:
        (tmp_path / "a.csv").write_bytes(b"text\n" + content)
        with pytest.raises(ShardError, match=r"line 2: longer|field larger than field limit"):
            read_corpus(tmp_path)
    finally:
        csv.field_size_limit(limit)
