"""Find log files, and hand each to the reader that fits its content."""

from __future__ import annotations

import contextlib
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import orjson

from contam.benchmark.paths import expanded, passed_over, refuse_pipe
from contam.errors import LogError, Place, Public, Statement, UsageError
from contam.facts import counted
from contam.files.single import write_file
from contam.rescore.logs import (
    inspect_ai,
    lighteval,
    lm_eval,
    openai_evals,
    programs,
    run_folders,
    simple,
)
from contam.rescore.logs.log_files import GIVE_ROWS, LogFile, LogReader, NoScoresError, Record
from contam.rescore.logs.model import Log, LoggedItem, self_check
from contam.rescore.logs.simple import check_columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

_SHOWN: Final = 3
_ALONE: Final = "only the means of a run; its rows are not beside it"


class DamagedLogError(LogError):
    """A file that is a log, and cannot be read as a whole one; the message names it."""


@dataclass(frozen=True, eq=False)
class LogFiles:
    """What was found below some paths.

    skipped  (path, reason) of files in folders that are no logs
    damage   path and error of logs that are not whole, where the caller goes on without them
    """

    logs: tuple[Log, ...] = ()
    skipped: tuple[tuple[str, str], ...] = ()
    damage: tuple[tuple[str, LogError], ...] = ()

    @property
    def damaged(self) -> tuple[tuple[str, str], ...]:
        """(path, reason) of each log that is not whole."""
        return tuple((path, error.message) for path, error in self.damage)


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
        raise UsageError("no log given", hint="name files or folders of logs")
    reading = _Reading(columns, skip_damaged=skip_damaged)
    for given in expanded(paths, "log", LogError):
        found = sum([reading.take(path, explicit=path == given) for path in reading.below(given)])
        if not found:
            said, hint = "no logs of evaluations in {}{}", Statement("known: {}", Public(titles()))
            raise LogError(said, Place(given), reading.reasons(), hint=hint)
    every = tuple(log for own in reading.logs.values() for log in own)
    logs = _noted(every, reading)
    return LogFiles(logs, tuple(reading.skipped.items()), tuple(reading.damaged.items()))


def whole_logs(
    paths: Sequence[str | Path], columns: Mapping[str, str] | None, *, skip_damaged: bool
) -> LogFiles:
    """The logs that give their tool's numbers; the others are damaged.

    Raises DamagedLogError for the first that is not whole, unless they are skipped; LogError when
    none is left.
    """
    found = find_logs(paths, columns=columns, skip_damaged=skip_damaged)
    logs, damage = [], [*found.damage]
    for log in found.logs:
        try:
            self_check(log)
        except LogError as error:
            damaged = DamagedLogError(error.statement, hint=error.hints)
            if not skip_damaged:
                raise damaged from error
            damage.append((log.path, damaged))
        else:
            logs.append(log)
    if not logs:
        hint = "`contam logs` lists them with the reasons"
        first = damage[0][1].statement
        raise LogError("none of the logs is whole; the first: {}", first, hint=hint)
    return LogFiles(tuple(logs), found.skipped, tuple(damage))


@contextlib.contextmanager
def offering(hint: str) -> Iterator[None]:
    """Have the error of a damaged log offer to go on without such logs."""
    try:
        yield
    except DamagedLogError as error:
        raise LogError(error.statement, hint=(*error.hints, Statement(hint))) from error


