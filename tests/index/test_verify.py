"""`verify` tells all that is wrong with an index, and nothing else."""

from __future__ import annotations

import pytest

from contam.errors import IndexMismatchError, UsageError
from contam.index.manifest import MANIFEST
from contam.index.verify import verify
from tests.index.tiny import write_index


@pytest.fixture
def folder(tmp_path):
    """A sound index whose shards are gone."""
    write_index(tmp_path)
    return tmp_path


def of_index(report):
    return [finding for finding in report.findings if finding.what == "index"]


def test_a_sound_index_whose_shards_are_gone_is_not_damaged(folder):
    report = verify(folder)
    assert not report.damaged
    assert not report.ok
    assert {finding.place for finding in report.findings} == {
        "/corpus/part-0.parquet",
        "/corpus/part-1.parquet",
    }
    assert (report.n_segments, report.n_shards) == (2, 2)
    assert report.n_files == 18
    assert report.n_bytes == sum(
        path.stat().st_size for path in folder.rglob("*") if path.suffix in {".npy", ".parquet"}
    )
    assert report.to_dict()["ok"] is False


def test_every_file_that_is_harmed_is_named_and_the_others_are_not(folder):
    files = sorted(path for path in (folder / "segments").rglob("*") if path.is_file())
    for path in files[::3]:
        raw = bytearray(path.read_bytes())
        raw[len(raw) // 2] ^= 4 if raw else 0
        path.write_bytes(raw or b"x")
    named = {finding.place for finding in of_index(verify(folder))}
    assert {str(path) for path in files[::3]} <= named
    matches = {path.with_suffix(".crc") for path in files[::3]} | set(files[::3])
    assert named <= {str(path) for path in matches}


def test_a_manifest_that_cannot_be_read_is_a_finding_and_no_index_an_error(folder, tmp_path):
    (folder / MANIFEST).write_text("{}")
    report = verify(folder)
    assert (report.index_id, report.damaged, report.n_files) == (None, True, 0)
    (folder / MANIFEST).write_text('{"format":99}')
    with pytest.raises(IndexMismatchError):
        verify(folder)
    with pytest.raises(UsageError):
        verify(tmp_path / "nowhere")


def test_what_no_manifest_speaks_of_is_a_leftover(folder):
    (folder / "segments" / "0123456789").mkdir()
    (folder / "segments" / "0123456789" / "starts.npy").write_bytes(b"")
    (folder / "retired-00000000.npy").write_bytes(b"")
    report = verify(folder)
    assert not report.damaged
    assert report.leftovers == ["retired-00000000.npy", "segments/0123456789/starts.npy"]
