"""Twin of the tokenisers for the `word` and `char` units: what docs/normaliser.md says, in full.

Slow and plain on purpose. Folds with the running Python's Unicode data, so feed it only code points
that the frozen tables know (`TextTables.assigned`) when the two are compared.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

SEPARATOR, LETTER, DIGIT, SINGLE, TRANSPARENT = (
    "separator",
    "letter",
    "digit",
    "single",
    "transparent",
)

Token = tuple[int, int, int]  # hash, first byte, byte after the last


class Names(NamedTuple):
    """The word lists of the specification, all lower case."""

    latex_skip: Collection[str]
    latex_words: Collection[str]
    html_tags: Mapping[str, int]  # 2: transparent, 3: of a cue, else separator
    entities: Mapping[str, int]
    attributes: Mapping[str, int]  # 1: text, 2: none


class Piece(NamedTuple):
    """One entry of one character: `folded` is what it became, `source` what it was."""

    kind: str
    folded: int
    source: int
    start: int
    end: int


class Step(NamedTuple):
    """What stands at a place: a code point, or None for markup that only separates or vanishes."""

    code: int | None
    end: int
    transparent: bool = False
    texts: tuple[tuple[int, int], ...] = ()  # stretches of a tag that are text


# ------------------------------------------------------------------------------- folding


UNSPACED_SCRIPTS = (
    "CJK UNIFIED IDEOGRAPH", "CJK COMPATIBILITY IDEOGRAPH", "HIRAGANA", "KATAKANA", "HENTAIGANA",
    "VERTICAL KANA", "VERTICAL IDEOGRAPHIC", "MASU MARK", "BOPOMOFO", "YI SYLLABLE", "THAI", "LAO",
    "KHMER", "MYANMAR", "TAI LE", "NEW TAI LUE", "TAI THAM", "TAI VIET",
)  # fmt: skip
HAN_SIGNS = {0x3005, 0x3006, 0x3007, *range(0x3021, 0x302A)}
# Default ignorable without being a mark or a format character: Hangul fillers and reserved ones.
FILLERS = {0x115F, 0x1160, 0x3164, 0xFFA0, 0x2065, *range(0xFFF0, 0xFFF9), *range(0xE0000, 0xE1000)}
APOSTROPHES = {*range(0x02B9, 0x02C0), 0x02C8, 0x02CA, 0x02CB}
SUBSTITUTES = {"ı": "i", "ɑ": "a", "ɡ": "g", "ى": "ي", "ی": "ي", "ک": "ك"}
SUBSTITUTES |= dict(zip("ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘꞯʀꜱᴛᴜᴠᴡʏᴢ", "abcdefghijklmnopqrstuvwyz", strict=True))
STRETCHERS = {"\u0640", "\u07fa"}


def plain_char(char: str) -> str:
    """The letter or ASCII digit that a folded character stands for."""
    if unicodedata.category(char) == "Nd":
        return str(unicodedata.digit(char))
    return SUBSTITUTES.get(char, char)


def is_vowel_sign(char: str) -> bool:
    """A mark that spells a word as letters do, in a script with spaces."""
    if not unicodedata.category(char).startswith("M") or unicodedata.combining(char):
        return False
    name = unicodedata.name(char, "")
    if name.startswith(("THAI ", "LAO ", "KHMER ", "MYANMAR ", "TAI ", "NEW TAI LUE ")):
        return False
    thaana = name.startswith("THAANA") and not name.endswith("SUKUN")
    return thaana or bool(re.search(r" (VOWEL SIGN|LENGTH MARK|SUBJOINED |CONSONANT SIGN )", name))


def kind_of(char: str) -> str:
    category = unicodedata.category(char)
    if is_vowel_sign(char):
        return LETTER
    ignored = category == "Cf" or ord(char) in FILLERS or char in STRETCHERS
    if category.startswith("M") or ignored:
        return TRANSPARENT
    if ord(char) in HAN_SIGNS:
        return SINGLE
    if category.startswith("L") and unicodedata.name(char, "").startswith(UNSPACED_SCRIPTS):
        return SINGLE
    if category.startswith("L") and ord(char) not in APOSTROPHES:
        return LETTER
    return DIGIT if category in {"Nd", "Nl", "No"} else SEPARATOR


@cache
def fold(code: int) -> tuple[tuple[str, int], ...]:
    """The (kind, folded code point) entries of a code point, without transparent ones."""
    if 0xD800 <= code <= 0xDFFF or chr(code) == "Ġ":
        return ((SEPARATOR, 0),)
    text = without_marks(chr(code))
    for _ in range(3):
        text = "".join(map(plain_char, without_marks(text.casefold())))
    begin = ((SEPARATOR, 0),) if "FRACTION" in fraction_name(chr(code)) else ()
    return (*begin, *((kind_of(char), ord(char)) for char in text))


def without_marks(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text)
    return "".join(char for char in decomposed if kind_of(char) != TRANSPARENT)


def fraction_name(char: str) -> str:
    """The name of a character that is a number with a fraction slash, or nothing."""
    is_number = unicodedata.category(char) == "No"
    has_slash = "\u2044" in unicodedata.normalize("NFKD", char)
    return unicodedata.name(char, "") if is_number and has_slash else ""


# ------------------------------------------------------------------------------ scanning


LINE_BREAK = re.compile(rb"[ \t]*(?:\r\n|\n|\r)[ \t]*")
BLANK = rb"[\t-\r ]"
TAG_NAME = re.compile(rb"</?(?:[A-Za-z0-9-]+:)?([A-Za-z0-9-]+)")
CUE_TAG = re.compile(rb"</?(?:[A-Za-z0-9-]+:)?[A-Za-z0-9-]+(?=[\t-\r .>])[^<>\n]{0,40}>")
STAMP = re.compile(rb"<\|\d{1,5}\.\d{1,3}\|>")
TAG_END = re.compile(rb"/?>")
ATTRIBUTE = re.compile(
    rb"([\x00-;?-\x7f]{0,40}?)(?:[\t-\r ]*=[\t-\r ]*"
    rb"(?:\"([^\"]*)\"(?=[\t-\r >/])|'([^']*)'(?=[\t-\r >/])|(?![\"'])([\x00-\x08\x0e-\x1f!-;=?-\x7f]*))"
    rb"|(?=[\t-\r >]))"
)
MOST_WORDS = 3
LONGEST_WORD = 40
TIME = rb"\d{1,3}(?::\d\d){1,2}+(?:[.,]\d{1,3})?+(?![\d:A-Za-z])"
PRECISE = rb"\d{1,3}(?::\d\d){1,2}[.,]\d{1,3}(?![\d:A-Za-z])"
SETTING = rb"[ \t]+(?=[^\t-\r ]{3,24}(?:[\t-\r ]|\Z))(?:[XYxy]\d|[alprsv][A-Za-z0-9]{3,7}):[\x00-\x08\x0e-\x1f!-\x7f]+"
ARROW_LINE = re.compile(
    TIME + rb"[ \t]*--(?:>|&gt;)[ \t]*" + TIME + rb"(?:" + SETTING + rb"(?=[\t-\r ]|\Z))*"
)
COMMA_LINE = re.compile(PRECISE + rb"," + PRECISE)
BRACKET = re.compile(TIME + rb"(?=\])")
MINUTES = re.compile(rb"\d{1,3}:\d\d(?=\])")
NUMBER = re.compile(rb"(\d{1,6})([ \t]*(?:(?:\r\n|\n|\r)[ \t]*)?)(?<=[\t\n\r ])")
THIN_SPACE = 0x200B
AMPERSANDS = re.compile(rb"&(?:amp;)*", re.IGNORECASE)
DECIMAL = re.compile(rb"#([0-9]{1,7});")
HEXADECIMAL = re.compile(rb"#[xX]([0-9A-Fa-f]{1,6});")
NAMED = re.compile(rb"([A-Za-z][A-Za-z0-9]{1,7});")
FOUR_HEX = re.compile(rb"\\+u([0-9A-Fa-f]{4})")
LOW_HALF = re.compile(rb"\\+u([Dd][C-Fc-f][0-9A-Fa-f]{2})")
EIGHT_HEX = re.compile(rb"\\+U([0-9A-Fa-f]{8})")
TWO_HEX = re.compile(rb"\\+x([0-9A-Fa-f]{2})")
BACKSLASHES = re.compile(rb"\\+")
LETTERS = re.compile(rb"[A-Za-z]*")
PERCENTS = re.compile(rb"(?:%[0-9A-Fa-f]{2})+")


def has_mark(data: bytes, at: int, marks: Collection[int]) -> bool:
    """Whether one of the marks is among what is transparent from this byte on.

    Composed with it, the ASCII character before is another character.
    """
    while at < len(data):
        code, at = char_at(data, at)
        if code in marks:
            return True
        if fold(code):
            return False
    return False


def ascii_to_the_end(found: re.Match[bytes]) -> bool:
    """Whether the last character of a match is an ASCII one, even when it is composed."""
    accented = has_mark(found.string, found.end(), range(0x300, 0x370))
    return not (accented and found[0][-1:].isalpha())


def is_scalar(code: int) -> bool:
    return 0 <= code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF


def numeric_escape(data: bytes, at: int) -> Step | None:
    found = FOUR_HEX.match(data, at) or EIGHT_HEX.match(data, at) or TWO_HEX.match(data, at)
    if not found or not ascii_to_the_end(found):
        return None
    code = int(found[1], 16)
    high_half = found.re is FOUR_HEX and 0xD800 <= code <= 0xDBFF
    low = LOW_HALF.match(data, found.end())
    if high_half and low and ascii_to_the_end(low):
        return Step(0x10000 + ((code - 0xD800) << 10) + (int(low[1], 16) - 0xDC00), low.end())
    return Step(code if is_scalar(code) else None, found.end())


def backslash(data: bytes, at: int, names: Names) -> Step:
    if escape := numeric_escape(data, at):
        return escape
    after = BACKSLASHES.match(data, at).end()
    letters = LETTERS.match(data, after)
    word = letters[0].decode().lower()
    if not ascii_to_the_end(letters):
        word = word[:-1]
    if word in names.latex_skip:
        return Step(None, after + len(word))
    if word[:1] in {"n", "t", "r"} and word not in names.latex_words:
        return Step(None, after + 1)
    return Step(None, after)


def holds_text(value: bytes) -> bool:
    """Whether a value is several words, not ASCII, or holds a long word."""
    words = re.split(BLANK, value)
    return (
        not value.isascii()
        or len([word for word in words if word]) > MOST_WORDS
        or any(len(word) > LONGEST_WORD for word in words)
    )


def attributes(window: bytes, at: int, names: Names) -> tuple[int, list[tuple[int, int]]] | None:
    """Where a tag ends whose name ended at this byte, and which of its values are text."""
    pairs, in_a_row, texts = 0, 0, []
    spaced = re.compile(BLANK).match(window, at)
    while True:
        at = re.compile(BLANK + rb"*").match(window, at).end()
        if end := TAG_END.match(window, at):
            return (end.end(), texts) if pairs or not in_a_row else None
        found = ATTRIBUTE.match(window, at)
        if not spaced or not found:
            return None
        at = found.end()
        group = next((k for k in (2, 3, 4) if found[k] is not None), None)
        in_a_row = in_a_row + 1 if group is None else 0
        if in_a_row > MOST_WORDS:
            return None
        if group is None:
            continue
        pairs += 1
        says = names.attributes.get(found[1].decode().lower(), 0)
        if (says == 1 and found[group]) or (says != 2 and holds_text(found[group])):
            texts.append(found.span(group))


def less_than(data: bytes, at: int, names: Names) -> Step:
    step = tag(data, at, names)
    return Step(None, at + 1) if has_mark(data, step.end, {0x338}) else step


def tag(data: bytes, at: int, names: Names) -> Step:
    window = data[: at + 1024]
    stamp = re.compile(rb"<" + TIME + rb">")
    if found := STAMP.match(window, at) or stamp.match(window, at):
        return Step(None, found.end())
    name = TAG_NAME.match(window, at)
    kind = names.html_tags.get(name[1].decode().lower(), 0) if name else 0
    if kind == 3:
        if cue := CUE_TAG.match(window, at):
            return Step(None, cue.end())
    elif kind and (found := attributes(window, name.end(), names)):
        end, texts = found
        return Step(None, end, transparent=kind == 2 and not texts, texts=tuple(texts))
    return Step(None, at + 1)


def time_line(data: bytes, at: int) -> int | None:
    """Where a time line that begins at this byte ends; rule 7."""
    before = data[:at]
    if end := arrow_line(data, at):
        return end
    if at == 0 or before[-1:] in b"\t\n\v\f\r >\"'[":
        if found := COMMA_LINE.match(data, at):
            return found.end()
        bracket = BRACKET.match(data, at) if before[-1:] == b"[" else None
        line_starts = re.search(rb"(?:\A|[\n\r])[ \t]*\[\Z", before)
        if bracket and (line_starts or not MINUTES.match(data, at)):
            return bracket.end()
    number = NUMBER.match(data, at)
    if number and (at == 0 or before[-1:] in b"\t\n\v\f\r "):
        alone = re.search(rb"(?:\A|[\n\r])[ \t]*\Z", before)
        if alone or not re.search(rb"[\n\r]", number[2]):
            return arrow_line(data, number.end())
    return None


def arrow_line(data: bytes, at: int) -> int | None:
    if at > 0 and data[at - 1 : at] not in b"\t\n\v\f\r >\"'[":
        return None
    found = ARROW_LINE.match(data, at)
    return found.end() if found else None


def is_run_together(data: bytes, at: int) -> bool:
    """Whether the word around this thin space would be longer than 20 characters."""
    inside = rb"[A-Za-z0-9\x80-\xff]*"
    left = re.search(inside + rb"\Z", data[max(0, at - 64) : at])[0]
    right = re.match(inside, data[at : at + 64])[0]
    run = left + right
    starts = sum(byte & 0xC0 != 0x80 for byte in run)
    return starts - run.count("\u200b".encode()) > 20


def ampersand(data: bytes, at: int, names: Names) -> Step:
    after = AMPERSANDS.match(data, at).end()
    for form, base in ((DECIMAL, 10), (HEXADECIMAL, 16)):
        if number := form.match(data, after):
            code = int(number[1], base)
            return Step(code if code and is_scalar(code) else None, number.end())
    name = NAMED.match(data, after)
    if name and name[1].decode().lower() in names.entities:
        return Step(names.entities[name[1].decode().lower()], name.end())
    return Step(None, after)


def percent(data: bytes, at: int) -> Step:
    if run := PERCENTS.match(data, at):
        encoded = bytes.fromhex(run[0].replace(b"%", b"").decode())
        if not ascii_to_the_end(run):
            encoded = encoded[:-1]
        for length in range(1, min(len(encoded), 4) + 1):
            try:
                char = encoded[:length].decode("utf-8")
            except UnicodeDecodeError:
                continue
            return Step(ord(char), at + 3 * length)
    return Step(None, at + 1)


def char_at(data: bytes, at: int) -> tuple[int, int]:
    """The code point that starts at this byte, and the byte after it."""
    end = at + 1
    while end < len(data) and data[end] & 0xC0 == 0x80:
        end += 1
    return ord(data[at:end].decode("utf-8")), end


def joins_lines(data: bytes, after_hyphen: int) -> int | None:
    """Where the next line's first letter starts, if nothing but a line break comes before it."""
    found = LINE_BREAK.match(data, after_hyphen)
    if not found or found.end() == len(data):
        return None
    code, _ = char_at(data, found.end())
    starts_with_letter = bool(fold(code)) and fold(code)[0][0] == LETTER
    return found.end() if starts_with_letter else None


