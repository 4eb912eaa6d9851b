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
    "separator", "letter", "digit", "single", "transparent",
)  # fmt: skip

Token = tuple[int, int, int]  # hash, first byte, byte after the last


class Names(NamedTuple):
    """The word lists of the specification, all lower case."""

    latex_skip: Collection[str]
    latex_words: Collection[str]
    html_tags: Mapping[str, int]  # 2: transparent, 3: of a cue, else separator
    entities: Mapping[str, int]
    attributes: Mapping[str, int]  # 1: text, 2: none
    asides: Mapping[str, int]  # 1: a sound, 2: the level of a log, 3: a word of English


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
FIRST_PIECES = {0x120, 0x2581}
INSIDE = rb"[A-Za-z0-9\x80-\xff]"
ADDRESS = re.compile(rb"(?<=\])\((?=[#./][A-Za-z./]|[A-Za-z]{2,}[/:])")
FOOTNOTE = re.compile(rb"\[(?:[1-9]\d{0,2}|\^[A-Za-z0-9-]{1,20})\](?![A-Za-z0-9])")
FOOTNOTED = re.compile(rb"[A-Za-z\x80-\xff][^\t-\r ]*\Z")
PROSE = re.compile(rb"(?:" + INSIDE + rb"|[\t-\r !\"',.:;?\[\]^-])*")
SOUND = re.compile(rb"\(([A-Za-z]+)\)|\[([A-Za-z]+)\]")
FILLER = re.compile(rb"[Uu][hm](?=[!,.?]?(?:[\t-\r ]|\Z))")
SHORT_WORD = re.compile(rb"(?<![^\t-\r ])[A-Za-z]{1,8}(?![^\t-\r ])")
JOINT = re.compile(rb"(?<=[A-Za-z0-9\x80-\xff])(?: ##|@@ )(?=[A-Za-z0-9\x80-\xff])")
MARK = rb"(?:\xc4\xa0|\xe2\x96\x81)"
PIECE = rb"(?:(?!" + MARK + rb")[^\t-\r <])++"
PIECES = re.compile(
    MARK + rb"(?=" + INSIDE + rb")(" + PIECE + rb"(?: " + PIECE + rb")++)(?= " + MARK + rb"|\Z)"
)
DATE_TIME = re.compile(rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[0-9+,.:Z-]*")
SIGNS = re.compile(rb"[\t :|\[\]-]*")
LEVEL = re.compile(rb"[A-Za-z][A-Z][A-Za-z]*(?!" + INSIDE + rb")")
NEAR = 64
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


def log_prefix(data: bytes, at: int, names: Names) -> int | None:
    """Where the prefix of a log's line that begins at this byte ends; rule 9."""
    found = DATE_TIME.match(data, at)
    if not found or not re.search(rb"(?:\A|[\n\r])[ \t]*\[?\Z", data[:at]):
        return None
    low = max(0, at - 1024)
    before = data.rfind(b"\n", low, at)
    start = data.rfind(b"\n", low, before) + 1 if before >= 0 else 0
    above = before >= 0 and (start > 0 or low == 0) and has_stamp(data, start)
    after = data.find(b"\n", at, at + 1024)
    below = after >= 0 and has_stamp(data, after + 1)
    signs = SIGNS.match(data, found.end())
    if not signs[0] or not (above or below):
        return None
    level = LEVEL.match(data, signs.end())
    if level and names.asides.get(level[0].decode().lower()) == 2:
        return level.end()
    return signs.end() if re.compile(rb"[A-Za-z\x80-\xff]").match(data, signs.end()) else None


def has_stamp(data: bytes, line: int) -> bool:
    return bool(DATE_TIME.match(data, SIGNS.match(data, line).end()))


def bracket(data: bytes, at: int, names: Names) -> Step:
    """A footnote mark, a sound, the address of a link, or only a bracket; rule 8."""
    blank_before = at == 0 or data[at - 1 : at] in b"\t\n\v\f\r "
    sound = SOUND.match(data, at)
    if blank_before and sound:
        name = (sound[1] or sound[2]).decode().lower()
        if names.asides.get(name) == 1:
            return Step(None, sound.end())
    if not blank_before and ADDRESS.match(data, at):
        return Step(None, address(data, at) or at + 1)
    found = None if blank_before else FOOTNOTE.match(data, at)
    if found and FOOTNOTED.search(data[max(0, at - NEAR) : at]):
        around = data[max(0, at - 24) : at], data[found.end() : found.end() + 24]
        if all(PROSE.fullmatch(one) for one in around):
            return Step(None, found.end())
    return Step(None, at + 1)


def address(data: bytes, at: int) -> int | None:
    depth = 0
    window = data[: at + 1024]
    for q in range(at + 1, len(window)):
        char = window[q : q + 1]
        if char in b"\t\n\v\f\r ":
            return q if window[q : q + 2] in {b' "', b" '"} else None
        depth += (char == b"(") - (char == b")")
        if depth < 0:
            return q + 1
    return None


def filler(data: bytes, at: int, names: Names) -> int | None:
    """Where an `um` that begins at this byte ends, among words of English; rule 8."""
    found = FILLER.match(data, at)
    if not found or (at > 0 and data[at - 1 : at] not in b"\t\n\v\f\r "):
        return None
    for word in SHORT_WORD.finditer(data):
        near = max(0, at - NEAR) <= word.start() < at + NEAR
        if near and names.asides.get(word[0].decode().lower()) == 3:
            return found.end()
    return None


def joint(data: bytes, at: int) -> int | None:
    """Where the word goes on whose pieces are joined here by a mark that is repeated; rule 10."""
    near = range(max(0, at - NEAR), at + NEAR)
    found = [one for one in JOINT.finditer(data) if one.start() in near]
    here = next((one for one in found if one.start() == at), None)
    again = [one for one in found if here and one[0] == here[0] and one is not here]
    return here.end() if again else None


def pieces_end(data: bytes, at: int) -> int:
    """Where the pieces of the word end whose mark is at this byte."""
    found = PIECES.match(data, at)
    near = range(max(0, at - NEAR), at + NEAR)
    marks = [one for one in re.finditer(MARK, data) if one.start() in near]
    return found.end() if found and len(found[1]) <= 32 and len(marks) > 2 else at


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
    """What rules 1 to 4 and 7 to 9 read at this byte, if any does."""
    byte = data[at : at + 1]
    readers = {b"\\": backslash, b"<": less_than, b"&": ampersand, b"(": bracket, b"[": bracket}
    if byte in readers:
        return readers[byte](data, at, names)
    if byte == b"%":
        return percent(data, at)
    end = byte.isdigit() and (time_line(data, at) or log_prefix(data, at, names))
    return Step(None, end) if end else None


def character(data: bytes, at: int, found: list[Piece], names: Names) -> Step:
    """What rules 5, 6, 8 and 10 read at this byte."""
    step = Step(*char_at(data, at))
    in_word = found and found[-1].kind == LETTER
    if in_word and step.code in {0x2D, 0x2010, 0xAD}:
        next_line = joins_lines(data, step.end)
        if next_line is not None:
            if step.code == 0xAD:
                extend(found, at, step.end)
            return Step(None, next_line, transparent=True)
    is_open = found and found[-1].kind in {LETTER, DIGIT}
    if not is_open and (end := filler(data, at, names)):
        return Step(None, end)
    if is_open and (end := joint(data, at)):
        return Step(None, end, transparent=True)
    if step.code == THIN_SPACE and is_run_together(data, at):
        return Step(None, step.end)
    return step


def pieces(data: bytes, names: Names, at: int = 0, *, in_value: bool = False) -> list[Piece]:
    """Every entry of the text from a byte on in order, without the transparent ones."""
    found: list[Piece] = []
    joined = 0
    while at < len(data):
        step = markup(data, at, names) or character(data, at, found, names)
        if step.code in FIRST_PIECES and data[at] >= 0x80:
            joined = pieces_end(data, at)
        if at < joined and data[at : at + 1] == b" ":
            step = Step(None, at + 1, transparent=True)
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
