"""Map Greek, Cyrillic and Armenian letters to the Latin ones they resemble."""

from __future__ import annotations

import unicodedata
from typing import Final

from tests.word_tables.fold_rules import fold_text

FIRST: Final = 0x370
"""First code point of the table: start of Greek."""
LAST: Final = 0x1FFF
"""Last code point of the table: end of the Greek letters with accents.

Their capitals must be told from the small letters, as those of the plain ones are."""
CONSISTENT_BIT: Final = 0x80
"""Set where capital and small letter pass for the same Latin letter."""

_LAST_PLAIN: Final = 0x58F
"""End of Armenian, the last block whose letters are listed."""

_CONSISTENT: Final[dict[str, str]] = {
    "GREEK SMALL LETTER ALPHA": "a",
    "GREEK SMALL LETTER BETA": "b",
    "GREEK SMALL LETTER EPSILON": "e",
    "GREEK SMALL LETTER ZETA": "z",
    "GREEK SMALL LETTER IOTA": "i",
    "GREEK SMALL LETTER KAPPA": "k",
    "GREEK SMALL LETTER OMICRON": "o",
    "GREEK SMALL LETTER RHO": "p",
    "GREEK SMALL LETTER TAU": "t",
    "GREEK SMALL LETTER CHI": "x",
    "GREEK LETTER YOT": "j",
    "CYRILLIC SMALL LETTER A": "a",
    "CYRILLIC SMALL LETTER VE": "b",
    "CYRILLIC SMALL LETTER IE": "e",
    "CYRILLIC SMALL LETTER KA": "k",
    "CYRILLIC SMALL LETTER EM": "m",
    "CYRILLIC SMALL LETTER EN": "h",
    "CYRILLIC SMALL LETTER O": "o",
    "CYRILLIC SMALL LETTER ER": "p",
    "CYRILLIC SMALL LETTER ES": "c",
    "CYRILLIC SMALL LETTER TE": "t",
    "CYRILLIC SMALL LETTER U": "y",
    "CYRILLIC SMALL LETTER STRAIGHT U": "y",
    "CYRILLIC SMALL LETTER HA": "x",
    "CYRILLIC SMALL LETTER BYELORUSSIAN-UKRAINIAN I": "i",
    "CYRILLIC SMALL LETTER JE": "j",
    "CYRILLIC SMALL LETTER DZE": "s",
    "CYRILLIC SMALL LETTER SHHA": "h",
    "CYRILLIC SMALL LETTER PALOCHKA": "l",
    "CYRILLIC SMALL LETTER KOMI DE": "d",
    "CYRILLIC SMALL LETTER KOMI SJE": "g",
    "CYRILLIC SMALL LETTER QA": "q",
    "CYRILLIC SMALL LETTER WE": "w",
    "CYRILLIC SMALL LETTER IZHITSA": "v",
}
"""A word of these letters alone is read as Latin: it looks the same in either case."""

_LOOSE: Final[dict[str, str]] = {
    "GREEK SMALL LETTER GAMMA": "y",
    "GREEK SMALL LETTER ETA": "n",
    "GREEK SMALL LETTER MU": "u",
    "GREEK SMALL LETTER NU": "v",
    "GREEK SMALL LETTER UPSILON": "u",
    "GREEK SMALL LETTER OMEGA": "w",
    "GREEK LUNATE SIGMA SYMBOL": "c",
    "CYRILLIC SMALL LETTER GHE": "r",
    "CYRILLIC SMALL LETTER GHE WITH STROKE": "f",
    "CYRILLIC SMALL LETTER I": "u",
    "CYRILLIC SMALL LETTER PE": "n",
    "CYRILLIC SMALL LETTER SHA": "w",
    "CYRILLIC SMALL LETTER SOFT SIGN": "b",
    "CYRILLIC SMALL LETTER OMEGA": "w",
    "ARMENIAN SMALL LETTER AYB": "w",
    "ARMENIAN SMALL LETTER GIM": "q",
    "ARMENIAN SMALL LETTER ZA": "q",
    "ARMENIAN SMALL LETTER LIWN": "l",
    "ARMENIAN SMALL LETTER HO": "h",
    "ARMENIAN SMALL LETTER YI": "j",
    "ARMENIAN SMALL LETTER VO": "n",
    "ARMENIAN SMALL LETTER SEH": "u",
    "ARMENIAN SMALL LETTER TIWN": "s",
    "ARMENIAN SMALL LETTER CO": "g",
    "ARMENIAN SMALL LETTER OH": "o",
}
"""Read as Latin only in a word that has Latin letters too. Both cases, unless listed below."""

_LOOSE_CAPITALS: Final[dict[str, str]] = {
    "GREEK CAPITAL LETTER ETA": "h",
    "GREEK CAPITAL LETTER MU": "m",
    "GREEK CAPITAL LETTER NU": "n",
    "GREEK CAPITAL LETTER UPSILON": "y",
}
"""Capitals that look like another Latin letter than their small form."""


def lookalikes() -> dict[int, int]:
    """Code point -> ASCII code of the Latin letter, plus `CONSISTENT_BIT` where it applies.

    Accented and variant forms follow the letter they decompose to, so that a text reads the same
    composed and decomposed.
    """
    found: dict[int, int] = {}
    for names, bit in ((_CONSISTENT, CONSISTENT_BIT), (_LOOSE, 0)):
        for name, latin in names.items():
            small = unicodedata.lookup(name)
            found[ord(small)] = found[ord(small.upper())] = ord(latin) | bit
    for name, latin in _LOOSE_CAPITALS.items():
        found[ord(unicodedata.lookup(name))] = ord(latin)
    for code in range(FIRST, LAST + 1):
        base = [
            char
            for char in unicodedata.normalize("NFKD", chr(code))
            if not unicodedata.category(char).startswith("M")
        ]
        if code not in found and len(base) == 1 and ord(base[0]) in found:
            found[code] = found[ord(base[0])]
        elif code > _LAST_PLAIN and len(folded := fold_text(chr(code))) == 1:
            # A letter of another block that folds to one of these, such as U+1C80.
            alike = found.get(ord(folded), 0)
            if alike:
                found[code] = alike
    return found
