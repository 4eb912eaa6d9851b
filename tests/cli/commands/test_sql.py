import json
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contam.detect.report import write_report
from contam.detect.scan import scan
from tests.cli.processes import assert_one_line_error, contam_here

QUESTION = (
    "How many copper kettles does the lighthouse keeper polish before the third bell rings out?"
)
TEXTS = (
    "Nothing to see here, only the usual words about weather and cheese.",
    f"Ünïcode first 🐚. {QUESTION} Eleven kettles.",
    None,
    "",
    f"Again: {QUESTION.upper()}",
)
QUOTES = (
    "select e.shard, e.row, substr(d.text, e.document_start + 1, e.document_end - e.document_start)"
    " as quoted from evidence e join documents d using (shard, row) order by e.shard, e.row"
)


def parquet(folder):
    table = pa.table({"doc_id": [7, 8, 9, 10, 11], "text": TEXTS, "url": ["u'0", *"abcd"]})
    pq.write_table(table, folder / "it's.parquet")


def binary(folder):
    texts = pa.array([None if t is None else t.encode() for t in TEXTS], pa.binary())
    pq.write_table(pa.table({"text": texts}), folder / "bytes.parquet")


def jsonl(folder):
    lines = [json.dumps({"text": text}) for text in TEXTS]
    (folder / "a.jsonl").write_text("\n".join([*lines[:2], "", *lines[2:]]) + "\n")


def chat(folder):
    turns = [
        [{"role": "user", "content": t or ""}, {"role": "bot", "content": "yes"}] for t in TEXTS
    ]
    pq.write_table(pa.table({"messages": turns}), folder / "chat.parquet")


@pytest.fixture
def make_result(tmp_path):
    def make(write):
        corpus = tmp_path / "corpus"
        corpus.mkdir()
        write(corpus)
        items = tmp_path / "kettles.jsonl"
        items.write_text(json.dumps({"id": "k1", "question": QUESTION, "answer": "Eleven"}) + "\n")
        write_report(scan(corpus, items, workers=1), tmp_path / "out")
        return tmp_path / "out", corpus

    return make


@pytest.mark.parametrize("write", [parquet, binary, jsonl, chat])
def test_a_span_of_the_evidence_quotes_the_text_of_its_document(make_result, write):
    folder, _ = make_result(write)
    process = contam_here("sql", folder, QUOTES, "--json")
    assert process.returncode == 0, process.stderr
    quoted = [row["quoted"] for row in json.loads(process.stdout)]
    assert QUESTION.removesuffix("?") in quoted
    assert QUESTION.upper().removesuffix("?") in quoted


@pytest.mark.parametrize("write", [parquet, jsonl])
def test_every_row_of_a_shard_is_a_document(make_result, write):
    folder, corpus = make_result(write)
    process = contam_here("sql", folder, "select row, text from documents order by row", "--json")
    rows = json.loads(process.stdout)
    n_lines = 6 if any(corpus.glob("*.jsonl")) else 5
    assert [row["row"] for row in rows] == list(range(n_lines))
    assert QUESTION in rows[1]["text"]


def test_metadata_and_csv(make_result):
    folder, _ = make_result(parquet)
    process = contam_here(
        "sql", folder, "select document_id, url from documents order by row", "--csv"
    )
    assert process.stdout.splitlines()[:3] == ["document_id,url", "7,u'0", "8,a"]


def test_verdicts_answer_though_the_corpus_is_gone(make_result):
    folder, corpus = make_result(parquet)
    next(corpus.iterdir()).unlink()
    process = contam_here("sql", folder, "select label from verdicts", "--json")
    assert json.loads(process.stdout) == [{"label": "contaminated"}]
    refused = contam_here("sql", folder, "select count(*) from Documents")
    assert_one_line_error(refused, 2, "gone")


def test_a_changed_shard_is_not_asked(make_result):
    folder, corpus = make_result(jsonl)
    with (corpus / "a.jsonl").open("a") as file:
        file.write('{"text": "more"}\n')
    assert_one_line_error(contam_here("sql", folder, "from documents"), 2, "has changed")


def test_a_wrong_query_says_what_there_is(make_result):
    folder, _ = make_result(parquet)
    process = contam_here("sql", folder, "select nonsense from verdicts")
    assert_one_line_error(process, 2, "nonsense", "views: verdicts")
    assert_one_line_error(contam_here("sql", folder, "select 1", "--json", "--csv"), 2, "exclude")
    assert_one_line_error(contam_here("sql", Path("/nowhere"), "select 1"), 2, "nowhere")


