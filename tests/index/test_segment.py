"""Segments and whole indexes, opened from what the twin of the format wrote."""

from dataclasses import replace

import pytest

from contam.errors import IndexDamageError, IndexMismatchError
from contam.index.manifest import publish_manifest
from contam.index.model import RowSpan
from contam.index.open import Index
from tests.index.tiny import (
    BASE,
    RECIPE,
    SPREAD,
    TAKEN,
    documents,
    shard,
    write_index,
    write_segment,
)
from tests.kernels.support import u64s
from tests.twins.segment import gram_pairs


@pytest.fixture
def made(tmp_path):
    manifest, tokens = write_index(tmp_path)
    return tmp_path, manifest, tokens


def test_every_gram_is_found_and_leads_back_to_its_documents(made):
    folder, _, tokens = made
    index = Index.open(folder)
    for segment, shard_docs in zip(index.segments, tokens, strict=True):
        expected = sorted(gram_pairs(shard_docs, TAKEN, BASE, SPREAD))
        keys = sorted({key for key, _ in expected})
        first, stop = segment.grams.find(u64s([*keys, 12345]))
        assert segment.grams.documents(first, stop).tolist() == [one for _, one in expected]
        assert first[-1] == stop[-1]


def test_a_document_knows_its_shard_row_and_names(tmp_path):
    spans = [
        RowSpan(shard=1, first_row=3, n_rows=2),
        RowSpan(shard=0, first_row=0, n_rows=3),
        RowSpan(shard=1, first_row=9, n_rows=1),
    ]
    record = write_segment(tmp_path, spans, documents(1, 6))
    manifest, _ = write_index(tmp_path / "other")
    shards = (shard("a.parquet", 3), shard("b.parquet", 3))
    publish_manifest(tmp_path, replace(manifest, shards=shards, segments=(record,)))
    segment = Index.open(tmp_path).segments[0]
    shards, rows = segment.place_of([0, 1, 2, 3, 4, 5])
    assert shards.tolist() == [1, 1, 0, 0, 0, 1]
    assert rows.tolist() == [3, 4, 0, 1, 2, 9]
    assert [document.document_id for document in segment.documents([5, 0])] == [
        "doc-1-9",
        "doc-1-3",
    ]
    assert segment.documents([2])[0].url is None
    assert segment.documents([2])[0].date == "2020-01-01"
    with pytest.raises(IndexDamageError, match="no row 6"):
        segment.documents([6])


def test_shards_are_numbered_as_a_scan_would_and_retired_ones_left_out(made):
    folder, manifest, _ = made
    first, second = manifest.shards
    shards = (
        replace(first, name="part-10.parquet", retired=True),
        replace(second, name="part-10.parquet"),
        shard("part-9.parquet", 4, failure="cut short"),
        shard("part-2.parquet", 0, counts={}),
    )
    publish_manifest(
        folder, replace(manifest, shards=shards, pending=("part-2.parquet", "part-1.parquet"))
    )
    index = Index.open(folder)
    assert index.names == ("part-1.parquet", "part-2.parquet", "part-9.parquet", "part-10.parquet")
    assert index.number_of.tolist() == [-1, 3, 2, 1]
    assert index.records == (None, shards[3], shards[2], shards[1])
    coverage = index.coverage()
    assert coverage.names == index.names
    assert coverage.shards_read == (3,)
    assert not coverage.complete
    assert {failure.name: failure.reason for failure in coverage.failures} == {
        "part-1.parquet": "part-1.parquet: not indexed yet",
        "part-2.parquet": "part-2.parquet: not indexed yet",
        "part-9.parquet": "cut short",
    }
    assert all(failure.hints for failure in coverage.failures)


def test_an_index_of_another_normaliser_is_refused(made):
    folder, manifest, _ = made
    publish_manifest(folder, replace(manifest, recipe=replace(RECIPE, normaliser="word-0")))
    with pytest.raises(IndexMismatchError, match="word-0"):
        Index.open(folder)


@pytest.mark.parametrize(
    ("change", "fact"),
    [
        (lambda one: replace(one, files=one.files[1:]), "not listed in the manifest"),
        (lambda one: replace(one, files=one.files[:-1]), "not listed in the manifest"),
        (lambda one: replace(one, id="0" * 16), "missing"),
    ],
)
def test_a_segment_that_is_not_what_the_manifest_says_is_refused(made, change, fact):
    folder, manifest, _ = made
    segments = (change(manifest.segments[0]), manifest.segments[1])
    publish_manifest(folder, replace(manifest, segments=segments))
    with pytest.raises(IndexDamageError, match=fact):
        Index.open(folder)


def test_a_reader_keeps_what_a_writer_removes(made):
    folder, _, _ = made
    index = Index.open(folder)
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    segment = index.segments[1]
    for array in segment.arrays.values():
        array.check_all()
    assert segment.documents([0])[0].document_id == "doc-1-0"


def test_a_writer_that_comes_between_manifest_and_segments_is_no_damage(made, monkeypatch):
    folder, manifest, tokens = made
    new = write_segment(
        folder,
        [RowSpan(shard=0, first_row=0, n_rows=7), RowSpan(shard=1, first_row=0, n_rows=5)],
        [*tokens[0], *tokens[1]],
    )
    later = replace(manifest, segments=(new,))
    (folder / "segments" / manifest.segments[0].id / "grams_heads.npy").unlink()
    seen = iter([manifest, later])
    monkeypatch.setattr("contam.index.open.read_manifest", lambda _: next(seen))
    assert Index.open(folder).manifest == later