@dataclass(slots=True)
class _Reading:
    """One call of `find_logs`."""

    columns: Mapping[str, str] | None
    skip_damaged: bool = field(kw_only=True)
    logs: dict[str, list[Log]] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)
    damaged: dict[str, LogError] = field(default_factory=dict)
    _items: dict[LoggedItem, LoggedItem] = field(default_factory=dict)
    _lists: dict[tuple[LoggedItem, ...], tuple[LoggedItem, ...]] = field(default_factory=dict)
    _failed: set[str] = field(default_factory=set)

    def below(self, path: Path) -> Iterator[Path]:
        """The files in a folder; what is passed over is noted, with the reason.

        A file that was named is all there is.
        """
        if not path.is_dir():
            yield path
            return
        for entry in sorted(path.rglob("*")):
            reason = passed_over(entry, path)
            if reason:
                self.skipped[str(entry)] = reason
            elif reason is None:
                refuse_pipe(entry, LogError)
                if entry.is_file():
                    yield entry

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
            self.skipped.setdefault(str(path), f"{path}: {reason}")
        return found

    def reasons(self) -> str:
        """Why its first files are no logs."""
        said = [reason.replace(path, Path(path).name, 1) for path, reason in self.skipped.items()]
        more = f"; {counted(len(said) - _SHOWN, 'more file')}" if len(said) > _SHOWN else ""
        return f" ({'; '.join(said[:_SHOWN])}{more})" if said else ""

    def damage(self, path: str, error: LogError) -> None:
        """Note a log that is not whole, or raise that it is."""
        said = error.statement
        if path not in error.message:
            said = Statement("{}: {}", Place(path), said)
        damaged = DamagedLogError(said, hint=error.hints)
        if not self.skip_damaged:
            raise damaged from error
        self.damaged.setdefault(path, damaged)

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
                hint = (
                    "name the rows: lm-eval writes them under --log_samples, lighteval under "
                    "--save-details"
                )
                raise _NotBesideError("{}: {}", path, Public(_ALONE), hint=hint)
            for other in others:
                if (found := reader_of(other, self.columns)) is not None:
                    yield other, found

    def _take(self, target: LogFile, reader: LogReader, path: Path, *, explicit: bool) -> int:
        key = str(target.path.resolve())
        if key in self.logs or key in self._failed:
            return 1
        try:
            self.logs[key] = [self._sharing(log) for log in _read(target, reader)]
        except NoScoresError as error:
            if explicit:
                raise LogError(error.statement, hint=error.hints) from error
            self.skipped[str(path)] = error.message
            return 0
        except LogError as error:
            self._failed.add(key)
            self.damage(str(target.path), error)
        return 1

    def _sharing(self, log: Log) -> Log:
        """The log with equal items of earlier ones: many models answer the same questions."""
        own = tuple(self._items.setdefault(item, item) for item in log.items)
        return replace(log, items=self._lists.setdefault(own, own))


def _read(file: LogFile, reader: LogReader) -> list[Log]:
    found = reader.read(file)
    logs = [found] if isinstance(found, Log) else found
    if not any(log.items for log in logs):
        raise LogError("{}: the log is empty", file.path, hint="was the run stopped?")
    if not any(log.columns for log in logs):
        raise NoScoresError("{}: nothing was scored", file.path, hint="run it with a scorer")
    return [_finished(log, file, reader) for log in logs]


def _finished(log: Log, file: LogFile, reader: LogReader) -> Log:
    """The log with its file, with what its reader says of all columns, and notes on its scores."""
    columns = tuple(replace(column, decimals=reader.decimals) for column in log.columns)
    notes = [*log.notes, *(f"{column.metric}: {column.note}" for column in columns if column.note)]
    if log.n_unscored:
        notes.append(f"{counted(log.n_unscored, 'item')} without a score")
    path, digest = log.path or str(file.path), log.digest or file.digest
    return replace(log, path=path, digest=digest, columns=columns, notes=tuple(notes))


class _NotBesideError(LogError):
    """The user named a file that only belongs to a log, and the log is not there."""


def _left_out(path: Path) -> str:
    """Why a file in a folder gave no log, "" for one that belongs to a log beside it."""
    readers = parts_of(LogFile(path))
    beside = rows_of(path, readers) or any(reader.elsewhere for reader in readers)
    return "" if beside else _ALONE


