"""A build holds what it was allowed to, however large shards and row groups are."""

import subprocess
import sys

import pytest

from contam.index.manifest import read_manifest
from tests.cli.processes import command, environment
from tests.integration.inputs import compiled_only
from tests.integration.processes import _MEASURED, varied_texts, write_parquet

pytestmark = [compiled_only, pytest.mark.slow]

ALLOWED = 256
#: What the program itself takes in memory, as the command says of --memory.
PROGRAM = 300


def test_one_giant_row_group_is_indexed_within_the_memory_allowed(tmp_path):
    texts = varied_texts(200_000_000)
    write_parquet(tmp_path / "corpus" / "one.parquet", texts, row_group_size=len(texts))
    del texts
    write_parquet(tmp_path / "warm" / "one.parquet", ["a few words to compile everything"])
    peak = tmp_path / "peak"
    for corpus in ("warm", "corpus"):
        call = command(
            "index", "build", "--corpus", tmp_path / corpus, "--index", tmp_path / f"{corpus}.ix",
            "--memory", f"{ALLOWED}MB", "--quiet",
        )  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-c", _MEASURED, str(peak), *call],
            capture_output=True,
            text=True,
            env=environment(),
        )
        assert done.returncode == 0, done.stderr
    unit = 1_000_000 / (1 if sys.platform == "darwin" else 1024)
    assert int(peak.read_text()) / unit < ALLOWED + PROGRAM
    assert len(read_manifest(tmp_path / "corpus.ix").segments) > 1
