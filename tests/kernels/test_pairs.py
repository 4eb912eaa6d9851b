"""Pairs of key and document: what is packed is found again, and nothing else."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from contam.index import model
from contam.index.writing.write import make_table
from contam.kernels import pairs
from tests.kernels.support import u64s
from tests.twins import segment as twin

KEY_BITS = st.sampled_from((1, 12, 32, 36, 41))


@st.composite
def tables(draw):
    """(bits of a key, documents, {(key, document)}) with keys that are near or far."""
    key_bits, n_documents = draw(KEY_BITS), draw(st.sampled_from((1, 2, 300, 70_000)))
    most = 2**key_bits - 1
    keys = draw(st.lists(st.integers(0, most) | st.integers(0, min(most, 9)), max_size=9))
    some = st.tuples(st.sampled_from(keys or [0]), st.integers(0, n_documents - 1))
    return key_bits, n_documents, draw(st.sets(some, max_size=40))


def made(key_bits, n_documents, found, cap=10**6, known=()):
    words = [key << pairs.DOCUMENT_BITS | document for key, document in found]
    # Twice: what repeats counts once.
    both = np.array([*words, *words[::-1]], np.uint64)
    return make_table(both, key_bits, n_documents, cap, u64s(sorted(known)))


def looked_up(table, keys):
    """{key: documents} by the kernels."""
    rest, width = table["sizes"].tolist()[2:]
    first, stop = np.empty(len(keys), np.int64), np.empty(len(keys), np.int64)
    asked = u64s(keys)
    pairs.find_heads(table["heads"], table["head_marks"], asked, rest, first, stop)
    pairs.find_keys(table["rests"], asked, rest, first, stop)
    number = first.copy()
    pairs.find_lists(table["ends"], table["end_marks"], number, first, stop)
    out = np.empty(int((stop - first).sum()), np.int64)
    pairs.read_documents(table["documents"], width, first, stop, out)
    ends = np.cumsum(stop - first)
    return {
        key: out[end - count : end].tolist()
        for key, end, count in zip(keys, ends.tolist(), (stop - first).tolist(), strict=True)
    }


def unpacked(table):
    n_pairs, _, rest, width = table["sizes"].tolist()
    out = np.empty(n_pairs, np.uint64)
    rows = tuple(table[name] for name in ("heads", "rests", "ends", "documents"))
    pairs.unpack_pairs(rows, (rest, width), out)
    shift, mask = pairs.DOCUMENT_BITS, (1 << pairs.DOCUMENT_BITS) - 1
    return [(value >> shift, value & mask) for value in out.tolist()]


@given(tables(), st.lists(st.integers(0, 2**36 - 1), max_size=5))
@example((36, 1, set()), [0, 2**36 - 1])
@example((1, 2, {(0, 0), (0, 1), (1, 1)}), [])
def test_what_is_packed_is_found_and_nothing_else(world, others):
    key_bits, _, found = world
    table = made(*world)
    assert unpacked(table) == sorted(found)
    asked = sorted({key for key, _ in found} | {one % 2**key_bits for one in others})
    want = {key: sorted(d for k, d in found if k == key) for key in asked}
    assert looked_up(table, asked) == want


@given(tables(), st.integers(1, 4), st.data())
def test_of_keys_in_too_many_documents_the_first_are_kept_and_it_is_told(world, cap, data):
    *_, found = world
    keys = sorted({key for key, _ in found})
    known = data.draw(st.sets(st.sampled_from(keys), max_size=3)) if keys else set()
    table = made(*world, cap, known)
    lists = {key: sorted(d for k, d in found if k == key) for key in keys}
    capped = {key for key in keys if len(lists[key]) > cap} | known
    assert table["capped"].tolist() == sorted(capped)
    assert unpacked(table) == [(key, one) for key in keys for one in lists[key][:cap]]


@given(tables(), st.integers(1, 4))
def test_pairs_are_made_distinct_capped_and_packed(world, cap):
    key_bits, n_documents, found = world
    words = [key << pairs.DOCUMENT_BITS | document for key, document in sorted(found)]
    twice = np.sort(np.array([*words, *words], np.uint64))
    assert pairs.drop_repeated(twice) == len(words)
    own = np.array(words, np.uint64)
    assert twice[: len(words)].tolist() == words
    n_pairs, n_keys, capped = pairs.cap_pairs(own, cap, u64s([]))
    files = twin.table("t", found, key_bits, n_documents, cap)
    n, m, rest, width = np.frombuffer(files["t_sizes.npy"][128:], "<i8").tolist()
    assert (n_pairs, n_keys) == (n, m)
    assert capped.tobytes() == files["t_capped.npy"][128:]
    rows = {
        name: np.zeros(len(files[f"t_{name}.npy"][128:]) // 8, np.uint64)
        for name in ("heads", "rests", "ends", "documents")
    }
    pairs.pack_pairs(own[:n_pairs], (rest, width), *rows.values())
    for name in ("rests", "ends", "documents"):
        assert rows[name].tobytes() == files[f"t_{name}.npy"][128:]
    marks = np.empty(-(-m // pairs.MARK), np.int64)
    pairs.mark_ones(rows["ends"], marks)
    assert marks.tobytes() == files["t_end_marks.npy"][128:]
    # The ends of the heads behind the last key are set by whoever packs.
    heads = np.frombuffer(files["t_heads.npy"][128:], np.uint64)
    assert (rows["heads"] & ~heads == 0).all()


def test_the_format_has_the_numbers_of_the_kernels():
    assert (model.DOCUMENT_BITS, model.MARK) == (pairs.DOCUMENT_BITS, pairs.MARK)