def extend(found: list[Piece], at: int, end: int) -> None:
    """A character that adds nothing belongs to the character it stands right behind."""
    for k in reversed(range(len(found))):
        if found[k].end != at:
            return
        found[k] = found[k]._replace(end=end)
        if found[k].kind != SEPARATOR:
            return


def markup(data: bytes, at: int, names: Names) -> Step | None:
    """What rules 1 to 4 and 7 read at this byte, if any does."""
    match data[at : at + 1]:
        case b"\\":
            return backslash(data, at, names)
        case b"<":
            return less_than(data, at, names)
        case b"&":
            return ampersand(data, at, names)
        case b"%":
            return percent(data, at)
        case byte if byte.isdigit() and (end := time_line(data, at)):
            return Step(None, end)
    return None


def character(data: bytes, at: int, found: list[Piece]) -> Step:
    """What rules 5 and 6 read at this byte."""
    step = Step(*char_at(data, at))
    in_word = found and found[-1].kind == LETTER
    if in_word and step.code in {0x2D, 0x2010, 0xAD}:
        next_line = joins_lines(data, step.end)
        if next_line is not None:
            if step.code == 0xAD:
                extend(found, at, step.end)
            return Step(None, next_line, transparent=True)
    if step.code == THIN_SPACE and is_run_together(data, at):
        return Step(None, step.end)
    return step


