"""Indexes held open: what is written into their files is noticed before anything is answered from it."""

from __future__ import annotations

import os
import shutil

import pytest

from contam.config import Settings
from contam.errors import IndexDamageError
from contam.server.holder import IndexHolder


def test_an_index_written_to_answers_nothing_until_it_is_opened_again(small_index, tmp_path):
    folder = shutil.copytree(small_index, tmp_path / "small")
    holder = IndexHolder.open(Settings(index=(str(folder),)))
    path = max(folder.glob("segments/*/*.npy"), key=lambda one: one.stat().st_size)
    good = path.read_bytes()
    with pytest.raises(IndexDamageError), holder.lease():
        path.write_bytes(good)
    holder.look()
    assert holder.damaged == ("small",)
    with pytest.raises(IndexDamageError), holder.lease():
        pytest.fail("it must not be asked")
    holder.reload("small")
    assert holder.damaged == ()
    with holder.lease() as lease:
        assert lease.reader.check("no words of the corpus at all").complete


def test_setting_the_time_of_writing_back_hides_nothing(small_index, tmp_path):
    folder = shutil.copytree(small_index, tmp_path / "small")
    holder = IndexHolder.open(Settings(index=(str(folder),)))
    path = max(folder.glob("segments/*/*.npy"), key=lambda one: one.stat().st_size)
    times = path.stat()
    good = path.read_bytes()
    path.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    with pytest.raises(IndexDamageError), holder.lease():
        pass
    holder.look()
    assert holder.damaged == ("small",)


def test_other_rights_and_further_links_are_no_damage(small_index, tmp_path):
    folder = shutil.copytree(small_index, tmp_path / "small")
    holder = IndexHolder.open(Settings(index=(str(folder),)))
    for path in folder.glob("segments/*/*"):
        path.chmod(0o600)
        os.link(path, tmp_path / f"kept-{path.name}")
    with holder.lease() as lease:
        assert lease.reader.check("no words of the corpus at all").complete
    holder.look()
    assert holder.damaged == ()


def test_an_index_that_is_removed_goes_on_to_answer_and_cannot_be_opened_again(
    small_index, tmp_path
):
    folder = shutil.copytree(small_index, tmp_path / "small")
    holder = IndexHolder.open(Settings(index=(str(folder),)))
    shutil.rmtree(folder)
    holder.look()
    with pytest.raises(IndexDamageError):
        holder.reload("small")
    with holder.lease() as lease:
        assert lease.reader.check("no words of the corpus at all").complete
