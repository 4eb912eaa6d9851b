"""Turn names that `--benchmark` takes into files: of the catalogue, or of an evaluator's task.

`gsm8k`, `mgsm:de` (a configuration), `gsm8k@COMMIT`, `musr=PATH` (a local copy), several between
commas, `all` (all that are public), `lm-eval:TASK` and `inspect:PACKAGE/TASK`. A path that exists
is a path before it is a name.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Final

import orjson

from contam.benchmark import catalogue
from contam.benchmark.catalogue import EVERY, Entry
from contam.benchmark.items import SkippedRow
from contam.benchmark.paths import SPLITS, BenchmarkFile, Naming, find_sources, format_of, stem_of
from contam.errors import BenchmarkError, Names, Place, Public, Statement
from contam.files.addresses import is_address

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_ALL: Final = "all"
_NAME: Final = re.compile(
    r"(?P<name>[\w-]+(?:/[\w.-]+)?)(?::(?P<config>[^@,=]+))?(?:@(?P<revision>[\w./-]+))?"
)
_TASK: Final = re.compile(r"(?P<tool>lm-eval|inspect):(?P<task>[^,]+)")
#: One of several files in a folder of the branch of converted data sets.
_NUMBERED: Final = re.compile(r"(\d+)\.parquet")


@dataclass(frozen=True, slots=True)
class Named:
    """One benchmark that was asked for by name.

    entry     of the catalogue; None for a task of an evaluator, which `tool` and `task` name
    revision  in the place of the entry's, "" for that;  copy  path of a local copy, "" for none
    """

    entry: Entry | None = None
    revision: str = ""
    copy: str = ""
    tool: str = ""
    task: str = ""

    def __str__(self) -> str:
        return self.entry.name if self.entry else f"{self.tool}:{self.task}"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a call asks for: benchmarks by name, each once, and paths.

    gated  names of public lists that `all` leaves out;  tolerant  whether what cannot be had is
           skipped, which is said, because nobody named it
    """

    named: tuple[Named, ...]
    paths: tuple[str | Path | BenchmarkFile, ...]
    gated: tuple[str, ...] = ()
    tolerant: bool = False


def asked_for(given: Iterable[str | Path | BenchmarkFile]) -> Asked:
    """Sort what is given into names and paths. BenchmarkError for a name among others not known."""
    named: dict[Named, None] = {}
    paths: list[str | Path | BenchmarkFile] = []
    gated: tuple[str, ...] = ()
    tolerant = False
    for one in given:
        if _is_path(one):
            paths.append(one)
        elif one == _ALL:
            known = catalogue.entries().values()
            named |= {Named(entry): None for entry in known if not entry.gated}
            gated, tolerant = tuple(entry.name for entry in known if entry.gated), True
        elif found := _named(str(one)):
            named |= dict.fromkeys(found)
        else:
            paths.append(one)
    return Asked(tuple(named), tuple(paths), gated, tolerant)


def gated_among(given: Iterable[str | Path | BenchmarkFile]) -> list[str]:
    """Those of which texts may not be passed on: results leave the items' texts out."""
    return [one.entry.name for one in asked_for(given).named if one.entry and one.entry.gated]


def is_name(given: str) -> bool:
    """Whether a text asks for benchmarks by name."""
    return not _is_path(given) and (given == _ALL or bool(_named(given)))


def is_of_catalogue(given: str) -> bool:
    """Whether a text is one name of the catalogue, and neither a copy's, a task's nor a path."""
    asked = asked_for([given])
    return len(asked.named) == 1 and bool(asked.named[0].entry) and not asked.named[0].copy


def _is_path(given: object) -> bool:
    if not isinstance(given, str) or not given or is_address(given):
        return True
    try:
        return Path(given).exists()
    except OSError:
        return True


