"""Walk files, folders and globs, and select the corpus files."""

from __future__ import annotations

import glob
import os
import re
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from contam.corpus.formats.base import head_of
from contam.corpus.formats.plain import TEXTS
from contam.corpus.formats.registry import (
    NAMED,
    TITLES,
    UNFINISHED,
    by_guess,
    by_magic,
    by_suffix,
    is_unfinished,
)
from contam.corpus.formats.token_file import TokenFile, lacks_ids
from contam.corpus.outputs import written_by_contam
from contam.errors import ASK_STORE_LATER, CorpusError, Place, Plain, Public, Statement, UsageError
from contam.files.addresses import Address, checked, is_address
from contam.files.bundles import LEAST, Bundle, bundles_in
from contam.files.listed import LFS_FACT, LFS_HEAD
from contam.files.natural_order import natural_key
from contam.files.single import irregular
from contam.files.stores import RefusedError, lacks_bucket, store_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from contam.corpus.formats.base import CorpusFormat


# Hidden, but holds the unfinished files of a download into the folder.
_DOWNLOADS = ".cache"

_UNSURE = "{} beside shards"
#: Files that tell of the token ids beside them.
_BESIDE = (".idx", ".ds.index", ".ds.metadata", ".ds.loss")


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A corpus file, the argument it came from, and its name relative to that argument.

    also  names of other links to the same file
    """

    path: PurePath
    argument: PurePath
    name: str
    format: str
    also: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file in a folder that is no shard, and why; `ours` when contam wrote it.

    folder  its name in reports where it is a folder that was passed over although it holds files
            that would be shards; "" for a file
    """

    path: PurePath
    reason: str
    ours: bool = False
    folder: str = ""


def list_files(
    paths: Sequence[str | Path], *, bundle: bool = False
) -> tuple[list[ListedFile], tuple[Skipped, ...]]:
    """Expand arguments into corpus files, each once, and the files and folders left out.

    A file is the same by whichever link it is reached: it is read by the one whose name tells its
    format.

    bundle  whether small files of text in a folder with many are listed together; not where a path
            is no folder, since it may name one of them

    Raises CorpusError for a path that does not exist, a glob without a match, a file of a
    format nobody here reads, a pipe or device, and a folder that cannot be listed; UsageError for
    an empty path.
    """
    found: dict[PurePath, ListedFile] = {}
    skipped: dict[PurePath, Skipped] = {}
    seen = _Seen({}, {}, {}, bundle=bundle and all(map(_is_folder, paths)))
    below: dict[PurePath, set[int | None]] = {}
    for number, given in enumerate(paths):
        for path, name, argument, named in _expand(given, seen):
            kind = TEXTS if path in seen.bundles else _format(path, named=named)
            if isinstance(path, Path) and path in seen.own and not named:
                kind = Skipped(path, seen.own[path], ours=True)
            if isinstance(kind, Skipped):
                skipped[path] = kind
                continue
            below.setdefault(path, set()).add(None if named else number)
            entry = ListedFile(path, argument, _told(name), kind.name)
            known = found.get(path)
            # Reached twice: the longer name is kept, whatever the order of the arguments.
            if known is None or (len(entry.name), entry.name) > (len(known.name), known.name):
                found[path] = entry
    for path in _notes(found, below):
        title = NAMED[found.pop(path).format].title
        skipped[path] = Skipped(path, _UNSURE.format(title))
    same: dict[PurePath | tuple[int, int, int], PurePath] = {}
    for path in sorted(
        found,
        key=lambda path: (path not in seen.bundles, by_suffix(path.name) is None, *_by_parts(path)),
    ):
        first = same.setdefault(seen.place_of(path), path)
        if first != path:
            kept = found[first]
            skipped[path] = Skipped(path, f"the same file as {kept.name}")
            found[first] = replace(kept, also=(*kept.also, found.pop(path).name))
    for path in found:
        skipped.pop(path, None)
    for folder, name in seen.passed_over(same.keys()).items():
        reason = f"its name begins with {'a dot' if folder.name.startswith('.') else '_'}"
        skipped[folder] = Skipped(folder, reason, folder=_told(name))
    ordered = [found[path] for path in sorted(found, key=_by_parts)]
    return ordered, tuple(skipped[path] for path in sorted(skipped, key=_by_parts))


