"""Write a text as people, programs and machines write it on: one function for each kind of edit."""

from __future__ import annotations

import json
import re
import unicodedata
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

    Edit = Callable[[str, Random], str]

#: Words of a line where a kind has lines.
_LINE: Final = 6


def groups(text: str, n: int = _LINE) -> list[str]:
    """The words of a text, so many at a time."""
    words = text.split()
    return [" ".join(words[i : i + n]) for i in range(0, len(words), n)]


def clock(seconds: float, point: str = ".") -> str:
    """Hours, minutes, seconds and thousandths."""
    whole = int(seconds)
    thousandths = round((seconds - whole) * 1000)
    return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}{point}{thousandths:03}"


def lines(form: str, n: int = _LINE, point: str = ".") -> Edit:
    """A kind whose lines are the form with {n}, {text}, {start}, {end}, {mm} and {word}."""

    def edit(text: str, random: Random) -> str:
        out = []
        for i, one in enumerate(groups(text, n)):
            start = 3 * i + random.random()
            out.append(
                form.format(
                    n=i + 1,
                    text=one,
                    word=one.split()[0],
                    start=clock(start, point),
                    end=clock(start + 2.5, point),
                    mm=clock(start)[3:11],
                    date=2000 + i % 20,
                )
            )
        return "\n".join(out)

    return edit


def every(n: int, form: str) -> Edit:
    """A kind that puts the form, with {n} and {word}, behind every n words."""

    def edit(text: str, random: Random) -> str:
        del random
        parts = groups(text, n)
        return " ".join(
            part + form.format(n=i + 1, word=part.split()[-1]) for i, part in enumerate(parts)
        )

    return edit


def each_word(form: str, between: str = " ") -> Edit:
    """A kind that writes every word in the form."""

    def edit(text: str, random: Random) -> str:
        del random
        return between.join(form.format(word=word, n=i) for i, word in enumerate(text.split(), 1))

    return edit


def spaces(pattern: str, by: str, share: float = 1.0) -> Edit:
    """A kind that replaces a share of what the pattern matches."""

    def edit(text: str, random: Random) -> str:
        return re.sub(pattern, lambda m: m.expand(by) if random.random() < share else m[0], text)

    return edit


def karaoke(text: str, random: Random) -> str:
    """Subtitles in which every word has its time, each line shown twice."""
    out = ["WEBVTT", ""]
    before = ""
    for i, one in enumerate(groups(text, 7)):
        start = 3 * i + random.random()
        head, *rest = one.split()
        timed = "".join(f"<{clock(start + k / 4)}><c> {word}</c>" for k, word in enumerate(rest, 1))
        times = f"{clock(start)} --> {clock(start + 2.5)} align:start position:0%"
        out += [times, before, head + timed, ""]
        before = one
    return "\n".join(out)


def split_words(share: float) -> Edit:
    """A space within so many of the words."""

    def edit(text: str, random: Random) -> str:
        out = []
        for word in text.split():
            at = random.randrange(1, len(word)) if len(word) > 2 else 0
            out.append(f"{word[:at]} {word[at:]}" if at and random.random() < share else word)
        return " ".join(out)

    return edit


def pieces(mark_first: str, mark_rest: str, mark_open: str, between: str = " ") -> Edit:
    """Words cut into pieces of a vocabulary, with marks at the pieces."""

    def edit(text: str, random: Random) -> str:
        out = []
        for word in text.split():
            cut = random.randrange(3, 6)
            parts = [word[i : i + cut] for i in range(0, len(word), cut)]
            for i, part in enumerate(parts):
                is_open = mark_open if i + 1 < len(parts) else ""
                out.append((mark_rest if i else mark_first) + part + is_open)
        return between.join(out)

    return edit


def scanned(share: float) -> Edit:
    """So many of the letters read as others."""
    alike = dict(zip("lieoahnmucrtsgbdfy", "1leaonhnncritqhcrv", strict=True))

    def edit(text: str, random: Random) -> str:
        return "".join(alike.get(c, c) if random.random() < share else c for c in text)

    return edit


def hyphenated(text: str, random: Random) -> str:
    """Lines of 30 characters, long words broken over them."""
    out, line = [], ""
    for word in text.split():
        if len(line) + len(word) < 30:
            line += word + " "
        elif len(word) > 5 and word.isalpha():
            at = random.randrange(2, len(word) - 2)
            out.append(line + word[:at] + "-")
            line = word[at:] + " "
        else:
            out.append(line.rstrip())
            line = word + " "
    return "\n".join([*out, line])


def stutter(text: str, random: Random) -> str:
    """Words said twice."""
    return " ".join(w + (f" {w}" if random.random() < 0.25 else "") for w in text.split())


def emphasis(sign: str) -> Edit:
    """One word in three between signs."""

    def edit(text: str, random: Random) -> str:
        words = text.split()
        return " ".join(f"{sign}{w}{sign}" if random.random() < 0.33 else w for w in words)

    return edit


