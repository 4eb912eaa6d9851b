"""Twin of the letters: which words of a text may be torn, and what they are by those of items.

Slow and plain: letters are strings, tables are dictionaries, a document is one piece of text.
"""

from __future__ import annotations

from typing import NamedTuple

Span = tuple[int, int]
#: A word: its hash (0 for what is left of one that was cut), first byte, byte behind the last.
Word = tuple[int, int, int]

BLANKS = b" \t\n\v\f\r"
BORDERS = BLANKS + b"!,.:;?"
#: Single letters that are words in some language.
ALONE = b"aeioyAEIOY"


def characters(data: bytes) -> int:
    return sum(c & 0xC0 != 0x80 for c in data)


def is_long(data: bytes, begin: int, end: int) -> bool:
    """Whether a word may be several that ran together."""
    word = data[begin:end]
    if characters(word) >= 25:
        return 8 * sum(c in b"0123456789" for c in word) <= len(word)
    if not 11 <= len(word) < 25:
        return False
    before = begin == 0 or data[begin - 1] in BORDERS
    behind = end == len(data) or data[end] in BORDERS
    return before and behind and all(0x80 > c >= 0x61 for c in (word[0] | 0x20, *word[1:]))


def is_lone(spans: list[Span], k: int) -> bool:
    """Whether a word is one byte, one byte from those before and behind it."""
    begin, end = spans[k]
    return (
        0 < k < len(spans) - 1
        and end - begin == 1
        and begin - spans[k - 1][1] == 1
        and spans[k + 1][0] - end == 1
    )


def is_bit(data: bytes, spans: list[Span], k: int) -> bool:
    """Whether a word is a letter between two blanks that is no word."""
    if not is_lone(spans, k):
        return False
    begin, end = spans[k]
    word = data[begin:end]
    blanks = data[begin - 1] in BLANKS and data[end] in BLANKS
    return blanks and word.isalpha() and word not in ALONE


def is_before_one(spans: list[Span], k: int) -> bool:
    return k + 1 < len(spans) and spans[k + 1][1] - spans[k + 1][0] == 1


def suspects(data: bytes, spans: list[Span]) -> list[int]:
    """Words that may begin torn ones: long ones, and what stands before lone letters."""
    found = set()
    for k, (begin, end) in enumerate(spans):
        block = k // 16 * 16
        lone = sum(
            is_lone(spans, at) for at in range(max(block - 16, 0), min(block + 16, len(spans)))
        )
        if lone >= 2 and is_bit(data, spans, k):
            found.add(k - 1)
        elif end - begin > 10 and is_long(data, begin, end):
            found.add(k)
    return sorted(found)


def byte_of(letter: str) -> int:
    code = ord(letter)
    return code if code < 0x80 else 0x80 | (code * 0x9E3779B1 >> 25) & 0x7F


def key(letters: str, base: int, spread: int, key_bits: int) -> int:
    """The bits that an index keeps of 16 letters."""
    data = bytes(byte_of(letter) for letter in letters)
    first, second = (int.from_bytes(data[at : at + 8], "little") for at in (0, 8))
    mixed = (first * base + second) * spread % 2**64
    return (mixed ^ mixed >> 32) >> (64 - key_bits)


def letters_from(spans: list[Span], letters: Letters, k: int) -> tuple[str, int]:
    """The letters of the words from word k on, and how many are its own."""
    by_word = [
        "".join(
            letter
            for letter, (at, _) in zip(letters.text, letters.spans, strict=True)
            if begin <= at < end
        )
        for begin, end in spans[k:]
    ]
    return "".join(by_word), len(by_word[0])


def keys(
    data: bytes, spans: list[Span], letters: Letters, base: int, spread: int, key_bits: int
) -> list[int]:
    """What an index keeps of a text of which no word has more than 256 bytes."""
    found = []
    for k in suspects(data, spans):
        text, own = letters_from(spans, letters, k)
        places = list(range(0, own + 8 if own >= 25 else 1, 8))
        if own < 25 and is_before_one(spans, k):
            places.append(own)
        found += [
            key(text[i : i + 16], base, spread, key_bits) for i in places if i + 16 <= len(text)
        ]
    return found


