"""Hold what the handlers of one service share, and read the bodies that they are sent."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

from fastapi import Depends, Request
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError

from contam.files.doubled_keys import doubled_key
from contam.server.observe import Metrics
from contam.server.problems import RequestError, known_place

if TYPE_CHECKING:
    from pydantic import TypeAdapter
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from contam.config import Settings
    from contam.errors import ContamError
    from contam.server.auth import Keyring
    from contam.server.check import Admission
    from contam.server.indexes import IndexRegistry
    from contam.server.jobs.runner import Jobs


OPENING: Final = "opening the indexes"
COMPILING: Final = "compiling kernels, then opening the indexes"
"""What a service that starts says it does."""

_FIRST_START: Final = (
    "compiling kernels the first time takes about half a minute; `contam warm` does it beforehand"
)


@dataclass(eq=False, slots=True)
class State:
    """Settings and the long-lived parts of a service.

    admission  threads for checks
    not_ready  why the service cannot answer yet or no longer; empty when it can
    keyring    who may ask; there once the service has started
    registry    the indexes; None until they are open
    jobs       long work; there once the service has started
    failed     why it could not start
    metrics    what is counted and measured
    """

    settings: Settings
    admission: Admission
    not_ready: str = "starting"
    keyring: Keyring | None = None
    registry: IndexRegistry | None = None
    jobs: Jobs | None = None
    failed: ContamError | None = None
    metrics: Metrics = field(default_factory=Metrics)


def unready(state: State) -> RequestError:
    """The answer, 503, of a service that starts or stops."""
    compiles = state.not_ready == COMPILING
    return RequestError(
        503, state.not_ready or "starting", code="not-ready", hint=_FIRST_START if compiles else "",
        headers={"Retry-After": "1"},
    )  # fmt: skip


async def state_of(request: Request) -> State:
    """The state of the service a request came to."""
    state: State = request.app.state.contam
    return state


CurrentState = Annotated[State, Depends(state_of)]


def registry_of(state: State) -> IndexRegistry:
    """The open indexes. Raises RequestError, 503, while they are not open yet."""
    if state.registry is None:
        raise unready(state)
    return state.registry


def jobs_of(state: State) -> Jobs:
    """The jobs. Raises RequestError, 503, while the service starts."""
    if state.jobs is None:
        raise unready(state)
    return state.jobs


Read = TypeVar("Read")

UPLOADS: Final = "/v1/jobs"
"""The path whose bodies are uploads, with a limit of their own."""


BODY_END: Final = "contam.body_end"
"""Key of a request's scope: the last bytes of its body that were read."""

_END_BYTES: Final = 256


class BodyGuard:
    """Middleware that hands on bodies piece by piece, and cuts them off at their limits."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; raises RequestError 413."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit = self._limit(scope)
        n_bytes = 0

        async def counted() -> Message:
            nonlocal n_bytes
            message = await receive()
            body = message.get("body", b"")
            n_bytes += len(body)
            scope[BODY_END] = (scope.get(BODY_END, b"") + body[-_END_BYTES:])[-_END_BYTES:]
            if n_bytes > limit:
                raise _too_large(limit)
            return message

        await self._app(scope, counted, send)

    def _limit(self, scope: Scope) -> int:
        """Bytes that this body may have. Raises RequestError for one that announces more."""
        upload = scope["path"].rstrip("/") == UPLOADS
        limit = self._settings.max_upload_bytes if upload else self._settings.max_body_bytes
        for name, value in scope["headers"]:
            if name == b"content-length" and int(value) > limit:
                raise _too_large(limit)
        return limit


def read_json(adapter: TypeAdapter[Read], body: bytes) -> Read:
    """What a JSON body says. Raises RequestError, 400 or 422, or RequestValidationError.

    A field that stands twice is an error: parsers silently keep one of the two.
    """
    try:
        found = adapter.validate_json(body)
    except ValidationError as error:
        errors = error.errors(include_input=False, include_url=False)
        if errors[0]["type"] == "json_invalid":
            where = errors[0].get("ctx", {}).get("error", "")
            raise RequestError(400, f"the body is not valid JSON in UTF-8: {where}") from None
        raise RequestValidationError(errors) from None
    try:
        path = doubled_key(body)
    except (ValueError, RecursionError):
        raise RequestError(400, "the body is not valid JSON") from None
    if path is not None:
        place = ".".join(map(str, known_place(path)))
        raise RequestError(
            422, f"a field occurs twice in one object: {place}", code="doubled-field",
            hint="send each field of an object once",
        )  # fmt: skip
    return found


def _too_large(limit: int) -> RequestError:
    return RequestError(
        413, f"the body is too long (limit {limit} bytes)",
        hint="send less at once; /v1/jobs takes large uploads",
    )  # fmt: skip
