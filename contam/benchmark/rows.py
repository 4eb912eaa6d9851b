"""Turn one row into the parts of an item, and one record into an item."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from contam.benchmark import mapping as usual
from contam.benchmark.collector import Parts, content_id
from contam.benchmark.fields import FieldPath, FieldPlan, Row, RowError, get, make_plan, series
from contam.benchmark.items import BenchItem, SourceFile
from contam.benchmark.looks import LONE, Look, texts_in, unread_shares
from contam.benchmark.mapping import MAPPABLE, FieldMap
from contam.benchmark.values import (
    Choices,
    Places,
    as_choices,
    as_label,
    as_text,
    is_bare_label,
    is_null,
    references,
    scalar_text,
    whole_number,
    without_labels,
)

_HIDDEN = (-1, -1.0, "-1")
"""Values that stand for an answer that a test set does not publish."""


def read_parts(row: Row, plan: FieldPlan) -> Parts:
    """Take an item's parts out of a row. Raises RowError, with its part, for a wrong value.

    Where no question is asked, the choices are what is, else the passage.
    """
    part = "question"
    try:
        question = _joined(row, plan, plan.question, part)
        part = "passage"
        passage = _joined(row, plan, plan.passage, part)
        part = "choices"
        is_empty = question is None or not question.strip()
        choices = _choices(row, plan) if not is_empty or plan.choices.paths else Choices()
        choices = replace(choices, texts=without_labels(choices.texts))
        if plan.choices_ask or is_empty:
            asked = "\n".join(choices.texts)
            question = f"{question}\n{asked}" if not is_empty else asked or passage or ""
            passage = None if question == passage else passage
            is_empty = not question.strip()
        if question is None or is_empty:
            return Parts(None, "", (), None, None)
        part = "answer_index"
        place = _stated_place(row, plan, choices)
        part = "answer"
        answer, place = _answer(row, plan, choices, place)
    except RowError as error:
        error.part = part
        raise
    if plan.choices.kind == "wrong":
        texts = tuple(dict.fromkeys([*([answer] if answer else []), *choices.texts]))
        choices, place = Choices(without_labels(texts)), 0 if answer else None
    if passage is not None and not passage.strip():
        passage = None
    incomplete = as_label(get(row, plan.incomplete), "incomplete") if plan.incomplete else ""
    if plan.missing and _is_outweighed(row, plan, passage or "", question, *choices.texts):
        incomplete = plan.missing
    return Parts(passage, question, choices.texts, answer, place, incomplete)


def _joined(row: Row, plan: FieldPlan, paths: tuple[FieldPath, ...], what: str) -> str | None:
    """Text of one field, or of several with a line feed between."""
    texts = [as_text(get(row, path), what, plan.told.get(path[0], LONE)) for path in paths]
    return texts[0] if len(texts) == 1 else "\n".join(filter(None, texts)) or None


def _is_outweighed(row: Row, plan: FieldPlan, *parts: str) -> bool:
    """Whether texts of a row that are not read are longer than those that are."""
    lengths = [
        sum(len(text) for _, text in texts_in(get(row, path)))
        for path in (*plan.unread, *plan.doubtful)
    ]
    n_read = sum(map(len, parts)) - sum(lengths[len(plan.unread) :])
    if plan.doubtful_chat:
        # Of it, alone, only what the user writes was taken.
        asked = [len(text) for path in plan.question for _, text in texts_in(get(row, path))]
        lengths.append(max(0, sum(asked) - n_read))
    return sum(lengths) > n_read


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
        values = [value for value in values if value != "" and not is_null(value)]
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
    if is_null(value) or value in ("", -1):
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise RowError("the answer index is {!r}, expected a whole number", value)
    if not 0 <= value < len(choices.texts):
        raise RowError("answer index {!r} is none of {} choices", value, len(choices.texts))
    return value


_NOTHING_MAPPED: Final = FieldMap({})

USUAL_NAMES: Final = frozenset(
    {
        *MAPPABLE,
        *usual.USUAL,
        *usual.WRONG_ANSWERS,
        *(
            name
            for beginning in usual.CHOICE_COLUMNS
            for names in series(beginning)
            for name in names
        ),
    }
)
"""Names by which a field of a record is taken as a part, in the form of `mapping.plain`."""


def read_item(record: Mapping[str, Any], benchmark: str) -> BenchItem:
    """The item of a record: see `read_record`."""
    return read_record(record, benchmark)[0]


def read_record(record: Mapping[str, Any], benchmark: str) -> tuple[BenchItem, SourceFile]:
    """The item of a record, and how that was read; other fields are passed over.

    benchmark  name of the benchmark where the record states none

    A text of an unknown name is read as passage. Where it is longer than all else the item is
    incomplete: alone, a record does not tell whether it is what is asked.

    An item without an id gets one made of its content. Choices have to be a list or an object: to
    parse one that is written out as a text takes too long for whoever answers many. Raises RowError
    with the field that is wrong, "" where it is the record as a whole.
    """
    look = Look()
    look.add(record)
    plan = make_plan(tuple(record), _NOTHING_MAPPED, look)
    try:
        _refuse_written_list(record, plan)
        parts = read_parts(record, plan)
        if not parts.question:
            raise _about("question", RowError("the question is empty"))
        item_id, stated, split = (
            _label(record, path, name)
            for name, path in (
                ("id", plan.item_id), ("benchmark", plan.benchmark), ("split", plan.split),
            )
        )  # fmt: skip
    except RowError as error:
        error.field = _field(record, plan, error.part)
        raise
    item = BenchItem(
        benchmark=stated or benchmark,
        split=split,
        item_id=item_id or content_id(parts),
        **parts._asdict(),
    )
    source = SourceFile(
        path="",
        sha256="",
        size=0,
        n_rows=1,
        format="record",
        fields=plan.described(),
        unread=unread_shares([plan], look),
        left_out=plan.left_out,
    )
    return item, source


def _refuse_written_list(record: Mapping[str, Any], plan: FieldPlan) -> None:
    stem = get(record, plan.question[0])
    values = [get(record, path) for path in plan.choices.paths if plan.choices.kind == "list"]
    values += [stem.get("choices")] if isinstance(stem, Mapping) else []
    if any(isinstance(value, str) and value for value in values):
        raise _about("choices", RowError("the choices are one text, expected a list"))


def _label(record: Mapping[str, Any], path: FieldPath | None, name: str) -> str:
    try:
        return as_label(get(record, path), name) if path else ""
    except RowError as error:
        raise _about(name, error) from error


def _about(part: str, error: RowError) -> RowError:
    error.part = part
    return error


def _field(record: Mapping[str, Any], plan: FieldPlan, part: str) -> str:
    """The field that a part was read from: the first that holds anything, else the first."""
    paths = {
        "question": plan.question,
        "passage": plan.passage,
        "choices": plan.choices.paths,
        "answer": plan.answer,
        "answer_index": (plan.answer_index,),
        "id": (plan.item_id,),
        "benchmark": (plan.benchmark,),
        "split": (plan.split,),
    }.get(part, ())
    roots = [path[0] for path in paths if path]
    filled = (root for root in roots if record.get(root) not in (None, ""))
    return next(filled, roots[0] if roots else "")
