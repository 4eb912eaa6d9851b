"""Shards added, shards and documents retired, segments compacted."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contam.errors import IndexBusyError, IndexMismatchError, UsageError
from contam.index.change import add, compact, retire
from contam.index.manifest import read_manifest, writer_lock
from contam.index.open import Index
from contam.kernels.pairs import DOCUMENT_BITS
from tests.index.builds import build, files_of, read_index, recipe_of, some_texts
from tests.integration.inputs import corpus_of, write_parquet

TINY = 25_000


@pytest.fixture
def corpus(tmp_path):
    return corpus_of(tmp_path / "corpus", some_texts(90), some_texts(40, 90), some_texts(70, 130))


def candidates(folder):
    """key -> (shard, row) of every document that an answer would look at."""
    index = Index.open(folder)
    found: dict[int, list[tuple[str, int]]] = {}
    for segment in index.segments:
        pairs, _ = segment.grams.unpacked()
        documents = (pairs & np.uint64((1 << DOCUMENT_BITS) - 1)).astype(np.int64)
        shard, row = segment.place_of(documents)
        live = (index.number_of[shard] >= 0) & ~index.retired.holds(shard, row)
        names = [index.manifest.shards[place].name for place in shard.tolist()]
        keys = (pairs >> np.uint64(DOCUMENT_BITS)).tolist()
        for key, name, number, is_live in zip(
            keys, names, row.tolist(), live.tolist(), strict=True
        ):
            if is_live:
                found.setdefault(key, []).append((name, number))
    return {key: sorted(places) for key, places in found.items()}


def test_an_index_that_grew_holds_what_one_built_at_once_holds(corpus, tmp_path):
    build(corpus / "part-0.parquet", tmp_path / "ix")
    added = add(tmp_path / "ix", corpus)
    assert added.passed_over == ("part-0.parquet",)
    build(corpus, tmp_path / "want")
    assert candidates(tmp_path / "ix") == candidates(tmp_path / "want")
    assert read_index(tmp_path / "ix", added.manifest) == read_index(
        tmp_path / "want", read_manifest(tmp_path / "want")
    )


def test_adding_what_is_there_changes_nothing(corpus, tmp_path):
    build(corpus, tmp_path / "ix")
    before = files_of(tmp_path / "ix")
    added = add(tmp_path / "ix", corpus)
    assert added.passed_over == ("part-0.parquet", "part-1.parquet", "part-2.parquet")
    assert files_of(tmp_path / "ix") == before


def test_a_file_that_differs_in_the_middle_alone_is_not_taken_for_one_that_is_there(tmp_path):
    # Size, beginning and end are what the digest is of.
    filler = json.dumps({"text": "plain words only " * 4500}) + "\n"
    middle = [json.dumps({"text": text}) + "\n" for text in ("one two six", "six two one")]
    for folder, line in zip(("old", "new"), middle, strict=True):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{folder}.jsonl").write_text(filler + line + filler)
    build(tmp_path / "old", tmp_path / "ix")
    shutil.copy(tmp_path / "old/old.jsonl", tmp_path / "new/copy.jsonl")
    added = add(tmp_path / "ix", tmp_path / "new")
    assert added.passed_over == ("copy.jsonl",)
    assert [shard.name for shard in added.manifest.shards] == ["old.jsonl", "new.jsonl"]


def test_a_shard_with_a_known_name_and_other_bytes_is_refused(corpus, tmp_path):
    build(corpus, tmp_path / "ix")
    before = files_of(tmp_path / "ix")
    write_parquet(corpus / "part-1.parquet", some_texts(12, 3))
    with pytest.raises(IndexMismatchError, match=r"part-1\.parquet") as caught:
        add(tmp_path / "ix", corpus)
    assert "retire --shard part-1.parquet" in caught.value.hint
    assert files_of(tmp_path / "ix") == before


def test_a_shard_that_failed_can_be_mended_and_added(corpus, tmp_path):
    good = (corpus / "part-1.parquet").read_bytes()
    (corpus / "part-1.parquet").write_bytes(good[:500])
    assert build(corpus, tmp_path / "ix").shards[1].failure
    (corpus / "part-1.parquet").write_bytes(good)
    add(tmp_path / "ix", corpus)
    build(corpus, tmp_path / "want")
    assert Index.open(tmp_path / "ix").coverage().complete
    assert candidates(tmp_path / "ix") == candidates(tmp_path / "want")


def test_a_retired_shard_is_gone_and_can_come_back(corpus, tmp_path):
    build(corpus, tmp_path / "ix")
    before = candidates(tmp_path / "ix")
    retire(tmp_path / "ix", shards=["part-1.parquet"])
    without = candidates(tmp_path / "ix")
    assert not any(name == "part-1.parquet" for places in without.values() for name, _ in places)
    assert Index.open(tmp_path / "ix").names == ("part-0.parquet", "part-2.parquet")
    assert add(tmp_path / "ix", corpus).still_retired == ("part-1.parquet",)
    assert candidates(tmp_path / "ix") == without
    assert Index.open(tmp_path / "ix").names == ("part-0.parquet", "part-2.parquet")
    assert add(tmp_path / "ix", corpus, again=True).still_retired == ()
    assert add(tmp_path / "ix", corpus).still_retired == ()
    assert candidates(tmp_path / "ix") == before
    compact(tmp_path / "ix")
    assert candidates(tmp_path / "ix") == before


def test_a_retired_shard_that_was_rewritten_is_another_one(corpus, tmp_path):
    build(corpus, tmp_path / "ix")
    retire(tmp_path / "ix", shards=["part-1.parquet"])
    write_parquet(corpus / "part-1.parquet", some_texts(12, 3))
    assert add(tmp_path / "ix", corpus).still_retired == ()
    build(corpus, tmp_path / "want")
    assert candidates(tmp_path / "ix") == candidates(tmp_path / "want")


def test_documents_are_retired_by_their_own_id_or_by_place(tmp_path):
    corpus = corpus_of(tmp_path / "corpus", some_texts(30))
    texts = pa.array(some_texts(9, 40), pa.string())
    pq.write_table(pa.table({"text": texts}), corpus / "anonymous.parquet")
    build(corpus, tmp_path / "ix")
    before = candidates(tmp_path / "ix")
    retire(tmp_path / "ix", documents=["part-0.parquet-4", "anonymous.parquet:7"])
    gone = {("part-0.parquet", 4), ("anonymous.parquet", 7)}
    want = {
        gram: [place for place in places if place not in gone] for gram, places in before.items()
    }
    assert candidates(tmp_path / "ix") == {gram: places for gram, places in want.items() if places}
    retire(tmp_path / "ix", documents=["part-0.parquet-5"])
    assert len(Index.open(tmp_path / "ix").retired) == 3
    assert len([path for path in (tmp_path / "ix").iterdir() if "retired" in path.name]) == 2


@pytest.mark.parametrize("cap", [3, 10_000])
def test_compaction_makes_of_many_segments_what_a_large_memory_makes(corpus, tmp_path, cap):
    many = build(corpus, tmp_path / "ix", recipe_of(cap=cap), memory=TINY)
    one = build(corpus, tmp_path / "want", recipe_of(cap=cap))
    assert (len(many.segments) > 4, len(one.segments)) == (True, 1)
    assert len(compact(tmp_path / "ix").segments) == 1
    found = {name: raw for name, raw in files_of(tmp_path / "ix").items() if "MANIFEST" not in name}
    want = {
        name: raw for name, raw in files_of(tmp_path / "want").items() if "MANIFEST" not in name
    }
    assert found == want


def test_compaction_leaves_out_what_is_retired_and_changes_no_answer(corpus, tmp_path):
    build(corpus, tmp_path / "ix", memory=TINY)
    retire(tmp_path / "ix", shards=["part-0.parquet"], documents=["part-1.parquet-4"])
    before = candidates(tmp_path / "ix")
    size = sum(map(len, files_of(tmp_path / "ix").values()))
    compact(tmp_path / "ix")
    assert candidates(tmp_path / "ix") == before
    assert sum(map(len, files_of(tmp_path / "ix").values())) < size
    again = files_of(tmp_path / "ix")
    compact(tmp_path / "ix")
    assert files_of(tmp_path / "ix") == again


def test_an_open_index_answers_on_while_it_is_compacted(corpus, tmp_path):
    build(corpus, tmp_path / "ix", memory=TINY)
    opened = Index.open(tmp_path / "ix")
    compact(tmp_path / "ix")
    for segment in opened.segments:
        assert len(segment.documents(range(segment.n_documents))) == segment.n_documents


@pytest.mark.parametrize("change", [compact, retire, lambda ix: add(ix, ix)])
def test_no_change_without_the_lock_or_without_an_index(corpus, tmp_path, change):
    with pytest.raises(UsageError, match="no index"):
        change(tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()
    build(corpus, tmp_path / "ix")
    with writer_lock(tmp_path / "ix"), pytest.raises(IndexBusyError):
        change(tmp_path / "ix")
