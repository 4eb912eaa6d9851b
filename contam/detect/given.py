"""Take rows and tables of a Python caller where a path could stand."""

from __future__ import annotations

import contextlib
import glob
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import orjson

from contam.benchmark.paths import BenchmarkFile, Naming, name_in
from contam.errors import Plain, UsageError
from contam.files.listed import state_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from contam.corpus.shards import Shard

    PathLike: TypeAlias = str | Path
    Rows: TypeAlias = Sequence[Mapping[str, object]]

_WAYS: Final = (
    "give paths, a list of dictionaries, or a table: Arrow, pandas, Polars (of a query that was not"
    " carried out yet, what its .collect() returns), datasets"
)
_GIVE_ROWS: Final = "a row is a dictionary: the key `text` for a document, `question` for an item"


#: One path, several, rows as dictionaries, a table, tables by name, or several paths and tables.
Source: TypeAlias = Any

IN_MEMORY: Final = "memory:"
"""How a name begins in records and messages that is no path."""

_LONGEST_NAME: Final = 255
_WORDS_OF_TEXT: Final = 6
_TABLE_MARKS: Final = ("__arrow_c_stream__", "__arrow_c_array__", "to_arrow", "with_format")


def as_list(paths: PathLike | Sequence[PathLike]) -> list[PathLike]:
    """One path, or several, as a list."""
    return [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)


@dataclass(frozen=True, slots=True)
class _Table:
    """Rows or a table, and what the caller or the table itself calls it."""

    content: Any
    name: str
    split: str

    @property
    def called(self) -> str:
        return f"{self.name}/{self.split}" if self.split else self.name

    def as_json(self) -> list[bytes] | None:
        """Each row as JSON, None for a table."""
        return None if is_table(self.content) else _json_rows(self.content, self.called)

    def as_parquet(self) -> bytes:
        # Here, not above: rows need no table library.
        from contam.tables.frames import parquet_bytes

        return parquet_bytes(self.content, self.called)


def is_table(given: object) -> bool:
    """Whether an object is a table of another package; nothing is imported to know it."""
    # Asked of the type: columns of a pandas frame are attributes of the frame.
    return any(hasattr(type(given), mark) for mark in _TABLE_MARKS)


def given_benchmark(given: Source, name: str | None = None) -> list[PathLike | BenchmarkFile]:
    """Paths as they are, and tables as files in memory. Raises UsageError.

    name  of a table that has none; None calls it "items"
    """
    return [
        _benchmark_file(entry) if isinstance(entry, _Table) else entry
        for entry in _given(given, name or "items", "benchmark")
    ]


def _benchmark_file(table: _Table) -> BenchmarkFile:
    rows = table.as_json()
    return BenchmarkFile(
        Path(IN_MEMORY + table.called),
        "parquet" if rows is None else "json",
        Naming(table.name, table.split, split_sure=bool(table.split)),
        explicit=True,
        data=table.as_parquet() if rows is None else b"[%b]" % b",".join(rows),
    )


@contextlib.contextmanager
def given_corpus(given: Source) -> Iterator[tuple[list[PathLike], list[Shard]]]:
    """Paths as they are, and tables as shards, which are there while the block runs.

    Raises UsageError. Shards are files of a temporary folder that nobody else can read.
    """
    # Here, not above: who judges items alone need not load what reads a corpus.
    from contam.corpus.shards import Shard

    found = _given(given, "documents", "corpus")
    tables = [entry for entry in found if isinstance(entry, _Table)]
    paths = [entry for entry in found if not isinstance(entry, _Table)]
    with contextlib.ExitStack() as stack:
        shards: list[Shard] = []
        for number, table in enumerate(tables):
            if not shards:
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="contam-")))
            rows = table.as_json()
            path = folder / str(number)
            path.write_bytes(
                table.as_parquet() if rows is None else b"".join(row + b"\n" for row in rows)
            )
            state = state_at(str(path))
            kind = "parquet" if rows is None else "jsonl"
            shards.append(Shard(str(path), table.called, kind, state.size, state))
        yield paths, shards


