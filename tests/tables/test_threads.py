"""Tables are read and counted in the thread that asks: one of Arrow's own that ends late aborts."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

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


COMMANDS = """
import os, sys
import pyarrow, scipy.special
from contam.cli.main import main
corpus, items, folder = sys.argv[1:]
threads = lambda: len(os.listdir("/proc/self/task"))
before = threads()
for command in (
    f"index build --corpus {corpus} --index {folder}/index --quiet",
    f"scan --corpus {corpus} --benchmark {items} --out {folder}/scan --quiet",
    f"query --index {folder}/index --benchmark {items} --out {folder}/query --quiet",
):
    assert main(command.split()) in (0, 4), command
    assert threads() == before, command
"""


@pytest.mark.skipif(sys.platform != "linux", reason="threads are counted in /proc")
def test_commands_leave_no_thread_of_arrow(repository, tmp_path):
    fixtures = repository / "bench_fixtures"
    subprocess.run(
        [sys.executable, "-c", COMMANDS, fixtures / "corpus", fixtures / "items", tmp_path],
        check=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
