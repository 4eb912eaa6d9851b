"""Turn one row into the parts of an item."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

from contam.benchmark.fields import FieldPath, FieldPlan, Row, RowError, get
from contam.benchmark.values import (
    Choices,
    Places,
    as_choices,
    as_text,
    is_bare_label,
    references,
    scalar_text,
    whole_number,
)

_HIDDEN = (-1, -1.0, "-1")
"""Values that stand for an answer that a test set does not publish."""


class Parts(NamedTuple):
    """Texts of an item. `question` is "" when the row has none."""

    passage: str | None
    question: str
    choices: tuple[str, ...]
    answer: str | None
    answer_index: int | None


def read_parts(row: Row, plan: FieldPlan) -> Parts:
    """Take an item's parts out of a row. Raises RowError, with its part, for a wrong value."""
    part = "question"
    try:
        question = _joined(row, plan.question, part)
        if question is None or not question.strip():
            return Parts(None, "", (), None, None)
        part = "choices"
        choices = _choices(row, plan)
        part = "answer_index"
        place = _stated_place(row, plan, choices)
        part = "answer"
        answer, place = _answer(row, plan, choices, place)
        part = "passage"
        passage = _joined(row, plan.passage, part)
    except RowError as error:
        error.part = part
        raise
    if plan.choices.kind == "wrong":
        texts = tuple(dict.fromkeys([*([answer] if answer else []), *choices.texts]))
        choices, place = Choices(texts), 0 if answer else None
    if passage is not None and not passage.strip():
        passage = None
    return Parts(passage, question, choices.texts, answer, place)


def _joined(row: Row, paths: tuple[FieldPath, ...], what: str) -> str | None:
    """Text of one field, or of several with a line feed between."""
    if len(paths) == 1:
        value = get(row, paths[0])
        return value if type(value) is str else as_text(value, what)
    texts = [text for path in paths if (text := as_text(get(row, path), what))]
    return "\n".join(texts) if texts else None


def _choices(row: Row, plan: FieldPlan) -> Choices:
    fields = plan.choices
    if fields.kind == "list":
        return as_choices(get(row, fields.paths[0]))
    if fields.kind == "columns":
        texts = [scalar_text(get(row, path), "choice") or "" for path in fields.paths]
        while texts and not texts[-1]:
            texts.pop()
        return Choices(tuple(texts))
    if fields.kind == "wrong":
        return Choices(tuple(_wrong_answers(row, fields.paths)))
    stem = get(row, plan.question[0])
    if isinstance(stem, Mapping) and "choices" in stem:
        return as_choices(stem["choices"])
    return Choices()


def _wrong_answers(row: Row, paths: tuple[FieldPath, ...]) -> list[str]:
    texts: list[str] = []
    for path in paths:
        for value in references(get(row, path)):
            text = scalar_text(value, "choice") or ""
            # TruthfulQA's CSV lists the answers of a cell with semicolons.
            pieces = text.split(";") if path[0].lower().endswith("answers") else [text]
            texts.extend(piece.strip() for piece in pieces if piece.strip())
    return texts


def _answer(
    row: Row, plan: FieldPlan, choices: Choices, place: int | None
) -> tuple[str | None, int | None]:
    """Text of the right answer and, where choices are given, its place among them.

    place  where a field states it
    """
    if place is None:
        place = choices.right
    misfit: RowError | None = None
    text: str | None = None
    for path in plan.answer:
        value = get(row, path)
        # Most answers are a text.
        values = [value] if type(value) is str else references(value)
        values = [value for value in values if not _is_null(value)]
        if not values or (choices.texts and values[0] in _HIDDEN):
            continue
        if place is None and choices.texts and plan.choices.kind != "wrong":
            try:
                places = _places(values, choices, plan, path)
            except RowError as error:
                misfit = misfit or error
                continue
            if len(places) == 1:
                return choices.texts[places[0]], places[0]
            if places:
                return "\n".join(choices.texts[found] for found in places), None
        text = text if text is not None else scalar_text(values[0], "answer")
    if place is None:
        if misfit is not None:
            raise misfit
        return text, None
    right = choices.texts[place]
    if text is None or (is_bare_label(text) and text.strip() not in map(str.strip, choices.texts)):
        return right, place
    return text, place


def _places(values: list[object], choices: Choices, plan: FieldPlan, path: FieldPath) -> list[int]:
    """Places named by an answer field, [] when it does not name choices at all."""
    named = Places(choices, plan.choices.first)
    label_first = path in plan.label_first
    places = [named.place_of(value, label_first=label_first) for value in values]
    known = [place for place in places if place is not None]
    return sorted(set(known)) if len(known) == len(places) else []


def _stated_place(row: Row, plan: FieldPlan, choices: Choices) -> int | None:
    """Value of an explicit index field; -1 and null mean unknown."""
    if plan.answer_index is None or not choices.texts:
        return None
    value = get(row, plan.answer_index)
    if isinstance(value, str) and (number := whole_number(value.strip())) is not None:
        value = number
    elif isinstance(value, str) and value.strip():
        # MedQA's `answer_idx` holds a letter.
        place = Places(choices, 0).place_of(value, label_first=True)
        value = value if place is None else place
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if _is_null(value) or value == -1:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise RowError("the answer index is {!r}, expected a whole number", value)
    if not 0 <= value < len(choices.texts):
        raise RowError("answer index {!r} is none of {} choices", value, len(choices.texts))
    return value


def _is_null(value: object) -> bool:
    return value is None or value == "" or (isinstance(value, float) and math.isnan(value))
