"""Results of versions that did not write every column: optional ones may lack, no other may."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import contam
from contam.detect import finish
from contam.detect.finish import verdict_columns
from contam.detect.policies.verdict import COLUMNS, Verdict
from contam.detect.report import OPTIONAL_COLUMNS, TABLES, load_report, write_report
from contam.detect.result import VERDICTS, ScanResult
from contam.detect.show.ask import open_database
from contam.errors import OutputError
from contam.files.single import fingerprint
from tests.cli.processes import contam as command
from tests.detect.samples import make_result

OPTIONAL = [(name, column) for name in TABLES for column in sorted(OPTIONAL_COLUMNS[name])]
REQUIRED = [
    (name, column)
    for name, schema in TABLES.items()
    for column in schema.names
    if column not in OPTIONAL_COLUMNS[name]
]


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


@pytest.mark.parametrize(("name", "column"), OPTIONAL)
def test_an_optional_column_that_is_not_there_is_null(folder, name, column):
    whole = getattr(load_report(folder), name.removesuffix(".parquet"))
    rewritten(folder, name, without(column))
    found = getattr(load_report(folder), name.removesuffix(".parquet"))
    assert found.schema == TABLES[name]
    assert found.column(column).null_count == found.num_rows
    assert found.drop_columns([column]).equals(whole.drop_columns([column]))


def test_a_result_without_any_optional_column_is_shown_asked_and_iterated(tmp_path, repository):
    fixtures = repository / "bench_fixtures"
    result = contam.scan(fixtures / "corpus", fixtures / "items/brook_math.jsonl")
    folder = write_report(result, tmp_path / "out")
    for name in TABLES:
        rewritten(folder, name, without(*OPTIONAL_COLUMNS[name]))
    verdicts = list(load_report(folder))
    assert [(verdict.item_id, verdict.label, verdict.reason) for verdict in verdicts] == [
        (one.item_id, one.label, one.reason) for one in result
    ]
    assert {verdict.best_url for verdict in verdicts} == {None}
    query = "select count(*), count(best_url) from verdicts"
    with open_database(folder, query) as database:
        assert list(database.ask(query)[1]) == [(len(verdicts), 0)]
    assert "contaminated" in command("show", str(folder)).stdout


@pytest.mark.parametrize(("name", "column"), REQUIRED)
def test_a_required_column_that_is_not_there_is_an_error_with_file_and_column(folder, name, column):
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


def test_whoever_makes_verdicts_may_leave_out_what_is_optional():
    result = make_result()
    columns = {
        name: column for name, column in result.verdict_columns.items() if name != "best_date"
    }
    other = ScanResult(
        verdict_columns=columns,
        evidence_columns=result.evidence_columns,
        item_columns=result.item_columns,
        run=result.run,
    )
    assert other.verdicts.equals(result.verdicts)


def test_a_verdict_has_the_columns_of_its_table_and_those_with_a_default_are_optional():
    assert list(Verdict.__dataclass_fields__) == VERDICTS.names
    assert {one.name for one in COLUMNS if one.optional} == OPTIONAL_COLUMNS["verdicts.parquet"]
    # None stands for what an older version did not write: it must be able to.
    assert all(one.nullable for one in COLUMNS if one.optional)
