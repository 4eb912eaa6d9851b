"""Windows in which rare words come together, in any order."""

from __future__ import annotations

from functools import cache

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from contam.kernels import rare_windows, rare_words
from contam.kernels.rare_windows import (
    ROW_DOC,
    ROW_END,
    ROW_FIRST,
    ROW_IN_ORDER,
    ROW_ITEM,
    ROW_NEAR_END,
    ROW_NEAR_FIRST,
    ROW_TOKENS,
    ROW_WEIGHT,
    ROW_WIDE_END,
    ROW_WIDE_FIRST,
    ROW_WORDS,
)
from contam.kernels.rare_words import RareTable
from contam.text.tokenizer import char_tables, tokenize_bytes
from tests.twins import rare_words as twin

VOCABULARY = [f"word{n}" for n in range(12)]
items = st.lists(
    st.tuples(
        st.sets(st.sampled_from(VOCABULARY[:10]), min_size=1, max_size=6),
        st.integers(1, 9),
        st.integers(1, 14),
    ),
    min_size=1,
    max_size=5,
)
documents = st.lists(
    st.lists(st.sampled_from([*VOCABULARY, "other"]), max_size=40), min_size=1, max_size=4
)


@cache
def hash_of(word: str) -> int:
    return int(tokenize_bytes(word.encode()).hashes[0])


@cache
def hashes() -> list[int]:
    return sorted(map(hash_of, VOCABULARY))


def weight_of(word: str) -> int:
    return 1 + hashes().index(hash_of(word)) % 5


def table_of(asked, least_words=1, in_order=0) -> RareTable:
    """A table of (words, window, least weight); with `in_order` two words and that many do, too."""
    key, word, bits = np.zeros(32, np.uint64), np.zeros(32, np.int32), np.zeros(16, np.uint8)
    rare_words.enter_words(np.array(hashes(), np.uint64), key, word, bits)
    own = [sorted(hashes().index(hash_of(name)) for name in words) for words, _, _ in asked]
    posts = [[at for at, mine in enumerate(own) if n in mine] for n in range(len(hashes()))]
    return RareTable(
        key=key,
        word=word,
        bits=bits,
        weight=np.array([1 + at % 5 for at in range(len(hashes()))], np.int32),
        post_start=np.cumsum([0, *map(len, posts)]).astype(np.int64),
        post_item=np.array([at for some in posts for at in some], np.int32),
        item_start=np.cumsum([0, *map(len, own)]).astype(np.int64),
        item_word=np.array([n for mine in own for n in mine], np.int32),
        window=np.array([window for _, window, _ in asked], np.int32),
        least=np.array([least for _, _, least in asked], np.int32),
        least_words=np.full(len(asked), least_words, np.int32),
        in_order=np.full(len(asked), in_order, np.int32),
        less=np.full(len(asked), 2 if in_order else 1 << 30, np.int32),
        less_words=np.full(len(asked), 2, np.int32),
        token_start=np.cumsum([0, *map(len, own)])[:-1].astype(np.int64),
        token=np.array([hashes()[n] for mine in own for n in mine], np.uint64),
        n_tokens=np.array([len(mine) for mine in own], np.int32),
    )


def found_in(texts, table, scratch=None):
    raw = [text.encode() for text in texts]
    data = np.frombuffer(b"".join(raw) or b" ", np.uint8)
    offsets = np.cumsum([0, *map(len, raw)]).astype(np.int64)
    room = 2 * max(map(len, raw), default=0) + 16
    rows, n, n_tokens = rare_windows.find_windows(
        data,
        offsets,
        table,
        scratch or rare_words.new_rare_scratch(table, room),
        np.empty(room, np.uint64),
        np.empty((room, 2), np.int32),
        char_tables(),
    )
    return rows[:n], n_tokens


@example([({"word1"}, 1, 1)], [["word1", "other", "word1"]], 1)
@given(items, documents, st.integers(1, 3))
def test_an_item_has_the_best_window_of_every_stretch_and_of_all(asked, docs, least_words):
    table = table_of(asked, least_words)
    texts = [" ".join(doc) for doc in docs]
    rows, n_tokens = found_in(texts, table)
    assert n_tokens == sum(map(len, docs))
    found = set()
    for row in rows.tolist():
        text = texts[row[ROW_DOC]]
        first = len(text.encode()[: row[ROW_FIRST]].split())
        inside = text.encode()[row[ROW_FIRST] : row[ROW_END]].decode().split()
        words, window, _ = asked[row[ROW_ITEM]]
        assert len(inside) == row[ROW_TOKENS] <= window
        assert len(words & set(inside)) == row[ROW_WORDS]
        assert row[ROW_WEIGHT] == sum(weight_of(word) for word in words & set(inside))
        found.add((row[ROW_DOC], row[ROW_ITEM], first, first + row[ROW_TOKENS]))
    wanted = set()
    for d, doc in enumerate(docs):
        read = [hash_of(word) for word in doc]
        for i, (words, window, least) in enumerate(asked):
            weight = {hash_of(word): weight_of(word) for word in words}
            best = twin.best_windows(read, weight, window, least, least_words)
            wanted |= {(d, i, *span) for span in best}
            if all_of := twin.windows(read, weight, window, least, least_words):
                _, tokens, first = max(all_of)
                assert (-first, -first - tokens) in best
    assert found == wanted


