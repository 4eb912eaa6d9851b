"""What contam knows of benchmarks by name: where their rows are, and which field is which part.

The entries are the TOML files in `entries`, a table for each benchmark.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, replace
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from contam.benchmark.fields import get
from contam.benchmark.mapping import FieldMap, check_mapping, resolve
from contam.errors import Public, Statement

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from contam.benchmark.fields import Row
    from contam.benchmark.items import Benchmark

#: Where the Hub keeps every public data set as Parquet: configuration/split/0000.parquet
CONVERTED: Final = "refs/convert/parquet"
#: Every configuration, or every split, that a data set has.
EVERY: Final = "*"

_MAPPED: Final = ("passage", "question", "choices", "answer", "answer_index", "id")
_UNLIKE: Final = re.compile(r"[\s\-.]+")
#: How the Hub's library calls a folder of its cache.
_CACHED: Final = re.compile(r"datasets--([^/]+?)--([^/]+)")
_FOLDERS_ABOVE: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One benchmark.

    dataset         owner/name on the Hub
    configurations  of the data set, each a part of the benchmark; ("*",) means all
    splits          that are test items; ("*",) means all
    revision        branch of the data set that is read;  files  patterns of its files there, where
                    it has no folders of configurations and splits
    passage to id   fields of a row, written as for `--map`
    only            whether no other field is part of an item, whatever text it has
    first           number by which answers call the first choice, where its name does not tell
    released        month in which it came out, YYYY-MM, "" where not known
    license         SPDX name, "" where not known
    gated           whether its owner asks readers to agree to terms
    tasks           of lm-evaluation-harness that ask it, as patterns
    source          what the fields were taken from;  seen  real rows that were read, "" for none
    """

    name: str
    dataset: str
    splits: tuple[str, ...]
    question: str
    source: str
    configurations: tuple[str, ...] = ("default",)
    revision: str = CONVERTED
    files: tuple[str, ...] = ()
    passage: str = ""
    choices: str = ""
    answer: str = ""
    answer_index: str = ""
    id: str = ""
    only: bool = False
    first: int | None = None
    aliases: tuple[str, ...] = ()
    released: str = ""
    license: str = ""
    gated: bool = False
    canary: str = ""
    tasks: tuple[str, ...] = ()
    seen: str = ""

    @property
    def mapping(self) -> dict[str, str]:
        """Part -> field, as `--map` has it."""
        return {part: getattr(self, part) for part in _MAPPED if getattr(self, part)}

    @property
    def fields(self) -> FieldMap:
        """The same, checked."""
        return replace(check_mapping(self.mapping), first=self.first)

    def left_out(self, columns: Iterable[str]) -> tuple[str, ...]:
        """Those columns of a row of which nothing is read."""
        paths = [resolve(name, columns) for names in self.fields.fields.values() for name in names]
        taken = {path[0] for path in paths}
        return tuple(name for name in columns if name not in taken) if self.only else ()

    def fits(self, row: Row) -> bool:
        """Whether a row has all fields of the entry."""
        paths = [resolve(name, row) for names in self.fields.fields.values() for name in names]
        return all(
            get(row, path) is not None if len(path) > 1 else path[0] in row for path in paths
        )


@cache
def entries() -> Mapping[str, Entry]:
    """All entries by name, in the order of their names."""
    found: dict[str, Entry] = {}
    for file in files(__package__).joinpath("entries").iterdir():
        if file.name.endswith(".toml"):
            tables: dict[str, dict[str, Any]] = tomllib.loads(file.read_text("utf-8"))
            found |= {name: _entry(name, table) for name, table in tables.items()}
    return dict(sorted(found.items()))


def _entry(name: str, table: Mapping[str, Any]) -> Entry:
    values: dict[str, Any] = {
        key: tuple(v) if isinstance(v, list) else v for key, v in table.items()
    }
    return Entry(name=name, **values)


def find(name: str) -> Entry | None:
    """The entry of a name, an alias, or a data set that only one entry has."""
    wanted = _plain(name)
    known = entries()
    if wanted in known:
        return known[wanted]
    of_data_set = [entry for entry in known.values() if entry.dataset.lower() == name.lower()]
    if len(of_data_set) == 1:
        return of_data_set[0]
    return next((entry for entry in known.values() if wanted in entry.aliases), None)


def of_task(name: str) -> Entry | None:
    """The entry of a benchmark or of a task of lm-evaluation-harness; None where several may be."""
    if entry := find(name):
        return entry
    known = entries().values()
    found = [entry for entry in known if name in entry.tasks] or [
        entry for entry in known if any(fnmatchcase(name, pattern) for pattern in entry.tasks)
    ]
    return found[0] if len({entry.released for entry in found}) == 1 else None


def released(benchmark: Benchmark) -> str:
    """First day of the month in which a benchmark that was read by an entry came out, or ""."""
    names = {source.entry for source in benchmark.sources}
    entry = entries().get(names.pop()) if len(names) == 1 else None
    return f"{entry.released}-01" if entry and entry.released else ""


def search(word: str) -> list[Entry]:
    """Entries whose name or an alias has these letters, or whose data set has a word so begun."""
    wanted = _plain(word)
    begins = re.compile(rf"(?:^|[_/]){re.escape(wanted)}")
    return [
        entry
        for entry in entries().values()
        if any(wanted in one for one in (entry.name, *entry.aliases))
        or begins.search(_plain(entry.dataset))
    ]


def close_to(name: str) -> list[str]:
    """Names and aliases that are nearly like this one, best first."""
    known = [*entries(), *(alias for entry in entries().values() for alias in entry.aliases)]
    return get_close_matches(_plain(name), known, 3)


def ways(name: str) -> Statement:
    """What to do where a name, or a path, is not there."""
    close = close_to(name)
    return Statement(
        "check the path{} `contam benchmarks` lists names",
        Public(f", or did you mean {', '.join(close)}?" if close else ";"),
    )


def fitting(path: Path, row: Row) -> Entry | None:
    """The entry by which a local file is to be read: its name or folder and its row both say so.

    None where the nearest name that fits has entries that read the row in different ways.
    """
    for name in _names_of(path):
        found = [entry for entry in _called().get(name, ()) if entry.fits(row)]
        if found:
            readings = {tuple(entry.mapping.items()) for entry in found}
            exact = [entry for entry in found if entry.name == name]
            return (exact or found)[0] if len(readings) == 1 else None
    return None


def _names_of(path: Path) -> Iterator[str]:
    """What a file may be a benchmark's by: its name, and those of the folders above, plain."""
    from contam.benchmark.paths import name_of

    yield _plain(name_of(path).benchmark)
    for folder in path.absolute().parts[-2 : -2 - _FOLDERS_ABOVE : -1]:
        cached = _CACHED.fullmatch(folder)
        yield f"{cached[1]}/{cached[2]}".lower() if cached else _plain(folder)


@cache
def _called() -> dict[str, list[Entry]]:
    """The entries that a file or folder of each name may be."""
    found: dict[str, list[Entry]] = {}
    for entry in entries().values():
        data_set = entry.dataset.lower()
        own = _plain(data_set.rpartition("/")[2])
        for name in {entry.name, *entry.aliases, own, data_set}:
            found.setdefault(name, []).append(entry)
    return found


def _plain(name: str) -> str:
    return _UNLIKE.sub("_", name.strip().lower())
