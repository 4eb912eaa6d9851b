"""What can happen to an item on its way into a document: one function per transformation.

Each takes an item and a `Draw` and returns the pieces that stand in the document: one, or
two when the item is split. `OUTCOMES` says what a scan is expected to make of each.
"""

from __future__ import annotations

import html
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from draw import Draw

_SPARE_WORDS = ("copper", "seldom", "almost", "distant", "painted", "narrow", "their", "hollow")
_LOOK_ALIKES = str.maketrans("aceopx", "асеорх")
_FULL_WIDTH = str.maketrans({chr(c): chr(c + 0xFEE0) for c in range(0x21, 0x7F)})
_NUMBER = re.compile(r"\d+(?:,\d{3})*")
_BLANKS = re.compile(r"(\s+)")
_EDIT_EVERY = 10
_LINE = 38


@dataclass(frozen=True)
class Item:
    """One test item as its benchmark file holds it; `line` is that file's own JSON line."""

    benchmark: str
    item_id: str
    passage: str
    question: str
    choices: tuple[str, ...]
    answer: str
    name: str
    line: str

    @property
    def asked(self) -> str:
        """The passage, if there is one, and the question."""
        return f"{self.passage}\n\n{self.question}" if self.passage else self.question


def read_items(path: Path) -> list[Item]:
    """Read one of our three benchmark files."""
    items = []
    for line in path.read_text(encoding="utf-8").splitlines():
        row: dict[str, Any] = json.loads(line)
        choices = tuple(row.get("choices", ()))
        answer = row["canonical_solution"] if "prompt" in row else row["answer"]
        items.append(
            Item(
                benchmark=path.stem,
                item_id=row.get("id") or row["task_id"],
                passage=row.get("passage", ""),
                question=row.get("question") or row["prompt"],
                choices=choices,
                answer=choices[answer] if choices else answer,
                name=row.get("entry_point", ""),
                line=line,
            )
        )
    return items


def verbatim(item: Item, _: Draw) -> list[str]:
    """The passage, if any, and the question, untouched."""
    return [item.asked]


def upper_case(item: Item, _: Draw) -> list[str]:
    """All in capitals."""
    return [item.asked.upper()]


def question_answer(item: Item, draw: Draw) -> list[str]:
    """The question and, below it, the reference answer."""
    glue = "" if item.name else draw.pick(("\n\nAnswer: ", "\n\nSolution.\n", "\nA: "))
    return [f"{item.asked}{glue}{item.answer}"]


def quiz_layout(item: Item, draw: Draw) -> list[str]:
    """As a quiz sheet prints it: lettered choices and the key."""
    lines = [f"{draw.between(1, 60)}. {item.asked}"]
    lines += [f"   {letter}) {choice}" for letter, choice in zip("ABCD", item.choices, strict=True)]
    key = "ABCD"[item.choices.index(item.answer)]
    return ["\n".join([*lines, f"Answer: {key}) {item.answer}"])]


def jsonl_dump(item: Item, draw: Draw) -> list[str]:
    """The benchmark's own line, as a mirror of its repository would hold it."""
    return [json.dumps(json.loads(item.line), ensure_ascii=draw.below(2) == 0)]


def edited(item: Item, draw: Draw) -> list[str]:
    """About one word in ten replaced, dropped or joined by another one."""
    out: list[str] = []
    n_since = 3
    for piece in _BLANKS.split(item.asked):
        n_since += not piece.isspace()
        if n_since < _EDIT_EVERY or not piece.isalpha():
            out.append(piece)
            continue
        n_since = 0
        how = draw.pick(("replace", "insert", "drop"))
        if how == "replace":
            out.append(draw.pick(_SPARE_WORDS))
        elif how == "insert":
            out.append(f"{piece} {draw.pick(_SPARE_WORDS)}")
    return ["".join(out)]


def numbers_changed(item: Item, draw: Draw) -> list[str]:
    """The same words with other numbers."""

    def another(number: re.Match[str]) -> str:
        return f"{int(number[0].replace(',', '')) + draw.between(1, 9):,}"

    return [_NUMBER.sub(another, item.asked)]


def renamed(item: Item, draw: Draw) -> list[str]:
    """Code whose function goes by another name."""
    name = f"{draw.pick(_SPARE_WORDS)}_{draw.pick(_SPARE_WORDS)}"
    return [(item.question + item.answer).replace(item.name, name)]


