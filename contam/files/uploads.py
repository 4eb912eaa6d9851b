"""Write to object stores: an object is there whole or not at all, and a folder ends with its mark.

A store cannot rename a folder. So the object named `last`, which lists the digests of the others,
is removed before they are written and is written after them: where it is missing, or they are not
what it lists, there is no finished result.
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
from contam.files.publication import LAST
from contam.files.stores import RefusedError, Store, StoreError, store_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: The stores that take objects; the others are only read.
_WRITABLE = ("s3", "gs", "az")
_NAMED = 3
_PIECE = 8 << 20


class WritableStore(Store, Protocol):
    """A store that takes objects, too."""

    def write(self, address: Address, source: Path | bytes) -> None:
        """Write an object, in place of an earlier one: whole or not at all. Raises OSError."""

    def remove(self, address: Address) -> None:
        """Remove an object if it is there. Raises OSError."""


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
    """The address that is written to. Raises UsageError for a store that is only read."""
    address = checked(given)
    if address.scheme not in _WRITABLE:
        raise UsageError(
            "{}:// is only read, and cannot be written to", Public(address.scheme),
            remedy=Remedy.NAME_WRITABLE_PLACE,
        )  # fmt: skip
    return address


def upload(address: Address, source: Path | bytes) -> None:
    """Write the content of a file, or bytes, as an object. Raises OutputError."""
    store = _store(address)
    size = len(source) if isinstance(source, bytes) else source.stat().st_size
    with store_errors(address):
        try:
            store.write(address, source)
        except OSError:
            # Arrow may have made an object of what it had sent.
            with contextlib.suppress(OSError):
                if store.state(address).size != size:
                    store.remove(address)
            raise
        if (found := store.state(address).size) != size:
            raise StoreError(f"it has {found:,} of {size:,} bytes")


def fetch(address: PurePath, target: Path) -> None:
    """Copy an object, in one state of it, to a file. Raises OSError."""
    found = checked(address)
    with store_of(found).open(found) as source, target.open("wb") as file:
        shutil.copyfileobj(source, file, _PIECE)
    if store_of(found).state(found) != source.state:
        raise StoreError("it was replaced while it was read")


def remove(address: Address) -> None:
    """Remove an object if it is there. Raises OutputError."""
    with store_errors(address):
        _store(address).remove(address)


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
            remedy = Remedy.GIVE_CREDENTIALS
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
    known = (*names, *earlier)
    _check_free(folder, known, last, overwrite=overwrite)
    with tempfile.TemporaryDirectory(prefix="contam-draft-") as home:
        draft = Path(home)
        yield draft
        # Asked again: another run may have finished here since.
        before = _check_free(folder, known, last, overwrite=overwrite)
        files = sorted(path for path in draft.rglob("*") if path.is_file())
        made = {"/".join(path.relative_to(draft).parts): path for path in files}
        LAST.begin(cast("Path", folder))
        if last in before:
            remove(folder / last)
        stamps = {}
        for name in [*(name for name in made if name != last), last]:
            if name == last:
                for old in [old for old in before if old not in made]:
                    remove(folder / old)
            upload(folder / name, made[name])
            stamps[name] = _stamp(folder / name)
        for name, stamp in stamps.items():
            if _stamp(folder / name) != stamp:
                raise OutputError(
                    "{}: another run wrote there at the same time", Place(folder / name),
                    remedy=Remedy.CHOOSE_ANOTHER_FOLDER,
                )  # fmt: skip
        LAST.is_whole = True


def _check_free(folder: Address, names: Sequence[str], last: str, *, overwrite: bool) -> list[str]:
    """The objects of an earlier result. Raises OutputError for others, or where it may not go."""
    present = names_below(folder)
    foreign = [name for name in present if name.partition("/")[0] not in names]
    if foreign:
        raise OutputError(
            "{} holds files that are not a contam result: {}", Place(folder),
            Place(", ".join(foreign[:_NAMED]) + (" ..." if len(foreign) > _NAMED else "")),
            remedy=Remedy.CHOOSE_EMPTY_FOLDER,
        )  # fmt: skip
    if present and not overwrite:
        raise OutputError(
            "{} already holds {} result", Place(folder),
            Public("a finished" if last in present else "part of a"),
            remedy=Remedy.CHOOSE_FOLDER_OR_OVERWRITE,
        )  # fmt: skip
    return present


def _stamp(address: Address) -> str:
    with store_errors(address):
        return store_of(address).state(address).stamp


def _store(address: Address) -> WritableStore:
    return cast("WritableStore", store_of(address))
