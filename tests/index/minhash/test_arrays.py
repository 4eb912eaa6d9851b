"""Sketches are datasketch's, bit for bit; a segment's arrays do not depend on how they came to be."""

from __future__ import annotations

import datasketch
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from contam.errors import ConfigError
from contam.index import minhash
from contam.index.minhash import permutations, shingle_values, sign
from contam.kernels.gram_table import GRAM_BASE, GRAM_SPREAD
from contam.text.tokenizer import tokenize_bytes
from tests.twins import minhash as twin


def theirs(values) -> datasketch.MinHash:
    made = datasketch.MinHash(128, hashfunc=int, scheme="affine32")
    made.update_batch(np.asarray(values).tolist())
    return made


def test_a_release_that_draws_other_permutations_is_refused(monkeypatch):
    class Other:
        def __init__(self, n_perm, **_):
            self.permutations = np.ones((2, n_perm), np.uint64)

    monkeypatch.setattr(datasketch, "MinHash", Other)
    with pytest.raises(ConfigError, match="datasketch"):
        permutations.__wrapped__()


def test_the_shingles_of_windows_have_the_values_that_datasketch_keeps():
    rng = np.random.default_rng(3)
    texts = [" ".join(f"w{word}" for word in rng.integers(0, 500, 15)) for _ in range(40)]
    token = np.concatenate([tokenize_bytes(text.encode()).hashes for text in texts])
    sketch = minhash.sketch(token, np.arange(0, 601, 15))
    assert (sketch.windows == 1).all()
    for number, text in enumerate(texts):
        shingles = shingle_values(text)
        kept = [int(e) >> 32 for e in sketch.entries if int(e) & 0xFFFFFFFF == number]
        # Each kept shingle alone has, in some band, the value of the whole window.
        values = [theirs([one]).hashvalues for one in kept]
        reached = np.array([value[: minhash.BANDS] for value in values]).min(axis=0)
        assert (reached == theirs(shingles).hashvalues[: minhash.BANDS]).all()
        assert sign(text).jaccard(theirs(shingles)) == 1


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
