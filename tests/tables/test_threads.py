"""Tables are read and counted in the thread that asks: one of Arrow's own that ends late aborts."""

from __future__ import annotations

import subprocess
import sys

import pytest

SCRIPT = """
import os, sys
from pathlib import Path
import pyarrow as pa
from contam.tables import input_tables, schemas, table_pages
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
assert len(table_pages.read_rows(path)) == 50_000
assert threads() == before
"""


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in /proc")
def test_tables_are_read_without_a_thread_of_arrow(tmp_path):
    path = tmp_path / "items.parquet"
    subprocess.run([sys.executable, "-c", SCRIPT, str(path)], check=True)
