"""Postings -> documents worth reading: reach, weight, hashes, and what hashes alone say."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from contam.kernels import bits, candidates
from contam.kernels.sample_grams import context_of
from tests.kernels.support import U64, frozen, u64s
from tests.twins import candidates as twin

contexts = st.integers(0, 2**24 - 1) | st.sampled_from((0, 2**24 - 1, 0xFFF, 0xFFF000))
#: Few different highest bits, so that neighbours agree often.
tokens = st.integers(1, 3).map(lambda n: (n << 60) + n)


def posting_rows(postings: list[tuple[int, int]]) -> np.ndarray:
    """(context, ordinal) as the words of a posting; the key's rest is never read here."""
    rows = np.zeros((len(postings), 5), np.uint16)
    for at, (context, ordinal) in enumerate(postings):
        rows[at] = (7, 9 | (context & 255) << 8, context >> 8, ordinal & 0xFFFF, ordinal >> 16)
    rows.setflags(write=False)
    return rows


def ways_mask(ways: set[tuple[int, int]]) -> int:
    return sum(1 << (4 * left + right) for left, right in ways)


@given(contexts, contexts)
def test_reach_counts_the_neighbours_that_agree(mine, theirs):
    left, right = twin.reaches(mine, theirs)
    assert candidates.reach(mine ^ theirs) == 4 * left + right


@given(st.integers(0, 12), st.integers(0, 12), st.integers(0, 12))
def test_ways_are_all_that_fit_into_the_part(left, right, more):
    assert candidates.ways_of(left, right, more) == ways_mask(twin.ways(left, right, more))


def test_a_reach_is_enough_for_every_way_that_asks_for_no_more():
    masks = candidates.enough()
    for left in range(4):
        for right in range(4):
            met = {(a, b) for a in range(left + 1) for b in range(right + 1)}
            assert masks[4 * left + right] == ways_mask(met)


@given(st.lists(st.lists(tokens, max_size=12), max_size=4), st.integers(2, 4), st.data())
def test_places_know_their_neighbours_and_the_runs_that_fit(parts, gram, data):
    run = data.draw(st.integers(gram, gram + 8))
    followed = [data.draw(st.booleans()) for _ in parts]
    starts = np.cumsum([0, *map(len, parts)])
    where = [
        (number, at) for number, part in enumerate(parts) for at in range(len(part) - gram + 1)
    ]
    flat = u64s([token for part in parts for token in part])
    place = frozen([int(starts[number]) + at for number, at in where], np.int64)
    context, ways = np.zeros(len(where), np.uint32), np.zeros(len(where), np.uint16)
    candidates.describe_places(
        flat,
        frozen(starts, np.int64),
        place,
        frozen([number for number, _ in where], np.int32),
        frozen(followed, np.bool_),
        gram,
        run,
        context,
        ways,
    )
    for j, (number, at) in enumerate(where):
        part = parts[number]
        length = min(run, len(part)) if followed[number] else run
        expected = twin.ways(at, len(part) - at - gram, length - gram)
        assert context[j] == twin.context(part, at, gram)
        assert ways[j] == ways_mask(expected)
        lo, hi = int(starts[number]), int(starts[number + 1])
        assert context[j] == context_of(flat, lo, hi, lo + at, gram)


@st.composite
def worlds(draw):
    """Postings of a few grams in a few documents, and the places of those grams in items."""
    n_grams, n_documents = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    few = st.sampled_from((0x111111, 0x111112, 0x211111, 0x111211, 0x121111)) | contexts
    places = {}
    at = 0
    for gram in range(n_grams):
        places[gram] = []
        for _ in range(draw(st.integers(1, 3))):
            more = draw(st.integers(0, 4))
            sides = draw(st.integers(0, 5)), draw(st.integers(0, 5))
            places[gram].append(
                {
                    "at": at,
                    "context": draw(few),
                    "ways": twin.ways(*sides, more),
                    "weak": draw(st.booleans()),
                }
            )
            at += 1
    entries = [draw(st.integers(0, 4)) for _ in range(n_documents)]
    owner = [document for document, count in enumerate(entries) for _ in range(count)]
    found = [
        (draw(st.integers(0, n_grams - 1)), document, ordinal, draw(few))
        for ordinal, document in enumerate(owner)
    ]
    shut = draw(st.sets(st.integers(0, n_documents - 1), max_size=2))
    return places, entries, sorted(found), shut


def item_grams(places: dict[int, list[dict]]) -> candidates.ItemGrams:
    every = [place for gram in sorted(places) for place in places[gram]]
    starts = np.cumsum([0, *(len(places[gram]) for gram in sorted(places))])
    return candidates.ItemGrams(
        frozen(starts, np.int64),
        frozen([place["at"] for place in every], np.int64),
        frozen([place["context"] for place in every], np.uint32),
        frozen([ways_mask(place["ways"]) for place in every], np.uint16),
        frozen([place["weak"] for place in every], np.bool_),
    )