def camel(text: str, random: Random) -> str:
    """Every sentence one word."""
    del random
    return ". ".join(
        "".join(word.capitalize() for word in re.findall(r"\w+", sentence))
        for sentence in re.split(r"(?<=[.?!])\s", text)
    )


def columns(text: str, random: Random) -> str:
    """A word a line with number, part of speech and head."""
    tags = ("NOUN", "VERB", "DET", "ADP")
    return "\n".join(
        f"{i}\t{word}\t{word.lower()}\t{random.choice(tags)}\t{random.randrange(1, 9)}\t_"
        for i, word in enumerate(text.split(), 1)
    )


def mathml(text: str, random: Random) -> str:
    """Every number as a formula."""
    del random
    head = '<math xmlns="http://www.w3.org/1998/Math/MathML" display="inline">'
    return re.sub(r"\d+", lambda m: f"{head}<mrow><mn>{m[0]}</mn></mrow></math>", text)


def pictures(text: str, random: Random) -> str:
    """Every fifth word only in the description of a picture."""
    del random
    return " ".join(
        f'<img src="/tex/{i:040x}.png" class="tex" alt="{w}" width="{i}">' if i % 5 == 4 else w
        for i, w in enumerate(text.replace('"', "&quot;").split())
    )


def small_capitals(text: str, random: Random) -> str:
    """Small letters as small capitals."""
    del random
    return text.translate(str.maketrans("abcdefghijklmnoprstuvwyz", "ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ"))


def nested_json(text: str, random: Random) -> str:
    """A record as a text within a record."""
    del random
    return json.dumps({"body": json.dumps({"messages": [{"role": "user", "content": text}]})})


def unicode_mathematics(text: str, random: Random) -> str:
    """LaTeX as it is shown: its signs for commands, no braces and dollars."""
    del random
    signs = dict(
        zip(
            [
                "le",
                "leq",
                "ge",
                "geq",
                "ne",
                "neq",
                "cdot",
                "pi",
                "theta",
                "beta",
                "infty",
                "int",
                "sum",
                "in",
                "circ",
                "angle",
                "sqrt",
                "to",
            ],
            "≤≤≥≥≠≠·πθβ∞∫∑∈°∠√→",
            strict=True,
        )
    )
    signs |= dict.fromkeys(("mathbb", "text", "left", "right", "mathrm", "overline"), "")
    for _ in range(3):
        text = re.sub(r"\\[dt]?frac\{([^{}]*)\}\{([^{}]*)\}", r"(\1)/(\2)", text)
    text = re.sub(r"\\([A-Za-z]+)", lambda m: signs.get(m[1], m[1]), text)
    return re.sub(r"[${}]|\\[()\[\],;! ]?", "", text)


def transliterated(text: str, random: Random) -> str:
    """Latin letters as Cyrillic ones of the same sound."""
    del random
    cyrillic = "абкдефгхижклмнопкрстуввксйз"[:26]
    return text.lower().translate(str.maketrans("abcdefghijklmnopqrstuvwxyz", cyrillic))


#: Characters of which the two ways to write Chinese have two.
_SIMPLE, _FULL = (
    "数学个学问题长为从这时来对会过样后见话钱东车马门间",
    "數學個學問題長為從這時來對會過樣後見話錢東車馬門間",
)


def traditional(text: str, random: Random) -> str:
    """The full characters for simplified ones."""
    del random
    return text.translate(str.maketrans(_SIMPLE, _FULL))


#: What is said of a kind below 90 %, where it may be.
WAYS_OUT: Final = {
    "columns of a treebank": "join the words of its second column before the scan",
    "traditional for simplified Chinese": "convert one of the two, for instance with OpenCC",
    "transliterated": "transliterate the items too and scan for both",
    "OCR, 10 % of letters": "scan the page again, or look with `--unit char`",
}
#: Kinds whose items are mathematics in LaTeX, or Chinese, not plain questions.
MATHEMATICS: Final = ("LaTeX as Unicode", "LaTeX in `\\(...\\)`", "LaTeX escaped in JSON")
CHINESE: Final = ("traditional for simplified Chinese",)

