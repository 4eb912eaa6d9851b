"""Walk files, folders and globs, and select the corpus files."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from contam.corpus.formats.base import head_of
from contam.corpus.formats.registry import (
    TITLES,
    UNFINISHED,
    by_guess,
    by_magic,
    by_suffix,
    is_unfinished,
)
from contam.corpus.objects import expand_address, is_pattern
from contam.corpus.outputs import written_by_contam
from contam.errors import CorpusError, Place, Plain, Public, Remedy, UsageError
from contam.files.addresses import Address, is_address
from contam.files.lfs import LFS_FACT, LFS_HEAD
from contam.files.single import irregular

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from contam.corpus.formats.base import CorpusFormat

# Hidden, but holds the unfinished files of a download into the folder.
_DOWNLOADS = ".cache"


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A corpus file, the argument it came from, and its name relative to that argument."""

    path: PurePath
    argument: PurePath
    name: str
    format: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file in a folder that is no shard, and why; `ours` when contam wrote it."""

    path: PurePath
    reason: str
    ours: bool = False


def list_files(paths: Sequence[str | Path]) -> tuple[list[ListedFile], tuple[Skipped, ...]]:
    """Expand arguments into corpus files, each once, and the files left out.

    Raises CorpusError for a path that does not exist, a glob without a match, a file of a format
    nobody here reads, a pipe or device, and a folder that cannot be listed; UsageError for an empty
    path.
    """
    found: dict[PurePath, ListedFile] = {}
    skipped: dict[PurePath, Skipped] = {}
    own: dict[Path, str] = {}
    for given in paths:
        for path, name, argument, named in _expand(given, own):
            kind = _format(path, named=named)
            if isinstance(path, Path) and path in own and not named:
                kind = Skipped(path, own[path], ours=True)
            if isinstance(kind, Skipped):
                skipped[path] = kind
                continue
            # A name that is no UTF-8 could not be written into any table.
            entry = ListedFile(
                path, argument, os.fsencode(name).decode(errors="backslashreplace"), kind.name
            )
            known = found.get(path)
            # Reached twice: the longer name is kept, whatever the order of the arguments.
            if known is None or (len(entry.name), entry.name) > (len(known.name), known.name):
                found[path] = entry
    for path in found:
        skipped.pop(path, None)
    ordered = [found[path] for path in sorted(found, key=_by_parts)]
    return ordered, tuple(skipped[path] for path in sorted(skipped, key=_by_parts))


def _by_parts(path: PurePath) -> tuple[bool, tuple[str, ...]]:
    return isinstance(path, Address), path.parts


def _expand(
    given: str | Path, own: dict[Path, str]
) -> Iterator[tuple[PurePath, str, PurePath, bool]]:
    """Yield (absolute path, name, argument, whether the user named this very file).

    own  gets the files that contam wrote below the folders, and what they belong to
    """
    if not str(given):
        # Path("") is the current folder; an unset shell variable must not mean all that lies there.
        raise UsageError("a corpus path is empty", remedy=Remedy.CHECK_VARIABLE)
    if is_address(given):
        yield from expand_address(given)
        return
    try:
        path = _absolute(Path(given).expanduser())
        kind = "folder" if path.is_dir() else "file" if path.exists() else ""
    except (OSError, RuntimeError) as error:  # a closed folder on the way, a name too long, ~nobody
        reason = Plain(error.strerror if isinstance(error, OSError) else error)
        raise CorpusError(
            "{}: cannot be reached: {}", Place(given), reason, remedy=Remedy.CHECK_PATH_AND_RIGHTS
        ).of_call() from error
    if kind == "folder":
        for file in _walk(path, own):
            yield file, file.relative_to(path).as_posix(), path, False
    elif kind == "file":
        yield path, path.name, path.parent, True
    elif is_pattern(str(given)):
        yield from _expand_glob(path, own)
    else:
        raise CorpusError(
            "{}: no such file or folder", Place(given), remedy=Remedy.CHECK_PATH_OR_QUOTE_GLOB
        ).of_call()


def _absolute(path: Path) -> Path:
    # Links stay as they are: in download caches the link has the name and the suffix, its target
    # neither.
    return Path(os.path.normpath(path.absolute()))


def _expand_glob(
    pattern: Path, own: dict[Path, str]
) -> Iterator[tuple[PurePath, str, PurePath, bool]]:
    depth = next(i for i, part in enumerate(pattern.parts) if is_pattern(part))
    base = Path(*pattern.parts[:depth])
    matches = sorted(base.glob(str(Path(*pattern.parts[depth:]))))
    if not matches:
        raise CorpusError("{}: no file matches", pattern, remedy=Remedy.CHECK_PATTERN).of_call()
    for folder in {path.parent for path in matches}:
        own.update(written_by_contam(folder))
    for path in matches:
        files = _walk(path, own) if path.is_dir() else (path,)
        for file in files:
            yield file, file.relative_to(base).as_posix(), base, False


def _walk(folder: Path, own: dict[Path, str]) -> Iterator[Path]:
    def refuse(error: OSError) -> None:
        raise CorpusError(
            "{}: the folder cannot be listed: {}", Place(error.filename), Plain(error.strerror),
            remedy=Remedy.CHECK_OWNER_AND_MODE,
        ) from error  # fmt: skip

    visited: set[tuple[int, int]] = set()
    for root, folders, files in os.walk(folder, onerror=refuse, followlinks=True):
        status = Path(root).stat()
        if (status.st_dev, status.st_ino) in visited:
            folders.clear()
            continue
        visited.add((status.st_dev, status.st_ino))
        own.update(written_by_contam(Path(root)))
        if _DOWNLOADS in folders:
            yield from _arriving(Path(root, _DOWNLOADS))
        folders[:] = sorted(name for name in folders if not name.startswith((".", "_")))
        for name in sorted(files):
            yield Path(root, name)


def _arriving(folder: Path) -> Iterator[Path]:
    files = (Path(root, name) for root, _, names in os.walk(folder) for name in names)
    yield from sorted(path for path in files if path.name.lower().endswith(UNFINISHED.suffixes))


def _format(path: PurePath, *, named: bool) -> CorpusFormat | Skipped:
    lowered = path.name.lower()
    kind = by_suffix(lowered)
    fact = "" if isinstance(path, Address) else irregular(Path(path))
    if fact and (named or kind):
        raise CorpusError("{}: {}", path, Public(fact), remedy=Remedy.WRITE_TO_FILE_FIRST)
    if named:
        return kind or _named_format(path)
    if is_unfinished(lowered):
        return UNFINISHED
    if lowered.startswith((".", "_")):
        return Skipped(path, "hidden" if lowered.startswith(".") else "starts with _")
    if lowered.endswith(".lock"):
        return Skipped(path, "lock file")
    if reason := fact or (kind.no_shard(path) if kind else ""):
        return Skipped(path, reason)
    return kind or by_magic(head_of(path)) or Skipped(path, "unsupported format")


def _named_format(path: PurePath) -> CorpusFormat:
    head = head_of(path)
    kind = by_guess(head)
    if kind is not None:
        return kind
    if head.startswith(LFS_HEAD):
        raise CorpusError("{}: {}", path, Public(LFS_FACT), remedy=Remedy.RUN_GIT_LFS_PULL)
    raise CorpusError(
        "{}: not a corpus format", path, remedy=Remedy.GIVE_FILES_OF_FORMAT(formats=TITLES)
    )
