"""Shards that end early: which beginnings of a file pass for the whole, and what a cut one costs."""

from __future__ import annotations

import gzip
import json
import signal
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from pyarrow import ipc

from contam.benchmark.read_files import read_benchmarks
from contam.detect.scan import scan
from contam.errors import BenchmarkError
from contam.tables import input_tables
from tests.corpus_files import delimited, wet_records
from tests.integration.inputs import ABSENT, FILLER, QUESTION, labels, run_scan, write_jsonl

#: Writes two record batches, and is killed before it can write the end of the stream.
KILLED_WRITER = f"""
import os, signal, sys
import pyarrow as pa
file = open(sys.argv[1], "wb")
schema = pa.schema({{"text": pa.string()}})
stream = pa.ipc.new_stream(file, schema)
for text in ({FILLER!r}, {QUESTION!r}):
    stream.write_batch(pa.record_batch({{"text": [text]}}))
file.flush()
os.kill(os.getpid(), signal.SIGKILL)
"""

LINES = [json.dumps({"text": f"{row} {FILLER}"}).encode() + b"\n" for row in range(6)]


@pytest.fixture
def unfinished(tmp_path):
    """A corpus of one whole shard and one whose writer was killed."""
    write_jsonl(tmp_path / "corpus" / "whole.jsonl", [{"text": FILLER}])
    path = tmp_path / "corpus" / "killed.arrows"
    command = [sys.executable, "-c", KILLED_WRITER, str(path)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    return path.parent


def test_a_stream_whose_writer_was_killed_is_not_read_to_its_end(unfinished, items, tmp_path):
    done = run_scan(unfinished, items, tmp_path / "out")
    assert done.returncode == 4
    result = scan(unfinished, items)
    (failure,) = result.coverage["shards_failed"]
    assert failure["shard"] == "killed.arrows"
    assert "no end mark" in failure["reason"]
    assert labels(result) == {"q0": "contaminated", "q1": "not_checkable"}


def test_allow_missing_takes_what_the_killed_writer_wrote(unfinished, items):
    result = scan(unfinished, items, allow_missing=True)
    assert not result.complete
    assert labels(result) == {"q0": "contaminated", "q1": "clean"}


#: Cut at every byte, and scanned each time.
SHORT = FILLER[:30]


def cuts_that_pass(path, raw, items, every=1) -> set[int]:
    """Lengths of beginnings of a shard that are read without a failure."""
    found = set()
    for length in range(1, len(raw), every):
        path.write_bytes(raw[:length])
        if scan(path.parent, items, workers=1).complete:
            found.add(length)
    return found


def ends(parts: list[bytes]) -> set[int]:
    """Where each part but the last ends."""
    return {sum(map(len, parts[:n])) for n in range(1, len(parts))}


def gzipped(lines: bytes) -> bytes:
    return gzip.compress(lines, mtime=0)


def endings() -> dict[str, tuple[bytes, set[int]]]:
    """File name -> content, and the lengths at which a cut cannot be seen."""
    found = {"a.jsonl": (b"".join(LINES[:3]), {len(b"".join(LINES[:n])) - 1 for n in (1, 2, 3)})}
    found["a.jsonl"][1].update(ends(LINES[:3]))
    texts = [f'{row} "so\nand so", {SHORT}' for row in range(3)]
    for name, delimiter in (("a.csv", ","), ("a.tsv", "\t")):
        whole = {len(delimited(texts[:n], delimiter)) for n in range(3)}
        found[name] = (delimited(texts, delimiter), whole)
    parts = {"a.warc.wet": wet_records([f"{row} {SHORT}" for row in range(2)])}
    for name, pack in (("a.jsonl.gz", gzipped), ("a.jsonl.zst", zstandard.compress)):
        parts[name] = [pack(b"".join(LINES[at : at + 2])) for at in range(0, 6, 2)]
    return found | {name: (b"".join(some), ends(some)) for name, some in parts.items()}


ENDINGS = endings()


@pytest.mark.slow
@pytest.mark.parametrize("name", ENDINGS)
def test_a_shard_that_ends_early_passes_only_behind_a_whole_record(tmp_path, items, name):
    write_jsonl(tmp_path / "corpus" / "whole.jsonl", [{"text": FILLER}])
    content, whole = ENDINGS[name]
    assert cuts_that_pass(tmp_path / "corpus" / name, content, items) == whole


@pytest.mark.slow
def test_no_beginning_of_a_parquet_file_passes(tmp_path, items):
    path = tmp_path / "corpus" / "a.parquet"
    write_jsonl(tmp_path / "corpus" / "whole.jsonl", [{"text": FILLER}])
    pq.write_table(pa.table({"text": [FILLER, QUESTION]}), path, row_group_size=1)
    assert cuts_that_pass(path, path.read_bytes(), items, every=7) == set()


def table_of(*questions: str) -> pa.Table:
    ids = [f"q{n}" for n in range(len(questions))]
    return pa.table({"id": ids, "question": list(questions)})


def test_a_benchmark_whose_writer_was_killed_is_refused(tmp_path):
    path = tmp_path / "items.arrow"
    table = table_of(QUESTION, ABSENT)
    with ipc.new_stream(path, table.schema) as stream:
        stream.write_table(table, max_chunksize=1)
    assert len(read_benchmarks([path])[0].items) == 2
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(BenchmarkError):
        read_benchmarks([path])


@pytest.mark.parametrize("name", ["items.parquet", "items.arrow"])
def test_a_benchmark_that_changes_while_it_is_read_is_refused(tmp_path, name, monkeypatch):
    path = tmp_path / name

    def write(*questions: str) -> None:
        table = table_of(*questions)
        other = path.with_suffix(".tmp")
        if path.suffix == ".parquet":
            pq.write_table(table, other)
        else:
            with ipc.new_stream(other, table.schema) as stream:
                stream.write_table(table)
        other.replace(path)

    def replaced(*args):
        write(ABSENT, QUESTION)
        yield from real(*args)

    write(QUESTION, ABSENT)
    kind = f"{path.suffix[1:]}_rows"
    real = getattr(input_tables, kind)
    monkeypatch.setattr(input_tables, kind, replaced)
    with pytest.raises(BenchmarkError):
        read_benchmarks([path])
