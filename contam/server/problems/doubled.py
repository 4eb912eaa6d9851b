"""A field that stands twice in a request: one of the two would go unread, so none is."""

from __future__ import annotations

from contam.files.doubled_keys import doubled_key
from contam.server.problems.failures import RequestError
from contam.server.problems.names import known_names


def refuse_doubled(body: bytes) -> None:
    """Raise RequestError, 422, when an object of a JSON body has a name twice; 400 for no JSON.

    Names that the service does not know may be anything, and are told as `?`.
    """
    try:
        path = doubled_key(body)
    except (ValueError, RecursionError):
        raise RequestError(400, "the body is no JSON") from None
    if path is not None:
        place = ".".join(
            str(step) if isinstance(step, int) or step in known_names() else "?" for step in path
        )
        raise RequestError(
            422, f"a field stands twice in one object: {place}", code="doubled-field",
            hint="send each field of an object once",
        )  # fmt: skip
