"""Serve the web page: check an item, see the verdict and evidence."""

from __future__ import annotations

import asyncio
import base64
import re
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias, cast
from urllib.parse import urlsplit

from fastapi import APIRouter, Depends, Request, Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape
from pydantic import ValidationError
from starlette.responses import HTMLResponse

from contam.benchmark.items import PARTS
from contam.detect.labels import SHOWN
from contam.detect.show.side_by_side import (
    DocumentMatch,
    Mark,
    PartMatch,
    mark,
    mark_of,
    shortened,
    tokens_in_common,
)
from contam.facts import counted, size
from contam.server.auth import Caller, Needs
from contam.server.check import StreamedAnswer, items_of, judge, known_policies, summary, within
from contam.server.problems import CALLER, RequestError
from contam.server.schemas import CheckRequest, Item, Options
from contam.server.state import CurrentState, State, registry_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contam.benchmark.items import BenchItem

    Row = dict[str, Any]


ITEM_ID: Final = "pasted"

_MOST_FIELDS: Final = 500
_ONCE: Final = ("question", "passage", "choices", "right", "answer")


Form: TypeAlias = "Mapping[str, Sequence[str]]"
"""The fields of a form by name, some with several values."""


async def fields_of(request: Request) -> Form:
    """What a browser sent. Raises HTTPException 400."""
    async with request.form(max_fields=_MOST_FIELDS) as form:
        # Browsers send every end of a line as two characters, which nobody typed.
        return {
            name: [_lines(value) for value in form.getlist(name) if isinstance(value, str)]
            for name in form
        }


def _value(form: Form, name: str) -> str:
    """The value of a field; empty if it is not there."""
    return next(iter(form.get(name, ())), "")


def check_of(form: Form, *, context: int) -> CheckRequest:
    """The check that a form asks for. Raises RequestError 422 saying what to change."""
    for field, what in (("index", "an index"), ("policy", "a policy")):
        if not form.get(field, ()):
            raise RequestError(422, f"choose {what}", code="form")
    if any(len(form.get(field, ())) > 1 for field in _ONCE):
        raise RequestError(422, "a field of the form was sent twice", code="form")
    if not _value(form, "question").strip():
        raise RequestError(422, "the question is empty", code="form")
    try:
        return CheckRequest(
            index=list(form.get("index", ())),
            policies=list(form.get("policy", ())),
            items=[_item(form)],
            options=Options(context=context),
        )
    except ValidationError:
        raise RequestError(422, "the form does not say what to check", code="form") from None


def _item(form: Form) -> Item:
    choices = [line.strip() for line in _value(form, "choices").split("\n") if line.strip()]
    right = _value(form, "right").strip()
    if right and not (right.isdecimal() and 1 <= int(right) <= len(choices)):
        raise RequestError(
            422, "the number of the right choice is not that of a choice", code="form",
            hint="the first choice is 1; leave the field empty if no choice is right",
        )  # fmt: skip
    return Item(
        id=ITEM_ID,
        question=_value(form, "question"),
        passage=_value(form, "passage") or None,
        choices=choices,
        answer=_value(form, "answer") or None,
        answer_index=int(right) - 1 if right else None,
    )


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


CONTEXT: Final = 200
"""Characters of a document around each run, for who may read documents."""

_ITEM_CONTEXT: Final = 600
_MOST_DOCUMENTS: Final = 10
_ABOUT: Final = ("document_id", "shard", "row", "url", "date", "source")


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
    documents = []
    for rows in list(places.values())[:_MOST_DOCUMENTS]:
        in_order = sorted(rows, key=lambda row: PARTS.index(row["part"]))
        parts = groupby(in_order, key=itemgetter("part"))
        about = {name: rows[0][name] for name in _ABOUT}
        matches = tuple(_part(item, name, list(found), unit) for name, found in parts)
        documents.append(DocumentMatch(**about, column=None, problem=None, parts=matches))
    return ItemComparison(documents=tuple(documents), n_more=len(places) - len(documents))


def _part(item: BenchItem, name: str, rows: list[Row], unit: str) -> CheckedPart:
    spans = [(row["item_start"], row["item_end"]) for row in rows if not row["answer_mark"]]
    text = item.part_text(name)
    shares = [row["similarity"] for row in rows if row["similarity"] is not None]
    return CheckedPart(
        part=name,
        n_tokens=tokens_in_common(rows, text, (unit,)),
        similarity=max(shares, default=None),
        item=shortened(mark(text, spans, _ITEM_CONTEXT)),
        document=shortened(_in_document(rows)),
        mark=mark_of(rows),
        turn=None,
        token=None,
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


_HERE: Final = Path(__file__).with_name("templates")
_ICON: Final = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'%3E%3Crect "
    "width='16' height='16' rx='3' fill='%23175e54'/%3E%3Cpath d='M3 5h10M3 8h6M3 11h8' "
    "stroke='%23fff' stroke-width='1.6'/%3E%3C/svg%3E"
)
# Characters that change how other text looks, or that nobody sees: their number is shown.
_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028\u2029"
    "\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]"
)