def pieces(data: bytes, names: Names, at: int = 0, *, in_value: bool = False) -> list[Piece]:
    """Every entry of the text from a byte on in order, without the transparent ones."""
    found: list[Piece] = []
    while at < len(data):
        step = markup(data, at, names) or character(data, at, found)
        if in_value and step.texts:
            step = Step(None, at + 1)
        if step.code is not None:
            if not fold(step.code):
                extend(found, at, step.end)
            found += [Piece(*entry, step.code, at, step.end) for entry in fold(step.code)]
        elif not step.transparent:
            found.append(Piece(SEPARATOR, 0, 0, at, step.end))
        for first, last in step.texts:
            found += pieces(data[:last], names, first, in_value=True)
            found.append(Piece(SEPARATOR, 0, 0, last, last))
        at = step.end
    return found


# ------------------------------------------------------------------------------- tokens


def token_hash(folded: str) -> int:
    data = folded.encode("utf-8")
    data += bytes(-len(data) % 8)
    h = 0x9E3779B97F4A7C15
    for at in range(0, len(data), 8):
        h ^= int.from_bytes(data[at : at + 8], "little")
        h = h * 0xD6E8FEB86659FD93 % 2**64
        h ^= h >> 32
    h = h * 0xFF51AFD7ED558CCD % 2**64
    h ^= h >> 29
    return h or 1


