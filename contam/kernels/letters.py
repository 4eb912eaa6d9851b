"""Put right the spaces of documents whose words are run together or cut, by the items' letters.

From words that may be torn on, letters are read without what stands between them, and looked up in
a table of the items' letters. Where an item's words end elsewhere, the whole document is read so,
and the item's words take the place of its own: the letters stay, their borders move.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from contam.kernels._jit import int64, kernel, lean_kernel
from contam.kernels.bits import LOWER, SEED, load8, next_bytes, prefetch, store8
from contam.kernels.chars import decode_utf8, is_letter, lookup
from contam.kernels.gram_filter import WORD_SHIFT, bits_of, passes_filter
from contam.kernels.gram_table import GRAM_BASE, GRAM_SPREAD, NO_TAG, GramTable, slot_of, tag_of
from contam.kernels.pairs import pair_of
from contam.kernels.tags import is_digit
from contam.kernels.tokens import is_run_together, read_marked
from contam.kernels.torn_words import HEAD, LONG, SURE, find_suspects, hash_head
from contam.kernels.word_hashes import hash_word
from contam.kernels.words import (
    DIGIT,
    EXPANSION,
    LETTER,
    SEPARATOR,
    SINGLE,
    THIN_SPACE,
    TRANSPARENT,
    finish,
    push,
)

if TYPE_CHECKING:
    from contam.kernels._jit import Int32s, Int64s, Uint8s, Uint64s
    from contam.kernels.chars import CharTables
    from contam.kernels.run_together import Document

#: Letters in a row by which a document's are compared with the items'.
GRAM = 24
#: Letters in a row by which an index compares them, and how far apart those are that it keeps: in
#: any GRAM letters in a row is one.
KEY_GRAM = 16
KEY_STRIDE = 8
#: Entries that the table holds of equal letters.
MOST_ALIKE = 8
#: In place of a hash where there is none.
NO_GRAM = np.uint64(0)
#: Grams ahead whose slots are fetched.
_AHEAD = 16
#: Letters of a word that can be put right.
LONGEST = 255
#: Text whose letters are read at once, and how much of it is read once more with what follows.
PIECE = 1 << 13
OVERLAP = 1 << 8
#: A letter outside ASCII as a byte.
_SPREAD_LETTER = np.uint64(0x9E3779B1)
_TOP_BITS = np.uint64(0x8080808080808080)


class LetterScratch(NamedTuple):
    """What letters are read by, and scratch for those of some text.

    letters   uint8[...], see `byte_of`
    codes     uint64[as many], folded code points;  spans  int32[as many, 2], their bytes
    suspects  int32[>= 2 * words of a document], see `find_suspects`
    """

    tables: CharTables
    letters: Uint8s
    codes: Uint64s
    spans: Int32s
    suspects: Int32s


class Mended(NamedTuple):
    """The words of a document put right: uint64[room], and int32[room, 2], their bytes in it."""

    hashes: Uint64s
    spans: Int32s


def new_letter_scratch(
    tables: CharTables, n_bytes: int = PIECE + OVERLAP, n_words: int = 0
) -> LetterScratch:
    """Scratch for the letters of so many bytes of text, and documents of so many words."""
    room = 5 * n_bytes + 64
    return LetterScratch(
        tables,
        np.zeros(room, np.uint8),
        np.empty(room, np.uint64),
        np.empty((room, 2), np.int32),
        np.empty(2 * n_words, np.int32),
    )


@lean_kernel
def byte_of(code: np.uint64) -> np.uint8:
    """A letter as one byte; others than those of ASCII share some."""
    if code < np.uint64(0x80):
        return np.uint8(code)
    return np.uint8(np.uint64(0x80) | ((code * _SPREAD_LETTER) >> np.uint64(25)) & np.uint64(0x7F))


@lean_kernel
def read_letters(
    text: Uint8s, limits: tuple[int, int, int], known: int, scratch: LetterScratch
) -> int:
    """Append the letters and digits of text[limits[1] : limits[2]] to the scratch; how many then.

    What stands between them is left out.

    limits  (start of the document, first byte to read, end of what is read)
    known   letters that are there
    """
    lo, p, stop = limits
    tables, codes, spans = scratch.tables, scratch.codes, scratch.spans
    table = tables.table
    count = known
    while p < stop:
        code, after = int64(text[p]), p + 1
        if code >= 0x80:
            code, after = decode_utf8(text, p)
        elif code in (37, 38, 40, 60, 91, 92):
            code, after = read_marked(text, (lo, p, stop), tables)
            # Names and attributes of a tag that holds text are read like any other text.
            after = max(after, p + 1)
        elif not is_letter(code) and not is_digit(code):
            p = after
            continue
        entry = lookup(code, table) if code >= 0 else SEPARATOR
        at, left = 0, 1
        if entry & 7 == EXPANSION:
            at = entry >> 3
            left = int64(table[at])
        for further in range(1, left + 1):
            if at > 0:
                entry = int64(table[at + further])
            kind = entry & 7
            if kind == LETTER or kind == DIGIT or kind == SINGLE:
                codes[count] = np.uint64(entry >> 3)
                scratch.letters[count] = byte_of(codes[count])
                spans[count, 0] = np.int32(p - lo)
                spans[count, 1] = np.int32(after - lo)
                count += 1
            elif kind == TRANSPARENT and count > known and spans[count - 1, 1] == p - lo:
                # A mark belongs to the character it stands right behind.
                parts = code == THIN_SPACE and text[p] >= 0x80
                if not (parts and is_run_together(text, lo, p, stop)):
                    spans[count - 1, 1] = np.int32(after - lo)
        p = after
    return count


@lean_kernel
def are_plain(chunk: np.uint64, n: int) -> bool:
    """Whether the lowest n of eight bytes, with the bits of LOWER, are ASCII letters and digits."""
    ones = np.uint64(0x0101010101010101)
    letters = (chunk + np.uint64(0x1F) * ones) & ~(chunk + np.uint64(0x05) * ones)
    digits = (chunk + np.uint64(0x50) * ones) & ~(chunk + np.uint64(0x46) * ones)
    wanted = _TOP_BITS if n >= 8 else _TOP_BITS >> np.uint64(64 - 8 * n)
    return bool(((letters | digits) & ~chunk) & wanted == wanted)


@lean_kernel
def copy_plain(text: Uint8s, begin: int, end: int, letters: Uint8s, count: int) -> bool:
    """Whether text[begin:end] is ASCII letters and digits, which are then at letters[count]."""
    is_plain = True
    for at in range(begin, end, 8):
        chunk = next_bytes(text, at, end - at) | LOWER
        is_plain &= are_plain(chunk, end - at)
        store8(letters, count + at - begin, chunk)
    return is_plain


@lean_kernel
def letter_gram(letters: Uint8s, at: int) -> np.uint64:
    """Spread hash of GRAM letters from letters[at] on."""
    value = load8(letters, at) * GRAM_BASE + load8(letters, at + 8)
    mixed = (value * GRAM_BASE + load8(letters, at + 16)) * GRAM_SPREAD
    return mixed ^ (mixed >> np.uint64(32))


@lean_kernel
def letter_head(letters: Uint8s, at: int) -> np.uint64:
    """Spread hash of HEAD letters from letters[at] on."""
    return hash_head(load8(letters, at), load8(letters, at + HEAD - 8))


@lean_kernel
def letter_hash(letters: Uint8s, at: int) -> np.uint64:
    """The hash of KEY_GRAM letters from letters[at] on, by which an index compares them."""
    mixed = (load8(letters, at) * GRAM_BASE + load8(letters, at + 8)) * GRAM_SPREAD
    return np.uint64(mixed ^ (mixed >> np.uint64(32)))


@lean_kernel
def hash_letters(codes: Uint64s, at: int, n: int) -> np.uint64:
    """The hash of the word of the letters codes[at : at + n]."""
    value, chunk, filled = SEED, np.uint64(0), np.uint64(0)
    for i in range(at, at + n):
        value, chunk, filled = push(value, chunk, filled, int64(codes[i]))
    return finish(value, chunk, filled)


@kernel
def word_letters(
    data: Uint8s,
    offsets: Int64s,
    starts: Int64s,
    hashes: Uint64s,
    spans: Int32s,
    scratch: LetterScratch,
) -> tuple[Uint8s, Uint8s]:
    """Letters of the words of texts.

    starts, hashes, spans  see `tokenize_parts`
    return  (uint8[words], how many each has, 0 where they do not spell it; uint8[their sum], the
            letters)
    """
    counts = np.zeros(hashes.shape[0], np.uint8)
    letters = np.empty(5 * data.shape[0] + 64, np.uint8)
    total = 0
    for i in range(offsets.shape[0] - 1):
        lo, count = offsets[i], 0
        for t in range(starts[i], starts[i + 1]):
            begin, end = lo + int64(spans[t, 0]), lo + int64(spans[t, 1])
            if copy_plain(data, begin, end, scratch.letters, count):
                length = end - begin
            else:
                length = read_letters(data, (lo, begin, end), count, scratch) - count
                if hash_letters(scratch.codes, count, length) != hashes[t]:
                    length = 0
            if length <= LONGEST:
                counts[t] = length
                count += length
        letters[total : total + count] = scratch.letters[:count]
        total += count
    return counts, letters[:total].copy()


@kernel
def letter_hashes(data: Uint8s, offsets: Int64s, scratch: LetterScratch) -> Uint64s:
    """The hashes of all KEY_GRAM letters in a row of texts, see `letter_hash`."""
    hashes = np.empty(5 * data.shape[0], np.uint64)
    count = 0
    for i in range(offsets.shape[0] - 1):
        n = read_letters(data, (offsets[i], offsets[i], offsets[i + 1]), 0, scratch)
        for at in range(n - KEY_GRAM + 1):
            hashes[count] = letter_hash(scratch.letters, at)
            count += 1
    return hashes[:count].copy()


@kernel
def letter_grams(counts: Uint8s, letters: Uint8s, starts: Int64s, heads: Uint64s) -> Uint64s:
    """The hash of GRAM letters from each word on, NO_GRAM where there are not so many.

    counts, letters  see `word_letters`;  starts  first word of each text, and the end
    heads  a filter of HEAD letters from each word on that has fewer: uint64[2**f], all 0 before
    """
    mask = np.uint64(heads.shape[0] - 1)
    grams = np.zeros(counts.shape[0], np.uint64)
    at = 0
    for i in range(starts.shape[0] - 1):
        first, stop = starts[i], min(starts[i + 1], counts.shape[0])
        end = at
        for t in range(first, stop):
            end += int64(counts[t])
        for t in range(first, stop):
            if counts[t] > 0 and at + GRAM <= end:
                grams[t] = letter_gram(letters, at)
                if counts[t] < HEAD:
                    head = letter_head(letters, at)
                    heads[(head >> WORD_SHIFT) & mask] |= bits_of(head)
            at += int64(counts[t])
    return grams


@kernel
def enter_letters(grams: Uint64s, first: int, tags: Uint8s, places: Int32s) -> None:
    """Enter the grams that are there, by the number of their word, a few of those alike.

    first  number of the word of the first gram
    tags  uint8[slots], more than grams, all NO_TAG before;  places  int32[slots]
    """
    n_slots = places.shape[0]
    for t in range(grams.shape[0]):
        ahead = grams[min(t + _AHEAD, grams.shape[0] - 1)]
        prefetch(tags, slot_of(ahead, n_slots))
        prefetch(places, slot_of(ahead, n_slots))
        if grams[t] == NO_GRAM:
            continue
        slot, tag = slot_of(grams[t], n_slots), tag_of(grams[t])
        alike = 0
        while tags[slot] != NO_TAG and alike < MOST_ALIKE:
            alike += int64(tags[slot] == tag)
            slot = slot + 1 if slot + 1 < n_slots else int64(0)
        if alike < MOST_ALIKE:
            tags[slot] = tag
            places[slot] = np.int32(first + t)


@lean_kernel
def words_alike(
    codes: Uint64s, n: int, i: int, t: int, gram_table: GramTable
) -> tuple[int, int, int]:
    """The words around word t whose letters the document has in a row, its own at codes[i].

    return  (first letter, first word, the word behind the last)
    """
    counts, token = gram_table.letters, gram_table.token
    begin, first = i, t
    at, word = i, t
    while word < counts.shape[0]:
        length = int64(counts[word])
        if length == 0 or at + length > n or hash_letters(codes, at, length) != token[word]:
            break
        at += length
        word += 1
    if word == t:
        return i, t, t
    while first > 0:
        length = int64(counts[first - 1])
        if length == 0 or begin < length:
            break
        if hash_letters(codes, begin - length, length) != token[first - 1]:
            break
        begin -= length
        first -= 1
    return begin, first, word


@lean_kernel
def best_words(
    codes: Uint64s, n: int, i: int, gram: np.uint64, gram_table: GramTable
) -> tuple[int, int, int]:
    """Of the words whose gram this may be, those of which most are alike: see `words_alike`."""
    tags, places = gram_table.letter_tag, gram_table.letter_place
    slot = slot_of(gram, places.shape[0])
    tag = tag_of(gram)
    best = (i, 0, 0)
    while tags[slot] != NO_TAG:
        if tags[slot] == tag:
            found = words_alike(codes, n, i, int64(places[slot]), gram_table)
            if found[2] - found[1] > best[2] - best[1]:
                best = found
        slot = slot + 1 if slot + 1 < places.shape[0] else int64(0)
    return best


@lean_kernel
def keep_words(
    stop: int, progress: tuple[int, int, int], doc: Document, mended: Mended
) -> tuple[int, int, int]:
    """Write the document's own words up to a byte; of one that was cut what is left, as no word.

    progress  (words written, first word of the document not written, byte up to which all is)
    return    the same as `progress` afterwards
    """
    count, j, done = progress
    hashes, spans, n = doc.hashes, doc.spans, doc.n
    while j < n and spans[j, 0] < stop and count + 2 < mended.hashes.shape[0]:
        begin, end = int64(spans[j, 0]), int64(spans[j, 1])
        is_cut = begin < done or end > stop
        begin, end = max(begin, done), min(end, stop)
        if begin < end:
            mended.hashes[count] = np.uint64(0) if is_cut else hashes[j]
            mended.spans[count, 0] = np.int32(begin)
            mended.spans[count, 1] = np.int32(end)
            count += 1
        done = max(done, end)
        if spans[j, 1] > stop:
            break
        j += 1
    return count, j, done


@lean_kernel
def is_within(byte: int, doc: Document) -> bool:
    """Whether a word of the document that is no long one goes on over this byte's front."""
    k = np.searchsorted(doc.spans[: doc.n, 0], byte) - 1
    if k < 0:
        return False
    begin, end = int64(doc.spans[k, 0]), int64(doc.spans[k, 1])
    return byte < end and end - begin <= LONG


