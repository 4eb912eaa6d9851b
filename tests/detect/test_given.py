"""Rows and tables of a Python caller are read as the same rows in a file are."""

import json
import tempfile
from pathlib import Path
from textwrap import indent

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import contam
from contam.errors import BenchmarkError, CorpusError, UsageError
from tests.cli.processes import python

FIXTURES = Path(__file__).parents[2] / "bench_fixtures"
ROWS = [
    json.loads(line)
    for line in (FIXTURES / "items" / "lantern_quiz.jsonl").read_text("utf-8").splitlines()[:20]
]
ITEMS = [{name: row.get(name) for name in ("id", "question", "answer")} for row in ROWS]
DOCUMENTS = [
    {"text": "Nothing of interest.", "url": "u/none"},
    *({"text": f"Ask: {row['question']}", "url": f"u/{row['id']}"} for row in ITEMS[:9]),
]


class OnlyTheInterface:
    """A table of a package nobody knows, with the types of texts that Polars gives."""

    def __init__(self, rows):
        self._table = pa.Table.from_pylist(rows)
        # pyarrow 21 crashes when it is handed views of which a whole column is null.
        if int(pa.__version__.split(".")[0]) > 21:
            views = [pa.field(column.name, pa.string_view()) for column in self._table.schema]
            self._table = self._table.cast(pa.schema(views))

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


def pandas_frame(rows):
    return pytest.importorskip("pandas").DataFrame(rows)


def filtered_pandas_frame(rows):
    frame = pandas_frame([rows[0], *rows])
    return frame[frame.index > 0]


def polars_frame(rows):
    return pytest.importorskip("polars", reason="Polars is not installed").DataFrame(rows)


def dataset(rows):
    return pytest.importorskip("datasets", reason="datasets is not installed").Dataset.from_list(
        rows
    )


def filtered_dataset(rows):
    found = dataset([*rows, *rows])
    return found.select(range(len(rows), len(found)))


FORMS = {
    "rows": list,
    "a tuple of rows": tuple,
    "arrow": pa.Table.from_pylist,
    "chunked": lambda rows: pa.concat_tables(pa.Table.from_pylist([row]) for row in rows),
    "reader": lambda rows: pa.Table.from_pylist(rows).to_reader(max_chunksize=3),
    "the interface": OnlyTheInterface,
    "pandas": pandas_frame,
    "pandas, filtered": filtered_pandas_frame,
    "polars": polars_frame,
    "datasets": dataset,
    "datasets, filtered": filtered_dataset,
}


def written(result, folder):
    contam.write_report(result, folder)
    names = ("verdicts.parquet", "evidence.parquet", "items.parquet")
    return {name: (folder / name).read_bytes() for name in names}


@pytest.fixture(scope="module")
def from_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    # Without a suffix, as a table has none.
    pq.write_table(pa.Table.from_pylist(DOCUMENTS), folder / "documents")
    pq.write_table(pa.Table.from_pylist(ITEMS), folder / "items.parquet")
    result = contam.scan(
        folder / "documents", folder / "items.parquet", policies="contam,gpt3-test"
    )
    assert {verdict.label for verdict in result} >= {"contaminated", "clean"}
    return written(result, folder / "out")


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_a_table_gives_the_bytes_of_a_file_of_the_same_rows(form, from_files, tmp_path):
    result = contam.scan(form(DOCUMENTS), form(ITEMS), policies="contam,gpt3-test")
    assert written(result, tmp_path / "out") == from_files
    inputs = result.run["inputs"]
    assert inputs["corpus"] == [inputs["shards"][0]["uri"]] == ["memory:documents"]
    assert inputs["benchmarks"][0]["sources"][0]["path"] == "memory:items"


def test_equal_rows_are_recorded_alike_however_they_were_cut_and_made():
    forms = ("arrow", "chunked", "reader")
    found = [contam.scan(FORMS[name](DOCUMENTS), FORMS[name](ITEMS)).run for name in forms]
    assert found[0]["inputs"] == found[1]["inputs"] == found[2]["inputs"]


