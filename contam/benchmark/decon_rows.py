"""Fold decon's reference rows, one a choice, back into items."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from contam.benchmark.fields import Row, RowError
from contam.benchmark.items import BenchItem, SkippedRow
from contam.benchmark.values import as_label, as_text, scalar_text

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

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