@lean_kernel
def trimmed(
    words: tuple[int, int, int], doc: Document, gram_table: GramTable, scratch: LetterScratch
) -> tuple[int, int, int]:
    """The words without a first and a last one that would cut a word of the document in two.

    words  see `words_alike`
    """
    letter, word, end_word = words
    if is_within(int64(scratch.spans[letter, 0]), doc):
        letter += int64(gram_table.letters[word])
        word += 1
    at = letter
    for k in range(word, end_word):
        at += int64(gram_table.letters[k])
    if word < end_word and is_within(int64(scratch.spans[at - 1, 1]), doc):
        end_word -= 1
    return letter, word, end_word


@lean_kernel
def put_words(
    words: tuple[int, int, int],
    progress: tuple[int, int, int],
    doc: Document,
    gram_table: GramTable,
    mended: Mended,
    scratch: LetterScratch,
) -> tuple[int, int, int]:
    """Write words of an item in place of the document's, and those of the document before them.

    words  see `words_alike`;  progress, return  as of `keep_words`
    """
    letter, word, end_word = words
    count, j, done = progress
    while word < end_word:
        length = int64(gram_table.letters[word])
        begin = int64(scratch.spans[letter, 0])
        end = int64(scratch.spans[letter + length - 1, 1])
        if begin >= done:
            count, j, done = keep_words(begin, (count, j, done), doc, mended)
            if count + 2 >= mended.hashes.shape[0]:
                break
            mended.hashes[count] = gram_table.token[word]
            mended.spans[count, 0] = np.int32(begin)
            mended.spans[count, 1] = np.int32(end)
            count += 1
            done = end
            while j < doc.n and doc.spans[j, 1] <= end:
                j += 1
        letter += length
        word += 1
    return count, j, done


