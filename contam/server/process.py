"""What the process of a service keeps to itself, and to the processes of its jobs."""

from __future__ import annotations

import contextlib
import os
import resource
from typing import Final

_OWNER_ALONE: Final = 0o077
#: Too little for a file, and by convention no dump through a pipe either; 0 only bounds files.
_NO_DUMP: Final = 1


def keep_private() -> None:
    """Files are made for their owner alone, and a crash leaves no dump of the memory."""
    os.umask(_OWNER_ALONE)
    with contextlib.suppress(OSError, ValueError):
        _, hard = resource.getrlimit(resource.RLIMIT_CORE)
        least = _NO_DUMP if hard == resource.RLIM_INFINITY else min(_NO_DUMP, hard)
        resource.setrlimit(resource.RLIMIT_CORE, (least, hard))
