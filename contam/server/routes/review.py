"""Serve the pages on which people review a sample of a pack."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Final

from fastapi import APIRouter, Depends, Query, Request, Response
from starlette.responses import RedirectResponse

from contam.audit.review.sample import MOST_CHARACTERS
from contam.audit.review.session import case_id
from contam.server.page import visit
from contam.server.page.render import show
from contam.server.page.reviewer import SCOPE, PageReader, reader_of
from contam.server.page.reviews import ChangedError, is_of
from contam.server.page.view import to_review, whole
from contam.server.problems.failures import RequestError
from contam.server.routes.page import CurrentVisit, SentFields, Visit, refuse_forged
from contam.server.state import CurrentState, State, reviews_of

if TYPE_CHECKING:
    from contam.audit.review.sample import Case, Label
    from contam.audit.review.session import ReviewSession
    from contam.server.page.forms import Form
    from contam.server.page.reviews import ReviewedPack

_SEE_OTHER: Final = 303
_FORBIDDEN: Final = 403
_MOST_NOTE: Final = 2000
_ANSWERS: Final = {"true": True, "false": False, "skip": None}
_WORDS: Final = {True: "true", False: "false", None: "skipped"}
_AGAIN: Final = frozenset(("form", "form-token", "changed", "label-not-kept"))

router = APIRouter(include_in_schema=False)

TypedReader = Annotated[str, Query(alias="reader")]


@dataclass(frozen=True)
class _Desk:
    """What a reader has before them, in one state for the whole of a request."""

    pack: ReviewedPack
    reader: PageReader
    reading: ReviewSession
    labels: list[Label]

    def case(self, item: str) -> Case:
        """The case of that id. Raises RequestError, 404."""
        found = self.reading.by_id.get(item)
        if found is None:
            raise RequestError(
                404, "this item is not in the sample, or there is other evidence now",
                code="no-item", hint="go on with the next item of the pack",
            )  # fmt: skip
        return found

    def said(self, case: Case) -> dict[str, Any]:
        """What the reader said of a case at last, empty if nothing, and how often."""
        own = [label for label in self.labels if is_of(label, case)]
        return {
            "said": _WORDS[own[-1].label] if own else "",
            "note": own[-1].note if own else "",
            "n": len(own),
        }


def _desk(state: State, visitor: Visit, name: str, typed: str) -> _Desk | None:
    """None for a reader who has to type a name first.

    Raises RequestError 401, 403, 404, 409, 422 or 503.
    """
    reader = _reader(state, visitor, typed)
    if reader is None:
        return None
    pack = reviews_of(state).pack(name)
    return _Desk(pack, reader, pack.reading(), pack.labels(reader.name))


def _seat(
    state: CurrentState, visitor: CurrentVisit, name: str, typed: TypedReader = ""
) -> _Desk | Response:
    """The desk of who reads a pack, or where they have to go first."""
    if visitor.caller is None:
        return RedirectResponse(visit.SIGN_IN, _SEE_OTHER)
    return _desk(state, visitor, name, typed) or RedirectResponse(visit.REVIEW, _SEE_OTHER)


CurrentDesk = Annotated[_Desk | Response, Depends(_seat)]


@router.get(visit.REVIEW)
def list_packs(
    request: Request, state: CurrentState, visitor: CurrentVisit, typed: TypedReader = ""
) -> Response:
    """The packs, and how far each reader is."""
    if visitor.caller is None:
        return RedirectResponse(visit.SIGN_IN, _SEE_OTHER)
    reader, wrong = None, None
    try:
        reader = _reader(state, visitor, typed)
    except RequestError as error:
        if error.status == _FORBIDDEN:
            raise
        wrong = error
    return show(
        request, state, "review.html", status=wrong.status if wrong else 200, reader=reader,
        wrong=wrong, typed=typed, most=MOST_CHARACTERS, may_type=not _is_named(state, visitor),
        packs=[_pack_summary(pack) for pack in reviews_of(state).packs],
    )  # fmt: skip


@router.get(visit.REVIEW + "/{name}")
def next_item(request: Request, state: CurrentState, desk: CurrentDesk, last: str = "") -> Response:
    """The next item of a pack that this reader has not read, or that all are read."""
    if isinstance(desk, Response):
        return desk
    waiting = desk.reading.waiting(desk.labels, desk.reader.name)
    if not waiting:
        return _answers_page(request, state, desk)
    return _item_page(request, state, desk, waiting[0], last=last)


@router.get(visit.REVIEW + "/{name}/answers")
def list_answers(request: Request, state: CurrentState, desk: CurrentDesk) -> Response:
    """What this reader said so far."""
    if isinstance(desk, Response):
        return desk
    return _answers_page(request, state, desk)


@router.get(visit.REVIEW + "/{name}/{item}")
def show_item(request: Request, state: CurrentState, desk: CurrentDesk, item: str) -> Response:
    """One item, and what this reader said of it."""
    if isinstance(desk, Response):
        return desk
    return _item_page(request, state, desk, desk.case(item))


@router.post(visit.REVIEW + "/{name}/{item}")
def say(
    request: Request,
    state: CurrentState,
    visitor: CurrentVisit,
    name: str,
    item: str,
    form: SentFields,
) -> Response:
    """Keep an answer, and show the next item; what was typed is not lost over what is wrong."""
    desk = _desk(state, visitor, name, form.value("reader"))
    if desk is None:
        raise RequestError(422, "a reader needs a name", code="form", hint="give it on /review")
    case = desk.case(item)
    try:
        refuse_forged(state, visitor, form)
        _keep(desk, case, form)
    except RequestError as error:
        if error.code not in _AGAIN:
            raise
        if error.code == "form-token":
            error.hint = "look at it again, and answer here"
        # What was said meanwhile in another window is shown, too.
        desk = replace(desk, labels=desk.pack.labels(desk.reader.name))
        return _item_page(request, state, desk, case, wrong=error, note=form.value("note"))
    where = desk.reader.at(f"{visit.REVIEW}/{desk.pack.name}", last=item)
    return RedirectResponse(where, _SEE_OTHER)


def _is_named(state: State, visitor: Visit) -> bool:
    """Whether the key says who reads."""
    return bool(state.keyring and visitor.caller and state.keyring.name_of(visitor.caller))


def _reader(state: State, visitor: Visit, typed: str) -> PageReader | None:
    caller = visitor.may(SCOPE)
    assert state.keyring is not None  # noqa: S101 - for the type checker: nobody is let in without
    return reader_of(state.keyring, caller, typed)


def _keep(desk: _Desk, case: Case, form: Form) -> None:
    answer, note, before = form.value("answer"), form.value("note").strip(), form.value("before")
    if answer not in _ANSWERS or not (before.isascii() and before.isdecimal()):
        raise RequestError(422, "the form does not say true, false or skip", code="form")
    if len(note) > _MOST_NOTE:
        raise RequestError(
            422, f"a note has at most {_MOST_NOTE:,} characters", code="form", hint="shorten it"
        )
    try:
        desk.pack.keep(case, desk.reader.name, _ANSWERS[answer], note, int(before[:9]))
    except ChangedError:
        raise RequestError(
            409, "you have answered this item before, and nothing was changed", code="changed",
        ) from None  # fmt: skip


def _item_page(
    request: Request,
    state: State,
    desk: _Desk,
    case: Case,
    *,
    last: str = "",
    wrong: RequestError | None = None,
    note: str | None = None,
) -> Response:
    cases, own = desk.reading.cases, desk.said(case)
    waiting = desk.reading.waiting(desk.labels, desk.reader.name)
    before = desk.reading.by_id.get(last)
    view = desk.reading.view(case)
    return show(
        request, state, "review_item.html", status=wrong.status if wrong else 200,
        headers=wrong.headers if wrong else None, pack=desk.pack.name, reader=desk.reader,
        id=case_id(case), n_items=len(cases), n_read=len(cases) - len(waiting), item=view.key,
        texts={part: whole(text) for part, text in view.texts.items()}, beside=to_review(view),
        own=own, wrong=wrong, note=own["note"] if note is None else note, most=_MOST_NOTE,
        last={"id": last, "item": before.key, **desk.said(before)} if before else None,
    )  # fmt: skip


def _answers_page(request: Request, state: State, desk: _Desk) -> Response:
    cases = desk.reading.cases
    rows = [{"id": case_id(case), "item": case.key, **desk.said(case)} for case in cases]
    rows = [row for row in rows if row["n"]]
    words = Counter(row["said"] for row in rows)
    return show(
        request, state, "review_answers.html", pack=desk.pack.name, reader=desk.reader, rows=rows,
        n_items=len(cases), counts={word: words[word] for word in _WORDS.values()},
    )  # fmt: skip


def _pack_summary(pack: ReviewedPack) -> dict[str, Any]:
    try:
        reading = pack.reading()
    except RequestError as error:
        return {"name": pack.name, "wrong": error}
    readers, are_all = pack.progress(reading)
    return {
        "name": pack.name, "wrong": None, "policy": reading.policy, "n_items": len(reading.cases),
        "readers": readers, "are_all": are_all,
    }  # fmt: skip