@lean_kernel
def character_at(text: Uint8s, at: int, stop: int) -> int:
    """The first byte from `at` on that begins a character, or `stop`."""
    while at < stop and (text[at] & 0xC0) == 0x80:
        at += 1
    return at


@lean_kernel
def mend_document(
    doc: Document, gram_table: GramTable, mended: Mended, scratch: LetterScratch
) -> int:
    """Put the words of a document right where they are an item's; how many then.

    return  0 where nothing is put right, or there is no room in `mended`
    """
    text, lo, hi = doc.text, doc.begin, doc.end
    first = lo
    progress = (int64(0), int64(0), int64(0))
    n_put = 0
    while first < hi:
        stop = character_at(text, min(first + PIECE, hi), hi)
        m = read_letters(text, (lo, first, stop), 0, scratch)
        for i in range(m - GRAM + 1):
            gram = letter_gram(scratch.letters, i)
            if n_put > 0 and scratch.spans[i + GRAM - 1, 1] <= progress[2]:
                continue
            words = best_words(scratch.codes, m, i, gram, gram_table)
            words = trimmed(words, doc, gram_table, scratch)
            if words[2] - words[1] > 1:
                n_put += 1
                progress = put_words(words, progress, doc, gram_table, mended, scratch)
        first = hi if stop == hi else character_at(text, stop - OVERLAP, hi)
    count, _, _ = keep_words(hi - lo, progress, doc, mended)
    return count if n_put > 0 and count + 2 < mended.hashes.shape[0] else 0


