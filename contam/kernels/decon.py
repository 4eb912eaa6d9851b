"""The loops of decon's rules: cut texts into pieces, number their grams, find what holds them.

The rules themselves are told in `contam.detect.policies.decon`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from contam.kernels._jit import int64, kernel, lean_kernel
from contam.kernels.chars import decode_utf8
from contam.kernels.hash_set import filter_shift, is_noted, note_key, slot_of_key

if TYPE_CHECKING:
    from contam.kernels._jit import (
        Bools,
        Float32s,
        Float64s,
        Int32s,
        Int64s,
        Uint8s,
        Uint32s,
        Uint64s,
    )

#: Kinds of characters; each ideograph is a piece.
BLANK, LETTER, NUMBER, SIGN, ODD_SPACE, IDEOGRAPH = range(6)
#: Digits of a number in one piece.
MOST_DIGITS = 3
#: A share that is lower by this share of itself may be as high in 32 bits.
_ROUNDING = 1e-6

_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_SPACE = np.uint64(32)
_BASE = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_SHIFT_1, _SHIFT_2, _SHIFT_3 = np.uint64(30), np.uint64(27), np.uint64(31)


@lean_kernel
def _mixed(value: np.uint64) -> np.uint64:
    """The bits of a number spread over all 64, and never 0."""
    value = (value ^ (value >> _SHIFT_1)) * _MIX_1
    value = (value ^ (value >> _SHIFT_2)) * _MIX_2
    value ^= value >> _SHIFT_3
    return value if value != _ZERO else _ONE


@kernel
def cut_pieces(
    data: Uint8s,
    start: Int64s,
    lower: Uint32s,
    kinds: Uint8s,
    piece_start: Int64s,
    word_start: Int64s,
    with_words: bool,
) -> tuple[Uint64s, Uint64s]:
    """Hashes of the pieces of m texts in lower case, and of their words, each text by itself.

    data         uint8[k], UTF-8;  start  int64[m + 1], where in it each text begins
    lower        uint32[2**b], the lower case of each code point; those beyond have none
    kinds        uint8[2**b], the kind of each code point in lower case; those beyond are signs
    piece_start, word_start  int64[m + 1], where each text's pieces and words begin; written
    with_words   whether words are wanted

    Signs of kind BLANK are as a space, and several as one; none stands at the end of a text, and
    one before its first word. A word reaches from space to space.
    """
    n_texts = start.shape[0] - 1
    pieces = np.empty(data.shape[0] + n_texts, np.uint64)
    words = np.empty((data.shape[0] + n_texts) // 2 + 1, np.uint64)
    n_pieces = 0
    n_words = 0
    # Letters of one byte, in lower case.
    letters = np.zeros(256, np.uint8)
    for byte in range(128):
        if lower[byte] < 128 and kinds[lower[byte]] == LETTER:
            letters[byte] = np.uint8(lower[byte])
    for text in range(n_texts):
        piece_start[text], word_start[text] = n_pieces, n_words
        piece, word = _ZERO, _ZERO
        is_open, in_word, waiting, apart = False, False, True, False
        before = BLANK
        digits = 0
        at, end = start[text], start[text + 1]
        while at < end:
            if before == LETTER and not waiting:
                # Most are: they go on with what the one before them began.
                while at < end and letters[data[at]] != 0:
                    code = np.uint64(letters[data[at]])
                    piece = piece * _BASE + code
                    if with_words:
                        word = word * _BASE + code
                    at += 1
                if at == end:
                    break
            given, at = decode_utf8(data, at)
            code, kind = np.uint64(given), SIGN
            if given < kinds.shape[0]:
                code = np.uint64(lower[given])
                kind = int64(kinds[code])
            if kind == BLANK or kind == ODD_SPACE:
                if in_word:
                    words[n_words] = _mixed(word)
                    n_words += 1
                    in_word = False
                    word = _ZERO
                if kind == BLANK:
                    waiting = True
                    continue
            else:
                in_word = with_words
                word = word * _BASE + code
            if waiting:
                if is_open:
                    pieces[n_pieces] = _mixed(piece)
                    n_pieces += 1
                piece = _SPACE
                is_open, waiting, apart = True, False, False
                before = BLANK
            digits = digits + 1 if kind == NUMBER and before == NUMBER else 0
            begins = kind == ODD_SPACE
            if kind == SIGN:
                # A sign behind a word begins a piece; a single one takes the letters behind it.
                begins = before != BLANK and before != SIGN
            elif kind == LETTER or kind == IDEOGRAPH:
                begins = before == NUMBER or (before == SIGN and not apart)
                begins |= before == IDEOGRAPH or (before == LETTER and kind == IDEOGRAPH)
            elif kind == NUMBER:
                begins = digits % MOST_DIGITS == 0
            apart = kind == SIGN and begins
            if begins:
                pieces[n_pieces] = _mixed(piece)
                n_pieces += 1
                piece = _ZERO
            piece = piece * _BASE + code
            before = kind
        if is_open:
            pieces[n_pieces] = _mixed(piece)
            n_pieces += 1
        if in_word:
            words[n_words] = _mixed(word)
            n_words += 1
    piece_start[n_texts], word_start[n_texts] = n_pieces, n_words
    return pieces[:n_pieces], words[:n_words]


@kernel
def count_words(words: Uint64s, start: Int64s, texts: Int64s, most: int) -> Int64s:
    """The different words of each row, counted up to `most`: int64[r].

    words  of all texts, a text's from start[i] to start[i + 1]
    texts  int64[r, 3], the texts of each row, together
    """
    found = np.zeros(texts.shape[0], np.int64)
    seen = np.empty(most, np.uint64)
    for row in range(texts.shape[0]):
        n = 0
        for column in range(texts.shape[1]):
            text = texts[row, column]
            for i in range(start[text], start[text + 1]):
                if n == most:
                    break
                at = 0
                while at < n and seen[at] != words[i]:
                    at += 1
                if at == n:
                    seen[n] = words[i]
                    n += 1
        found[row] = n
    return found


class GramTable(NamedTuple):
    """Different grams, numbered as they come, in open addresses.

    key   uint64[2**b], 0 where a place is free;  number  int32[2**b]
    bits  uint8[2**f], a bit for the highest bits of each key
    """

    key: Uint64s
    number: Int32s
    bits: Uint8s


@kernel
def new_gram_table(n_grams: int) -> GramTable:
    """Room for so many different grams."""
    size = 16
    while size <= n_grams * 3 // 2:
        size *= 2
    return GramTable(
        np.zeros(size, np.uint64), np.empty(size, np.int32), np.zeros(size // 2, np.uint8)
    )


@lean_kernel
def _enter(table: GramTable, at: np.uint64, key: np.uint64, number: int) -> None:
    """Write a gram to its place in the table."""
    table.key[at], table.number[at] = key, np.int32(number)
    note_key(table.bits, filter_shift(table.bits), key)


@kernel
def _factors(n: int) -> Uint64s:
    """Odd numbers, by which the n tokens of a gram are multiplied."""
    factors = np.empty(n, np.uint64)
    for i in range(n):
        factors[i] = _mixed(np.uint64(i + 1)) | _ONE
    return factors


@lean_kernel
def _gram_key(tokens: Int64s, at: int, factors: Uint64s) -> np.uint64:
    """What stands for the tokens in a row, as many as there are factors, that begin there."""
    key = _ZERO
    for i in range(factors.shape[0]):
        key += np.uint64(tokens[at + i]) * factors[i]
    return _mixed(key)


@kernel
def number_grams(
    tokens: Int64s, start: Int64s, n: int, group: Int64s, table: GramTable, gram_start: Int64s
) -> tuple[Int32s, int]:
    """Numbers of the different grams of m texts, each text's as they come in it.

    tokens  of all texts, a text's from start[i] to start[i + 1];  n  tokens of a gram
    group   int64[m], equal grams of different groups have different numbers
    table   empty, takes the grams up
    gram_start  int64[m + 1], where each text's numbers begin; written

    Returns the numbers and how many grams are in the table.
    """
    n_texts = start.shape[0] - 1
    room = start[n_texts] - start[0]
    numbers = np.empty(room, np.int32)
    last = np.full(room, -1, np.int32)
    factors = _factors(n)
    n_different = 0
    count = 0
    for text in range(n_texts):
        gram_start[text] = count
        for i in range(start[text], start[text + 1] - n + 1):
            key = _gram_key(tokens, i, factors)
            if group[text] != 0:
                key = _mixed(key + np.uint64(group[text]) * _BASE)
            at = slot_of_key(table.key, key)
            if table.key[at] == _ZERO:
                _enter(table, at, key, n_different)
                n_different += 1
            number = table.number[at]
            if last[number] != text:
                last[number] = np.int32(text)
                numbers[count] = number
                count += 1
    gram_start[n_texts] = count
    return numbers[:count], n_different


@kernel
def find_grams(tokens: Int64s, n: int, table: GramTable) -> tuple[Int32s, Int32s]:
    """Where grams of the table (of group 0) stand among tokens, ascending, and their numbers."""
    n_grams = max(tokens.shape[0] - n + 1, 0)
    place = np.empty(n_grams, np.int32)
    number = np.empty(n_grams, np.int32)
    shift = filter_shift(table.bits)
    factors = _factors(n)
    count = 0
    for i in range(n_grams):
        key = _gram_key(tokens, i, factors)
        if not is_noted(table.bits, shift, key):
            continue
        at = slot_of_key(table.key, key)
        if table.key[at] == key:
            place[count], number[count] = np.int32(i), table.number[at]
            count += 1
    return place[:count], number[:count]


class Questions(NamedTuple):
    """The questions of n items as clusters need them.

    start   int64[n + 1], where each one's grams begin in key (uint64), number (int32) and idf
            (float64)
    length  int64[n], its tokens
    least   float32[n], the share of the rarity of its grams from which decon goes on
    misses  grams in a row that end a cluster when none of them is new to it
    """

    start: Int64s
    length: Int64s
    key: Uint64s
    number: Int32s
    idf: Float64s
    least: Float32s
    misses: int


class Clusters(NamedTuple):
    """Where questions stand in a document, one row a place.

    item         int64[c], which of those asked for
    first, last  int64[c], the outermost of its grams, numbered by their first token
    share        float32[c], of the rarity of all grams of the question
    """

    item: Int64s
    first: Int64s
    last: Int64s
    share: Float32s


@lean_kernel
def _slot(key: Int32s, number: np.int32) -> int:
    """Where a number is in the table, or the free place at which it would be."""
    mask = key.shape[0] - 1
    at: int = int64(np.uint64(number) * _BASE >> np.uint64(32)) & mask
    while key[at] >= 0 and key[at] != number:
        at = (at + 1) & mask
    return at


@kernel
def find_clusters(
    place: Int32s, number: Int32s, n_grams: int, items: Int64s, questions: Questions
) -> Clusters:
    """The clusters of these items' questions that hold enough, item by item, from left to right.

    place, number  as `find_grams` gives them for a document of n_grams grams
    """
    size = 8
    while size < 2 * place.shape[0]:
        size *= 2
    key = np.full(size, -1, np.int32)
    slot = np.empty(place.shape[0], np.int64)
    for hit in range(place.shape[0]):
        slot[hit] = _slot(key, number[hit])
        key[slot[hit]] = number[hit]

    # Which gram of the item in hand a place of the table is, and in which cluster it was seen.
    gram = np.full(size, -1, np.int64)
    seen = np.zeros(size, np.int64)
    own = np.empty(place.shape[0], np.int64)
    room = 16
    found = np.empty((room, 3), np.int64)
    share = np.empty(room, np.float32)
    count = 0
    n_seen = 0
    for number_of, item in enumerate(items):
        lo, hi = questions.start[item], questions.start[item + 1]
        total = 0.0
        there = 0.0
        for i in range(lo, hi):
            total += questions.idf[i]
            at = _slot(key, questions.number[i])
            if key[at] >= 0:
                gram[at] = i
                there += questions.idf[i]
        n_own = 0
        least = total * questions.least[item] * (1 - _ROUNDING)
        if total > 0 and there >= least:
            for hit in range(place.shape[0]):
                if gram[slot[hit]] >= 0:
                    own[n_own] = hit
                    n_own += 1
        at = 0
        after = 0
        while at < n_own:
            if place[own[at]] < after:
                at += 1
                continue
            n_seen += 1
            seen[slot[own[at]]] = n_seen
            left, _ = _walk(at, -1, place, own, n_own, slot, seen, n_seen, questions.misses)
            right, end = _walk(at, 1, place, own, n_own, slot, seen, n_seen, questions.misses)
            after = min(end, n_grams - 1) + 1
            there = 0.0
            for i in range(lo, hi):
                where = _slot(key, questions.number[i])
                if key[where] >= 0 and seen[where] == n_seen:
                    there += questions.idf[i]
            if np.float32(there / total) >= questions.least[item]:
                if count == room:
                    room *= 2
                    more, shares = np.empty((room, 3), np.int64), np.empty(room, np.float32)
                    more[:count], shares[:count] = found, share
                    found, share = more, shares
                found[count, 0] = number_of
                found[count, 1], found[count, 2] = place[own[left]], place[own[right]]
                share[count] = there / total
                count += 1
        for i in range(lo, hi):
            gram[_slot(key, questions.number[i])] = -1
    return Clusters(found[:count, 0], found[:count, 1], found[:count, 2], share[:count])


@lean_kernel
def _walk(
    seed: int,
    step: int,
    place: Int32s,
    own: Int64s,
    n_own: int,
    slot: Int64s,
    seen: Int64s,
    n_seen: int,
    most_misses: int,
) -> tuple[int, int]:
    """Follow a cluster to one side, noting its grams in `seen`.

    own  the item's hits, n_own of them
    Returns the outermost of them that belongs to it, and the last gram that would be looked at.
    """
    outermost = seed
    misses = 0
    at = int64(place[own[seed]])
    following = seed + step
    while 0 <= following < n_own:
        hit = own[following]
        gap = abs(int64(place[hit]) - at) - 1
        if misses + gap >= most_misses:
            break
        misses += gap
        at = int64(place[hit])
        if seen[slot[hit]] != n_seen:
            seen[slot[hit]] = n_seen
            misses = 0
        outermost = following
        following += step
    return outermost, at + step * (most_misses - misses)


class Beside(NamedTuple):
    """Texts that are looked for beside a question.

    tokens, start  int64[k], a text's from start[i] to start[i + 1]
    idf, first     float64[g], how rare each text's different grams are, as they come, and where
                   in that each text's begin
    n, window      tokens of a gram, and those that are looked at: twice the text's, if that is more
    misses         tokens between two grams that part them: those before are forgotten
    """

    tokens: Int64s
    start: Int64s
    idf: Float64s
    first: Int64s
    n: int
    window: int
    misses: int


class Rows(NamedTuple):
    """The rows of n items: a question with one answer each.

    first        int64[n + 1], where an item's rows begin;  taken  bool[r], decon indexes the row
    informative  bool[r], its short answer has a token that is not everywhere
    short, short_window  tokens of a short answer, and those in which it must begin
    """

    first: Int64s
    taken: Bools
    informative: Bools
    short: int
    short_window: int


class Overlaps(NamedTuple):
    """What was found of rows, in the order of pairs, places and rows.

    pair, row  int64[c];  share  float32[c, 3], O_q, O_a and O_p
    """

    pair: Int64s
    row: Int64s
    share: Float32s


@kernel
def _table_of(items: Int64s, questions: Questions) -> GramTable:
    """The grams of some items' questions: few enough to stay in a core's own cache."""
    n_grams = 0
    for item in items:
        n_grams += questions.start[item + 1] - questions.start[item]
    table = new_gram_table(n_grams)
    for item in items:
        for i in range(questions.start[item], questions.start[item + 1]):
            key = questions.key[i]
            _enter(table, slot_of_key(table.key, key), key, questions.number[i])
    return table


class _Scratch(NamedTuple):
    """The grams of one text: key uint64[2**b], number int32[2**b], slot and seen by number."""

    key: Uint64s
    number: Int32s
    slot: Uint64s
    seen: Bools


@lean_kernel
def _window(beside: Beside, text: int) -> int:
    return max(2 * int64(beside.start[text + 1] - beside.start[text]), beside.window)


@lean_kernel
def _share(
    tokens: Int64s,
    begin: int,
    end: int,
    text: int,
    beside: Beside,
    factors: Uint64s,
    scratch: _Scratch,
) -> np.float32:
    """The share of the rarity of a text's grams that stand in tokens[begin:end]; 0 of none."""
    key, number, slot, seen = scratch
    n = factors.shape[0]
    lo, hi = beside.start[text], beside.start[text + 1]
    size = 8
    while size < 2 * (hi - lo):
        size *= 2
    key = key[:size]
    n_different = 0
    for i in range(lo, hi - n + 1):
        gram = _gram_key(beside.tokens, i, factors)
        at = slot_of_key(key, gram)
        if key[at] == _ZERO:
            key[at], number[at] = gram, np.int32(n_different)
            slot[n_different], seen[n_different] = at, False
            n_different += 1
    last = -1
    for i in range(begin, min(end, tokens.shape[0]) - n + 1):
        gram = _gram_key(tokens, i, factors)
        at = slot_of_key(key, gram)
        if key[at] == gram:
            if last >= 0 and i - last - 1 > beside.misses:
                seen[:n_different] = False
            seen[number[at]] = True
            last = i
    total = 0.0
    there = 0.0
    for i in range(n_different):
        key[slot[i]] = _ZERO
        rarity = beside.idf[beside.first[text] + i]
        total += rarity
        if seen[i]:
            there += rarity
    return np.float32(there / total if total > 0 else 0.0)


