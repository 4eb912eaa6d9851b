"""Wrap the prose of the documentation: `python -m tests.contracts.wrapped`.

Tables, code, headings and generated parts stay as they are. No code and no link is cut in two.
"""

from __future__ import annotations

import re
import sys
import textwrap
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
WIDTH = 120
#: Decisions and the changelog are records, and these two are generated.
NOT_WRAPPED = ("docs/adr/", "CHANGELOG.md", "docs/measured.md")

_GENERATED = re.compile(r"<!-- .+: (begin|end)")
_ITEM = re.compile(r"^( *)([-*]|\d+\.) +")
_APART = re.compile(r"^(#|\||<|!\[|\$\$| {4,}\S| *$)")
_WHOLE = re.compile(
    r"(`+)(?!`).*?(?<!`)\1(?!`)|!?\[[^\]]*\]\([^)]*\)| (?:[-+*#>]|\d+\.) ", re.DOTALL
)
_SPACE = "\0"


def pages():
    """The pages whose prose is wrapped."""
    names = ("*.md", "docs/**/*.md", "bench_fixtures/*.md", "indexes/*.md", "service/*.md")
    found = sorted({path for name in names for path in REPOSITORY.glob(name)})
    for path in found:
        if not path.relative_to(REPOSITORY).as_posix().startswith(NOT_WRAPPED):
            yield path


def wrapped(page: str) -> str:
    """The same page with its paragraphs and list items wrapped."""
    found: list[str] = []
    for block in blocks(page):
        if len(block) == 1 and not block[0][0]:
            found.append(block[0][1])
        else:
            found += wrapped_paragraph([line for _, line in block])
    return "\n".join(found) + "\n"


def long_lines(page: str) -> list[str]:
    """Lines of prose that are too long and could be shorter."""
    kept = set(wrapped(page).splitlines())
    return [line for line in page.splitlines() if len(line) > WIDTH and line not in kept]


def blocks(page: str):
    """Lines that stay (alone, False) and the lines of each paragraph (True) in order."""
    paragraph: list[tuple[bool, str]] = []
    fence = ""
    generated = in_item = False
    for line in page.rstrip("\n").split("\n"):
        mark = re.match(r" *(`{3,})", line)
        section = _GENERATED.match(line)
        item = _ITEM.match(line)
        generated = section[1] == "begin" if section else generated
        if fence or mark or section or generated:
            prose = False
            if mark and not fence:
                fence = mark[1]
            elif fence and line.strip() == fence:
                fence = ""
        else:
            # An indented line goes on with its list item; elsewhere it is code.
            prose = bool(item) or not _APART.match(line) or (bool(paragraph) and in_item)
            prose = prose and bool(line.strip())
        if paragraph and (item or not prose):
            yield paragraph
            paragraph = []
        if prose:
            in_item = bool(item) or (in_item and bool(paragraph))
            paragraph.append((True, line))
        else:
            yield [(False, line)]
    if paragraph:
        yield paragraph


def wrapped_paragraph(lines: list[str]) -> list[str]:
    """One paragraph or list item."""
    item = _ITEM.match(lines[0])
    first = item[0] if item else re.match(" *", lines[0])[0]
    text = " ".join([lines[0][len(first) :], *lines[1:]])
    text = re.sub(r"\s+", " ", text).strip()
    text = _WHOLE.sub(lambda found: kept_whole(found[0]), text)
    done = textwrap.wrap(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=" " * len(first),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace(_SPACE, " ") for line in done]


def kept_whole(text: str) -> str:
    """Code, a link, or what begins a list with the word before it, without a place to cut."""
    if text[0] == " ":
        return _SPACE + text[1:]
    return text.replace(" ", _SPACE)


if __name__ == "__main__":
    for path in pages():
        text = path.read_text(encoding="utf-8")
        if text != wrapped(text):
            path.write_text(wrapped(text), encoding="utf-8")
            sys.stdout.write(f"{path.relative_to(REPOSITORY)}\n")
