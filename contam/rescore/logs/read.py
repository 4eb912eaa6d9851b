"""Files, folders and globs -> logs: each file goes to the reader its content calls for."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from contam.benchmark.paths import expanded, refuse_pipe
from contam.errors import LogError, UsageError
from contam.rescore.logs import (
    eval_plus,
    every_eval,
    helm,
    human_eval,
    inspect_ai,
    lighteval,
    lm_eval,
    olmes,
    openai_evals,
    opencompass,
    simple,
    swe_bench,
    unread,
)
from contam.rescore.logs.files import LogFile
from contam.rescore.logs.kinds import Kind, kind_of
from contam.rescore.logs.model import Log, LoggedItem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

_READERS: Final[dict[Kind, Callable[[LogFile], Log | list[Log]]]] = {
    "lm-eval": lm_eval.read,
    "inspect": inspect_ai.read_json,
    "inspect-zip": inspect_ai.read_zip,
    "helm": helm.read,
    "lighteval": lighteval.read,
    "openai-evals": openai_evals.read,
    "human-eval": human_eval.read,
    "evalplus": eval_plus.read,
    "swe-bench": swe_bench.read,
    "swe-bench-instance": swe_bench.read_instances,
    "olmes": olmes.read,
    "opencompass": opencompass.read,
    "every-eval-ever": every_eval.read,
}
_KNOWN: Final = (
    "known: lm-eval samples, Inspect, HELM, lighteval details, OpenAI evals, human-eval results, "
    "EvalPlus, SWE-bench reports, OLMES, OpenCompass, Every Eval Ever, tables of scores"
)


class DamagedLogError(LogError):
    """A file that is a log, and cannot be read as a whole one; the message names it."""


@dataclass(frozen=True, eq=False)
class LogFiles:
    """What was found below some paths.

    skipped  (path, reason) of files in folders that are no logs
    damaged  (path, reason) of logs that are not whole, where the caller goes on without them
    """

    logs: tuple[Log, ...]
    skipped: tuple[tuple[str, str], ...]
    damaged: tuple[tuple[str, str], ...] = ()


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
    simple.check_columns(columns)
    if not paths:
        raise UsageError("no log given", hint="name files or folders of logs")
    reading = _Reading(columns, skip_damaged=skip_damaged)
    for given in expanded(paths, "log", LogError):
        found = sum([reading.take(path, explicit=path == given) for path in _below(given)])
        if not found:
            raise LogError(f"no logs of evaluations in {given}", hint=_KNOWN)
    every = tuple(log for own in reading.logs.values() for log in own)
    logs = _noted(every, reading)
    return LogFiles(logs, tuple(reading.skipped.items()), tuple(reading.damaged.items()))


class _NoScoresError(LogError):
    """A sound file in a folder that holds no scores: passed over unless it was named."""


@dataclass(slots=True)
class _Reading:
    """One call of `find_logs`."""

    columns: Mapping[str, str] | None
    skip_damaged: bool = field(kw_only=True)
    logs: dict[str, list[Log]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    damaged: dict[str, str] = field(default_factory=dict)
    shared: _Shared = field(default_factory=lambda: _Shared({}, {}))
    _failed: set[str] = field(default_factory=set)

    def take(self, path: Path, *, explicit: bool) -> int:
        """Read the logs that a file belongs to; how many there are, damaged ones included."""
        try:
            targets = list(_targets(path, explicit=explicit))
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
        message = error.message if path in error.message else f"{path}: {error.message}"
        if not self.skip_damaged:
            raise DamagedLogError(message, hint=error.hint) from error
        self.damaged.setdefault(path, message)

    def _take(self, target: LogFile, kind: Kind, path: Path, *, explicit: bool) -> int:
        key = str(target.path.resolve())
        if key in self.logs or key in self._failed:
            return 1
        try:
            self.logs[key] = [self.shared.log(log) for log in _read(target, kind, self.columns)]
        except _NoScoresError as error:
            if explicit:
                raise LogError(error.message, hint=error.hint) from error
            self.skipped[str(path)] = error.message
            return 0
        except LogError as error:
            self._failed.add(key)
            self.damage(str(target.path), error)
        return 1


def _read(file: LogFile, kind: Kind, columns: Mapping[str, str] | None) -> list[Log]:
    if kind == "table":
        try:
            return simple.read(file, columns)
        except simple.NoScoresHereError as error:
            raise _NoScoresError(error.message, hint=error.hint) from error
    if kind not in _READERS:
        known = unread.what_it_is(file.document) if kind == "unread" else None
        fact, hint = known or (
            "no log of an evaluation",
            "rows of scores per item are needed, not only their means",
        )
        raise _NoScoresError(f"{file.path}: {fact}", hint=hint)
    found = _READERS[kind](file)
    logs = [found] if isinstance(found, Log) else found
    if not any(log.columns for log in logs):
        raise _NoScoresError(f"{file.path}: nothing was scored", hint="run it with a scorer")
    return logs


@dataclass(frozen=True, slots=True)
class _Shared:
    """Items that logs hold in common, kept once: many models answer the same questions."""

    items: dict[LoggedItem, LoggedItem]
    lists: dict[tuple[LoggedItem, ...], tuple[LoggedItem, ...]]

    def log(self, log: Log) -> Log:
        """The log with the items that earlier ones hold, where they are equal."""
        own = tuple(self.items.setdefault(item, item) for item in log.items)
        return replace(log, items=self.lists.setdefault(own, own))


class _NotBesideError(LogError):
    """The user named a file that only belongs to a log, and the log is not there."""


def _targets(path: Path, *, explicit: bool) -> Iterator[tuple[LogFile, Kind]]:
    """The file itself, or, for a file that belongs to a log, the files of that log."""
    file = LogFile(path)
    kind = kind_of(file)
    if kind == "helm":
        yield LogFile(path.parent / helm.ROWS), kind
    elif kind == "opencompass":
        yield LogFile(opencompass.results_of(path)), kind
    elif kind == "swe-bench-instance":
        yield LogFile(swe_bench.first_of_run(path)), kind
    elif kind != "companion":
        yield file, kind
    elif explicit:
        others = [LogFile(one) for one in _beside(path)]
        if not others:
            raise _NotBesideError(
                f"{path}: only the means of a run; its rows are not beside it",
                hint="name the rows: lm-eval writes them under --log_samples, "
                "lighteval under --save-details",
            )
        for other in others:
            yield other, kind_of(other)


def _left_out(path: Path) -> str:
    """Why a file in a folder gave no log, "" for one that belongs to a log beside it."""
    alone = path.name not in helm.FILES and not _beside(path)
    if alone and not lighteval.is_results(LogFile(path).document):
        return "only the means of a run; its rows are not beside it"
    return ""


def _beside(path: Path) -> list[Path]:
    """The rows that belong to a companion."""
    return lm_eval.samples_of(path) or every_eval.samples_of(path) or olmes.predictions_of(path)


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
        twice = LogError(f"{log.path} and {known.path} are the same log", hint="name it once")
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