WRITING = (
    "copy (select 7) to 'v2.csv'",
    "COPY (select 7) TO 'v2.csv' (format csv)",
    "select 1; copy (select 7) to 'v2.csv'",
    "/* a */ copy verdicts to 'v2.csv' -- select",
    "explain analyze copy (select 7) to 'v2.csv'",
    "explain (analyze, format json) copy (select 7) to 'v2.csv'",
    "EXPLAIN /* a */ ANALYZE copy (select 7) to 'v2.csv'",
    "export database 'new'",
    "attach 'v2.csv' as other",
    "set log_query_path = 'v2.csv'",
    "pragma profile_output = 'v2.csv'",
    pytest.param(
        "pragma import_database('new')",
        marks=pytest.mark.skipif(
            not hasattr(duckdb.DuckDBPyRelation, "to_arrow_reader"),
            reason="older releases look for the folder while they parse, and fail there",
        ),
    ),
    "create table t as select 1",
    "install httpfs",
    "prepare p as copy (select 7) to 'v2.csv'",
)


@pytest.mark.parametrize("query", WRITING)
def test_a_query_writes_no_file_and_changes_none(make_result, tmp_path, monkeypatch, query):
    folder, _ = make_result(parquet)
    monkeypatch.chdir(tmp_path)
    Path("v2.csv").write_text("mine")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for more in ((), ("--json",), ("--out", "answer.csv"), ("--out", "answer.parquet")):
        assert_one_line_error(contam_here("sql", folder, query, *more), 2, "only read", "--out")
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    "query",
    [
        "explain select label from verdicts",
        "explain analyze select label from verdicts",
        "describe verdicts",
        "show tables",
        "summarize verdicts",
        "pragma table_info('verdicts')",
        pytest.param(
            "pivot verdicts on label using count(*)",
            marks=pytest.mark.skipif(
                not hasattr(duckdb.DuckDBPyRelation, "to_arrow_reader"),
                reason="older releases may spin for ever in the second half of a pivot",
            ),
        ),
        "set threads = 1; with v as (from verdicts) select label from v",
    ],
)
def test_every_query_that_reads_is_answered(make_result, query):
    folder, _ = make_result(parquet)
    assert json.loads(contam_here("sql", folder, query, "--json").stdout)


def test_times_with_a_zone_need_no_other_package(make_result):
    folder, _ = make_result(parquet)
    query = "select timestamptz '2020-01-01 00:00:00+02' as t, [t] as l, {'a': t} as s, 'x' as v"
    process = contam_here("sql", folder, f"set timezone = 'UTC'; {query}", "--json")
    assert process.returncode == 0, process.stderr
    shown = "2019-12-31 22:00:00+00:00"
    (row,) = json.loads(process.stdout)
    assert row == {"t": shown, "l": [shown], "s": {"a": shown}, "v": "x"}
    assert shown in contam_here("sql", folder, f"set timezone = 'UTC'; {query}").stdout
    far = contam_here("sql", folder, "select 'infinity'::timestamptz as t")
    assert_one_line_error(far, 2, "no calendar", "::varchar")


def test_a_query_that_fails_says_so_without_a_picture_of_it(make_result):
    folder, _ = make_result(parquet)
    for query in ("select label\nfrom verdict", "selec"):
        process = contam_here("sql", folder, query)
        assert_one_line_error(process, 2, "the query fails: ")
        assert not {"^", "LINE", "Traceback"} & set(process.stderr.replace("^^", " ^ ").split())


def test_text_cannot_steer_the_terminal(make_result):
    folder, _ = make_result(parquet)
    process = contam_here("sql", folder, "select chr(27) || '[31m' as x")
    assert "\x1b" not in process.stdout
    assert "<U+001B>[31m" in process.stdout


ANSWER = (
    "select row_number() over () as n, 'a,\"b' || chr(10) || 'ü\U0001f41a' as s, null::int as none,"
    " [1, 2] as l, {'x': 1.5} as d, date '2020-01-02' as day from range(3)"
)


