"""Keep complete logs: not cut off, and with a score for every item judged."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final

import numpy as np

from contam.errors import LogError, Public, Statement
from contam.rescore.logs.model import self_check
from contam.rescore.logs.read import DamagedLogError, find_logs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from contam.rescore.arrays import Ints
    from contam.rescore.logs.model import Log


def whole_logs(
    paths: Sequence[str | Path], columns: Mapping[str, str] | None, *, skip_damaged: bool
) -> tuple[list[Log], list[tuple[str, str]], list[tuple[str, str]]]:
    """The logs that give their tool's numbers, and (path, reason) of those left out and of no logs.

    Raises DamagedLogError for the first that is not whole, unless they are skipped; LogError when
    none is left.
    """
    found = find_logs(paths, columns=columns, skip_damaged=skip_damaged)
    damaged = [(path, error.statement) for path, error in found.damage]
    logs = []
    for log in found.logs:
        try:
            self_check(log)
        except LogError as error:
            if not skip_damaged:
                raise DamagedLogError(error.statement, hint=error.hints) from error
            damaged.append((log.path, error.statement))
        else:
            logs.append(log)
    if not logs:
        hint = "`contam logs` lists them with the reasons"
        raise LogError("none of the logs is whole; the first: {}", damaged[0][1], hint=hint)
    return logs, [(path, str(said)) for path, said in damaged], [*found.skipped]


@contextlib.contextmanager
def offering(hint: str) -> Iterator[None]:
    """Have the error of a damaged log offer to go on without such logs."""
    try:
        yield
    except DamagedLogError as error:
        raise LogError(error.statement, hint=(*error.hints, Statement(hint))) from error


def left_out(files: Sequence[tuple[str, str]]) -> str:
    """The section of a summary that names the files left out, "" where there is none."""
    if not files:
        return ""
    lines = "".join(f"- `{' '.join(reason.split())}`\n" for _, reason in files)
    return f"\n## Files left out\n\n{lines}"


MOST_MISSING: Final = 0.01


class ResultItems:
    """The items of a result by benchmark and split, identified by content."""

    def __init__(self, sets: Sequence[tuple[str, str]], keys: Sequence[str]) -> None:
        self._sets = sorted(set(sets))
        places = {name: at for at, name in enumerate(self._sets)}
        self._set: Ints = np.array([places[name] for name in sets], np.int64)
        self._key: Ints = np.unique(keys, return_inverse=True)[1].astype(np.int64)
        pairs = np.unique(np.stack([self._key, self._set]), axis=1)
        # An item that two benchmarks hold does not tell which of them a log is of.
        self._alone = np.bincount(pairs[0])[self._key] == 1

    def missing(self, rows: Ints, met: Ints | None = None) -> Iterator[tuple[str, int, int]]:
        """(benchmark, items missing in these rows of the table, all its items) of every set met.

        met  the rows that tell which sets are meant, where these are only a part of them

        A set is met when an item that only it holds is among them, or, where no item tells its
        set, when any is.
        """
        met = rows if met is None else met
        own = met[self._alone[met]]
        there = np.zeros(int(self._key.max(initial=-1)) + 1, np.bool_)
        there[self._key[rows]] = True
        absent = np.bincount(self._set[~there[self._key]], minlength=len(self._sets))
        sizes = np.bincount(self._set, minlength=len(self._sets))
        for at in np.unique(self._set[own if len(own) else met]).tolist():
            yield self._sets[at][0], int(absent[at]), int(sizes[at])


def refuse_partial(log: Log, index: Ints, judged: ResultItems) -> None:
    """Demand a score for all but 1 % of the items, where the tool reports no number to check by.

    index  int64[n], places of the log's items in the result, -1 for none

    Raises LogError with both counts. A tool's own number that its rows give again shows that the
    rows are all it scored, so a run over a part of a benchmark is then no error.
    """
    if any(scores.reported is not None or scores.reported_n is not None for scores in log.columns):
        return
    for scores in log.columns:
        if scores.kind == "none":
            continue
        known = index >= 0
        there = index[known & scores.scored]
        for benchmark, n_missing, n_items in judged.missing(there, index[known]):
            if n_missing > MOST_MISSING * n_items:
                said = "{} has no {} for {} of the {} items of {} that were judged"
                facts = Public(log.model), Public(scores.metric), n_missing, n_items
                hint = (
                    "is the log whole? it reports no number to check that by; --allow-partial "
                    "scores what is there"
                )
                raise log.fault(said, *facts, Public(benchmark), hint=hint)
