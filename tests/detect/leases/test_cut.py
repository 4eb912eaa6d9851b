"""Leases: every chunk once, in order, the same for any number of workers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from contam.corpus.chunks import Chunk
from contam.detect.leases.cut import LEAST_BYTES, MOST_BYTES, cut_leases, share_of

chunks = st.lists(
    st.builds(Chunk, st.just(0), st.none(), st.none(), st.none(), st.integers(0, 1 << 36)),
    max_size=40,
)


@given(chunks, st.none() | st.integers(1, 1 << 37))
def test_every_chunk_is_in_one_lease(found, size):
    leases = cut_leases(found, size)
    assert [n for lease in leases for n in range(lease.first, lease.end)] == [*range(len(found))]
    assert [lease.number for lease in leases] == [*range(1, len(leases) + 1)]
    for lease in leases:
        assert lease.n_bytes == sum(chunk.n_bytes for chunk in found[lease.first : lease.end])


@given(chunks, st.integers(1, 1 << 37))
def test_a_lease_is_over_its_size_by_one_long_chunk_alone(found, size):
    for lease in cut_leases(found, size):
        assert lease.n_bytes <= size or lease.end - lease.first == 1


@given(chunks, st.integers(1, 12))
def test_all_workers_together_have_every_lease_once(found, count):
    leases = cut_leases(found, 1 << 30)
    shares = [share_of(leases, index, count) for index in range(count)]
    assert sorted(lease.number for share in shares for lease in share) == [
        lease.number for lease in leases
    ]
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


def corpus_of(n_bytes, chunk=32 << 20):
    return [Chunk(0, None, None, None, chunk)] * (n_bytes // chunk)


def test_small_corpora_have_few_leases_and_large_ones_leases_of_16_gib():
    (only,) = cut_leases(corpus_of(256 << 20))
    assert only.n_bytes == 256 << 20
    assert {lease.n_bytes for lease in cut_leases(corpus_of(8 << 30))} == {LEAST_BYTES}
    assert max(lease.n_bytes for lease in cut_leases(corpus_of(8 << 40, 1 << 30))) == MOST_BYTES
