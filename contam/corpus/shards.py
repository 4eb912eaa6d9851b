"""Find the shards of a corpus among files, folders and globs."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from contam.corpus.formats.plain import LINES, TEXT, TEXTS
from contam.corpus.formats.registry import NAMED, TITLES
from contam.corpus.listing import ListedFile, Skipped, list_files
from contam.corpus.streams import readable
from contam.errors import (
    LET_NOBODY_WRITE,
    CorpusError,
    Names,
    Place,
    ShardError,
    Statement,
    UsageError,
)
from contam.files.addresses import is_address
from contam.files.disk import NOT_THERE, FileState
from contam.files.listed import (
    ListedPath,
    check,
    is_pointer,
    opened,
    pointer_error,
    sharing,
    state_at,
    state_of,
)
from contam.files.natural_order import natural_key

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from contam.corpus.formats.base import CorpusFormat

_CHECK_EXCLUDED: Final = "a pattern is compared with names of shards, of files and of folders"


_EDGE_BYTES = 64 << 10
_MAX_FOOTER_BYTES = 64 << 20
_MAX_LISTED = 20
_MOST_LOOKS = 16


@dataclass(frozen=True, slots=True)
class Shard:
    """One file of a corpus.

    uri         absolute path, or the address of an object
    name        what reports call it: the path below the folder the user gave, unique in the run
    format      the name of its format in `contam.corpus.formats.registry`
    size_bytes  size on disk when it was listed
    state       the state it was in then; None: it is read in whatever state it is in
    also        names of other links to the same file
    """

    uri: str
    name: str
    format: str
    size_bytes: int
    state: FileState | None = field(default=None, compare=False, repr=False)
    also: tuple[str, ...] = field(default=(), compare=False, repr=False)

    @property
    def kind(self) -> CorpusFormat:
        """What reads it."""
        return NAMED[self.format]

    @property
    def path(self) -> str:
        """What readers are given: the place, and the state in which alone it may be read."""
        return self.uri if self.state is None else ListedPath(self.uri, self.state)


def is_excluded(name: str, patterns: Sequence[str]) -> bool:
    """Whether a pattern fits a shard's name, or the name or path of its file or a folder above it.

    In a pattern `*` stands for any characters, `/` among them; capitals count.
    """
    parts = name.split("/")
    names = (name, *parts, *("/".join(parts[:n]) for n in range(2, len(parts))))
    return any(fnmatchcase(one, pattern) for pattern in patterns for one in names)


def is_out(shard: Shard, patterns: Sequence[str]) -> bool:
    """Whether a shard is excluded by all names that it has."""
    return all(is_excluded(name, patterns) for name in _names(shard))


def _names(shard: Shard) -> tuple[str, ...]:
    return shard.name, *shard.also


def leave_out(
    shards: Sequence[Shard], patterns: Sequence[str]
) -> tuple[tuple[Shard, ...], tuple[str, ...]]:
    """The shards that no pattern excludes, and the names of those that are left out on purpose.

    Raises UsageError for an empty pattern or one that fits no shard, CorpusError when none is left.
    """
    for pattern in patterns:
        if not any(is_excluded(one, [pattern]) for shard in shards for one in _names(shard)):
            raise UsageError(
                "{} excludes no shard; shards seen: {}", pattern or "an empty pattern",
                Names([shard.name for shard in shards], _MAX_LISTED),
                hint=_CHECK_EXCLUDED,
            )  # fmt: skip
    out = {shard.name for shard in shards if is_out(shard, patterns)}
    left = tuple(shard for shard in shards if shard.name not in out)
    if shards and not left:
        raise CorpusError(
            "every shard of the corpus is excluded, by {}", Names(patterns),
            hint=_CHECK_EXCLUDED,
        )  # fmt: skip
    gone = tuple(shard.name for shard in shards if shard.name in out)
    return left, gone


def survey(
    paths: Sequence[str | Path], *, look: bool = True, lines: bool = False, bundle: bool = False
) -> tuple[tuple[Shard, ...], tuple[Skipped, ...]]:
    """The shards in files, folders (recursive) and globs, in natural order of their names.

    look  False leaves objects without size and state, for who opens them anyway: each look is a
          request to their store
    lines  whether a document of plain text is a line, not a file
    bundle  whether many small files of text in one folder become one shard

    Also the files in folders that were left out, with reasons. The order and the names do not
    depend on the order of `paths`; a file reached twice is listed once. Raises CorpusError when a
    path does not exist or when no shard is found.
    """
    found, skipped = list_files(paths, bundle=bundle and not lines)
    if not found:
        places = [Place(path) for path in paths] or [Place("no path given")]
        raise CorpusError(
            "no corpus shard found: " + ", ".join(["{}"] * len(places)) + "{}", *places,
            _seen(skipped), hint=Statement("give {} files", TITLES),
        )  # fmt: skip
    if lines:
        found = [
            replace(file, format=LINES.name) if file.format == TEXT.name else file for file in found
        ]
    names = _unique_names(found)
    unlisted = [
        Shard(str(file.path), name, file.format, 0, also=file.also)
        for file, name in zip(found, names, strict=True)
    ]
    # Waiting for a store takes no lock.
    n_looks = _MOST_LOOKS if look and any(is_address(shard.uri) for shard in unlisted) else 1
    with ThreadPoolExecutor(n_looks) as looking:
        shards = list(
            looking.map(
                lambda shard: shard if is_address(shard.uri) and not look else _listed(shard),
                unlisted,
            )
        )
    return tuple(sorted(shards, key=lambda shard: natural_key(shard.name))), skipped


def shard_digest(shard: Shard) -> str:
    """Return a cheap digest of a shard: its size, first 64 KiB, and last 64 KiB or whole footer.

    Enough to notice a shard that was rewritten or cut; not proof against a forger.
    Raises ShardError when the file cannot be read, or is not as it was listed.
    """
    if shard.format == TEXTS.name:
        with errors_named(shard):
            return state_of(shard.path).version
    with readable(shard.name, ()), errors_named(shard), opened(shard.path) as file:
        size = file.seek(0, 2)
        tail = max(_EDGE_BYTES, min(shard.kind.tail_bytes(file, size), _MAX_FOOTER_BYTES))
        digest = hashlib.sha256(size.to_bytes(8, "little"))
        file.seek(0)
        digest.update(file.read(_EDGE_BYTES))
        file.seek(max(0, size - tail))
        digest.update(file.read(tail))
    return f"edges-sha256:{digest.hexdigest()[:32]}"


def seen(shard: Shard) -> tuple[Shard, str]:
    """The shard in its present state, and its digest in that state. Raises ShardError."""
    now = _listed(shard)
    return now, shard_digest(now)


def check_unchanged(shard: Shard, digest: str | None) -> None:
    """Raise ShardError when a shard is not what it was when it was listed.

    digest  the result of `shard_digest` then: of two writes within one tick of the clock, the times
            show one. The version that a store gives an object shows both.
    """
    if digest is not None and shard.state is not None and shard.state.version:
        with errors_named(shard):
            check(shard.path)
    elif shard_digest(shard) != digest:
        raise ShardError(
            "{shard}: its content changed after it was listed", shard=shard.name,
            hint=LET_NOBODY_WRITE,
        )  # fmt: skip


def file_sha256(shard: Shard) -> str:
    """Return the SHA-256 of the whole file as `sha256:<hex>`. Raises ShardError."""
    with readable(shard.name, ()), errors_named(shard), opened(shard.path) as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


@contextmanager
def errors_named(shard: Shard) -> Iterator[None]:
    """Let a ShardError speak of the shard by its name instead of by its place on this machine.

    Where the shard is not as it was listed, or is a pointer to a file that was not fetched, that is
    the error: it explains all others.
    """
    try:
        try:
            yield
        except ShardError:
            check(shard.path)
            if is_pointer(shard.path):
                raise pointer_error(shard.name) from None
            raise
    except ShardError as error:
        raise error.renamed(shard.uri, shard.name) from error


@contextmanager
def unchanged(shard: Shard) -> Iterator[Shard]:
    """The shard in its listed state, or in its present one; other errors as by `errors_named`.

    Raises ShardError where it is in another state when the block ends.
    """
    with errors_named(shard), sharing(shard.path) as path:
        if shard.state is None:
            yield replace(shard, size_bytes=path.state.size, state=path.state)
        else:
            yield shard


def _listed(shard: Shard) -> Shard:
    """The shard in its present state."""
    try:
        state = state_at(shard.uri)
    except OSError:
        # A dangling link is a shard all the same: it fails when it is opened, and by name.
        state = NOT_THERE
    return replace(shard, size_bytes=state.size, state=state)


def _unique_names(found: Sequence[ListedFile]) -> list[str]:
    """Names that differ: where two are equal, by the last folder above, or by more of them.

    Where all lies says nothing, so that a corpus that is moved keeps its names.
    """
    names = [file.name for file in found]
    for shown in (_last_folder, _below_all, _whole_path):
        same: defaultdict[str, list[ListedFile]] = defaultdict(list)
        for name, file in zip(names, found, strict=True):
            same[name].append(file)
        names = [
            f"{shown(file, same[name])}/{file.name}" if len(same[name]) > 1 else name
            for name, file in zip(names, found, strict=True)
        ]
    return names


def _last_folder(file: ListedFile, _: Sequence[ListedFile]) -> str:
    return file.argument.name


def _below_all(file: ListedFile, same: Sequence[ListedFile]) -> str:
    above = [other.argument.parent.parts for other in same]
    n_same = sum(
        1 for _ in takewhile(lambda parts: len(set(parts)) == 1, zip(*above, strict=False))
    )
    return "/".join(file.argument.parts[n_same:])


def _whole_path(file: ListedFile, _: Sequence[ListedFile]) -> str:
    return file.argument.as_posix()


def _seen(skipped: Sequence[Skipped]) -> str:
    if not skipped:
        return ": no files seen"
    seen = [f"{entry.path.name} ({entry.reason})" for entry in skipped[:_MAX_LISTED]]
    more = f" and {len(skipped) - _MAX_LISTED} more" if len(skipped) > _MAX_LISTED else ""
    return f"; files seen: {', '.join(seen)}{more}"
