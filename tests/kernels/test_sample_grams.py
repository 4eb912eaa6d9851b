"""What an index keeps of a document: every w-th gram, and the guarantee that rests on it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from contam.kernels import gram_table, sample_grams
from contam.kernels.document import new_buffers
from contam.text.tokenizer import char_tables
from tests.kernels.support import FEW, U64, UNITS, batch, frozen, texts, twin_tokens, u64s
from tests.twins import brute, grams
from tests.twins import index as twin

BASE, SPREAD = int(gram_table.GRAM_BASE), int(gram_table.GRAM_SPREAD)
GUARD = np.uint64(7)
#: Neither of those that recipes have by themselves.
KEY_BITS = 40

tokens = st.lists(U64 | FEW, max_size=40)
recipes = st.tuples(st.integers(1, 6), st.integers(1, 8))


def entries_of(values: list[int], k: int, w: int, number: int = 0) -> list[int]:
    return twin.entries(grams.gram_hashes(values, k, BASE, SPREAD), w, KEY_BITS, number)


@given(tokens, recipes, st.data())
@example([2**64 - 1] * 12, (5, 4), None)
def test_entries_of_a_document_are_every_wth_gram_from_its_first_token_on(values, recipe, more):
    k, w = recipe
    lo = more.draw(st.integers(0, len(values))) if more else 0
    hi = more.draw(st.integers(lo, len(values))) if more else len(values)
    out = np.full(len(values) + 2, GUARD, np.uint64)
    count = sample_grams.sample_document(u64s(values), (lo, hi), (k, w, KEY_BITS), 9, out, 1)
    assert out[1:count].tolist() == entries_of(values[lo:hi], k, w, 9)
    assert out[0] == GUARD
    assert (out[count:] == GUARD).all()


@given(
    st.lists(texts(most=16), max_size=4), recipes, st.sampled_from(("word", "char")), st.booleans()
)
@example([], (5, 4), "word", True)
@example(["", "a b c d", "a b c d e", ""], (5, 4), "word", False)
def test_a_batch_is_its_documents_one_after_another(documents, recipe, unit, keep):
    k, w = recipe
    one = batch(documents)
    text_scratch = 5 * one.n_bytes + 16 * (one.n_docs + 1)
    kept = np.empty(text_scratch if keep else 0, np.uint64)
    starts = np.empty(one.n_docs + 1, np.int64)
    out = np.full(text_scratch, GUARD, np.uint64)
    n, _ = sample_grams.sample_text(
        one.data, one.offsets, UNITS[unit], (k, w, KEY_BITS),
        new_buffers(one.n_bytes, UNITS[unit], char_tables()),
        starts, out, np.empty(text_scratch, np.uint64), kept,
    )  # fmt: skip
    read = [twin_tokens(text, unit) for text in documents]
    want = [entries_of(values, k, w, number) for number, values in enumerate(read)]
    assert out[:n].tolist() == [entry for some in want for entry in some]
    assert starts.tolist() == np.cumsum([0, *map(len, read)]).tolist()
    assert (out[n:] == GUARD).all()
    if keep:
        assert kept[: starts[-1]].tolist() == [token for values in read for token in values]


@given(st.lists(tokens, max_size=5), recipes)
@example([], (5, 4))
def test_given_tokens_are_sampled_alike(documents, recipe):
    k, w = recipe
    flat = [token for values in documents for token in values]
    starts = frozen(np.cumsum([0, *map(len, documents)]), np.int64)
    out = np.full(len(flat) + 1, GUARD, np.uint64)
    n = sample_grams.sample_tokens(u64s(flat), starts, (k, w, KEY_BITS), out)
    want = [entries_of(values, k, w, number) for number, values in enumerate(documents)]
    assert out[:n].tolist() == [entry for some in want for entry in some]
    assert (out[n:] == GUARD).all()


# ------------------------------------------------------------------------------ guarantee


def known_places(item: list[int], document: list[int], k: int, w: int) -> set[tuple[int, int]]:
    """(item token, document token) of every gram of the item that is taken of the document."""
    out = np.empty(len(document) + 1, np.uint64)
    n = sample_grams.sample_document(
        u64s(document), (0, len(document)), (k, w, KEY_BITS), 0, out, 0
    )
    keys = twin.keys(grams.gram_hashes(item, k, BASE, SPREAD), 1, KEY_BITS)
    return {
        (at, number * w)
        for number, entry in enumerate(out[:n].tolist())
        for at, key in enumerate(keys)
        if key == entry >> twin.DOCUMENT_BITS
    }


def check_guarantee(item: list[int], document: list[int], k: int, w: int) -> int:
    """Every maximal run of w + k - 1 tokens or more holds a gram that is known; how many runs."""
    known = known_places(item, document, k, w)
    long = [
        run for run in brute.maximal_runs(brute.extensions(item, document)) if run[2] >= w + k - 1
    ]
    for i, d, n in long:
        assert any(i <= at <= i + n - k and at - i == where - d for at, where in known)
    return len(long)


@given(st.lists(FEW, max_size=24), st.lists(FEW, max_size=48), recipes)
def test_every_long_run_of_a_repetitive_text_leaves_a_gram(item, document, recipe):
    check_guarantee(item, document, *recipe)


@given(texts(most=24), texts(most=24), texts(most=24), recipes)
def test_every_long_run_of_a_quoted_text_leaves_a_gram(before, item, after, recipe):
    words = twin_tokens(item)
    document = twin_tokens(f"{before} {item} {after}")
    assert check_guarantee(words, document, *recipe) or len(words) < sum(recipe) - 1 or not words


@pytest.mark.parametrize(("k", "w"), [(5, 4), (6, 8), (24, 27), (1, 1), (3, 1)])
def test_a_run_is_found_at_every_phase_and_at_both_ends_of_a_document(k, w):
    random = np.random.default_rng(5)
    shortest = w + k - 1
    for length in (shortest, shortest + 1, shortest + w):
        item = random.integers(1, 2**64 - 1, length, np.uint64).tolist()
        for before in (*range(2 * w + 1), 50):
            for after in (0, 1, w, 50):
                document = [
                    *random.integers(1, 2**64 - 1, before, np.uint64).tolist(),
                    *item,
                    *random.integers(1, 2**64 - 1, after, np.uint64).tolist(),
                ]
                assert check_guarantee(item, document, k, w) == 1