def _noted(every: tuple[Log, ...], reading: _Reading) -> tuple[Log, ...]:
    """Say in the logs' notes that two are runs of one model, or hold the same bytes.

    Tables that name no benchmark are of one where they share an item: else LogError.
    """
    by_digest: dict[tuple[str, str, str, str | None], Log] = {}
    homes: dict[str, Log] = {}
    runs = Counter(map(_run_key, every))
    logs = []
    for log in every:
        notes = log.notes
        known = by_digest.setdefault((log.digest, log.model, log.benchmark, log.split), log)
        if known is not log:
            notes = (*notes, f"the same bytes as {known.path}")
        if runs[_run_key(log)] > 1:
            notes = (*notes, f"one of {runs[_run_key(log)]} runs of this model on this benchmark")
        home = log if log.names_benchmark else homes.setdefault(log.benchmark, log)
        if not _share(home, log):
            apart = LogError(
                "{} and {} name no benchmark and share no item", Place(home.path), Place(log.path),
                hint="add a column `benchmark`, or keep each benchmark in its own folder",
            )  # fmt: skip
            reading.damage(log.path, apart)
            continue
        logs.append(replace(log, notes=notes))
    return tuple(logs)


def _share(one: Log, other: Log) -> bool:
    """Whether two logs have an item in common."""
    names = {item.question or item.item_id for item in one.items}
    return one.items is other.items or any(
        (item.question or item.item_id) in names for item in other.items
    )


def _run_key(log: Log) -> tuple[str, str, str, str | None]:
    return log.tool, log.model, log.benchmark, log.split


_NO_LOGS: Final = {
    ("testCases",): "a DeepEval test run, not the `predictions.to_csv(...)` of a benchmark",
    ("evalId", "results"): "a promptfoo evaluation: tests by assertions, no benchmark's items",
    ("accuracy", "correct_count", "total_count"): "the failures of a BFCL run, no rows of passes",
    ("score", "htmls", "convos"): "results of a simple-evals run, with item scores in HTML only",
    ("raw_generations", "raw_scored_generations"): "scored generations of CRUXEval: lists, no rows",
    ("config", "summary", "eval"): "results of EvalPerf: a record for each task, and no rows",
    ("no_generation", "resolved"): "lists of SWE-bench's instances, without those not resolved",
    ("score", "score:std"): "the means of a simple-evals run, no score per item",
}
"""Fields of a JSON file that cannot be read as a log -> what it is."""

_AS_TABLE: Final = (
    "write the scores as a table: CSV, JSON lines or Parquet, a row per item, with the columns "
    "model, id, question and score, and repeat where an item has several"
)


def _what_it_is(file: LogFile) -> str:
    """What a file that cannot be read as a log is, "" for one that may be a log."""
    if file.form not in {"lines", "object"}:
        return ""
    found = Record.of(file.document if file.form == "object" else file.first_line)
    return next((fact for fields, fact in _NO_LOGS.items() if found.keys() >= {*fields}), "")


def _refuse(file: LogFile) -> list[Log]:
    """Raises NoScoresError, with what to export instead."""
    is_object = file.form == "object"
    other = "a JSON object without a list of rows" if is_object else "no log of an evaluation"
    known = _what_it_is(file)
    hint = _AS_TABLE if known else GIVE_ROWS
    raise NoScoresError("{}: {}", file.path, Public(known or other), hint=hint)


_NO_SCORES: Final = LogReader(fits=lambda file: bool(_what_it_is(file)), read=_refuse)


#: The first that fits a file reads it, so the stricter ones come first. HELM goes by names, and
#: saves the others a look into its files, which are large.
READERS: Final = (
    run_folders.HELM,
    _NO_SCORES,
    run_folders.OPEN_COMPASS,
    programs.SWE_INSTANCES,
    inspect_ai.READER,
    programs.EVAL_PLUS,
    programs.SWE_BENCH,
    lm_eval.READER,
    run_folders.OLMES,
    openai_evals.READER,
    programs.HUMAN_EVAL,
    run_folders.EVERY_EVAL,
    lighteval.READER,
)