def holds_torn(
    data: bytes, spans: list[Span], letters: Letters, known: dict[str, list[int]], gram: int
) -> bool:
    """Whether an item's word begins where a suspect does, or within a very long one, and ends
    elsewhere; known  gram of letters -> letters of the words that begin with it.

    A long suspect counts only where some word of fewer than 11 letters begins with its 11. Of a
    very long one every second letter is looked at.
    """
    heads = {text[:11] for text, lengths in known.items() if min(lengths) < 11}
    for k in suspects(data, spans):
        text, own = letters_from(spans, letters, k)
        length = spans[k][1] - spans[k][0]
        before_bit = k + 1 < len(spans) and is_bit(data, spans, k + 1)
        if 10 < length < 25 and not before_bit and text[:11] not in heads:
            continue
        places = [at for at in range(0, own, 2) if text[at : at + 11] in heads]
        if own < 25:
            places = [0, own] if is_before_one(spans, k) else [0]
        for at in places:
            its = own - at if at < own else 1
            if any(length != its for length in known.get(text[at : at + gram], [])):
                return True
    return False


class Letters(NamedTuple):
    """Folded letters and digits of a text, and the bytes of each."""

    text: str
    spans: list[Span]


class Part(NamedTuple):
    """The words of one text of an item: hashes, and the letters of each (empty: not known)."""

    words: list[tuple[int, str]]


def entries(parts: list[Part], gram: int, alike: int) -> dict[str, list[Span]]:
    """Gram of letters -> (part, word) at which it begins, some of the first of those."""
    found: dict[str, list[Span]] = {}
    for p, part in enumerate(parts):
        for w in range(len(part.words)):
            own = "".join(letters for _, letters in part.words[w:])
            if part.words[w][1] and len(own) >= gram:
                places = found.setdefault(own[:gram], [])
                if len(places) < alike:
                    places.append((p, w))
    return found


def alike_from(letters: str, at: int, words: list[tuple[int, str]], w: int) -> tuple[int, Span]:
    """Letter and words (first, behind the last) around word w that the text has in a row."""
    end, here = w, at
    while end < len(words) and words[end][1] and letters.startswith(words[end][1], here):
        here += len(words[end][1])
        end += 1
    if end == w:
        return at, (w, w)
    first = w
    while first and (own := words[first - 1][1]) and letters[:at].endswith(own):
        at -= len(own)
        first -= 1
    return at, (first, end)


def mended(
    own: list[Word], letters: Letters, parts: list[Part], known: dict[str, list[Span]], gram: int
) -> list[Word]:
    """The document's words, those of items in place of its own where their letters are there.

    Texts of items follow each other: what is alike may go on in the next.
    """
    every = [word for part in parts for word in part.words]
    first_of = [sum(len(part.words) for part in parts[:p]) for p in range(len(parts))]
    put: list[Word] = []
    done = 0
    for i in range(len(letters.text) - gram + 1):
        if put and letters.spans[i + gram - 1][1] <= done:
            continue
        best = (i, (0, 0))
        for p, w in known.get(letters.text[i : i + gram], []):
            found = alike_from(letters.text, i, every, first_of[p] + w)
            if found[1][1] - found[1][0] > best[1][1] - best[1][0]:
                best = found
        at, (first, end) = best
        if first < end and is_within(letters.spans[at][0], own):
            at += len(every[first][1])
            first += 1
        stop = at + sum(len(its) for _, its in every[first:end])
        if first < end and is_within(letters.spans[stop - 1][1], own):
            end -= 1
        if end - first < 2:
            continue
        for hashed, its in every[first:end]:
            begin, stop = letters.spans[at][0], letters.spans[at + len(its) - 1][1]
            if begin >= done:
                put.append((hashed, begin, stop))
                done = stop
            at += len(its)
    if not put:
        return own
    return sorted([*put, *left_of(own, put)], key=lambda word: word[1:])


def is_within(byte: int, own: list[Word]) -> bool:
    """Whether a word that is not long would be cut there."""
    before = [(begin, end) for _, begin, end in own if begin < byte]
    return bool(before) and byte < before[-1][1] and before[-1][1] - before[-1][0] <= 10


def left_of(own: list[Word], put: list[Word]) -> list[Word]:
    """What is left of the document's own words beside those that were put in."""
    found = []
    for hashed, begin, end in own:
        at = begin
        cuts = [(b, e) for _, b, e in put if b < end and e > begin]
        for b, e in cuts:
            if at < b:
                found.append((0, at, b))
            at = max(at, e)
        if not cuts:
            found.append((hashed, begin, end))
        elif at < end:
            found.append((0, at, end))
    return found