def _notes(
    found: Mapping[PurePath, ListedFile], below: Mapping[PurePath, set[int | None]]
) -> list[PurePath]:
    """Files that tell of the shards they stand beside, unless they are shards like them.

    below  the numbers of the arguments that each file was met below; None: it was named itself
    """
    unsure = [path for path in found if not NAMED[found[path].format].is_sure(path)]
    sure: dict[int | None, set[str]] = {}
    for path in found.keys() - unsure:
        for number in below[path] - {None}:
            sure.setdefault(number, set()).add(found[path].format)
    return [
        path
        for path in unsure
        if all(number in sure and found[path].format not in sure[number] for number in below[path])
    ]


def file_at(path: PurePath) -> PurePath | tuple[int, int, int]:
    """What a file has in common with every other path that leads to it."""
    if isinstance(path, Address):
        return path
    try:
        state = os.stat(path)  # noqa: PTH116 - a path object costs as much as the call
    except OSError:
        return path  # reading it will report it
    # File systems over a network may give one number to many files, but then these have no links.
    if state.st_nlink > 1:
        return state.st_dev, state.st_ino, state.st_mtime_ns
    return Path(os.path.realpath(path))


def refuse_left_out(skipped: Sequence[Skipped], columns: Mapping[str, str] | None) -> None:
    """Raise CorpusError for a file that may hold token ids and was left out, if ids are wanted."""
    for one in skipped if "tokenizer" in (columns or {}) else ():
        if one.reason == _UNSURE.format(TokenFile.title):
            raise CorpusError(
                "{} may hold token ids, but stands among shards of another format",
                Place(one.path), hint="name the files of token ids instead of their folder",
            )  # fmt: skip


def passed_over(skipped: Sequence[Skipped]) -> tuple[str, ...]:
    """Names of the folders among what was left out."""
    return tuple(sorted({entry.folder for entry in skipped if entry.folder}, key=natural_key))


def _by_parts(path: PurePath) -> tuple[bool, tuple[str, ...]]:
    return isinstance(path, Address), path.parts


@dataclass(frozen=True, slots=True)
class _Seen:
    """What was met on the way besides files.

    own      files that contam wrote below the folders, and what they belong to
    aside    folders that were not entered, and their names in reports
    objects  objects in such folders, each with its folder and that folder's name
    bundle   whether small files are listed together, and what was, by path
    """

    own: dict[Path, str]
    aside: dict[Path, str]
    objects: dict[Address, tuple[Address, str]]
    bundle: bool = False
    bundles: dict[Path, Bundle] = field(default_factory=dict)

    def bundled(self, folder: Path, files: list[str]) -> Iterator[Path]:
        """The bundles of a folder, and its files that are in none."""
        found = []
        if self.bundle and len(files) >= LEAST and folder not in {one.parent for one in self.own}:
            found = bundles_in(str(folder))
        inside = {name for one in found for name in one.names()}
        for one in found:
            self.bundles[Path(one.path)] = one
            yield Path(one.path)
        for name in sorted(name for name in files if name not in inside):
            yield folder / name

    def place_of(self, path: PurePath) -> PurePath | tuple[int, int, int]:
        """What `file_at` gives; for a link to a file of a bundle, that bundle."""
        place = file_at(path)
        if path in self.bundles:
            return Path(os.path.realpath(path))
        if isinstance(place, Path) and place != path:
            for other, bundle in self.bundles.items():
                inside = bundle.first <= place.name <= bundle.last
                if inside and Path(os.path.realpath(bundle.folder)) == place.parent:
                    return Path(os.path.realpath(other)) if place.name in bundle.names() else place
        return place

    def passed_over(self, read: Collection[PurePath | tuple[int, int, int]]) -> dict[PurePath, str]:
        """The folders with files that would be shards and are not among those that are read."""
        found: dict[PurePath, str] = {
            folder: name
            for folder, name in self.aside.items()
            if any(file_at(path) not in read for path in _would_be_shards(folder))
        }
        for one, (folder, name) in self.objects.items():
            if by_suffix(one.name) and one not in read:
                found[folder] = name
        return found


def _would_be_shards(folder: Path) -> Iterator[Path]:
    """Files in a folder that was not entered; the folder itself where it cannot be listed."""
    closed: list[OSError] = []
    for root, _, files in os.walk(folder, onerror=closed.append):
        for path in (Path(root, name) for name in files):
            try:
                kind = _format(path, named=False)
            except CorpusError:
                continue  # a pipe or a device
            arrives = kind is UNFINISHED and folder.name == _DOWNLOADS
            if not (isinstance(kind, Skipped) or arrives) and kind.is_sure(path):
                yield path
    yield from (folder for _ in closed)


