"""Parse the form of the page, and lay out an item beside its documents."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qs

from pydantic import ValidationError

from contam.benchmark.items import PARTS
from contam.detect.show.highlights import Mark, mark, shortened
from contam.detect.show.in_common import tokens_in_common
from contam.detect.show.side_by_side import DocumentMatch, PartMatch, mark_of
from contam.server.problems import RequestError
from contam.server.schemas import CheckRequest, Item, Options

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contam.benchmark.items import BenchItem

    Row = dict[str, Any]


MEDIA_TYPE: Final = "application/x-www-form-urlencoded"
ITEM_ID: Final = "pasted"

_MOST_FIELDS: Final = 500
_ONCE: Final = ("as", "text", "question", "passage", "choices", "right", "answer")


class Form:
    """The fields of a form by name, some with several values."""

    def __init__(self, fields: Mapping[str, Sequence[str]]) -> None:
        self._fields = fields

    @classmethod
    def read(cls, body: bytes) -> Form:
        """What a browser sent. Raises RequestError, 400."""
        try:
            fields = parse_qs(
                body.decode("utf-8", "replace"),
                keep_blank_values=True,
                max_num_fields=_MOST_FIELDS,
                errors="replace",
            )
        except ValueError:
            raise RequestError(400, "the form cannot be read") from None
        # Browsers send every end of a line as two characters, which nobody typed.
        return cls({name: [_lines(value) for value in found] for name, found in fields.items()})

    def value(self, name: str) -> str:
        """The value of a field; empty if it is not there."""
        return next(iter(self._fields.get(name, ())), "")

    def all(self, name: str) -> tuple[str, ...]:
        """All values of a field."""
        return tuple(self._fields.get(name, ()))


def check_of(form: Form, *, context: int) -> CheckRequest:
    """The check that a form asks for. Raises RequestError 422 saying what to change."""
    for field, what in (("index", "an index"), ("policy", "a policy")):
        if not form.all(field):
            raise RequestError(422, f"choose {what}", code="form")
    if any(len(form.all(field)) > 1 for field in _ONCE):
        raise RequestError(422, "a field of the form was sent twice", code="form")
    as_text = form.value("as") == "text"
    asked = "text" if as_text else "question"
    if not form.value(asked).strip():
        raise RequestError(422, f"the field {asked} is empty", code="form")
    try:
        return CheckRequest(
            index=list(form.all("index")),
            policies=list(form.all("policy")),
            text=form.value("text") if as_text else None,
            items=None if as_text else [_item(form)],
            options=Options(context=context),
        )
    except ValidationError:
        raise RequestError(422, "the form does not say what to check", code="form") from None


def _item(form: Form) -> Item:
    choices = [line.strip() for line in form.value("choices").split("\n") if line.strip()]
    right = form.value("right").strip()
    if right and not (right.isdecimal() and 1 <= int(right) <= len(choices)):
        raise RequestError(
            422, "the number of the right choice is not that of a choice", code="form",
            hint="the first choice is 1; leave the field empty if no choice is right",
        )  # fmt: skip
    return Item(
        id=ITEM_ID,
        question=form.value("question"),
        passage=form.value("passage") or None,
        choices=choices,
        answer=form.value("answer") or None,
        answer_index=int(right) - 1 if right else None,
    )


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


CONTEXT: Final = 200
"""Characters of a document around each run, for who may read documents."""

_ITEM_CONTEXT: Final = 600
_MOST_DOCUMENTS: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedPart(PartMatch):
    """A part as a check found it.

    similarity  where runs were not looked for: how much the two share
    """

    similarity: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemComparison:
    """The documents that share something with an item, and how many more were found."""

    documents: tuple[DocumentMatch, ...]
    n_more: int


def compare_item(item: BenchItem, evidence: Sequence[Row], unit: str) -> ItemComparison:
    """Compare an item with the first documents of its evidence, as `/v1/check` gives it.

    unit  of the index: "word", "char" or another for tokens of a tokenizer file
    """
    places: dict[tuple[str, int], list[Row]] = {}
    for row in evidence:
        places.setdefault((row["shard"], row["row"]), []).append(row)
    shown = list(places.values())[:_MOST_DOCUMENTS]
    return ItemComparison(
        documents=tuple(_document(item, rows, unit) for rows in shown),
        n_more=len(places) - len(shown),
    )


def _document(item: BenchItem, rows: list[Row], unit: str) -> DocumentMatch:
    first = rows[0]
    parts = {
        name: list(found)
        for name, found in groupby(
            sorted(rows, key=lambda row: PARTS.index(row["part"])), key=lambda row: row["part"]
        )
    }
    return DocumentMatch(
        document_id=first["document_id"],
        shard=first["shard"],
        row=first["row"],
        url=first["url"],
        date=first["date"],
        source=first["source"],
        column=None,
        problem=None,
        parts=tuple(_part(item, name, found, unit) for name, found in parts.items()),
    )


def _part(item: BenchItem, name: str, rows: list[Row], unit: str) -> CheckedPart:
    spans = [(row["item_start"], row["item_end"]) for row in rows if not row["answer_mark"]]
    text = item.part_text(name)
    shares = [row["similarity"] for row in rows if row["similarity"] is not None]
    return CheckedPart(
        part=name,
        n_tokens=tokens_in_common(rows, text, (unit,)),
        verified=all(row["verified"] for row in rows),
        similarity=max(shares, default=None),
        item=shortened(mark(text, spans, _ITEM_CONTEXT)),
        document=shortened(_in_document(rows)),
        mark=mark_of(rows),
        turn=None,
    )


def _in_document(rows: Sequence[Row]) -> list[Mark]:
    """What is known of the document, in its order: runs, the text around them, and gaps.

    A gap of no known length says that more comes behind.
    """
    windows: list[tuple[int, str]] = []
    spans = []
    after = ""
    for row in sorted(rows, key=lambda row: (row["document_start"], row["document_end"])):
        if row["document_text"] is None:
            continue
        before, after = row["before"] or "", row["after"] or ""
        start = row["document_start"] - len(before)
        text = before + row["document_text"] + after
        spans.append((row["document_start"], row["document_end"]))
        if windows and start <= windows[-1][0] + len(windows[-1][1]):
            begin, known = windows[-1]
            windows[-1] = (begin, known + text[begin + len(known) - start :])
        else:
            windows.append((start, text))
    marks, at = [], 0
    for begin, text in windows:
        if begin > at:
            marks.append(Mark("gap", "", begin - at))
        at = begin + len(text)
        inside = [(max(a, begin) - begin, min(b, at) - begin) for a, b in spans]
        marks += mark(text, inside, len(text))
    if len(after) == CONTEXT:
        marks.append(Mark("gap", "", 0))
    return marks
