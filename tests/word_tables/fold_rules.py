"""Define how code points fold: the rules behind the character table."""

from __future__ import annotations

import unicodedata
from typing import Final

from contam.text.text_tables import FoldKind

Entry = tuple[FoldKind, int]
"""Kind and folded code point; the latter is 0 for separators and transparent characters."""

_FIRST_SURROGATE: Final = 0xD800
_LAST_SURROGATE: Final = 0xDFFF

_SUBSTITUTES: Final[dict[int, str]] = {
    0x0131: "i",  # its capital is the plain I, which folds to i
    0x0251: "a",
    0x0261: "g",
    0x0649: "\u064a",  # alef maksura, which many keyboards give for a final yeh
    0x06A9: "\u0643",  # Persian and Urdu kaf
    0x06CC: "\u064a",  # Persian and Urdu yeh
}

_SMALL_CAPITALS: Final = "ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘꞯʀꜱᴛᴜᴠᴡʏᴢ"
_SUBSTITUTES.update(zip(map(ord, _SMALL_CAPITALS), "abcdefghijklmnopqrstuvwyz", strict=True))

_WORD_START: Final = 0x0120
"""Ġ: what tokenizers write for the space before a word."""

_STRETCHERS: Final = frozenset([0x0640, 0x07FA])
"""Letters by category that only lengthen a line of Arabic or N'Ko."""

_APOSTROPHE_LETTERS: Final = frozenset([*range(0x02B9, 0x02C0), 0x02C8, 0x02CA, 0x02CB])
"""Letters by category, apostrophes and primes in use."""

_SINGLE_RANGES: Final[tuple[tuple[int, int], ...]] = (
    (0x0E00, 0x0E7F),  # Thai
    (0x0E80, 0x0EFF),  # Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x1950, 0x19DF),  # Tai Le, New Tai Lue
    (0x1A20, 0x1AAF),  # Tai Tham
    (0x3031, 0x3035),  # kana repeat marks
    (0x303B, 0x303C),  # ideographic repeat mark, masu mark
    (0x3040, 0x30FF),  # Hiragana, Katakana
    (0x3100, 0x312F),  # Bopomofo
    (0x31A0, 0x31BF),  # Bopomofo extended
    (0x31F0, 0x31FF),  # Katakana phonetic extensions
    (0x3400, 0x4DBF),  # Han extension A
    (0x4E00, 0x9FFF),  # Han
    (0xA000, 0xA48F),  # Yi
    (0xA9E0, 0xA9FF),  # Myanmar extended B
    (0xAA60, 0xAA7F),  # Myanmar extended A
    (0xAA80, 0xAADF),  # Tai Viet
    (0xF900, 0xFAFF),  # Han compatibility
    (0x1AFF0, 0x1B16F),  # kana supplements and extensions
    (0x20000, 0x3FFFF),  # Han extensions
)
"""Blocks of scripts written without spaces; only their letters count."""

_VOWEL_SIGNS: Final = (" VOWEL SIGN", " LENGTH MARK", " SUBJOINED ", " CONSONANT SIGN ")
"""In the names of marks that spell a word, as letters do; without them most words would be equal
to many others."""

_THAANA_VOWELS: Final = (0x07A6, 0x07AF)
"""The same of Thaana, whose names do not say so."""

_SINGLE_SIGNS: Final = frozenset([0x3005, 0x3006, 0x3007, *range(0x3021, 0x302A)])
"""Han repeat, closing and zero marks and the Hangzhou numerals, whatever their category."""

_IGNORABLE_RANGES: Final[tuple[tuple[int, int], ...]] = (
    (0x00AD, 0x00AD),
    (0x034F, 0x034F),
    (0x061C, 0x061C),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x200B, 0x200F),
    (0x202A, 0x202E),
    (0x2060, 0x206F),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFF8),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
)
"""Unicode's Default_Ignorable_Code_Point, which `unicodedata` does not carry."""


def _within(code: int, ranges: tuple[tuple[int, int], ...]) -> bool:
    return any(first <= code <= last for first, last in ranges)


def _spells(char: str) -> bool:
    """Whether a mark is a vowel sign or the like of a script written with spaces.

    Marks with a combining class are not: canonical equivalents differ in the order of those.
    """
    code = ord(char)
    if unicodedata.combining(char) or _within(code, _SINGLE_RANGES):
        return False
    name = unicodedata.name(char, "")
    return _within(code, (_THAANA_VOWELS,)) or any(sign in name for sign in _VOWEL_SIGNS)


def classify(char: str) -> Entry:
    """The entry of one already folded character."""
    code = ord(char)
    category = unicodedata.category(char)
    if category[0] == "M" and _spells(char):
        return FoldKind.LETTER, code
    dropped = category[0] == "M" or category == "Cf" or code in _STRETCHERS
    if dropped or _within(code, _IGNORABLE_RANGES):
        return FoldKind.TRANSPARENT, 0
    if code in _SINGLE_SIGNS or (category[0] == "L" and _within(code, _SINGLE_RANGES)):
        return FoldKind.SINGLE, code
    if category[0] == "L" and code not in _APOSTROPHE_LETTERS:
        return FoldKind.LETTER, code
    if category[0] == "N":
        return FoldKind.DIGIT, code
    return FoldKind.SEPARATOR, 0


def _bare(text: str) -> str:
    """A text decomposed, without what is transparent."""
    decomposed = unicodedata.normalize("NFKD", text)
    return "".join(one for one in decomposed if classify(one)[0] is not FoldKind.TRANSPARENT)


def fold_text(char: str) -> str:
    """One character decomposed, case-folded and substituted, digits in ASCII, until it stays so.

    Marks are dropped first: case folding would make the letter iota of U+0345.
    """
    folded = char
    for _ in range(3):
        before = folded
        folded = _bare(_bare(folded).casefold()).translate(_SUBSTITUTES)
        folded = "".join(str(unicodedata.decimal(one, one)) for one in folded)
        if folded == before:
            break
    return folded


def fold(code: int) -> tuple[Entry, ...]:
    """The entries of a code point: at least one, and TRANSPARENT only as the sole one.

    Dropped marks leave no trace, neighbouring separators are one, and a fold of nothing but
    separators is one separator. A fraction of one character begins with a separator: "1½" is
    not eleven halves. A surrogate is a separator, and so is Ġ.
    """
    if _FIRST_SURROGATE <= code <= _LAST_SURROGATE or code == _WORD_START:
        return ((FoldKind.SEPARATOR, 0),)
    entries: list[Entry] = []
    if unicodedata.decomposition(chr(code)).startswith("<fraction>"):
        entries.append((FoldKind.SEPARATOR, 0))
    for char in fold_text(chr(code)):
        entry = classify(char)
        if entry[0] is FoldKind.SEPARATOR and entries and entries[-1][0] is FoldKind.SEPARATOR:
            continue
        entries.append(entry)
    return tuple(entries) or ((FoldKind.TRANSPARENT, 0),)
