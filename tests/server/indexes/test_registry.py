"""Indexes held open: what is written into their files is noticed before anything is answered from it."""

from __future__ import annotations

import os
import shutil

import pytest

from contam.config import Settings
from contam.errors import IndexDamageError
from contam.server.indexes import watched
from contam.server.indexes.registry import IndexRegistry


def test_an_index_written_to_answers_nothing_until_it_is_opened_again(small_index, tmp_path):
    folder = shutil.copytree(small_index, tmp_path / "small")
    registry = IndexRegistry.open(Settings(index=(str(folder),)))
    path = max(folder.glob("segments/*/*.npy"), key=lambda one: one.stat().st_size)
    good = path.read_bytes()
    with pytest.raises(IndexDamageError), registry.snapshot():
        path.write_bytes(good)
    # By the answer that met it, before anybody looked in the background.
    assert registry.damaged == ("small",)
    with pytest.raises(IndexDamageError), registry.snapshot():
        pytest.fail("it must not be asked")
    registry.reload("small")
    assert registry.damaged == ()
    with registry.snapshot() as snapshot:
        assert snapshot.reader.check("no words of the corpus at all").complete


def test_a_segment_that_is_still_being_written_harms_nobody(small_index, tmp_path):
    folder = shutil.copytree(small_index, tmp_path / "small")
    late = folder / "segments" / "late" / "postings.crc"
    late.parent.mkdir()
    late.write_bytes(b"half")
    registry = IndexRegistry.open(Settings(index=(str(folder),)))
    late.write_bytes(b"now all of it")
    with registry.snapshot() as snapshot:
        assert snapshot.reader.check("no words of the corpus at all").complete


def test_a_state_that_is_published_while_an_index_is_opened_is_watched(
    small_index, tmp_path, monkeypatch
):
    folder = shutil.copytree(small_index, tmp_path / "small")
    real, states = watched.index_id, ["an earlier state"]
    # What was looked at first is a state that nobody can open any more.
    monkeypatch.setattr(watched, "index_id", lambda found: states.pop() if states else real(found))
    registry = IndexRegistry.open(Settings(index=(str(folder),)))
    assert not states
    path = max(folder.glob("segments/*/*.npy"), key=lambda one: one.stat().st_size)
    with pytest.raises(IndexDamageError), registry.snapshot():
        path.write_bytes(path.read_bytes())


def test_setting_the_time_of_writing_back_hides_nothing(small_index, tmp_path):
    folder = shutil.copytree(small_index, tmp_path / "small")
    registry = IndexRegistry.open(Settings(index=(str(folder),)))
    path = max(folder.glob("segments/*/*.npy"), key=lambda one: one.stat().st_size)
    times = path.stat()
    good = path.read_bytes()
    path.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    with pytest.raises(IndexDamageError), registry.snapshot():
        pass
    registry.look()
    assert registry.damaged == ("small",)


def test_other_rights_and_further_links_are_no_damage(small_index, tmp_path):
    folder = shutil.copytree(small_index, tmp_path / "small")
    registry = IndexRegistry.open(Settings(index=(str(folder),)))
    for path in folder.glob("segments/*/*"):
        path.chmod(0o600)
        os.link(path, tmp_path / f"kept-{path.name}")
    with registry.snapshot() as snapshot:
        assert snapshot.reader.check("no words of the corpus at all").complete
    registry.look()
    assert registry.damaged == ()


def test_damage_met_by_a_question_to_several_indexes_ends_the_answers_of_its_own_alone(
    small_index, tmp_path
):
    first, second = (shutil.copytree(small_index, tmp_path / name) for name in ("one", "two"))
    registry = IndexRegistry.open(Settings(index=(str(first), str(second))))
    both = ["one", "two"]
    with registry.snapshot(both) as snapshot:
        assert snapshot.reader.check("no words of the corpus at all").complete
    path = next(second.glob("segments/*/*.npy"))
    with pytest.raises(IndexDamageError), registry.snapshot(both):
        path.write_bytes(path.read_bytes())
    assert registry.damaged == ("two",)
    with registry.snapshot(["one"]) as snapshot:
        assert snapshot.reader.check("no words of the corpus at all").complete
    with pytest.raises(IndexDamageError), registry.snapshot(both):
        pytest.fail("it must not be asked")


def test_damage_that_a_reload_has_ended_is_not_noted_again(small_index, tmp_path):
    folder = shutil.copytree(small_index, tmp_path / "small")
    registry = IndexRegistry.open(Settings(index=(str(folder),)))
    path = max(folder.glob("segments/*/*.npy"), key=lambda one: one.stat().st_size)

    def reload_what_was_written_to():
        path.write_bytes(path.read_bytes())
        registry.reload("small")

    with pytest.raises(IndexDamageError), registry.snapshot():
        reload_what_was_written_to()
    assert registry.damaged == ()


def test_an_index_that_is_removed_goes_on_to_answer_and_cannot_be_opened_again(
    small_index, tmp_path
):
    folder = shutil.copytree(small_index, tmp_path / "small")
    registry = IndexRegistry.open(Settings(index=(str(folder),)))
    shutil.rmtree(folder)
    registry.look()
    with pytest.raises(IndexDamageError):
        registry.reload("small")
    with registry.snapshot() as snapshot:
        assert snapshot.reader.check("no words of the corpus at all").complete
