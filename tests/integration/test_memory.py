"""Peak memory of real scans and builds does not follow the size of documents and row groups."""

import json
import shutil

import pyarrow.parquet as pq
import pytest

from contam.index.manifest import read_manifest
from tests.integration.inputs import compiled_only
from tests.integration.processes import (
    fixture_texts,
    measured,
    measured_scan,
    varied_texts,
    warm_up,
    write_parquet,
)
from tests.text.tokenizer_files import save_tokenizer

pytestmark = [compiled_only, pytest.mark.slow]

MOST_MB = 1500
#: More than a scan of next to nothing takes: far from the 300 MB that a whole row group would add.
MOST_GROWTH_MB = 200
GIANT_BYTES = 300_000_000
LINE_BYTES = 5_000_000


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("memory")
    warm_up(folder)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def long_line():
    words = " ".join(" ".join(fixture_texts()).split())
    return (words + " ") * (LINE_BYTES // len(words)) + words[: LINE_BYTES % len(words)]


def test_a_giant_row_group_and_a_line_of_5_mb_fit_with_two_workers(home, long_line):
    corpus = home / "corpus"
    texts = varied_texts(GIANT_BYTES // 12) * 12
    texts[len(texts) // 2 : len(texts) // 2] = [long_line]
    write_parquet(corpus / "giant.parquet", texts, row_group_size=len(texts), use_dictionary=False)
    rows = [{"text": long_line}, {"text": long_line[::-1]}, {"text": "word " * 1_000_000}]
    (corpus / "lines.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8"
    )
    assert pq.read_metadata(corpus / "giant.parquet").num_row_groups == 1
    least, _ = measured_scan(home / "warm" / "one.parquet", home / "least", "--quiet")
    peak, run = measured_scan(corpus, home / "out", "--workers", "2", "--quiet")
    assert run["coverage"]["rows"] == len(texts) + len(rows)
    assert run["coverage"]["n_bytes"] > GIANT_BYTES
    assert peak < MOST_MB, f"{peak} MB"
    assert peak < least + MOST_GROWTH_MB, f"{peak} MB, {least} MB for next to nothing"


def test_long_lines_fit_in_the_unit_of_a_tokenizer_file_too(home, long_line):
    corpus = home / "lines"
    # One for each worker at the same time; the second has a token for nearly every byte.
    for number, text in enumerate([long_line, "日" * (LINE_BYTES // 3)]):
        write_parquet(corpus / f"{number}.parquet", [text])
    unit = save_tokenizer(home, "byte_bpe")
    peak, run = measured_scan(
        corpus, home / "by_tokens", "--workers", "2", "--quiet", "--unit", str(unit)
    )
    assert run["coverage"]["rows"] == 2
    assert peak < MOST_MB, f"{peak} MB"


ALLOWED = 256
#: What the program itself takes in memory, as the command says of --memory.
PROGRAM = 300


def test_one_giant_row_group_is_indexed_within_the_memory_allowed(tmp_path):
    texts = varied_texts(200_000_000)
    write_parquet(tmp_path / "corpus" / "one.parquet", texts, row_group_size=len(texts))
    del texts
    write_parquet(tmp_path / "warm" / "one.parquet", ["a few words to compile everything"])
    for corpus in ("warm", "corpus"):
        peak = measured(
            tmp_path / "peak", "index", "build", "--corpus", tmp_path / corpus, "--index",
            tmp_path / f"{corpus}.ix", "--memory", f"{ALLOWED}MB", "--quiet",
        )  # fmt: skip
    assert peak < (ALLOWED + PROGRAM) * 1_000_000
    assert len(read_manifest(tmp_path / "corpus.ix").segments) > 1
