"""Files: written whole or not at all, told apart by what is in them, and in the order of their names."""

from __future__ import annotations

import hashlib
import os
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contam.errors import OutputError
from contam.files.listed import state_at
from contam.files.natural_order import natural_key
from contam.files.single import fingerprint, whole_file, write_file


def test_a_file_that_is_not_finished_leaves_what_stood_there(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"before")

    def half_a_file():
        with whole_file(path, overwrite=True) as file:
            file.write(b"half")
            raise KeyError

    with pytest.raises(KeyError):
        half_a_file()
    assert path.read_bytes() == b"before"
    assert [one.name for one in tmp_path.iterdir()] == ["file"]


def test_a_file_is_replaced_only_when_that_is_asked_for_and_keeps_its_rights(tmp_path):
    path = tmp_path / "file"
    write_file(path, b"one")
    with pytest.raises(OutputError, match="already exists"):
        write_file(path, b"two")
    path.chmod(0o640)
    write_file(path, b"two", overwrite=True)
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"two", 0o640)


def test_behind_a_link_the_file_is_written_and_the_link_stays(tmp_path):
    (tmp_path / "folder").mkdir()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "folder" / "file")
    write_file(link, b"one")
    write_file(link, b"two", overwrite=True)
    assert link.is_symlink()
    assert (tmp_path / "folder" / "file").read_bytes() == b"two"


def test_a_folder_that_takes_nothing_is_an_error_that_says_so(tmp_path):
    with pytest.raises(OutputError, match="cannot write"):
        write_file(tmp_path / "nowhere" / "file", b"one")
    (tmp_path / "folder").mkdir()
    with pytest.raises(OutputError, match="cannot write"):
        write_file(tmp_path / "folder", b"one", overwrite=True)
    assert list((tmp_path / "folder").iterdir()) == []
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


@pytest.mark.parametrize("data", [b"", b"x" * 3_000_000])
def test_the_fingerprint_of_a_file_is_of_all_its_bytes(tmp_path, data):
    write_file(tmp_path / "file", data)
    known = {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    assert fingerprint(tmp_path / "file") == known


def written(path, data, modified_ns=1_700_000_000_123_456_789):
    path.write_bytes(data)
    os.utime(path, ns=(modified_ns, modified_ns))
    return state_at(str(path))


def test_a_stamp_is_the_same_for_a_copy_that_kept_its_time(tmp_path):
    first = written(tmp_path / "a.jsonl", b"one")
    copy = written(tmp_path / "b.jsonl", b"one")
    assert first.inode != copy.inode
    assert first.stamp == copy.stamp


def test_a_stamp_differs_for_another_size_or_time(tmp_path):
    path = tmp_path / "a.jsonl"
    stamps = {
        written(path, b"one").stamp,
        written(path, b"four").stamp,
        written(path, b"one", 1_700_000_000_123_456_790).stamp,
    }
    assert len(stamps) == 3


NAMES = st.text(alphabet="\0\1\2\3019ab²\ue000\U0010ffff", max_size=8) | st.text()


def by_pieces(name: str) -> tuple[list[object], str]:
    """Text and number take turns: keys meet text with text, and number with number."""
    pieces: list[object] = [*re.split("([0-9]+)", name)]
    pieces[1::2] = [int(str(number)) for number in pieces[1::2]]
    return pieces, name


@given(st.lists(NAMES))
def test_texts_compare_as_texts_and_numbers_as_numbers(names: list[str]):
    assert sorted(names, key=natural_key) == sorted(names, key=by_pieces)


def test_a_number_may_be_longer_than_any_that_python_reads():
    names = ["n" + "9" * 5000, "n1" + "0" * 5000, "n2"]
    assert sorted(names, key=natural_key) == ["n2", *names[:2]]


@given(NAMES, NAMES)
def test_only_equal_names_have_equal_keys(one: str, other: str):
    assert (natural_key(one) == natural_key(other)) == (one == other)
