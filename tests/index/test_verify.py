"""`verify` tells all that is wrong with an index, and nothing else."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import numpy as np
import pytest

from contam.errors import IndexDamageError, IndexMismatchError, UsageError
from contam.index.array_files import write_array
from contam.index.checks.resample import entries_of
from contam.index.checks.soundness import check_segment
from contam.index.manifest import MANIFEST, publish_manifest, read_manifest
from contam.index.open import Index
from contam.index.verify import verify
from tests.index.tiny import BASE, RECIPE, SPREAD, documents, write_index
from tests.twins.segment import context, entries


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
    assert (report.n_segments, report.n_shards, report.n_documents) == (2, 2, 0)
    assert report.n_files == 16
    assert report.n_unread > 0
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


def rewrite(folder, name, change):
    """Replace an array of the first segment by a changed one, checksums and manifest included."""
    manifest = read_manifest(folder)
    record = manifest.segments[0]
    place = folder / "segments" / record.id
    array = np.load(place / f"{name}.npy").copy()
    changed = change(array)
    array = array if changed is None else changed
    new = write_array(place, name, array)
    files = tuple(new if file.name == new.name else file for file in record.files)
    segments = (replace(record, files=files), *manifest.segments[1:])
    publish_manifest(folder, replace(manifest, segments=segments))


def swap(array):
    same = (array[1:, :2] == array[:-1, :2]).all(axis=1)
    first = int(np.flatnonzero(same)[0])
    array[[first, first + 1]] = array[[first + 1, first]]


def repeat(array):
    other = (array[1:, :2] != array[:-1, :2]).any(axis=1)
    alone = int(np.flatnonzero(other[1:] & other[:-1])[0]) + 1
    array[alone, 3:5] = array[alone + 1, 3:5]


def put(at, value):
    def change(array):
        array[at] = value

    return change


CONTRADICTIONS = {
    "is not sorted": ("postings", swap),
    "an entry of no document": ("postings", put((7, 4), 9)),
    "an entry twice": ("postings", repeat),
    "does not add up to the tokens": ("doc_tokens", lambda a: put(1, a[1] + 1)(a)),
    "has not the entries of its length": ("doc_entries", lambda a: put(3, a[2])(a)),
    "not above the cap": ("capped_count", lambda _: np.array([100], np.int64)),
}


@pytest.mark.parametrize("fact", CONTRADICTIONS)
def test_arrays_that_cannot_be_true_together_are_noticed(folder, fact):
    name, change = CONTRADICTIONS[fact]
    segment = Index.open(folder).segments[0]
    check_segment(segment)
    rewrite(folder, name, change)
    if name == "capped_count":
        rewrite(folder, "capped_key", lambda _: np.array([7], np.uint64))
    with pytest.raises(IndexDamageError, match=fact):
        check_segment(Index.open(folder).segments[0])
    assert [finding for finding in of_index(verify(folder)) if fact in finding.fact]


def test_a_table_of_other_documents_is_noticed(folder):
    from contam.tables.documents import write_documents

    manifest = read_manifest(folder)
    record = manifest.segments[0]
    path = folder / "segments" / record.id / "documents.parquet"
    n = record.n_documents
    columns = {
        name: [0] * n if name in {"shard", "n_tokens", "n_bytes"} else [None] * n
        for name in ("shard", "document_id", "url", "date", "source", "language")
    }
    columns |= {"row": list(range(n)), "n_tokens": [1] * n, "n_bytes": [0] * n}
    write_documents(path, columns)
    raw = path.read_bytes()
    file = replace(
        next(one for one in record.files if one.name == path.name),
        n_bytes=len(raw),
        sha256=hashlib.sha256(raw).hexdigest(),
    )
    files = tuple(file if one.name == file.name else one for one in record.files)
    segments = (replace(record, files=files), *manifest.segments[1:])
    publish_manifest(folder, replace(manifest, segments=segments))
    facts = [finding.fact for finding in of_index(verify(folder))]
    assert len(facts) == 1
    assert "column n_tokens" in facts[0]


def test_a_document_is_sampled_anew_as_the_twin_samples_it():
    for tokens in documents(5, 30):
        found = entries_of(np.array(tokens, np.uint64), RECIPE)
        expected = entries([tokens], RECIPE.gram, RECIPE.stride, BASE, SPREAD)
        assert sorted((key, ctx) for key, ctx in found) == sorted((k, c) for k, _, c in expected)
        assert [ctx for _, ctx in found] == [
            context(tokens, at, RECIPE.gram)
            for at in range(0, len(tokens) - RECIPE.gram + 1, RECIPE.stride)
        ]
