"""One request of a flow, sent until it is answered."""

from __future__ import annotations

from collections.abc import Generator
from http import HTTPStatus
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from contam.client import wire
from contam.client.calls import Pause, Reply, Send
from contam.client.failures import AnswerError, ServiceError, UnreachableError, problem_error
from contam.client.retry import may_help, retry_after_s

if TYPE_CHECKING:
    from contam.client.retry import Retry

Result = TypeVar("Result")
Flow: TypeAlias = Generator[Send | Pause, Reply | None, Result]
"""Steps that a driver does: it is told what to send or how long to wait, and gives the replies."""


def sent(call: Send, retry: Retry) -> Flow[Reply]:
    """Send a request until it is answered; refusals that may pass are waited out.

    Raises ServiceError for a refusal, BusyError when it lasts, UnreachableError when no answer
    comes. Every request of a client may be repeated: it asks, or it carries an idempotency key.
    """
    waited_s = 0.0
    attempt = 0
    while True:
        attempt += 1
        asked_s = None
        failure: ServiceError | UnreachableError
        try:
            reply = yield call
        except UnreachableError as error:
            failure, again = error, error.again
        else:
            if reply is None:
                raise AnswerError(f"{call}: no reply")
            if HTTPStatus.OK <= reply.status < HTTPStatus.MULTIPLE_CHOICES:
                return reply
            problem = wire.problem_of(reply.body)
            failure = problem_error(reply.status, problem, str(call))
            again = may_help(reply.status, failure.code, reply.headers)
            asked_s = retry_after_s(reply.headers)
        wait_s = retry.wait_s(attempt, waited_s, asked_s) if again else None
        if wait_s is None:
            raise failure
        yield Pause(wait_s)
        waited_s += wait_s
