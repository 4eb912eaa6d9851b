"""Files, folders and globs -> logs: each file goes to the reader its content calls for."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from contam.benchmark.naming import format_of
from contam.benchmark.paths import expanded, refuse_pipe
from contam.errors import LogError, UsageError
from contam.rescore.logs import (
    every_eval,
    helm,
    human_eval,
    inspect_ai,
    lighteval,
    lm_eval,
    openai_evals,
    simple,
)
from contam.rescore.logs.files import LogFile
from contam.rescore.logs.model import Log, LoggedItem
from contam.tables.files import open_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

Kind = Literal[
    "lm-eval",
    "inspect",
    "inspect-zip",
    "helm",
    "lighteval",
    "openai-evals",
    "human-eval",
    "every-eval-ever",
    "table",
    "companion",
    "",
]
_READERS: Final[dict[Kind, Callable[[LogFile], Log | list[Log]]]] = {
    "lm-eval": lm_eval.read,
    "inspect": inspect_ai.read_json,
    "inspect-zip": inspect_ai.read_zip,
    "helm": helm.read,
    "lighteval": lighteval.read,
    "openai-evals": openai_evals.read,
    "human-eval": human_eval.read,
    "every-eval-ever": every_eval.read,
}
_TABLES: Final = frozenset({"csv", "parquet"})


@dataclass(frozen=True, eq=False)
class LogFiles:
    """What was found below some paths.

    skipped  (path, reason) of files in folders that are no logs
    """

    logs: tuple[Log, ...]
    skipped: tuple[tuple[str, str], ...]


def read_logs(
    paths: Sequence[str | Path], *, columns: Mapping[str, str] | None = None
) -> tuple[Log, ...]:
    """Read all logs below files, folders and globs; see `find_logs`."""
    return find_logs(paths, columns=columns).logs


def find_logs(paths: Sequence[str | Path], *, columns: Mapping[str, str] | None = None) -> LogFiles:
    """Read all logs below files, folders and globs, in the order of their paths.

    columns  what the columns of plain tables are, where their names do not say it

    Raises LogError, with the file and, where it has lines, the line, for a path without logs and
    for any log that is damaged, incomplete or contradicts itself. Files in folders that are no logs
    are listed; a file that was named must be one.
    """
    simple.check_columns(columns)
    logs: dict[str, list[Log]] = {}
    shared = _Shared({}, {})
    skipped: dict[str, str] = {}
    if not paths:
        raise UsageError("no log given", hint="name files or folders of logs")
    for given in expanded(paths, "log", LogError):
        found = 0
        for path in _below(given):
            explicit = path == given
            for target, kind in _targets(path, explicit=explicit):
                key = str(target.path.resolve())
                found += key in logs
                if key in logs:
                    continue
                try:
                    logs[key] = [shared.log(log) for log in _read(target, kind, columns)]
                except _NoScoresError as error:
                    if explicit:
                        raise LogError(error.message, hint=error.hint) from error
                    skipped[str(path)] = error.message
                else:
                    found += 1
                    continue
            if str(path.resolve()) not in logs and (reason := _left_out(path)):
                skipped.setdefault(str(path), reason)
        if not found:
            raise LogError(
                f"no logs of evaluations in {given}",
                hint="known: lm-eval samples, Inspect, HELM, lighteval details, OpenAI evals, "
                "human-eval results, Every Eval Ever, tables of scores",
            )
    every = tuple(log for own in logs.values() for log in own)
    return LogFiles(_noted(every), tuple(skipped.items()))


class _NoScoresError(LogError):
    """A sound file in a folder that holds no scores: passed over unless it was named."""


def _read(file: LogFile, kind: Kind, columns: Mapping[str, str] | None) -> list[Log]:
    if kind == "table":
        try:
            return simple.read(file, columns)
        except simple.NoScoresHereError as error:
            raise _NoScoresError(error.message, hint=error.hint) from error
    if kind not in _READERS:
        raise _NoScoresError(
            f"{file.path}: no log of an evaluation",
            hint="rows of scores per item are needed, not only their means",
        )
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


def _targets(path: Path, *, explicit: bool) -> Iterator[tuple[LogFile, Kind]]:
    """The file itself, or, for a file that belongs to a log, the files of that log."""
    file = LogFile(path)
    kind = kind_of(file)
    if kind == "helm":
        yield LogFile(path.parent / helm.ROWS), kind
    elif kind != "companion":
        yield file, kind
    elif explicit:
        others = [LogFile(one) for one in lm_eval.samples_of(path) or every_eval.samples_of(path)]
        if not others:
            raise LogError(
                f"{path}: only the means of a run; its rows are not beside it",
                hint="name the rows: lm-eval writes them under --log_samples, "
                "lighteval under --save-details",
            )
        for other in others:
            yield other, kind_of(other)


def _left_out(path: Path) -> str:
    """Why a file in a folder gave no log, "" for one that belongs to a log beside it."""
    kind = kind_of(LogFile(path))
    if kind == "companion":
        alone = path.name not in helm.FILES and _is_orphan(path)
        return "only the means of a run; its rows are not beside it" if alone else ""
    return "no log of an evaluation"


def _is_orphan(path: Path) -> bool:
    if lighteval.is_results(LogFile(path).document):
        return False
    return not (lm_eval.samples_of(path) or every_eval.samples_of(path))


def kind_of(file: LogFile) -> Kind:
    """What a file is, by its content; "" when it is nothing known here."""
    path = file.path
    try:
        with open_file(path) as stream:
            start = stream.read(8)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise LogError(f"cannot read {path}: {reason}", hint="check the path") from error
    if start.startswith(b"PK") or path.suffix == ".eval":
        return "inspect-zip"
    if start.startswith(b"PAR1"):
        return "lighteval" if lighteval.is_details(file) else "table"
    if path.name in helm.FILES and helm.is_run(path.parent):
        return "helm" if path.name == helm.ROWS else "companion"
    family = format_of(path)
    if family == "json":
        return _kind_of_json(file)
    return "table" if family in _TABLES | {"tsv"} else ""


def _kind_of_json(file: LogFile) -> Kind:
    kinds: tuple[tuple[Kind, bool], ...]
    row = file.first_line()
    if row is not None and ".json" not in file.path.suffixes[-1:]:
        kinds = (
            ("lm-eval", lm_eval.is_samples(row)),
            ("openai-evals", openai_evals.is_spec(row)),
            ("human-eval", human_eval.is_results(row)),
            ("every-eval-ever", every_eval.is_instance(row)),
        )
        return next((kind for kind, fits in kinds if fits), "table")
    head = file.data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    if head == b"[":
        return "table"
    if head != b"{":
        return ""
    value = file.document
    if inspect_ai.is_log(value):
        return "inspect"
    known = lm_eval.is_results(value) or every_eval.is_aggregate(value)
    return "companion" if known or lighteval.is_results(value) else ""


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


def _noted(logs: tuple[Log, ...]) -> tuple[Log, ...]:
    """Say in the logs' notes that two of them are runs of one model; LogError for one run twice."""
    by_digest: dict[tuple[str, str, str], Log] = {}
    for log in logs:
        key = (log.digest, log.model, log.benchmark)
        known = by_digest.setdefault(key, log)
        if known is not log and known.split == log.split:
            raise LogError(f"{log.path} and {known.path} are the same log", hint="name it once")
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


def runs_of_one_model(logs: Sequence[Log]) -> tuple[tuple[Log, ...], ...]:
    """Groups of two or more logs of one model on one benchmark under one tool."""
    groups: dict[tuple[str, str, str, str | None], list[Log]] = {}
    for log in logs:
        groups.setdefault(_run_key(log), []).append(log)
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)
