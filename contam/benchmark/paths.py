"""Files, folders and globs as a user gives them -> the paths that are there, in natural order."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import TYPE_CHECKING

from contam.errors import UsageError
from contam.files.natural_order import natural_key
from contam.files.single import PIPE_HINT, irregular

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from contam.errors import ContamError


def expanded(
    paths: Sequence[str | Path], what: str, error_kind: type[ContamError]
) -> Iterator[Path]:
    """Each path that is there, and what the others match as patterns.

    what  "benchmark" or "log", for the messages. Raises `error_kind` for a path that is not there,
    cannot be looked at, or is a pipe or device; UsageError for an empty one.
    """
    for given in paths:
        if not str(given):
            # Path("") is the current folder; an unset shell variable must not mean what lies there.
            raise UsageError(f"a {what} path is empty", hint="check the variable it came from")
        path = Path(given)
        try:
            there = path.exists()
        except OSError as error:  # a folder on the way is closed, or the name is too long
            reason = error.strerror or type(error).__name__
            raise error_kind(
                f"cannot read {path}: {reason}", hint="check the path and its rights"
            ) from error
        # Names may hold brackets and bars: what is there is no pattern.
        if there:
            refuse_pipe(path, error_kind)
            yield path
            continue
        # Unlike Path.glob, this takes absolute patterns and `**` within one string.
        pattern = str(path)
        matches = glob.glob(pattern, recursive=True) if glob.has_magic(pattern) else []  # noqa: PTH207
        if not matches:
            raise error_kind(f"no such {what}: {path}", hint="check the path")
        for match in map(Path, sorted(matches, key=natural_key)):
            refuse_pipe(match, error_kind)
            yield match


def refuse_pipe(path: Path, error_kind: type[ContamError]) -> None:
    """Raise for a pipe, a socket or a device, before anybody opens it and waits."""
    if fact := irregular(path):
        raise error_kind(f"{path}: {fact}", hint=PIPE_HINT)
