"""A build: what it holds, that nothing but the corpus decides it, and what it refuses."""

from __future__ import annotations

import json
import threading
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from contam.corpus.columns import select_columns
from contam.corpus.documents import read_metadata
from contam.errors import CorpusError, IndexBusyError, IndexMismatchError, OutputError, UsageError
from contam.files import disk
from contam.index import build as build_module
from contam.index import change
from contam.index.change import compact
from contam.index.manifest import read_manifest, writer_lock
from contam.index.open import Index
from contam.index.recipe import load_recipe
from contam.index.segment import Segment
from contam.index.writing import intake
from contam.index.writing.intake import running
from contam.tables import blocks
from contam.text.bpe import load_tokenizer
from contam.text.tokenizer import tokenize_bytes
from tests.corpus_files import find_shards
from tests.index.builds import (
    build,
    crc,
    entries_of,
    files_of,
    keys_of,
    read_index,
    recipe_of,
    some_texts,
)
from tests.integration.inputs import corpus_of, write_jsonl, write_parquet
from tests.kernels.support import u64s
from tests.text.tokenizer_files import save_tokenizer
from tests.waiting import wait_until

TINY = 25_000
"""A memory that a few dozen documents fill."""

RECIPES = {
    "word": recipe_of(),
    "long": recipe_of(gram=6, stride=8),
    "char": recipe_of(unit="char", gram=24, stride=27),
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    corpus_of(folder, some_texts(90), some_texts(5, 90), some_texts(100, 95), row_group_size=30)
    write_jsonl(folder / "part-7.jsonl", [{"text": text, "url": "u"} for text in some_texts(40, 7)])
    return folder


@cache
def texts_of(folder):
    """(shard, row) -> text."""
    found = {}
    for path in folder.iterdir():
        if path.suffix == ".parquet":
            texts = pq.read_table(path)["text"].to_pylist()
        else:
            texts = [json.loads(line)["text"] for line in path.read_text("utf-8").splitlines()]
        found.update({(path.name, row): text for row, text in enumerate(texts)})
    return found


@cache
def wanted(folder, name):
    """(shard, row) -> the entries of the document, by the twins."""
    return {place: entries_of(text, RECIPES[name]) for place, text in texts_of(folder).items()}


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("memory", [TINY, build_module.DEFAULT_MEMORY])
def test_an_index_holds_the_entries_of_every_document_and_no_others(corpus, tmp_path, name, memory):
    manifest = build(corpus, tmp_path / "ix", RECIPES[name], memory=memory)
    assert (len(manifest.segments) > 4) == (memory == TINY)
    want = wanted(corpus, name)
    assert read_index(tmp_path / "ix", manifest) == want
    index = Index.open(tmp_path / "ix")
    assert index.coverage().complete
    assert index.coverage().total.rows == len(want)


def test_a_document_is_known_by_its_place_text_and_metadata(corpus, tmp_path):
    manifest = build(corpus, tmp_path / "ix", memory=TINY)
    texts = texts_of(corpus)
    shards = {shard.name: shard for shard in find_shards([corpus])}
    for segment in Index.open(tmp_path / "ix").segments:
        numbers = np.arange(segment.n_documents)
        names = [manifest.shards[place].name for place in segment.place_of(numbers)[0]]
        rows = segment.place_of(numbers)[1].tolist()
        checks = segment.arrays["doc_crc"].array.tolist()
        assert checks == [crc(texts[place]) for place in zip(names, rows, strict=True)]
        metadata = segment.documents(numbers)
        for name, row, one in zip(names, rows, metadata, strict=True):
            selection = select_columns(shards[name])
            assert one == read_metadata(shards[name], selection, [row])[0]


@pytest.mark.parametrize("memory", [TINY, build_module.DEFAULT_MEMORY])
def test_the_bytes_of_an_index_do_not_depend_on_workers(corpus, tmp_path, memory):
    folders = []
    for workers in (1, 2, 5):
        folders.append(tmp_path / f"ix{workers}")
        build_module._WORKER_BYTES, before = 1, build_module._WORKER_BYTES
        try:
            build(corpus, folders[-1], memory=memory, workers=workers)
        finally:
            build_module._WORKER_BYTES = before
    assert files_of(folders[0]) == files_of(folders[1]) == files_of(folders[2])


def test_of_a_gram_in_too_many_documents_the_first_are_kept(tmp_path):
    same = "one two three four five"
    corpus = corpus_of(tmp_path / "corpus", [f"{same} {n}" for n in range(30)])
    manifest = build(corpus, tmp_path / "ix", recipe_of(cap=7))
    (record,) = manifest.segments
    segment = Segment(tmp_path / "ix", record, manifest.recipe)
    pairs, capped = segment.grams.unpacked()
    assert (len(pairs), record.n_entries) == (7, 30)
    keys = keys_of(tokenize_bytes(same.encode()).hashes, 5)
    assert capped.tolist() == keys
    assert segment.grams.capped(u64s([*keys, 5])).tolist() == [True, False]


def test_no_segment_has_more_documents_than_a_pair_can_number(corpus, tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "MOST_ROWS", 7)
    monkeypatch.setattr(build_module, "_MOST_DOCUMENTS", 20)
    manifest = build(corpus, tmp_path / "ix")
    want = {place: entries_of(text, RECIPES["word"]) for place, text in texts_of(corpus).items()}
    assert read_index(tmp_path / "ix", manifest) == want
    assert max(one.n_documents for one in manifest.segments) < 20 + 7
    monkeypatch.setattr(change, "_MOST_DOCUMENTS", 40)
    compacted = compact(tmp_path / "ix")
    assert len(compacted.segments) < len(manifest.segments)
    assert max(one.n_documents for one in compacted.segments) <= 40
    assert read_index(tmp_path / "ix", compacted) == want


# -------------------------------------------------------------------------------- failures


def cut(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize("memory", [TINY, build_module.DEFAULT_MEMORY])
def test_a_shard_that_cannot_be_read_is_named_and_leaves_nothing(tmp_path, memory):
    corpus = corpus_of(tmp_path / "corpus", some_texts(30), some_texts(9), row_group_size=9)
    # Its first lines are good, and enough for several segments of the small memory.
    rows = [{"text": text} for text in some_texts(400)]
    bad = write_jsonl(corpus / "part-0a.jsonl", rows)
    bad.write_text(bad.read_text("utf-8") + "{no json\n", "utf-8")
    cut(write_parquet(corpus / "part-2.parquet", some_texts(40)))
    manifest = build(corpus, tmp_path / "ix", memory=memory)
    failures = {shard.name: shard.failure for shard in manifest.shards if shard.failure}
    assert sorted(failures) == ["part-0a.jsonl", "part-2.parquet"]
    assert "part-0a.jsonl, line 401" in failures["part-0a.jsonl"]
    assert manifest.pending == ()
    held = {place for place, _ in read_index(tmp_path / "ix", manifest)}
    assert held == {"part-0.parquet", "part-1.parquet"}
    folders = {path.name for path in (tmp_path / "ix" / "segments").iterdir()}
    assert folders == {segment.id for segment in manifest.segments}
    assert not Index.open(tmp_path / "ix").coverage().complete


def test_a_finished_index_is_not_built_over_unless_asked(corpus, tmp_path):
    build(corpus, tmp_path / "ix")
    before = files_of(tmp_path / "ix")
    with pytest.raises(OutputError, match="finished index") as caught:
        build(corpus, tmp_path / "ix")
    assert "--overwrite" in caught.value.hint
    assert files_of(tmp_path / "ix") == before
    build(corpus, tmp_path / "ix", RECIPES["long"], overwrite=True)
    assert read_manifest(tmp_path / "ix").recipe == RECIPES["long"]
    build(corpus, tmp_path / "new", RECIPES["long"])
    assert files_of(tmp_path / "ix") == files_of(tmp_path / "new")


def test_files_of_others_stay_however_they_are_called(corpus, tmp_path):
    folder = tmp_path / "index"
    folder.mkdir()
    (folder / "retired-staff.csv").write_text("name\n")
    with pytest.raises(OutputError):
        build(corpus, folder)
    (folder / "retired-staff.csv").rename(tmp_path / "kept.csv")
    build(corpus, folder)
    (tmp_path / "kept.csv").rename(folder / "retired-staff.csv")
    (folder / "retired-01234567.npy").write_bytes(b"a leftover")
    build_module.remove_strays(folder, read_manifest(folder))
    assert (folder / "retired-staff.csv").exists()
    assert not (folder / "retired-01234567.npy").exists()


def test_an_index_does_not_go_inside_its_corpus(corpus):
    with pytest.raises(UsageError, match="inside the corpus folder"):
        build(corpus, corpus / "ix")
    assert not (corpus / "ix").exists()


def test_a_second_writer_is_told_that_the_index_is_busy(corpus, tmp_path):
    with writer_lock(tmp_path / "ix"), pytest.raises(IndexBusyError):
        build(corpus, tmp_path / "ix")


@pytest.mark.parametrize("place", ["ix", "some/where/new/ix"])
@pytest.mark.parametrize("there", [False, True])
def test_a_build_that_fails_before_it_begins_leaves_no_folder(tmp_path, place, there):
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "a.jsonl").write_text('{"nothing": 1}\n')
    index = tmp_path / place
    if there:
        index.mkdir(parents=True)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(CorpusError, match="no text column"):
        build(corpus, index)
    assert sorted(tmp_path.rglob("*")) == before
    (corpus / "a.jsonl").write_text('{"text": "there is one now"}\n')
    assert not build(corpus, index).pending


def test_a_lock_that_its_owner_has_removed_locks_nothing(tmp_path, monkeypatch):
    locked = []

    def flock(handle, operation):
        os_flock(handle, operation)
        locked.append(handle)
        if len(locked) == 1:
            (tmp_path / "ix" / "lock").unlink()

    os_flock = disk.fcntl.flock
    monkeypatch.setattr(disk.fcntl, "flock", flock)
    with writer_lock(tmp_path / "ix"):
        assert len(locked) == 2
        with pytest.raises(IndexBusyError), writer_lock(tmp_path / "ix"):
            raise AssertionError("two writers could be here")


# ------------------------------------------------------------------------------ stopping


class Stop:
    """Progress that raises KeyboardInterrupt after so many bytes."""

    def __init__(self, after: int) -> None:
        self._left = after

    def start(self, total_bytes):
        pass

    def note(self, message):
        pass

    def finish(self):
        pass

    def advance(self, n_bytes):
        self._left -= n_bytes
        if self._left < 0:
            raise KeyboardInterrupt


@pytest.mark.parametrize("share", [0.0, 0.1, 0.3, 0.6, 0.9])
def test_a_stopped_build_goes_on_and_ends_the_same(corpus, tmp_path, share):
    want = tmp_path / "want"
    build(corpus, want, memory=TINY)
    total = sum(path.stat().st_size for path in corpus.iterdir())
    n_threads = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        build(corpus, tmp_path / "ix", memory=TINY, progress=Stop(int(share * total)))
    assert threading.active_count() == n_threads
    assert read_manifest(tmp_path / "ix").pending
    build(corpus, tmp_path / "ix", memory=TINY)
    assert files_of(tmp_path / "ix") == files_of(want)


def test_an_unfinished_index_goes_on_with_the_same_call_only(corpus, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        build(corpus, tmp_path / "ix", memory=TINY, progress=Stop(0))
    before = files_of(tmp_path / "ix")
    with pytest.raises(IndexMismatchError, match="another recipe"):
        build(corpus, tmp_path / "ix", RECIPES["long"])
    with pytest.raises(IndexMismatchError, match="other shards"):
        build(corpus / "part-0.parquet", tmp_path / "ix")
    assert files_of(tmp_path / "ix") == before


def test_a_shard_that_changed_since_it_was_indexed_stops_the_resumption(tmp_path):
    corpus = corpus_of(tmp_path / "corpus", *(some_texts(100, 9 * n) for n in range(4)))
    total = sum(path.stat().st_size for path in corpus.iterdir())
    with pytest.raises(KeyboardInterrupt):
        build(corpus, tmp_path / "ix", memory=TINY, workers=1, progress=Stop(total))
    assert "part-0.parquet" not in read_manifest(tmp_path / "ix").pending
    write_parquet(corpus / "part-0.parquet", ["something else altogether"])
    with pytest.raises(IndexMismatchError, match=r"part-0\.parquet changed"):
        build(corpus, tmp_path / "ix", memory=TINY)


# ----------------------------------------------------------------------- tokens of a file


def test_the_tokens_of_a_tokenizer_file_are_sampled_and_the_file_is_pinned(corpus, tmp_path):
    file = Path(save_tokenizer(tmp_path, "byte_bpe"))
    recipe = load_recipe("bpe", tokenizer=file)
    manifest = build(corpus, tmp_path / "ix", recipe, memory=TINY)
    tokenizer = load_tokenizer(file)
    want = {}
    for place, text in texts_of(corpus).items():
        want[place] = sorted(set(keys_of(tokenizer.encode_text(text).hashes, recipe.gram)))
    assert read_index(tmp_path / "ix", manifest) == want
    file.write_text(file.read_text("utf-8") + " ", "utf-8")
    with pytest.raises(IndexMismatchError, match="not the tokenizer"):
        build(corpus, tmp_path / "ix", recipe, overwrite=True)


def test_a_half_downloaded_shard_is_expected_and_not_read(tmp_path):
    corpus_of(tmp_path / "corpus", some_texts(5))
    (tmp_path / "corpus" / "next.parquet.part").write_bytes(b"PAR1 and no more")
    build(tmp_path / "corpus", tmp_path / "index")
    coverage = Index.open(tmp_path / "index").coverage()
    assert not coverage.complete
    assert [failure.name for failure in coverage.failures] == ["next.parquet.part"]


def test_small_shards_are_read_on_while_a_large_one_before_them_is_not_done():
    behind = [threading.Event() for _ in range(4)]

    def do(task, put):
        if task == 0:
            wait_until(lambda: all(event.is_set() for event in behind))
        put((task, "a"), 1000)
        put((task, "b"), 1000)
        if task:
            behind[task - 1].set()
        return task, "end"

    with running(range(5), 2, lambda: do) as pipeline:
        found = [result for _ in range(5) for result in pipeline.results()]
    assert found == [(task, name) for task in range(5) for name in ("a", "b", "end")]


def test_no_more_is_read_ahead_than_fits_while_a_segment_is_written(monkeypatch):
    monkeypatch.setattr(intake, "_MOST_WAITING_BYTES", 4000)
    begun, taken, ahead = [], [], []

    def do(task, put):
        for _ in range(task % 3):
            put(task, 1000)
            begun.append(task)
            ahead.append(len(begun) - len(taken))
        return task

    with running(range(99), 2, lambda: do) as pipeline:
        wait_until(lambda: len(begun) >= 8)
        for task in range(98):
            *some, last = pipeline.results()
            assert (some, last) == ([task] * (task % 3), task)
            taken += some
        pipeline.skip()
    # One more of each thread, and those of the task that is taken.
    assert max(ahead) <= 8 + 2 + 2
