"""Serve the web page: check an item, see the verdict and evidence, manage jobs."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

from fastapi import APIRouter, Depends, Query, Request, Response
from starlette.responses import RedirectResponse

from contam.detect.labels import SHOWN
from contam.server.checks.answers import summary
from contam.server.checks.asking import items_of, judge, within
from contam.server.checks.policies import known_policies
from contam.server.jobs.intake.accept import owner_of
from contam.server.middleware.auth import CALLER, Caller
from contam.server.page import visit
from contam.server.page.forms import MEDIA_TYPE, Form, check_of
from contam.server.page.render import show
from contam.server.page.view import CONTEXT, compare_item
from contam.server.problems.failures import RequestError
from contam.server.routes.indexes import index_answer
from contam.server.state import CurrentState, State, jobs_of, registry_of

if TYPE_CHECKING:
    from contam.server.checks.answers import StreamedAnswer
    from contam.server.indexes.registry import IndexSnapshot
    from contam.server.page.sessions import Session
    from contam.server.schemas.check import CheckRequest

_PARTS: Final = ("passage", "question", "choices", "right", "answer", "text")
_UNITS: Final = {"word": ("word", "words"), "char": ("letter or digit", "letters and digits")}
_SEE_OTHER: Final = 303
_LISTED: Final = 50
_MOST_DATES: Final = 64
_DATES: dict[tuple[str, ...], list[str] | None] = {}

router = APIRouter(include_in_schema=False)


@dataclass(frozen=True, slots=True)
class Visit:
    """Who looks at the page (None: has to sign in), and their session where there are keys."""

    caller: Caller | None
    session: Session | None

    def may(self, scope: str) -> Caller:
        """The caller. Raises RequestError 401 or 403."""
        if self.caller is None:
            raise RequestError(401, "you are not signed in", code="signed-out")
        if not self.caller.may(scope):
            raise RequestError(
                403, f"your key does not have the scope {scope!r}", code="scope-missing",
            )  # fmt: skip
        return self.caller


async def visit_of(request: Request) -> Visit:
    """Who sent a request to the page."""
    return Visit(request.scope.get(CALLER), request.scope.get(visit.SESSION))


CurrentVisit = Annotated[Visit, Depends(visit_of)]


async def fields_of(request: Request) -> Form:
    """What was sent. Raises RequestError 400 or 415."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != MEDIA_TYPE:
        raise RequestError(415, "a form is expected")
    return await asyncio.to_thread(Form.read, await request.body())


SentFields = Annotated[Form, Depends(fields_of)]


async def form_of(state: CurrentState, visitor: CurrentVisit, form: SentFields) -> Form:
    """The form that was sent, if it is one of ours. Raises RequestError 403."""
    refuse_forged(state, visitor, form)
    return form


def refuse_forged(state: State, visitor: Visit, form: Form) -> None:
    """Raise RequestError, 403, for a form that was not made here, for this session."""
    if not state.sessions.is_token(visitor.session, form.value("token")):
        raise RequestError(
            403, "this form is out of date", code="form-token",
        )  # fmt: skip


@router.get(visit.CHECK)
def start(
    request: Request,
    state: CurrentState,
    visitor: CurrentVisit,
    kind: Annotated[str, Query(alias="as")] = "item",
) -> Response:
    """The empty form, or the way to sign in."""
    if visitor.caller is None:
        return RedirectResponse(visit.SIGN_IN, _SEE_OTHER)
    home = _home_of(state, visitor.caller)
    if home != visit.CHECK:
        return RedirectResponse(home, _SEE_OTHER)
    visitor.may("check")
    return _check_page(request, state, Form({"as": [kind]}))


@router.post(visit.CHECK)
async def check(
    request: Request, state: CurrentState, visitor: CurrentVisit, form: SentFields
) -> Response:
    """Judge what the form holds, as `/v1/check` would."""
    caller = visitor.may("check")
    context = CONTEXT if caller.may("read-documents") else 0
    most = state.settings

    def read() -> CheckRequest:
        return within(
            check_of(
                form,
                max_evidence=min(20, most.max_evidence),
                context=min(context, most.max_context),
            ),
            most,
        )

    def build_page(asked: CheckRequest, found: StreamedAnswer) -> Response:
        return _check_page(request, state, form, _result(asked, found.whole(), state))

    try:
        await form_of(state, visitor, form)
        return await judge(request, state, read, build_page)
    except RequestError as error:
        # What was typed must not be lost over what is wrong with it, or over a session's end.
        if error.code == "form-token":
            error.hint = "look at what is in it, and send it again"
        return await asyncio.to_thread(
            _check_page, request, state, form, wrong=error, status=error.status
        )


@router.get(visit.SIGN_IN)
def sign_in_form(request: Request, state: CurrentState, visitor: CurrentVisit) -> Response:
    """Where a key is asked for."""
    if visitor.caller is not None:
        return RedirectResponse(visit.CHECK, _SEE_OTHER)
    return show(request, state, "sign_in.html", wrong="")


