"""Pieces, grams and clusters of decon's rules: the kernels against regular expressions and sets."""

import re
from itertools import pairwise

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from contam.kernels import decon
from tests.twins.decon import walk

#: Of made-up kinds: `_` and `-` are blank, `s` is an odd space, `!` a sign, `h` an ideograph.
KIND = dict.fromkeys("_-", decon.BLANK) | dict.fromkeys("ab", decon.LETTER)
KIND |= {"1": decon.NUMBER, "!": decon.SIGN, "s": decon.ODD_SPACE, "h": decon.IDEOGRAPH}
#: How cl100k cuts a text in which `_` is the space, and how we cut ideographs.
PIECE = re.compile(r"[_!s]?(?:h|[ab]+)|1{1,3}|_?!+|[_s]")

LOWER = np.arange(128, dtype=np.uint32)
LOWER[65:91] += 32


def kinds():
    table = np.full(128, decon.SIGN, np.uint8)
    for character, kind in KIND.items():
        table[ord(character)] = kind
    return table


def starts(texts):
    return np.cumsum([0, *map(len, texts)], dtype=np.int64)


def ids(lists):
    """What a twin's texts are compared by: which pieces are equal, in order of first appearance."""
    known = {}
    return [[known.setdefault(one, len(known)) for one in some] for some in lists]


def split(hashes, start):
    return [hashes[lo:hi].tolist() for lo, hi in pairwise(start)]


@given(st.lists(st.text("_-ab1!sh\u4e2d", max_size=20), max_size=6))
@example(["a!b", "a!!b", "_!b", "1111s!b", "s_sa", "", "__", "ahhb1h!h_h"])
def test_pieces_are_those_of_the_expression_and_words_those_between_spaces(texts):
    cleaned = [re.sub("[_-]+", "_", text.replace("\u4e2d", "!")).strip("_") for text in texts]
    data = np.frombuffer("".join(texts).replace("\u4e2d", "!").encode(), np.uint8)
    piece_start, word_start = np.empty((2, len(texts) + 1), np.int64)
    found = decon.cut_pieces(data, starts(texts), LOWER, kinds(), piece_start, word_start, True)
    pieces = [PIECE.findall(f"_{text}") if text else [] for text in cleaned]
    # A blank is always as one and the same space.
    assert ids(split(found[0], piece_start)) == ids(pieces)
    words = [[word for word in re.split("[_s]", text) if word] for text in cleaned]
    assert ids(split(found[1], word_start)) == ids(words)


def test_a_code_point_beyond_the_table_of_kinds_is_a_sign():
    bounds = np.empty((2, 2), np.int64)
    text = "a\U00020000b".encode()
    data = np.frombuffer(text, np.uint8)
    pieces, _ = decon.cut_pieces(data, starts([text]), LOWER, kinds(), *bounds, True)
    assert len(pieces) == 2


def grams(tokens, n):
    return [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]


TEXTS = st.lists(st.lists(st.integers(0, 3), max_size=12), min_size=1, max_size=6)


def numbered(texts, n, groups):
    tokens = np.array([one for text in texts for one in text], np.int64)
    table = decon.new_gram_table(len(tokens))
    start = np.empty(len(texts) + 1, np.int64)
    groups = np.array(groups[: len(texts)], np.int64)
    numbers, n_different = decon.number_grams(tokens, starts(texts), n, groups, table, start)
    return table, numbers, start, n_different


@given(TEXTS, st.integers(1, 4), st.lists(st.integers(0, 2), min_size=6, max_size=6))
def test_grams_are_numbered_once_a_text_and_apart_by_group(texts, n, groups):
    _, numbers, start, n_different = numbered(texts, n, groups)
    owned = [
        list(dict.fromkeys((group, gram) for gram in grams(text, n)))
        for text, group in zip(texts, groups, strict=False)
    ]
    assert split(numbers, start) == ids(owned)
    assert n_different == len({one for some in owned for one in some})


@given(
    TEXTS, st.lists(st.integers(0, 4), max_size=40), st.integers(1, 4), st.sampled_from([0, 0.5])
)
def test_clusters_are_those_of_the_walk(texts, document, misses, least):
    n = 2
    table, numbers, start, n_different = numbered(texts, n, [0] * 6)
    rarity = np.random.default_rng(1).integers(1, 9, n_different + 1).astype(np.float64)
    share = np.full(len(texts), least, np.float32)
    lengths, keys = np.diff(starts(texts)), np.empty(0, np.uint64)
    questions = decon.Questions(start, lengths, keys, numbers, rarity[numbers], share, misses)
    place, number = decon.find_grams(np.array(document, np.int64), n, table)
    there = grams(document, n)
    found = decon.find_clusters(place, number, len(there), np.arange(len(texts)), questions)
    rows = list(zip(*(part.tolist() for part in found), strict=True))
    expected = []
    for item, text in enumerate(texts):
        some = list(dict.fromkeys(grams(text, n)))
        weight = dict(zip(some, questions.idf[start[item] : start[item + 1]], strict=True))
        at = 0
        while at < len(there):
            if there[at] not in weight:
                at += 1
                continue
            seen, first, last, after = walk(there, at, weight, misses)
            at = after + 1
            part = np.float32(sum(weight[one] for one in seen) / sum(weight.values()))
            if part >= least:
                expected.append((item, first, last, part))
    assert [row[:3] for row in rows] == [row[:3] for row in expected]
    assert np.allclose([row[3] for row in rows], [row[3] for row in expected])


