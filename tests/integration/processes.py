"""Real scans in real processes, and the corpora they read."""

import json
import sys

import pyarrow as pa
import pyarrow.parquet as pq

from tests.cli.processes import ROOT, command, contam, python

FIXTURES = ROOT / "bench_fixtures"
ITEMS = FIXTURES / "items"
# A process that is started from a large one inherits its peak: a small one has to stand between.
_MEASURED = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[2:])
_, status, usage = os.wait4(process.pid, 0)
with open(sys.argv[1], "w") as file:
    file.write(str(usage.ru_maxrss))
sys.exit(os.waitstatus_to_exitcode(status))
"""


def fixture_texts():
    """The documents of bench_fixtures, planted items included."""
    return [
        text
        for path in sorted((FIXTURES / "corpus").rglob("*.parquet"))
        for text in pq.read_table(path, columns=["text"])["text"].to_pylist()
        if text
    ]


def varied_texts(n_bytes):
    """About that many bytes of documents: those of bench_fixtures, each time with other words."""
    texts, size, turn = [], 0, 0
    originals = fixture_texts()
    while size < n_bytes:
        for number, text in enumerate(originals):
            middle = len(text) * (turn % 97) // 97
            texts.append(f"{text[middle:]}\nentry {turn} of list {number}\n{text[:middle]}")
            size += len(texts[-1])
        turn += 1
    return texts


def write_parquet(path, texts, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table({"text": pa.array(texts, pa.large_string())})
    pq.write_table(table, path, compression="zstd", compression_level=1, **options)


def scan_arguments(corpus, out, *options):
    return ("scan", "--corpus", corpus, "--benchmark", ITEMS, "--out", out, *options)


def warm_up(folder):
    """Compile the kernels, so that neither time nor memory of a test is the compiler's."""
    one = folder / "warm" / "one.parquet"
    write_parquet(one, fixture_texts()[:5])
    process = contam(*scan_arguments(one, folder / "warm" / "out", "--quiet"))
    assert process.returncode == 0, process.stderr


def measured(note, *arguments):
    """Run the command line to its end; gives its peak memory in bytes, and notes it in a file."""
    process = python("-c", _MEASURED, note, *command(*arguments))
    assert process.returncode == 0, process.stderr
    return int(note.read_text()) * (1 if sys.platform == "darwin" else 1 << 10)


def measured_scan(corpus, out, *options):
    """Run a scan to its end; gives its peak memory in MiB and its run.json."""
    peak = measured(out.parent / f"{out.name}.peak", *scan_arguments(corpus, out, *options))
    return peak >> 20, json.loads((out / "run.json").read_text("utf-8"))