@router.post(visit.SIGN_IN)
def sign_in(
    request: Request, state: CurrentState, visitor: CurrentVisit, form: SentFields
) -> Response:
    """Take a key, and give the browser a session for it."""
    if state.keyring is None or visitor.caller is not None:
        return RedirectResponse(visit.CHECK, _SEE_OTHER)
    caller = state.keyring.known(form.value("key").strip().encode("utf-8", "replace"))
    if caller is None:
        return show(
            request, state, "sign_in.html", status=403,
            wrong="The key is not known, or was revoked.",
        )  # fmt: skip
    seconds = state.settings.session_s
    secret = state.sessions.begin(caller, seconds)
    cookie = visit.cookie_of(secret, request.scope, seconds)
    return RedirectResponse(_home_of(state, caller), _SEE_OTHER, {"Set-Cookie": cookie})


@router.post(visit.SIGN_OUT, dependencies=[Depends(form_of)])
def sign_out(request: Request, state: CurrentState) -> Response:
    """End the session."""
    state.sessions.end(visit.presented(request.scope))
    cookie = visit.cookie_of("", request.scope, 0)
    return RedirectResponse(visit.SIGN_IN, _SEE_OTHER, {"Set-Cookie": cookie})


@router.get(visit.JOBS)
def list_jobs(
    request: Request,
    state: CurrentState,
    visitor: CurrentVisit,
    before: Annotated[int | None, Query(ge=1, lt=1 << 63)] = None,
) -> Response:
    """Jobs of this key, the newest first."""
    if visitor.caller is None:
        return RedirectResponse(visit.SIGN_IN, _SEE_OTHER)
    jobs = jobs_of(state)
    found = jobs.listed(owner_of(visitor.may("jobs")), before=before, limit=_LISTED)
    shown = [jobs.show(job) for job in found]
    return show(
        request, state, "jobs.html", jobs=shown,
        refresh=5 if any(not job["ended"] for job in shown) else 0,
        older=found[-1].number if len(found) == _LISTED else None,
    )  # fmt: skip


@router.get(visit.JOBS + "/{job_id}")
def show_job(
    request: Request,
    state: CurrentState,
    visitor: CurrentVisit,
    job_id: str,
    still: bool = False,  # noqa: FBT001, FBT002 - a parameter of the address
) -> Response:
    """One job: how far it is, and what came of it."""
    if visitor.caller is None:
        return RedirectResponse(visit.SIGN_IN, _SEE_OTHER)
    jobs = jobs_of(state)
    job = jobs.show(jobs.get(job_id, owner_of(visitor.may("jobs"))))
    return show(
        request, state, "job.html", job=job, refresh=0 if job["ended"] or still else 2,
        labels=SHOWN, base=str(request.base_url).rstrip("/"), keys=visitor.session is not None,
    )  # fmt: skip


@router.post(visit.JOBS + "/{job_id}", dependencies=[Depends(form_of)])
def cancel_job(state: CurrentState, visitor: CurrentVisit, job_id: str) -> Response:
    """Stop a job; one that has ended is deleted."""
    jobs = jobs_of(state)
    left = jobs.cancel(jobs.get(job_id, owner_of(visitor.may("jobs"))))
    return RedirectResponse(visit.JOBS if left is None else f"{visit.JOBS}/{job_id}", _SEE_OTHER)


def _home_of(state: State, caller: Caller) -> str:
    """The first of the pages that there is something to see on."""
    there = (
        (visit.CHECK, "check", state.settings.index),
        (visit.REVIEW, "review", state.settings.review),
        (visit.JOBS, "jobs", True),
    )
    return next((page for page, scope, any_ in there if any_ and caller.may(scope)), visit.CHECK)


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
            indexes.append({"id": name, "coverage": read, "dates": _dates_of(snapshot)})
    fresh = not form.all("token")
    return show(
        request, state, "check.html", status=status, headers=wrong.headers if wrong else None,
        kind="text" if form.value("as") == "text" else "item",
        typed={name: form.value(name) for name in _PARTS},
        indexes=indexes,
        chosen_indexes=registry.names if fresh else form.all("index"),
        policies=known_policies().values(),
        chosen_policies=("contam",) if fresh else form.all("policy"),
        result=result, wrong=wrong,
    )  # fmt: skip


def _dates_of(snapshot: IndexSnapshot) -> list[str] | None:
    """First and last date of an index's documents: found once for each state."""
    if snapshot.states not in _DATES:
        if len(_DATES) >= _MOST_DATES:
            _DATES.clear()
        _DATES[snapshot.states] = index_answer(snapshot)["dates"]
    return _DATES[snapshot.states]


def _result(asked: CheckRequest, found: dict[str, Any], state: State) -> dict[str, Any]:
    (item,) = items_of(asked)
    verdicts = found["verdicts"]
    with registry_of(state).snapshot(found["index"]) as snapshot:
        unit = snapshot.opened.recipe.unit
    return {
        **found,
        "asked": list(zip(found["index"], found["states"], strict=True)),
        "labels": SHOWN,
        "unit": _UNITS.get(unit, ("token", "tokens")),
        "policies": known_policies(),
        "beside": compare_item(item, cast("list[dict[str, Any]]", verdicts[0]["evidence"]), unit),
        "not_checkable": [verdict for verdict in verdicts if verdict["label"] == "not_checkable"],
    }