def beside(texts, n, window, misses):
    """Texts with made-up rarities, and these by text and gram."""
    own = [list(dict.fromkeys(grams(text, n))) for text in texts]
    first = starts(own)
    idf = np.random.default_rng(n).integers(0, 9, first[-1]).astype(np.float64)
    tokens = np.array([one for text in texts for one in text], np.int64)
    weight = [
        dict(zip(some, idf[lo:hi], strict=True))
        for some, (lo, hi) in zip(own, pairwise(first), strict=True)
    ]
    return decon.Beside(tokens, starts(texts), idf, first, n, window, misses), weight


def share(weight, there):
    total = sum(weight.values())
    return np.float32(sum(weight[gram] for gram in there) / total if total else 0)


def to_the_left(window, weight, n, misses):
    """The grams of a text that stand in a window, from its end on, up to where too many miss."""
    there, last = set(), None
    for at in range(len(window) - n, -1, -1):
        if tuple(window[at : at + n]) in weight:
            if last is not None and last - at - 1 > misses:
                break
            last = at
            there.add(tuple(window[at : at + n]))
    return there


FEW = st.lists(st.integers(0, 3), max_size=6)


@given(
    st.lists(st.tuples(FEW, FEW, st.lists(FEW, min_size=1, max_size=3)), min_size=1, max_size=4),
    st.lists(st.lists(st.integers(0, 4), max_size=40), min_size=1, max_size=3),
    st.integers(1, 3),
    st.integers(1, 12),
)
def test_overlaps_are_those_of_sets_of_grams(items, documents, misses, window):
    asked, passages, answers = zip(*items, strict=True)
    rows = [answer for some in answers for answer in some]
    table, numbers, start, n_different = numbered(asked, 2, [0] * 6)
    key = np.empty(n_different, np.uint64)
    key[table.number[table.key != 0]] = table.key[table.key != 0]
    questions = decon.Questions(
        start,
        np.diff(starts(asked)),
        key[numbers],
        numbers,
        np.random.default_rng(2).integers(1, 9, len(numbers)).astype(np.float64),
        np.full(len(items), 0.3, np.float32),
        misses,
    )
    long, of_answer = beside(rows, 2, window, 1 << 40)
    before, of_passage = beside(passages, 3, window, misses)
    taken = np.arange(len(rows)) % 4 != 1
    informative = np.arange(len(rows)) % 3 != 0
    about = decon.Rows(starts(answers), taken, informative, 1, window)
    everyone = np.tile(np.arange(len(items)), len(documents))
    tokens = np.array([one for document in documents for one in document], np.int64)
    edges = np.arange(len(documents) + 1) * len(items)
    found = decon.find_overlaps(
        tokens, starts(documents), everyone, edges, 2, questions, long, before, about
    )
    expected = []
    for number, document in enumerate(documents):
        place, gram = decon.find_grams(np.array(document, np.int64), 2, table)
        places = decon.find_clusters(
            place, gram, len(document) - 1, np.arange(len(items)), questions
        )
        for item, first, last, part in zip(*(one.tolist() for one in places), strict=True):
            begin = max(0, first - 1 - max(2 * len(passages[item]), window))
            left = document[begin : max(first - 1, begin)]
            o_p = share(of_passage[item], to_the_left(left, of_passage[item], 3, misses))
            end = min(last + 2, first + len(asked[item]))
            for row in range(*about.first[item : item + 2]):
                answer = rows[row]
                behind = document[end : end + max(2 * len(answer), window)]
                o_a = share(of_answer[row], {*grams(behind, 2)} & of_answer[row].keys())
                if len(answer) <= 1:
                    begun = [document[at : at + len(answer)] for at in range(end, end + window)]
                    stands = answer in begun[: max(0, len(document) - len(answer) + 1 - end)]
                    o_a = np.float32(stands and informative[row])
                if taken[row] and len(document) >= 4:
                    expected.append((number * len(items) + item, row, part, o_a, o_p))
    got = zip(found.pair.tolist(), found.row.tolist(), found.share.tolist(), strict=True)
    assert [(pair, row, *parts) for pair, row, parts in got] == expected