def test_tables_and_paths_are_searched_together_under_their_names(tmp_path):
    path = tmp_path / "filed.jsonl"
    path.write_text(json.dumps(DOCUMENTS[1]) + "\n")
    corpus = [path, pa.Table.from_pylist(DOCUMENTS[2:])]
    result = contam.scan(corpus, {"odd": ITEMS[1::2], "even": pa.Table.from_pylist(ITEMS[::2])})
    assert result.coverage["shards_read"] == 2
    assert {v.best_shard for v in result.flagged()} == {"filed.jsonl", "documents"}
    assert list(result.counts()) == ["even", "odd"]
    assert len(result) == len(ITEMS)


def test_a_data_set_has_its_name_and_splits():
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    splits = datasets.DatasetDict(train=dataset(ITEMS[:3]), test=dataset(ITEMS[3:5]))
    for name, given_splits in {"items": splits, "mine": {"mine": splits}}.items():
        found = [(v.benchmark, v.split) for v in contam.scan(DOCUMENTS, given_splits)]
        assert found == [(name, "test")] * 2 + [(name, "train")] * 3
    splits["test"].info.dataset_name, splits["test"].info.config_name = "lantern", "hard"
    assert list(contam.scan(DOCUMENTS, splits["test"]).counts()) == ["lantern/hard"]
    with pytest.raises(UsageError, match="stream"):
        contam.scan(DOCUMENTS, splits["test"].to_iterable_dataset())


QUESTION = "Which of the nine brass lanterns, did they say, was polished? "
FRAME = pa.Table.from_pylist(ITEMS)
WRONG = {
    "texts": (["What is a lantern?"], BenchmarkError, "no such benchmark"),
    "texts of lines": (["What is\na lantern?"], UsageError, "list of texts"),
    "a long text": ([QUESTION * 9], UsageError, "list of texts"),
    "a text of many words": ([QUESTION], UsageError, "list of texts"),
    "a table without rows": (FRAME[:0], BenchmarkError, "the table holds no rows"),
    "texts by name": ({"quiz": ["a", "b"]}, UsageError, "quiz, row 1 is a str"),
    "one row": (ITEMS[0], UsageError, "neither a table nor a list"),
    "a column by name": ({"quiz": 5}, UsageError, "quiz of the benchmark is an int"),
    "a text among rows": ([ITEMS[0], "text"], UsageError, "items, row 2 is a str"),
    "rows without a question": ([{"foo": 1}], BenchmarkError, "row 1: no field for the question"),
    "rows with bytes": ([ITEMS[0], {"question": b"x"}], UsageError, "items, row 2: "),
    "half a character": ([{"question": "\ud800"}], UsageError, "items, row 1: "),
    "no rows by name": ({"quiz": []}, UsageError, "quiz: there are no rows"),
    "no columns": (pa.table({}), UsageError, "no columns"),
    "no rows": (FRAME[:0], BenchmarkError, "no rows"),
    "doubled columns": (
        pa.Table.from_arrays([["a"], ["b"]], names=["question", "question"]),
        BenchmarkError,
        "occurs twice",
    ),
    "two without a name": ([FRAME, FRAME], UsageError, "two tables of the benchmark are called"),
    "no name": ({"": FRAME}, UsageError, "no printable name"),
    "a number": (5, UsageError, "holds an int"),
    "bytes": (b"text", UsageError, "holds a bytes"),
    "a column": (pa.chunked_array([["a"]]), UsageError, "cannot be read"),
}


@pytest.mark.parametrize(("benchmark", "kind", "message"), WRONG.values(), ids=WRONG)
def test_what_is_no_table_of_items_is_refused_and_named(benchmark, kind, message):
    with pytest.raises(kind, match=message) as caught:
        contam.scan(DOCUMENTS, benchmark)
    assert caught.value.message


def test_a_frame_of_mixed_types_and_a_column_of_a_frame_are_refused():
    frame = pandas_frame({"question": ["a", 1]})
    for wrong in (frame, frame.question, frame[[]]):
        with pytest.raises(UsageError, match="items"):
            contam.scan(DOCUMENTS, wrong)


def test_a_corpus_without_a_text_is_refused_and_a_row_without_one_is_counted():
    for wrong in ([{"text": None}], pa.table({"text": pa.array([None], pa.string())})):
        with pytest.raises(CorpusError, match="no text"):
            contam.scan(wrong, ITEMS)
    with pytest.raises(CorpusError, match="documents: no text column"):
        contam.scan([{"number": 5}], ITEMS)
    assert contam.scan([*DOCUMENTS, {"text": None}], ITEMS).coverage["n_null"] == 1


