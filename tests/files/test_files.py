"""Single files: written whole or not at all, and told apart by what is in them."""

from __future__ import annotations

import hashlib

import pytest

from contam.errors import OutputError
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
