"""Manage the data folder of a service and uploads on their way in."""

from __future__ import annotations

import fcntl
import hashlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from contam.errors import ConfigError
from contam.server.jobs.model import StoreError

if TYPE_CHECKING:
    from pathlib import Path

    from contam.server.jobs.model import StoredJob


@dataclass(slots=True, eq=False)
class Receiving:
    """An upload on its way.

    name   what the store knows of its idempotency key;  known  the job that this key has made
    job    what became of it
    """

    owner: str
    job_id: str
    folder: Path
    name: str | None
    known: StoredJob | None
    job: StoredJob | None = None


def own(home: Path) -> int:
    """Make the folder of jobs this service's alone. Raises ConfigError when another has it."""
    try:
        home.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        home.mkdir(mode=0o700, exist_ok=True)
        # An earlier version, or a hand, may have made it otherwise.
        home.chmod(0o700)
        handle = os.open(home.parent / "jobs.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise ConfigError(
            f"cannot write the data folder {home.parent}: {error.strerror}",
            hint="give --data a folder of its own",
        ) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(handle)
        raise ConfigError(
            f"another service uses the data folder {home.parent}",
            hint="give each service a --data of its own",
        ) from error
    return handle


def make_private(path: Path) -> None:
    """Make a file for its owner alone, which it becomes if it is there. Raises StoreError."""
    try:
        handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            os.fchmod(handle, 0o600)
        finally:
            os.close(handle)
    except OSError as error:
        raise StoreError(
            "the job store cannot be opened", hint="the operator must look at jobs.db"
        ) from error


def hidden(owner: str, key: str) -> str:
    """What the store knows of an idempotency key; keys of different owners never meet."""
    return hashlib.sha256(f"{owner}\0{key}".encode()).hexdigest()
