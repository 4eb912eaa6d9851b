"""The tables of the job store, and a job by its row."""

from __future__ import annotations

import json
from typing import Any, Final

from contam.server.jobs.model import Job
from contam.server.jobs.store_errors import damaged

FORMAT: Final = 1
COLUMNS: Final = (
    "number, id, owner, kind, state, about, created, started, finished, attempts, code, kept_until"
)
SCHEMA: Final = """
CREATE TABLE jobs (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    owner TEXT NOT NULL,
    kind TEXT NOT NULL,
    state TEXT NOT NULL,
    about TEXT NOT NULL,
    created REAL NOT NULL,
    started REAL,
    finished REAL,
    attempts INTEGER NOT NULL DEFAULT 0,
    code TEXT NOT NULL DEFAULT '',
    kept_until REAL
);
CREATE INDEX jobs_by_state ON jobs (state, number);
CREATE INDEX jobs_by_owner ON jobs (owner, number);
CREATE TABLE idempotency (name TEXT PRIMARY KEY, fingerprint TEXT, job TEXT);
CREATE INDEX idempotency_by_job ON idempotency (job);
CREATE TABLE clock (seconds REAL NOT NULL, start TEXT NOT NULL, running REAL NOT NULL);
INSERT INTO clock VALUES (0, '', 0);
"""


def job_of(row: tuple[Any, ...]) -> Job:
    """A job by its row. Raises StoreDamagedError."""
    values = dict(zip(COLUMNS.split(", "), row, strict=True))
    try:
        about = json.loads(values["about"])
    except (TypeError, ValueError) as error:
        raise damaged() from error
    return Job(**{**values, "about": about})
