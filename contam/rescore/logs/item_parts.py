"""Extract question, passage, choices and answer from data set rows repeated in a log."""

from __future__ import annotations

import re
from string import ascii_uppercase
from typing import TYPE_CHECKING, NamedTuple

from contam.benchmark.fields import RowError, make_plan
from contam.benchmark.looks import Look
from contam.benchmark.mapping import check_mapping
from contam.benchmark.rows import read_parts
from contam.errors import UsageError
from contam.rescore.logs.log_files import Record, as_list, text_or_none

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from contam.benchmark.fields import FieldPlan

_FIELD = re.compile(r"\s*\{\{\s*(?:doc\.)?(\w+)\s*\}\}\s*|\s*(\w+)\s*")


class Texts(NamedTuple):
    """Texts of one item; None for what the row does not have."""

    question: str | None = None
    passage: str | None = None
    choices: tuple[str, ...] | None = None
    answer: str | None = None


class PartsReader:
    """Finds the parts in rows by the names benchmarks use; remembers the plan per set of fields.

    question  field that the tool itself names as the question, "" where it names none
    fields    part -> field for further parts, as a user names them
    rows      all rows of the data set: where they share one question, the text that tells them
              apart is part of it, as in the data set itself
    """

    def __init__(
        self,
        question: str = "",
        fields: Mapping[str, str] | None = None,
        rows: Iterable[Mapping[str, object]] = (),
    ) -> None:
        self._look = Look()
        for row in rows:
            self._look.add(row)
        self._fields = {**(fields or {}), **({"question": question} if question else {})}
        self._plans: dict[tuple[str, ...], FieldPlan | None] = {}

    def read(self, row: Mapping[str, object]) -> Texts:
        """Texts of a row; all None when no question is found in it."""
        names = tuple(row)
        if names not in self._plans:
            self._plans[names] = self._plan(names)
        plan = self._plans[names]
        try:
            parts = read_parts(row, plan) if plan else None
        except RowError:
            parts = None
        if parts is None or not parts.question:
            return Texts()
        return Texts(parts.question, parts.passage, parts.choices or None, parts.answer)

    def _plan(self, names: tuple[str, ...]) -> FieldPlan | None:
        mapping = {part: field for part, field in self._fields.items() if field in names}
        try:
            plan = make_plan(names, check_mapping(mapping))
            asked = [path[0] for path in plan.question]
            if self._look.n_rows <= 1 or self._look.is_own(asked):
                return plan
            return make_plan(names, check_mapping(mapping), self._look)
        except (RowError, UsageError):
            return None


def field_of_template(template: object) -> str:
    """Field that a template such as `{{question}}` consists of, "" when it is more than that."""
    found = _FIELD.fullmatch(template) if isinstance(template, str) else None
    return (found[1] or found[2]) if found else ""


def last_asked(prompt: object, asks: Callable[[Record], bool]) -> str | None:
    """A prompt that is a text, or the last turn of a chat that asks: those before are examples."""
    if isinstance(prompt, str):
        return text_or_none(prompt)
    turns = [turn for turn in map(Record.of, as_list(prompt)) if asks(turn)]
    return text_or_none(turns[-1].get("prompt", turns[-1].get("content"))) if turns else None


def is_of_user(turn: Record) -> bool:
    """Whether a turn of a chat is the user's."""
    return str(turn.get("role", "")).upper() in {"HUMAN", "USER"}


def real_choices(choices: list[str]) -> tuple[str, ...] | None:
    """Options as texts, None when they are only the letters A, B, C, ... that stand for them."""
    texts = tuple(choice.strip() for choice in choices)
    letters = tuple(ascii_uppercase[: len(texts)])
    return None if len(texts) <= 1 or texts == letters else texts
