"""A body that is no JSON that can be taken: what is wrong with it, not a word of what it says."""

from __future__ import annotations

import json

from contam.server.failures import RequestError


def no_json(body: bytes) -> RequestError:
    """Why a body was not read: 422 where it is JSON but for half a surrogate pair, else 400."""
    try:
        json.loads(body)
    except (ValueError, RecursionError):
        return RequestError(400, "the body is no JSON")
    return RequestError(422, "a text holds half of a surrogate pair", code="surrogate")
