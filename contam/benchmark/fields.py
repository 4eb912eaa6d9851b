"""Decide which field holds which part, once for every set of columns."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Literal

from contam.benchmark import mapping as usual
from contam.benchmark.items import PARTS
from contam.benchmark.looks import Look, Told, are_one, completed, questions_among
from contam.benchmark.mapping import FieldMap, resolve
from contam.errors import ContamError, Names, Public

_MAX_SHOWN = 20  # fields named in an error message

FieldPath = tuple[str, ...]
Row = Mapping[str, object]


class RowError(ContamError):
    """A row that cannot be an item. Readers add file and line and raise BenchmarkError.

    part   which part of the item is wrong, "answer_index" included; "" where none is known
    field  its field, where a record was read alone
    """

    part = ""
    field = ""


@dataclass(frozen=True, slots=True)
class ChoiceFields:
    """The fields of the choices.

    kind   "none", "list" (one field), "columns" (a field per choice) or "wrong" (fields with the
           wrong answers; the right one comes first)
    first  number by which an answer field calls the first choice
    """

    kind: Literal["none", "list", "columns", "wrong"] = "none"
    paths: tuple[FieldPath, ...] = ()
    first: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldPlan:
    """Paths to the parts of an item; the texts of several question or passage paths are joined.

    choices_ask  whether the choices are what is asked, besides a question that rows share
    told         column -> what of the texts inside is no part of the item
    unread       texts that are no part, and doubtful  those that are passage for want of better:
                 where they outweigh what else is read, `missing` says why an item is incomplete
    doubtful_chat  whether the question is a chat of one row, of which only the user's part is read
    left_out     columns of texts that are left out on purpose
    answer       candidates, the first that is not null counts
    label_first  answer paths whose value is a letter or number before it is a text
    """

    question: tuple[FieldPath, ...]
    passage: tuple[FieldPath, ...] = ()
    choices: ChoiceFields = ChoiceFields()
    answer: tuple[FieldPath, ...] = ()
    label_first: frozenset[FieldPath] = frozenset()
    answer_index: FieldPath | None = None
    item_id: FieldPath | None = None
    benchmark: FieldPath | None = None
    split: FieldPath | None = None
    incomplete: FieldPath | None = None
    choices_ask: bool = False
    told: Mapping[str, Told] = field(default_factory=dict)
    unread: tuple[FieldPath, ...] = ()
    doubtful: tuple[FieldPath, ...] = ()
    doubtful_chat: bool = False
    missing: str = ""
    left_out: tuple[str, ...] = ()

    @property
    def paths(self) -> dict[str, tuple[FieldPath, ...]]:
        """The paths of each part and name, in a fixed order."""
        single = ("id", self.item_id), ("answer_index", self.answer_index)
        rest = ("benchmark", self.benchmark), ("split", self.split), ("incomplete", self.incomplete)
        return {
            "passage": self.passage,
            "question": self.question,
            "choices": self.choices.paths,
            "answer": self.answer,
            **{name: (path,) if path else () for name, path in (*single, *rest)},
        }

    def roots(self) -> tuple[str, ...]:
        """Top-level fields that a reader must load, in a fixed order."""
        read = [path for paths in self.paths.values() for path in paths]
        return tuple(dict.fromkeys(path[0] for path in (*read, *self.unread)))

    def described(self) -> tuple[tuple[str, str], ...]:
        """(part, field) pairs for the record of a run."""
        paths = self.paths
        return tuple((part, ".".join(path)) for part in (*PARTS, "id") for path in paths[part])


def get(row: Row, path: FieldPath) -> object:
    """Value at a path, those of all elements of a list; None where any step of it is missing."""
    value: object = row.get(path[0])
    if len(path) == 1:
        return value
    if isinstance(value, list):
        found = [get(one, path[1:]) for one in value if isinstance(one, Mapping)]
        return [one for one in found if one is not None] or None
    return get(value, path[1:]) if isinstance(value, Mapping) else None


def make_plan(columns: Sequence[str], field_map: FieldMap, look: Look | None = None) -> FieldPlan:
    """Decide which of these columns hold which parts. RowError without a question.

    look  what the rows have in common; None goes by names alone
    """
    plan = _Planner(columns, field_map, look).plan()
    return plan if look is None else completed(plan, columns, field_map, look)


class _Planner:
    """One decision; mapped fields are taken out of the game before usual names are looked up."""

    def __init__(self, columns: Sequence[str], field_map: FieldMap, look: Look | None) -> None:
        self._columns, self._field_map, self._look = columns, field_map, look
        self._mapped = {
            target: tuple(resolve(field, columns) for field in fields)
            for target, fields in field_map.fields.items()
        }
        taken = {path[0] for paths in self._mapped.values() for path in paths}
        taken.update(field_map.ignored)
        self._free = {
            usual.plain(column): column for column in reversed(columns) if column not in taken
        }

    def plan(self) -> FieldPlan:
        question = self._question()
        for path in question:
            self._take(path)
        choices = self._choices()
        answer = self._answer()
        passage = self._passage(question)
        lettered = choices.kind == "columns" and usual.plain(choices.paths[0][-1]) == "a"
        return FieldPlan(
            question=question,
            passage=passage,
            choices=choices,
            answer=answer,
            label_first=frozenset(
                path for path in answer if lettered or usual.plain(path[-1]) in usual.LABEL_FIELDS
            ),
            answer_index=self._single("answer_index", usual.ANSWER_INDEX),
            item_id=self._single("id", usual.ITEM_ID),
            benchmark=self._single("benchmark", usual.BENCHMARK),
            split=self._single("split", usual.SPLIT),
            incomplete=self._single("incomplete", ()),
        )

    def _question(self) -> tuple[FieldPath, ...]:
        mapped = self._mapped.get("question")
        if mapped:
            for path in mapped:
                if path[0] not in self._columns:
                    raise RowError(
                        "no field {!r} among {}", path[0], _listed(self._columns),
                        hint="name one of these: --map question=FIELD",
                    )  # fmt: skip
            return mapped
        if "question_concat" in self._free:
            return self._paths("question_concat")
        if {"body", "question"} <= self._free.keys():
            return self._paths("body", "question")
        if {"premise", "choice1"} <= self._free.keys():
            return self._paths("premise")
        for name in usual.QUESTION:
            if name in self._free:
                return self._paths(name)
        return self._unusual_question()

    def _unusual_question(self) -> tuple[FieldPath, ...]:
        """The only text that tells rows apart, or a question inside a record."""
        look = self._look
        free = self._free
        choices = {path[0] for path in self._choices().paths}
        self._free = free
        columns = [name for name in free.values() if name not in choices]
        found = [] if look is None else questions_among(columns[::-1], self._field_map, look)
        inside = {} if look is None else look.questions_inside(found)
        if len(inside) == 1:
            return tuple(inside)
        if found and are_one(found):
            return tuple((name,) for name in found)
        if found:
            raise RowError(
                "several fields may be the question: {}", Names(found, _MAX_SHOWN),
                hint="name one, or join several: --map question=FIELD+FIELD",
            )  # fmt: skip
        raise RowError(
            "no field for the question among {}", _listed(self._columns),
            hint="name it, for example --map question=FIELD,answer=FIELD",
        )  # fmt: skip

    def _passage(self, question: tuple[FieldPath, ...]) -> tuple[FieldPath, ...]:
        mapped = self._mapped.get("passage")
        if mapped is not None:
            return mapped
        instructed = usual.plain(question[0][-1]) == "instruction" and "input" in self._free
        if instructed and (self._look is None or self._look.is_own([question[0][0]])):
            return self._paths("input")
        for name in usual.PASSAGE:
            if name in self._free:
                return self._paths(name)
        return ()

    def _choices(self) -> ChoiceFields:
        mapped = self._mapped.get("choices")
        if mapped is not None:
            kind: Literal["none", "list", "columns"] = (
                "columns" if len(mapped) > 1 else "list" if mapped else "none"
            )
            return ChoiceFields(kind, mapped, self._first(mapped))
        for name in usual.CHOICE_LISTS:
            if name in self._free:
                return ChoiceFields("list", self._taken(name))
        for beginning, first in usual.CHOICE_COLUMNS.items():
            for names in series(beginning):
                found = list(takewhile(self._free.__contains__, names))
                if len(found) > 1:
                    return ChoiceFields("columns", self._taken(*found), first)
        if {"answers", "label"} <= self._free.keys() and self._holds_lists("answers"):
            return ChoiceFields("list", self._taken("answers"))
        for beginning in usual.WRONG_ANSWERS:
            found = [beginning] if beginning in self._free else _numbered(beginning, self._free)
            if found:
                return ChoiceFields("wrong", self._taken(*found))
        return ChoiceFields()

    def _first(self, choices: tuple[FieldPath, ...]) -> int:
        """The number by which answers call the first of mapped choices."""
        if self._field_map.first is not None:
            return self._field_map.first
        named = usual.plain(choices[0][-1]) if choices else ""
        begins = [name for name in usual.CHOICE_COLUMNS if name and named.startswith(name)]
        return usual.CHOICE_COLUMNS[max(begins, key=len)] if len(choices) > 1 and begins else 0

    def _holds_lists(self, plain_name: str) -> bool:
        return self._look is not None and self._look.columns[self._free[plain_name]].further.n > 0

    def _answer(self) -> tuple[FieldPath, ...]:
        mapped = self._mapped.get("answer")
        if mapped is not None:
            return mapped
        names = [name for name in usual.ANSWER if name in self._free]
        if "code" in names and len(names) > 1:
            # Beside an answer, a program is what the question is about.
            names.remove("code")
        return self._paths(*names)

    def _single(self, target: str, names: Sequence[str]) -> FieldPath | None:
        mapped = self._mapped.get(target)
        if mapped is not None:
            return mapped[0] if mapped else None
        for name in names:
            if name in self._free:
                return (self._free[name],)
        return None

    def _paths(self, *plain_names: str) -> tuple[FieldPath, ...]:
        return tuple((self._free[name],) for name in plain_names)

    def _taken(self, *plain_names: str) -> tuple[FieldPath, ...]:
        paths = self._paths(*plain_names)
        for path in paths:
            self._take(path)
        return paths

    def _take(self, path: FieldPath) -> None:
        self._free = {name: column for name, column in self._free.items() if column != path[0]}


def series(beginning: str) -> list[list[str]]:
    """Runs of names that a row with one column per choice may use."""
    letters = "abcdefghij"
    if not beginning:
        return [list(letters)]
    return [
        [f"{beginning}{gap}{mark}" for mark in marks]
        for gap in ("", "_")
        for marks in (letters, "0123456789", "123456789")
    ]


def _numbered(beginning: str, present: Mapping[str, str]) -> list[str]:
    pattern = re.compile(rf"{beginning}_?(\d+)")
    found = [(int(match[1]), name) for name in present if (match := pattern.fullmatch(name))]
    return [name for _, name in sorted(found)]


def _listed(columns: Sequence[str]) -> Names | Public:
    return Names(columns, _MAX_SHOWN) if columns else Public("no fields")
