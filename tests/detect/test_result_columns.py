"""Results with other columns than we write are an error that names the file and the column."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import contam
from contam.detect import finish
from contam.detect.finish import verdict_columns
from contam.detect.policies.verdict import COLUMNS, Verdict
from contam.detect.report import TABLES, load_report, write_report
from contam.detect.result import OPTIONAL, VERDICTS, ScanResult
from contam.errors import OutputError
from contam.files.single import fingerprint
from tests.detect.samples import make_result

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
    assert {one.name for one in COLUMNS if one.optional} == OPTIONAL
    # None stands for what was left out: it must be able to.
    assert all(one.nullable for one in COLUMNS if one.optional)
