"""Keep complete logs for a re-scoring, and note the others."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from contam.errors import Advice, LogError, Remedy
from contam.rescore.logs.model import self_check
from contam.rescore.logs.read import DamagedLogError, find_logs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from contam.rescore.logs.model import Log


def whole_logs(
    paths: Sequence[str | Path], columns: Mapping[str, str] | None, *, skip_damaged: bool
) -> tuple[list[Log], list[tuple[str, str]]]:
    """The logs that give their tool's numbers, and (path, reason) of those left out.

    Raises DamagedLogError for the first that is not whole, unless they are skipped; LogError when
    none is left.
    """
    found = find_logs(paths, columns=columns, skip_damaged=skip_damaged)
    damaged = list(found.damage)
    logs = []
    for log in found.logs:
        try:
            self_check(log)
        except LogError as error:
            if not skip_damaged:
                raise DamagedLogError(error.statement, remedy=error.remedies) from error
            damaged.append((log.path, error.statement))
        else:
            logs.append(log)
    if not logs:
        raise LogError(
            "none of the logs is whole; the first: {}", damaged[0][1], remedy=Remedy.SEE_LOGS,
        )  # fmt: skip
    return logs, [(path, str(said)) for path, said in damaged]


@contextlib.contextmanager
def offering(remedy: Remedy) -> Iterator[None]:
    """Have the error of a damaged log offer to go on without such logs."""
    try:
        yield
    except DamagedLogError as error:
        raise LogError(error.statement, remedy=(*error.remedies, Advice(remedy))) from error


def left_out(damaged: Sequence[tuple[str, str]]) -> str:
    """The section of a summary that names the logs left out, "" where there is none."""
    if not damaged:
        return ""
    lines = "".join(f"- `{' '.join(reason.split())}`\n" for _, reason in damaged)
    return f"\n## Logs left out\n\n{lines}"