def seen(text: str) -> Markup:
    """A text of unknown origin, escaped; characters that nobody sees are shown by their number."""
    parts, at = [], 0
    for found in _UNSEEN.finditer(text):
        parts += [
            escape(text[at : found.start()]),
            Markup('<span class="unseen">U+{:04X}</span>').format(ord(found[0])),
        ]
        at = found.end()
    return Markup("").join([*parts, escape(text[at:])])


def link_of(url: str | None) -> str | None:
    """An address, if following it does no more than that."""
    try:
        parts = urlsplit(url or "")
    except ValueError:
        return None
    return url if parts.scheme in {"http", "https"} and parts.netloc else None


@cache
def _style() -> str:
    return (_HERE / "page.css").read_text("utf-8").strip()


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_HERE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"seen": seen, "size": size, "link": link_of}
    # Ours, and the same for everybody.
    made.globals |= {"style": Markup(_style()), "icon": _ICON, "counted": counted}  # noqa: S704
    return made


@cache
def _policy() -> str:
    digest = base64.b64encode(sha256(_style().encode()).digest()).decode()
    return (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; form-action 'self'; "
        "base-uri 'none'; frame-ancestors 'none'"
    )


def show(
    request: Request,
    template: str,
    *,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    **given: Any,  # noqa: ANN401 - whatever the template shows
) -> Response:
    """A page."""
    caller = request.scope.get(CALLER)
    may = caller.may if caller else lambda _: False
    text = _environment().get_template(template).render(may=may, **given)
    always = {
        "Content-Security-Policy": _policy(),
        # Forms have to say where they come from.
        "Referrer-Policy": "same-origin",
    }
    return HTMLResponse(text, status, {**(headers or {}), **always})


def problem_page(
    request: Request,
    status: int,
    *,
    detail: str,
    hint: str,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """A failure as a page."""
    return show(
        request, "problem.html", status=status, headers=headers, detail=detail, hint=hint,
        code=status, request_id=getattr(request.state, "request_id", ""),
    )  # fmt: skip


CHECK: Final = "/"

_PARTS: Final = ("passage", "question", "choices", "right", "answer")
_UNITS: Final = {"word": "word", "char": "letter or digit"}

MayCheck = Annotated[Caller, Depends(Needs("check"))]

router = APIRouter(include_in_schema=False)


def is_page(path: str) -> bool:
    """Whether a path is one of the page's, not of the API."""
    return path == CHECK


SentFields = Annotated[Form, Depends(fields_of)]


@router.get(CHECK)
def start(request: Request, state: CurrentState, _caller: MayCheck) -> Response:
    """The empty form."""
    return _check_page(request, state, {})


@router.post(CHECK)
async def check(
    request: Request, state: CurrentState, caller: MayCheck, form: SentFields
) -> Response:
    """Judge what the form holds, as `/v1/check` would."""
    context = CONTEXT if caller.may("read-documents") else 0
    try:
        asked = within(check_of(form, context=context), state.settings)
        found = await judge(request, state, asked, StreamedAnswer.whole)
    except RequestError as error:
        # What was typed must not be lost over what is wrong with it.
        return await asyncio.to_thread(
            _check_page, request, state, form, wrong=error, status=error.status
        )
    return await asyncio.to_thread(
        lambda: _check_page(request, state, form, _result(asked, found, state))
    )


def _check_page(
    request: Request,
    state: State,
    form: Form,
    result: dict[str, Any] | None = None,
    *,
    wrong: RequestError | None = None,
    status: int = 200,
) -> Response:
    registry = registry_of(state)
    indexes = []
    for name in registry.names:
        with registry.snapshot([name]) as snapshot:
            read = summary(snapshot.opened.coverage.totals)
            indexes.append({"id": name, "coverage": read})
    fresh = not form.get("question", ())
    return show(
        request, "check.html", status=status, headers=wrong.headers if wrong else None,
        typed={name: _value(form, name) for name in _PARTS},
        indexes=indexes,
        chosen_indexes=registry.names if fresh else form.get("index", ()),
        policies=known_policies().values(),
        chosen_policies=("contam",) if fresh else form.get("policy", ()),
        result=result, wrong=wrong,
    )  # fmt: skip


def _result(asked: CheckRequest, found: dict[str, Any], state: State) -> dict[str, Any]:
    (item,) = items_of(asked)
    verdicts = found["verdicts"]
    with registry_of(state).snapshot(found["index"]) as snapshot:
        unit = snapshot.opened.recipe.unit
    return {
        **found,
        "asked": list(zip(found["index"], found["states"], strict=True)),
        "labels": SHOWN,
        "unit": _UNITS.get(unit, "token"),
        "policies": known_policies(),
        "beside": compare_item(item, cast("list[dict[str, Any]]", verdicts[0]["evidence"]), unit),
        "not_checkable": [verdict for verdict in verdicts if verdict["label"] == "not_checkable"],
    }
