"""Define a job: its states, its record, and why the store may refuse it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal

from contam.server.problems.failures import RequestError

Kind = Literal["check", "rescore"]
State = Literal["queued", "running", "done", "failed", "cancelled"]

KINDS: Final[tuple[Kind, ...]] = ("check", "rescore")
ENDED: Final = frozenset({"done", "failed", "cancelled"})
"""States that nothing follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredJob:
    """A row of the store. It holds nothing of what was uploaded.

    number       counts up in the order of acceptance
    owner        id of the key that made it
    about        indexes, policies, numbers of items and bytes
    created, started, finished  seconds since 1970, for people
    attempts     how often it was begun
    code         stable code of what it failed of; empty otherwise
    kept_until   reading of the store's own clock at which it is deleted; None until it ends
    """

    number: int
    id: str
    owner: str
    kind: Kind
    state: State
    about: dict[str, Any]
    created: float
    started: float | None = None
    finished: float | None = None
    attempts: int = 0
    code: str = ""
    kept_until: float | None = None

    @property
    def ended(self) -> bool:
        """Whether its state is final."""
        return self.state in ENDED


class _RefusalError(RequestError):
    """A refusal of the store, with the status and the time to wait that the caller gets."""

    answer: ClassVar = 503
    wait_s: ClassVar = 0

    def __init__(self, message: str, *, hint: str = "") -> None:
        headers = {"Retry-After": str(self.wait_s)} if self.wait_s else None
        super().__init__(self.answer, message, hint=hint, code=self.code, headers=headers)


class StoreError(_RefusalError):
    """The job store does not take or give anything now; what it accepted is still in it."""

    code = "store"
    wait_s = 5


class StoreBusyError(StoreError):
    """Somebody else holds the store's lock."""

    code = "store-busy"


class StoreFullError(StoreError):
    """The disk of the store is full."""

    code = "store-full"


class StoreDamagedError(StoreError):
    """The store's file is not what was written."""

    code = "store-damaged"


class QueueFullError(_RefusalError):
    """As many jobs wait as may wait."""

    code = "queue-full"
    wait_s = 30


class KeyInUseError(_RefusalError):
    """A request with this idempotency key is still being received."""

    code = "idempotency-in-flight"
    answer = 409
    wait_s = 1


class KeyReusedError(_RefusalError):
    """This idempotency key came with another request before."""

    code = "idempotency-reused"
    answer = 422
