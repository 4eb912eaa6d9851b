"""Bound request bodies, and read JSON ones without quoting them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeVar

from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError

from contam.files.doubled_keys import doubled_key
from contam.server.problems import RequestError, known_place

if TYPE_CHECKING:
    from pydantic import TypeAdapter
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from contam.config import Settings

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