def test_an_answer_is_written_as_the_name_of_its_file_says(make_result, tmp_path):
    folder, _ = make_result(parquet)
    for name in ("a.csv", "b.json", "c.parquet", "D.CSV"):
        done = contam_here("sql", folder, ANSWER, "--out", tmp_path / name)
        assert done.returncode == 0, done.stderr
        assert done.stdout == f"3 rows written to {tmp_path / name}\n"
    printed = contam_here("sql", folder, ANSWER, "--csv").stdout
    assert (tmp_path / "a.csv").read_bytes() == printed.encode()
    assert (tmp_path / "D.CSV").read_bytes() == printed.encode()
    shown = json.loads(contam_here("sql", folder, ANSWER, "--json").stdout)
    assert json.loads((tmp_path / "b.json").read_text()) == shown
    table = pq.read_table(tmp_path / "c.parquet")
    assert table["l"].to_pylist() == [[1, 2]] * 3
    assert [str(day) for day in table["day"].to_pylist()] == [row["day"] for row in shown]
    assert table["s"].to_pylist() == [row["s"] for row in shown]


def test_parquet_holds_every_row_of_a_large_answer(make_result, tmp_path):
    folder, _ = make_result(parquet)
    query = "select n, n * n as square from range(200000) t(n)"
    assert contam_here("sql", folder, query, "--out", tmp_path / "a.parquet").returncode == 0
    table = pq.read_table(tmp_path / "a.parquet")
    assert table["n"].to_pylist() == list(range(200_000))
    assert table["square"][-1].as_py() == 199_999**2


@pytest.mark.parametrize("form", ["csv", "json", "parquet"])
@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("selec", "the query fails"),
        ("/* nothing */", "no answer"),
        ("select error('half way') from range(3)", "half way"),
        ("from documents", "gone"),
    ],
)
def test_a_file_is_written_whole_or_not_at_all(make_result, tmp_path, form, query, words):
    folder, corpus = make_result(parquet)
    next(corpus.iterdir()).unlink()
    out = tmp_path / "answers" / f"answer.{form}"
    out.parent.mkdir()
    assert_one_line_error(contam_here("sql", folder, query, "--out", out), 2, words)
    assert list(out.parent.iterdir()) == []
    out.write_text("mine")
    refused = contam_here("sql", folder, query, "--out", out, "--overwrite")
    assert_one_line_error(refused, 2, words)
    assert_one_line_error(contam_here("sql", folder, "select 1", "--out", out), 1, "already")
    assert [path.read_text() for path in out.parent.iterdir()] == ["mine"]
    assert contam_here("sql", folder, "select 1", "--out", out, "--overwrite").returncode == 0
    assert out.read_bytes() != b"mine"


def test_what_would_lose_a_column_is_refused(make_result, tmp_path):
    folder, _ = make_result(parquet)
    query = "select 1 as a, 2 as a"
    for out in (("--json",), ("--out", tmp_path / "a.json"), ("--out", tmp_path / "a.parquet")):
        assert_one_line_error(contam_here("sql", folder, query, *out), 2, "two columns", "a")
    assert contam_here("sql", folder, query, "--csv").stdout == "a,a\n1,2\n"
    odd = contam_here("sql", folder, "select interval 1 day as i", "--out", tmp_path / "i.parquet")
    assert_one_line_error(odd, 2, "cannot be written as Parquet", "::varchar")
    assert_one_line_error(
        contam_here("sql", folder, "select 1", "--out", tmp_path / "a.xlsx"), 2, ".parquet"
    )
    assert not list(tmp_path.glob("a.*"))


@pytest.mark.parametrize("width", [20, 40, 80, 200])
@pytest.mark.parametrize("n_columns", [1, 3, 12])
def test_every_value_is_readable_at_any_width(make_result, width, n_columns):
    folder, _ = make_result(parquet)
    values = [f"value-{at}-{'x' * at}" for at in range(n_columns)]
    query = "select " + ", ".join(f"'{value}' as c{at}" for at, value in enumerate(values))
    text = contam_here("sql", folder, query, COLUMNS=str(width)).stdout
    for value in values:
        assert value in text


def test_a_table_that_is_too_wide_has_a_line_for_each_value(make_result):
    folder, _ = make_result(parquet)
    query = (
        "select 'left' as a, repeat('x', 60) as b, 7 as c union all select '', null, 8 order by 3"
    )
    wide = contam_here("sql", folder, query, COLUMNS="60").stdout
    rows = [block.splitlines() for block in wide.split("\n\n")]
    assert rows == [["a  left", f"b  {'x' * 60}", "c  7"], ["a", "b", "c  8"], ["2 rows"]]
    assert "left" in contam_here("sql", folder, query).stdout.splitlines()[2]