def _told(name: str) -> str:
    """A name as tables can hold it: in UTF-8."""
    return os.fsencode(name).decode(errors="backslashreplace")


def _expand(given: str | Path, seen: _Seen) -> Iterator[tuple[PurePath, str, PurePath, bool]]:
    """Yield (absolute path, name, argument, whether the user named this very file)."""
    if not str(given):
        # Path("") is the current folder; an unset shell variable must not mean all that lies there.
        raise UsageError("a corpus path is empty", hint="check the variable it came from")
    if is_address(given):
        yield from expand_address(given, seen.objects)
        return
    try:
        path = _absolute(Path(given).expanduser())
        kind = "folder" if path.is_dir() else "file" if path.exists() else ""
    except (OSError, RuntimeError) as error:  # a closed folder on the way, a name too long, ~nobody
        reason = Plain(error.strerror if isinstance(error, OSError) else error)
        raise CorpusError(
            "{}: cannot be reached: {}", Place(given), reason, hint="check the path and its rights"
        ).of_call() from error
    if kind == "folder":
        for file in _walk(path, path, seen):
            yield file, file.relative_to(path).as_posix(), path, False
    elif kind == "file":
        yield path, path.name, path.parent, True
    elif is_pattern(str(given)):
        yield from _expand_glob(path, seen)
    else:
        raise CorpusError(
            "{}: no such file or folder",
            Place(given),
            hint="check the path; globs need quotes in a shell",
        ).of_call()


def _absolute(path: Path) -> Path:
    # Links stay as they are: in download caches the link has the name and the suffix, its target
    # neither.
    return Path(os.path.normpath(path.absolute()))


def _expand_glob(pattern: Path, seen: _Seen) -> Iterator[tuple[PurePath, str, PurePath, bool]]:
    depth = next(i for i, part in enumerate(pattern.parts) if is_pattern(part))
    base = Path(*pattern.parts[:depth])
    matches = sorted(base.glob(str(Path(*pattern.parts[depth:]))))
    if not matches:
        raise CorpusError("{}: no file matches", pattern, hint="check the pattern").of_call()
    for folder in {path.parent for path in matches}:
        seen.own.update(written_by_contam(folder))
    for path in matches:
        files = _walk(path, base, seen) if path.is_dir() else (path,)
        for file in files:
            yield file, file.relative_to(base).as_posix(), base, False


def _walk(folder: Path, base: Path, seen: _Seen) -> Iterator[Path]:
    def refuse(error: OSError) -> None:
        raise CorpusError(
            "{}: the folder cannot be listed: {}", Place(error.filename), Plain(error.strerror),
            hint="check its owner and mode",
        ) from error  # fmt: skip

    visited: set[str] = set()
    for root, folders, files in os.walk(folder, onerror=refuse, followlinks=True):
        real = os.path.realpath(root)
        if real in visited:
            folders.clear()
            continue
        visited.add(real)
        seen.own.update(written_by_contam(Path(root)))
        if _DOWNLOADS in folders:
            yield from _arriving(Path(root, _DOWNLOADS))
        for path in (Path(root, name) for name in folders if is_aside(name)):
            seen.aside[path] = path.relative_to(base).as_posix()
        folders[:] = sorted(name for name in folders if not is_aside(name))
        yield from seen.bundled(Path(root), files)


def _arriving(folder: Path) -> Iterator[Path]:
    files = (Path(root, name) for root, _, names in os.walk(folder) for name in names)
    yield from sorted(path for path in files if path.name.lower().endswith(UNFINISHED.suffixes))


def _format(path: PurePath, *, named: bool) -> CorpusFormat | Skipped:
    lowered = path.name.lower()
    kind = by_suffix(lowered)
    fact = "" if isinstance(path, Address) else irregular(Path(path))
    if fact and (named or kind):
        raise CorpusError(
            "{}: {}",
            path,
            Public(fact),
            hint="files are read more than once: write it to a file first, and name that",
        )
    if named:
        return kind or _named_format(path)
    if is_unfinished(lowered) or lacks_ids(path):
        return UNFINISHED
    if lowered.startswith((".", "_")):
        return Skipped(path, "hidden" if lowered.startswith(".") else "starts with _")
    if lowered.endswith(".lock"):
        return Skipped(path, "lock file")
    if reason := fact or (kind.no_shard(path) if kind else ""):
        return Skipped(path, reason)
    reason = "beside token ids" if lowered.endswith(_BESIDE) else "unsupported format"
    return kind or by_magic(head_of(path)) or Skipped(path, reason)


