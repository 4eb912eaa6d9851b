"""One loop unpacks all codecs: whatever the cuts, whole or an error, a little at a time."""

from __future__ import annotations

import bz2
import gzip
import lzma

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from contam.benchmark.paths import read_unpacked
from contam.errors import BenchmarkError
from contam.files.compression import CutError, DamagedError, Unpacker, codec_of, unpack

PACK = {
    "gzip": lambda data: gzip.compress(data, mtime=0),
    "zstd": zstandard.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
}
CODEC = st.sampled_from(sorted(PACK))
MEMBERS = st.lists(st.binary(max_size=300) | st.just(b"a" * 300_000), min_size=1, max_size=4)


def fed(codec, pieces, **options):
    unpacker = Unpacker(codec, **options)
    out = [one for piece in pieces for one in unpacker.feed(piece)]
    unpacker.finish()
    return out


def cut(data, size):
    return [data[at : at + size] for at in range(0, len(data), size)]


@given(CODEC, MEMBERS, st.integers(1, 500), st.integers(0, 9))
def test_members_unpack_to_what_was_packed_however_they_are_cut(codec, members, size, padding):
    packed = (b"\0" * padding).join(PACK[codec](member) for member in members) + b"\0" * padding
    out = fed(codec, cut(packed, size), piece_bytes=1 << 16)
    assert b"".join(out) == b"".join(members) == unpack(codec, packed)
    assert codec_of(packed) == codec
    if codec != "zstd":
        assert all(len(one) <= 1 << 16 for one in out)


@given(CODEC, st.binary(max_size=2000), st.data())
def test_no_beginning_of_a_member_passes_for_the_whole(codec, data, draw):
    packed = PACK[codec](data)
    end = draw.draw(st.integers(0, len(packed) - 1))
    with pytest.raises(CutError):
        unpack(codec, packed[:end])


@given(CODEC, st.binary(max_size=200), st.binary(min_size=1, max_size=20))
def test_what_follows_the_last_member_is_another_member_or_damage(codec, data, more):
    rest = more.lstrip(b"\0")
    packed = PACK[codec](data)
    if rest:
        with pytest.raises(DamagedError):
            unpack(codec, packed + more)
    else:
        assert unpack(codec, packed + more) == data


@given(CODEC, st.binary(max_size=200))
def test_a_single_member_takes_nothing_behind_it(codec, data):
    packed = PACK[codec](data)
    assert b"".join(fed(codec, [packed], single=True)) == data
    for more in (b"\0", packed):
        with pytest.raises(DamagedError):
            fed(codec, [packed, more], single=True)


@pytest.mark.parametrize(("suffix", "codec"), [(".gz", "gzip"), (".bz2", "bz2"), (".xz", "xz")])
def test_a_benchmark_with_bytes_behind_its_end_is_damaged(tmp_path, suffix, codec):
    path = tmp_path / f"items.jsonl{suffix}"
    path.write_bytes(PACK[codec](b'{"question": "a"}\n') + b"half an upload")
    with pytest.raises(BenchmarkError, match=r"items\.jsonl.*damaged or ends early"):
        read_unpacked(path)