def _named(text: str) -> list[Named]:
    """The benchmarks that a text names; [] where it begins with no name."""
    if task := _TASK.fullmatch(text):
        return [Named(tool=task["tool"], task=task["task"])]
    name, equals, copy = text.partition("=")
    if equals:
        entry = catalogue.find(name)
        return [Named(entry, copy=copy)] if entry and copy else []
    found: list[Named] = []
    for piece in map(str.strip, text.split(",")):
        match = _NAME.fullmatch(piece)
        entry = catalogue.find(match["name"]) if match else None
        if match is None or entry is None:
            if not found:
                return []
            raise BenchmarkError(
                "no benchmark is called {!r}", Public(piece), hint=catalogue.ways(piece)
            )
        if match["config"]:
            entry = replace(entry, configurations=(match["config"],))
        found.append(Named(entry, match["revision"] or ""))
    return found


def sources_of(
    named: Named, split: str | None, include: Sequence[str]
) -> tuple[list[BenchmarkFile], list[SkippedRow]]:
    """The files of one benchmark, and files of a copy that were skipped.

    split    takes this one in the place of those of the entry
    include  folders of tasks of one's own for lm-evaluation-harness

    Raises BenchmarkError with a way to bring the data, or MissingExtraError.
    """
    entry = named.entry
    if entry is None:
        return _of_task(named, split, include), []
    if split:
        entry = replace(entry, splits=(split,))
    if named.copy:
        return _of_copy(entry, named.copy)
    return _of_hub(entry, named.revision or entry.revision), []


def _of_task(named: Named, split: str | None, include: Sequence[str]) -> list[BenchmarkFile]:
    """Items of an evaluator's tasks, as files in memory."""
    # Here, not above: they belong to extras.
    if named.tool == "inspect":
        from contam.harness import inspect_task

        found = [inspect_task(named.task)]
    else:
        from contam.harness import lm_eval_tasks

        found = lm_eval_tasks(named.task, include)
    return [
        BenchmarkFile(
            path=Path(f"{named.tool}:{task.name}"),
            family="json",
            naming=Naming(task.name, task.split or split or "", split_sure=bool(task.split)),
            explicit=True,
            data=b"\n".join(orjson.dumps(row, default=str) for row in task.rows),
        )
        for task in found
    ]


def _of_hub(entry: Entry, revision: str) -> list[BenchmarkFile]:
    # Here, not above: it loads the client, which those who bring files do without.
    from contam.files.hub import copied

    patterns = entry.files or [
        f"{config}/{part}/*.parquet" for config in entry.configurations for part in entry.splits
    ]
    try:
        found = copied(entry.dataset, revision, patterns)
    except OSError as error:
        raise _not_had(entry, revision, patterns, error) from error
    places = {name: _place(entry, name) for name in found.paths}
    there = {(config, part) for config, part in places.values()}
    _refuse_gaps(entry, found.paths)
    _refuse_missing(entry, there, found.names)
    several = len({config for config, _ in there}) > 1
    return [
        BenchmarkFile(
            path=found.paths[name],
            family=format_of(Path(name)),
            naming=Naming(entry.name, part, split_sure=bool(part)),
            explicit=True,
            entry=entry,
            config=config if several else "",
            address=f"hf://datasets/{entry.dataset}@{found.commit}/{name}",
        )
        for name, (config, part) in places.items()
    ]


def _place(entry: Entry, name: str) -> tuple[str, str]:
    """Configuration and split of a file."""
    if entry.files:
        return "", entry.splits[0]
    config, part, _ = name.split("/")
    return config, part


def _not_had(
    entry: Entry, revision: str, patterns: Iterable[str], error: OSError
) -> BenchmarkError:
    reason = error.strerror or type(error).__name__
    include = " ".join(f"--include '{pattern}'" for pattern in list(patterns)[:3])
    command = f"hf download {entry.dataset} --repo-type dataset --revision {revision} {include}"
    if entry.gated:
        command = (
            "its owner asks for consent: agree on its page on the Hub, set HF_TOKEN; " + command
        )
    return BenchmarkError(
        "{}: cannot have the data set {}: {}",
        Public(entry.name), Public(entry.dataset), Public(reason),
        hint=Statement(
            "{}; or name a copy: --benchmark {}=PATH", Public(command), Public(entry.name)
        ),
    )  # fmt: skip


