"""Write to stores: an object is there whole or not at all, and a folder ends with its mark.

The Hub takes the files of a folder in one commit. Other stores take them one by one, and cannot
rename a folder. So the object named `last`, which lists the digests of the others, is removed
before they are written and is written after them: where it is missing, or they are not what it
lists, there is no finished result.
"""

from __future__ import annotations

import contextlib
import errno
import shutil
import tempfile
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Protocol, cast

from contam.errors import OutputError, Place, Plain, Public, Remedy, UsageError
from contam.files.addresses import Address, checked, is_address
from contam.files.publication import LAST, kind_of
from contam.files.stores import RefusedError, Store, StoreError, lacks_bucket, size_of, store_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

#: The stores that take objects one by one, and those that take commits; others are only read.
_ONE_BY_ONE = ("s3", "gs", "az")
_IN_COMMITS = ("hf",)
_NAMED = 3
_PIECE = 8 << 20


class WritableStore(Store, Protocol):
    """A store that takes objects, too, one by one."""

    def write(self, address: Address, source: Path | bytes) -> None:
        """Write an object, in place of an earlier one: whole or not at all. Raises OSError."""

    def remove(self, address: Address) -> None:
        """Remove an object if it is there. Raises OSError."""


class CommitStore(Store, Protocol):
    """A store that takes commits, too."""

    def claim(self, address: Address) -> None:
        """Raise OSError or UsageError where no commit would be taken."""

    def commit(
        self,
        folder: Address,
        made: Mapping[str, Path | bytes],
        replaced: Callable[[Address], Collection[str]],
    ) -> None:
        """Do what `write_files` says at once, or nothing of it. Raises OSError."""


def place(given: str | Path) -> Path:
    """A path, or the address that a text or path means, which has the names of a path.

    Raises UsageError for an address that is not read: see `checked`.
    """
    return cast("Path", checked(given)) if is_address(given) else Path(given)


def lies_in(out: str | Path, home: str | Path) -> bool:
    """Whether a path or address is a folder of its kind, or lies below it."""
    inner, outer = place(out), place(home)
    if isinstance(inner, Address) or isinstance(outer, Address):
        return type(inner) is type(outer) and inner.is_relative_to(outer)
    try:
        return outer.is_dir() and inner.resolve().is_relative_to(outer.resolve())
    except OSError:
        return False  # whoever opens it will say why


def writable(given: object) -> Address:
    """The address that is written to.

    Raises UsageError for a store that is only read; OutputError where the Hub takes no commit, or
    there is no bucket.
    """
    address = checked(given)
    if address.scheme in _IN_COMMITS:
        with store_errors(address):
            _commits(address).claim(address)
    elif address.scheme not in _ONE_BY_ONE:
        raise UsageError(
            "{}:// is only read, and cannot be written to", Public(address.scheme),
            remedy=Remedy.NAME_WRITABLE_PLACE,
        )  # fmt: skip
    with store_errors(address):
        if lacks_bucket(address):
            raise FileNotFoundError(errno.ENOENT, "there is no such bucket")
    return address


def write_files(
    folder: Address,
    made: Mapping[str, Path | bytes],
    replaced: Callable[[Address], Collection[str]] = lambda _: (),
    *,
    last: str = "",
) -> dict[str, str]:
    """Write files into a folder, and remove those that they replace.

    made      the content of each, or a file that has it, by the names below the folder
    replaced  says which files go, of those in the folder as it is at the address it is given, or
              raises an error when nothing may be written there
    last      where they go one by one, this is removed before all others and written after them

    Returns the stamps of objects that were written one by one. Raises OutputError.
    """
    if folder.scheme in _IN_COMMITS:
        with store_errors(folder / next(iter(made)) if len(made) == 1 else folder):
            _commits(folder).commit(folder, made, replaced)
        return {}
    old = [name for name in replaced(folder) if name not in made or name == last]
    if last in old:
        _remove(folder / last)
        old.remove(last)
    stamps = {name: _upload(folder / name, made[name]) for name in made if name != last}
    for name in old:
        _remove(folder / name)
    if last:
        stamps[last] = _upload(folder / last, made[last])
    return stamps


def upload(address: Address, source: Path | bytes) -> None:
    """Write the content of a file, or bytes, as an object. Raises OutputError."""
    write_files(address.parent, {address.name: source})


