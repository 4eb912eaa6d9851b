"""Find log files and hand each to the reader that fits its content."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from contam.benchmark.paths import expanded, refuse_pipe
from contam.errors import LogError, Place, Public, Remedy, Statement, UsageError
from contam.rescore.logs.log_files import LogFile
from contam.rescore.logs.log_reader import NoScoresError
from contam.rescore.logs.model import Log, LoggedItem
from contam.rescore.logs.readers import parts_of, reader_of, rows_of, titles
from contam.rescore.logs.tools.simple import check_columns

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from contam.rescore.logs.log_reader import LogReader

_ALONE: Final = "only the means of a run; its rows are not beside it"


class DamagedLogError(LogError):
    """A file that is a log, and cannot be read as a whole one; the message names it."""


@dataclass(frozen=True, eq=False)
class LogFiles:
    """What was found below some paths.

    skipped  (path, reason) of files in folders that are no logs
    damage   path and reason of logs that are not whole, where the caller goes on without them
    """

    logs: tuple[Log, ...]
    skipped: tuple[tuple[str, str], ...]
    damage: tuple[tuple[str, Statement], ...] = ()

    @property
    def damaged(self) -> tuple[tuple[str, str], ...]:
        """(path, reason) of each log that is not whole."""
        return tuple((path, str(reason)) for path, reason in self.damage)


def read_logs(
    paths: Sequence[str | Path], *, columns: Mapping[str, str] | None = None
) -> tuple[Log, ...]:
    """Read all logs below files, folders and globs; see `find_logs`."""
    return find_logs(paths, columns=columns).logs


def find_logs(
    paths: Sequence[str | Path],
    *,
    columns: Mapping[str, str] | None = None,
    skip_damaged: bool = False,
) -> LogFiles:
    """Read all logs below files, folders and globs, in the order of their paths.

    columns       what the columns of plain tables are, where their names do not say it
    skip_damaged  list logs that are damaged, incomplete, cancelled or contradict themselves, and
                  go on without them

    Raises LogError, with the file and, where it has lines, the line, for a path without logs and,
    as DamagedLogError and unless they are skipped, for such logs. Files in folders that are no
    logs are listed; a file that was named must be one.
    """
    check_columns(columns)
    if not paths:
        raise UsageError("no log given", remedy=Remedy.NAME_LOGS)
    reading = _Reading(columns, skip_damaged=skip_damaged)
    for given in expanded(paths, "log", LogError):
        found = sum([reading.take(path, explicit=path == given) for path in _below(given)])
        if not found:
            raise LogError(
                "no logs of evaluations in {}", Place(given),
                remedy=Remedy.CHOOSE_KNOWN(known=Public(titles())),
            )  # fmt: skip
    every = tuple(log for own in reading.logs.values() for log in own)
    logs = _noted(every, reading)
    return LogFiles(logs, tuple(reading.skipped.items()), tuple(reading.damaged.items()))


@dataclass(slots=True)
class _Reading:
    """One call of `find_logs`."""

    columns: Mapping[str, str] | None
    skip_damaged: bool = field(kw_only=True)
    logs: dict[str, list[Log]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    damaged: dict[str, Statement] = field(default_factory=dict)
    shared: _Shared = field(default_factory=lambda: _Shared({}, {}))
    _failed: set[str] = field(default_factory=set)

    def take(self, path: Path, *, explicit: bool) -> int:
        """Read the logs that a file belongs to; how many there are, damaged ones included."""
        try:
            targets = list(self._targets(path, explicit=explicit))
        except _NotBesideError:
            raise
        except LogError as error:
            self.damage(str(path), error)
            return 1
        found = sum([self._take(*target, path, explicit=explicit) for target in targets])
        if not found and not targets and (reason := _left_out(path)):
            self.skipped.setdefault(str(path), reason)
        return found

    def damage(self, path: str, error: LogError) -> None:
        """Note a log that is not whole, or raise that it is."""
        said = error.statement
        if path not in error.message:
            said = Statement("{}: {}", (Place(path), said))
        if not self.skip_damaged:
            raise DamagedLogError(said, remedy=error.remedies) from error
        self.damaged.setdefault(path, said)

    def _targets(self, path: Path, *, explicit: bool) -> Iterator[tuple[LogFile, LogReader]]:
        """The file itself, or, for a file that belongs to a log, the files of that log."""
        file = LogFile(path)
        _ = file.start  # so that a file that cannot be read is an error before anybody guesses
        reader = reader_of(file, self.columns)
        if reader is not None:
            first = reader.first_of(path)
            yield (file if first == path else LogFile(first)), reader
        elif explicit:
            others = [LogFile(row) for row in rows_of(path, parts_of(file))]
            if not others:
                raise _NotBesideError(
                    "{}: {}", path, Public(_ALONE), remedy=Remedy.NAME_ROWS_OF_RUN,
                )  # fmt: skip
            for other in others:
                if (found := reader_of(other, self.columns)) is not None:
                    yield other, found

    def _take(self, target: LogFile, reader: LogReader, path: Path, *, explicit: bool) -> int:
        key = str(target.path.resolve())
        if key in self.logs or key in self._failed:
            return 1
        try:
            self.logs[key] = [self.shared.log(log) for log in _read(target, reader)]
        except NoScoresError as error:
            if explicit:
                raise LogError(error.statement, remedy=error.remedies) from error
            self.skipped[str(path)] = error.message
            return 0
        except LogError as error:
            self._failed.add(key)
            self.damage(str(target.path), error)
        return 1


def _read(file: LogFile, reader: LogReader) -> list[Log]:
    found = reader.read(file)
    logs = [found] if isinstance(found, Log) else found
    if not any(log.columns for log in logs):
        raise NoScoresError("{}: nothing was scored", file.path, remedy=Remedy.RUN_WITH_SCORER)
    return [_finished(log, reader) for log in logs]


def _finished(log: Log, reader: LogReader) -> Log:
    """The log with what its reader says of all columns, and notes on its scores."""
    columns = tuple(replace(column, decimals=reader.decimals) for column in log.columns)
    notes = [*log.notes, *(f"{column.metric}: {column.note}" for column in columns if column.note)]
    if log.n_unscored:
        notes.append(f"{log.n_unscored} items without a score")
    return replace(log, columns=columns, notes=tuple(notes))


@dataclass(frozen=True, slots=True)
class _Shared:
    """Items that several logs share, stored once: many models answer the same questions."""

    items: dict[LoggedItem, LoggedItem]
    lists: dict[tuple[LoggedItem, ...], tuple[LoggedItem, ...]]

    def log(self, log: Log) -> Log:
        """The log with the items that earlier ones hold, where they are equal."""
        own = tuple(self.items.setdefault(item, item) for item in log.items)
        return replace(log, items=self.lists.setdefault(own, own))


class _NotBesideError(LogError):
    """The user named a file that only belongs to a log, and the log is not there."""


def _left_out(path: Path) -> str:
    """Why a file in a folder gave no log, "" for one that belongs to a log beside it."""
    readers = parts_of(LogFile(path))
    beside = rows_of(path, readers) or any(reader.elsewhere for reader in readers)
    return "" if beside else _ALONE


def _below(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    for entry in sorted(path.rglob("*")):
        hidden = any(part.startswith(".") for part in entry.relative_to(path).parts)
        if hidden:
            continue
        refuse_pipe(entry, LogError)
        if entry.is_file():
            yield entry


def _noted(every: tuple[Log, ...], reading: _Reading) -> tuple[Log, ...]:
    """Say in the logs' notes that two of them are runs of one model; LogError for one run twice."""
    by_digest: dict[tuple[str, str, str], Log] = {}
    logs = []
    for log in every:
        key = (log.digest, log.model, log.benchmark)
        known = by_digest.setdefault(key, log)
        if known is log or known.split != log.split:
            logs.append(log)
            continue
        twice = LogError(
            "{} and {} are the same log",
            Place(log.path),
            Place(known.path),
            remedy=Remedy.NAME_LOG_ONCE,
        )
        reading.damage(log.path, twice)
    runs = Counter(_run_key(log) for log in logs)
    return tuple(
        log
        if runs[_run_key(log)] == 1
        else replace(
            log,
            notes=(
                *log.notes,
                f"one of {runs[_run_key(log)]} runs of this model on this benchmark",
            ),
        )
        for log in logs
    )


def _run_key(log: Log) -> tuple[str, str, str, str | None]:
    return log.tool, log.model, log.benchmark, log.split
