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
from contam.index.model import MinHashRecipe
from contam.kernels.gram_table import GRAM_BASE, GRAM_SPREAD
from tests.twins import minhash as twin

SCHEMES = {"affine32": "affine32", "mersenne61": "legacy"}
SMALL = MinHashRecipe(
    n_perm=16, scheme="affine32", shingle=2, window=6, step=3, bands=4, rows=1, threshold=0.2
)


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


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_shingles_of_windows_have_the_values_that_datasketch_keeps(scheme):
    recipe = MinHashRecipe(**{**{f: getattr(SMALL, f) for f in SMALL.__slots__}, "scheme": scheme})
    rng = np.random.default_rng(3)
    token = rng.integers(1, 2**64, 6_000, dtype=np.uint64)
    starts = np.arange(0, 6_001, 6)
    sketch = minhash.sketcher(recipe).sketch(token, starts)
    assert (sketch.windows == 1).all()
    for number in range(1000):
        document = token[6 * number : 6 * number + 6].tolist()
        shingles = twin.shingles(document, 2, int(GRAM_BASE), int(GRAM_SPREAD))
        kept = (
            [int(e) >> 32 for e in sketch.entries if int(e) & 0xFFFFFFFF == number]
            if number < 40
            else None
        )
        made = theirs(shingles, scheme, recipe.n_perm)
        if kept is not None:
            # Each kept shingle alone has, in some band, the value of the whole window.
            bands = made.hashvalues[: recipe.bands]
            values = [theirs([one], scheme, recipe.n_perm).hashvalues for one in kept]
            reached = np.array([value[: recipe.bands] for value in values]).min(axis=0)
            assert (reached == bands).all()


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


documents = st.lists(st.lists(st.integers(1, 5), max_size=20), max_size=8)


def sketched(documents: list[list[int]]) -> minhash.MinHashSketch:
    flat = np.array([token for document in documents for token in document], np.uint64)
    starts = np.cumsum([0, *map(len, documents)]).astype(np.int64)
    return minhash.sketcher(SMALL).sketch(flat, starts)


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
    make = minhash.sketcher(SMALL)
    parts = [make.arrays([sketched(some)]) for some in (texts[:at], texts[at:])]
    merged = make.merge(parts, [at, size - at], kept)
    whole = make.merge([make.arrays([sketched(texts)])], [size], kept)
    assert equal(merged, whole)
    entries = minhash.unpack(merged["minhash_starts"], merged["minhash_entries"])
    window = (entries & np.uint64(2**28 - 1)).astype(np.int64)
    first = merged["minhash_windows"].astype(np.int64)
    assert kept[np.searchsorted(first, window, side="right") - 1].all()
    if kept.all():
        assert equal(merged, make.arrays([sketched(texts)]))


def test_a_shingle_of_too_many_windows_is_named_instead_of_kept(monkeypatch):
    monkeypatch.setattr(minhash, "MOST_WINDOWS", 3)
    rare, often = [7, 8, 9], [1, 2]
    make = minhash.sketcher(SMALL)
    arrays = make.arrays([sketched([often] * 4 + [rare])])
    kept = minhash.unpack(arrays["minhash_starts"], arrays["minhash_entries"]) >> np.uint64(32)
    base, spread = int(GRAM_BASE), int(GRAM_SPREAD)
    gone = [shingle & ~0xF for shingle in twin.shingles(often, 2, base, spread)]
    assert arrays["minhash_capped"].tolist() == gone
    assert {int(one) for one in kept} == {
        shingle & ~0xF for shingle in twin.shingles(rare, 2, base, spread)
    }
    # Too frequent stays too frequent, whatever is retired and merged.
    few = make.arrays([sketched([often])])
    merged = make.merge([arrays, few], [5, 1], np.array([False] * 5 + [True]))
    assert merged["minhash_capped"].tolist() == gone
    assert len(merged["minhash_entries"]) == 0