@lean_kernel
def _stands(tokens: Int64s, begin: int, end: int, text: int, beside: Beside) -> bool:
    """Whether a text stands there whole, begun in tokens[begin:end]."""
    lo, hi = beside.start[text], beside.start[text + 1]
    for at in range(begin, min(end, tokens.shape[0] - (hi - lo) + 1)):
        step = 0
        while lo + step < hi and tokens[at + step] == beside.tokens[lo + step]:
            step += 1
        if lo + step == hi:
            return True
    return False


@kernel
def find_overlaps(
    tokens: Int64s,
    start: Int64s,
    items: Int64s,
    pair_start: Int64s,
    n: int,
    questions: Questions,
    answers: Beside,
    passages: Beside,
    rows: Rows,
) -> Overlaps:
    """Where documents hold enough of questions, and what of each row stands beside them.

    tokens      of the documents, one's from start[d] to start[d + 1]
    items       int64[p], those to look for, a document's from pair_start[d] to pair_start[d + 1]
    n           tokens of a gram of questions
    answers     of r rows;  passages  of n items
    """
    longest = 8
    for beside in (answers, passages):
        for text in range(beside.start.shape[0] - 1):
            longest = max(longest, int64(beside.start[text + 1] - beside.start[text]))
    size = 8
    while size < 2 * longest:
        size *= 2
    scratch = _Scratch(
        np.zeros(size, np.uint64),
        np.empty(size, np.int32),
        np.empty(longest, np.uint64),
        np.empty(longest, np.bool_),
    )
    answer_factors, passage_factors = _factors(answers.n), _factors(passages.n)
    room = 64
    found = np.empty((room, 2), np.int64)
    share = np.empty((room, 3), np.float32)
    count = 0
    for d in range(start.shape[0] - 1):
        document = tokens[start[d] : start[d + 1]]
        n_grams = document.shape[0] - n + 1
        if document.shape[0] < 2 * n:
            continue
        lo = pair_start[d]
        mine = items[lo : pair_start[d + 1]]
        place, number = find_grams(document, n, _table_of(mine, questions))
        clusters = find_clusters(place, number, n_grams, mine, questions)
        for c in range(clusters.item.shape[0]):
            item = mine[clusters.item[c]]
            first, end = clusters.first[c], clusters.last[c] + n - 1
            o_p = np.float32(0)
            if passages.start[item] < passages.start[item + 1]:
                begin = max(0, first - 1 - _window(passages, item))
                o_p = _share(document, begin, first - 1, item, passages, passage_factors, scratch)
            # Where grams of the question recur behind it, the answer may begin before the end.
            end -= max(0, end - first + 1 - questions.length[item])
            for row in range(rows.first[item], rows.first[item + 1]):
                if not rows.taken[row]:
                    continue
                if answers.start[row + 1] - answers.start[row] > rows.short:
                    behind = end + 1 + _window(answers, row)
                    o_a = _share(document, end + 1, behind, row, answers, answer_factors, scratch)
                else:
                    behind = end + 1 + rows.short_window
                    there = _stands(document, end + 1, behind, row, answers)
                    o_a = np.float32(rows.informative[row] and there)
                if count == room:
                    room *= 2
                    more, shares = np.empty((room, 2), np.int64), np.empty((room, 3), np.float32)
                    more[:count], shares[:count] = found, share
                    found, share = more, shares
                found[count, 0], found[count, 1] = lo + clusters.item[c], row
                share[count, 0], share[count, 1], share[count, 2] = clusters.share[c], o_a, o_p
                count += 1
    return Overlaps(found[:count, 0], found[:count, 1], share[:count])
