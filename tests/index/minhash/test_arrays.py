"""Sketches are datasketch's, bit for bit; a segment's arrays do not depend on how they came to be."""

from __future__ import annotations

import zlib

import datasketch
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contam.errors import ConfigError
from contam.index import minhash
from contam.index.minhash import as_datasketch, permutations, shingle_values, sign
from contam.kernels.gram_table import GRAM_BASE, GRAM_SPREAD
from tests.twins import minhash as twin

SCHEMES = {"affine32": "affine32", "mersenne61": "legacy"}


def theirs(values, scheme: str, n_perm: int = 128) -> datasketch.MinHash:
    made = datasketch.MinHash(n_perm, scheme=SCHEMES[scheme], hashfunc=int)
    made.update_batch(np.asarray(values).tolist())
    return made


def random_texts(n: int) -> list[str]:
    rng = np.random.default_rng(7)
    lengths = rng.integers(0, 40, n)
    return [" ".join(f"w{word}" for word in rng.integers(0, 500, length)) for length in lengths]


@pytest.mark.parametrize(
    ("scheme", "n_perm", "known"),
    [
        ("affine32", 8, 3725234358),
        ("affine32", 128, 3131915202),
        ("mersenne61", 8, 3720390116),
        ("mersenne61", 128, 462118538),
    ],
)
def test_the_permutations_that_indexes_were_made_with_stay(scheme, n_perm, known):
    factor, shift = permutations(n_perm, scheme)
    assert zlib.crc32(factor.tobytes() + shift.tobytes()) == known


def test_a_release_that_draws_other_permutations_is_refused(monkeypatch):
    class Other:
        def __init__(self, n_perm, **_):
            self.permutations = np.ones((2, n_perm), np.uint64)

    monkeypatch.setattr(datasketch, "MinHash", Other)
    with pytest.raises(ConfigError, match="datasketch"):
        permutations.__wrapped__(16, "affine32")


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("shingle", [1, 3])
def test_hundreds_of_signatures_are_those_of_datasketch(scheme, shingle):
    texts = random_texts(400)
    ours = sign(texts, scheme=scheme, shingle=shingle)
    for text, signature in zip(texts, ours, strict=True):
        assert (theirs(shingle_values(text, shingle), scheme).hashvalues == signature).all()


def test_the_shingles_of_windows_have_the_values_that_datasketch_keeps():
    rng = np.random.default_rng(3)
    token = rng.integers(1, 2**64, 600, dtype=np.uint64)
    sketch = minhash.sketch(token, np.arange(0, 601, 15))
    assert (sketch.windows == 1).all()
    for number in range(40):
        document = token[15 * number : 15 * number + 15].tolist()
        shingles = twin.shingles(document, 3, int(GRAM_BASE), int(GRAM_SPREAD))
        kept = [int(e) >> 32 for e in sketch.entries if int(e) & 0xFFFFFFFF == number]
        # Each kept shingle alone has, in some band, the value of the whole window.
        values = [theirs([one], "affine32").hashvalues for one in kept]
        reached = np.array([value[: minhash.BANDS] for value in values]).min(axis=0)
        assert (reached == theirs(shingles, "affine32").hashvalues[: minhash.BANDS]).all()


@pytest.mark.parametrize("lean", [False, True])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_an_exported_sketch_is_one_of_datasketch(scheme, lean):
    one, two = "a b c d e f g h", "a b c d e f g x"
    exported = as_datasketch(sign([one], scheme=scheme)[0], scheme, lean=lean)
    assert type(exported) is (datasketch.LeanMinHash if lean else datasketch.MinHash)
    made = theirs(shingle_values(two), scheme)
    assert exported.jaccard(made) == theirs(shingle_values(one), scheme).jaccard(made)
    if not lean:
        exported.update_batch(shingle_values(two).tolist())
        both = [*shingle_values(one), *shingle_values(two)]
        assert (exported.hashvalues == theirs(both, scheme).hashvalues).all()


#: Long enough for several windows, of few words.
documents = st.lists(
    st.tuples(st.integers(0, 80), st.integers(1, 9)).map(
        lambda drawn: [i * i * drawn[1] % 7 + 1 for i in range(drawn[0])]
    ),
    max_size=8,
)


def sketched(documents: list[list[int]]) -> minhash.MinHashSketch:
    flat = np.array([token for document in documents for token in document], np.uint64)
    starts = np.cumsum([0, *map(len, documents)]).astype(np.int64)
    return minhash.sketch(flat, starts)


def equal(one, two) -> bool:
    assert one.keys() == two.keys()
    return all(
        one[name].dtype == two[name].dtype and np.array_equal(one[name], two[name]) for name in one
    )


@given(documents, st.data())
def test_merged_segments_are_the_segment_of_all_documents_that_count(texts, data):
    at = data.draw(st.integers(0, len(texts)))
    size = len(texts)
    kept = np.array(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)), np.bool_)
    parts = [minhash.sketch_arrays([sketched(some)]) for some in (texts[:at], texts[at:])]
    merged = minhash.merged_sketches(parts, [at, size - at], kept)
    whole = minhash.merged_sketches([minhash.sketch_arrays([sketched(texts)])], [size], kept)
    assert equal(merged, whole)
    entries = minhash.unpack(merged["minhash_starts"], merged["minhash_entries"])
    window = (entries & np.uint64(2**28 - 1)).astype(np.int64)
    first = merged["minhash_windows"].astype(np.int64)
    assert kept[np.searchsorted(first, window, side="right") - 1].all()
    if kept.all():
        assert equal(merged, minhash.sketch_arrays([sketched(texts)]))


def test_a_shingle_of_too_many_windows_is_named_instead_of_kept(monkeypatch):
    monkeypatch.setattr(minhash, "MOST_WINDOWS", 3)
    rare, often = [7, 8, 9], [1, 2]
    arrays = minhash.sketch_arrays([sketched([often] * 4 + [rare])])
    kept = minhash.unpack(arrays["minhash_starts"], arrays["minhash_entries"]) >> np.uint64(32)
    base, spread = int(GRAM_BASE), int(GRAM_SPREAD)
    gone = [shingle & ~0xF for shingle in twin.shingles(often, 3, base, spread)]
    assert arrays["minhash_capped"].tolist() == gone
    assert {int(one) for one in kept} == {
        shingle & ~0xF for shingle in twin.shingles(rare, 3, base, spread)
    }
    # Too frequent stays too frequent, whatever is retired and merged.
    few = minhash.sketch_arrays([sketched([often])])
    merged = minhash.merged_sketches([arrays, few], [5, 1], np.array([False] * 5 + [True]))
    assert merged["minhash_capped"].tolist() == gone
    assert len(merged["minhash_entries"]) == 0
