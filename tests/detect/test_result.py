"""Results: their tables and records, and those of other columns than we write."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import contam
from contam.benchmark.item_table import ItemTable
from contam.benchmark.items import BenchItem
from contam.client.answers import item_row
from contam.detect import finish
from contam.detect.finish import verdict_columns
from contam.detect.labels import SHOWN
from contam.detect.policies.verdict import COLUMNS, Verdict
from contam.detect.report import TABLES, load_report, write_report
from contam.detect.result import OPTIONAL, VERDICTS, item_ranks, label_counts
from contam.errors import OutputError, UsageError
from contam.files.natural_order import natural_key
from contam.files.single import fingerprint
from contam.server.schemas import Item
from contam.tables import schemas
from tests.detect.samples import make_result
from tests.kernels.support import few


def test_the_columns_of_format_1_are_there_in_their_order():
    result = make_result()
    published = [
        "benchmark", "split", "item_id", "policy", "label", "score", "exposure", "kind",
        "n_documents", "n_occurrences", "best_document_id", "best_shard", "best_row", "best_url",
        "best_date", "reason",
    ]  # fmt: skip
    assert [name for name in result.verdicts.column_names if name in published] == published
    assert result.evidence.column_names == [
        "benchmark", "split", "item_id", "part", "document_id", "shard", "row", "url", "date",
        "source", "alignment", "item_start", "item_end", "document_start", "document_end",
        "document_token", "n_tokens", "similarity", "answer_mark",
    ]  # fmt: skip
    assert result.items.column_names[:3] == ["benchmark", "split", "item_id"]


LABELLED = st.tuples(st.sampled_from("abcdefgh"), st.sampled_from("pqr"), st.sampled_from(SHOWN))


@given(st.lists(LABELLED, max_size=60).map(lambda rows: rows * 40))
@few
def test_counts_come_in_the_order_of_the_rows_and_add_up(rows):
    names = ("benchmark", "policy", "label")
    table = pa.table([list(column) for column in zip(*rows, strict=True)] or [[]] * 3, names)
    expected = {}
    for benchmark, policy, label in rows:
        labels = expected.setdefault(benchmark, {}).setdefault(policy, dict.fromkeys(SHOWN, 0))
        labels[label] += 1
    # As text: dictionaries in another order are equal.
    assert json.dumps(label_counts(table)) == json.dumps(expected)


NAMES = st.text("ab01", max_size=3)


@given(st.lists(st.tuples(NAMES, NAMES, NAMES), max_size=30))
@few
def test_ranks_follow_the_natural_order_of_each_name_and_equals_share_one(rows):
    ordered = sorted(set(rows), key=lambda row: [natural_key(name) for name in row])
    assert item_ranks(rows).tolist() == [ordered.index(row) for row in rows]


def test_a_score_of_nan_is_no_score():
    result = make_result()
    result.verdict_columns = {**result.verdict_columns, "score": [float("nan")] * 6}
    assert schemas.column(result.verdicts, "score") == [None] * 6


def test_a_notebook_shows_counts_coverage_and_notes_and_no_text(tmp_path):
    result = make_result()
    texts = {*schemas.column(result.items, "question"), *schemas.column(result.verdicts, "reason")}
    result.run["notes"] = ["<script>alert(1)</script>", *(f"note {n}" for n in range(30))]
    shown = result._repr_html_()
    assert "<td>quiz</td><td>contam</td><td>1</td><td>0</td><td>1</td><td>0</td>" in shown
    assert "Coverage: complete" in shown
    assert "<script>" not in shown
    assert "&lt;script&gt;alert(1)" in shown
    assert "<li>note 18</li><li>and 11 more</li>" in shown
    assert not [text for text in texts if text in shown]
    write_report(result, tmp_path / "out")
    assert load_report(tmp_path / "out")._repr_html_() == shown
    assert not [text for text in (*texts, str(tmp_path)) if text in repr(result)]


@pytest.mark.parametrize("name", ["verdicts", "evidence", "items"])
@pytest.mark.parametrize("package", ["pandas", "polars"])
def test_tables_are_given_as_frames(name, package, tmp_path):
    pytest.importorskip(package, reason=f"{package} is not installed")
    write_report(make_result(), tmp_path / "out")
    for result in (make_result(), load_report(tmp_path / "out")):
        table = getattr(result, name)
        frame = getattr(result, f"to_{package}")(name)
        assert (list(frame.columns), len(frame)) == (table.column_names, table.num_rows)
        assert list(frame["item_id"]) == schemas.column(table, "item_id")
        with pytest.raises(UsageError, match="no table 'scores'"):
            getattr(result, f"to_{package}")("scores")


EVERY = [(name, column) for name, schema in TABLES.items() for column in schema.names]


def rewritten(folder, name, change):
    """A result folder whose table another version wrote: sound, with digests of its own."""
    path = folder / name
    pq.write_table(change(pq.read_table(path)), path)
    run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    run["outputs"][name].update(fingerprint(path))
    (folder / "run.json").write_text(json.dumps(run), encoding="utf-8")


def test_a_scan_fills_every_column_itself(bench_fixtures, monkeypatch):
    given = []

    def noting(*arguments):
        given.append(verdict_columns(*arguments))
        return given[-1]

    monkeypatch.setattr(finish, "verdict_columns", noting)
    contam.scan(bench_fixtures / "corpus", bench_fixtures / "items", workers=1)
    assert [list(columns) for columns in given] == [VERDICTS.names]


def without(*columns):
    return lambda table: table.drop_columns(list(columns))


@pytest.fixture
def folder(tmp_path):
    return write_report(make_result(), tmp_path / "out")


@pytest.mark.parametrize(("name", "column"), EVERY)
def test_a_column_that_is_not_there_is_an_error_with_file_and_column(folder, name, column):
    rewritten(folder, name, without(column))
    with pytest.raises(OutputError) as caught:
        load_report(folder)
    assert f"{folder / name} has no column {column!r}" in caught.value.message
    assert "scan again" in caught.value.hint


@pytest.mark.parametrize("name", TABLES)
def test_an_unknown_column_or_another_order_is_an_error_with_the_file(folder, name):
    rewritten(folder, name, lambda t: t.append_column("mood", pa.nulls(t.num_rows, pa.string())))
    with pytest.raises(OutputError, match=f"{name} has an unknown column 'mood'"):
        load_report(folder)
    rewritten(folder, name, lambda t: t.select(TABLES[name].names[::-1]))
    with pytest.raises(OutputError, match=f"{name} has its columns in another order"):
        load_report(folder)


def test_a_verdict_has_the_columns_of_its_table_and_those_with_a_default_are_optional():
    assert list(Verdict.__dataclass_fields__) == VERDICTS.names
    assert {one.name for one in COLUMNS if one.optional} == OPTIONAL
    # None stands for what was left out: it must be able to.
    assert all(one.nullable for one in COLUMNS if one.optional)


# ------------------------------------------------------------------------- items that are not whole


WHY = "its column notes is unread; --map question=question+notes reads it"
QUESTION = "Why did the miller of Oster Bay refuse to grind barley on any rainy Thursday at noon?"


def test_the_reason_goes_to_the_service_and_through_a_table():
    item = BenchItem(benchmark="b", split="", item_id="1", question=QUESTION, incomplete=WHY)
    assert list(ItemTable.of([item])) == [item]
    sent = json.loads(json.dumps(item_row(item)))
    assert Item.model_validate(sent).read == item


TASK = "Solve the following grade school word problem and give a number."
PROBLEM = "A ferry with {} red lanterns and nine brass bells sails at dawn past the old lighthouse."


def items(n_same, n_other, beside="context"):
    same = [{"instruction": TASK, beside: PROBLEM.format(n)} for n in range(n_same)]
    other = [{"instruction": PROBLEM.format(n), beside: ""} for n in range(100, 100 + n_other)]
    return same + other


@pytest.mark.parametrize(("n_same", "n_other"), [(5, 0), (6, 5), (12, 0)])
def test_items_with_one_question_are_noted_with_their_field(n_same, n_other):
    corpus = [{"text": PROBLEM.format(n)} for n in range(n_same)]
    (note,) = contam.scan(corpus, items(n_same, n_other)).run["notes"]
    assert f"{n_same} of {n_same + n_other} items have the same question (instruction)" in note
    assert "--map question=" in note


@pytest.mark.parametrize(("n_same", "n_other"), [(4, 0), (5, 5), (0, 12)])
def test_a_question_that_some_items_share_is_no_doubt(n_same, n_other):
    assert contam.scan([{"text": TASK}], items(n_same, n_other)).run["notes"] == []


@pytest.mark.parametrize("beside", ["context", "input"])
def test_the_map_that_the_note_names_finds_them(beside):
    corpus = [{"text": PROBLEM.format(n)} for n in range(6)]
    # What no name says is a passage is read so without being told.
    mapping = {"question": f"instruction+{beside}"} if beside == "context" else None
    result = contam.scan(corpus, items(6, 0, beside), mapping=mapping)
    assert all(verdict.label in {"contaminated", "suspect"} for verdict in result)
    assert result.run["notes"] == []
