"""Serve the web page: check an item, see the verdict and evidence."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

from fastapi import APIRouter, Depends, Query, Request, Response

from contam.detect.labels import SHOWN
from contam.server.answers import summary
from contam.server.auth import Caller, Needs
from contam.server.check import items_of, judge, known_policies, within
from contam.server.page.forms import CONTEXT, MEDIA_TYPE, Form, check_of, compare_item
from contam.server.page.render import show
from contam.server.problems import RequestError
from contam.server.state import CurrentState, State, registry_of

if TYPE_CHECKING:
    from contam.server.schemas import CheckRequest

CHECK: Final = "/"

_PARTS: Final = ("passage", "question", "choices", "right", "answer", "text")
_UNITS: Final = {"word": ("word", "words"), "char": ("letter or digit", "letters and digits")}

MayCheck = Annotated[Caller, Depends(Needs("check"))]

router = APIRouter(include_in_schema=False)


def is_page(path: str) -> bool:
    """Whether a path is one of the page's, not of the API."""
    return path == CHECK


async def fields_of(request: Request) -> Form:
    """What was sent. Raises RequestError 400 or 415."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != MEDIA_TYPE:
        raise RequestError(415, "a form is expected")
    return await asyncio.to_thread(Form.read, await request.body())


SentFields = Annotated[Form, Depends(fields_of)]


@router.get(CHECK)
def start(
    request: Request,
    state: CurrentState,
    _caller: MayCheck,
    kind: Annotated[str, Query(alias="as")] = "item",
) -> Response:
    """The empty form."""
    return _check_page(request, state, Form({"as": [kind]}))


@router.post(CHECK)
async def check(
    request: Request, state: CurrentState, caller: MayCheck, form: SentFields
) -> Response:
    """Judge what the form holds, as `/v1/check` would."""
    context = CONTEXT if caller.may("read-documents") else 0
    try:
        asked = within(check_of(form, context=context), state.settings)
        found = await judge(request, state, asked, "whole")
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
    fresh = not (form.all("question") or form.all("text"))
    return show(
        request, "check.html", status=status, headers=wrong.headers if wrong else None,
        kind="text" if form.value("as") == "text" else "item",
        typed={name: form.value(name) for name in _PARTS},
        indexes=indexes,
        chosen_indexes=registry.names if fresh else form.all("index"),
        policies=known_policies().values(),
        chosen_policies=("contam",) if fresh else form.all("policy"),
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
        "unit": _UNITS.get(unit, ("token", "tokens")),
        "policies": known_policies(),
        "beside": compare_item(item, cast("list[dict[str, Any]]", verdicts[0]["evidence"]), unit),
        "not_checkable": [verdict for verdict in verdicts if verdict["label"] == "not_checkable"],
    }
