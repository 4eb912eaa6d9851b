"""Ask a contam service over HTTP.

    from contam.client import Client

    with Client("http://127.0.0.1:8000") as client:
        for verdict in client.check([{"id": "1", "question": "..."}]):
            print(verdict.item_id, verdict.label, verdict.reason)

Loads neither Numba nor Arrow until a result folder is written or logs are read.
"""

from __future__ import annotations

from contam.benchmark.items import ItemName
from contam.client.answers import (
    Answer,
    AnswerError,
    BusyError,
    EvidenceRow,
    Job,
    JobError,
    Retry,
    ServiceError,
    UnreachableError,
)
from contam.client.client import Client

__all__ = [
    "Answer",
    "AnswerError",
    "BusyError",
    "Client",
    "EvidenceRow",
    "ItemName",
    "Job",
    "JobError",
    "Retry",
    "ServiceError",
    "UnreachableError",
]
