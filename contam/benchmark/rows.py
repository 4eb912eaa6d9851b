"""Turn one row into the parts of an item, one record into an item, and decon's rows into items."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from contam.benchmark import mapping as usual
from contam.benchmark.collector import Parts, content_id
from contam.benchmark.fields import FieldPath, FieldPlan, Row, RowError, get, make_plan, series
from contam.benchmark.items import BenchItem, SkippedRow, SourceFile
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

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator


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
    named = {"id": "", "benchmark": "", "split": ""}
    part = ""
    try:
        _refuse_written_list(record, plan)
        parts = read_parts(record, plan)
        if not parts.question:
            raise _about("question", RowError("the question is empty"))
        for part in named:
            for path in plan.paths[part]:
                named[part] = as_label(get(record, path), part)
    except RowError as error:
        error.part = error.part or part
        error.field = _field(record, plan, error.part)
        raise
    item = BenchItem(
        benchmark=named["benchmark"] or benchmark,
        split=named["split"],
        item_id=named["id"] or content_id(parts),
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


def _about(part: str, error: RowError) -> RowError:
    error.part = part
    return error


def _field(record: Mapping[str, Any], plan: FieldPlan, part: str) -> str:
    """The field that a part was read from: the first that holds anything, else the first."""
    roots = [path[0] for path in plan.paths.get(part, ())]
    filled = (root for root in roots if record.get(root) not in (None, ""))
    return next(filled, roots[0] if roots else "")


FIELD_PAIRS = (
    ("passage", "passage"),
    ("question", "question"),
    ("choices", "answer"),
    ("answer", "is_correct"),
    ("id", "config"),
    ("id", "eval_instance_index"),
)


class _Key(NamedTuple):
    """Rows of one item agree in all of this; files of a benchmark may be cut inside an item."""

    benchmark: str
    split: str
    item_id: str
    passage: str
    question: str


class _Option(NamedTuple):
    text: str | None
    doc_id: str
    marked: bool
    is_correct: bool | None
    source: str
    line: int


@dataclass(slots=True)
class DeconFolder:
    """Collects the rows of all reference files, then gives their items in order of appearance."""

    _groups: dict[_Key, list[_Option]] = field(default_factory=dict)

    def add(self, row: Row, benchmark: str, split: str, source: str, line: int) -> bool:
        """Take one row; False when its question is empty. Raises RowError for wrong types."""
        question = as_text(row.get("question"), "question")
        if question is None or not question.strip():
            return False
        is_correct = row.get("is_correct")
        if is_correct is not None and not isinstance(is_correct, bool):
            raise RowError("is_correct is {!r}, expected true, false or null", is_correct)
        index = as_label(row.get("eval_instance_index"), "eval_instance_index") or str(line - 1)
        pieces = (
            as_label(row.get("config"), "config"),
            index,
            as_label(row.get("sub_index"), "sub_index"),
        )
        key = _Key(
            benchmark,
            split,
            "/".join(piece for piece in pieces if piece),
            as_text(row.get("passage"), "passage") or "",
            question,
        )
        answer = scalar_text(row.get("answer"), "answer") or None
        doc_id = as_label(row.get("doc_id"), "doc_id")
        option = _Option(answer, doc_id, "is_correct" in row, is_correct, source, line)
        self._groups.setdefault(key, []).append(option)
        return True

    def finish(self) -> Iterator[tuple[BenchItem, list[SkippedRow]]]:
        """Items, each with the rows that added no text to it."""
        bearers = Counter(key[:3] for key in self._groups)
        for key, options in self._groups.items():
            item_id = key.item_id
            if bearers[key[:3]] > 1:
                # Subsets were written under one key and without their names.
                texts = f"{key.passage}\x1d{key.question}".encode()
                item_id += "-" + hashlib.sha256(texts).hexdigest()[:8]
            yield _fold(key, item_id, options)


def is_decon(columns: Collection[str]) -> bool:
    """Whether rows with these fields are decon reference rows."""
    return ("eval_key" in columns or "eval_name" in columns) and not {
        "eval_instance_index",
        "fingerprint",
        "doc_id",
    }.isdisjoint(columns)


def _fold(key: _Key, item_id: str, options: list[_Option]) -> tuple[BenchItem, list[SkippedRow]]:
    options, skipped = _without_repeats(options)
    marked = [option for option in options if option.marked and option.text is not None]
    others = [option for option in options if not option.marked and option.text is not None]
    choices = tuple(option.text or "" for option in marked)
    right = [place for place, option in enumerate(marked) if option.is_correct]
    place = right[0] if right else None
    answer = None if place is None else choices[place]
    if len(marked) <= 1 and all(option.is_correct is not False for option in marked):
        # No options: a short and a worked answer of one item, the longer with more information.
        texts = [option.text for option in options if option.text]
        choices, place, others = (), None, []
        answer = max(texts, key=len) if texts else None
    for other in others:
        reason = "further answer text of an item that has choices"
        skipped.append(SkippedRow(other.source, other.line, reason))
    item = BenchItem(
        benchmark=key.benchmark,
        split=key.split,
        item_id=item_id,
        passage=key.passage if key.passage.strip() else None,
        question=key.question,
        choices=choices,
        answer=answer,
        answer_index=place,
        source=options[0].source,
        line=options[0].line,
    )
    return item, skipped


def _without_repeats(options: list[_Option]) -> tuple[list[_Option], list[SkippedRow]]:
    """Options less rows that repeat another's doc_id, as when a file is given twice."""
    first: dict[object, _Option] = {}
    skipped: list[SkippedRow] = []
    for place, option in enumerate(options):
        name = (option.doc_id, option.text) if option.doc_id else place
        if name in first:
            reason = f"repeats doc_id {option.doc_id}"
            skipped.append(SkippedRow(option.source, option.line, reason, "repeated doc_id"))
        else:
            first[name] = option
    return list(first.values()), skipped
