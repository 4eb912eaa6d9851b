"""Tables are written in parts, read in pages and in the thread that asks, each value once where that is asked for."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contam.errors import InternalError
from contam.tables import schemas
from contam.tables.memory import distinct
from contam.tables.schemas import Repeated

SCHEMA = pa.schema(
    [
        pa.field("name", pa.string(), nullable=False),
        pa.field("source", pa.string()),
        pa.field("start", pa.int64(), nullable=False),
        pa.field("similarity", pa.float64()),
    ]
)


def columns(n_rows: int) -> dict:
    at = np.arange(n_rows, dtype=np.int32)
    return {
        "name": Repeated(["red", "fox", "runs"], at % 3),
        "source": Repeated(["web", None], np.where(at % 5 == 0, -1, at % 2)),
        "start": at * 7,
        "similarity": Repeated((), np.full(n_rows, -1, np.int8)),
    }


@pytest.mark.parametrize("n_rows", [0, 1, 4, 5, 11])
def test_rows_in_several_groups_are_the_same_bytes(n_rows, tmp_path, monkeypatch):
    monkeypatch.setattr(schemas, "_ROW_GROUP_ROWS", 5)
    whole, parts = tmp_path / "whole.parquet", tmp_path / "parts.parquet"
    schemas.write_parquet(schemas.table_of(columns(n_rows), SCHEMA), whole)
    schemas.write_columns(columns(n_rows), SCHEMA, parts)
    assert parts.read_bytes() == whole.read_bytes()
    assert schemas.read_parquet(parts, SCHEMA).num_rows == n_rows


def test_a_null_where_none_may_be_is_refused(tmp_path):
    broken = {**columns(4), "name": Repeated(["red"], np.array([0, 0, -1, 0]))}
    with pytest.raises(InternalError, match="name has 1 nulls"):
        schemas.write_columns(broken, SCHEMA, tmp_path / "broken.parquet")


def test_rows_come_in_batches_also_from_a_file_whose_name_is_gone(tmp_path):
    rows = [{"at": at, "text": "x" * at} for at in range(300)]
    path = tmp_path / "table.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=200)
    n_rows, batches = schemas.row_batches(path)
    path.unlink()
    found = list(batches)
    assert n_rows == 300
    assert [row for batch in found for row in batch] == rows
    assert len(found) > 2


@pytest.mark.parametrize("kind", [np.uint64, np.int64, np.uint32])
@given(values=st.lists(st.integers(0, 2**32 - 1) | st.integers(0, 5)))
def test_different_values_come_once_and_ascend(kind, values):
    given_values = np.array(values, kind)
    found = distinct(given_values)
    assert found.tolist() == sorted(set(values))
    assert found.dtype == kind
    assert given_values.tolist() == values


SCRIPT = """
import os, sys
from pathlib import Path
import pyarrow as pa
from contam.tables import input_tables, schemas
path = Path(sys.argv[1])
schema = pa.schema([pa.field("item_id", pa.string())])
table = pa.table({"item_id": [f"i{n % 7}" for n in range(50_000)]}, schema)
schemas.write_parquet(table, path)
threads = lambda: len(os.listdir("/proc/self/task"))
before = threads()
read = schemas.read_parquet(path, schema)
assert dict(schemas.tally(read, ["item_id"]))[("i6",)] == 7142
assert len(list(input_tables.parquet_rows(path, list))) == 50_000
assert len(input_tables.read_columns(path)["item_id"]) == 50_000
assert sum(map(len, schemas.row_batches(path)[1])) == 50_000
assert threads() == before
"""


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in /proc")
def test_tables_are_read_without_a_thread_of_arrow(tmp_path):
    path = tmp_path / "items.parquet"
    subprocess.run([sys.executable, "-c", SCRIPT, str(path)], check=True)
