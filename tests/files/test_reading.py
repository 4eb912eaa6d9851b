"""Packed bytes are unpacked in bounded memory, and names that occur twice are found."""

import bz2
import gzip
import json
import lzma

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from contam.benchmark.paths import read_unpacked
from contam.errors import BenchmarkError
from contam.files.compression import CutError, DamagedError, Unpacker, codec_of, unpack
from contam.files.doubled_keys import doubled_key, may_repeat

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


NAMES = st.sampled_from(["a", "b", "\u00e4", 'q"', "b\\", ""])
#: Objects are lists of pairs in a tuple, so that a name may come twice.
TREES = st.recursive(
    st.none() | st.integers() | st.floats() | st.text(alphabet='{}[]":,\\a\u00e4', max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4) | st.lists(st.tuples(NAMES, inner), max_size=4).map(tuple)
    ),
    max_leaves=12,
)


def written(tree, blank, *, ascii_only):
    if isinstance(tree, tuple):
        pairs = [
            json.dumps(name, ensure_ascii=ascii_only)
            + f"{blank}:{blank}"
            + written(one, blank, ascii_only=ascii_only)
            for name, one in tree
        ]
        return "{" + f"{blank},".join(pairs) + blank + "}"
    if isinstance(tree, list):
        return "[" + ",".join(written(one, blank, ascii_only=ascii_only) for one in tree) + "]"
    return json.dumps(tree, ensure_ascii=ascii_only)


def doubled_places(tree, at=()):
    """Every place of the tree whose name stands twice beside it."""
    if isinstance(tree, tuple):
        names = [name for name, _ in tree]
        own = {(*at, name) for name in names if names.count(name) > 1}
        return own.union(*(doubled_places(one, (*at, name)) for name, one in tree))
    if isinstance(tree, list):
        return set().union(*(doubled_places(one, (*at, n)) for n, one in enumerate(tree)))
    return set()


@given(TREES, st.sampled_from(["", " ", "\n\t"]), st.booleans())
def test_a_name_that_stands_twice_in_one_object_is_found_wherever_it_is(tree, blank, ascii_only):
    text = written(tree, blank, ascii_only=ascii_only).encode()
    found = doubled_key(text)
    places = doubled_places(tree)
    assert found in places if places else found is None
    assert may_repeat(text, json.loads(text)) or not places


@given(st.binary() | st.text('{}[]":,a1 \\', max_size=30).map(str.encode))
def test_what_is_no_json_is_said_to_be_none(text):
    try:
        found = doubled_key(text)
    except ValueError:
        with pytest.raises(ValueError):
            json.loads(text.decode())
    else:
        value = json.loads(text.decode())
        assert found is None or isinstance(value, dict | list)


def test_names_that_are_spelt_differently_and_are_the_same_are_found():
    assert doubled_key(b'[0, {"a": 1, "\\u0061": 2}]') == (1, "a")


def test_few_texts_without_a_doubled_name_need_the_long_look():
    for record in (
        {"text": 'a "text" in quotes:\nand more', "meta": {"text": 1}, "n": [1, {"a": []}]},
        [],
        "text",
    ):
        for gaps in ((", ", ": "), (",", ":"), (" ,\n", " :\t")):
            assert not may_repeat(json.dumps(record, separators=gaps).encode(), record)
