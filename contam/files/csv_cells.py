"""Raise the csv module's cell limit, which is too low for texts."""

from __future__ import annotations

import csv
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOCK = threading.Lock()
#: The limit that was found, while somebody reads; and what the readers ask for.
_BEFORE: list[int] = []
_ASKED: list[int] = []


@contextmanager
def large_cells(n_chars: int) -> Iterator[None]:
    """Let the csv module read cells of at least so many characters while the block runs.

    Several threads may be inside at once; the limit of before returns when the last one leaves.
    """
    with _LOCK:
        if not _ASKED:
            _BEFORE[:] = [csv.field_size_limit()]
        _ASKED.append(n_chars)
        csv.field_size_limit(max(_BEFORE + _ASKED))
    try:
        yield
    finally:
        with _LOCK:
            _ASKED.remove(n_chars)
            csv.field_size_limit(max(_BEFORE + _ASKED))
