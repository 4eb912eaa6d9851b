"""Explain invalid JSON and duplicate fields without quoting the body."""

from __future__ import annotations

import json
from typing import Final

from contam.files.doubled_keys import doubled_key
from contam.server.problems.failures import RequestError
from contam.server.problems.wording import known_names

_BOM: Final = b"\xef\xbb\xbf"
_TAKEN: Final = "send one JSON object; GET /openapi.json describes it"


def utf8_json(body: bytes) -> bytes:
    """A JSON body without a mark of byte order. Raises RequestError, 400, unless it is UTF-8."""
    try:
        body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise RequestError(
            400, f"a JSON body has to be UTF-8, and byte {error.start + 1} is not",
            code="not-utf-8",
        ) from None  # fmt: skip
    # UTF-16 of plain words decodes, too, with every other byte empty.
    if b"\x00" in body:
        raise RequestError(400, "a JSON body has to be UTF-8", code="not-utf-8")
    return body.removeprefix(_BOM)


def no_json(body: bytes) -> RequestError:
    """Why a body was not read: 422 where it is JSON but for half a surrogate pair, else 400."""
    where = ""
    try:
        json.loads(body)
    except json.JSONDecodeError as error:
        where = f", from line {error.lineno}, column {error.colno} on"
    except (ValueError, RecursionError):
        pass
    else:
        return RequestError(422, "a text holds half of a surrogate pair", code="surrogate")
    return RequestError(400, f"the body is not valid JSON{where}", hint=_TAKEN)


def refuse_doubled(body: bytes) -> None:
    """Raise RequestError, 422, when an object of a JSON body has a name twice; 400 for no JSON.

    Names that the service does not know may be anything, and are shown as `?`.
    """
    try:
        path = doubled_key(body)
    except (ValueError, RecursionError):
        raise RequestError(400, "the body is not valid JSON") from None
    if path is not None:
        place = ".".join(
            str(step) if isinstance(step, int) or step in known_names() else "?" for step in path
        )
        raise RequestError(
            422, f"a field occurs twice in one object: {place}", code="doubled-field",
        )  # fmt: skip
