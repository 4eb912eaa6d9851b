"""Array files: written as the format says, read only as far as they were checked."""

import hashlib
import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contam.errors import IndexDamageError, OutputError
from contam.index import array_files
from contam.index.array_files import (
    BLOCK_BYTES,
    HEADER_BYTES,
    CheckedArray,
    CheckedFile,
    HeaderError,
    header,
    parse_header,
    record_file,
    write_array,
)
from tests.twins import segment as twin

ARRAYS = {
    "none": np.empty(0, np.int64),
    "no_rows": np.empty((0, 5), np.uint16),
    "small": np.arange(10, dtype=np.uint32),
    "rows": np.arange(50, dtype=np.uint16).reshape(10, 5),
    "long": np.arange(40_000, dtype=np.uint64) * 7,
    "wide": np.arange(100_000, dtype=np.uint16).reshape(-1, 5),
    "bytes": np.arange(200, dtype=np.uint8),
    "floats": np.linspace(0, 1, 9).astype(np.float32),
    "one_block": np.zeros((BLOCK_BYTES - HEADER_BYTES) // 4, np.uint32),
    "strided": np.arange(30, dtype=np.int64)[::3],
}


@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_is_written_as_the_format_says_and_read_back(tmp_path, name):
    array = ARRAYS[name]
    record = write_array(tmp_path, name, array)
    content = (tmp_path / f"{name}.npy").read_bytes()
    code = array.dtype.newbyteorder("<").str
    assert content == twin.npy(code, array.shape, np.ascontiguousarray(array).tobytes())
    assert (tmp_path / f"{name}.crc").read_bytes() == twin.crc(content)
    assert record.n_bytes == len(content)
    file = CheckedArray(tmp_path, record)
    file.check_all()
    assert np.array_equal(file.array, array)
    assert file.array.dtype == array.dtype
    assert not file.array.flags.writeable
    assert np.array_equal(np.load(io.BytesIO(content), allow_pickle=False), array)


@given(at=st.integers(0, HEADER_BYTES - 1), flip=st.integers(1, 255))
def test_a_header_has_one_spelling(at, flip):
    raw = bytearray(header(np.dtype("<u2"), (1234, 5)))
    raw[at] ^= flip
    try:
        found = parse_header(bytes(raw))
    except HeaderError:
        return
    # Another header, not another spelling of this one: the file's length will contradict it.
    assert found != (np.dtype("<u2"), (1234, 5))


@given(
    ranges=st.lists(
        st.tuples(st.integers(0, 60_000), st.integers(0, 60_000)), min_size=1, max_size=5
    ),
    bad=st.integers(0, 240_000 + HEADER_BYTES - 1),
)
def test_many_ranges_are_checked_like_each_by_itself(tmp_path_factory, ranges, bad):
    folder = tmp_path_factory.mktemp("array")
    record = write_array(folder, "x", np.arange(60_000, dtype=np.uint32))
    raw = bytearray((folder / "x.npy").read_bytes())
    raw[max(bad, HEADER_BYTES)] ^= 0xFF
    (folder / "x.npy").write_bytes(raw)
    bad_block = max(bad, HEADER_BYTES) // BLOCK_BYTES
    touched = any(
        (HEADER_BYTES + 4 * lo) // BLOCK_BYTES
        <= bad_block
        <= (HEADER_BYTES + 4 * hi - 1) // BLOCK_BYTES
        for lo, hi in ranges
        if lo < hi
    )
    lo, hi = zip(*ranges, strict=True)
    many, single = CheckedArray(folder, record), CheckedArray(folder, record)
    assert fails(lambda: many.check_many(lo, hi)) == touched
    assert fails(lambda: [single.check(*one) for one in ranges]) == touched
    assert fails(single.check_all)


def fails(action):
    try:
        action()
    except IndexDamageError:
        return True
    return False


def cut(path):
    path.write_bytes(path.read_bytes()[:-1])


def grow(path):
    path.write_bytes(path.read_bytes() + b"\0")


def flip_first(path):
    raw = bytearray(path.read_bytes())
    raw[0] ^= 0x10
    path.write_bytes(raw)


def remove(path):
    path.unlink()


def make_folder(path):
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize("name", ["x.npy", "x.crc"])
@pytest.mark.parametrize("harm", [cut, grow, flip_first, remove, make_folder])
def test_other_damage_is_noticed_when_the_array_is_opened(tmp_path, name, harm):
    record = write_array(tmp_path, "x", np.arange(1000, dtype=np.int64))
    harm(tmp_path / name)
    with pytest.raises(IndexDamageError, match=name) as found:
        CheckedArray(tmp_path, record)
    assert found.value.file == str(tmp_path / name)
    assert "index" in found.value.hint


def test_of_any_file_the_blocks_that_are_read_are_compared(tmp_path):
    path = tmp_path / "documents.parquet"
    raw = bytes(range(256)) * 600
    path.write_bytes(raw)
    record = record_file(path)
    assert (record.n_bytes, record.sha256) == (len(raw), hashlib.sha256(raw).hexdigest())
    flipped = bytearray(raw)
    flipped[70_000] ^= 1
    path.write_bytes(flipped)
    file = CheckedFile(tmp_path, record)
    assert bytes(file.read(3, 1000)) == raw[3:1000]
    assert bytes(file.read(140_000, len(raw))) == raw[140_000:]
    for begin, end in ((0, len(raw)), (65_536, 65_537), (60_000, 66_000)):
        with pytest.raises(IndexDamageError, match="documents"):
            file.read(begin, end)


def test_a_write_that_went_wrong_is_an_error(tmp_path, monkeypatch):
    real = array_files.write_synced

    def wrong(path, *pieces):
        whole = bytearray(b"".join(pieces))
        whole[-1] ^= 1
        real(path, bytes(whole))

    monkeypatch.setattr(array_files, "write_synced", wrong)
    with pytest.raises(OutputError):
        write_array(tmp_path, "x", np.arange(1000, dtype=np.int64))