@given(worlds())
def test_documents_open_by_reach_and_the_other_hits_are_listed(world):
    places, entries, found, shut = world
    rows = posting_rows([(context, ordinal) for _, _, ordinal, context in found])
    grams = [gram for gram, *_ in found]
    which = sorted(set(grams))
    begin = [grams.index(gram) for gram in which]
    end = [begin[i] + grams.count(gram) for i, gram in enumerate(which)]
    state = np.zeros(len(entries), np.uint8)
    state[sorted(shut)] = candidates.SHUT
    opened, hits = candidates.open_by_reach(
        tuple(frozen(one, np.int64) for one in (which, begin, end)),
        rows,
        frozen(np.cumsum([0, *entries]), np.uint32),
        item_grams(places),
        state,
    )
    strong, weak = twin.opened([(g, d, c) for g, d, _, c in found], places, shut)
    assert len(set(opened.tolist())) == len(opened)
    assert set(opened.tolist()) == strong
    assert {d for d in range(len(entries)) if state[d] == candidates.OPEN} == strong
    told = [(hit >> 36, hit & (2**36 - 1)) for hit in hits.tolist()]
    assert sorted(hit for hit in told if hit[0] not in strong) == weak


def test_many_documents_need_more_room_than_is_there_at_first():
    n = 1000
    place = {"at": 5, "context": 0x111111, "ways": {(3, 0)}, "weak": True}
    rows = posting_rows([(0x111111 if n % 2 else 0x222222, n) for n in range(n)])
    state = np.zeros(n, np.uint8)
    opened, hits = candidates.open_by_reach(
        tuple(frozen([value], np.int64) for value in (0, 0, n)),
        rows,
        frozen(range(n + 1), np.uint32),
        item_grams({0: [place]}),
        state,
    )
    assert opened.tolist() == list(range(1, n, 2))
    assert hits.tolist() == [(document << 36) | 5 for document in range(0, n, 2)]


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=4),
    st.integers(1, 3),
    st.sampled_from((0.05, 0.3, 0.6, 1.0)),
    st.sets(st.integers(0, 3), max_size=1),
    st.data(),
)
def test_documents_open_when_what_was_seen_of_a_part_weighs_enough(
    lengths, gram, least, shut, data
):
    starts = np.cumsum([0, *lengths])
    parts = [range(int(a), int(b)) for a, b in pairwise(starts)]
    places = [at for part in parts for at in part if at + gram <= part.stop]
    if not places:
        return
    hits = sorted(
        data.draw(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(places)), max_size=12))
    )
    # Eighths add up without rounding.
    weights = [data.draw(st.integers(1, 8)) / 8 for _ in range(int(starts[-1]))]
    state = np.zeros(4, np.uint8)
    state[sorted(shut)] = candidates.SHUT
    sums = [sum(weights[begin:end]) for begin, end in pairwise(map(int, starts))]
    opened = candidates.open_by_weight(
        frozen([(document << 36) | at for document, at in hits], np.int64),
        gram,
        frozen(starts, np.int64),
        (frozen(weights, np.float32), frozen(sums, np.float64)),
        least,
        state,
    )
    assert opened.tolist() == sorted(twin.opened_by_weight(hits, gram, parts, weights, least, shut))


@given(st.lists(st.tuples(U64, st.integers(0, 2**40)), max_size=8))
def test_a_document_has_one_hash_wherever_it_is_kept(places):
    hashes = np.empty(len(places), np.uint64)
    candidates.hash_places(
        u64s([seed for seed, _ in places]), frozen([row for _, row in places], np.int64), hashes
    )
    constants = int(bits.SEED), int(bits.MUL_CHUNK), int(bits.MUL_END)
    assert hashes.tolist() == [twin.place_hash(*place, *constants) for place in places]


@given(st.lists(tokens, min_size=3, max_size=14), st.integers(2, 4), st.integers(1, 4), st.data())
def test_what_hashes_prove_of_a_document_is_true_of_it(item, gram, stride, data):
    """The item's own text as the document, after some other words: no token is told wrongly."""
    lead = data.draw(st.integers(0, 5))
    document = [(9 << 60) + n for n in range(lead)] + item
    parts = frozen([0, len(item)], np.int64)
    places = {
        gram_number: [
            {
                "at": at,
                "context": twin.context(item, at, gram),
                "ways": twin.ways(at, len(item) - at - gram, stride - 1),
                "weak": True,
            }
        ]
        for gram_number, at in enumerate(range(len(item) - gram + 1))
    }
    found = [
        (number, ordinal, twin.context(document, at, gram))
        for ordinal, at in enumerate(range(0, len(document) - gram + 1, stride))
        for number in places
        if document[at : at + gram] == item[number : number + gram]
    ]
    found.sort()
    out = np.zeros(len(document), np.uint64)
    total = len(range(0, len(document) - gram + 1, stride))
    candidates.fill_tokens(
        (
            frozen([number for number, _, _ in found], np.int64),
            frozen(range(len(found)), np.int64),
            frozen(range(1, len(found) + 1), np.int64),
        ),
        posting_rows([(context, ordinal) for _, ordinal, context in found]),
        tuple(frozen([value], np.int64) for value in (0, 0, total)),
        frozen([0, len(document)], np.int64),
        item_grams(places),
        u64s(item),
        (gram, stride),
        out,
    )
    sampled = {ordinal * stride for _, ordinal, _ in found}
    proved = {at + i for at in sampled for i in range(gram)}
    assert parts[1] == len(item)
    for at, value in enumerate(out.tolist()):
        assert value == document[at] or (
            at not in proved and (value == 0 or value >> 60 == document[at] >> 60)
        )