@given(items, documents, st.integers(1, 4))
def test_less_is_enough_where_tokens_stand_in_order(asked, docs, in_order):
    table = table_of(asked, 3, in_order)
    texts = [" ".join(doc) for doc in docs]
    rows, _ = found_in(texts, table)
    found = {}
    for row in rows.tolist():
        at = (row[ROW_DOC], row[ROW_ITEM])
        found[at] = max(found.get(at, 0), row[ROW_WORDS])
        words, _, least = asked[row[ROW_ITEM]]
        raw = texts[row[ROW_DOC]].encode()
        wide = raw[row[ROW_WIDE_FIRST] : row[ROW_WIDE_END]].decode().split()
        ours = sorted(map(hash_of, words))
        assert row[ROW_IN_ORDER] == twin.n_in_order(ours, [hash_of(word) for word in wide])
        enough = row[ROW_WEIGHT] >= least and row[ROW_WORDS] >= 3
        assert enough or (row[ROW_WORDS] >= 2 and row[ROW_IN_ORDER] >= in_order)
    for d, doc in enumerate(docs):
        read = [hash_of(word) for word in doc]
        for i, (words, window, least) in enumerate(asked):
            weight = {hash_of(word): weight_of(word) for word in words}
            if twin.windows(read, weight, window, least, 3):
                assert found[d, i] >= 3
            elif len(read) <= window and twin.windows(read, weight, window, 2, 2):
                # All of the document is looked at.
                assert ((d, i) in found) == (twin.n_in_order(sorted(weight), read) >= in_order)


def n_in_order(ours, theirs):
    table = table_of([({"word1"}, 4, 2)] * 2)._replace(
        token=np.array([9, 9, 9, *ours], np.uint64),
        token_start=np.array([0, 3], np.int64),
        n_tokens=np.array([3, len(ours)], np.int32),
    )
    hashes = np.array([3, *theirs, 5], np.uint64)
    chain = rare_words.new_rare_scratch(table, 1).chain
    return rare_windows.n_in_order(1, (hashes, 1, 1 + len(theirs)), table, chain)


@given(st.integers(0, 200), st.integers(0, 60), st.integers(2, 9), st.integers(0, 1 << 30))
def test_tokens_in_order_are_counted_in_items_of_any_length(n_ours, n_theirs, n_different, seed):
    tokens = np.random.default_rng(seed).integers(0, n_different, n_ours + n_theirs).tolist()
    ours, theirs = tokens[:n_ours], tokens[n_ours:]
    assert n_in_order(ours, theirs) == twin.n_in_order(ours, theirs)


@given(items, documents)
def test_text_around_a_window_reaches_as_far_as_said(asked, docs):
    texts = [" ".join(doc) for doc in docs]
    for row in found_in(texts, table_of(asked))[0].tolist():
        text = texts[row[ROW_DOC]]
        n_all = len(text.split())
        first = len(text[: row[ROW_FIRST]].split())
        end, window = first + row[ROW_TOKENS], asked[row[ROW_ITEM]][1]
        near = (max(0, first - rare_windows.NEAR), min(n_all, end + rare_windows.NEAR))
        wide = (max(0, end - window), min(n_all, first + window))
        for (a, b), (c, d) in (
            (near, (row[ROW_NEAR_FIRST], row[ROW_NEAR_END])),
            (wide, (row[ROW_WIDE_FIRST], row[ROW_WIDE_END])),
        ):
            assert text[c:d].split() == text.split()[a:b]


def test_counting_begins_anew_before_places_run_out():
    asked = [({"word1", "word2"}, 4, 2)]
    table = table_of(asked, 2)
    scratch = rare_words.new_rare_scratch(table, 100)
    once, _ = found_in(["word1 word2"], table, scratch)
    scratch.place[0] = (1 << 30) - 3
    again, _ = found_in(["word1", "word2", "word1 word2"], table, scratch)
    assert len(once) == len(again) == 1
    assert again[0, ROW_DOC] == 2
    assert scratch.place[0] < 1000


def test_stretches_that_find_no_room_are_noted_in_the_next_round():
    asked = [({f"word{n}", "word9"}, 9, 2) for n in range(8)]
    table = table_of(asked, 2)
    texts = ["word9 " + " ".join(f"word{n}" for n in range(8)) + " word9"]
    scratch = rare_words.new_rare_scratch(table, 100)
    all_at_once, _ = found_in(texts, table, scratch)
    by_few, _ = found_in(texts, table, scratch._replace(noted=np.empty((8, 3), np.int32)))
    assert len(all_at_once) == 16
    assert by_few.tolist() == all_at_once.tolist()