def test_a_table_and_a_file_of_one_name_are_refused(tmp_path):
    path = tmp_path / "documents"
    path.write_text(json.dumps(DOCUMENTS[1]) + "\n")
    with pytest.raises(UsageError, match="both called documents"):
        contam.scan([path, pa.Table.from_pylist(DOCUMENTS)], ITEMS)


@given(
    name=st.text(max_size=8),
    rows=st.lists(
        st.one_of(
            st.none(), st.text(max_size=4), st.dictionaries(st.text(max_size=3), st.integers())
        ),
        max_size=3,
    ),
)
def test_odd_rows_and_names_give_our_errors_alone(name, rows):
    sound = bool(name.strip()) and name.isprintable()
    given_rows = {name: [{"question": "Which?"}, *rows]}
    if sound and not rows:
        assert [v.label for v in contam.scan(DOCUMENTS, given_rows)] == ["not_checkable"]
    else:
        with pytest.raises(contam.ContamError):
            contam.scan(DOCUMENTS, given_rows)


def test_nothing_stays_on_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert contam.scan(DOCUMENTS, ITEMS).complete
    with pytest.raises(BenchmarkError):
        contam.scan(DOCUMENTS, [{"foo": 1}])
    assert not list(tmp_path.iterdir())


def run(script):
    done = python("-c", script)
    assert done.stderr == ""
    return done.stdout.splitlines()


TEXT = "why does a penguin borrow nineteen umbrellas from tall foxes"
SCAN = (
    "import contam, pyarrow\n"
    f"result = contam.scan([{{'text': {TEXT!r}}}], pyarrow.table({{'question': [{TEXT!r}]}}))\n"
    "print([v.label for v in result])\n"
)


@pytest.mark.slow
def test_no_package_of_tables_is_needed_and_the_one_that_is_missing_is_named():
    script = (
        "from contam.extras import hidden\n"
        "with hidden('pandas'), hidden('polars'), hidden('datasets'):\n"
        f"{indent(SCAN, '    ')}"
        "    for give in (result.to_pandas, result.to_polars):\n"
        "        try: give()\n"
        "        except contam.ContamError as error: print(error, '|', error.hint)\n"
    )
    assert run(script) == [
        "['contaminated']",
        "the package pandas is not installed | pip install pandas",
        "the package polars is not installed | pip install polars",
    ]


@pytest.mark.parametrize("texts", [[QUESTION], [QUESTION * 99], ["one\ntwo"], QUESTION * 99])
def test_documents_given_as_texts_are_not_quoted_as_paths(texts):
    with pytest.raises(UsageError, match="the corpus is a list of texts") as caught:
        contam.scan(texts, ITEMS)
    assert "lanterns" not in caught.value.message
    assert "dictionary" in caught.value.hint


@pytest.mark.parametrize("text", [QUESTION, QUESTION * 99, "Which lantern", "Which\tlantern"])
def test_an_item_given_as_a_text_is_quoted_nowhere_where_nothing_may_be(text):
    with pytest.raises((UsageError, BenchmarkError)) as caught:
        contam.scan(DOCUMENTS, [text], keep_text=False)
    said = f"{caught.value.message} {caught.value.hint}"
    assert "lantern" not in said
    assert "secret" not in said


def test_a_lazy_frame_is_to_be_collected():
    polars = pytest.importorskip("polars", reason="polars is not installed")
    lazy = polars.DataFrame(ITEMS[:1]).lazy()
    for benchmark in (lazy, [lazy], {"quiz": lazy}):
        with pytest.raises(UsageError, match="LazyFrame"):
            contam.scan(DOCUMENTS, benchmark)


@pytest.mark.parametrize(
    ("call", "wrong"),
    [
        (contam.scan, "polices"),
        (contam.query, "every_hit"),
        (contam.query, "text"),
        (contam.query, "columns"),
        (contam.clean, "max_evidence"),
        (contam.clean, "actions"),
    ],
)
def test_an_unknown_keyword_is_a_type_error_that_names_it(bench_fixtures, tmp_path, call, wrong):
    corpus, items = bench_fixtures / "corpus", bench_fixtures / "items"
    places = [corpus, items, tmp_path / "out"][: 3 if call is contam.clean else 2]
    with pytest.raises(TypeError, match=wrong):
        call(*places, **{wrong: "x"})
    assert list(tmp_path.iterdir()) == []