@lean_kernel
def add_letters(
    text: Uint8s, limits: tuple[int, int, int], count: int, scratch: LetterScratch
) -> int:
    """Append the letters of one word to `scratch.letters`; how many there are then.

    limits  (start of the document, first byte of the word, byte behind the last)
    """
    if copy_plain(text, limits[1], limits[2], scratch.letters, count):
        return count + limits[2] - limits[1]
    return read_letters(text, limits, count, scratch)


@lean_kernel
def suspect_letters(
    doc: Document, where: tuple[int, int], scratch: LetterScratch
) -> tuple[int, int, int]:
    """The letters of a word, and some of those behind it, in `scratch.letters`.

    where   (number of the word, its byte in the document at which to begin)
    return  (how many letters, how many of the word itself, the byte at which to go on with it, or
            -1 where all of it was read)
    """
    text, lo, hi, spans, n = doc.text, doc.begin, doc.end, doc.spans, doc.n
    k, begin = where[0], lo + where[1]
    end = lo + int64(spans[k, 1])
    if end - begin > PIECE:
        stop = character_at(text, begin + PIECE, end)
        count = add_letters(text, (lo, begin, stop), 0, scratch)
        return count, count, character_at(text, stop - OVERLAP, end) - lo
    own = add_letters(text, (lo, begin, end), 0, scratch)
    k += 1
    is_before_one = k < n and spans[k, 1] - spans[k, 0] == 1
    # A gram may begin with the last letter of a very long word, or with the letter behind another.
    wanted = own + GRAM if own >= SURE or is_before_one else GRAM
    count = own
    while count < wanted and k < n:
        begin, end = lo + int64(spans[k, 0]), lo + int64(spans[k, 1])
        end = character_at(text, min(end, begin + OVERLAP), hi)
        count = add_letters(text, (lo, begin, end), count, scratch)
        k += 1
    return count, own, -1


