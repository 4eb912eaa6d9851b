"""Hook into Inspect: write clean scores beside a task's log when it ends.

Inspect finds it through the entry points of the installed contam. It does nothing unless
CONTAM_SERVER is set; CONTAM_KEY or CONTAM_KEY_FILE hold the key, CONTAM_CHECK_INDEX the names of
indexes (all that the service has when unset) and CONTAM_CHECK_POLICY the policy. A line on stderr
says what was written. A failure is a warning of Inspect's, and leaves no clean scores; the run and
its log are as they would be anyway.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import anyio.to_thread
from inspect_ai.hooks import Hooks, hooks

if TYPE_CHECKING:
    from pathlib import Path

    from inspect_ai.hooks import TaskEnd

    from contam.client.annotate import Written


@hooks(name="clean_scores", description="Scores on items that a training corpus does not hold.")
class CleanScores(Hooks):
    """Asks the service that CONTAM_SERVER names for the items of every task that ends well."""

    def enabled(self) -> bool:
        """Whether there is a service to ask."""
        return bool(os.environ.get("CONTAM_SERVER"))

    async def on_task_end(self, data: TaskEnd) -> None:
        """Write the copy, and say so. Raises ContamError, which Inspect logs as a warning."""
        if data.log.status == "success":
            # Its own thread: other tasks of the run go on meanwhile.
            written = await anyio.to_thread.run_sync(_annotate, str(data.log.location))
            sys.stderr.write(f"contam: {written.line()}\n")


def _annotate(location: str) -> Written:
    from contam.client.annotate import annotate
    from contam.client.client import Client
    from contam.errors import LogError

    path = _local(location)
    if path is None:
        raise LogError(
            "contam: the log is not on this machine's disk, so no clean scores are written",
            hint="copy it here and run `contam annotate`",
        )
    index = [name for name in os.environ.get("CONTAM_CHECK_INDEX", "").split(",") if name]
    policy = os.environ.get("CONTAM_CHECK_POLICY") or "contam"
    with Client(os.environ["CONTAM_SERVER"]) as client:
        written = annotate([path], client, overwrite=True, index=index or None, policy=policy)
    return written[0]


def _local(location: str) -> Path | None:
    from pathlib import Path
    from urllib.parse import unquote, urlsplit

    parts = urlsplit(location)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    return None if "://" in location else Path(location)
