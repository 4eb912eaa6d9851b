"""Windows in which rare words come together, in any order."""

from __future__ import annotations

from functools import cache

import numpy as np
from hypothesis import given
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


@given(items, documents, st.integers(1, 3))
def test_an_item_has_a_window_where_one_of_all_windows_holds_enough(asked, docs, least_words):
    table = table_of(asked, least_words)
    texts = [" ".join(doc) for doc in docs]
    rows, n_tokens = found_in(texts, table)
    assert n_tokens == sum(map(len, docs))
    best = {}
    for row in rows.tolist():
        at = (row[ROW_DOC], row[ROW_ITEM])
        text = texts[at[0]].encode()[row[ROW_FIRST] : row[ROW_END]].decode().split()
        words, window, _ = asked[at[1]]
        assert len(text) == row[ROW_TOKENS] <= window
        assert len(words & set(text)) == row[ROW_WORDS]
        assert row[ROW_WEIGHT] == sum(weight_of(word) for word in words & set(text))
        best[at] = max(best.get(at, (0, 0)), (row[ROW_WEIGHT], -row[ROW_TOKENS]))
    wanted = {}
    for d, doc in enumerate(docs):
        read = [hash_of(word) for word in doc]
        for i, (words, window, least) in enumerate(asked):
            weight = {hash_of(word): weight_of(word) for word in words}
            if all_of := twin.windows(read, weight, window, least, least_words):
                wanted[d, i] = max(all_of)[:2]
    assert best == wanted


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


def test_more_windows_than_there_was_room_for_are_all_kept():
    asked = [({"word1", "word2"}, 2, 2)]
    rows, _ = found_in(["word1 word2 " * 3000], table_of(asked, 2))
    assert len(rows) == 3000