@lean_kernel
def spells(letters: Uint8s, i: int, word: int, gram_table: GramTable) -> bool:
    """Whether GRAM letters from letters[i] on are an item's from a word on, if all are ASCII."""
    at = i
    while word < gram_table.letters.shape[0]:
        length = int64(gram_table.letters[word])
        if length == 0 or at + length > i + GRAM:
            break
        if hash_word(letters, at, length) != gram_table.token[word]:
            return has_foreign(letters, at, at + length)
        at += length
        word += 1
    return True


@lean_kernel
def has_foreign(letters: Uint8s, begin: int, end: int) -> bool:
    """Whether one of letters[begin:end] is not ASCII."""
    for at in range(begin, end):
        if letters[at] >= 0x80:
            return True
    return False


@lean_kernel
def is_torn(letters: Uint8s, i: int, own: int, gram_table: GramTable) -> bool:
    """Whether an item's word begins at letters[i], and ends elsewhere than the document's own.

    own  letters of the document's word from there on
    """
    tags, places = gram_table.letter_tag, gram_table.letter_place
    gram = letter_gram(letters, i)
    slot, tag = slot_of(gram, places.shape[0]), tag_of(gram)
    while tags[slot] != NO_TAG:
        word = int64(places[slot])
        if tags[slot] == tag and int64(gram_table.letters[word]) != own:
            if spells(letters, i, word, gram_table):
                return True
        slot = slot + 1 if slot + 1 < places.shape[0] else int64(0)
    return False


