"""Read one record as an item, by the rules that the rows of a file are read by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from contam.benchmark import field_names
from contam.benchmark.collector import content_id
from contam.benchmark.fields import RowError, get, make_plan, series
from contam.benchmark.items import BenchItem
from contam.benchmark.mapping import MAPPABLE, FieldMap
from contam.benchmark.rows import read_parts
from contam.benchmark.values import as_label

if TYPE_CHECKING:
    from contam.benchmark.fields import FieldPath, FieldPlan

_NOTHING_MAPPED: Final = FieldMap({})

USUAL_NAMES: Final = frozenset(
    {
        *MAPPABLE,
        *field_names.QUESTION,
        *field_names.PASSAGE,
        *field_names.CHOICE_LISTS,
        *field_names.WRONG_ANSWERS,
        *field_names.ANSWER,
        *field_names.ANSWER_INDEX,
        *field_names.ITEM_ID,
        *(
            name
            for beginning in field_names.CHOICE_COLUMNS
            for names in series(beginning)
            for name in names
        ),
    }
)
"""Names by which a field of a record is taken as a part, in the form of `field_names.plain`."""


def read_item(record: Mapping[str, Any], benchmark: str) -> BenchItem:
    """The item of a record; fields that are no part of an item are passed over.

    benchmark  name of the benchmark where the record states none

    An item without an id gets one made of its content. Choices have to be a list or an object: to
    parse one that is written out as a text takes too long for whoever answers many. Raises RowError
    with the field that is wrong, "" where it is the record as a whole.
    """
    plan = make_plan(tuple(record), _NOTHING_MAPPED)
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
    return BenchItem(
        benchmark=stated or benchmark,
        split=split,
        item_id=item_id or content_id(parts),
        **parts._asdict(),
    )


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