def titles() -> str:
    """What can be read, for an error."""
    return ", ".join([*(reader.title for reader in READERS if reader.title), simple.TITLE])


def reader_of(file: LogFile, columns: Mapping[str, str] | None) -> LogReader | None:
    """Who reads a file; None for a part of a log that others read (see `parts_of`).

    columns  what the columns of plain tables are, where their names do not say it
    """
    found = next((reader for reader in READERS if reader.fits(file)), None)
    if found is not None:
        return found
    if parts_of(file):
        return None
    tables = simple.reader(columns)
    return tables if tables.fits(file) else _NO_SCORES


def parts_of(file: LogFile) -> list[LogReader]:
    """Readers of the logs that a file without scores may belong to."""
    return [reader for reader in READERS if reader.is_part(file)]


def rows_of(path: Path, readers: list[LogReader]) -> list[Path]:
    """The files with the scores that a part of a log belongs to."""
    return [row for reader in readers for row in reader.rows_of(path)]


@dataclass(frozen=True, eq=False, kw_only=True)
class LoggedBenchmark:
    """Rows that the readers of benchmarks take, and what could not be made one.

    n_again   items that further logs hold as well
    without   (log, items in it whose question is not told apart from the prompt)
    """

    rows: tuple[dict[str, object], ...]
    n_again: int
    without: tuple[tuple[str, int], ...]


def benchmark_of(logs: Sequence[Log]) -> LoggedBenchmark:
    """All items that the logs hold, each once under its benchmark.

    Raises LogError when there are none, and for one id with two texts in a benchmark.
    """
    by_key: dict[tuple[str, str], None] = {}
    by_id: dict[tuple[str, str, str], str] = {}
    rows: list[dict[str, object]] = []
    n_again = 0
    without: Counter[str] = Counter()
    for log in logs:
        benchmark = log.benchmark if log.names_benchmark else ""
        own: set[str] = set()
        for item in log.items:
            if item.question is None or not item.question.strip():
                without[log.path] += 1
                continue
            key = item.content_key
            # Two equal items of one log are two items of the benchmark: it holds duplicates.
            if (benchmark, key) in by_key and key not in own:
                n_again += 1
                continue
            own.add(key)
            by_key[benchmark, key] = None
            name = (benchmark, log.split or "", item.item_id)
            if name in by_id:
                hint = "two versions, or two tools that count differently: take one at a time"
                facts = item.item_id, Public(benchmark), Place(by_id[name])
                raise log.fault("item {} of {} has another text in {}", *facts, hint=hint)
            by_id[name] = log.path
            rows.append(_row(item, benchmark, log.split))
    if not rows:
        hint = (
            "lm-eval samples, Inspect, HELM and OLMES logs hold the items, and tables with a "
            "column for the question (--columns question=COLUMN)"
        )
        raise LogError("these logs hold no items, only prompts or numbers", hint=hint)
    return LoggedBenchmark(rows=tuple(rows), n_again=n_again, without=tuple(without.items()))


def write_items(rows: Iterable[dict[str, object]], path: Path, *, overwrite: bool = False) -> None:
    """Write JSON lines, whole or not at all; OutputError when that cannot be done."""
    write_file(path, b"".join(orjson.dumps(row) + b"\n" for row in rows), overwrite=overwrite)


def _row(item: LoggedItem, benchmark: str, split: str | None) -> dict[str, object]:
    found = {
        # A table without ids names its items by their questions: readers make them an id.
        "id": item.item_id if item.item_id != item.question else None,
        "benchmark": benchmark,
        "split": split,
        "passage": item.passage,
        "question": item.question,
        "choices": list(item.choices) if item.choices else None,
        "answer": item.answer,
    }
    return {name: value for name, value in found.items() if value}
