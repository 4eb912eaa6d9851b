"""Damaged and encrypted Parquet files end in an error that names them, never in a dead process."""

import io
import json
import os

import pyarrow.parquet as pq
import pytest

import contam
from contam.tables.parquet_footer import layout_of
from tests.cli.processes import contam as run_contam
from tests.cli.processes import python
from tests.fuzz.parquet_shapes import N_ROWS, TEXTS, encrypted, shapes
from tests.fuzz.read_mutants import outcome

#: `make fuzz` reads 5,000; each test run some of them.
N_FILES = int(os.environ.get("CONTAM_FUZZ_FILES", "600"))
ITEMS = [{"id": str(at), "question": f"{TEXTS[at]} and then {TEXTS[at + 1]}"} for at in (3, 8)]


def test_no_damaged_file_ends_the_process_or_hangs():
    done = python("-m", "tests.fuzz.read_mutants", 0, N_FILES)
    lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert done.returncode == 0, f"ended at file {len(lines)} of {N_FILES}: {done.stderr[-2000:]}"
    assert [int(number) for number, *_ in lines] == list(range(N_FILES))
    assert {"same", "refused"} <= {kind for _, kind, *_ in lines}
    # Pages without a checksum may be altered unseen, as a file of plain text may.
    misread = [line for line in lines if line[1:3] == ["other", "footer"]]
    assert not misread


def test_a_sound_file_of_every_writer_is_read_and_encrypted_ones_are_not(tmp_path):
    for name, content in shapes().items():
        (tmp_path / "a.parquet").write_bytes(content)
        assert outcome(tmp_path) == ("refused" if "encrypted" in name else "same"), name


@pytest.mark.slow
@pytest.mark.parametrize("plain_footer", [True, False])
def test_an_encrypted_shard_is_named_and_nothing_is_called_clean(tmp_path, plain_footer):
    corpus, items, out = tmp_path / "corpus", tmp_path / "items.jsonl", tmp_path / "out"
    corpus.mkdir()
    (corpus / "a.parquet").write_bytes(encrypted(plain_footer=plain_footer))
    (corpus / "b.jsonl").write_text('{"text": "nothing of it"}\n', "utf-8")
    items.write_text("".join(json.dumps(item) + "\n" for item in ITEMS), "utf-8")
    result = contam.scan(corpus, items)
    (failed,) = result.run["coverage"]["shards_failed"]
    assert (failed["shard"], "encrypted" in failed["reason"]) == ("a.parquet", True)
    assert {one.label for one in result} == {"not_checkable"}
    for command in (
        ["scan", "--corpus", corpus, "--benchmark", items, "--out", out],
        ["index", "build", "--corpus", corpus, "--index", tmp_path / "index"],
    ):
        done = run_contam(*command)
        assert done.returncode == 4, done.stderr
        assert "a.parquet" in done.stdout + done.stderr
        assert "encrypted" in done.stdout + done.stderr


def test_the_sizes_we_read_are_those_the_library_tells():
    for name, content in shapes().items():
        if "encrypted" in name:
            continue
        meta = pq.read_metadata(io.BytesIO(content))
        length = int.from_bytes(content[-8:-4], "little")
        layout = layout_of(content[-8 - length : -8])
        assert layout.n_rows == N_ROWS
        assert len(layout.groups) == meta.num_row_groups
        for at, group in enumerate(layout.groups):
            told = meta.row_group(at)
            assert (group.n_rows, group.n_bytes) == (told.num_rows, told.total_byte_size)
            sizes = [told.column(i).total_uncompressed_size for i in range(told.num_columns)]
            assert list(group.sizes) == sizes