@lean_kernel
def holds_torn(doc: Document, gram_table: GramTable, scratch: LetterScratch) -> bool:
    """Whether words of a document are torn that, put right, are an item's, as far as one sees."""
    spans, n = doc.spans, doc.n
    heads, letters, suspects = gram_table.letter_heads, scratch.letters, scratch.suspects
    for at in range(find_suspects(doc, heads, suspects)):
        k = int64(suspects[at])
        begin = int64(spans[k, 0])
        while begin >= 0:
            count, own, begin = suspect_letters(doc, (k, begin), scratch)
            is_long_one = own >= SURE
            is_before_one = k + 1 < n and spans[k + 1, 1] - spans[k + 1, 0] == 1
            # Of a word that is not very long the first letter counts, and a lone one behind it.
            last = own - 1 if is_long_one else own if is_before_one else 0
            i = 0
            while i <= last and i + GRAM <= count:
                may_be = not is_long_one or passes_filter(letter_head(letters, i), heads)
                if may_be and is_torn(letters, i, own - i if i < own else 1, gram_table):
                    return True
                i += 2 if is_long_one else max(own, 1)
    return False


@lean_kernel
def keep_keys(doc: Document, scratch: LetterScratch, keys: tuple[Uint64s, int, int, int]) -> int:
    """Append what an index keeps of the letters of a document's suspects; how many there are.

    keys  (uint64[four for each word, and one for KEY_STRIDE letters], see contam.kernels.pairs;
          how many are there; the number of the document; bits of a key)
    """
    out, n_keys, number, key_bits = keys
    spans, n, suspects = doc.spans, doc.n, scratch.suspects
    for at in range(find_suspects(doc, out[:0], suspects)):
        k = int64(suspects[at])
        begin = int64(spans[k, 0])
        while begin >= 0:
            count, own, begin = suspect_letters(doc, (k, begin), scratch)
            # In any GRAM letters is one of those. Steps are constants: where array accesses are
            # checked, LLVM counts others in 128 bits, and calls what no library here has.
            if own >= SURE:
                for i in range(0, min(own + KEY_STRIDE, count - KEY_GRAM + 1), KEY_STRIDE):
                    out[n_keys] = pair_of(letter_hash(scratch.letters, i), key_bits, number)
                    n_keys += 1
                continue
            if count >= KEY_GRAM:
                out[n_keys] = pair_of(letter_hash(scratch.letters, 0), key_bits, number)
                n_keys += 1
            is_before_one = k + 1 < n and spans[k + 1, 1] - spans[k + 1, 0] == 1
            if is_before_one and own > 0 and own + KEY_GRAM <= count:
                out[n_keys] = pair_of(letter_hash(scratch.letters, own), key_bits, number)
                n_keys += 1
    return n_keys