def words(found: list[Piece]) -> Iterator[list[Piece]]:
    """The pieces of each token."""
    word: list[Piece] = []
    for piece in found:
        if piece.kind in {LETTER, DIGIT}:
            word.append(piece)
            continue
        if word:
            yield word
            word = []
        if piece.kind == SINGLE:
            yield [piece]
    if word:
        yield word


def latin_reading(word: list[Piece], lookalike: Mapping[int, int]) -> str:
    """The token's folded text, with look-alike letters read as Latin where the rule says so."""
    plain = "".join(chr(piece.folded) for piece in word)
    foreign = [p for p in word if p.kind == LETTER and not "a" <= chr(p.folded) <= "z"]
    latin = [p for p in word if p.kind == LETTER and "a" <= chr(p.folded) <= "z"]

    def looks(piece: Piece) -> int:
        key = piece.source if 0x370 <= piece.source < 0x2000 else piece.folded
        return lookalike.get(key, 0)

    if not foreign or not all(looks(piece) for piece in foreign):
        return plain
    if not latin and not all(looks(piece) & 0x80 for piece in foreign):
        return plain
    return "".join(chr(looks(p) & 0x7F) if p in foreign else chr(p.folded) for p in word)


def word_tokens(data: bytes, names: Names, lookalike: Mapping[int, int]) -> list[Token]:
    """Tokens of the `word` unit: hash, first byte, byte after the last.

    lookalike: code point -> ASCII letter, plus 0x80 where both cases look like the same one.
    """
    return [
        (token_hash(latin_reading(word, lookalike)), word[0].start, word[-1].end)
        for word in words(pieces(data, names))
    ]


def char_tokens(data: bytes, names: Names) -> list[Token]:
    """Tokens of the `char` unit: one for each letter or digit, after folding."""
    return [
        (token_hash(chr(piece.folded)), piece.start, piece.end)
        for piece in pieces(data, names)
        if piece.kind in {LETTER, DIGIT, SINGLE}
    ]