def _refuse_gaps(entry: Entry, names: Iterable[str]) -> None:
    """Numbered files are fetched from the last to the first: a fetch that broke off has a gap."""
    numbers: defaultdict[str, set[int]] = defaultdict(set)
    for name in names:
        folder, _, file = name.rpartition("/")
        if match := _NUMBERED.fullmatch(file):
            numbers[folder].add(int(match[1]))
    for folder, found in numbers.items():
        if len(found) <= max(found):
            raise BenchmarkError(
                "{}: {} of {} files of {} are here", Public(entry.name), len(found), max(found) + 1,
                Public(folder),
                hint="repeat the call with a network",
            )  # fmt: skip


def _refuse_missing(entry: Entry, there: set[tuple[str, str]], names: Iterable[str]) -> None:
    """Raise unless there are files of each configuration and split that the entry names."""
    missing = [] if there else list(entry.files)
    if not entry.files:
        missing = [
            f"{config}/{part}"
            for config in entry.configurations
            for part in entry.splits
            if not any(_is_among([a], [config]) and _is_among([b], [part]) for a, b in there)
        ]
    if missing:
        folders = sorted({name.rpartition("/")[0] or name for name in names})
        raise BenchmarkError(
            "{}: the data set {} has no {}",
            Public(entry.name), Public(entry.dataset), Names(missing),
            hint=Statement("it has {}", Names(folders)),
        )  # fmt: skip


def _of_copy(entry: Entry, path: str) -> tuple[list[BenchmarkFile], list[SkippedRow]]:
    """The files of a local copy.

    Of a folder, those of the entry's configurations and splits, where names of folders and files
    say of what they are; others are said to be skipped.
    """
    found, skipped = find_sources([path])
    others = list(skipped)
    if len(found) > 1 or not found[0].explicit:
        found = tuple(_wanted(entry, found, others))
    if not found:
        raise BenchmarkError(
            "{}: no file in {} is of the split {}",
            Public(entry.name), Place(path), Names(entry.splits),
            hint="--split NAME takes another, and --benchmark NAME=FILE any file",
        )  # fmt: skip
    names = [_configuration(entry, file) for file in found]
    several = len(set(names)) > 1
    return [
        replace(
            file,
            naming=replace(file.naming, benchmark=entry.name, split=_split_of(file, entry)),
            explicit=True,
            entry=entry,
            config=name if several else "",
        )
        for file, name in zip(found, names, strict=True)
    ], others


def _wanted(
    entry: Entry, found: Sequence[BenchmarkFile], others: list[SkippedRow]
) -> Iterator[BenchmarkFile]:
    """Files of the entry's configurations and splits; the rest is added to `others`."""
    if EVERY not in entry.configurations:
        found = [
            file for file in found if _is_among(file.path.parts, entry.configurations)
        ] or found
    for file in found:
        part = _split_of(file, entry)
        if part and not _is_among([part], entry.splits):
            reason = f"of the split {part}, not {' or '.join(entry.splits)}"
        elif entry.files and not _is_among([file.path.name], entry.files):
            reason = f"its name is not like {' or '.join(entry.files)}"
        else:
            yield file
            continue
        others.append(SkippedRow(str(file.path), 0, reason, n_rows=0))


def _split_of(file: BenchmarkFile, entry: Entry) -> str:
    folder = file.path.parent.name
    is_split = folder in SPLITS or _is_among([folder], set(entry.splits) - {EVERY})
    return file.naming.split or (folder if is_split else "")


def _configuration(entry: Entry, file: BenchmarkFile) -> str:
    """What tells a file's rows from those of others: numbered files are parts of one."""
    explicit = [name for name in entry.configurations if name != EVERY]
    folders = [part for part in file.path.parts[:-1] if part in explicit]
    stem = stem_of(file.path)
    return folders[-1] if folders else "" if stem.isdecimal() else stem


def _is_among(names: Iterable[str], patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for name in names for pattern in patterns)
