"""Pieces are the whole corpus, once and in order, and stay where a corpus grows."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contam.corpus.formats.base import Chunk
from contam.detect.parts.pieces import LEAST_BYTES, _cut, _size_for

sizes = st.lists(st.lists(st.integers(0, 60), max_size=5), max_size=30)


def corpus_of(shards):
    """A corpus with chunks of these sizes, by the name of their shard."""
    chunks = [
        Chunk(number, None, None, None, n_bytes)
        for number, own in enumerate(shards.values())
        for n_bytes in own
    ]
    named = [SimpleNamespace(name=name) for name in shards]
    return SimpleNamespace(shards=named, chunks=chunks)


def cut(shards, most=100):
    corpus = corpus_of(shards)
    found = list(_cut(corpus, most))
    assert [chunk for piece in found for chunk in piece] == corpus.chunks
    return found


@given(sizes)
def test_every_chunk_is_in_one_piece_and_no_piece_is_larger_than_wanted(shards):
    found = cut({f"shard-{number}": own for number, own in enumerate(shards)})
    for piece in found:
        assert piece
        assert sum(chunk.n_bytes for chunk in piece) <= 100 or len(piece) == 1


def by_name(shards):
    names = list(shards)
    return {tuple(names[chunk.shard] for chunk in piece) for piece in cut(shards)}


@pytest.mark.parametrize("change", ["added", "removed"])
def test_of_a_corpus_that_changes_most_pieces_stay(change):
    before = {f"shard-{number:04}": [3] for number in range(1000)}
    after = dict(before)
    if change == "removed":
        del after["shard-0100"]
    else:
        after = dict(sorted({**before, "shard-0100a": [3]}.items()))
    mine, theirs = by_name(before), by_name(after)
    assert len(mine) > 30
    assert len(mine - theirs) <= 5


@pytest.mark.parametrize(
    ("n_bytes", "expected"),
    [
        (0, LEAST_BYTES),
        (100 << 30, LEAST_BYTES),
        (1 << 40, 16 * LEAST_BYTES),
        (15 << 40, 32 * LEAST_BYTES),
        (1 << 50, 32 * LEAST_BYTES),
    ],
)
def test_a_large_corpus_has_about_256_pieces_until_they_are_16_gib(n_bytes, expected):
    size = _size_for(corpus_of({"a": [n_bytes]}))
    assert size == expected
    # A corpus that grows a little is cut as before.
    assert _size_for(corpus_of({"a": [n_bytes + (1 << 20)]})) == size
    assert size <= 16 << 30