def _named_format(path: PurePath) -> CorpusFormat:
    head = head_of(path)
    kind = by_guess(head)
    if kind is not None:
        return kind
    if head.startswith(LFS_HEAD):
        raise CorpusError(
            "{}: {}",
            path,
            Public(LFS_FACT),
            hint="fetch the file: run `git lfs pull` in its repository",
        )
    raise CorpusError("{}: not a corpus format", path, hint=Statement("give {} files", TITLES))


def _is_folder(given: str | Path) -> bool:
    return not is_address(given) and os.path.isdir(os.path.expanduser(given))  # noqa: PTH111, PTH112 - a path object would raise for some


def is_pattern(text: str) -> bool:
    """Whether a text has the wildcards of a glob."""
    return glob.has_magic(text)


def is_aside(folder: str) -> bool:
    """Whether tools keep things of their own in a folder of this name: `.git`, `_temporary`.

    A partition is none of them: `_year=2024`.
    """
    return folder.startswith(".") or (folder.startswith("_") and "=" not in folder)


def expand_address(
    given: object, aside: dict[Address, tuple[Address, str]] | None = None
) -> Iterator[tuple[Address, str, Address, bool]]:
    """Yield (address, name, argument, whether the user named this very object), as for files.

    aside  gets the objects that were left out because they lie in a folder that is aside, each with
           that folder and its name
    Raises UsageError and CorpusError.
    """
    address = checked(given)
    try:
        # A revision may move while it is read: from here on the address names its commit.
        address = store_of(address).pinned(address)
        kind = "folder" if str(given).endswith("/") else store_of(address).look(address)
        if kind == "file":
            yield address, address.name, address.parent, True
            return
        if kind == "folder":
            base, listed = address, [(one, 0) for one in store_of(address).below(address)]
        else:
            base, listed = _fitting(address)
        no_bucket = not listed and lacks_bucket(address)
    except FileNotFoundError:
        base, listed, no_bucket = address, [], False
    except OSError as error:
        refused = isinstance(error, RefusedError)
        hint = "check the credentials, and what they allow" if refused else ASK_STORE_LATER
        raise CorpusError(
            "{}: cannot be listed: {}", Place(given), Plain(error.strerror or error), hint=hint
        ) from error  # fmt: skip
    if not listed:
        hint = "check the pattern" if is_pattern(str(given)) else "check the path and its rights"
        fact = "{}: there is no such bucket" if no_bucket else "{}: no object is there"
        raise CorpusError(fact, Place(given), hint=hint).of_call()
    for one, n_named in sorted(listed):
        parts = one.relative_to(base).parts
        depth = next((n for n in range(n_named, len(parts) - 1) if is_aside(parts[n])), None)
        if depth is None:
            yield one, "/".join(parts), base, False
        elif aside is not None:
            above = parts[: depth + 1]
            aside[one] = base.joinpath(*above), "/".join(above)


def _fitting(pattern: Address) -> tuple[Address, list[tuple[Address, int]]]:
    """The last folder without a wildcard, and the objects that fit or lie below what fits.

    With each object, how many names below that folder the pattern speaks of.
    """
    parts = pattern.parts
    depth = next((i for i, part in enumerate(parts) if is_pattern(part)), len(parts))
    base = Address(*parts[:depth])
    if depth == len(parts) or depth < len(pattern.root.parts):
        return base, []
    fits = re.compile("".join(map(_expression, parts[depth:])))
    found = []
    for one in store_of(base).below(base):
        name = "/".join(one.relative_to(base).parts) + "/"
        if fit := fits.match(name):
            found.append((one, fit[0].count("/")))
    return base, found


def _expression(part: str) -> str:
    """The regular expression of a part of a pattern, for names with a slash behind each part."""
    if part == "**":
        return "(?:[^/]+/)*"
    tokens = re.findall(r"\[!?[^]]+\]|.", part, re.DOTALL)
    return "".join(_token(token) for token in tokens) + "/"


def _token(token: str) -> str:
    if len(token) > 1:
        inner = token[1:-1].replace("\\", r"\\")
        return f"[^/{inner[1:]}]" if inner.startswith("!") else f"[{inner}]"
    return {"*": "[^/]*", "?": "[^/]"}.get(token, re.escape(token))
