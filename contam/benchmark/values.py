"""Convert values of a row into texts, choices and the right answer."""

from __future__ import annotations

import ast
import io
import math
import re
import tokenize
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import orjson

from contam.benchmark.fields import RowError
from contam.benchmark.looks import LONE, Told, texts_in
from contam.benchmark.mapping import plain
from contam.facts import Public
from contam.files.doubled_keys import doubled_key, may_repeat

if TYPE_CHECKING:
    from collections.abc import Iterator

# Possessive, and never begun within blanks: a text may hold any number of these.
_LABEL = re.compile(r"\s*+[(\[]?\s*+([A-Za-z])\s*+[)\].:]?\s*+")
_LABELLED = re.compile(r"(?<!\s)\s*+(?:\(([A-Z])\)|([A-Z])\s?[).:\]])\s*+")
_NUMBER = re.compile(r"-?[0-9]{1,9}")
_INLINE_LABEL = re.compile(r"(?:^|(?<=[\s,;]))\(?([A-Ja-j])\s?[).]\s*")


@dataclass(frozen=True, slots=True)
class Choices:
    """Choice texts with the labels the source gives them; `right` is set when it marks one."""

    texts: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    right: int | None = None


def is_null(value: object) -> bool:
    """Whether a value stands for none: null, or not a number as tables have it."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def as_text(value: object, what: str, told: Told = LONE) -> str | None:
    """Text of a question or passage; None for null. Raises RowError for anything not a text.

    Of lists and records it is the texts inside at any depth, but those that `told` leaves out.
    """
    if isinstance(value, str):
        return value
    if is_null(value):
        return None
    if isinstance(value, bytes):
        return _decoded(value, what)
    if isinstance(value, Mapping) and isinstance(value.get("stem"), str):
        return str(value["stem"])
    if isinstance(value, Mapping | Sequence):
        return _told(value, told)
    raise RowError("the {} is {}, expected a text", Public(what), Public(_kind(value)))


def as_label(value: object, what: str) -> str:
    """Name of a benchmark, split or item; "" for null. Numbers and records are written out."""
    if isinstance(value, str):
        return value.strip()
    if is_null(value):
        return ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(int(value) if isinstance(value, float) and value.is_integer() else value)
    if isinstance(value, Mapping):
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS, default=str).decode()
    raise RowError("the {} is {}, expected a text or a number", Public(what), Public(_kind(value)))


def scalar_text(value: object, what: str) -> str | None:
    """Text of a choice or answer: numbers and truth values are written out, null stays None."""
    if isinstance(value, str):
        return value
    if is_null(value):
        return None
    if isinstance(value, bytes):
        return _decoded(value, what)
    if isinstance(value, Mapping | Sequence):
        raise RowError("the {} is {}, expected a text", Public(what), Public(_kind(value)))
    return str(value)


def as_choices(value: object) -> Choices:
    """Choices from a list, a record of lists, a record of letters, or a list written as text."""
    if value == "" or is_null(value):
        return Choices()
    if isinstance(value, str):
        value = _list_in_text(value)
    if isinstance(value, list) and all(type(choice) is str for choice in value):
        return Choices(tuple(value))
    if isinstance(value, Mapping):
        return _choices_of_record(value)
    if not isinstance(value, Sequence) or isinstance(value, bytes):
        raise RowError("the choices are {}, expected a list of texts", Public(_kind(value)))
    if value and all(isinstance(choice, Mapping) for choice in value):
        return _choices_of_records(value)
    return Choices(tuple(_choice(choice) for choice in value))


class Places:
    """Where the choices are that answer values name; the work of each does not grow with them."""

    def __init__(self, choices: Choices, first: int) -> None:
        """first: the number by which the source calls the first choice."""
        self._texts, self._first, self._n = choices.texts, first, len(choices.texts)
        self._by_label: dict[str, int] = {}
        for place, label in enumerate(choices.labels):
            self._by_label.setdefault(label, place)

    @cached_property
    def _by_text(self) -> dict[str, int | None]:
        found: dict[str, int | None] = {}
        for place, text in enumerate(map(str.strip, self._texts)):
            # A text that two choices share names neither.
            found[text] = None if text in found else place
        return found

    def place_of(self, value: object, *, label_first: bool) -> int | None:
        """0-based place of the choice that an answer value names, None when it names none.

        label_first  the value is a label before it is a text (a choice may itself read "B" or "2")
        Raises RowError for a number that fits no choice.
        """
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool):
            value = str(value)
        if isinstance(value, int):
            return self._of_number(value)
        if not isinstance(value, str) or not value.strip():
            return None
        first, second = self._of_text, self._of_label
        if label_first:
            first, second = second, first
        wanted = value.strip()
        place = first(wanted)
        return second(wanted) if place is None else place

    def _of_number(self, value: int) -> int | None:
        if str(value) in self._by_label:
            return self._by_label[str(value)]
        if 0 <= value - self._first < self._n:
            return value - self._first
        place = self._of_text(str(value))
        if place is None:
            raise RowError("answer {!r} is none of {} choices", value, self._n)
        return place

    def _of_label(self, value: str) -> int | None:
        if value in self._by_label:
            return self._by_label[value]
        match = _LABEL.fullmatch(value)
        if match:
            place = ord(match[1].upper()) - ord("A")
        elif (number := whole_number(value)) is not None:
            place = number - self._first
        else:
            return None
        return place if 0 <= place < self._n else None

    def _of_text(self, value: str) -> int | None:
        if value in self._by_text:
            return self._by_text[value]
        bare = _LABELLED.sub("", value, count=1)
        return self._by_text.get(bare) if bare else None


def whole_number(text: str) -> int | None:
    """The number that a text writes; None for anything else, and beyond nine digits."""
    return int(text) if _NUMBER.fullmatch(text) else None


def is_bare_label(text: str) -> bool:
    """Whether an answer is only a letter or a number, such as "B", "(B)" or "3"."""
    return _LABEL.fullmatch(text) is not None or text.strip().isdecimal()


def references(value: object) -> list[object]:
    """The single answers of a value that may hold several (lists, SQuAD and TriviaQA records)."""
    if isinstance(value, str | int | float):
        return [] if value == "" else [value]
    if isinstance(value, Mapping):
        named = {plain(str(key)): single for key, single in value.items()}
        for key in ("text", "value", "spans", "answer", "aliases", "input_text"):
            if key in named:
                return references(named[key])
        found = [single for inner in value.values() for single in references(inner)]
        return [single for single in found if isinstance(single, str)] or found
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [single for element in value for single in references(element)]
    return [] if value is None else [value]


def _choices_of_record(value: Mapping[object, object]) -> Choices:
    if value and all(isinstance(score, int | float) for score in value.values()):
        best = max(value.values())  # type: ignore[type-var]  # all of them are numbers
        right = [place for place, score in enumerate(value.values()) if score == best]
        return Choices(tuple(map(str, value)), right=right[0] if len(right) == 1 else None)
    texts = value.get("text", value.get("choices"))
    if isinstance(texts, Sequence) and not isinstance(texts, str):
        labels = value.get("label", value.get("labels"))
        if not isinstance(labels, Sequence) or len(labels) != len(texts):
            raise RowError("the choices have not as many labels as texts")
        found = tuple(_choice(text) for text in texts)
        if set(labels) <= {0, 1}:
            marked = [place for place, label in enumerate(labels) if label == 1]
            return Choices(found, right=marked[0] if marked else None)
        return Choices(found, tuple(str(label) for label in labels))
    # Tables type every row alike, so letters that an item does not use come back as null.
    used = {str(label): text for label, text in value.items() if text is not None}
    return Choices(tuple(_choice(text) for text in used.values()), tuple(used))


def _choices_of_records(value: Sequence[Mapping[str, object]]) -> Choices:
    texts = tuple(_choice(choice.get("text", choice.get("content"))) for choice in value)
    labels = tuple(str(choice.get("label", choice.get("key", ""))) for choice in value)
    return Choices(texts, labels if all(labels) else ())


def _choice(value: object) -> str:
    text = scalar_text(value, "choice")
    if text is None:
        raise RowError("a choice is null, expected a text")
    return text


def without_labels(texts: tuple[str, ...]) -> tuple[str, ...]:
    """Cut `(A)`, `B)`, `C.` off when every choice carries its own letter and more than that."""
    bare = []
    for place, text in enumerate(texts):
        match = _LABELLED.match(text)
        if not match or (match[1] or match[2]) != chr(ord("A") + place):
            return texts
        bare.append(text[match.end() :])
    return tuple(bare) if all(bare) else texts


def _list_in_text(value: str) -> object:
    """A list that a CSV cell or an old JSON field holds in written form."""
    text = value.strip()
    if text[:1] in ("[", "{"):
        try:
            value = orjson.loads(text)
        except orjson.JSONDecodeError:
            return _strings_in_brackets(text)
        raw = text.encode()
        doubled = doubled_key(raw) if may_repeat(raw, value) else None
        if doubled is not None:
            name = ".".join(map(str, doubled))
            raise RowError("the field {!r} occurs twice in one object of the choices", name)
        return value
    marks: list[re.Match[str]] = []
    for mark in _INLINE_LABEL.finditer(text):
        if mark[1].lower() == "abcdefghij"[len(marks) % 10]:
            marks.append(mark)
    if len(marks) > 1 and marks[0].start() == 0:
        ends = [mark.start() for mark in marks[1:]] + [len(text)]
        return [
            text[mark.end() : end].strip().rstrip(",;").rstrip()
            for mark, end in zip(marks, ends, strict=True)
        ]
    raise RowError(
        "the choices are one text, expected a list",
        hint="a field per choice can be named: --map choices=A+B+C+D",
    )


def _strings_in_brackets(text: str) -> list[object]:
    """Strings of a printed Python list or NumPy array (which puts no commas between them)."""
    try:
        found = [
            ast.literal_eval(token.string)
            for token in tokenize.generate_tokens(io.StringIO(text).readline)
            if token.type == tokenize.STRING
        ]
    except (tokenize.TokenError, SyntaxError, ValueError) as error:
        raise RowError("cannot read the choices {!r}", text[:60]) from error
    if not text.startswith("[") or not found:
        raise RowError("cannot read the choices {!r}", text[:60])
    return found


def _told(value: object, told: Told) -> str | None:
    """Texts inside a value: of a chat, what rows do not share, or alone what the user writes."""
    if isinstance(value, Sequence) and all(isinstance(turn, str) for turn in value):
        kept = [str(turn) for turn in value if not told.drops or hash(turn) not in told.shared]
        return "\n".join(kept or map(str, value))
    texts = [text for _, text in texts_in(value, told.ignored, told.at) if text.strip()]
    kept = [text for text in texts if hash(text) not in told.shared]
    if told.is_lone or not kept:
        kept = list(_of_users(value)) or texts
    return "\n".join(kept) if kept else None


def _of_users(value: object) -> Iterator[str]:
    """What the user writes in a chat, at any depth of turns."""
    if isinstance(value, Mapping) and value.get("role") == "user":
        yield from (text for _, text in texts_in(value.get("content")) if text.strip())
    elif isinstance(value, Sequence) and not isinstance(value, str | bytes):
        for turn in value:
            yield from _of_users(turn)


def _decoded(value: bytes, what: str) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise RowError("the {} is not valid UTF-8", Public(what)) from error


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "a truth value"
    if isinstance(value, int | float):
        return f"the number {value}"
    if isinstance(value, Mapping):
        return "a record"
    if isinstance(value, Sequence):
        return "an empty list" if not value else "a list"
    return f"of type {type(value).__name__}"