def truncated(item: Item, _: Draw) -> list[str]:
    """The first 60 % of the words."""
    words = item.asked.split(" ")
    return [" ".join(words[: -(-len(words) * 3 // 5)])]


def split(item: Item, _: Draw) -> list[str]:
    """Two halves that stand apart."""
    words = item.asked.split(" ")
    half = len(words) // 2
    return [" ".join(words[:half]), " ".join(words[half:])]


def markup(item: Item, draw: Draw) -> list[str]:
    """HTML: entities, emphasis, line breaks and a link between and around the words."""
    if item.name:
        return [f"<pre><code>{html.escape(item.asked)}</code></pre>"]
    words = html.escape(item.asked).split(" ")
    for i in range(3, len(words), 7):
        tag = draw.pick(("b", "em", "span"))
        words[i] = f"<{tag}>{words[i]}</{tag}>"
    words[-1] = f'<a href="https://quiz.example.org/{draw.between(1, 99)}">{words[-1]}</a>'
    return ["<p>" + "&nbsp;".join(words[:4]) + "<br/>\n" + " ".join(words[4:]) + "</p>"]


def escapes(item: Item, _: Draw) -> list[str]:
    """A sentence a line, as the inside of a JSON string: escaped line breaks and letters."""
    return [json.dumps(item.asked.replace(". ", ".\n"))[1:-1]]


def full_width(item: Item, _: Draw) -> list[str]:
    """Full-width forms of every ASCII letter, digit and sign."""
    return [item.asked.translate(_FULL_WIDTH)]


def zero_width(item: Item, draw: Draw) -> list[str]:
    """Zero-width spaces and soft hyphens inside words."""
    words = item.asked.split(" ")
    for i in range(0, len(words), 2):
        cut = len(words[i]) // 2
        words[i] = words[i][:cut] + draw.pick(("\u200b", "\u00ad")) + words[i][cut:]
    return [" ".join(words)]


def look_alikes(item: Item, _: Draw) -> list[str]:
    """Cyrillic letters in the shape of Latin ones, in every third word."""
    words = item.asked.split(" ")
    words[::3] = [word.translate(_LOOK_ALIKES) for word in words[::3]]
    return [" ".join(words)]


def hyphen_breaks(item: Item, _: Draw) -> list[str]:
    """Set in a narrow column, with hyphens where a long word meets the margin."""
    lines, line = [], ""
    for word in item.asked.split(" "):
        room = _LINE - len(line) - 1
        if len(word) <= room:
            line = f"{line} {word}".strip()
        elif word.isalpha() and len(word) > 5 and room > 3:  # noqa: PLR2004
            lines.append(f"{line} {word[:3]}-".strip())
            line = word[3:]
        else:
            lines.append(line)
            line = word
    return ["\n".join([*lines, line])]


def passage_only(item: Item, _: Draw) -> list[str]:
    """The passage without its question."""
    return [item.passage]


def answer_only(item: Item, _: Draw) -> list[str]:
    """The answer, or all the choices, without the question."""
    return ["\n".join(item.choices) or item.answer]


def generic_stem(item: Item, _: Draw) -> list[str]:
    """A question that thousands of items share, without its choices."""
    return [item.question]


@dataclass(frozen=True)
class Outcome:
    """What a scan should say of an item that only stands in the corpus in this way.

    expected  contaminated; flagged (contaminated or suspect); not_contaminated (anything else)
    exposure  question, question+answer, passage_only, answer_only, none
    kind      exact, near, partial, none
    """

    plant: Callable[[Item, Draw], list[str]]
    expected: str
    exposure: str
    kind: str


_EXACT = ("contaminated", "question", "exact")
_BOTH = ("contaminated", "question+answer", "exact")
OUTCOMES = {
    "verbatim": Outcome(verbatim, *_EXACT),
    "upper_case": Outcome(upper_case, *_EXACT),
    "question_answer": Outcome(question_answer, *_BOTH),
    "quiz_layout": Outcome(quiz_layout, *_BOTH),
    "jsonl_dump": Outcome(jsonl_dump, *_BOTH),
    "markup": Outcome(markup, *_EXACT),
    "escapes": Outcome(escapes, *_EXACT),
    "full_width": Outcome(full_width, *_EXACT),
    "zero_width": Outcome(zero_width, *_EXACT),
    "look_alikes": Outcome(look_alikes, *_EXACT),
    "hyphen_breaks": Outcome(hyphen_breaks, *_EXACT),
    "edited": Outcome(edited, "flagged", "question", "near"),
    "numbers_changed": Outcome(numbers_changed, "flagged", "question", "near"),
    "renamed": Outcome(renamed, "flagged", "question+answer", "near"),
    "truncated": Outcome(truncated, "flagged", "question", "partial"),
    "split": Outcome(split, "flagged", "question", "partial"),
    "passage_only": Outcome(passage_only, "not_contaminated", "passage_only", "none"),
    "answer_only": Outcome(answer_only, "not_contaminated", "answer_only", "none"),
    "generic_stem": Outcome(generic_stem, "not_contaminated", "none", "none"),
}