#: Every kind of edit; a document is a question with other text around it, edited as a whole.
EDITS: Final[dict[str, Edit]] = {
    "verbatim": lambda text, _: text,
    "SRT": lines("{n}\n{start} --> {end}\n{text}\n", point=","),
    "SRT on one line": lambda t, r: lines("{n} {start} --> {end} {text}", 5, ",")(t, r).replace(
        "\n", " "
    ),
    "WebVTT": lines("{start} --> {end} align:start position:0%\n{text}\n", 5),
    "WebVTT word by word": karaoke,
    "SBV": lines("{start},{end}\n{text}\n", 5),
    "LRC": lines("[{mm}]{text}", 5),
    "Whisper": lines("[{start} --> {end}]  {text}", 5),
    "Whisper's time tokens": lines("<|{n}.00|>{text}<|{n}.84|>", 5),
    "TTML": lines(
        '<p xml:id="c{n}" begin="{start}" end="{end}" region="bottom" style="s1">{text}</p>', 5
    ),
    "transcript with times": lines("[{start}] {text}", 5),
    "MathML": mathml,
    "words in `alt`": pictures,
    "small capitals": small_capitals,
    "U+200B for spaces": spaces(" ", "\u200b"),
    "U+200B in words": spaces(r"(\w)(?=\w)", "\\1\u200b", 0.1),
    "soft hyphens": spaces(r"(\w)(?=\w)", "\\1\u00ad", 0.2),
    "1 space in 5 lost": spaces(" ", "", 0.2),
    "all spaces lost": spaces(" ", ""),
    "1 word in 3 split": split_words(0.33),
    "spaced letters": spaces(r"(\w)(?=\w)", r"\1 "),
    "Ġ before words": each_word("Ġ{word}"),
    "▁ before words": each_word("▁{word}", ""),
    "BPE pieces with Ġ": pieces("Ġ", "", ""),
    "BPE pieces with ▁": pieces("▁", "", ""),
    "BPE pieces with ##": pieces("", "##", ""),
    "BPE pieces with @@": pieces("", "", "@@"),
    "camelCase": camel,
    "snake_case": each_word("{word}", "_"),
    "page footers": every(40, "\n\n- {n} -\nAnnals of Harbour Studies, vol. 7\n\n"),
    "footnote marks": every(4, "[{n}]"),
    "footnotes in the text": every(7, " (see note {n} below)"),
    "HTML comments": every(5, " <!-- {n} -->"),
    "C comments": lines("// {text}"),
    "Python comments": lines("# {text}"),
    "comment block": lines(" * {text}"),
    "quoted mail": lines("> > {text}"),
    "diff": lines("+{text}"),
    "diff with hunks": lines("@@ -{n},3 +{n},4 @@\n+{text}", 8),
    "line numbers": lines("{n:>4}  {text}"),
    "line numbers, 5 words": lines("{n}: {text}", 5),
    "log lines": lines("{date}-03-04T10:11:12Z INFO {text}", 7),
    "Markdown table": each_word("| {word}"),
    "Markdown table, a row a line": lines("| {n} | {text} |"),
    "LaTeX table": lines("{n} & {text} \\\\ \\hline"),
    "HTML table": lines('<tr class="r"><td>{n}</td><td>{text}</td></tr>'),
    "CSV cells": each_word('"{word}"', ","),
    "JSON list of words": each_word('"{word}"', ", "),
    "JSON in JSON": nested_json,
    "JSON a sentence": lines('{{"id": {n}, "s": "{text}"}}', 8),
    "percent-encoded": lambda text, _: quote(text),
    "entities": lambda text, _: "".join(f"&#{ord(c)};" for c in text),
    "Markdown links": every(5, " [{word}](https://example.org/{n})"),
    "words linked": spaces(r"\b(\w{6,})\b", r"[\1](https://example.org/w/\1)", 0.5),
    "wiki links": spaces(r"\b(\w{6,})\b", r"[[\1]]", 0.5),
    "stutter": stutter,
    "um": every(4, " um"),
    "(pause)": every(4, " (pause)"),
    "speaker labels": lines("Speaker {n}: {text}", 8),
    "hyphenated lines": hyphenated,
    "ruby": spaces(r"\b(\w{6,})\b", r"<ruby>\1<rt>x</rt></ruby>", 0.3),
    "emphasis in Markdown": emphasis("**"),
    "emphasis in HTML": lambda t, r: re.sub(r"\*(\S+?)\*", r"<em>\1</em>", emphasis("*")(t, r)),
    "capitals": lambda text, _: text.upper(),
    "full width": lambda text, _: "".join(
        chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text
    ),
    "bold letters of mathematics": lambda text, _: re.sub(
        "[a-z]", lambda m: chr(ord(m[0]) - 97 + 0x1D41A), text
    ),
    "accents apart": lambda text, _: unicodedata.normalize("NFD", text),
    "OCR, 1 % of letters": scanned(0.01),
    "OCR, 3 % of letters": scanned(0.03),
    "OCR, 10 % of letters": scanned(0.1),
    "LaTeX as Unicode": unicode_mathematics,
    "LaTeX in `\\(...\\)`": lambda text, _: re.sub(r"\$([^$]+)\$", r"\\(\1\\)", text),
    "LaTeX escaped in JSON": lambda text, _: json.dumps(text),
    "columns of a treebank": columns,
    "transliterated": transliterated,
    "traditional for simplified Chinese": traditional,
}