def _given(given: Source, unnamed: str, what: str) -> Sequence[PathLike | _Table]:
    if isinstance(given, (str, os.PathLike)):
        return [_entry(given, unnamed, what)]
    if isinstance(given, Mapping):
        found: Sequence[PathLike | _Table] = (
            _splits(given, "", unnamed)
            if _has_splits(given)
            else [table for pair in given.items() for table in _named(*pair, what)]
        )
    elif is_table(given):
        found = [_unnamed(given, unnamed)]
    elif isinstance(given, Iterable) and not isinstance(given, bytes):
        entries = list(given)
        if any(isinstance(entry, Mapping) for entry in entries):
            found = [_Table(entries, unnamed, "")]
        else:
            found = [_entry(entry, unnamed, what) for entry in entries]
    else:
        raise _unfit(given, what)
    called = [entry.called for entry in found if isinstance(entry, _Table)]
    if twice := [name for at, name in enumerate(called) if name in called[:at]]:
        raise UsageError(
            "two tables of the {} are called {}",
            what,
            twice[0],
            hint="give a dictionary of tables by name",
        )
    return found


def _entry(entry: object, unnamed: str, what: str) -> PathLike | _Table:
    if isinstance(entry, str):
        # Hardly a path has a line feed or so many words, and none a longer name.
        longest = max(len(os.fsencode(name)) for name in Path(entry).parts or ("",))
        is_long = longest > _LONGEST_NAME or len(entry.split()) >= _WORDS_OF_TEXT
        if (is_long or "\n" in entry) and not (os.path.lexists(entry) or _matches(entry)):
            raise UsageError(
                "the {} is a list of texts, which are taken as paths", what, hint=_GIVE_ROWS
            )
        return entry
    if isinstance(entry, os.PathLike):
        return Path(entry)
    if is_table(entry):
        return _unnamed(entry, unnamed)
    raise _unfit(entry, what)


def _unnamed(table: Any, unnamed: str) -> _Table:  # noqa: ANN401 - a table of any package
    return _Table(table, _own_name(table) or unnamed, _own_split(table))


def _named(name: object, content: Any, what: str) -> list[_Table]:  # noqa: ANN401 - likewise
    if not (isinstance(name, str) and name.strip() and name.isprintable()):
        raise UsageError("a table of the {} has no printable name", what)
    if _has_splits(content):
        return _splits(content, name, name)
    if is_table(content):
        return [_Table(content, name, _own_split(content))]
    if isinstance(content, list | tuple):
        return [_Table(content, name, "")]
    raise UsageError(
        "{} of the {} is {}, neither a table nor a list of rows",
        name,
        what,
        _kind(content),
        hint=_WAYS,
    )


def _has_splits(given: object) -> bool:
    """Whether it is a `datasets.DatasetDict`: a dictionary of tables by split."""
    return isinstance(given, Mapping) and hasattr(type(given), "with_format")


def _splits(given: Mapping[str, object], name: str, unnamed: str) -> list[_Table]:
    return [
        _Table(table, name or _own_name(table) or unnamed, split) for split, table in given.items()
    ]


def _own_name(table: object) -> str:
    """The name that a `datasets.Dataset` has, "" when it only knew a file format."""
    fields = ("dataset_name", "builder_name", "config_name")
    info = getattr(table, "info", None)
    return name_in({field: getattr(info, field, None) for field in fields})


def _own_split(table: object) -> str:
    split = getattr(table, "split", None) if hasattr(type(table), "with_format") else None
    return str(split) if split else ""


def _json_rows(rows: Rows, called: str) -> list[bytes]:
    found = []
    for number, row in enumerate(rows, 1):
        if not isinstance(row, Mapping):
            raise UsageError(
                "{}, row {} is {}, not a dictionary",
                called,
                number,
                _kind(row),
                hint=_GIVE_ROWS,
            )
        try:
            found.append(orjson.dumps(dict(row), option=orjson.OPT_SERIALIZE_NUMPY))
        except TypeError as error:
            raise UsageError("{}, row {}: {}", called, number, Plain(error)) from error
    if not found:
        raise UsageError("{}: there are no rows", called)
    return found


def _matches(pattern: str) -> bool:
    return glob.has_magic(pattern) and bool(glob.glob(pattern, recursive=True))  # noqa: PTH207 - takes absolute patterns


def _unfit(given: object, what: str) -> UsageError:
    return UsageError("the {} holds {}", what, _kind(given), hint=_WAYS)


def _kind(value: object) -> str:
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeioAEIO' else 'a'} {name}"
