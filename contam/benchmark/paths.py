"""Expand files, folders and globs into existing paths, in natural order."""

from __future__ import annotations

import glob
from pathlib import Path
from typing import TYPE_CHECKING

from contam.errors import Public, Remedy, UsageError
from contam.files.addresses import refuse_address
from contam.files.natural_order import natural_key
from contam.files.single import irregular

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
            raise UsageError("a {} path is empty", Public(what), remedy=Remedy.CHECK_VARIABLE)
        if what != "benchmark":
            refuse_address(given, f"a {what}")
        path = Path(given)
        try:
            there = path.exists()
        except OSError as error:  # a folder on the way is closed, or the name is too long
            reason = error.strerror or type(error).__name__
            raise error_kind(
                "cannot read {}: {}", path, Public(reason), remedy=Remedy.CHECK_PATH_AND_RIGHTS
            ).of_call() from error
        # Names may hold brackets and bars: what is there is no pattern.
        if there:
            refuse_pipe(path, error_kind)
            yield path
            continue
        # Unlike Path.glob, this takes absolute patterns and `**` within one string.
        pattern = str(path)
        matches = glob.glob(pattern, recursive=True) if glob.has_magic(pattern) else []  # noqa: PTH207
        if not matches:
            remedy = (
                Remedy.CHECK_BENCHMARK_PATH if what == "benchmark" else Remedy.CHECK_PATH_AND_RIGHTS
            )
            # It may be a text of an item: of that nothing is quoted where nothing may be.
            fact = str(path) if any(map(str.isspace, pattern)) else path
            raise error_kind("no such {}: {}", Public(what), fact, remedy=remedy).of_call()
        for match in map(Path, sorted(matches, key=natural_key)):
            refuse_pipe(match, error_kind)
            yield match


def refuse_pipe(path: Path, error_kind: type[ContamError]) -> None:
    """Raise for a pipe, a socket or a device, before anybody opens it and waits."""
    if fact := irregular(path):
        raise error_kind("{}: {}", path, Public(fact), remedy=Remedy.WRITE_TO_FILE_FIRST)