def _upload(address: Address, source: Path | bytes) -> str:
    """Write an object, and return its stamp."""
    store = cast("WritableStore", store_of(address))
    size = size_of(source)
    with store_errors(address):
        try:
            store.write(address, source)
        except OSError:
            # Arrow may have made an object of what it had sent.
            with contextlib.suppress(OSError):
                if store.state(address).size != size:
                    store.remove(address)
            raise
        state = store.state(address)
        if state.size != size:
            raise StoreError(f"it has {state.size:,} of {size:,} bytes")
        return state.stamp


def fetch(address: PurePath, target: Path) -> None:
    """Copy an object, in one state of it, to a file. Raises OSError."""
    found = checked(address)
    with store_of(found).open(found) as source, target.open("wb") as file:
        shutil.copyfileobj(source, file, _PIECE)
    if store_of(found).state(found) != source.state:
        raise StoreError("it was replaced while it was read")


def _remove(address: Address) -> None:
    with store_errors(address):
        cast("WritableStore", store_of(address)).remove(address)


def names_below(folder: Address) -> list[str]:
    """The names of all objects below a folder, relative to it and in order. Raises OutputError."""
    with store_errors(folder):
        try:
            found = sorted(store_of(folder).below(folder))
        except FileNotFoundError:
            return []
    return ["/".join(one.relative_to(folder).parts) for one in found]


@contextlib.contextmanager
def store_errors(address: Address) -> Iterator[None]:
    """Turn a failure of a store into an OutputError that names the address."""
    try:
        yield
    except OSError as error:
        remedy = Remedy.ASK_STORE_LATER
        if isinstance(error, RefusedError):
            in_commits = address.scheme in _IN_COMMITS
            remedy = Remedy.CHECK_HUB_ACCESS if in_commits else Remedy.GIVE_CREDENTIALS
        elif isinstance(error, FileNotFoundError):
            remedy = Remedy.CHECK_FILE_READABLE
        elif error.errno in {errno.ENOSPC, errno.EDQUOT}:
            remedy = Remedy.FREE_SPACE
        raise OutputError(
            "{}: {}", Place(address), Plain(error.strerror or error), remedy=remedy
        ) from error


@contextlib.contextmanager
def publishing_objects(
    out: object, *, names: Sequence[str], last: str, overwrite: bool, earlier: Sequence[str]
) -> Iterator[Path]:
    """As `contam.files.publish.publishing`, for an address: the draft is on this machine.

    Raises OutputError, also when another run has written there meanwhile; UsageError for a store
    that is only read.
    """
    folder = writable(out)

    def before(at: Address) -> list[str]:
        return _check_free(at, (*names, *earlier), last, overwrite=overwrite, shown=folder)

    before(folder)
    with tempfile.TemporaryDirectory(prefix="contam-draft-") as home:
        draft = Path(home)
        yield draft
        files = sorted(path for path in draft.rglob("*") if path.is_file())
        made = {"/".join(path.relative_to(draft).parts): path for path in files}
        made[last] = made.pop(last)  # A commit is called after it.
        LAST.begin(cast("Path", folder))
        # Asked again: another run may have finished here since.
        stamps = write_files(folder, made, before, last=last)
        for name, stamp in stamps.items():
            if _stamp(folder / name) != stamp:
                raise OutputError(
                    "{}: another run wrote there at the same time", Place(folder / name),
                    remedy=Remedy.CHOOSE_ANOTHER_FOLDER,
                )  # fmt: skip
        LAST.is_whole = True


def _check_free(
    at: Address, names: Sequence[str], last: str, *, overwrite: bool, shown: Address
) -> list[str]:
    """The objects of an earlier result. Raises OutputError for others, or where it may not go."""
    present = names_below(at)
    foreign = [name for name in present if name.partition("/")[0] not in names]
    if foreign:
        raise OutputError(
            "{} holds files that are not a contam result: {}", Place(shown),
            Place(", ".join(foreign[:_NAMED]) + (" ..." if len(foreign) > _NAMED else "")),
            remedy=Remedy.CHOOSE_EMPTY_FOLDER,
        )  # fmt: skip
    if present and not overwrite:
        raise OutputError(
            "{} already holds {} {}", Place(shown),
            Public("a finished" if last in present else "part of a"), kind_of(last),
            remedy=Remedy.CHOOSE_FOLDER_OR_OVERWRITE,
        )  # fmt: skip
    return present


def _stamp(address: Address) -> str:
    with store_errors(address):
        return store_of(address).state(address).stamp


def _commits(address: Address) -> CommitStore:
    return cast("CommitStore", store_of(address))
