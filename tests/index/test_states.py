"""Shards edited where no quick digest looks: their times tell, and `index verify` settles it."""

from __future__ import annotations

import os
import shutil

import pytest

from contam.config import Settings
from contam.corpus.shards import shard_digest
from contam.detect.query import query
from contam.errors import IndexDamageError, IndexMismatchError
from contam.index.change import add
from contam.index.manifest import read_manifest
from contam.index.states import STATES, read_states
from contam.index.verify import verify
from contam.server.indexes import IndexRegistry
from tests.corpus_files import find_shards
from tests.index.builds import build
from tests.integration.inputs import (
    ABSENT,
    FILLER,
    QUESTION,
    contam_here,
    labels,
    write_items,
    write_jsonl,
    write_parquet,
)

#: More than both edges that a digest is made of.
ROWS = 2000
MIDDLE = f"{ROWS // 2:06d} {FILLER}"
LEAK = f"{ROWS // 2:06d} {QUESTION}".ljust(len(MIDDLE))
TEXTS = [f"{row:06d} {FILLER}" for row in range(ROWS)]


@pytest.fixture(params=["shard.jsonl", "shard.parquet"])
def shard(request, tmp_path):
    path = tmp_path / "corpus" / request.param
    if path.suffix == ".jsonl":
        return write_jsonl(path, [{"text": text} for text in TEXTS])
    return write_parquet(path, TEXTS, compression="none", use_dictionary=False)


@pytest.fixture
def folder(shard, tmp_path):
    build(shard.parent, tmp_path / "ix")
    return tmp_path / "ix"


@pytest.fixture
def items(tmp_path):
    return write_items(tmp_path / "items.jsonl", QUESTION, ABSENT)


def edited(path) -> bytes:
    """The bytes of the shard with a question in the middle, of the same size."""
    raw = path.read_bytes()
    assert raw.count(MIDDLE.encode()) == 1
    return raw.replace(MIDDLE.encode(), LEAK.encode())


def in_place(path):
    content = edited(path)
    with path.open("r+b") as file:
        file.write(content)
    os.utime(path, ns=(0, 1_700_000_000_000_000_000))


def in_place_with_its_time_set_back(path):
    times = path.stat()
    in_place(path)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


def by_a_new_file(path):
    draft = path.with_name("draft")
    draft.write_bytes(edited(path))
    os.utime(draft, ns=(0, 1_700_000_000_000_000_000))
    draft.replace(path)


EDITS = (in_place, in_place_with_its_time_set_back, by_a_new_file)


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_in_the_middle_of_a_shard_is_noticed_by_every_query(shard, folder, items, edit):
    before = shard_digest(find_shards([shard])[0])
    assert labels(query(folder, items)) == {"q0": "clean", "q1": "clean"}
    edit(shard)
    assert shard_digest(find_shards([shard])[0]) == before
    for _ in range(2):
        result = query(folder, items)
        (failure,) = result.coverage["shards_failed"]
        assert failure["shard"] == shard.name
        assert (
            "since it was indexed" in failure["reason"]
            or "written at another time" in failure["reason"]
        )
        assert set(labels(result).values()) == {"not_checkable"}
    report = verify(folder)
    assert [finding.what for finding in report.findings] == ["corpus"]
    assert report.n_noted == 0
    assert not query(folder, items).complete


def test_a_service_notices_it_when_it_looks(shard, folder):
    registry = IndexRegistry.open(Settings(index=(str(folder),)))
    with registry.snapshot() as snapshot:
        assert snapshot.reader.check(ABSENT).complete
    in_place_with_its_time_set_back(shard)
    registry.look()
    with registry.snapshot() as snapshot:
        assert not snapshot.reader.check(ABSENT).complete


def test_adding_an_edited_shard_does_not_pass_it_over(shard, folder):
    assert add(folder, shard).passed_over == (shard.name,)
    in_place(shard)
    with pytest.raises(IndexMismatchError, match="with other bytes"):
        add(folder, shard)


def touched(path):
    os.utime(path)


def other_rights(path):
    path.chmod(0o600)


def linked(path):
    os.link(path, path.parent.parent / "link")


def written_again(path):
    draft = path.with_name("draft")
    draft.write_bytes(path.read_bytes())
    os.utime(draft, ns=(0, 1_700_000_000_000_000_000))
    draft.replace(path)


@pytest.mark.parametrize("change", [touched, other_rights, linked, written_again])
def test_where_only_times_changed_verify_lets_queries_go_on(shard, folder, items, change):
    manifest = read_manifest(folder)
    change(shard)
    assert not query(folder, items).complete
    done = contam_here("query", "--index", folder, "--benchmark", items, "--out", folder / "../out")
    assert done.returncode == 4
    assert "verifying the index" in done.stdout
    done = contam_here("index", "verify", "--index", folder)
    assert done.returncode == 0
    assert "1 shard" in done.stdout
    assert query(folder, items).complete
    assert read_manifest(folder) == manifest
    assert verify(folder).n_noted == 0


def test_a_copy_that_kept_its_times_is_the_same_corpus(shard, folder, items, tmp_path):
    shutil.copytree(shard.parent, tmp_path / "copy")
    ix = shutil.copytree(folder, tmp_path / "copied")
    shutil.rmtree(shard.parent)
    assert not query(ix, items).complete
    assert query(ix, items, corpus=tmp_path / "copy").complete


def test_a_copy_with_new_times_is_verified_once(shard, folder, items, tmp_path):
    (tmp_path / "copy").mkdir()
    copy = tmp_path / "copy" / "renamed.data"
    copy = copy.with_suffix(shard.suffix)
    shutil.copyfile(shard, copy)
    os.utime(copy, ns=(0, 1_700_000_000_000_000_000))
    shutil.rmtree(shard.parent)
    assert not query(folder, items, corpus=copy.parent).complete
    assert not verify(folder).ok
    report = verify(folder, corpus=[copy.parent])
    assert (report.ok, report.n_noted) == (True, 1)
    assert query(folder, items, corpus=copy.parent).complete
    in_place_with_its_time_set_back(copy)
    assert not query(folder, items, corpus=copy.parent).complete


def test_an_index_without_states_answers_and_verify_gives_it_some(shard, folder, items):
    known = read_states(folder)
    assert list(known) == [str(shard)]
    (folder / STATES).unlink()
    touched(shard)
    assert query(folder, items).complete
    assert verify(folder).n_noted == 1
    assert read_states(folder).keys() == known.keys()
    assert query(folder, items).complete


@pytest.mark.parametrize("spoilt", ["", "[]", '{"states":[]}', '{"states":{"a":["b",[1,2]]}}'])
def test_states_that_are_damaged_are_not_passed_over(folder, items, spoilt):
    (folder / STATES).write_text(spoilt)
    with pytest.raises(IndexDamageError, match=STATES):
        query(folder, items)
    assert verify(folder).damaged
