"""Follow a part through words of a document that are run together, where others of it stand."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from contam.kernels._jit import int64, lean_kernel
from contam.kernels.tags import is_digit
from contam.kernels.word_hashes import hash_word

if TYPE_CHECKING:
    from contam.kernels._jit import Float32s, Int32s, Uint8s, Uint64s


class Document(NamedTuple):
    """The tokens of a document, and the text they were made of.

    hashes  uint64[n tokens];  spans  int32[n tokens, 2], their bytes, counted from `begin` on
    text    uint8[...], UTF-8; the document is text[begin:end]
    """

    hashes: Uint64s
    n: int
    spans: Int32s
    text: Uint8s
    begin: int
    end: int


class PartTokens(NamedTuple):
    """The tokens of a part of an item.

    token, weight, letters  their hashes, weights and letters: see `GramTable`
    first, n  where in `token` and `letters` the part begins, and its tokens
    """

    token: Uint64s
    weight: Float32s
    letters: Uint8s
    first: int
    n: int


@lean_kernel
def run_together(doc: Document, d: int, part: PartTokens, box: tuple[int, int], step: int) -> int:
    """How many words of a part, at least two, the word d of the document is; 0 where it is none.

    Two digits are not parted: `12` is another number than `1 2`.

    box  (word of the part, words from there on, or up to there where step is -1)
    """
    tokens, letters = part.token, part.letters
    at, most = part.first + box[0], box[1]
    begin, end = doc.begin + int64(doc.spans[d, 0]), doc.begin + int64(doc.spans[d, 1])
    text, n = doc.text, 0
    while n < most and begin < end and at < letters.shape[0]:
        border = begin if step > 0 else end
        if n > 0 and is_digit(int64(text[border - 1])) and is_digit(int64(text[border])):
            return 0
        length = int64(letters[at])
        if length == 0 or length > end - begin - int64(n == 0):
            return 0
        if hash_word(text, begin if step > 0 else end - length, length) != tokens[at]:
            return 0
        if step > 0:
            begin += length
            at += 1
        else:
            end -= length
            at -= 1
        n += 1
    return n if begin == end else 0


@lean_kernel
def follow_back(part: PartTokens, doc: Document, box: tuple[int, int, int, int]) -> tuple[int, int]:
    """How far the ends of two stretches are equal behind words that are run together.

    The word before the ends must be such a one: equal words alone are none of this.

    box     (first item token in the part, item tokens, first document token, document tokens)
    return  (item tokens, document tokens), 0 and 0 where nothing is
    """
    i, m, d, n = box
    found, words = 0, 0
    while found < m and words < n:
        here, there = i + m - found - 1, d + n - words - 1
        if words > 0 and part.token[part.first + here] == doc.hashes[there]:
            count = 1
        else:
            count = run_together(doc, there, part, (here, m - found), -1)
        if count == 0:
            break
        found += count
        words += 1
    return found, words
