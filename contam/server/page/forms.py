"""Parse a form of the page into the check it asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs

from pydantic import ValidationError

from contam.server.problems.failures import RequestError
from contam.server.schemas.check import CheckRequest, Item, Options

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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


def check_of(form: Form, *, max_evidence: int, context: int) -> CheckRequest:
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
            index=form.all("index"),
            policies=form.all("policy"),
            text=form.value("text") if as_text else None,
            items=None if as_text else (_item(form),),
            options=Options(max_evidence=max_evidence, context=context),
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
