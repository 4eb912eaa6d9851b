"""What keeps the service from taking a job, as the answer to a request."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from contam.server.jobs.model import KeyInUseError, KeyReusedError, QueueFullError, StoreError
from contam.server.problems.failures import RequestError

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def answered() -> Iterator[None]:
    """Refusals of the store as RequestError: 409, 422 or 503, with the time to wait."""
    try:
        yield
    except KeyInUseError as error:
        raise RequestError(
            409, error.message, hint=error.hint, code=error.code, headers={"Retry-After": "1"}
        ) from error
    except KeyReusedError as error:
        raise RequestError(422, error.message, hint=error.hint, code=error.code) from error
    except QueueFullError as error:
        raise RequestError(
            503, error.message, hint=error.hint, code=error.code, headers={"Retry-After": "30"}
        ) from error
    except StoreError as error:
        raise RequestError(
            503, error.message, hint=error.hint, code=error.code, headers={"Retry-After": "5"}
        ) from error


@contextlib.contextmanager
def disk_errors() -> Iterator[None]:
    """A disk that takes nothing as RequestError, 503."""
    try:
        yield
    except OSError as error:
        raise RequestError(
            503, "the service cannot store what was sent", code="disk",
            hint="the operator must look at the disk of the data folder",
            headers={"Retry-After": "60"},
        ) from error  # fmt: skip
